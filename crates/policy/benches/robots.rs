//! How fast robots.txt files are read and asked, beside the other crates that do it.
//!
//! `ROBOTS_CORPUS` names a folder of robots.txt files; without it a small synthetic corpus
//! stands in. Each engine gets the same files (up to 500 KiB, and those that are UTF-8, since
//! one engine takes nothing else), the same agent and the same paths.
#![allow(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark reads what it measures, and reports it"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

use crawl_policy::{ProductToken, Profile, Robots};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

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

fn parse(text: &str) -> Robots {
    let agent = ProductToken::new(AGENT).expect("invariant: a token");
    Robots::parse(text.as_bytes(), &agent, Profile::Rfc9309)
}

/// Half of the paths come from the file's own rules, half from anywhere.
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

/// Rules and wildcards in about the shares that real files have.
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

/// Reading a file for one question, over the whole corpus.
fn one_shot(c: &mut Criterion, corpus: &[File]) {
    let mut group = c.benchmark_group("one_shot");
    let octets = corpus.iter().map(|file| file.text.len() as u64).sum();
    group.throughput(Throughput::Bytes(octets));
    group.bench_function("crawl-policy", |b| {
        b.iter(|| {
            let allowed = |file: &&File| parse(&file.text).judge(&file.paths[0]).is_allowed();
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.bench_function("robotxt", |b| {
        b.iter(|| {
            let allowed = |file: &&File| {
                robotxt::Robots::parse(file.text.as_bytes(), AGENT).is_allowed(&file.paths[0])
            };
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.bench_function("texting_robots", |b| {
        b.iter(|| {
            let allowed = |file: &&File| {
                texting_robots::Robot::new(AGENT, file.text.as_bytes())
                    .is_ok_and(|robot| robot.allowed(&file.paths[0]))
            };
            black_box(corpus.iter().filter(allowed).count())
        });
    });
    group.bench_function("robotstxt", |b| {
        b.iter(|| {
            black_box(
                corpus
                    .iter()
                    .filter(|f| robotstxt_allows(f, &f.paths[0]))
                    .count(),
            )
        });
    });
    group.finish();
}

/// This crate reads and asks in one, and fails on some files.
fn robotstxt_allows(file: &File, path: &str) -> bool {
    let url = format!("http://a.example{path}");
    std::panic::catch_unwind(|| {
        robotstxt::DefaultMatcher::default().one_agent_allowed_by_robots(&file.text, AGENT, &url)
    })
    .unwrap_or(false)
}

/// Asking files that have been read.
fn compiled(c: &mut Criterion, corpus: &[File]) {
    let mut group = c.benchmark_group("compiled");
    group.throughput(Throughput::Elements((corpus.len() * PATHS) as u64));
    let ours: Vec<_> = corpus.iter().map(|file| parse(&file.text)).collect();
    group.bench_function("crawl-policy", |b| {
        b.iter(|| {
            count(corpus, &ours, |robots, path| {
                robots.judge(path).is_allowed()
            })
        });
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
    let octets: usize = ours.iter().map(Robots::memory_octets).sum();
    let read: usize = corpus.iter().map(|file| file.text.len()).sum();
    let most = ours.iter().map(Robots::memory_octets).max();
    eprintln!(
        "memory: {} octets a compiled file, {:.2} per octet read, at most {}",
        octets / ours.len().max(1),
        octets as f64 / read as f64,
        most.unwrap_or_default(),
    );
}

fn count<R>(corpus: &[File], robots: &[R], allows: impl Fn(&R, &str) -> bool) -> usize {
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

/// A match does not cost more where there are more rules.
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
            let _ = (robots.judge(path), robots.judge(path));
            group.bench_function(BenchmarkId::new(name, count), |b| {
                b.iter(|| robots.judge(black_box(path)).is_allowed());
            });
        }
    }
    group.finish();
}

/// Half a megabyte of malice, read and asked three times with a path of 2000 octets.
fn hostile(c: &mut Criterion) {
    let mut group = c.benchmark_group("hostile");
    group.sample_size(10);
    let path = "/".to_owned() + &"a".repeat(1999);
    let long = "*a".repeat(8000);
    for (name, rules) in [
        (
            "stars",
            (0..31)
                .map(|n| format!("Disallow: /{long}{n}\n"))
                .collect::<String>(),
        ),
        (
            "short",
            format!("Disallow: /{}b\n", "a*".repeat(20)).repeat(10_000),
        ),
        (
            "rules",
            (0..25_000)
                .map(|n| format!("Disallow: /*{n:05}x\n"))
                .collect(),
        ),
        (
            "runs",
            (1..1000)
                .map(|n| format!("Disallow: /*{}b\n", "a".repeat(n)))
                .collect(),
        ),
        (
            "stairs",
            (1..1000)
                .map(|n| format!("Disallow: /*{}*b\n", "a".repeat(n)))
                .collect(),
        ),
        (
            "pairs",
            (0..25_000)
                .map(|n| {
                    format!(
                        "Disallow: /*{}*{}c\n",
                        "a".repeat(n % 150 + 1),
                        "a".repeat(n / 150)
                    )
                })
                .collect(),
        ),
    ] {
        let mut text = "User-agent: *\n".to_owned() + &rules;
        text.truncate(500 * 1024);
        group.bench_function(BenchmarkId::new(name, "crawl-policy"), |b| {
            b.iter_batched(
                || (),
                |()| {
                    let robots = parse(&text);
                    (0..3).filter(|_| robots.judge(&path).is_allowed()).count()
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(BenchmarkId::new(name, "robotxt"), |b| {
            b.iter(|| {
                let robots = robotxt::Robots::parse(text.as_bytes(), AGENT);
                (0..3).filter(|_| robots.is_allowed(&path)).count()
            });
        });
    }
    group.finish();
}

fn all(c: &mut Criterion) {
    let corpus = corpus();
    // One engine panics on some files; its reports would drown the figures.
    std::panic::set_hook(Box::new(|_| {}));
    one_shot(c, &corpus);
    compiled(c, &corpus);
    sizes(c);
    hostile(c);
}

criterion_group!(benches, all);
criterion_main!(benches);
