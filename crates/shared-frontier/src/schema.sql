-- The tables of shared frontiers, in a namespace of their own that is there already. All keys but
-- those of a crawl and of a worker begin with (crawl, b): the crawl's number and a bucket. A bucket
-- holds whole hosts, and one worker at a time owns it, so nobody else writes its rows. Columns are
-- sorted by width, which saves what would be lost between them.

CREATE TABLE crawl_frontier.layout (version int NOT NULL);

CREATE TABLE crawl_frontier.crawl (
    -- How often the map of buckets changed in this group.
    map bigint NOT NULL,
    -- Of the first group: how often `worker_home` changed.
    homes bigint NOT NULL,
    number int NOT NULL PRIMARY KEY,
    buckets int NOT NULL,
    -- The last number that a worker of this group was given. None is given twice.
    workers int NOT NULL,
    -- This group's number among those of the crawl, from 0, and how many there are.
    group_number int NOT NULL,
    groups int NOT NULL,
    name text NOT NULL UNIQUE,
    -- All its groups were made. No worker begins before.
    is_whole bool NOT NULL,
    -- Of the fingerprints of its URLs.
    fingerprint_key bytea NOT NULL,
    -- The version of the program and the settings that all its workers have alike.
    program text NOT NULL,
    settings text NOT NULL
);

-- One life of one process that has this name.
CREATE TABLE crawl_frontier.worker (
    commits bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    -- When this life began, and when it was heard of last.
    began timestamptz NOT NULL,
    heard timestamptz NOT NULL,
    -- Rows of pages.jsonl and bytes of bodies, over all lives, and the rows when this one began.
    pages bigint NOT NULL,
    bytes bigint NOT NULL,
    pages_before bigint NOT NULL,
    -- The most that `pages` may come to, of the pages that the crawl may have in all.
    allowed bigint NOT NULL,
    crawl int NOT NULL,
    -- Of the directory that its rows lie in: the name has another one once that is lost.
    number int NOT NULL,
    -- It has nothing to do until something comes.
    rests bool NOT NULL,
    -- It was asked to hand its buckets over, and to end.
    drained bool NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    PRIMARY KEY (crawl, name)
) WITH (fillfactor = 50);

-- Of a crawl of several groups, in the first of them: the group of each worker, and the pages that
-- it may have. It is changed by compare-and-set on `homes` of the crawl.
CREATE TABLE crawl_frontier.worker_home (
    since timestamptz NOT NULL,
    -- The most that its pages may come to, of those that the crawl may have in all, and the life
    -- that was allowed them.
    allowed bigint NOT NULL,
    crawl int NOT NULL,
    home int NOT NULL,
    name text NOT NULL,
    owner text NOT NULL,
    PRIMARY KEY (crawl, name)
);

-- The owner, and the number of URLs in each state. All groups have a row for each bucket, which says
-- who serves it: of those that contradict each other the one of the highest epoch holds.
CREATE TABLE crawl_frontier.bucket (
    epoch bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    -- The last number that orders URLs by their admission.
    seq bigint NOT NULL,
    pending bigint NOT NULL,
    deferred bigint NOT NULL,
    fetched bigint NOT NULL,
    failed bigint NOT NULL,
    excluded bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    -- The group that serves it.
    home int NOT NULL,
    -- The group that it is being moved to. -1 where the move is being taken back.
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
    -- Each commit changes `pending`: with room in its page, and no index of it, a row is changed there.
) WITH (fillfactor = 70);

CREATE TABLE crawl_frontier.host (
    host bigint NOT NULL,
    -- Microseconds since 1970, as 64 bits without a sign.
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
    -- Orders the pending URLs of an origin: round, priority and distance, then seq.
    place bigint NOT NULL,
    seq bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    distance int NOT NULL,
    attempt int NOT NULL,
    -- The line of the rule that excludes or defers it.
    line int,
    -- The number of the worker that settled it, whose directory has its row. None before.
    settled_by int,
    -- 0 pending, 1 deferred, 2 fetched, 3 failed, 4 excluded.
    state smallint NOT NULL,
    priority smallint NOT NULL,
    redirects smallint NOT NULL,
    -- 1 a seed, 2 tried before, 4 a page, 8 a sitemap.
    flags smallint NOT NULL,
    -- The status of what was fetched, or the number of a reason.
    code smallint,
    path text NOT NULL,
    via text,
    -- Why it failed, or the rule that excludes or defers it.
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

-- Links to hosts of other workers, until their owner admits them. Each life of a worker numbers
-- those that it sends. A link to a bucket that another group serves is sent on to there.
CREATE TABLE crawl_frontier.link (
    number bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    distance int NOT NULL,
    line int,
    -- As in the table of URLs: 0, 1 or 4.
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

-- The buckets that may hold URLs which a worker settled whose directory is lost. Their owners make
-- them pending again, in the order of their keys, and this is the last one that was looked at.
CREATE TABLE crawl_frontier.bucket_to_reopen (
    origin bigint NOT NULL,
    fingerprint bigint NOT NULL,
    crawl int NOT NULL,
    b int NOT NULL,
    -- The number that stands in `settled_by`.
    worker int NOT NULL,
    PRIMARY KEY (crawl, b, worker)
);

-- The bytes of each worker's own files that stand for what is settled.
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
