//! Measures how fast this crate and other crates parse robots.txt files and match paths.
//!
//! `ROBOTS_CORPUS` names a folder of robots.txt files. Without it, a small synthetic corpus is
//! used. Every crate gets the same files, the same agent and the same paths. Files have up to 500
//! KiB and are in UTF-8, because one crate accepts only UTF-8.
#![allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark reads what it measures, and reports it"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

use crawl_policy::{AgentRules, ProductToken, RequestPath, RobotsProfile};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const AGENT: &str = "ExampleBot";
const PATHS: usize = 20;

struct File {
    text: String,
    paths: Vec<String>,
}

impl File {
    fn new(text: String) -> File {
        let paths = paths(&text);
        File { text, paths }
    }
}

fn parse(text: &str) -> AgentRules {
    let agent = ProductToken::new(AGENT).expect("invariant: a token");
    AgentRules::parse(text.as_bytes(), &agent, RobotsProfile::Rfc9309)
}

fn allows(rules: &AgentRules, path: &str) -> bool {
    let path = RequestPath::new(path).expect("invariant: a path");
    rules.judge_path(&path).is_allowed()
}

/// Returns paths to match: half from the file's own rules, half from a fixed list.
fn paths(text: &str) -> Vec<String> {
    let anywhere = [
        "/",
        "/index.html",
        "/products/1234/a-long-name-of-a-thing?ref=home&sort=asc",
        "/wp-admin/admin-ajax.php",
        "/search?q=robots+exclusion",
        "/about/contact",
        "/en/news/2026/11/20/a-headline-with-words.html",
        "/images/logo.png",
        "/user/login?destination=node/1",
        "/a/b/c/d/e/f/g",
    ];
    let own = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(_, value)| value.trim())
        .filter(|value| value.starts_with('/') && value.is_ascii())
        .map(|value| value.replace(['*', '$'], "") + "x");
    let mut paths: Vec<_> = own.step_by(3).take(PATHS / 2).collect();
    let more = PATHS - paths.len();
    paths.extend(anywhere.iter().cycle().take(more).map(|&p| p.to_owned()));
    paths
}

fn corpus() -> Vec<File> {
    let Ok(folder) = std::env::var("ROBOTS_CORPUS") else {
        return (0..200).map(|seed| File::new(synthetic(seed))).collect();
    };
    let mut files: Vec<_> = std::fs::read_dir(Path::new(&folder))
        .expect("ROBOTS_CORPUS is a folder")
        .filter_map(|entry| std::fs::read(entry.ok()?.path()).ok())
        .filter(|file| file.len() <= 500 * 1024)
        .filter_map(|file| String::from_utf8(file).ok())
        .filter(|text| !text.contains('\0'))
        .collect();
    files.sort();
    files.into_iter().map(File::new).collect()
}

/// Generates rules and wildcards in about the proportions of real files.
fn synthetic(seed: usize) -> String {
    let mut text = String::from("# robots.txt\nUser-agent: OtherBot\nDisallow: /\n\n");
    text += "User-agent: *\nCrawl-delay: 10\n";
    for n in 0..(seed * seed) % 97 + 3 {
        let _ = match (seed + n) % 5 {
            0 => writeln!(text, "Disallow: /*?sort={n}"),
            1 => writeln!(text, "Allow: /folder{n}/open$"),
            _ => writeln!(text, "Disallow: /folder{n}/part-{seed}/"),
        };
    }
    text + "\nSitemap: https://www.example.org/sitemap.xml\n"
}

/// Returns classes of files: the whole corpus, and then its files grouped by size.
fn classes(corpus: &[File]) -> Vec<(&'static str, Vec<&File>)> {
    let class = |name, from: usize, to: usize| {
        let within = |file: &&File| (from..to).contains(&file.text.len());
        (name, corpus.iter().filter(within).collect::<Vec<_>>())
    };
    let classes = vec![
        class("all", 0, usize::MAX),
        class("small", 0, 1024),
        class("middle", 1024, 8 * 1024),
        class("large", 8 * 1024, usize::MAX),
    ];
    let filled = classes.into_iter().filter(|(_, files)| !files.is_empty());
    filled.collect()
}

