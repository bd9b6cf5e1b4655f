use expect_test::expect;
use serde_json::json;

use super::changes;
use crate::error::RecordsError;

fn row(path: &str, round: u32, change: Option<&str>) -> String {
    let url = format!("http://e.example{path}");
    let row = json!({"url": url, "status": 200, "fetched_at": "2026-11-20T23:59:59.123Z", "ms": 1,
        "bytes": 0, "content_type": null, "digest": null, "depth": 0, "via": null, "title": null,
        "robots": null, "warc": null, "withheld": null, "round": round, "change": change,
        "error": null});
    format!("{row}\n")
}

#[test]
fn the_last_round_alone_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        changes(dir.path()),
        Err(RecordsError::NoCrawl { .. })
    ));
    let rows = [
        row("/", 1, Some("new")),
        row("/b", 1, Some("new")),
        row("/", 2, Some("changed")),
        row("/b", 2, Some("gone")),
        row("/c", 2, Some("same")),
        row("/d", 2, None),
        row("/e", 2, Some("new")),
    ];
    std::fs::write(dir.path().join("pages.jsonl"), rows.concat()).unwrap();
    expect![[r#"
        round 2: 1 new, 1 changed, 1 same, 1 gone
        new      http://e.example/e
        changed  http://e.example/
        gone     http://e.example/b
    "#]]
    .assert_eq(&changes(dir.path()).unwrap().to_string());
    // The last run may be of a later round, in which no page was visited.
    for (round, expected) in [
        (2, "round 2: 1 new"),
        (3, "round 3: 0 new, 0 changed, 0 same, 0 gone\n"),
    ] {
        let ended = json!({"origin": null, "urls": 3, "reason": "unreachable", "detail": null,
            "round": round});
        std::fs::write(dir.path().join("waiting.jsonl"), format!("{ended}\n")).unwrap();
        let text = changes(dir.path()).unwrap().to_string();
        assert!(text.starts_with(expected), "{text}");
    }
}
