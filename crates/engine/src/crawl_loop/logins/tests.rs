use std::sync::Arc;

use crawl_fetcher::{Exchange, Failure, FailureKind, SiteSessions};
use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::{LoginGate, Logins, MAX_LOGIN_REDIRECTS, without_query};
use crate::login::{Credentials, LoginMethod, PageSign, Session, SiteLogin, fixtures};
use crate::messages::login::{LoginRequest, LoginStep, PageSession};

const FORM: &str = "<form method=post action=/in><input name=user><input name=pass></form>";
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
        credentials: Credentials::new(|| Ok(Vec::new())),
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

fn logins(login: Arc<SiteLogin>) -> (Logins, SiteSessions) {
    let sessions = SiteSessions::new([("a.example", false)]).unwrap();
    (Logins::new(&[login], &sessions, 2), sessions)
}

fn answer(status: u16, location: Option<&str>, body: &'static str) -> Result<Exchange, Failure> {
    let mut fields = vec![("content-type", "text/html")];
    fields.extend(location.map(|location| ("location", location)));
    let url = "https://a.example/login";
    Ok(fixtures::answer(url, status, &fields, body))
}

fn next(logins: &mut Logins) -> LoginRequest {
    match logins.gate(&origin()).0 {
        LoginGate::Login(request) => request,
        other => panic!("no request of a login: {other:?}"),
    }
}

fn is_open(logins: &mut Logins) -> bool {
    matches!(logins.gate(&origin()).0, LoginGate::Open)
}

fn failure(logins: &mut Logins) -> String {
    match logins.gate(&origin()).0 {
        LoginGate::Failed(why) => why,
        other => panic!("the login has not failed: {other:?}"),
    }
}

fn secrets() -> Result<Vec<(String, String)>, String> {
    let pairs = [("pass", "s3cret"), ("user", "me")];
    Ok(pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec())
}

/// Logs in with the form, up to the answer to it.
fn submit(logins: &mut Logins) -> LoginRequest {
    let request = next(logins);
    assert_eq!(
        (request.step, request.url.path()),
        (LoginStep::Page, "/login")
    );
    let reaction = logins.answered(&request, &answer(200, None, FORM));
    assert!(reaction.read.is_some() && logins.are_credentials_awaited());
    assert!(matches!(logins.gate(&origin()).0, LoginGate::Wait));
    let reaction = logins.credentials_read("a.example", secrets());
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

fn page(logins: &Logins, shown: Session) -> PageSession {
    PageSession {
        shown,
        ..logins.page_session(&url("https://a.example/")).unwrap()
    }
}

fn out() -> Session {
    Session::LoggedOut("it answered 401".to_owned())
}

/// Returns logins that have just logged in.
fn logged_in() -> (Logins, SiteSessions) {
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
    let mut later = Logins::new(&[form()], &sessions, 2);
    assert!(is_open(&mut later));
    let other = url("https://b.example/").origin();
    assert!(matches!(later.gate(&other).0, LoginGate::Open));
}

#[test]
fn a_session_that_ends_causes_one_login_and_not_more() {
    let (mut logins, sessions) = logged_in();
    let (one, two) = (url("https://a.example/1"), url("https://a.example/2"));
    let before = page(&logins, out());
    logins.page_ended(&page(&logins, Session::LoggedIn), &one);
    logins.page_ended(&page(&logins, Session::Unknown), &one);
    assert!(is_open(&mut logins));
    logins.page_ended(&page(&logins, out()), &two);
    assert!(!sessions.may_be_logged_in("a.example"));
    let request = submit(&mut logins);
    logins.answered(&request, &answer(200, None, INSIDE));
    // A page that was requested before the login shows nothing about the new session.
    logins.page_ended(&before, &one);
    assert!(is_open(&mut logins));
    // The page that was logged out still is, although another page is not.
    logins.page_ended(&page(&logins, Session::LoggedIn), &one);
    let reaction = logins.page_ended(&page(&logins, out()), &two);
    let why = "still logged out after a login: https://a.example/2 (it answered 401)";
    assert_eq!(reaction.failed.unwrap().1, why);
    assert_eq!(failure(&mut logins), why);
}

#[test]
fn a_login_without_effect_ends_the_site() {
    let (mut logins, _) = logged_in();
    logins.page_ended(&page(&logins, out()), &url("https://a.example/1"));
    assert!(failure(&mut logins).starts_with("still logged out after a login"));
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
    let (mut other, _) = logins(form());
    let request = next(&mut other);
    let elsewhere = "<form method=post action=https://evil.example/><input name=user>\
        <input name=pass></form>";
    other.answered(&request, &answer(200, None, elsewhere));
    let expected = "it leads to evil.example, which is not part of [site.\"a.example\"]";
    assert_eq!(failure(&mut other), expected);
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
        Err(Failure::recorded(
            kind,
            Tick::from_micros(1),
            Tick::from_micros(2),
        ))
    };
    // The run ended before the exchange did, so the attempt doesn't count.
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
    let (gate, reaction) = logins.gate(&origin());
    assert!(matches!(gate, LoginGate::Wait) && reaction.read.is_some());
    let token = vec![(String::new(), "t0ken\n".to_owned())];
    let reaction = logins.credentials_read("a.example", Ok(token));
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
        let _ = logins.gate(&origin());
        logins.credentials_read("a.example", result);
        assert_eq!(failure(&mut logins), expected);
    }
}
