//! Tests of sites' preferences about the use of their pages, compared with the purpose of a crawl.

use crawl_engine::EndReason;
use crawl_policy::usage_statements::UsagePurpose;
use crawl_testweb::{HttpAnswer, ReplySequence, TestWeb, TestWebBuilder};

use crate::support::Crawl;

const LINKS: &str = "<a href=/a>a</a><a href=/b>b</a>";

/// Returns a site of three pages.
fn site() -> TestWebBuilder {
    TestWeb::builder()
        .sitemap(false)
        .script(0, "/", HttpAnswer::html(LINKS))
        .script(0, "/a", HttpAnswer::html("<title>A</title>"))
        .script(0, "/b", HttpAnswer::html("<title>B</title>"))
}

fn crawl_for(web: &TestWeb, purpose: Option<UsagePurpose>) -> Crawl {
    let mut crawl = Crawl::of(web);
    crawl.config.sitemaps = false;
    crawl.config.purpose = purpose;
    crawl.run().unwrap();
    crawl
}

#[test]
fn a_preference_in_robots_txt_excludes_pages() {
    let robots =
        "User-agent: *\nDisallow:\nContent-Usage: /a train-ai=n\nContent-Signal: search=yes\n";
    let web = site().robots(0, robots).start();
    let crawl = crawl_for(&web, Some(UsagePurpose::TrainAi));
    assert_eq!(crawl.excluded()[&web.url(0, "/a")], "usage");
    let row = crawl.excluded_row(&web.url(0, "/a"));
    assert_eq!(
        (row.rule.as_deref(), row.line),
        (Some("Content-Usage: /a train-ai=n"), Some(3))
    );
    assert!(web.log().iter().all(|entry| entry.path != "/a"));
    assert_eq!(crawl.pages().len(), 2);

    let crawl = crawl_for(&web, None);
    assert_eq!(crawl.pages().len(), 3, "no purpose, no bar");
    let usage = crawl.page(&web.url(0, "/a")).usage.unwrap();
    assert_eq!(usage.train_ai.as_deref(), Some("refused"));
    assert_eq!(usage.search.as_deref(), Some("allowed"));
    assert_eq!(usage.ai_input, None);
    let statements = usage
        .said
        .iter()
        .map(|statements| (statements.channel.as_str(), statements.line));
    assert_eq!(
        statements.collect::<Vec<_>>(),
        [("robots", Some(3)), ("robots", Some(4))]
    );
}

#[test]
fn a_preference_only_in_the_page_withholds_its_body() {
    let secret = "never to be copied";
    let page = |head: &str| HttpAnswer::html(&format!("{head}<p>{secret}<a href=/b>b</a>"));
    for (purpose, answer, words) in [
        (
            None,
            page("<meta name=robots content=noarchive>"),
            "<meta name=\"robots\" content=\"noarchive\">",
        ),
        (
            None,
            HttpAnswer {
                status: 404,
                ..page("<meta name=robots content=noarchive>")
            },
            "<meta name=\"robots\" content=\"noarchive\">",
        ),
        (
            None,
            page("").header("x-robots-tag", "crawl: noarchive"),
            "X-Robots-Tag: crawl: noarchive",
        ),
        (
            Some(UsagePurpose::AiInput),
            page("").header("content-usage", "ai-use=n"),
            "Content-Usage: ai-use=n",
        ),
        (
            Some(UsagePurpose::TrainAi),
            page("<meta name=robots content=noai>"),
            "<meta name=\"robots\" content=\"noai\">",
        ),
        (
            Some(UsagePurpose::TrainAi),
            page("<meta name=tdm-reservation content=1>"),
            "tdm-reservation: 1",
        ),
        (
            Some(UsagePurpose::Search),
            page("").header("content-signal", "search=no"),
            "Content-Signal: search=no",
        ),
    ] {
        let web = site()
            .script(0, "/", HttpAnswer::html("<a href=/a>a</a><a href=/b>b</a>"))
            .script(0, "/a", answer)
            .start();
        let crawl = crawl_for(&web, purpose);
        let row = crawl.page(&web.url(0, "/a"));
        assert_eq!(row.withheld.as_deref(), Some(words));
        assert!(row.warc.is_some() && row.digest.is_some() && row.bytes > 0);
        assert!(!crawl.archive_holds(secret), "{words}");
        let followed = crawl.page(&web.url(0, "/b"));
        assert_eq!(followed.withheld, None);
        assert!(crawl.archive_holds("<title>B</title>"));
    }
}

