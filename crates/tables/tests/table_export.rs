//! Exports a crawl with rows of all kinds, and reads the tables back.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test that panics fails the test"
)]

use std::fs::{self, File};
use std::path::Path;

use crawl_records::RoundSelection;
use crawl_tables::{TableFormat, WrittenTable, export};
use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Names and types of Common Crawl's columns, from `cc-index-schema-flat.json` in its repository
/// cc-index-table, as of July 2026.
const COMMON_CRAWL: [(&str, &str); 33] = [
    ("url_surtkey", "string"),
    ("url", "string"),
    ("url_host_name", "string"),
    ("url_host_tld", "string"),
    ("url_host_2nd_last_part", "string"),
    ("url_host_3rd_last_part", "string"),
    ("url_host_4th_last_part", "string"),
    ("url_host_5th_last_part", "string"),
    ("url_host_registry_suffix", "string"),
    ("url_host_registered_domain", "string"),
    ("url_host_private_suffix", "string"),
    ("url_host_private_domain", "string"),
    ("url_host_name_reversed", "string"),
    ("url_protocol", "string"),
    ("url_port", "integer"),
    ("url_path", "string"),
    ("url_query", "string"),
    ("fetch_time", "timestamp"),
    ("fetch_status", "short"),
    ("fetch_redirect", "string"),
    ("content_digest", "string"),
    ("content_mime_type", "string"),
    ("content_mime_detected", "string"),
    ("content_charset", "string"),
    ("content_languages", "string"),
    ("content_truncated", "string"),
    ("warc_record_id", "binary"),
    ("warc_filename", "string"),
    ("warc_record_offset", "integer"),
    ("warc_record_length", "integer"),
    ("warc_segment", "string"),
    ("crawl", "string"),
    ("subset", "string"),
];

fn page(url: &str) -> Value {
    json!({"url": url, "status": 200, "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 12,
        "bytes": 3, "content_type": null, "digest": null, "depth": 1, "via": null, "title": null,
        "robots": null, "warc": null, "error": null})
}

fn with(mut row: Value, more: Value) -> Value {
    let Value::Object(more) = more else {
        return row;
    };
    row.as_object_mut().unwrap().extend(more);
    row
}

fn rows(dir: &Path, file: &str, rows: &[Value], tail: &str) {
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(dir.join(file), rows + tail).unwrap();
}

/// Makes a crawl with values that are hard to represent: quotes, line breaks, nulls, and numbers
/// that are too large for their column.
fn crawl() -> TempDir {
    let dir = tempfile::Builder::new()
        .prefix("crawl-of-")
        .tempdir()
        .unwrap();
    let path = dir.path();
    fs::write(path.join("crawl.toml"), "seed = [\"http://e.example/\"]\n").unwrap();
    let whole = with(
        page("https://www.example.co.uk:8443/a/B?q=\u{fc}&r"),
        json!({"content_type": " Text/HTML ; charset=utf-8", "digest": "sha1:ABC", "title": "a, \"b\"\r\nc",
            "robots": {"verdict": "allowed", "line": 3, "rule": "Allow: /"}, "via": "http://e.example/",
            "usage": {"search": null, "ai-input": null, "train-ai": "refused", "archive": null,
                "said": [{"vocabulary": "content-usage", "channel": "robots", "line": 4, "raw": "train-ai=n"}]},
            "warc": {"file": "a.warc.gz", "offset": 700}}),
    );
    let pages = [
        whole,
        with(
            page("http://e.example/gone"),
            json!({"status": 404, "title": "=1+1", "via": "", "sample": {"how": "drawn",
                "stratum": "e.example", "drawn": 5, "of": 20, "probability": 0.25}}),
        ),
        with(
            page("http://[::1]:81/"),
            json!({"status": null, "error": "timeout"}),
        ),
        with(
            page("no url"),
            json!({"status": 40_000, "bytes": u64::MAX, "error": "body_truncated"}),
        ),
    ];
    rows(path, "pages.jsonl", &pages, "{\"torn");
    let request = json!({"url": "http://e.example/robots.txt", "host": "e.example", "address": null,
        "purpose": "robots", "start": 1_000, "end": 1_250, "status": 404, "failure": null,
        "gap_asked": 0, "why": "delay", "wait_asked": null});
    rows(path, "requests.jsonl", &[request], "");
    let excluded = json!({"url": "http://e.example/p", "reason": "robots", "rule": "Disallow: /p",
        "line": 2, "found_on": null});
    rows(
        path,
        "excluded.jsonl",
        &[excluded, json!({"no": "row"})],
        "",
    );
    let link =
        json!({"from": "http://e.example/", "to": "http://f.example/", "rel": null, "text": "f"});
    rows(path, "links.jsonl", &[link], "");
    let step = json!({"walker": 1, "step": 2, "how": "link", "why": null,
        "url": "http://e.example/p", "from": "http://e.example/", "links": 3});
    rows(path, "walk.jsonl", &[step], "");
    fs::create_dir(path.join("archive")).unwrap();
    let capture = "uk,co,example)/ 20261120235959 {\"url\": \"x\", \"length\": \"55\", \"offset\": \"700\", \
                   \"filename\": \"a.warc.gz\"}\n";
    fs::write(path.join("archive/captures.cdxj"), capture).unwrap();
    dir
}

