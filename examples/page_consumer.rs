//! A consumer of pages: crawls a small web on loopback and hands each page, as it is committed, to
//! code of its own, which reads it back from the archive and counts the words of its main text.
//!
//! `cargo run --release --example page_consumer`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use crawl_archive::read_place;
use crawl_archive::rows::PageRow;
use crawl_engine::{Config, Controls};
use crawl_extractor::{ContentLimits, PageContext, is_html, read_content};
use crawl_policy::ProductToken;
use crawl_testweb::TestWeb;
use crawl_weburl::canonicalize;
use tokio::sync::mpsc;

/// Pages that may wait for the consumer. Where it is slower than the crawl, the crawl waits.
const MAX_WAITING_PAGES: usize = 64;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let web = TestWeb::builder();
    let web = web.seed(1994).hosts(1).pages(10).gzip(false).start();
    let output = tempfile::tempdir()?;
    let dir = output.path().join("crawl");
    let seeds = vec![canonicalize(None, &web.url(0, "/"))?];
    let mut config = Config::new(ProductToken::new("consumer")?, "0.1", None, seeds, &dir);
    config.politeness.delay = Duration::from_millis(50);

    // The crawl ends when nothing is left, and the channel with it.
    let (pages, committed) = mpsc::channel(MAX_WAITING_PAGES);
    let controls = Controls {
        pages: Some(pages),
        ..Controls::unattended()
    };
    let consumer = std::thread::spawn(move || consume(&dir, committed));
    let summary = crawl_engine::run(config, controls).await?;

    let words = consumer.join().map_err(|_| "the consumer panicked")?;
    println!("{} pages, {words} words", summary.pages);
    match words {
        0 => Err("no page had a word".into()),
        _ => Ok(()),
    }
}

/// Takes pages until the crawl is over; the number of words in them.
///
/// A consumer that has to see each page once, whatever is killed, remembers how far it read
/// `pages.jsonl` in the crawl's directory instead: that file has the same rows.
fn consume(dir: &Path, mut committed: mpsc::Receiver<PageRow>) -> usize {
    let mut words = 0;
    while let Some(row) = committed.blocking_recv() {
        match count_words(dir, &row) {
            Some(count) => {
                println!("{count:>5} words  {}", row.url);
                words += count;
            }
            None => println!("    no text  {}", row.url),
        }
    }
    words
}

/// The words in the main text of a page; `None` for a redirect, an image, a failure.
fn count_words(dir: &Path, row: &PageRow) -> Option<usize> {
    // The row says where the answer stands in the archive.
    let record = read_place(dir, row.warc.as_ref()?, row.bytes).ok()?;
    // The body is kept as it came. This server compresses nothing; where one does
    // (Content-Encoding), `crawl_fetcher::decode` undoes it.
    let body = record.http()?.body;
    let content_type = row.content_type.as_deref();
    if row.status != Some(200) || !is_html(content_type, body) {
        return None;
    }
    let given = PageContext {
        content_type,
        ..PageContext::default()
    };
    let content = read_content(body, &given, &ContentLimits::default());
    Some(content.main_text().split_whitespace().count())
}