#[test]
fn a_preference_for_another_purpose_withholds_nothing() {
    let web = site()
        .script(
            0,
            "/a",
            HttpAnswer::html("A").header("content-usage", "train-ai=n"),
        )
        .start();
    let crawl = crawl_for(&web, Some(UsagePurpose::Search));
    let row = crawl.page(&web.url(0, "/a"));
    assert_eq!(row.withheld, None);
    assert_eq!(row.usage.unwrap().train_ai.as_deref(), Some("refused"));
}

#[test]
fn a_tdmrep_is_fetched_before_pages_if_it_can_matter() {
    let tdmrep =
        r#"[{"location": "/a", "tdm-reservation": 1, "tdm-policy": "https://e.example/p"}]"#;
    let web = || {
        site()
            .script(
                0,
                "/.well-known/tdmrep.json",
                ReplySequence::always(HttpAnswer::of(503).header("retry-after", "0"))
                    .then(HttpAnswer::text(tdmrep)),
            )
            .start()
    };
    let reserved = web();
    let crawl = crawl_for(&reserved, Some(UsagePurpose::TrainAi));
    let paths: Vec<_> = reserved.log().into_iter().map(|entry| entry.path).collect();
    assert_eq!(
        paths[..4],
        [
            "/robots.txt",
            "/.well-known/tdmrep.json",
            "/.well-known/tdmrep.json",
            "/"
        ]
    );
    assert!(!paths.contains(&"/a".to_owned()));
    let row = crawl.excluded_row(&reserved.url(0, "/a"));
    assert_eq!(row.reason, "usage");
    assert_eq!(
        row.rule.as_deref(),
        Some("tdmrep.json: /a: tdm-reservation: 1; tdm-policy: https://e.example/p")
    );
    let purposes: Vec<_> = crawl
        .requests()
        .into_iter()
        .map(|row| row.purpose)
        .collect();
    assert_eq!(purposes[..3], ["robots", "tdmrep", "tdmrep"]);

    // A restarted crawl still knows that the site has reserved its rights, so it sends no request.
    let mut again = crawl;
    let late = crawl_weburl::canonicalize(None, &reserved.url(0, "/a?late")).unwrap();
    again.config.seeds.push(late);
    reserved.take_log();
    again.run().unwrap();
    assert_eq!(reserved.log().len(), 0, "{:?}", reserved.log());

    let unasked = web();
    crawl_for(&unasked, Some(UsagePurpose::Search));
    assert!(
        unasked
            .log()
            .iter()
            .all(|entry| !entry.path.contains("tdmrep"))
    );
}

#[test]
fn an_excluded_or_unavailable_tdmrep_is_ignored() {
    for (robots, answer) in [
        (
            "User-agent: *\nDisallow: /.well-known/\n",
            HttpAnswer::text("["),
        ),
        ("User-agent: *\nDisallow:\n", HttpAnswer::of(404)),
        (
            "User-agent: *\nDisallow:\n",
            HttpAnswer::text("<html>no JSON"),
        ),
        ("User-agent: *\nDisallow:\n", HttpAnswer::of(500)),
    ] {
        let web = site()
            .robots(0, robots)
            .script(0, "/.well-known/tdmrep.json", answer)
            .start();
        let mut crawl = Crawl::of(&web);
        crawl.config.sitemaps = false;
        crawl.config.purpose = Some(UsagePurpose::TrainAi);
        let summary = crawl.run().unwrap();
        assert_eq!(summary.ended, EndReason::Finished);
        assert_eq!(summary.pages, 3, "{robots}");
        let tdmrep_requests = |entry: &&crawl_testweb::LogEntry| entry.path.contains("tdmrep");
        let tdmrep_requests = web.log().iter().filter(tdmrep_requests).count();
        assert_eq!(tdmrep_requests == 0, robots.contains("well-known"));
    }
}
