//! Tests of a program that consumes pages while a crawl fetches them.

use crawl_archive::read_place;
use crawl_engine::CrawlCommand;
use crawl_testweb::TestWeb;

use crate::support::Crawl;

#[test]
fn a_consumer_gets_each_page_once_it_is_archived() {
    let web = TestWeb::builder().seed(7).pages(30).start();
    let crawl = Crawl::of(&web);
    let mut archived = 0;
    let (rows, summary) = crawl.run_consumed(async |_, row| {
        if let Some(place) = &row.warc {
            let record = read_place(&crawl.config.output, place, row.bytes).unwrap();
            assert_eq!(record.url(), Some(row.url.as_str()));
            archived += 1;
        }
    });
    assert_eq!(summary.unwrap().pages, rows.len() as u64);
    assert!(archived > 30, "{archived}");
    let lines = rows.iter().map(|row| serde_json::to_string(row).unwrap());
    let listed = std::fs::read_to_string(crawl.output("pages.jsonl")).unwrap();
    assert!(lines.eq(listed.lines()), "{listed}");
}

#[test]
fn a_consumer_may_wait_for_the_answer_to_a_command() {
    let web = TestWeb::builder().seed(7).pages(30).start();
    let crawl = Crawl::of(&web);
    let (mut commands, mut answered) = (0, 0);
    let (rows, summary) = crawl.run_consumed(async |commander, _| {
        if commands < 5 {
            commands += 1;
            // The answer to this command comes with a later commit, so the crawl must continue
            // while the consumer waits for it.
            let add = CrawlCommand::Add(web.url(0, &format!("/hidden/{commands}")));
            answered += u32::from(commander.ask(add).await.is_ok());
        }
    });
    assert_eq!(summary.unwrap().pages, rows.len() as u64);
    assert_eq!(answered, 5);
}
