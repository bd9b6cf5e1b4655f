use std::sync::Arc;

use crawl_fetcher::{Exchange, ExchangeFailure, FailureKind, SiteSessions};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::site_session_tracker::MAX_VAIN_LOGINS;
use super::{
    LoggedOutPageRetry, LoginPermitDecision, LoginTracker, MAX_LOGIN_REDIRECTS, without_query,
};
use crate::login::{
    CredentialSource, LoginFailure, LoginMethod, PageSign, SessionStatus, SiteLogin, fixtures,
};
use crate::messages::login::{LoginStep, LoginStepRequest, PageLoginSession};

const FORM: &str = "<form method=post action=/in><input name=user><input name=pass></form>";
const NOW: Tick = Tick::from_micros(1_800_000_000_000_000);
const INSIDE: &str = "<p>Log out</p>";

fn url(text: &str) -> CanonicalUrl {
    canonicalize(None, text).unwrap()
}

fn origin() -> Origin {
    url("https://a.example/").origin()
}

fn login(method: LoginMethod) -> Arc<SiteLogin> {
    Arc::new(SiteLogin {
        site: "a.example".to_owned(),
        method,
        credentials: CredentialSource::new(|| Ok(Vec::new())),
        logged_in: Some(PageSign::text("Log out").unwrap()),
        logged_out: None,
        skips_actions: true,
        plain_http: false,
    })
}

fn form() -> Arc<SiteLogin> {
    login(LoginMethod::Form {
        url: url("https://a.example/login"),
        fields: vec!["pass".to_owned(), "user".to_owned()],
    })
}

fn logins(login: Arc<SiteLogin>) -> (LoginTracker, SiteSessions) {
    let sessions = SiteSessions::new([("a.example", false)]).unwrap();
    (LoginTracker::new(&[login], &sessions, 2), sessions)
}

fn answer(
    status: u16,
    location: Option<&str>,
    body: &'static str,
) -> Result<Exchange, ExchangeFailure> {
    let mut fields = vec![("content-type", "text/html")];
    fields.extend(location.map(|location| ("location", location)));
    let url = "https://a.example/login";
    Ok(fixtures::answer(url, status, &fields, body))
}

fn next(logins: &mut LoginTracker) -> LoginStepRequest {
    match logins.permit_decision(&origin()).0 {
        LoginPermitDecision::Login(request) => request,
        corrected => panic!("no request of a login: {corrected:?}"),
    }
}

fn is_open(logins: &mut LoginTracker) -> bool {
    matches!(
        logins.permit_decision(&origin()).0,
        LoginPermitDecision::Open
    )
}

fn failure(logins: &mut LoginTracker) -> String {
    match logins.permit_decision(&origin()).0 {
        LoginPermitDecision::Failed(failure) => failure.why,
        corrected => panic!("the login has not failed: {corrected:?}"),
    }
}

fn secrets() -> Result<Vec<(String, String)>, String> {
    let pairs = [("pass", "s3cret"), ("user", "me")];
    Ok(pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec())
}

/// Takes the steps of a login until the form can be sent. Returns the request that sends the form.
fn submit(logins: &mut LoginTracker) -> LoginStepRequest {
    let request = next(logins);
    assert_eq!(
        (request.step, request.url.path()),
        (LoginStep::Page, "/login")
    );
    let reaction = logins.answered(&request, &answer(200, None, FORM));
    assert!(reaction.read.is_some() && logins.are_credentials_awaited());
    assert!(matches!(
        logins.permit_decision(&origin()).0,
        LoginPermitDecision::Wait
    ));
    let reaction = logins.credentials_read(NOW, "a.example", secrets());
    assert_eq!(reaction.wake, [origin()]);
    let request = next(logins);
    assert_eq!(
        (request.step, request.url.path()),
        (LoginStep::Submit, "/in")
    );
    assert_eq!(
        request.form.as_ref().unwrap().encoded(),
        "user=me&pass=s3cret"
    );
    request
}

fn page(logins: &LoginTracker, shown: SessionStatus) -> PageLoginSession {
    PageLoginSession {
        shown,
        ..logins.page_session(&url("https://a.example/")).unwrap()
    }
}

