//! The SQL statements. Those in [`SqlStatement`] are prepared once per connection.

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        /// A prepared statement. The doc of each variant lists the statement's parameters in order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum SqlStatement {
            $($(#[$doc])* $name,)*
        }

        impl SqlStatement {
            /// The texts of the statements, in the order of the variants.
            pub(crate) const TEXTS: &'static [&'static str] = &[$($text),*];
        }
    };
}

/// The columns of a URL's record.
macro_rules! record_columns {
    () => {
        "u.state, u.seq, u.distance, u.attempt, u.priority, u.redirects, u.flags, u.code, u.line, \
         u.via, u.note"
    };
}

/// Selects the visits that satisfy a condition, with the state, origin and path of each URL. The
/// caller may select other columns before these.
macro_rules! visits {
    ($condition:literal) => {
        visits!("SELECT ", $condition)
    };
    ($select:literal, $condition:literal) => {
        concat!(
            $select,
            "v.b, v.origin, v.fingerprint, v.made_at, v.due, v.distance, v.priority, \
             v.redirects, v.flags, v.is_settled, v.via, v.kept, u.state, o.name, u.path
            FROM crawl_frontier.visit v
            JOIN crawl_frontier.url u ON u.crawl = v.crawl AND u.b = v.b AND u.origin = v.origin
                AND u.fingerprint = v.fingerprint
            JOIN crawl_frontier.origin o ON o.crawl = v.crawl AND o.b = v.b AND o.origin = v.origin
            WHERE ",
            $condition
        )
    };
}

