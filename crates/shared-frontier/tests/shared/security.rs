//! Tests of encrypted connections, passwords, and the database role of workers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crawl_frontier::conformance::helpers::{admit, lease, link, order, settle};
use crawl_frontier::{Frontier as _, LeaseOutcome};
use crawl_shared_frontier::{
    Password, PasswordSources, SharedCrawlError, SharedFrontier, SharedFrontierOptions,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_postgres::error::SqlState;

use crate::crash_harness::{new_crawl, options};
use crate::postgres_server::{Postgres, Served, Setup, execute, number, try_execute};

const PASSWORD: &str = "open sesame";

/// A server that accepts the database role of workers only with TLS and a password. The script that
/// creates this role was run in the server's database.
struct Guarded {
    server: Postgres,
    files: TempDir,
}

/// Creates a certificate authority.
fn signer(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Guarded {
    fn start() -> Guarded {
        let files = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (trusted, other) = (signer("trusted"), signer("other"));
        let write = |name: &str, text: String| fs::write(files.path().join(name), text).unwrap();
        write("trusted.pem", trusted.pem());
        write("other.pem", other.pem());
        write("namesake.pem", signer("trusted").pem());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &*trusted).unwrap();
        let server = Postgres::start(&Setup {
            settings: &[
                "ssl=on",
                "ssl_cert_file=server.crt",
                "ssl_key_file=server.key",
            ],
            files: &[
                ("server.crt", certificate.pem()),
                ("server.key", key.serialize_pem()),
                (
                    "pg_hba.conf",
                    "host all crawl 127.0.0.1/32 trust\n\
                     hostssl guarded crawl_worker 127.0.0.1/32 scram-sha-256\n"
                        .to_owned(),
                ),
            ],
        });
        let guarded = Guarded { server, files };
        execute(
            &guarded.administrators("postgres"),
            "CREATE DATABASE guarded",
        );
        let url = guarded.administrators("guarded");
        execute(&url, include_str!("../../../../docs/frontier-role.sql"));
        execute(
            &url,
            &format!("ALTER ROLE crawl_worker PASSWORD '{PASSWORD}'"),
        );
        guarded
    }

    /// Returns the superuser's connection string, for an unencrypted connection.
    fn administrators(&self, database: &str) -> String {
        format!("postgres://crawl@127.0.0.1:{}/{database}", self.server.port)
    }

    /// Returns a connection string of the workers' role, with the server called `name`.
    fn workers(&self, name: &str, parameters: &str) -> String {
        // Specify the address too, because the name may resolve to another address on this machine.
        let port = self.server.port;
        format!("postgres://crawl_worker@{name}:{port}/guarded?hostaddr=127.0.0.1&{parameters}")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn trusting(&self, name: &str, signer: &str) -> String {
        let roots = self.file(signer);
        self.workers(name, &format!("sslrootcert={}", roots.display()))
    }
}

fn with_password(crawl: &str) -> SharedFrontierOptions {
    SharedFrontierOptions {
        credentials: PasswordSources {
            password: Some(Password::new(PASSWORD)),
            password_file: None,
        },
        ..options(crawl, "w1")
    }
}

/// Opens a frontier, which must fail. Returns the error, after checking that it has a hint and
/// shows no password.
fn refused(url: &str, options: &SharedFrontierOptions) -> SharedCrawlError {
    let error = SharedFrontier::open(url, options).err().unwrap();
    let mut shown = format!("{error} {error:?}");
    assert!(error.to_string().contains("\nhint: "), "{error}");
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        shown += &format!(" {error}");
        source = error.source();
    }
    assert!(!shown.contains("sesame"), "{shown}");
    error
}

#[test]
#[ignore = "needs PostgreSQL"]
fn workers_with_the_least_role_crawl_over_encrypted_connections() {
    let guarded = Guarded::start();
    let url = guarded.trusting("localhost", "trusted.pem");
    let crawl = new_crawl();
    let frontier = SharedFrontier::open(&url, &with_password(&crawl)).unwrap();
    admit(&frontier, [link("/a", 1), link("/b", 1)]);
    settle(
        &frontier,
        lease(&frontier),
        LeaseOutcome::Fetched { status: 200 },
    );
    let mut transaction = frontier.begin().unwrap();
    transaction.mark("pages.jsonl", 7);
    transaction.commit().unwrap();
    assert_eq!(order(&frontier), "/b");
    let administrators = guarded.administrators("guarded");
    let connections = |ssl: bool| {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
             WHERE usename = 'crawl_worker' AND ssl = {ssl}"
        );
        number(&administrators, &sql)
    };
    assert!(connections(true) >= 2);
    assert_eq!(connections(false), 0);
    drop(frontier);
    // A later start finds the tables that the first start created.
    crate::crash_harness::end_leases(&administrators, &crawl);
    let again = SharedFrontier::open(&url, &with_password(&crawl)).unwrap();
    assert_eq!(again.marks().unwrap()["pages.jsonl"], 7);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_role_of_workers_may_use_its_namespace_and_nothing_else() {
    let guarded = Guarded::start();
    let url = guarded.administrators("guarded");
    execute(
        &url,
        "CREATE SCHEMA study; CREATE TABLE study.notes (text text)",
    );
    // Read the role's attributes, such as superuser, from the catalogue. This session began as
    // another user, so it can't test the attributes by using them.
    let is_more =
        "SELECT (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)
                       ::int::bigint
                   FROM pg_roles WHERE rolname = 'crawl_worker'";
    assert_eq!(number(&url, is_more), 0);
    let attempt = |sql: &str| {
        try_execute(
            &url,
            &format!("SET SESSION AUTHORIZATION crawl_worker; {sql}"),
        )
    };
    attempt("CREATE TABLE crawl_frontier.own (n int); DROP TABLE crawl_frontier.own").unwrap();
    for sql in [
        "CREATE SCHEMA another",
        "CREATE TABLE public.another (n int)",
        "CREATE TEMPORARY TABLE another (n int)",
        "SELECT * FROM study.notes",
        "SELECT * FROM pg_authid",
        "CREATE ROLE another",
        "ALTER ROLE crawl_worker SUPERUSER",
        "COPY (SELECT 1) TO '/tmp/another'",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_reload_conf()",
        "SET ROLE crawl",
    ] {
        let refused = attempt(sql).expect_err(sql);
        assert_eq!(
            refused.code(),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE),
            "{sql}: {refused:?}"
        );
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_server_with_a_wrong_identity_is_refused() {
    let guarded = Guarded::start();
    let options = with_password(&new_crawl());
    let check = |url: &str, is_expected: fn(&SharedCrawlError) -> bool| {
        let error = refused(url, &options);
        assert!(is_expected(&error), "{url}: {error:?}");
    };
    let by_other = guarded.trusting("localhost", "other.pem");
    check(&by_other, |why| {
        matches!(why, SharedCrawlError::NotTrusted { .. })
    });
    let by_namesake = guarded.trusting("localhost", "namesake.pem");
    check(&by_namesake, |why| {
        matches!(why, SharedCrawlError::NotTrusted { .. })
    });
    let by_system = guarded.workers("localhost", "sslmode=verify-full");
    check(&by_system, |why| {
        // The second error occurs on a machine that has no root certificates at all.
        matches!(
            why,
            SharedCrawlError::NotTrusted { .. } | SharedCrawlError::Roots { .. }
        )
    });
    let other_name = guarded.trusting("127.0.0.1", "trusted.pem");
    check(&other_name, |why| {
        matches!(why, SharedCrawlError::OtherName { .. })
    });
    let no_file = guarded.trusting("localhost", "nothing.pem");
    check(&no_file, |why| {
        matches!(why, SharedCrawlError::Roots { .. })
    });
    fs::write(guarded.file("empty.pem"), "no certificate\n").unwrap();
    let empty = guarded.trusting("localhost", "empty.pem");
    check(&empty, |why| matches!(why, SharedCrawlError::Roots { .. }));
    // The server accepts the role of workers only with TLS.
    let plain = guarded.workers("localhost", "sslmode=disable");
    check(&plain, |why| {
        matches!(why, SharedCrawlError::Refused { .. })
    });

    let served = Served::new();
    let without = format!("{}?sslmode=verify-full", served.url);
    check(&without, |why| {
        matches!(why, SharedCrawlError::NoTls { .. })
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_password_is_given_by_the_caller_or_in_a_private_file() {
    let guarded = Guarded::start();
    let url = guarded.trusting("localhost", "trusted.pem");
    let plain = options(&new_crawl(), "w1");
    assert!(matches!(
        refused(&url, &plain),
        SharedCrawlError::Refused { .. }
    ));
    let wrong = SharedFrontierOptions {
        credentials: PasswordSources {
            password: Some(Password::new("sesame")),
            password_file: None,
        },
        ..plain.clone()
    };
    assert!(matches!(
        refused(&url, &wrong),
        SharedCrawlError::Refused { .. }
    ));
    let in_string = url.replace("crawl_worker@", "crawl_worker:sesame@");
    assert!(matches!(
        refused(&in_string, &plain),
        SharedCrawlError::Refused { .. }
    ));

    let path = guarded.file("pgpass");
    let by_file = SharedFrontierOptions {
        credentials: PasswordSources {
            password: None,
            password_file: Some(path.clone()),
        },
        ..plain.clone()
    };
    let port = guarded.server.port;
    written(
        &path,
        &format!("localhost:{port}:guarded:crawl_worker:{PASSWORD}\n"),
        0o644,
    );
    assert!(matches!(
        refused(&url, &by_file),
        SharedCrawlError::PasswordFile { .. }
    ));
    written(
        &path,
        &format!("localhost:{port}:other:crawl_worker:{PASSWORD}\n"),
        0o600,
    );
    assert!(matches!(
        refused(&url, &by_file),
        SharedCrawlError::Refused { .. }
    ));
    written(
        &path,
        &format!("localhost:{port}:guarded:crawl_worker:{PASSWORD}\n"),
        0o600,
    );
    SharedFrontier::open(&url, &by_file).unwrap();
}

fn written(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
