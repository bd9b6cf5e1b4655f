-- The tables of shared frontiers, in an existing namespace. All keys except those of crawls and
-- workers begin with (crawl, b): the crawl's number and a bucket. A bucket contains whole hosts and
-- has one owner at a time, so only this worker writes the bucket's rows. Columns are sorted by
-- width to avoid padding.

CREATE TABLE crawl_frontier.layout (version int NOT NULL);

CREATE TABLE crawl_frontier.crawl (
    -- The version of the map of buckets in this group: how often the map changed.
    map bigint NOT NULL,
    -- In the first group: how often `worker_home` changed.
    homes bigint NOT NULL,
    number int NOT NULL PRIMARY KEY,
    buckets int NOT NULL,
    -- The last number assigned to a worker of this group. Numbers are never reused.
    workers int NOT NULL,
    -- This group's number, from 0, and the number of groups of the crawl.
    group_number int NOT NULL,
    groups int NOT NULL,
    name text NOT NULL UNIQUE,
    -- Whether all groups of the crawl were created. No worker starts before that.
    is_whole bool NOT NULL,
    -- The key of URL fingerprints.
    fingerprint_key bytea NOT NULL,
    -- The program version and settings, which are the same for all workers.
    program text NOT NULL,
    settings text NOT NULL
);

-- The name of a worker, with the data of its current life, which is one run of its process.
CREATE TABLE crawl_frontier.worker (
    commits bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    -- When the current life began, and when its last heartbeat arrived.
    began timestamptz NOT NULL,
    heard timestamptz NOT NULL,
    -- Rows of pages.jsonl and bytes of bodies over all lives, and the rows when the current life
    -- began.
    pages bigint NOT NULL,
    bytes bigint NOT NULL,
    pages_before bigint NOT NULL,
    -- The maximum for the worker's `pages`: the part of the crawl's budget that was granted.
    allowed bigint NOT NULL,
    crawl int NOT NULL,
    -- The number of the worker's directory. A worker gets a new number if its directory is lost.
    number int NOT NULL,
    -- Whether the worker is idle until new links arrive.
    rests bool NOT NULL,
    -- Whether the worker was told to hand over its buckets and stop.
    drained bool NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    PRIMARY KEY (crawl, name)
) WITH (fillfactor = 50);

-- In the first group of a crawl of several groups: the home group of each worker, and the worker's
-- page budget. Changed by compare-and-set on the crawl's `homes`.
CREATE TABLE crawl_frontier.worker_home (
    since timestamptz NOT NULL,
    -- The part of the crawl's page budget that was granted to the worker, and the life to which it
    -- was granted.
    allowed bigint NOT NULL,
    crawl int NOT NULL,
    home int NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    PRIMARY KEY (crawl, name)
);

-- The owner of each bucket, and the number of its URLs in each state. Each group has a row for each
-- bucket, with the group that serves the bucket. If the rows of two groups contradict each other,
-- the row with the highest epoch is valid.
CREATE TABLE crawl_frontier.bucket (
    epoch bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    -- The last sequence number given to a URL of the bucket. URLs are numbered in the order of
    -- their admission.
    seq bigint NOT NULL,
    pending bigint NOT NULL,
    deferred bigint NOT NULL,
    fetched bigint NOT NULL,
    failed bigint NOT NULL,
    excluded bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    -- The group that serves the bucket.
    home int NOT NULL,
    -- The group that the bucket is being moved to, or -1 while a move is being undone.
    moving_to int,
    owner text NOT NULL,
    PRIMARY KEY (crawl, b)
) WITH (fillfactor = 50);

CREATE TABLE crawl_frontier.origin (
    origin bigint NOT NULL,
    pending bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    name text NOT NULL,
    robots bytea,
    PRIMARY KEY (crawl, b, origin)
    -- Each commit changes `pending`. With free space in the page and no index on `pending`, rows
    -- are updated in place (HOT).
) WITH (fillfactor = 70);