statements! {
    /// Takes free buckets of a server group. Parameters: crawl, owner, milliseconds of the lease,
    /// maximum number, group. Here and in all other statements that change several rows, rows are
    /// locked in key order, so that two transactions never deadlock.
    TakeBuckets = "WITH ended AS (
            SELECT b FROM crawl_frontier.bucket
            WHERE crawl = $1 AND lease_until <= clock_timestamp() AND home = $5
                AND moving_to IS NULL
            ORDER BY b LIMIT $4 FOR UPDATE)
        UPDATE crawl_frontier.bucket k SET owner = $2, epoch = k.epoch + 1,
            lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
        FROM ended WHERE k.crawl = $1 AND k.b = ended.b
        RETURNING k.b, k.epoch, k.seq, k.pending, k.deferred, k.fetched, k.failed, k.excluded";
    /// Takes a worker's name, if its lease has expired or its last process is known to have ended.
    /// Parameters: crawl, name, owner, milliseconds of the lease, id of that process. Returns how
    /// many commits the worker has made, and the worker's number. A new name gets a new number.
    TakeName = "WITH numbered AS (
            UPDATE crawl_frontier.crawl SET workers = workers + 1
            WHERE number = $1::int AND NOT EXISTS (
                SELECT 1 FROM crawl_frontier.worker WHERE crawl = $1 AND name = $2::text)
            RETURNING workers * 64 + group_number AS given)
        INSERT INTO crawl_frontier.worker AS w (crawl, name, owner, lease_until, commits,
            began, heard, pages, bytes, pages_before, allowed, rests, drained, number)
        SELECT $1::int, $2::text, $3::text, clock_timestamp() + $4::bigint * interval '1 millisecond', 0,
            clock_timestamp(), clock_timestamp(), 0, 0, 0, 0, false, false,
            coalesce((SELECT given FROM numbered), 0)
        ON CONFLICT (crawl, name) DO UPDATE
            SET owner = excluded.owner, lease_until = excluded.lease_until, began = excluded.began,
                heard = excluded.heard, pages_before = w.pages, allowed = w.pages, rests = false,
                drained = false
            WHERE w.lease_until <= clock_timestamp() OR w.owner = $5::text
        RETURNING w.commits, w.number";
    /// Counts living workers that are not being drained. Parameters: crawl.
    Living = "SELECT count(*) FROM crawl_frontier.worker
        WHERE crawl = $1 AND lease_until > clock_timestamp() AND NOT drained";
    /// Sets the program version and settings of a crawl, if they are unchanged, were not set yet,
    /// or no other worker is alive. Parameters: crawl, owner, version, settings, whether a worker
    /// is alive in another group. Returns a row if they were set.
    TakeSettings = "UPDATE crawl_frontier.crawl c SET program = $3, settings = $4
        WHERE c.number = $1 AND (
            (c.program = $3 AND c.settings = $4)
            OR (c.program = '' AND c.settings = '')
            OR NOT ($5 OR EXISTS (SELECT 1 FROM crawl_frontier.worker w
                WHERE w.crawl = $1 AND w.owner <> $2 AND w.lease_until > clock_timestamp())))
        RETURNING c.number";
    /// Replaces the settings that a worker must have to join the crawl. Parameters: crawl,
    /// settings.
    ReplaceSettings = "UPDATE crawl_frontier.crawl SET settings = $2 WHERE number = $1";
    /// Returns the name, process id, pages and liveness of each worker of a server group.
    /// Parameters: crawl.
    Workers = "SELECT name, owner, pages, lease_until > clock_timestamp()
        FROM crawl_frontier.worker WHERE crawl = $1";
    /// Returns the server group that serves each bucket, in bucket order. Parameters: crawl.
    Map = "SELECT home FROM crawl_frontier.bucket WHERE crawl = $1 ORDER BY b";
    /// Returns the homes of workers, as stored in the first server group. Parameters: crawl. Each
    /// row has:
    ///
    /// - the version of the homes;
    /// - the worker's name, which is null before the first home is assigned;
    /// - the worker's home;
    /// - whether the home was assigned in the last minute, so the worker may not have started yet;
    /// - the process that pages were granted to;
    /// - the number of pages granted to it.
    Homes = "SELECT c.homes, w.name, w.home, w.since > clock_timestamp() - interval '1 minute',
            w.owner, w.allowed
        FROM crawl_frontier.crawl c LEFT JOIN crawl_frontier.worker_home w ON w.crawl = c.number
        WHERE c.number = $1";
    /// Assigns a home (a server group) to a worker, if the homes still have the given version.
    /// Parameters: crawl, version of the homes, name, group.
    AssignHome = "WITH turn AS (UPDATE crawl_frontier.crawl SET homes = homes + 1
            WHERE number = $1::int AND homes = $2 RETURNING number)
        INSERT INTO crawl_frontier.worker_home (crawl, name, home, since, allowed, owner)
        SELECT number, $3::text, $4::int, clock_timestamp(), 0, '' FROM turn
        ON CONFLICT DO NOTHING RETURNING home";
    /// Grants pages to a worker's process, if the homes still have the given version. Parameters:
    /// crawl, version of the homes, name, process id, total pages.
    PutAllowed = "WITH turn AS (UPDATE crawl_frontier.crawl SET homes = homes + 1
            WHERE number = $1::int AND homes = $2 RETURNING number)
        UPDATE crawl_frontier.worker_home w SET owner = $4, allowed = $5
        FROM turn WHERE w.crawl = turn.number AND w.name = $3 RETURNING w.allowed";
    /// Lowers the pages granted to a worker's process. Parameters: crawl, name, process id, pages.
    LowerAllowed = "UPDATE crawl_frontier.worker_home w
        SET allowed = CASE WHEN owner = $3 THEN least(allowed, $4::bigint) ELSE $4::bigint END,
            owner = $3
        WHERE w.crawl = $1 AND w.name = $2";
    /// Returns the program version and settings of a crawl. Parameters: crawl.
    Settings = "SELECT program, settings FROM crawl_frontier.crawl WHERE number = $1";
    /// Renews the leases of buckets whose epoch is unchanged, and returns the renewed buckets.
    /// Parameters: crawl, owner, milliseconds of the lease, buckets, epochs. An expired lease is
    /// not renewed, because another worker may be about to take the bucket.
    RenewBuckets = "WITH held AS (
            SELECT k.b FROM crawl_frontier.bucket k
            JOIN unnest($4::int[], $5::bigint[]) AS want(b, epoch)
                ON k.b = want.b AND k.epoch = want.epoch
            WHERE k.crawl = $1 AND k.owner = $2 AND k.lease_until > clock_timestamp()
            ORDER BY k.b FOR UPDATE OF k)
        UPDATE crawl_frontier.bucket k
            SET lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
        FROM held WHERE k.crawl = $1 AND k.b = held.b RETURNING k.b";
    /// Renews the lease of a worker's name. Parameters: crawl, name, owner, milliseconds of the
    /// lease.
    RenewName = "UPDATE crawl_frontier.worker
        SET lease_until = clock_timestamp() + $4::bigint * interval '1 millisecond',
            heard = clock_timestamp()
        WHERE crawl = $1 AND name = $2 AND owner = $3 AND lease_until > clock_timestamp()";
    /// Hands buckets over, and returns the counts of each bucket. Parameters: crawl, owner,
    /// buckets.
    HandOver = "WITH held AS (
            SELECT b FROM crawl_frontier.bucket
            WHERE crawl = $1 AND owner = $2 AND b = ANY($3::int[]) ORDER BY b FOR UPDATE)
        UPDATE crawl_frontier.bucket k SET lease_until = '-infinity'
        FROM held WHERE k.crawl = $1 AND k.b = held.b
        RETURNING k.b, k.epoch, k.seq, k.pending, k.deferred, k.fetched, k.failed, k.excluded";
    /// Ends the leases of an owner's buckets. Parameters: crawl, owner.
    EndBuckets = "WITH held AS (
            SELECT b FROM crawl_frontier.bucket
            WHERE crawl = $1 AND owner = $2 ORDER BY b FOR UPDATE)
        UPDATE crawl_frontier.bucket k SET lease_until = '-infinity'
        FROM held WHERE k.crawl = $1 AND k.b = held.b";
    /// Ends the lease of a name. Parameters: crawl, name, owner.
    EndName = "UPDATE crawl_frontier.worker SET lease_until = '-infinity'
        WHERE crawl = $1 AND name = $2 AND owner = $3";

    /// Returns the origins with pending URLs. Parameters: crawl, buckets.
    Origins = "SELECT name, origin, pending FROM crawl_frontier.origin
        WHERE crawl = $1 AND b = ANY($2) AND pending > 0";
    /// Returns the records of URLs. Parameters: crawl, and lists of bucket, origin and fingerprint.
    /// The `LIMIT` makes the database server look up each URL by its key, even if it assumes that
    /// the table is small.
    Records = concat!("SELECT k.at, ", record_columns!(), "
        FROM unnest($2::int[], $3::bigint[], $4::bigint[])
            WITH ORDINALITY AS k(b, origin, fingerprint, at)
        CROSS JOIN LATERAL (SELECT * FROM crawl_frontier.url WHERE crawl = $1 AND b = k.b
            AND origin = k.origin AND fingerprint = k.fingerprint LIMIT 1) u");
    /// Returns queue entries after a rank. Parameters: crawl, bucket, origin, place, seq, maximum
    /// number.
    Queue = concat!("SELECT u.path, ", record_columns!(), " FROM crawl_frontier.url u
        WHERE crawl = $1 AND b = $2 AND origin = $3 AND state = 0 AND (place, seq) > ($4, $5)
        ORDER BY place, seq LIMIT $6");
    /// Returns deferred URLs after a key. Parameters: crawl, buckets, bucket, origin, fingerprint,
    /// maximum number.
    Deferred = concat!("SELECT u.b, u.origin, u.fingerprint, o.name, u.path, ", record_columns!(), "
        FROM crawl_frontier.url u
        JOIN crawl_frontier.origin o ON o.crawl = u.crawl AND o.b = u.b AND o.origin = u.origin
        WHERE u.crawl = $1 AND u.b = ANY($2) AND u.state = 1
            AND (u.b, u.origin, u.fingerprint) > ($3, $4, $5)
        ORDER BY u.b, u.origin, u.fingerprint LIMIT $6");
    /// Returns the last visit of a URL. Parameters: crawl, bucket, origin, fingerprint.
    Visit = visits!("v.crawl = $1 AND v.b = $2 AND v.origin = $3 AND v.fingerprint = $4");
    /// Returns due visits. Parameters: crawl, buckets, until, maximum number.
    VisitsDue = visits!("v.crawl = $1 AND v.b = ANY($2) AND v.is_settled AND v.due <= $3
        ORDER BY v.due LIMIT $4");
    /// Returns visits with an implausibly late due time. Parameters: crawl, buckets, latest
    /// plausible time, now, longest plausible interval between visits, maximum number.
    VisitsMisdated = visits!("v.crawl = $1 AND v.b = ANY($2) AND v.is_settled AND v.due > $3
        AND (v.made_at > $4 OR least(v.made_at + $5, 4294967295) <= $4)
        ORDER BY v.due LIMIT $6");
    /// Returns the time of the next due visit. Parameters: crawl, buckets, after.
    NextDue = "SELECT min(due) FROM crawl_frontier.visit
        WHERE crawl = $1 AND b = ANY($2) AND is_settled AND due > $3";
    /// Returns a copy of robots.txt. Parameters: crawl, bucket, origin.
    Robots = "SELECT robots FROM crawl_frontier.origin WHERE crawl = $1 AND b = $2 AND origin = $3";
    /// Returns the state of a host. Parameters: crawl, bucket, host.
    Host = "SELECT wake, politeness FROM crawl_frontier.host
        WHERE crawl = $1 AND b = $2 AND host = $3";
    /// Returns the states of hosts. Parameters: crawl, buckets.
    Hosts = "SELECT name, wake, politeness FROM crawl_frontier.host
        WHERE crawl = $1 AND b = ANY($2)";
    /// Returns the committed lengths of files. Parameters: crawl, worker.
    Marks = "SELECT file, length FROM crawl_frontier.row_file WHERE crawl = $1 AND worker = $2";
    /// Returns all values stored for the crawl, whichever worker stored them. Parameters: crawl.
    CrawlMeta = "SELECT name, value FROM crawl_frontier.meta WHERE crawl = $1 AND worker = ''";
    /// Returns the value stored under a name. Parameters: crawl, worker, name.
    Meta = "SELECT value FROM crawl_frontier.meta WHERE crawl = $1 AND worker = $2 AND name = $3";
    /// Returns the number of a worker's commits. Parameters: crawl, name, owner.
    Commits = "SELECT commits FROM crawl_frontier.worker
        WHERE crawl = $1 AND name = $2 AND owner = $3";

    /// Counts a commit of a worker's current process. Parameters: crawl, name, owner, number of the
    /// commit, and, if they changed, the worker's pages and bytes over all its processes. If
    /// another process has taken the name, or the commit was already applied, the statement fails
    /// with a division by zero, so that the statements sent after it fail too.
    CountCommit = "WITH one AS (UPDATE crawl_frontier.worker SET commits = $4,
                pages = coalesce($5::bigint, pages), bytes = coalesce($6::bigint, bytes)
            WHERE crawl = $1 AND name = $2 AND owner = $3 AND commits = $4::bigint - 1 RETURNING 1)
        SELECT 1 / count(*) FROM one";
    /// Fences a commit and updates the counts of its buckets. Parameters: crawl, owner, and lists
    /// of bucket, epoch, last seq, and the change of each state's count. Fails like
    /// [`SqlStatement::CountCommit`] if one of the buckets has another owner or epoch.
    Fence = "WITH held AS (
            SELECT b FROM crawl_frontier.bucket
            WHERE crawl = $1 AND owner = $2 AND b = ANY($3::int[])
                AND epoch = ($4::bigint[])[array_position($3, b)]
            ORDER BY b FOR UPDATE),
        counted AS (
            UPDATE crawl_frontier.bucket k SET
                seq = greatest(seq, ($5::bigint[])[array_position($3, b)]),
                pending = pending + ($6::bigint[])[array_position($3, b)],
                deferred = deferred + ($7::bigint[])[array_position($3, b)],
                fetched = fetched + ($8::bigint[])[array_position($3, b)],
                failed = failed + ($9::bigint[])[array_position($3, b)],
                excluded = excluded + ($10::bigint[])[array_position($3, b)]
            WHERE crawl = $1 AND b = ANY($3)
                AND (SELECT count(*) FROM held) = cardinality($3) RETURNING 1)
        SELECT 1 / (CASE WHEN count(*) = cardinality($3) THEN 1 ELSE 0 END) FROM counted";
    /// Inserts or updates records. Parameters: crawl, then a list for each column.
    PutRecords = "INSERT INTO crawl_frontier.url AS u (crawl, b, origin, fingerprint, place, seq,
            distance, attempt, line, settled_by, state, priority, redirects, flags, code, path, via,
            note)
        SELECT $1::int, * FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::int[], $8::int[], $9::int[], $10::int[], $11::smallint[], $12::smallint[],
            $13::smallint[], $14::smallint[], $15::smallint[], $16::text[], $17::text[],
            $18::text[])
        ON CONFLICT (crawl, b, origin, fingerprint) DO UPDATE SET place = excluded.place,
            seq = excluded.seq, distance = excluded.distance, attempt = excluded.attempt,
            line = excluded.line, settled_by = excluded.settled_by, state = excluded.state, priority = excluded.priority,
            redirects = excluded.redirects, flags = excluded.flags, code = excluded.code,
            via = excluded.via, note = excluded.note";
    /// Inserts or updates origins, but no copies of robots.txt. Parameters: crawl, then lists of
    /// bucket, number, pending URLs, name.
    PutOrigins = "INSERT INTO crawl_frontier.origin (crawl, b, origin, pending, name)
        SELECT $1::int, * FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::text[])
        ON CONFLICT (crawl, b, origin) DO UPDATE SET pending = excluded.pending";
    /// Stores copies of robots.txt. Parameters: crawl, then lists of bucket, number, name, bytes.
    PutRobots = "INSERT INTO crawl_frontier.origin (crawl, b, origin, pending, name, robots)
        SELECT $1::int, b, origin, 0, name, robots
        FROM unnest($2::int[], $3::bigint[], $4::text[], $5::bytea[]) AS k(b, origin, name, robots)
        ON CONFLICT (crawl, b, origin) DO UPDATE SET robots = excluded.robots";
    /// Removes copies of robots.txt. Parameters: crawl, then lists of bucket and number.
    DropRobots = "UPDATE crawl_frontier.origin o SET robots = NULL
        FROM unnest($2::int[], $3::bigint[]) AS k(b, origin)
        WHERE o.crawl = $1 AND o.b = k.b AND o.origin = k.origin";
    /// Stores states of hosts. Parameters: crawl, then lists of bucket, number, wake time, name,
    /// bytes.
    PutHosts = "INSERT INTO crawl_frontier.host (crawl, b, host, wake, name, politeness)
        SELECT $1::int, * FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[])
        ON CONFLICT (crawl, b, host) DO UPDATE
            SET wake = excluded.wake, politeness = excluded.politeness";
    /// Stores visits. Parameters: crawl, then a list for each column.
    PutVisits = "INSERT INTO crawl_frontier.visit (crawl, b, origin, fingerprint, made_at, due,
            distance, priority, redirects, flags, is_settled, via, kept)
        SELECT $1::int, * FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::int[], $8::smallint[], $9::smallint[], $10::smallint[], $11::bool[], $12::text[],
            $13::bytea[])
        ON CONFLICT (crawl, b, origin, fingerprint) DO UPDATE SET made_at = excluded.made_at,
            due = excluded.due, distance = excluded.distance, priority = excluded.priority,
            redirects = excluded.redirects, flags = excluded.flags,
            is_settled = excluded.is_settled, via = excluded.via, kept = excluded.kept";
    /// Removes visits. Parameters: crawl, then lists of bucket, origin, fingerprint.
    DropVisits = "DELETE FROM crawl_frontier.visit v
        USING unnest($2::int[], $3::bigint[], $4::bigint[]) AS k(b, origin, fingerprint)
        WHERE v.crawl = $1 AND v.b = k.b AND v.origin = k.origin AND v.fingerprint = k.fingerprint";
    /// Returns links found by other workers. Parameters: crawl, buckets, maximum number.
    Links = "SELECT b, sender, number, state, distance, priority, redirects, flags, code, line, via,
            note, url
        FROM crawl_frontier.link WHERE crawl = $1 AND b = ANY($2) ORDER BY b, sender, number
        LIMIT $3";
    /// Sends links to the owners of their hosts. Parameters: crawl, sender, then a list for each
    /// column.
    PutLinks = "INSERT INTO crawl_frontier.link (crawl, sender, b, number, distance, line, state,
            priority, redirects, flags, code, url, via, note)
        SELECT $1::int, $2::text, * FROM unnest($3::int[], $4::bigint[], $5::int[], $6::int[],
            $7::smallint[], $8::smallint[], $9::smallint[], $10::smallint[], $11::smallint[],
            $12::text[], $13::text[], $14::text[])
        ON CONFLICT DO NOTHING";
    /// Returns links to buckets that other server groups serve. Parameters: crawl, buckets, this
    /// group, maximum number. Each result row is for one other group, with its links as JSON, and
    /// lists of their buckets, senders and numbers.
    ForeignLinks = "SELECT home, json_agg(t)::text, array_agg(b), array_agg(sender),
            array_agg(number)
        FROM (SELECT l.*, k.home FROM crawl_frontier.link l
            JOIN crawl_frontier.bucket k ON k.crawl = l.crawl AND k.b = l.b
            WHERE l.crawl = $1 AND l.b = ANY($2::int[]) AND k.home <> $3
            ORDER BY l.b, l.sender, l.number LIMIT $4) t
        GROUP BY home";
    /// Inserts links from another server group. Parameters: crawl, links as JSON.
    ForwardLinks = "INSERT INTO crawl_frontier.link (crawl, sender, b, number, distance, line, state,
            priority, redirects, flags, code, url, via, note)
        SELECT $1::int, sender, b, number, distance, line, state, priority, redirects, flags, code,
            url, via, note
        FROM json_populate_recordset(null::crawl_frontier.link, $2::text::json)
        ON CONFLICT DO NOTHING";
    /// Removes admitted or forwarded links. Parameters: crawl, then lists of bucket, sender,
    /// number.
    TakeLinks = "DELETE FROM crawl_frontier.link l
        USING unnest($2::int[], $3::text[], $4::bigint[]) AS k(b, sender, number)
        WHERE l.crawl = $1 AND l.b = k.b AND l.sender = k.sender AND l.number = k.number";
    /// Returns buckets with URLs to be reopened, and the progress in each. Parameters: crawl,
    /// buckets, maximum number.
    BucketsToReopen = "SELECT b, worker, origin, fingerprint FROM crawl_frontier.bucket_to_reopen
        WHERE crawl = $1 AND b = ANY($2) ORDER BY b, worker LIMIT $3";
    /// Returns the URLs of a bucket that a worker settled, after a key. Parameters: crawl, bucket,
    /// the worker's number, origin, fingerprint, maximum number. Each URL has the queue place of
    /// its last lease, if that place is known.
    SettledBy = "SELECT u.b, u.origin, u.fingerprint, o.name, u.path, u.state, u.seq,
            coalesce(v.distance, u.distance), u.attempt, coalesce(v.priority, u.priority),
            coalesce(v.redirects, u.redirects), coalesce(v.flags, u.flags), u.code, u.line,
            coalesce(v.via, u.via), u.note
        FROM crawl_frontier.url u
        JOIN crawl_frontier.origin o ON o.crawl = u.crawl AND o.b = u.b AND o.origin = u.origin
        LEFT JOIN crawl_frontier.visit v ON v.crawl = u.crawl AND v.b = u.b
            AND v.origin = u.origin AND v.fingerprint = u.fingerprint
        WHERE u.crawl = $1 AND u.b = $2 AND u.settled_by = $3
            AND (u.origin, u.fingerprint) > ($4, $5)
        ORDER BY u.origin, u.fingerprint LIMIT $6";
    /// Stores the progress of reopening in buckets. Parameters: crawl, then lists of bucket,
    /// worker's number, origin, fingerprint.
    PutReopenProgress = "UPDATE crawl_frontier.bucket_to_reopen r
            SET origin = k.origin, fingerprint = k.fingerprint
        FROM unnest($2::int[], $3::int[], $4::bigint[], $5::bigint[])
            AS k(b, worker, origin, fingerprint)
        WHERE r.crawl = $1 AND r.b = k.b AND r.worker = k.worker";
    /// Removes completed buckets from the list of buckets to reopen. Parameters: crawl, then lists
    /// of bucket and worker's number.
    EndBucketsToReopen = "DELETE FROM crawl_frontier.bucket_to_reopen r
        USING unnest($2::int[], $3::int[]) AS k(b, worker)
        WHERE r.crawl = $1 AND r.b = k.b AND r.worker = k.worker";
    /// Stores lengths of files. Parameters: crawl, worker, then lists of file and length.
    PutMarks = "INSERT INTO crawl_frontier.row_file (crawl, worker, file, length)
        SELECT $1::int, $2::text, * FROM unnest($3::text[], $4::bigint[])
        ON CONFLICT (crawl, worker, file) DO UPDATE SET length = excluded.length";
    /// Stores values under names. Parameters: crawl, worker, then lists of name and bytes.
    PutMeta = "INSERT INTO crawl_frontier.meta (crawl, worker, name, value)
        SELECT $1::int, $2::text, * FROM unnest($3::text[], $4::bytea[])
        ON CONFLICT (crawl, worker, name) DO UPDATE SET value = excluded.value";

    /// Returns the values that other workers stored under a name. Parameters: crawl, this worker,
    /// name.
    OthersMeta = "SELECT value FROM crawl_frontier.meta
        WHERE crawl = $1 AND worker <> $2 AND worker <> '' AND name = $3";

    /// Surveys a server group in one query. Parameters: crawl, owner, the owner's buckets, the
    /// group, buckets that other groups serve. Returns:
    ///
    /// - the number of living workers that are not being drained;
    /// - the number of free buckets;
    /// - the number of pending URLs in all buckets except those of idle workers, and the number in
    ///   free buckets;
    /// - whether links or URLs to be reopened wait, or buckets are moving to another group;
    /// - whether links or URLs to be reopened wait for this worker;
    /// - whether this worker is being drained;
    /// - the number of values stored for the crawl;
    /// - the pages of all workers, the bytes of all other workers, and the commits of all workers;
    /// - the version of the map of buckets, and the number of groups;
    /// - this worker's buckets that have to move to another group;
    /// - whether links wait to be forwarded to other groups.
    Survey = "SELECT
            (SELECT count(*) FROM crawl_frontier.worker
                WHERE crawl = $1 AND lease_until > clock_timestamp() AND NOT drained),
            k.free, k.pending_open, k.pending_free,
            EXISTS (SELECT 1 FROM crawl_frontier.link WHERE crawl = $1)
                OR EXISTS (SELECT 1 FROM crawl_frontier.bucket_to_reopen WHERE crawl = $1)
                OR k.moves,
            EXISTS (SELECT 1 FROM crawl_frontier.link WHERE crawl = $1 AND b = ANY($3::int[]))
                OR EXISTS (SELECT 1 FROM crawl_frontier.bucket_to_reopen
                    WHERE crawl = $1 AND b = ANY($3::int[])),
            coalesce((SELECT bool_or(drained) FROM crawl_frontier.worker
                WHERE crawl = $1 AND owner = $2), false),
            (SELECT count(*) FROM crawl_frontier.meta WHERE crawl = $1 AND worker = ''),
            w.pages, w.others_bytes, w.commits, c.map, c.groups, k.moving,
            EXISTS (SELECT 1 FROM crawl_frontier.link WHERE crawl = $1 AND b = ANY($5::int[]))
        FROM (SELECT count(*) FILTER (WHERE lease_until <= clock_timestamp() AND home = $4
                    AND moving_to IS NULL) AS free,
                coalesce(sum(pending) FILTER (WHERE home = $4 AND NOT (lease_until > clock_timestamp()
                    AND owner = ANY(ARRAY(SELECT r.owner FROM crawl_frontier.worker r
                        WHERE r.crawl = $1 AND r.rests AND r.lease_until > clock_timestamp())))),
                    0)::bigint AS pending_open,
                coalesce(sum(pending) FILTER (WHERE home = $4
                    AND lease_until <= clock_timestamp()), 0)::bigint AS pending_free,
                coalesce(bool_or(home = $4 AND moving_to IS NOT NULL), false) AS moves,
                coalesce(array_agg(b) FILTER (WHERE moving_to IS NOT NULL AND owner = $2), '{}')
                    AS moving
            FROM crawl_frontier.bucket WHERE crawl = $1) k,
            (SELECT coalesce(sum(pages), 0)::bigint AS pages,
                coalesce(sum(bytes) FILTER (WHERE owner <> $2), 0)::bigint AS others_bytes,
                coalesce(sum(commits), 0)::bigint AS commits
            FROM crawl_frontier.worker WHERE crawl = $1) w,
            crawl_frontier.crawl c
        WHERE c.number = $1";
    /// Sets whether a worker is idle, and lowers the pages granted to it. Parameters: crawl, owner,
    /// idle, pages.
    Rest = "UPDATE crawl_frontier.worker
        SET rests = $3, allowed = least(allowed, coalesce($4::bigint, allowed))
        WHERE crawl = $1 AND owner = $2";
    /// Locks a crawl's row until the end of the transaction. Parameters: crawl.
    LockCrawl = "SELECT number FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE";
    /// Grants a worker some of the crawl's pages. Parameters: crawl, owner, the worker's pages,
    /// additional pages, pages allowed for the crawl. For a living worker, the pages granted to it
    /// are counted. For a dead worker, only the pages that it fetched are counted. Returns the
    /// total granted to this worker.
    Allow = "UPDATE crawl_frontier.worker w
        SET allowed = greatest(w.allowed, least($3::bigint + $4::bigint, $5::bigint - (
            SELECT coalesce(sum(CASE WHEN o.lease_until > clock_timestamp()
                THEN greatest(o.allowed, o.pages) ELSE o.pages END), 0)::bigint
            FROM crawl_frontier.worker o WHERE o.crawl = $1 AND o.owner <> $2)))
        WHERE w.crawl = $1 AND w.owner = $2 RETURNING w.allowed";
}