fn exported(dir: &Path, format: TableFormat) -> (TempDir, Vec<WrittenTable>) {
    let out = tempfile::tempdir().unwrap();
    let written = export(dir, out.path(), format, RoundSelection::All).unwrap();
    (out, written)
}

fn reader(out: &TempDir, table: &str) -> SerializedFileReader<File> {
    let file = File::open(out.path().join(format!("{table}.parquet"))).unwrap();
    SerializedFileReader::new(file).unwrap()
}

/// Returns the rows of a Parquet table. Each value is formatted as in CSV, but without quotes. Null
/// becomes `None`.
fn parquet_cells(out: &TempDir, table: &str) -> Vec<Vec<Option<String>>> {
    let cell = |field: &Field| match field {
        Field::Null => None,
        Field::Str(text) => Some(text.clone()),
        Field::Short(number) => Some(number.to_string()),
        Field::Int(number) => Some(number.to_string()),
        Field::Long(number) => Some(number.to_string()),
        Field::TimestampMillis(ms) => {
            let micros = u64::try_from(*ms).unwrap() * 1000;
            Some(crawl_archive::Timestamp::from_micros(micros).rfc3339_millis())
        }
        other => panic!("{other:?}"),
    };
    let reader = reader(out, table);
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| {
        let row = row.unwrap();
        row.get_column_iter()
            .map(|(_, field)| cell(field))
            .collect()
    })
    .collect()
}

/// Returns the header and the rows of a CSV table. An empty cell without quotes counts as null.
fn csv_cells(out: &TempDir, table: &str) -> (Vec<String>, Vec<Vec<Option<String>>>) {
    let text = fs::read_to_string(out.path().join(format!("{table}.csv"))).unwrap();
    let mut rows = vec![Vec::new()];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (cell, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut end = quoted.find('"').unwrap();
                while quoted[end + 1..].starts_with('"') {
                    end += 2 + quoted[end + 2..].find('"').unwrap();
                }
                (
                    Some(quoted[..end].replace("\"\"", "\"")),
                    &quoted[end + 1..],
                )
            }
            None => {
                let end = rest.find([',', '\r']).unwrap();
                ((end > 0).then(|| rest[..end].to_owned()), &rest[end..])
            }
        };
        rows.last_mut().unwrap().push(cell);
        rest = match behind.strip_prefix(',') {
            Some(behind) => behind,
            None => {
                rows.push(Vec::new());
                behind.strip_prefix("\r\n").unwrap()
            }
        };
    }
    assert_eq!(rows.pop(), Some(Vec::new()));
    let header = rows.remove(0).into_iter().map(Option::unwrap).collect();
    (header, rows)
}

/// Returns the cells of the row of `pages` with this URL, by column name.
fn page_cells(dir: &Path, url: &str) -> Value {
    let (out, _) = exported(dir, TableFormat::Csv);
    let (header, rows) = csv_cells(&out, "pages");
    let row = rows
        .into_iter()
        .find(|row| row[1].as_deref() == Some(url))
        .unwrap();
    let cells = header
        .into_iter()
        .zip(row)
        .filter_map(|(name, cell)| Some((name, json!(cell?))));
    Value::Object(cells.collect())
}

#[test]
fn the_first_columns_have_common_crawls_names_and_types() {
    let dir = crawl();
    let (out, _) = exported(dir.path(), TableFormat::Parquet);
    let reader = reader(&out, "pages");
    let schema = reader.metadata().file_metadata().schema_descr();
    let names_and_types: Vec<(String, &str)> = schema.columns()[..COMMON_CRAWL.len()]
        .iter()
        .map(|column| {
            let kind = match (
                column.physical_type().to_string().as_str(),
                column.logical_type_ref(),
            ) {
                ("BYTE_ARRAY", Some(LogicalType::String)) => "string",
                ("BYTE_ARRAY", None) => "binary",
                ("INT32", None) => "integer",
                ("INT32", Some(LogicalType::Integer(int))) if int.bit_width == 16 => "short",
                ("INT64", Some(LogicalType::Timestamp(_))) => "timestamp",
                _ => "another",
            };
            (column.name().to_owned(), kind)
        })
        .collect();
    assert_eq!(
        names_and_types,
        COMMON_CRAWL.map(|(name, kind)| (name.to_owned(), kind))
    );
}

