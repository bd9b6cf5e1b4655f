//! Tests of change detection, which compares a response with the stored state of the last visit.

use crawl_fetcher::FailureKind;
use crawl_frontier::UrlKind;
use crawl_scheduler::Tick;
use crawl_weburl::canonicalize;

use super::*;
use crate::config::RevisitIntervals;
use crate::revisit::unread_link_kinds::UnreadLinkKinds;
use crate::revisit::visit::Round;
use crate::simulated_crawl_tests::scripted_servers::answer;

const ARCHIVED_AT: u64 = 7;

fn at(second: u64) -> Tick {
    Tick::from_micros(second * 1_000_000)
}

fn exchange(status: u16, body: &str) -> Exchange {
    let url = canonicalize(None, "http://a.example/").unwrap();
    answer(status, body).result(&url, at(20)).unwrap()
}

fn digest(text: &str) -> String {
    DigestAlgorithm::default().of(&[text.as_bytes()])
}

/// Returns an earlier visit to a page with this body, an ETag and an archive record.
fn past(body: &str) -> PreviousVisit {
    let validators = Validators {
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
    };
    let page = KnownPage {
        archived: Some(ARCHIVED_AT),
        decoded_digest: Some(digest(&format!("decoded {body}"))),
        ..KnownPage::new(200, digest(body), validators)
    };
    let visits = RevisitRules {
        round: Round::first(1),
        revisits: RevisitIntervals::default(),
    };
    let result = VisitResult::Page(page);
    let visit = visits.after(1, UrlKind::Page, None, result, None);
    PreviousVisit::read(&visit).unwrap()
}

fn row() -> PageRow {
    let row = r#"{"url":"http://a.example/","status":200,"fetched_at":"1970-01-01T00:00:20Z","ms":1,
        "bytes":0,"depth":0,"round":2}"#;
    serde_json::from_str(row).unwrap()
}

fn visit_answer<'a>(
    exchange: &'a Exchange,
    row: &'a PageRow,
    past: Option<&'a PreviousVisit>,
) -> ChangeDetectionInput<'a> {
    ChangeDetectionInput {
        exchange,
        row,
        past,
        redirect: None,
        body_digest: None,
        decoded_digest: None,
        text_digest: None,
        indexing_fields: None,
        fault: IncomparableAnswer::None,
        render_need: RenderNeed::default(),
        unread_link_kinds: UnreadLinkKinds::default(),
        is_guess: false,
        is_list: false,
    }
}

/// Detects the change of an answer without an archive. Returns the names of the repeat, the change
/// and the difference.
fn check(
    answer: ChangeDetectionInput<'_>,
) -> (&'static str, Option<&'static str>, Option<&'static str>) {
    let detector = ChangeDetector::new(answer);
    let repeat = match detector.repeat() {
        Some(AnswerRepetition::NotModified(_)) => "not modified",
        Some(AnswerRepetition::Payload(_)) => "payload",
        Some(AnswerRepetition::Content(_)) => "content",
        None => "none",
    };
    let detected = detector.finish(None);
    (
        repeat,
        detected.change.map(PageChange::name),
        detected.differs,
    )
}

#[test]
fn an_answer_is_compared_with_the_page_of_the_last_visit() {
    let (row, past) = (row(), past("one"));
    let decoded = digest("decoded one");
    for (status, body, has_past, decoded_digest, expected) in [
        (200, "one", false, None, ("none", Some("new"), None)),
        (200, "one", true, None, ("payload", Some("same"), None)),
        (304, "", true, None, ("not modified", Some("same"), None)),
        (
            200,
            "two",
            true,
            None,
            ("none", Some("changed"), Some("bytes")),
        ),
        (
            200,
            "packed otherwise",
            true,
            Some(decoded.as_str()),
            ("content", Some("same"), Some("bytes")),
        ),
        (404, "", true, None, ("none", Some("gone"), None)),
        (404, "", false, None, ("none", None, None)),
        (500, "", true, None, ("none", None, None)),
    ] {
        let exchange = exchange(status, body);
        let answer = ChangeDetectionInput {
            decoded_digest,
            ..visit_answer(&exchange, &row, has_past.then_some(&past))
        };
        assert_eq!(check(answer), expected, "{status} {body:?} {has_past}");
    }
}

#[test]
fn an_error_makes_the_next_request_unconditional() {
    let (row, past) = (row(), past("one"));
    for (status, has_past, expected) in [
        (412, true, true),
        (400, true, true),
        (412, false, false),
        (304, true, false),
        (500, true, true),
        (503, true, false),
        (429, true, false),
    ] {
        let exchange = exchange(status, "");
        let answer = visit_answer(&exchange, &row, has_past.then_some(&past));
        let detected = ChangeDetector::new(answer).finish(None);
        assert_eq!(detected.needs_full_fetch, expected, "{status} {has_past}");
    }
}

