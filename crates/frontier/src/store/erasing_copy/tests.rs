use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};

use super::{OfflineFrontier, RemovalFilter};
use crate::{
    AdmissionResult, FjallFrontier, FjallFrontierOptions, Frontier as _, KnownState, LastVisit,
    LeaseOutcome, NotFetchedReason, Reason, RequestedState, UrlToAdmit,
};

const HOST: &str = "gone.example";

/// Leaves out one host with all its URLs, and one page of another host.
struct GoneHostFilter;

impl RemovalFilter for GoneHostFilter {
    fn holds(&self, url: &CanonicalUrl) -> bool {
        url.host() == HOST || url.as_str() == "http://a.example/gone.example.html"
    }

    fn holds_host(&self, host: &HostKey) -> bool {
        host.as_str() == HOST
    }

    fn is_named_in(&self, text: &str) -> bool {
        text.contains(HOST)
    }

    fn meta(&self, name: &str, bytes: Vec<u8>) -> Option<Vec<u8>> {
        (name == "kept").then_some(bytes)
    }

    fn visit(&self, _: Vec<u8>) -> Vec<u8> {
        b"clean".to_vec()
    }
}

fn url(text: &str) -> CanonicalUrl {
    canonicalize(None, text).unwrap()
}

/// Returns all bytes below a folder, including file names.
fn bytes(dir: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        all.extend(path.display().to_string().into_bytes());
        all.extend(match path.is_dir() {
            true => bytes(&path),
            false => fs::read(&path).unwrap(),
        });
    }
    all
}

fn holds(dir: &Path, word: &str) -> bool {
    bytes(dir)
        .windows(word.len())
        .any(|at| at == word.as_bytes())
}

fn fill(dir: &Path) {
    let frontier = FjallFrontier::open(dir, &FjallFrontierOptions::default()).unwrap();
    let via = || url("http://gone.example/via");
    let mut transaction = frontier.begin().unwrap();
    let page = url("http://a.example/gone.example.html");
    let deferred = |text: &str| UrlToAdmit {
        state: RequestedState::Deferred(NotFetchedReason {
            rule: Some(format!("like {text}")),
            ..NotFetchedReason::of(Reason::Trap)
        }),
        ..UrlToAdmit::link(url(text), 2, via())
    };
    for admission in [
        UrlToAdmit::seed(url("http://a.example/")),
        UrlToAdmit::seed(url("http://gone.example/")),
        UrlToAdmit::link(page, 1, via()),
        UrlToAdmit::link(url("http://a.example/2"), 1, via()),
        UrlToAdmit::link(url("http://gone.example/3"), 1, url("http://a.example/")),
        deferred("http://a.example/4"),
        deferred("http://gone.example/5"),
        deferred("http://b.example/gone.example"),
    ] {
        assert_eq!(transaction.admit(admission).unwrap(), AdmissionResult::New);
    }
    transaction.keep_host(&HostKey::parse(HOST).unwrap(), 1, b"bytes");
    transaction.keep_robots(&url("http://gone.example/").origin(), b"robots");
    transaction.keep_meta("kept", b"kept");
    transaction.keep_meta("other", b"http://gone.example/");
    transaction.mark("pages.jsonl", 7);
    transaction.commit().unwrap();
    // Both visits are settled in one commit and due at the same time, so they share a row of the
    // table `due`.
    let mut transaction = frontier.begin().unwrap();
    for seed in ["http://a.example/", "http://gone.example/"] {
        let lease = frontier.lease(&url(seed).origin()).unwrap().unwrap();
        let visit = LastVisit {
            at: 1,
            due: 2,
            bytes: b"to gone.example".to_vec(),
        };
        let outcome = LeaseOutcome::Failed {
            why: format!("it led to {HOST}"),
        };
        transaction.settle_until(lease, outcome, visit).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn a_copy_contains_no_byte_of_the_urls_left_out() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    assert!(holds(dir.path(), HOST));
    let resting = OfflineFrontier::open(dir.path(), &FjallFrontierOptions::default()).unwrap();
    assert_eq!(resting.marks().unwrap()["pages.jsonl"], 7);
    assert_eq!(resting.meta("kept").unwrap().unwrap(), b"kept");
    let to = tempfile::tempdir().unwrap();
    let to = to.path().join("store");
    let marks = BTreeMap::from([("pages.jsonl".to_owned(), 5)]);
    let more = BTreeMap::from([("more".to_owned(), b"more".to_vec())]);
    let left_out = resting
        .copy_without(&to, &GoneHostFilter, &marks, &more)
        .unwrap();
    let origins = ["http://a.example", "http://gone.example"];
    let pending = BTreeMap::from(origins.map(|origin| (origin.to_owned(), 1)));
    assert_eq!((left_out.pending, left_out.deferred), (pending, 1));
    fs::rename(dir.path().join("store"), dir.path().join("old")).unwrap();
    fs::rename(&to, dir.path().join("store")).unwrap();
    fs::remove_dir_all(dir.path().join("old")).unwrap();
    drop(resting);
    // One deferred URL contains the removed host's name only in its path, so this URL stays.
    let similar_url = url("http://b.example/gone.example");
    assert_eq!(
        bytes(dir.path())
            .windows(HOST.len())
            .filter(|at| *at == HOST.as_bytes())
            .count(),
        1
    );

    let frontier = FjallFrontier::open(dir.path(), &FjallFrontierOptions::default()).unwrap();
    let state = |text: &str| frontier.known(&url(text)).unwrap().map(|known| known.state);
    let forgotten = Some(KnownState::Excluded(NotFetchedReason::of(
        Reason::Forgotten,
    )));
    assert_eq!(state("http://gone.example/3"), forgotten);
    assert_eq!(state("http://gone.example/5"), forgotten);
    assert_eq!(state("http://a.example/gone.example.html"), forgotten);
    assert!(matches!(
        state(similar_url.as_str()),
        Some(KnownState::Deferred(_))
    ));
    assert!(matches!(
        state("http://a.example/2"),
        Some(KnownState::Pending { .. })
    ));
    assert!(matches!(
        state("http://gone.example/"),
        Some(KnownState::Failed { .. })
    ));
    let counts = frontier.counts();
    assert_eq!(
        (
            counts.pending,
            counts.deferred,
            counts.excluded,
            counts.failed
        ),
        (1, 2, 3, 2)
    );
    assert_eq!(frontier.marks().unwrap(), marks);
    assert_eq!(frontier.meta("kept").unwrap().unwrap(), b"kept");
    assert_eq!(frontier.meta("other").unwrap(), None);
    assert_eq!(frontier.meta("more").unwrap().unwrap(), b"more");
    let lease = frontier
        .lease(&url("http://a.example/").origin())
        .unwrap()
        .unwrap();
    assert_eq!(
        (lease.url.as_str(), lease.via.as_ref()),
        ("http://a.example/2", None)
    );
    frontier.release(lease);
    // Only the visit of `http://a.example/` is due, because the copy left the other visit out.
    let mut transaction = frontier.begin().unwrap();
    assert_eq!(transaction.visit_due(9, 9).unwrap(), 1);
    let again = UrlToAdmit::seed(url("http://gone.example/3"));
    assert_eq!(transaction.admit(again).unwrap(), AdmissionResult::Known);
    transaction.commit().unwrap();
}