/// Parses a file and matches one path.
fn one_shot(c: &mut Criterion, class: &str, corpus: &[&File]) {
    let mut group = c.benchmark_group(format!("one_shot/{class}"));
    let bytes = corpus.iter().map(|file| file.text.len() as u64).sum();
    group.throughput(Throughput::Bytes(bytes));
    let agent = ProductToken::new(AGENT).expect("invariant: a token");
    group.bench_function("crawl-policy", |b| {
        b.iter(|| {
            let read = |file: &File| {
                AgentRules::parse(file.text.as_bytes(), &agent, RobotsProfile::Rfc9309)
            };
            let allowed = |file: &&&File| allows(&read(file), &file.paths[0]);
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.bench_function("robotxt", |b| {
        b.iter(|| {
            let allowed = |file: &&&File| {
                robotxt::Robots::parse(file.text.as_bytes(), AGENT).is_allowed(&file.paths[0])
            };
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.bench_function("texting_robots", |b| {
        b.iter(|| {
            let allowed = |file: &&&File| {
                texting_robots::Robot::new(AGENT, file.text.as_bytes())
                    .is_ok_and(|robot| robot.allowed(&file.paths[0]))
            };
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.bench_function("robotstxt", |b| {
        b.iter(|| {
            let allowed = |file: &&&File| robotstxt_allows(file, &file.paths[0]);
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.finish();
}

/// Matches with the crate `robotstxt`, which parses and matches in one call and panics on some
/// files.
fn robotstxt_allows(file: &File, path: &str) -> bool {
    let url = format!("http://a.example{path}");
    std::panic::catch_unwind(|| {
        robotstxt::DefaultMatcher::default().one_agent_allowed_by_robots(&file.text, AGENT, &url)
    })
    .unwrap_or(false)
}

/// Matches twenty paths against each parsed file before the next file.
fn compiled(c: &mut Criterion, class: &str, corpus: &[&File]) {
    let mut group = c.benchmark_group(format!("compiled/{class}"));
    group.throughput(Throughput::Elements((corpus.len() * PATHS) as u64));
    let ours: Vec<_> = corpus.iter().map(|file| parse(&file.text)).collect();
    report_memory(class, corpus, &ours);
    group.bench_function("crawl-policy", |b| {
        b.iter(|| count(corpus, &ours, allows));
    });
    let theirs: Vec<_> = corpus
        .iter()
        .map(|file| robotxt::Robots::parse(file.text.as_bytes(), AGENT))
        .collect();
    group.bench_function("robotxt", |b| {
        b.iter(|| count(corpus, &theirs, robotxt::Robots::is_allowed));
    });
    let texting: Vec<_> = corpus
        .iter()
        .map(|file| texting_robots::Robot::new(AGENT, file.text.as_bytes()).ok())
        .collect();
    group.bench_function("texting_robots", |b| {
        b.iter(|| {
            count(corpus, &texting, |robot, path| {
                robot.as_ref().is_none_or(|robot| robot.allowed(path))
            })
        });
    });
    group.finish();
}

fn report_memory(class: &str, corpus: &[&File], robots: &[AgentRules]) {
    let bytes: usize = robots.iter().map(AgentRules::memory_bytes).sum();
    let read: usize = corpus.iter().map(|file| file.text.len()).sum();
    let max = robots.iter().map(AgentRules::memory_bytes).max();
    eprintln!(
        "memory, {class}: {} bytes a compiled file, {:.2} per byte read, at most {}",
        bytes / robots.len().max(1),
        bytes as f64 / read as f64,
        max.unwrap_or_default(),
    );
}

fn count<R>(corpus: &[&File], robots: &[R], allows: impl Fn(&R, &str) -> bool) -> usize {
    let pairs = corpus.iter().zip(robots);
    pairs
        .map(|(file, robots)| {
            file.paths
                .iter()
                .filter(|path| allows(robots, path))
                .count()
        })
        .sum()
}

/// Measures how the cost of a match depends on the number of rules and on the position of their
/// wildcards.
fn sizes(c: &mut Criterion) {
    let mut group = c.benchmark_group("rules");
    for count in [50, 50_000] {
        for (name, rule) in [
            (
                "plain",
                (|n| format!("Disallow: /d{n}/\n")) as fn(usize) -> String,
            ),
            ("middle", |n| format!("Disallow: /d{n}/*/x\n")),
            ("stars", |n| format!("Disallow: /*{n:05}x\n")),
            ("ends", |n| format!("Disallow: /*.e{n}$\n")),
        ] {
            let text = (0..count).map(rule).collect::<String>();
            let robots = parse(&("User-agent: *\n".to_owned() + &text));
            let path = "/d25000/some/page/of/a/site.html?with=12345&more=words";
            group.bench_function(BenchmarkId::new(name, count), |b| {
                b.iter(|| allows(&robots, black_box(path)));
            });
        }
    }
    group.finish();
}

/// Returns hostile files, each with half a megabyte of rules.
fn malice() -> Vec<(&'static str, String)> {
    let lines = |count: usize, rule: &dyn Fn(usize) -> String| {
        let mut text = "User-agent: *\n".to_owned();
        for n in 1..=count {
            let _ = writeln!(text, "Disallow: /{}", rule(n));
        }
        text.truncate(500 * 1024);
        text
    };
    let a = |n: usize| "a".repeat(n);
    let long = "*a".repeat(8000);
    vec![
        ("stars", lines(31, &|n| format!("{long}{n}"))),
        ("short", lines(10_000, &|_| "a*".repeat(20) + "b")),
        ("rules", lines(25_000, &|n| format!("*{n:05}x"))),
        ("runs", lines(999, &|n| format!("*{}b", a(n)))),
        ("stairs", lines(999, &|n| format!("*{}*b", a(n)))),
        (
            "triples",
            lines(30_000, &|n| {
                let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
                let (x, y) = (letter(n), letter(n / 26));
                let (z, w) = (letter(n / 7), letter(n / 50));
                format!("*{x}{y}*{z}{w}*abc")
            }),
        ),
        ("walls", lines(999, &|n| format!("*b*z*{}", a(n)))),
        (
            "pairs",
            lines(25_000, &|n| format!("*{}*{}c", a(n % 150 + 1), a(n / 150))),
        ),
    ]
}

/// Benchmarks hostile files: parsing with three matches, and matching alone. The path has 2000
/// bytes and contains all bytes of the rules.
fn hostile(c: &mut Criterion) {
    let path = "/0123456789xzcb".to_owned() + &"a".repeat(1985);
    for (name, text) in malice() {
        let mut group = c.benchmark_group(format!("hostile/{name}"));
        group.sample_size(10);
        group.bench_function("crawl-policy", |b| {
            b.iter(|| {
                let robots = parse(&text);
                (0..3).filter(|_| allows(&robots, &path)).count()
            });
        });
        group.bench_function("robotxt", |b| {
            b.iter(|| {
                let robots = robotxt::Robots::parse(text.as_bytes(), AGENT);
                (0..3).filter(|_| robots.is_allowed(&path)).count()
            });
        });
        let ours = parse(&text);
        group.bench_function("asked/crawl-policy", |b| {
            b.iter(|| allows(&ours, &path));
        });
        let theirs = robotxt::Robots::parse(text.as_bytes(), AGENT);
        group.bench_function("asked/robotxt", |b| b.iter(|| theirs.is_allowed(&path)));
        group.finish();
    }
}

fn all(c: &mut Criterion) {
    let corpus = corpus();
    // Hide panic messages: one of the other crates panics on some files, and its messages would
    // bury the results.
    std::panic::set_hook(Box::new(|_| {}));
    for (class, files) in classes(&corpus) {
        one_shot(c, class, &files);
        compiled(c, class, &files);
    }
    sizes(c);
    hostile(c);
}

criterion_group!(benches, all);
criterion_main!(benches);
