//! The tables whose rows a bucket consists of, and the statements that copy and remove them.

/// A table of rows of buckets.
pub(super) struct CopiedTable {
    pub(super) name: &'static str,
    /// The columns behind (crawl, b) that tell its rows apart, in the order of the key.
    keys: &'static [&'static str],
    /// All columns but that of the crawl, which has another number in each group.
    columns: &'static str,
}

/// Links are not among them: they are sent on, as those that come later.
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
    /// Reads a part as JSON, the number of its rows, and the key of the last: crawl, bucket, the key
    /// before, how many rows.
    pub(super) fn read(&self) -> String {
        let (name, columns) = (self.name, self.columns);
        let keys = self.keys.join(", ");
        let (first, last) = (self.keys[0], self.keys[self.keys.len() - 1]);
        let behind = match self.keys.len() {
            // A row of one column would not be found by the index.
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

    /// Puts a part, while the bucket's row is claimed: crawl, bucket, group, claim, the part.
    pub(super) fn put(&self) -> String {
        let (name, columns, claimed) = (self.name, self.columns, CLAIMED);
        format!(
            "{claimed} INSERT INTO crawl_frontier.{name} (crawl, {columns})
            SELECT $1, {columns} FROM json_populate_recordset(null::crawl_frontier.{name},
                $5::text::json)
            WHERE EXISTS (SELECT 1 FROM claimed)"
        )
    }

    /// Removes some rows, while the bucket's row is claimed: crawl, bucket, group, claim, how many.
    pub(super) fn remove(&self) -> String {
        let (name, claimed) = (self.name, CLAIMED);
        format!(
            "{claimed} DELETE FROM crawl_frontier.{name}
            WHERE EXISTS (SELECT 1 FROM claimed) AND ctid = ANY(ARRAY(
                SELECT ctid FROM crawl_frontier.{name} WHERE crawl = $1 AND b = $2 LIMIT $5))"
        )
    }
}

/// Locks the row of a bucket that another group serves, where it is claimed.
const CLAIMED: &str = "WITH claimed AS (SELECT 1 FROM crawl_frontier.bucket
        WHERE crawl = $1 AND b = $2 AND home <> $3 AND owner = $4 FOR UPDATE)";
