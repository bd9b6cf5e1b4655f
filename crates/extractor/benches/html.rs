//! Benchmarks how fast a page is read, compared with html5ever's tokenizer.
//!
//! `cargo bench -p crawl-extractor --bench html` prints the times, and then how fast each part is
//! relative to html5ever. If `CRAWL_PYTHON_DOC` is set (as `cargo xtask test` does), the ratios are
//! for real pages. With the arguments `-- --once PART`, it reads each page exactly once, for a tool
//! that counts instructions.

#![expect(
    clippy::print_stdout,
    reason = "the ratios are what the program is for"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures time, and its pages lie in files"
)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use crawl_extractor::{
    ContentLimits, PageContext, ReadingLimits, read_html, read_page, walk_tokens,
};
use criterion::{Criterion, Throughput, criterion_group};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

const CONTENT_TYPE: Option<&str> = Some("text/html; charset=utf-8");

/// A token sink that ignores all tokens.
struct Drop;

impl TokenSink for Drop {
    type Handle = ();

    fn process_token(&self, _token: Token, _line: u64) -> TokenSinkResult<()> {
        TokenSinkResult::Continue
    }
}

fn html5ever(html: &str) {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(Drop, TokenizerOpts::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
}

fn ours(html: &str) -> usize {
    let page = read_html(html.as_bytes(), CONTENT_TYPE, &ReadingLimits::default());
    page.links.len()
}

fn with_content(html: &str) -> usize {
    let context = PageContext {
        content_type: CONTENT_TYPE,
        ..PageContext::default()
    };
    let limits = (ReadingLimits::default(), ContentLimits::default());
    let (page, content) = read_page(html.as_bytes(), &context, &limits.0, &limits.1);
    page.links.len() + content.blocks.len()
}

/// Returns a typical documentation page: a head, a menu, prose with links, code, a table.
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
    group.bench_function("html5ever_tokenizer", |bencher| {
        bencher.iter(|| html5ever(black_box(&html)));
    });
    group.bench_function("our_tokenizer", |bencher| {
        bencher.iter(|| walk_tokens(black_box(&html)));
    });
    group.bench_function("read_html", |bencher| {
        bencher.iter(|| ours(black_box(&html)));
    });
    group.bench_function("read_page", |bencher| {
        bencher.iter(|| with_content(black_box(&html)));
    });
    group.finish();
}

/// Measures the time for 1 MiB of adversarial input, which should take no more than a few times as
/// long as ordinary input of that length.
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

/// Returns up to 300 pages of real documentation, of all sizes. Without such documentation, returns
/// one typical page.
fn real_pages() -> Vec<String> {
    const PAGES: usize = 300;
    let Some(folder) = std::env::var_os("CRAWL_PYTHON_DOC") else {
        return vec![page()];
    };
    let mut paths = Vec::new();
    let mut folders = vec![Path::new(&folder).to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "html") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let step = paths.len().div_ceil(PAGES).max(1);
    let pages = paths.into_iter().step_by(step).map(std::fs::read_to_string);
    pages.filter_map(Result::ok).collect()
}

type Run = (&'static str, fn(&str));

/// The parts of the extractor whose times are compared.
const RUNS: [Run; 4] = [
    ("html5ever", html5ever),
    ("our_tokenizer", walk_tokens),
    ("read_html", |html| {
        black_box(ours(html));
    }),
    ("read_page", |html| {
        black_box(with_content(html));
    }),
];

/// Runs a part over all pages.
#[inline(never)]
fn run_over(pages: &[String], run: fn(&str)) {
    pages.iter().for_each(|html| run(black_box(html)));
}

/// Prints how fast each part is, relative to the first part. The time of a part is the minimum over
/// several runs, each over all pages. The parts take turns, so that noise affects all parts.
fn ratios() {
    const TIMES: usize = 15;
    let pages = real_pages();
    let bytes: usize = pages.iter().map(String::len).sum();
    let mut least = [Duration::MAX; 4];
    for _ in 0..TIMES {
        for ((_, run), least) in RUNS.iter().zip(&mut least) {
            let start = Instant::now();
            run_over(&pages, *run);
            *least = start.elapsed().min(*least);
        }
    }
    println!("{} pages, {bytes} bytes", pages.len());
    for ((name, _), time) in RUNS.iter().zip(least) {
        let micros = time.as_secs_f64() * 1e6 / pages.len() as f64;
        let times = least[0].as_secs_f64() / time.as_secs_f64();
        println!("{name}: {micros:.1} us a page, {times:.2} times as fast as the first");
    }
}

criterion_group!(benches, compare, endure);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--once") {
        let part = arguments.get(at + 1);
        let run = RUNS
            .iter()
            .find(|(name, _)| part.is_some_and(|part| part == name));
        let (_, run) = run.expect("--once is followed by the name of a part");
        return run_over(&real_pages(), *run);
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
    ratios();
}