#[test]
fn a_faulty_answer_is_inconclusive() {
    let (row, past, exchange) = (row(), past("one"), exchange(200, "two"));
    for (fault, has_past, change) in [
        (IncomparableAnswer::None, true, Some("changed")),
        (IncomparableAnswer::InPlace, true, None),
        (IncomparableAnswer::InPlace, false, None),
        (IncomparableAnswer::Undecoded, true, None),
        // On a first visit, even an undecoded answer counts as a new page, because there is nothing
        // to compare it with.
        (IncomparableAnswer::Undecoded, false, Some("new")),
    ] {
        let answer = ChangeDetectionInput {
            fault,
            ..visit_answer(&exchange, &row, has_past.then_some(&past))
        };
        let detected = ChangeDetector::new(answer).finish(None);
        let is_unreadable = fault == IncomparableAnswer::Undecoded && has_past;
        assert_eq!(
            detected.needs_full_fetch, is_unreadable,
            "{fault:?} {has_past}"
        );
        assert_eq!(
            detected.change.map(PageChange::name),
            change,
            "{fault:?} {has_past}"
        );
    }
    let broken_off = Exchange {
        truncated: Some(TruncationReason::Time(FailureKind::Timeout)),
        ..exchange
    };
    let answer = visit_answer(&broken_off, &row, Some(&past));
    assert_eq!(check(answer), ("none", None, None));
}

#[test]
fn a_page_is_archived_if_its_record_has_the_body() {
    let (row, past, exchange) = (row(), past("one"), exchange(200, "one"));
    for (record, archived) in [
        (None, None),
        (Some(false), Some(20_000_000)),
        (Some(true), None),
    ] {
        let digest = digest("one");
        let record = record.map(|is_revisit| AnswerRecordSummary {
            digest: &digest,
            is_revisit,
        });
        let answer = visit_answer(&exchange, &row, Some(&past));
        let detected = ChangeDetector::new(answer).finish(record);
        assert_eq!(detected.digest.as_ref(), Some(&digest));
        let VisitResult::Page(page) = detected.result else {
            panic!("no page: {:?}", detected.result);
        };
        assert_eq!(page.archived, archived, "{record:?}");
    }
}

#[test]
fn a_304_settles_its_url_with_the_status_and_digest_of_the_page() {
    let (row, past, exchange) = (row(), past("one"), exchange(304, ""));
    let answer = visit_answer(&exchange, &row, Some(&past));
    let detected = ChangeDetector::new(answer).finish(None);
    assert_eq!(
        (detected.status, detected.digest),
        (200, Some(digest("one")))
    );
    assert!(matches!(detected.result, VisitResult::Same));
}

#[test]
fn a_redirect_is_compared_by_its_target() {
    let (row, exchange) = (row(), exchange(301, "moved"));
    let target = canonicalize(None, "http://a.example/new").unwrap();
    for (redirect, expected) in [
        (Ok(target.clone()), Some(target.to_string())),
        (canonicalize(None, "mailto:a@b.example"), None),
    ] {
        let answer = ChangeDetectionInput {
            redirect: Some(redirect),
            ..visit_answer(&exchange, &row, None)
        };
        let VisitResult::Page(page) = ChangeDetector::new(answer).finish(None).result else {
            panic!("a redirect is kept like a page");
        };
        assert_eq!(page.redirect, expected);
    }
}

#[test]
fn a_guessed_url_is_absent_unless_it_may_have_a_list() {
    for (status, is_list, error, is_absent) in [
        (200, true, None, false),
        (200, false, None, true),
        (200, false, Some("body_truncated"), true),
        (200, false, Some("encoding_cut_short"), false),
        (404, false, None, true),
        (410, false, None, true),
        (403, false, None, false),
        (500, false, None, false),
    ] {
        let exchange = exchange(status, "text");
        let row = PageRow {
            error: error.map(str::to_owned),
            ..row()
        };
        let answer = ChangeDetectionInput {
            is_guess: true,
            is_list,
            ..visit_answer(&exchange, &row, None)
        };
        let detected = ChangeDetector::new(answer).finish(None);
        assert_eq!(
            detected.is_absent, is_absent,
            "{status} {is_list} {error:?}"
        );
        assert_eq!(detected.is_refused, status == 403, "{status}");
    }
}