#[test]
fn csv_and_parquet_hold_the_same() {
    let dir = crawl();
    let (parquet, written) = exported(dir.path(), TableFormat::Parquet);
    let (csv, written_csv) = exported(dir.path(), TableFormat::Csv);
    assert_eq!(written, written_csv);
    let names: Vec<&str> = written.iter().map(|table| table.name).collect();
    assert_eq!(
        names,
        [
            "pages", "links", "walk", "hosts", "requests", "excluded", "robots"
        ]
    );
    for table in &written {
        let (header, mut in_csv) = csv_cells(&csv, table.name);
        let reader = reader(&parquet, table.name);
        let schema = reader.metadata().file_metadata().schema_descr();
        let columns: Vec<&str> = schema
            .columns()
            .iter()
            .map(|column| column.name())
            .collect();
        assert_eq!(header, columns, "{}", table.name);
        in_csv.sort_by_key(|row| {
            if table.name == "pages" {
                row[0].clone()
            } else {
                None
            }
        });
        assert_eq!(
            parquet_cells(&parquet, table.name),
            in_csv,
            "{}",
            table.name
        );
        assert_eq!(in_csv.len() as u64, table.rows);
        assert!(table.rows > 0, "{}", table.name);
    }
    let defects: Vec<_> = written
        .iter()
        .map(|table| (table.read.bad_lines, table.read.is_torn))
        .collect();
    assert_eq!(defects[0], (0, true));
    assert_eq!(defects[5], (1, false));
}

#[test]
fn a_page_has_the_facts_of_its_row_and_record() {
    let dir = crawl();
    let name = dir.path().file_name().unwrap().to_str().unwrap();
    let cells = page_cells(dir.path(), "https://www.example.co.uk:8443/a/B?q=\u{fc}&r");
    assert_eq!(
        cells,
        json!({
            "url_surtkey": "uk,co,example:8443)/a/b?q=%c3%bc&r",
            "url": "https://www.example.co.uk:8443/a/B?q=\u{fc}&r",
            "url_host_name": "www.example.co.uk", "url_host_tld": "uk",
            "url_host_2nd_last_part": "co", "url_host_3rd_last_part": "example",
            "url_host_4th_last_part": "www", "url_host_registry_suffix": "co.uk",
            "url_host_registered_domain": "example.co.uk", "url_host_private_suffix": "co.uk",
            "url_host_private_domain": "example.co.uk",
            "url_host_name_reversed": "uk.co.example.www", "url_protocol": "https",
            "url_port": "8443", "url_path": "/a/B", "url_query": "q=%C3%BC&r",
            "fetch_time": "2026-11-20T23:59:59.123Z", "fetch_status": "200",
            "content_digest": "ABC", "content_mime_type": "text/html",
            "warc_filename": "archive/a.warc.gz", "warc_record_offset": "700",
            "warc_record_length": "55", "crawl": name, "subset": "warc",
            "host": "www.example.co.uk", "outcome": "ok", "ms": "12", "bytes": "3",
            "content_type": " Text/HTML ; charset=utf-8", "title": "a, \"b\"\r\nc", "depth": "1",
            "hops_off_scope": "0", "via": "http://e.example/", "robots_verdict": "allowed", "robots_rule": "Allow: /",
            "robots_line": "3", "usage_train_ai": "refused",
            "usage_said": r#"[{"vocabulary":"content-usage","channel":"robots","line":4,"raw":"train-ai=n"}]"#,
            "round": "1",
        })
    );
}

#[test]
fn unknown_values_are_null() {
    let dir = crawl();
    let address = page_cells(dir.path(), "http://[::1]:81/");
    assert_eq!(address["url_host_name"], "[::1]");
    for column in [
        "url_host_tld",
        "url_host_name_reversed",
        "url_host_private_suffix",
        "subset",
    ] {
        assert_eq!(address[column], Value::Null, "{column}");
    }
    assert_eq!(address["outcome"], "no_answer");
    let none = page_cells(dir.path(), "no url");
    for column in [
        "url_surtkey",
        "url_path",
        "host",
        "fetch_status",
        "bytes",
        "warc_filename",
    ] {
        assert_eq!(none[column], Value::Null, "{column}");
    }
    assert_eq!(none["content_truncated"], "length");
    let failed_page = page_cells(dir.path(), "http://e.example/gone");
    assert_eq!(
        (&failed_page["subset"], &failed_page["title"]),
        (&json!("crawldiagnostics"), &json!("=1+1"))
    );
    assert_eq!(failed_page["via"], "");
    let sample =
        ["how", "stratum", "drawn", "of"].map(|name| &failed_page[format!("sample_{name}")]);
    assert_eq!(
        sample,
        [
            &json!("drawn"),
            &json!("e.example"),
            &json!("5"),
            &json!("20")
        ]
    );
}