fn out() -> SessionStatus {
    SessionStatus::LoggedOut("it answered 401".to_owned())
}

fn logged_in() -> (LoginTracker, SiteSessions) {
    let (mut logins, sessions) = logins(form());
    let request = submit(&mut logins);
    let reaction = logins.answered(&request, &answer(302, Some("/home?s=1"), ""));
    assert_eq!(reaction.wake, [origin()]);
    let request = next(&mut logins);
    assert_eq!(
        (request.step, request.form.is_none()),
        (LoginStep::Landing, true)
    );
    assert_eq!(request.shown_url().as_str(), "https://a.example/home");
    let reaction = logins.answered(&request, &answer(200, None, INSIDE));
    assert_eq!(reaction.logged_in.as_deref(), Some("a.example"));
    assert_eq!(reaction.wake, [origin()]);
    assert!(is_open(&mut logins));
    (logins, sessions)
}

#[test]
fn a_form_is_fetched_filled_in_and_sent_before_the_first_page() {
    let (_, sessions) = logged_in();
    assert!(sessions.may_be_logged_in("a.example"));
    // The next run does not log in again.
    let mut later = LoginTracker::new(&[form()], &sessions, 2);
    assert!(is_open(&mut later));
    let corrected = url("https://b.example/").origin();
    assert!(matches!(
        later.permit_decision(&corrected).0,
        LoginPermitDecision::Open
    ));
}

/// Reports a page that looks logged out. Returns whether the page is set aside.
fn shows_out(logins: &mut LoginTracker, url: &CanonicalUrl) -> bool {
    logins.page_ended(&page(logins, out()), url).page == LoggedOutPageRetry::SetAside
}

fn shows_in(logins: &mut LoginTracker, url: &CanonicalUrl) {
    logins.page_ended(&page(logins, SessionStatus::LoggedIn), url);
}

fn log_in_again(logins: &mut LoginTracker) {
    let request = submit(logins);
    logins.answered(&request, &answer(200, None, INSIDE));
    assert!(is_open(logins));
}

fn numbered(number: u32) -> CanonicalUrl {
    url(&format!("https://a.example/{number}"))
}

#[test]
fn a_session_that_ends_causes_one_login_and_not_more() {
    let (mut logins, sessions) = logged_in();
    let (one, two) = (numbered(1), numbered(2));
    let before = page(&logins, out());
    shows_in(&mut logins, &one);
    logins.page_ended(&page(&logins, SessionStatus::Unknown), &one);
    assert!(is_open(&mut logins));
    assert!(!shows_out(&mut logins, &two));
    assert!(!sessions.may_be_logged_in("a.example"));
    log_in_again(&mut logins);
    // A page that was requested before the login shows nothing about the new session.
    logins.page_ended(&before, &one);
    assert!(is_open(&mut logins));
    // The new session ends too, after one page looked logged in.
    shows_in(&mut logins, &two);
    assert!(!shows_out(&mut logins, &two));
    log_in_again(&mut logins);
}

#[test]
fn a_page_that_always_looks_logged_out_is_set_aside() {
    let (mut logins, sessions) = logged_in();
    shows_in(&mut logins, &numbered(1));
    assert!(!shows_out(&mut logins, &numbered(2)));
    log_in_again(&mut logins);
    // Another page looks logged in before the logged-out page is fetched again.
    shows_in(&mut logins, &numbered(3));
    assert!(shows_out(&mut logins, &numbered(2)));
    assert!(is_open(&mut logins) && sessions.may_be_logged_in("a.example"));
    // If page 2 is fetched again in a later round, it causes no login.
    assert!(shows_out(&mut logins, &numbered(2)));
    assert!(is_open(&mut logins));
}

#[test]
fn the_only_page_is_set_aside_if_the_login_itself_showed_a_session() {
    let (mut logins, _) = logged_in();
    assert!(!shows_out(&mut logins, &numbered(1)));
    assert!(shows_out(&mut logins, &numbered(1)));
    assert!(is_open(&mut logins));
}

