//! Crawls whose log lost rows in a power failure.

use std::fs;

use super::crawl_directory_fixture::{More, Sent, page, robots, write};
use super::{BARS_P, audit};

/// After a power failure, the log has zeros in place of a robots.txt row. The lost robots.txt may
/// have allowed the pages after it, so these pages are not breaches.
#[test]
fn malformed_lines_are_counted_and_cause_no_breach() {
    let dir = tempfile::tempdir().unwrap();
    let sent = [
        robots((0, 100), 404, ""),
        page((1100, 1200), "/"),
        robots((2200, 2300), 200, BARS_P),
        robots((3300, 3400), 404, ""),
        page((4400, 4500), "/"),
        page((5500, 5600), "/p"),
        page((5700, 5800), "/q"),
    ];
    write(dir.path(), &sent, &More::default());
    let path = dir.path().join("requests.jsonl");
    let whole = fs::read(&path).unwrap();
    let ends: Vec<_> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    let check = |zeros: std::ops::Range<usize>, undecided: u64| {
        let mut bytes = whole.clone();
        bytes[zeros].fill(0);
        fs::write(&path, &bytes).unwrap();
        let audit = audit(dir.path(), &[]).unwrap();
        let rules: Vec<_> = audit.by_rule.keys().map(String::as_str).collect();
        // The last two requests are too close together. This is a breach whatever rows are lost
        // before them.
        assert_eq!(rules, ["gap"]);
        assert_eq!(audit.flaws, ["one line of `requests.jsonl` can't be read"]);
        let undecided_rows = audit
            .undecided
            .get(crate::audit::audit_findings::ROW_LOST)
            .copied();
        assert_eq!(undecided_rows.unwrap_or(0), undecided);
    };
    // If only the row of a page is lost, no check is undecided.
    check(ends[3] + 5..ends[3] + 40, 0);
    check(ends[0] + 5..ends[0] + 40, 0);
    // Destroy the row with the robots.txt response that allows `/p`.
    check(ends[2] + 5..ends[2] + 40, 1);
    // If the line break between two rows is lost, they become one malformed line.
    check(ends[2] + 40..ends[3] + 20, 1);
    // Without the first row, the first page has no robots.txt before it.
    check(0..ends[0], 1);
    check(0..ends[2], 0);
}

/// If no lost row can have allowed a request, the request remains a breach.
#[test]
fn a_lost_row_explains_no_more_than_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let with_path = |sent: Sent, path| Sent { path, ..sent };
    let sent = [
        robots((0, 100), 200, BARS_P),
        page((1100, 2900), "/p"),
        page((9000, 9100), "/"),
        robots((10_200, 10_300), 200, BARS_P),
        page((11_400, 11_500), "/p"),
        with_path(
            robots((12_000, 12_100), 200, BARS_P),
            "http://b.example/robots.txt",
        ),
        page((13_200, 13_300), "http://b.example/p"),
    ];
    write(dir.path(), &sent, &More::default());
    let path = dir.path().join("requests.jsonl");
    let mut rows = fs::read_to_string(&path).unwrap();
    let lost = rows.lines().nth(2).unwrap().to_owned();
    rows = rows.replace(&lost, "lost");
    fs::write(&path, rows).unwrap();
    let audit = audit(dir.path(), &[]).unwrap();
    let lines = audit.breaches.iter().map(|breach| breach.rows[1].line);
    assert_eq!(lines.collect::<Vec<_>>(), [2, 5, 7]);
    assert!(audit.undecided.is_empty(), "{:?}", audit.undecided);
}