#[test]
fn pages_are_sorted_compressed_and_described() {
    let dir = crawl();
    let (out, _) = exported(dir.path(), TableFormat::Parquet);
    let keys: Vec<_> = parquet_cells(&out, "pages")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let reader = reader(&out, "pages");
    let about = reader
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .unwrap();
    let description = about
        .iter()
        .find(|about| about.key == "crawl.description")
        .unwrap();
    let description: Value = serde_json::from_str(description.value.as_ref().unwrap()).unwrap();
    assert_eq!(description["columns"][17]["name"], "fetch_time");
    assert_eq!(description["columns"][17]["unit"], "UTC, ms");
    let group = reader.metadata().row_group(0);
    assert_eq!(group.sorting_columns().unwrap()[0].column_idx, 0);
    assert!(
        group
            .column(0)
            .compression()
            .to_string()
            .starts_with("ZSTD")
    );
    let statistics = group.column(0).statistics().unwrap();
    assert_eq!(
        statistics.max_bytes_opt(),
        Some(keys.last().unwrap().as_ref().unwrap().as_bytes())
    );
}

#[test]
fn without_links_there_is_no_table_of_them() {
    let dir = crawl();
    fs::remove_file(dir.path().join("links.jsonl")).unwrap();
    let (out, written) = exported(dir.path(), TableFormat::Csv);
    assert!(written.iter().all(|table| table.name != "links"));
    assert!(!out.path().join("links.csv").exists());
}

#[test]
fn a_folder_without_a_crawl_is_refused() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let refused = export(
        dir.path(),
        out.path(),
        TableFormat::Csv,
        RoundSelection::All,
    )
    .unwrap_err()
    .to_string();
    assert!(refused.contains("no crawl in `"), "{refused}");
}

#[test]
fn hosts_have_the_coverage_verdict_by_the_last_row_of_each_url() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("crawl.toml"),
        "seed = [\"http://e.example/\"]\n",
    )
    .unwrap();
    let row = |url: &str, status: u16, round: u32| {
        with(page(url), json!({"status": status, "round": round}))
    };
    let pages = [
        row("http://e.example/a", 500, 1),
        row("http://e.example/b", 200, 1),
        row("http://f.example/", 200, 1),
        row("http://f.example/", 403, 2),
        row("http://g.example/", 503, 2),
        row("http://e.example/a", 200, 2),
    ];
    rows(dir.path(), "pages.jsonl", &pages, "");
    let end = json!({"origin": null, "urls": 0, "reason": "finished", "detail": null});
    rows(dir.path(), "waiting.jsonl", &[end], "");
    // An exclusion counts only until a later round fetches the URL.
    let excluded = json!({"url": "http://e.example/b", "reason": "budget", "rule": "max-pages",
        "line": null, "found_on": null, "round": 1});
    let revisited = row("http://e.example/b", 200, 2);
    rows(
        dir.path(),
        "pages.jsonl",
        &[&pages[..], &[revisited]].concat(),
        "",
    );
    rows(dir.path(), "excluded.jsonl", &[excluded], "");
    let (out, _) = exported(dir.path(), TableFormat::Csv);
    let (header, hosts) = csv_cells(&out, "hosts");
    let place = |name: &str| header.iter().position(|column| column == name).unwrap();
    let coverage: Vec<_> = hosts
        .iter()
        .map(|host| {
            ["host", "coverage", "missing", "missing_by"]
                .map(|name| host[place(name)].clone().unwrap())
                .join(" ")
        })
        .collect();
    let missing = |reason: &str, status: u16| {
        format!("1 [{{\"reason\":\"{reason}\",\"urls\":1,\"evidence\":{{\"{status}\":1}}}}]")
    };
    let expected = [
        "e.example whole 0 []".to_owned(),
        format!("f.example blocked {}", missing("refused", 403)),
        format!("g.example empty {}", missing("errors", 503)),
    ];
    assert_eq!(coverage, expected);
}
