//! Crawls that go on with what an earlier version kept.

use crawl_frontier::{FjallFrontier, Frontier as _, Options, Outcome};

use crate::recrawl::{again, answers, eager, small};
use crate::support::Crawl;

/// Puts what is kept of each visit of a finished crawl as another version kept it.
fn keep_visits_as(crawl: &Crawl, older: impl Fn(&serde_json::Value) -> String) {
    let state = crawl.config.output.join("state");
    let frontier = FjallFrontier::open(&state, &Options::default()).unwrap();
    let mut transaction = frontier.begin().unwrap();
    transaction.visit_due(u32::MAX, usize::MAX).unwrap();
    transaction.commit().unwrap();
    let mut transaction = frontier.begin().unwrap();
    for (origin, _) in frontier.origins() {
        while let Some(lease) = frontier.lease(&origin).unwrap() {
            let mut visit = frontier.visit(&lease.url).unwrap().unwrap();
            let kept: serde_json::Value = serde_json::from_slice(&visit.bytes).unwrap();
            if kept["p"]["s"] == 200 {
                visit.bytes = older(&kept).into_bytes();
            }
            let fetched = Outcome::Fetched { status: 200 };
            transaction.settle_until(lease, fetched, visit).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// The changes of a second round that goes on with the visits of an earlier version.
fn told_after_an_upgrade(older: impl Fn(&serde_json::Value) -> String) -> Vec<(String, String)> {
    let web = small(&[]);
    let mut crawl = eager(&web);
    let mut told = Vec::new();
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
        told.push((
            path,
            format!("{} {differs}", row.change.unwrap_or_default()),
        ));
    }
    told.sort();
    told
}

#[test]
fn what_an_earlier_version_kept_of_a_visit_makes_no_page_changed() {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    // Before there was a column `differs`: the digest of the body as it came, and where it is
    // archived.
    let before_differs = told_after_an_upgrade(|kept| {
        let (page, round) = (&kept["p"], &kept["r"]);
        let (digest, archived) = (text(&page["d"]), &page["w"]);
        format!(r#"{{"r":{round},"p":{{"s":200,"d":"{digest}","w":{archived}}}}}"#)
    });
    // Before digests of texts named their rules: one by rules that told another main text.
    let before_rules = told_after_an_upgrade(|kept| {
        let (page, round) = (&kept["p"], &kept["r"]);
        let (digest, archived) = (text(&page["d"]), &page["w"]);
        let decoded = page["b"].as_str().unwrap_or(&digest);
        format!(
            r#"{{"r":{round},"p":{{"s":200,"d":"{digest}","h":"7ZQ2KXWPJ4V5NYDM","b":"{decoded}","w":{archived}}}}}"#
        )
    });
    let expected = |packed: &str| {
        let told = [
            ("/", "same markup"),
            ("/counter", "same markup"),
            ("/file", "changed bytes"),
            ("/nonce", "same markup"),
            ("/packed", packed),
            ("/story", "same markup"),
            ("/token", "same markup"),
        ];
        told.map(|(path, told)| (path.to_owned(), told.to_owned()))
    };
    // What was in the coding is not known of it: its text is read from the archive.
    assert_eq!(before_differs, expected("same markup"), "before `differs`");
    assert_eq!(
        before_rules,
        expected("same bytes"),
        "before rules had names"
    );
}
