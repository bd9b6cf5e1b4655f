//! A program that takes pages while they are crawled.

use crawl_archive::read_place;
use crawl_engine::Command;
use crawl_testweb::TestWeb;

use crate::support::Crawl;

#[test]
fn ours_a_consumer_gets_each_page_once_it_is_in_the_archive() {
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
fn ours_a_consumer_may_wait_for_what_it_asks_of_the_crawl() {
    let web = TestWeb::builder().seed(7).pages(30).start();
    let crawl = Crawl::of(&web);
    let (mut asked, mut answered) = (0, 0);
    let (rows, summary) = crawl.run_consumed(async |commander, _| {
        if asked < 5 {
            asked += 1;
            // It is answered from a later commit than that of the row.
            let add = Command::Add(web.url(0, &format!("/hidden/{asked}")));
            answered += u32::from(commander.ask(add).await.is_ok());
        }
    });
    assert_eq!(summary.unwrap().pages, rows.len() as u64);
    assert_eq!(answered, 5);
}
