//! Tests of crawls that continue with the state of an earlier version of the program.

use crawl_frontier::{FjallFrontier, FjallFrontierOptions, Frontier as _, LeaseOutcome};

use crate::recrawl::{again, answers, eager, small};
use crate::support::Crawl;

/// Rewrites the stored visits of a finished crawl into the format of another version.
fn keep_visits_as(crawl: &Crawl, older: impl Fn(&serde_json::Value) -> String) {
    let state = crawl.config.output.join("state");
    let frontier = FjallFrontier::open(&state, &FjallFrontierOptions::default()).unwrap();
    let mut transaction = frontier.begin().unwrap();
    transaction.visit_due(u32::MAX, usize::MAX).unwrap();
    transaction.commit().unwrap();
    let mut transaction = frontier.begin().unwrap();
    for (origin, _) in frontier.origins() {
        while let Some(lease) = frontier.lease(&origin).unwrap() {
            let mut visit = frontier.visit(&lease.url).unwrap().unwrap();
            let stored: serde_json::Value = serde_json::from_slice(&visit.bytes).unwrap();
            if stored["p"]["s"] == 200 {
                visit.bytes = older(&stored).into_bytes();
            }
            let fetched = LeaseOutcome::Fetched { status: 200 };
            transaction.settle_until(lease, fetched, visit).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// Returns the changes that a second round reports after the visits of the first round were
/// rewritten as an earlier version would have stored them.
fn changes_after_an_upgrade(older: impl Fn(&serde_json::Value) -> String) -> Vec<(String, String)> {
    let web = small(&[]);
    let mut crawl = eager(&web);
    let mut changes = Vec::new();
    for round in 1..=2 {
        for (path, answer) in answers(round) {
            web.script(0, path, answer);
        }
        again(&mut crawl);
        if round == 1 {
            keep_visits_as(&crawl, &older);
        }
    }
    for row in crawl.pages().into_iter().filter(|row| row.round == 2) {
        let path = row.url[web.url(0, "").len()..].to_owned();
        let differs = row.differs.unwrap_or_default();
        changes.push((
            path,
            format!("{} {differs}", row.change.unwrap_or_default()),
        ));
    }
    changes.sort();
    changes
}

#[test]
fn visits_of_an_earlier_version_make_no_page_changed() {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    // A visit as stored before the column `differs` was added: with the digest of the received
    // body, and the time of its archive record.
    let before_differs = changes_after_an_upgrade(|kept| {
        let (page, round) = (&kept["p"], &kept["r"]);
        let (digest, archived) = (text(&page["d"]), &page["w"]);
        format!(r#"{{"r":{round},"p":{{"s":200,"d":"{digest}","w":{archived}}}}}"#)
    });
    // A visit as stored before text digests contained the version of the rules for finding the main
    // text. Today's rules find a different main text, so its digest differs.
    let before_rules = changes_after_an_upgrade(|kept| {
        let (page, round) = (&kept["p"], &kept["r"]);
        let (digest, archived) = (text(&page["d"]), &page["w"]);
        let decoded = page["b"].as_str().unwrap_or(&digest);
        format!(
            r#"{{"r":{round},"p":{{"s":200,"d":"{digest}","h":"7ZQ2KXWPJ4V5NYDM","b":"{decoded}","w":{archived}}}}}"#
        )
    });
    let expected = |packed: &str| {
        let changes = [
            ("/", "same markup"),
            ("/counter", "same markup"),
            ("/file", "changed bytes"),
            ("/nonce", "same markup"),
            ("/packed", packed),
            ("/story", "same markup"),
            ("/token", "same markup"),
        ];
        changes.map(|(path, changes)| (path.to_owned(), changes.to_owned()))
    };
    // The stored visit lacks the digest of the decoded body, so the text is read from the archive.
    assert_eq!(before_differs, expected("same markup"), "before `differs`");
    assert_eq!(
        before_rules,
        expected("same bytes"),
        "before rules had names"
    );
}
