//! Checks that `docs/tables.md` matches the definitions of the tables.

use std::fmt::Write as _;

use expect_test::expect_file;

use crate::pages::PAGES;
use crate::row_tables::{EXCLUDED, HOSTS, LINKS, REQUESTS, ROBOTS, WALK};
use crate::table::{About, Kind, Table};

const HEAD: &str = "\
# Tables

For anyone who studies a crawl with DuckDB, pandas, polars, R or a spreadsheet.

```console
$ crawl export crawl-example.org --to parquet --out tables
$ duckdb -c \"SELECT outcome, count(*), sum(bytes) FROM 'tables/pages.parquet' GROUP BY outcome\"
$ crawl export crawl-example.org --to csv --out tables-csv
```

`FOLDER` of `--out` gets a file for each table. It appears whole or not at all, and must not exist before, or be empty.
Of a crawl that runs, the tables have the rows that were written by then.

- **`source`** of a column is the column or key that it is from: of the row file where the table is one of rows, of
  `crawl report --json` where it is one of sums. So sums over the tables equal the report.
- **Null** is what is not known. Nothing is guessed: of Common Crawl's columns some are always null here.
- **Rounds**: `pages`, `links` and `excluded` contain the last visit to each URL, its links, and exclusions still in
  force. `--round N` ignores visits after round N, and `--round all` keeps every visit. The other tables always cover
  all rounds.
- **Rows keep the order** of their file, but in Parquet `pages` is sorted by `url_surtkey` within each row group. A
  crawl of some 80,000 pages is one row group.
- **Bad lines** are left out, counted and told.

## Types

| type | in Parquet | in CSV |
|---|---|---|
| text | `BYTE_ARRAY`, string | UTF-8 |
| bytes | `BYTE_ARRAY` | hexadecimal digits |
| 16 bits, 32 bits, 64 bits | `INT32` (16 bits, signed), `INT32`, `INT64` | decimal digits |
| time | `INT64`, milliseconds, UTC | RFC 3339: `2026-11-20T23:59:59.123Z` |

Parquet is compressed by zstd, has statistics of each column chunk and page, and row groups of at most 122,880 rows and
48 MiB. The text of this page about the columns stands in the metadata of each file, under the key `crawl.description`.
CSV is that of RFC 4180: a header, commas, CR LF, quotes where they have to be. A null is an empty cell, an
empty text is `\"\"`.

**A spreadsheet may take a cell for a formula**: one that begins with `=`, `+`, `-` or `@`. Titles, link texts and rules
are a server's words. They stand in CSV as they are, so that tables hold what was said. Import such columns as text, or
open the Parquet files.

## Common Crawl's queries

`pages` has each column of
[Common Crawl's columnar index](https://github.com/commoncrawl/cc-index-table) (`cc-index-schema-flat.json`), under the
same name and type, so its queries run unchanged on a view:

```sql
CREATE SCHEMA ccindex;
CREATE VIEW ccindex.ccindex AS SELECT * FROM 'tables/pages.parquet';
SELECT COUNT(*) AS n_pages, url_host_tld AS tld, COUNT(DISTINCT url_host_name) AS n_hosts
FROM \"ccindex\".\"ccindex\" WHERE crawl = 'crawl-example.org' AND subset = 'warc' GROUP BY url_host_tld;
```

`crawl` is the name of the crawl's directory here, and robots.txt files (`subset = 'robotstxt'`) are no pages: see
`requests` and `robots`. There are rows for failures too, with a null for `fetch_status` and `subset`.

Common Crawl's files are sorted by `url_surtkey` as a whole, ours in each row group alone. No query gives another result
for that. One for a single host or domain reads the columns that it names in all row groups, though, where it could pass
over most of a sorted file. Sort once where you ask so often:

```sql
COPY (SELECT * FROM 'tables/pages.parquet' ORDER BY url_surtkey) TO 'sorted.parquet' (COMPRESSION zstd);
```

This page is written by `UPDATE_EXPECT=1 cargo test -p crawl-tables docs_page`.
";

#[test]
fn the_documentation_has_every_column_with_type_unit_meaning_and_source() {
    let mut page = HEAD.to_owned();
    push(&PAGES, &mut page);
    push(&LINKS, &mut page);
    push(&WALK, &mut page);
    push(&HOSTS, &mut page);
    push(&REQUESTS, &mut page);
    push(&EXCLUDED, &mut page);
    push(&ROBOTS, &mut page);
    expect_file!["../../../docs/tables.md"].assert_eq(&page);
}

fn push<R>(table: &Table<R>, page: &mut String) {
    let row = wrapped(&format!("A row is {}.", table.row), "");
    let _ = writeln!(page, "\n## {}\n\n{row}", table.name);
    for (heading, columns) in table.parts {
        if !heading.is_empty() {
            let _ = writeln!(page, "\n### {heading}");
        }
        page.push('\n');
        for column in *columns {
            let _ = writeln!(page, "{}", item(&column.about));
        }
    }
}

fn item(about: &About) -> String {
    let kind = match about.kind {
        Kind::Text => "text",
        Kind::Bytes => "bytes",
        Kind::Short => "16 bits",
        Kind::Integer => "32 bits",
        Kind::Long => "64 bits",
        Kind::Time => "time",
    };
    let About {
        name,
        unit,
        meaning,
        source,
        ..
    } = about;
    wrapped(
        &format!("- `{name}` ({kind}; {unit}): {meaning}. *source: {source}*"),
        "  ",
    )
}

fn wrapped(text: &str, indent: &str) -> String {
    let width = textwrap::Options::new(120)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, width)
}