#[test]
fn the_last_two_pages_are_set_aside_if_the_login_itself_showed_a_session() {
    let (mut logins, _) = logged_in();
    assert!(!shows_out(&mut logins, &numbered(1)));
    assert!(!shows_out(&mut logins, &numbered(2)));
    assert!(shows_out(&mut logins, &numbered(1)));
    assert!(shows_out(&mut logins, &numbered(2)));
    assert!(is_open(&mut logins));
}

#[test]
fn several_pages_in_a_row_after_a_login_end_the_site() {
    let (mut logins, sessions) = logged_in();
    assert!(!shows_out(&mut logins, &numbered(1)));
    assert!(!shows_out(&mut logins, &numbered(2)));
    assert!(is_open(&mut logins));
    let reaction = logins.page_ended(&page(&logins, out()), &numbered(3));
    let why = "still logged out after a login: https://a.example/3 (it answered 401)";
    let expected = LoginFailure::from(why.to_owned());
    assert_eq!(reaction.failed.unwrap(), ("a.example".to_owned(), expected));
    assert_eq!(failure(&mut logins), why);
    // The site did not refuse the credentials, so the next run logs in again.
    assert!(!sessions.may_be_logged_in("a.example"));
    assert_eq!(sessions.refused("a.example"), None);
}

#[test]
fn pages_that_always_look_logged_out_cause_few_logins() {
    let (mut logins, sessions) = logged_in();
    let is_in = |sessions: &SiteSessions| sessions.may_be_logged_in("a.example");
    let mut count = 0;
    for number in 0..1_000 {
        let (open, always_out) = (numbered(2 * number), numbered(2 * number + 1));
        shows_in(&mut logins, &open);
        assert!(!shows_out(&mut logins, &always_out));
        if !is_in(&sessions) {
            log_in_again(&mut logins);
            count += 1;
        }
        shows_in(&mut logins, &open);
        assert!(shows_out(&mut logins, &always_out), "{number}");
    }
    assert_eq!(count, MAX_VAIN_LOGINS);
    // Several pages in a row still count as evidence that the session is over.
    for number in 3_000..3_003 {
        assert!(is_in(&sessions));
        assert!(!shows_out(&mut logins, &numbered(number)));
    }
    log_in_again(&mut logins);
    shows_in(&mut logins, &numbered(3_000));
    assert!(is_open(&mut logins));
}

#[test]
fn refused_credentials_are_not_sent_again_until_they_change() {
    let (mut first, sessions) = logins(form());
    let request = submit(&mut first);
    let reaction = first.answered(&request, &answer(200, None, FORM));
    assert!(reaction.failed.unwrap().1.is_refused);
    let stored = sessions.unsaved().remove(0).1;
    let text = String::from_utf8(stored.clone()).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    let restored = || {
        let sessions = SiteSessions::new([("a.example", false)]).unwrap();
        sessions.restore("a.example", &stored, NOW);
        (LoginTracker::new(&[form()], &sessions, 2), sessions)
    };
    // The next run reads the credentials before it sends anything.
    let (mut same, _) = restored();
    let (decision, reaction) = same.permit_decision(&origin());
    assert!(matches!(decision, LoginPermitDecision::Wait) && reaction.read.is_some());
    same.credentials_read(NOW, "a.example", secrets());
    assert_eq!(
        failure(&mut same),
        "the credentials have not changed since the site refused them at 2027-01-15T08:00:00.000Z"
    );
    let (mut changed, sessions) = restored();
    let _ = changed.permit_decision(&origin());
    let corrected = [("pass", "an0ther"), ("user", "me")];
    let corrected = corrected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    changed.credentials_read(NOW, "a.example", Ok(corrected.to_vec()));
    let request = next(&mut changed);
    assert_eq!(request.step, LoginStep::Page);
    changed.answered(&request, &answer(200, None, FORM));
    changed.credentials_read(NOW, "a.example", Ok(corrected.to_vec()));
    let request = next(&mut changed);
    changed.answered(&request, &answer(200, None, INSIDE));
    assert!(is_open(&mut changed));
    assert_eq!(sessions.refused("a.example"), None);
}