/// Statements for moving a crawl out of its database servers, which workers never prepare.
pub(crate) mod export {
    /// A query that reads the rows of a bucket part by part. Parameters: crawl, bucket, maximum
    /// number, and the last key of the previous part. The first columns of each row are its key.
    pub(crate) struct BucketPartQuery {
        pub(crate) table: &'static str,
        /// A query that returns the buckets of a server group that have rows in this table.
        /// Parameters: crawl, group.
        pub(crate) buckets: &'static str,
        /// The number of key columns.
        pub(crate) keys: usize,
        /// The number of rows read at a time.
        pub(crate) rows: i64,
        pub(crate) text: &'static str,
    }

    /// The number of rows read at a time.
    pub(crate) const ROWS: i64 = 2_000;
    /// The number of copies of robots.txt read at a time, which is lower because a copy may be
    /// large.
    const FEW_ROWS: i64 = 32;

    macro_rules! buckets_with {
        ($table:literal) => {
            concat!(
                "SELECT k.b FROM crawl_frontier.bucket k WHERE k.crawl = $1 AND k.home = $2
                    AND EXISTS (SELECT 1 FROM crawl_frontier.",
                $table,
                " t WHERE t.crawl = $1 AND t.b = k.b)
                ORDER BY k.b"
            )
        };
    }

    /// Pending URLs. The URLs of each origin are in queue order.
    pub(crate) const PENDING: BucketPartQuery = BucketPartQuery {
        table: "url",
        buckets: buckets_with!("url"),
        keys: 3,
        rows: ROWS,
        text: concat!(
            "SELECT u.origin, u.place, u.seq, o.name, u.path, ",
            record_columns!(),
            "
        FROM crawl_frontier.url u
        JOIN crawl_frontier.origin o ON o.crawl = u.crawl AND o.b = u.b AND o.origin = u.origin
        WHERE u.crawl = $1 AND u.b = $2 AND u.state = 0
            AND (u.origin, u.place, u.seq) > ($4, $5, $6)
        ORDER BY u.origin, u.place, u.seq LIMIT $3"
        ),
    };
    /// URLs that are not pending, in the order of their keys.
    pub(crate) const NOT_PENDING: BucketPartQuery = BucketPartQuery {
        table: "url",
        buckets: buckets_with!("url"),
        keys: 2,
        rows: ROWS,
        text: concat!(
            "SELECT u.origin, u.fingerprint, o.name, u.path, ",
            record_columns!(),
            "
        FROM crawl_frontier.url u
        JOIN crawl_frontier.origin o ON o.crawl = u.crawl AND o.b = u.b AND o.origin = u.origin
        WHERE u.crawl = $1 AND u.b = $2 AND u.state <> 0
            AND (u.origin, u.fingerprint) > ($4, $5)
        ORDER BY u.origin, u.fingerprint LIMIT $3"
        ),
    };
    /// States of hosts.
    pub(crate) const HOSTS: BucketPartQuery = BucketPartQuery {
        table: "host",
        buckets: buckets_with!("host"),
        keys: 1,
        rows: ROWS,
        text: "SELECT host, name, wake, politeness FROM crawl_frontier.host
            WHERE crawl = $1 AND b = $2 AND host > $4 ORDER BY host LIMIT $3",
    };
    /// Copies of robots.txt.
    pub(crate) const ROBOTS: BucketPartQuery = BucketPartQuery {
        table: "origin",
        buckets: buckets_with!("origin"),
        keys: 1,
        rows: FEW_ROWS,
        text: "SELECT origin, name, robots FROM crawl_frontier.origin
            WHERE crawl = $1 AND b = $2 AND robots IS NOT NULL AND origin > $4
            ORDER BY origin LIMIT $3",
    };
    /// The last visits of URLs.
    pub(crate) const VISITS: BucketPartQuery = BucketPartQuery {
        table: "visit",
        buckets: buckets_with!("visit"),
        keys: 2,
        rows: ROWS,
        text: visits!(
            "SELECT v.origin, v.fingerprint, ",
            "v.crawl = $1 AND v.b = $2 AND (v.origin, v.fingerprint) > ($4, $5)
            ORDER BY v.origin, v.fingerprint LIMIT $3"
        ),
    };
    /// Returns waiting links. Parameters: crawl, maximum number, and the key after which to read.
    pub(crate) const LINKS: &str = "SELECT b, sender, number, state, distance, priority, redirects,
            flags, code, line, via, note, url
        FROM crawl_frontier.link WHERE crawl = $1 AND (b, sender, number) > ($3, $4, $5)
        ORDER BY b, sender, number LIMIT $2";
    /// Counts the URLs in the buckets that a server group serves. Parameters: crawl, group.
    pub(crate) const TOTALS: &str = "SELECT coalesce(sum(pending), 0)::bigint,
            coalesce(sum(deferred), 0)::bigint, coalesce(sum(fetched), 0)::bigint,
            coalesce(sum(failed), 0)::bigint, coalesce(sum(excluded), 0)::bigint
        FROM crawl_frontier.bucket WHERE crawl = $1 AND home = $2";
    /// Returns the workers and their pages. Parameters: crawl.
    pub(crate) const WORKERS: &str = "SELECT name, pages FROM crawl_frontier.worker
        WHERE crawl = $1 ORDER BY name";
    /// Returns the committed lengths of a worker's files. Parameters: crawl, worker.
    pub(crate) const FILES: &str = "SELECT file, length FROM crawl_frontier.row_file
        WHERE crawl = $1 AND worker = $2";
    /// Returns the named values that a worker stored. Parameters: crawl, worker.
    pub(crate) const META: &str = "SELECT name, value FROM crawl_frontier.meta
        WHERE crawl = $1 AND worker = $2";
    /// Returns the living workers. Parameters: crawl.
    pub(crate) const LIVING: &str = "SELECT name FROM crawl_frontier.worker
        WHERE crawl = $1 AND lease_until > clock_timestamp() ORDER BY name";
    /// Returns numbers that show whether the crawl changed: each change makes at least one of these
    /// numbers different. Parameters: crawl.
    pub(crate) const FACTS: &str = "SELECT
            (SELECT coalesce(sum(commits), 0)::bigint FROM crawl_frontier.worker WHERE crawl = $1),
            workers::bigint, map,
            (SELECT count(*) FROM crawl_frontier.bucket WHERE crawl = $1 AND moving_to IS NOT NULL),
            (SELECT count(DISTINCT b) FROM crawl_frontier.bucket_to_reopen WHERE crawl = $1)
        FROM crawl_frontier.crawl WHERE number = $1";
    /// Locks a crawl and its workers until the end of the transaction. Parameters: crawl.
    pub(crate) const LOCKS: [&str; 2] = [
        "SELECT number FROM crawl_frontier.crawl WHERE number = $1 FOR UPDATE",
        "SELECT name FROM crawl_frontier.worker WHERE crawl = $1 ORDER BY name FOR UPDATE",
    ];
    /// Ends the ownership of all workers, so that no process can commit. Parameters: crawl.
    pub(crate) const END_LIVES: &str =
        "UPDATE crawl_frontier.worker SET owner = '' WHERE crawl = $1";
    /// Returns a value stored for the crawl. Parameters: crawl, name.
    pub(crate) const NOTED: &str = "SELECT value FROM crawl_frontier.meta
        WHERE crawl = $1 AND worker = '' AND name = $2";
    /// Stores a value for the crawl. Parameters: crawl, name, bytes.
    pub(crate) const NOTE: &str = "INSERT INTO crawl_frontier.meta (crawl, worker, name, value)
        VALUES ($1, '', $2, $3)";
    /// Removes a value stored for the crawl. Parameters: crawl, name, bytes.
    pub(crate) const REMOVE_NOTE: &str = "DELETE FROM crawl_frontier.meta
        WHERE crawl = $1 AND worker = '' AND name = $2 AND value = $3";
}
