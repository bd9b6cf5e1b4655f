//! Reading a page, against the bare tokenizer: what our own part costs.
//!
//! `cargo bench -p crawl-extractor` prints the times, and the ratio at the end.

#![expect(clippy::print_stdout, reason = "the ratio is what the program is for")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use crawl_extractor::{Limits, read_html};
use criterion::{Criterion, Throughput, criterion_group};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// A sink that drops everything.
struct Drop;

impl TokenSink for Drop {
    type Handle = ();

    fn process_token(&self, _token: Token, _line: u64) -> TokenSinkResult<()> {
        TokenSinkResult::Continue
    }
}

fn bare(html: &str) {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(Drop, TokenizerOpts::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
}

fn ours(html: &str) -> usize {
    let page = read_html(
        html.as_bytes(),
        Some("text/html; charset=utf-8"),
        &Limits::default(),
    );
    page.links.len()
}

/// A page such as documentation has: a head, a menu, prose with links, code, a table.
fn page() -> String {
    let mut html = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page</title>\
         <link rel=\"stylesheet\" href=\"/style.css\"></head>\n<body class=\"doc\">\n",
    );
    for section in 0..200 {
        html.push_str(&format!(
            "<div class=\"section\" id=\"s{section}\">\n<h2>Section {section}<a class=\"headerlink\" \
             href=\"#s{section}\">&para;</a></h2>\n<p>The words of a paragraph go on for a line or \
             two, with <code class=\"literal\"><span class=\"pre\">code</span></code> and a <a \
             class=\"reference internal\" href=\"../part/page-{section}.html\" title=\"A title\">\
             <em>link</em> to another page</a>, &amp; then some more words that end it.</p>\n\
             <pre><span class=\"k\">fn</span> <span class=\"nf\">name</span>() {{ }}</pre>\n\
             <table><tr><td>one</td><td>two</td></tr></table></div>\n"
        ));
    }
    html.push_str("<script>let x = '<a href=no>';</script></body></html>\n");
    html
}

fn compare(criterion: &mut Criterion) {
    let html = page();
    let mut group = criterion.benchmark_group("html");
    group.throughput(Throughput::Bytes(html.len() as u64));
    group.bench_function("bare_tokenizer", |bencher| {
        bencher.iter(|| bare(black_box(&html)));
    });
    group.bench_function("read_html", |bencher| {
        bencher.iter(|| ours(black_box(&html)));
    });
    group.finish();
}

/// Input made to hurt: the time is that of any input, within a factor, and linear.
fn endure(criterion: &mut Criterion) {
    const BYTES: usize = 1 << 20;
    let repeat = |part: &str| part.repeat(BYTES / part.len());
    let attributes: String = ('\u{4e00}'..)
        .take(BYTES / 4)
        .flat_map(|letter| [' ', letter])
        .collect();
    let mut group = criterion.benchmark_group("hostile");
    group
        .throughput(Throughput::Bytes(BYTES as u64))
        .sample_size(10);
    for (name, html) in [
        ("one_tag_of_attributes", format!("<a{attributes}>")),
        (
            "tags_of_1000_attributes",
            repeat(&format!("<a{}>", &attributes[..4_000])),
        ),
        ("nul", repeat("\0")),
        ("less_than", repeat("<")),
        ("open_references", repeat("&a")),
        ("nested_anchors", repeat("<a href=x>")),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| ours(black_box(&html)));
        });
    }
    group.finish();
}

/// The least time of several runs, one of each in turn so that both meet the same noise.
fn ratio() -> f64 {
    let html = page();
    let time = |run: &dyn Fn()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let (mut least_bare, mut least_ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..300 {
        least_bare = least_bare.min(time(&|| bare(black_box(&html))));
        least_ours = least_ours.min(time(&|| {
            black_box(ours(black_box(&html)));
        }));
    }
    least_ours.as_secs_f64() / least_bare.as_secs_f64()
}

criterion_group!(benches, compare, endure);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    println!("read_html takes {:.2} times the bare tokenizer", ratio());
}