#[test]
fn an_operator_may_retry_refused_credentials() {
    let (mut logins, sessions) = logins(form());
    let host = origin().host_key();
    assert_eq!(logins.retry(&host), None);
    let request = submit(&mut logins);
    logins.answered(&request, &answer(403, None, ""));
    assert!(sessions.refused("a.example").is_some());
    assert_eq!(logins.retry(&host).as_deref(), Some("a.example"));
    log_in_again(&mut logins);
    let corrected = url("https://b.example/").host_key();
    assert_eq!(logins.retry(&corrected), None);
}

#[test]
fn rfc9110_15_4_8_a_form_is_sent_again_once_and_only_to_its_origin() {
    for status in [307, 308] {
        let (mut same, _) = logins(form());
        let first = submit(&mut same);
        same.answered(&first, &answer(status, Some("/in2"), ""));
        let again = next(&mut same);
        assert_eq!((again.step, again.url.path()), (LoginStep::Submit, "/in2"));
        let body = |request: &LoginStepRequest| request.form.as_ref().unwrap().encoded().to_owned();
        assert_eq!(body(&again), body(&first));
        same.answered(&again, &answer(status, Some("/in3"), ""));
        let expected =
            format!("https://a.example/in2 answered {status}, but the form was sent twice");
        assert_eq!(failure(&mut same), expected);
        let (mut corrected, _) = logins(form());
        let request = submit(&mut corrected);
        let elsewhere = Some("https://m.a.example/in");
        corrected.answered(&request, &answer(status, elsewhere, ""));
        let expected = format!(
            "https://a.example/in answered {status}, which would send the form on to \
             https://m.a.example"
        );
        assert_eq!(failure(&mut corrected), expected);
    }
}

#[test]
fn plain_http_to_loopback_is_refused_behind_a_proxy() {
    let to_loopback = "<form method=post action=http://127.0.0.1/in><input name=user>\
        <input name=pass></form>";
    let login = || {
        Arc::new(SiteLogin {
            site: "127.0.0.1".to_owned(),
            method: LoginMethod::Form {
                url: url("http://127.0.0.1/login"),
                fields: vec!["pass".to_owned(), "user".to_owned()],
            },
            ..SiteLogin::clone(&form())
        })
    };
    let origin = url("http://127.0.0.1/").origin();
    for (is_proxied, is_allowed) in [(true, false), (false, true)] {
        let sessions = SiteSessions::new([("127.0.0.1", false)]).unwrap();
        let mut logins = LoginTracker::new(&[login()], &sessions, 2).proxied(is_proxied);
        let LoginPermitDecision::Login(request) = logins.permit_decision(&origin).0 else {
            panic!("no request of a login");
        };
        let reaction = logins.answered(&request, &answer(200, None, to_loopback));
        assert_eq!(reaction.read.is_some(), is_allowed);
    }
}

#[test]
fn a_refused_login_fails_with_its_reason() {
    for (answer, expected) in [
        (
            answer(200, None, FORM),
            "https://a.example/in shows no login after the form was sent: it doesn't contain the \
             text of `logged-in`",
        ),
        (answer(403, None, ""), "https://a.example/in answered 403"),
        (
            answer(302, Some("https://evil.example/"), ""),
            "it leads to evil.example, which is not part of [site.\"a.example\"]",
        ),
        (
            answer(302, Some("http://a.example/"), ""),
            "http://a.example/ is not encrypted, and `plain-http` is not on",
        ),
    ] {
        let (mut logins, sessions) = logins(form());
        let request = submit(&mut logins);
        logins.answered(&request, &answer);
        assert_eq!(failure(&mut logins), expected);
        assert!(!sessions.may_be_logged_in("a.example"));
    }
    let (mut corrected, _) = logins(form());
    let request = next(&mut corrected);
    let elsewhere = "<form method=post action=https://evil.example/><input name=user>\
        <input name=pass></form>";
    corrected.answered(&request, &answer(200, None, elsewhere));
    let expected = "it leads to evil.example, which is not part of [site.\"a.example\"]";
    assert_eq!(failure(&mut corrected), expected);
}

