-- The role with which the workers of crawls use a frontier in PostgreSQL. It owns one namespace, in
-- which the program makes its tables, and may do nothing else.
--
-- Give the frontier a database of its own, and run this in it once, as a superuser:
--
--   createdb crawl
--   psql --dbname=crawl --file=docs/frontier-role.sql
--   psql --dbname=crawl --command='\password crawl_worker'
--
-- Then let the role in by TLS alone, in pg_hba.conf, before any other line that fits:
--
--   hostssl  crawl  crawl_worker  192.0.2.0/24  scram-sha-256

CREATE ROLE crawl_worker LOGIN
    NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT;

-- Nobody else uses this database, and the role makes nothing in it outside of its namespace.
DO $$
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO crawl_worker', current_database());
END
$$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;

-- The program makes it where it is missing and it may. Where it is there it is used as it is.
CREATE SCHEMA crawl_frontier AUTHORIZATION crawl_worker;
