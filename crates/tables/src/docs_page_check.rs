//! Checks that `docs/tables.md` matches the definitions of the tables.

use std::fmt::Write as _;

use expect_test::expect_file;

use crate::non_page_tables::{EXCLUDED, HOSTS, LINKS, REQUESTS, ROBOTS, WALK};
use crate::pages_table::PAGES;
use crate::table_definition::{ColumnDescription, ColumnKind, TableDefinition};

const HEAD: &str = "\
# Tables

For anyone who studies a crawl with DuckDB, pandas, polars, R or a spreadsheet.

```console
$ crawl export crawl-example.org --to parquet --out tables
$ duckdb -c \"SELECT outcome, count(*), sum(bytes) FROM 'tables/pages.parquet' GROUP BY outcome\"
$ crawl export crawl-example.org --to csv --out tables-csv
```

`--out FOLDER` gets a file for each table. The folder must be new or empty. Its files appear all at once, when the
export is complete. For a running crawl the tables contain the rows written so far.

- **`source`** names the key that a column comes from: a key of the row file, or of `crawl report --json` for a table
  of totals. Totals over the tables equal those of the report.
- **Null** means unknown. Nothing is guessed, so some of Common Crawl's columns are always null.
- **Rounds**: `pages`, `links` and `excluded` contain the last visit to each URL, its links, and exclusions still in
  force. `--round N` ignores visits after round N, and `--round all` keeps every visit. The other tables always cover
  all rounds.
- **Row order** is that of the row file, except that Parquet `pages` is sorted by `url_surtkey` within each row group.
  A row group usually holds about 80,000 pages, because these fill its 48 MiB.
- **Bad lines** are skipped, and their number is reported.

## Types

| type | in Parquet | in CSV |
|---|---|---|
| text | `BYTE_ARRAY`, string | UTF-8 |
| bytes | `BYTE_ARRAY` | hexadecimal digits |
| 16 bits, 32 bits, 64 bits | `INT32` (16 bits, signed), `INT32`, `INT64` | decimal digits |
| time | `INT64`, milliseconds, UTC | RFC 3339: `2026-11-20T23:59:59.123Z` |

Parquet files are compressed with zstd, and have statistics for each column chunk and page. A row group has at most
122,880 rows and 48 MiB. The metadata of each file contains the column descriptions of this page, under the key
`crawl.description`. CSV follows RFC 4180: a header, commas, CR LF, and quotes where needed. A null is an empty cell, an
empty text is `\"\"`.

**Spreadsheets may run cells as formulas** if they start with `=`, `+`, `-` or `@`. Titles, link texts and rules come
from servers, and CSV contains them unchanged. Import such columns as text, or open the Parquet files.

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

Here `crawl` is the name of the crawl's directory. robots.txt files (`subset = 'robotstxt'`) are not in `pages`: see
`requests` and `robots`. Failures have rows too, with null for `fetch_status` and `subset`.

Common Crawl sorts whole files by `url_surtkey`, but we sort only within each row group. Query results are the same, but
a query for a single host or domain has to read all row groups instead of skipping most of them. If you run such queries
often, sort the file once:

```sql
COPY (SELECT * FROM 'tables/pages.parquet' ORDER BY url_surtkey) TO 'sorted.parquet' (COMPRESSION zstd);
```
";

const END: &str = "\n\
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
    page.push_str(END);
    expect_file!["../../../docs/tables.md"].assert_eq(&page);
}

fn push<R>(table: &TableDefinition<R>, page: &mut String) {
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

fn item(about: &ColumnDescription) -> String {
    let kind = match about.kind {
        ColumnKind::Text => "text",
        ColumnKind::Bytes => "bytes",
        ColumnKind::Short => "16 bits",
        ColumnKind::Integer => "32 bits",
        ColumnKind::Long => "64 bits",
        ColumnKind::Time => "time",
    };
    let ColumnDescription {
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
