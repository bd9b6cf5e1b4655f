use crawl_scheduler::Tick;
use crawl_weburl::{CanonicalUrl, canonicalize};
use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};

use super::{CookieFile, RefusedCredentialsDigest, SiteSessions};

const NOW: Tick = Tick::from_micros(1_800_000_000_000_000);

fn url(text: &str) -> CanonicalUrl {
    canonicalize(None, text).unwrap()
}

fn sessions(sites: &[&str]) -> SiteSessions {
    SiteSessions::new(sites.iter().map(|site| (*site, false))).unwrap()
}

/// Receives cookies, and returns the redacted fields.
fn receive(sessions: &SiteSessions, from: &str, fields: &[&str]) -> Vec<String> {
    let mut headers = HeaderMap::new();
    for field in fields {
        headers.append(SET_COOKIE, HeaderValue::from_str(field).unwrap());
    }
    sessions.receive(&url(from), &mut headers, NOW);
    let left = headers.get_all(SET_COOKIE).iter();
    left.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

fn sent(sessions: &SiteSessions, to: &str) -> String {
    let fields = sessions.fields(&url(to), false, NOW);
    let field = fields.get(COOKIE).map(|value| value.to_str().unwrap());
    field.unwrap_or_default().to_owned()
}

#[test]
fn cookies_stay_within_their_site_and_are_redacted_in_the_response() {
    let sessions = sessions(&["www.example.org", "m.example.org", "127.0.0.1:81"]);
    let fields = [
        "sid=0123456789abcdef; Domain=example.org; Path=/",
        "flag; Secure",
    ];
    let left = receive(&sessions, "https://www.example.org/", &fields);
    let redacted = [
        "sid=[redacted]; Domain=example.org; Path=/",
        "=[redacted]; Secure",
    ];
    assert_eq!(left, redacted);
    assert_eq!(
        sent(&sessions, "https://www.example.org/"),
        "sid=0123456789abcdef; flag"
    );
    assert_eq!(
        sent(&sessions, "https://a.www.example.org/"),
        "sid=0123456789abcdef"
    );
    for other in [
        "https://m.example.org/",
        "https://example.org/",
        "http://www.example.org/",
        "https://example.com/",
    ] {
        assert_eq!(sent(&sessions, other), "", "{other}");
    }
    receive(&sessions, "http://127.0.0.1:81/", &["a=1"]);
    assert_eq!(sent(&sessions, "http://127.0.0.1:81/"), "a=1");
    assert_eq!(sent(&sessions, "http://127.0.0.1:82/"), "");
    // Other sites keep nothing, and their responses stay as they are.
    assert_eq!(receive(&sessions, "https://a.example/", &["a=1"]), ["a=1"]);
    assert_eq!(sent(&sessions, "https://a.example/"), "");
    assert!(!format!("{sessions:?}").contains("0123"));
}

#[test]
fn a_session_is_restored_from_its_stored_form() {
    let before = sessions(&["a.example"]);
    assert!(before.unsaved().is_empty());
    receive(&before, "https://a.example/", &["sid=1"]);
    before
        .set_token("a.example", "Authorization", "Bearer t0ken-of-a")
        .unwrap();
    before.set_logged_in("a.example", true);
    let stored = before.unsaved();
    assert!(before.unsaved().is_empty());
    let after = sessions(&["a.example"]);
    for (site, bytes) in &stored {
        after.restore(site, bytes, NOW);
    }
    let to = url("https://a.example/");
    assert_eq!(
        before.fields(&to, false, NOW),
        after.fields(&to, false, NOW)
    );
    assert!(after.may_be_logged_in("a.example"));
    assert!(after.unsaved().is_empty());
    after.restore("a.example", b"{broken", NOW);
    assert!(after.fields(&to, false, NOW).is_empty());
}

#[test]
fn a_cookie_file_is_imported_once_into_the_sites_that_its_cookies_belong_to() {
    let file = CookieFile::parse(
        ".example.org\tTRUE\t/\tFALSE\t0\tall\t1\n\
         www.example.org\tFALSE\t/\tFALSE\t0\tone\t2\n\
         example.org\tFALSE\t/\tFALSE\t0\ttop\t3\n\
         other.example\tFALSE\t/\tFALSE\t0\tother\t4\n\
         org\tTRUE\t/\tFALSE\t0\tsuffix\t5\n",
    )
    .unwrap();
    assert!(!sessions(&["b.example"]).takes_any_of(&file));
    let sessions = sessions(&["www.example.org"]);
    assert!(sessions.takes_any_of(&file));
    sessions.import(&file, "digest", NOW);
    assert_eq!(sent(&sessions, "https://www.example.org/"), "all=1; one=2");
    // The site has replaced the cookie, so the same file must not bring the old one back.
    receive(&sessions, "https://www.example.org/", &["one=9"]);
    sessions.import(&file, "digest", NOW);
    assert_eq!(sent(&sessions, "https://www.example.org/"), "all=1; one=9");
    sessions.import(&file, "new digest", NOW);
    assert_eq!(sent(&sessions, "https://www.example.org/"), "all=1; one=2");
}

#[test]
fn received_secrets_are_learned() {
    let sessions = sessions(&["a.example"]);
    let config = crate::FetchConfig {
        sessions: sessions.clone(),
        ..crate::FetchConfig::new("test")
    };
    let secrets = config.secrets();
    assert!(secrets.is_empty());
    receive(
        &sessions,
        "https://a.example/",
        &["sid=0123456789abcdef", "lang=english"],
    );
    sessions
        .set_token("a.example", "Authorization", "Bearer t0ken-of-a")
        .unwrap();
    assert_eq!(
        secrets.redacted("english 0123456789abcdef t0ken-of-a Bearer"),
        "english [redacted] [redacted] [redacted]"
    );
}

#[test]
fn cookies_do_not_push_passwords_out_of_the_redaction() {
    let sessions = sessions(&["a.example"]);
    sessions.learn_secret("s3cret-word");
    let token = sessions.set_token("a.example", "Authorization", "Bearer t0ken-of-a");
    token.unwrap();
    for number in 0..1_000 {
        let field = format!("sid=c00kie-value-{number:06}");
        receive(&sessions, "https://a.example/", &[&field]);
    }
    let secrets = crate::Secrets::of(&[]).with_learned(sessions.secrets());
    assert_eq!(
        secrets.redacted("s3cret-word t0ken-of-a c00kie-value-000999 c00kie-value-000000"),
        "[redacted] [redacted] [redacted] c00kie-value-000000"
    );
    // A cookie has the value of a password. The password must still count as a credential, so that
    // many later cookies don't evict it.
    receive(
        &sessions,
        "https://a.example/",
        &["sid=s3cret-word-too-long"],
    );
    sessions.learn_secret("s3cret-word-too-long");
    for number in 0..1_000 {
        let field = format!("sid=c00kie-again-{number:06}");
        receive(&sessions, "https://a.example/", &[&field]);
    }
    assert_eq!(secrets.redacted("s3cret-word-too-long"), "[redacted]");
}

#[test]
fn refused_credentials_and_cookies_of_a_domain_can_be_dropped_from_a_stored_session() {
    let before = sessions(&["example.org"]);
    for host in ["example.org", "m.example.org", "www.example.org"] {
        receive(&before, &format!("https://{host}/"), &["sid=1"]);
    }
    before.set_secret_fields("example.org", vec!["pass".to_owned()]);
    let refused = RefusedCredentialsDigest {
        at: 5,
        salt: "00".to_owned(),
        digest: "11".to_owned(),
    };
    before.set_refused("example.org", Some(refused.clone()));
    let stored = before.unsaved().remove(0).1;
    let restored = |stored: &[u8]| {
        let after = sessions(&["example.org"]);
        after.restore("example.org", stored, NOW);
        let fields = after.secret_fields("example.org");
        assert_eq!(fields.as_deref(), Some(&["pass".to_owned()][..]));
        after
    };
    assert_eq!(restored(&stored).refused("example.org"), Some(refused));
    let allowed = SiteSessions::without_refusal(&stored).unwrap();
    assert_eq!(restored(&allowed).refused("example.org"), None);
    assert_eq!(SiteSessions::without_refusal(&allowed), None);
    let erased = SiteSessions::without_cookies(stored, &|domain| domain == "m.example.org");
    let after = restored(&erased);
    assert_eq!(sent(&after, "https://m.example.org/"), "");
    assert_eq!(sent(&after, "https://www.example.org/"), "sid=1");
}