#[test]
fn redirects_without_end_fail() {
    let (mut logins, _) = logins(form());
    let mut request = submit(&mut logins);
    for hop in 0..MAX_LOGIN_REDIRECTS {
        let target = if hop % 2 == 0 { "/login" } else { "/home" };
        logins.answered(&request, &answer(302, Some(target), ""));
        request = next(&mut logins);
    }
    logins.answered(&request, &answer(302, Some("/login"), ""));
    assert_eq!(failure(&mut logins), "it redirects more than 10 times");
}

#[test]
fn a_failed_request_begins_the_login_again_a_few_times() {
    let (mut logins, _) = logins(form());
    let mut request = next(&mut logins);
    let failed = |kind| {
        Err(ExchangeFailure::recorded(
            kind,
            Tick::from_micros(1),
            Tick::from_micros(2),
        ))
    };
    // A failure caused by the end of the run doesn't count as an attempt.
    logins.answered(&request, &failed(FailureKind::GivenUp));
    request = next(&mut logins);
    assert_eq!((request.step, request.tries), (LoginStep::Page, 0));
    for tries in 1..=2 {
        logins.answered(&request, &failed(FailureKind::Reset));
        request = next(&mut logins);
        assert_eq!((request.step, request.tries), (LoginStep::Page, tries));
    }
    logins.answered(&request, &failed(FailureKind::Reset));
    assert_eq!(
        failure(&mut logins),
        "https://a.example/login can't be fetched (reset)"
    );
}

#[test]
fn credentials_are_not_sent_again_after_a_failure() {
    for status in [429, 500, 503] {
        let (mut logins, _) = logins(form());
        let request = submit(&mut logins);
        logins.answered(&request, &answer(status, None, ""));
        let expected = format!("{} answered {status}", without_query(&request.url));
        assert_eq!(failure(&mut logins), expected);
    }
}

#[test]
fn robots_txt_may_forbid_the_form_but_not_void_a_login() {
    let (mut before, _) = logins(form());
    let request = next(&mut before);
    before.disallowed(&request);
    assert_eq!(
        failure(&mut before),
        "robots.txt disallows https://a.example/login"
    );
    let (mut after, _) = logins(form());
    let request = submit(&mut after);
    after.answered(&request, &answer(302, Some("/home"), ""));
    let request = next(&mut after);
    after.disallowed(&request);
    assert!(is_open(&mut after));
}

#[test]
fn a_token_is_read_and_sent_without_a_request() {
    let header = "Authorization".to_owned();
    let (mut logins, sessions) = logins(login(LoginMethod::Token { header }));
    let (decision, reaction) = logins.permit_decision(&origin());
    assert!(matches!(decision, LoginPermitDecision::Wait) && reaction.read.is_some());
    let token = vec![(String::new(), "t0ken\n".to_owned())];
    let reaction = logins.credentials_read(NOW, "a.example", Ok(token));
    assert_eq!(reaction.wake, [origin()]);
    assert!(is_open(&mut logins));
    let stored = String::from_utf8(sessions.unsaved().remove(0).1).unwrap();
    assert!(stored.contains("Bearer t0ken"), "{stored}");
    for (result, expected) in [
        (Ok(Vec::new()), "the token is empty"),
        (
            Err("the command `x` failed".to_owned()),
            "the command `x` failed",
        ),
    ] {
        let header = "X-Token".to_owned();
        let (mut logins, _) = super::tests::logins(login(LoginMethod::Token { header }));
        let _ = logins.permit_decision(&origin());
        logins.credentials_read(NOW, "a.example", result);
        assert_eq!(failure(&mut logins), expected);
    }
}

#[test]
fn a_table_below_with_its_own_cookies_needs_no_login() {
    let sessions = SiteSessions::new([("a.example", false), ("m.a.example", false)]).unwrap();
    let mut logins = LoginTracker::new(&[form()], &sessions, 2);
    for (host, is_own) in [
        ("a.example", true),
        ("www.a.example", true),
        ("m.a.example", false),
    ] {
        let url = url(&format!("https://{host}/"));
        assert_eq!(logins.page_session(&url).is_some(), is_own, "{host}");
        let is_open = matches!(
            logins.permit_decision(&url.origin()).0,
            LoginPermitDecision::Open
        );
        assert_eq!(is_open, !is_own, "{host}");
    }
}
