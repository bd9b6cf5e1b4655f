//! The tables that contain a bucket's rows, and the statements that copy and remove these rows.

/// A table whose rows are copied when a bucket moves: its name, key and columns.
pub(super) struct CopiedTable {
    pub(super) name: &'static str,
    /// The columns of the key in order, without `crawl` and `b`.
    keys: &'static [&'static str],
    /// All columns except the crawl's number, which differs between server groups.
    columns: &'static str,
}

/// The tables whose rows are copied. The table of links is not copied, because its links are
/// forwarded, like links that arrive later.
pub(super) const COPIED: [CopiedTable; 5] = [
    CopiedTable {
        name: "url",
        keys: &["origin", "fingerprint"],
        columns: "origin, fingerprint, place, seq, b, distance, attempt, line, settled_by, state, \
                  priority, redirects, flags, code, path, via, note",
    },
    CopiedTable {
        name: "visit",
        keys: &["origin", "fingerprint"],
        columns: "origin, fingerprint, made_at, due, b, distance, priority, redirects, flags, \
                  is_settled, via, kept",
    },
    CopiedTable {
        name: "origin",
        keys: &["origin"],
        columns: "origin, pending, b, name, robots",
    },
    CopiedTable {
        name: "host",
        keys: &["host"],
        columns: "host, wake, b, name, politeness",
    },
    CopiedTable {
        name: "bucket_to_reopen",
        keys: &["worker"],
        columns: "origin, fingerprint, b, worker",
    },
];

impl CopiedTable {
    /// Returns the statement that reads a part of the rows. Parameters: crawl, bucket, the two
    /// numbers of the previous key, maximum number of rows. The result has the rows as JSON, their
    /// number, and the last key.
    pub(super) fn read(&self) -> String {
        let (name, columns) = (self.name, self.columns);
        let keys = self.keys.join(", ");
        let (first, last) = (self.keys[0], self.keys[self.keys.len() - 1]);
        let behind = match self.keys.len() {
            // A key of one column is compared directly. A row comparison with a single column would
            // not use the index.
            1 => format!("{first} > $3::bigint AND $4::bigint IS NOT NULL"),
            _ => format!("({keys}) > ($3::bigint, $4::bigint)"),
        };
        format!(
            "SELECT coalesce(json_agg(t)::text, '[]'), count(*),
                (array_agg(t.{first}::bigint))[count(*)], (array_agg(t.{last}::bigint))[count(*)]
            FROM (SELECT {columns} FROM crawl_frontier.{name}
                WHERE crawl = $1 AND b = $2 AND {behind} ORDER BY {keys} LIMIT $5) t"
        )
    }

    /// Returns the statement that inserts some of the rows, if the mover has claimed the bucket's
    /// row. Parameters: crawl, bucket, group, the mover's id, the rows as JSON.
    pub(super) fn put(&self) -> String {
        let (name, columns, claimed) = (self.name, self.columns, CLAIMED);
        format!(
            "{claimed} INSERT INTO crawl_frontier.{name} (crawl, {columns})
            SELECT $1, {columns} FROM json_populate_recordset(null::crawl_frontier.{name},
                $5::text::json)
            WHERE EXISTS (SELECT 1 FROM claimed)"
        )
    }

    /// Returns the statement that removes some of the rows, if the mover has claimed the bucket's
    /// row. Parameters: crawl, bucket, group, the mover's id, maximum number of rows.
    pub(super) fn remove(&self) -> String {
        let (name, claimed) = (self.name, CLAIMED);
        format!(
            "{claimed} DELETE FROM crawl_frontier.{name}
            WHERE EXISTS (SELECT 1 FROM claimed) AND ctid = ANY(ARRAY(
                SELECT ctid FROM crawl_frontier.{name} WHERE crawl = $1 AND b = $2 LIMIT $5))"
        )
    }
}

/// Locks the row of a bucket, if another server group serves the bucket and the mover has claimed
/// the row. Parameters 1 to 4: crawl, bucket, group, the mover's id.
const CLAIMED: &str = "WITH claimed AS (SELECT 1 FROM crawl_frontier.bucket
        WHERE crawl = $1 AND b = $2 AND home <> $3 AND owner = $4 FOR UPDATE)";
