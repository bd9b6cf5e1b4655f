//! A crawl as a stream of pages: crawls a small web on loopback and counts the words of each page's
//! main text.
//!
//! `cargo run --release --example page_consumer`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::time::Duration;

use crawl::{Crawl, CrawlError};

#[tokio::main]
async fn main() -> Result<(), CrawlError> {
    // A web to crawl, on loopback. A public site also needs `contact`.
    let web = crawl_testweb::TestWeb::builder().hosts(1).pages(10).start();

    let mut pages = Crawl::new(web.url(0, "/"))
        .delay(Duration::from_millis(50))
        .run();
    while let Some(page) = pages.next().await {
        let page = page?;
        let words = page.text().map(|text| text.split_whitespace().count());
        println!("{:>5} words  {}", words.unwrap_or_default(), page.url());
    }
    Ok(())
}