CREATE TABLE crawl_frontier.host (
    host bigint NOT NULL,
    -- The time from which requests are allowed, in microseconds since 1970, as an unsigned 64-bit
    -- number.
    wake bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    name text NOT NULL,
    politeness bytea NOT NULL,
    PRIMARY KEY (crawl, b, host)
);

CREATE TABLE crawl_frontier.url (
    origin bigint NOT NULL,
    fingerprint bigint NOT NULL,
    -- Orders the pending URLs of an origin: `place` holds round, priority and distance, and `seq`
    -- orders equal places.
    place bigint NOT NULL,
    seq bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    distance int NOT NULL,
    attempt int NOT NULL,
    -- The line in robots.txt of the rule that excludes or defers the URL.
    line int,
    -- The number of the worker that settled the URL and whose directory has the URL's row. Null if
    -- the URL is not settled.
    settled_by int,
    -- The state: 0 pending, 1 deferred, 2 fetched, 3 failed, 4 excluded.
    state smallint NOT NULL,
    priority smallint NOT NULL,
    redirects smallint NOT NULL,
    -- Flags, as bits: 1 a seed, 2 tried before, 4 a page, 8 a sitemap.
    flags smallint NOT NULL,
    -- The HTTP status of a fetched URL, or the number of the reason why a URL is excluded or
    -- deferred.
    code smallint,
    path text NOT NULL,
    via text,
    -- Why the URL failed, or the rule that excludes or defers it.
    note text,
    PRIMARY KEY (crawl, b, origin, fingerprint)
) WITH (fillfactor = 90);
CREATE INDEX ON crawl_frontier.url (crawl, b, origin, place, seq) WHERE state = 0;
CREATE INDEX ON crawl_frontier.url (crawl, b, origin, fingerprint) WHERE state = 1;

CREATE TABLE crawl_frontier.visit (
    origin bigint NOT NULL,
    fingerprint bigint NOT NULL,
    made_at bigint NOT NULL,
    due bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    distance int NOT NULL,
    priority smallint NOT NULL,
    redirects smallint NOT NULL,
    flags smallint NOT NULL,
    is_settled bool NOT NULL,
    via text,
    kept bytea NOT NULL,
    PRIMARY KEY (crawl, b, origin, fingerprint)
);
CREATE INDEX ON crawl_frontier.visit (crawl, b, due) WHERE is_settled;

-- Links that a worker found to hosts of other workers, until the owner of the host admits them.
-- Each life of a worker numbers the links that it sends. A link to a bucket that another group
-- serves is forwarded to that group.
CREATE TABLE crawl_frontier.link (
    number bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    distance int NOT NULL,
    line int,
    -- The requested state, numbered as in the table of URLs: 0, 1 or 4.
    state smallint NOT NULL,
    priority smallint NOT NULL,
    redirects smallint NOT NULL,
    flags smallint NOT NULL,
    code smallint,
    sender text NOT NULL,
    url text NOT NULL,
    via text,
    note text,
    PRIMARY KEY (crawl, b, sender, number)
);

-- Buckets that may contain URLs settled by a worker whose directory is lost. The owner of a bucket
-- reopens these URLs in key order. `origin` and `fingerprint` are the key of the last URL checked.
CREATE TABLE crawl_frontier.bucket_to_reopen (
    origin bigint NOT NULL,
    fingerprint bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    -- The number of the lost worker, as in the column `settled_by`.
    worker int NOT NULL,
    PRIMARY KEY (crawl, b, worker)
);

-- The committed length of each file in a worker's directory. The file up to this length has the
-- rows of everything that the worker settled.
CREATE TABLE crawl_frontier.row_file (
    length bigint NOT NULL,
    crawl int NOT NULL,
    worker text NOT NULL,
    file text NOT NULL,
    PRIMARY KEY (crawl, worker, file)
);

CREATE TABLE crawl_frontier.meta (
    crawl int NOT NULL,
    worker text NOT NULL,
    name text NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (crawl, worker, name)
);
