//! Runs `crawl conformance` over this crawler and others, and writes the tables of
//! `docs/conformance.md`.
//!
//! Each crawler gets its politest flags: one request at a time, a gap of 200 ms, its name and a
//! contact. Crawlers from Debian packages are unpacked under `target/`; all others are built or
//! installed there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask::debian_packages::{self, DebianPackageFolder};
use xtask::pinned_tools::{self, CratesIoProgram};
use xtask::workspace::{self, Workspace};

/// Arguments of `cargo xtask conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these crawlers, and keep the earlier results of the others
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Run nothing, and write the page from earlier results
    #[arg(long)]
    page: bool,
}

/// Flags of `crawl conformance` for every crawler.
const CHECK: &str = "--gap 200ms --timeout 25s --jobs 6 --format json";

/// The page with the tables.
const PAGE: &str = "docs/conformance.md";
/// The line before the tables. Everything after this line is generated.
const MARK: &str = "<!-- Below: `cargo xtask conformance` -->\n";

/// Where a crawler comes from.
#[derive(Clone, Copy)]
enum CrawlerSource {
    /// This workspace.
    Ours,
    /// A Debian package: its name, and the program's path in it.
    Debian(&'static str, &'static str),
    /// A program from a Python package of `requirements-conformance.txt`.
    Python(&'static str),
    /// A script that runs Scrapy.
    Scrapy(&'static str),
    /// A script of ours that uses a package of `NPM_PACKAGES`, or a script in such a package.
    Node(&'static str),
    /// A package on crates.io: its name, its version and its program.
    Cargo(&'static str, &'static str, &'static str),
}

/// A crawler and its politest flags.
struct ComparedCrawler {
    name: &'static str,
    /// Two letters that identify the crawler in the table of clauses.
    short: &'static str,
    version: &'static str,
    source: CrawlerSource,
    token: &'static str,
    /// Further arguments of `crawl conformance` for this crawler, in addition to [`CHECK`].
    again: &'static str,
    /// Arguments of the crawler. A `_` within a word stands for a space, and `{files}` for the
    /// folder of the scripts.
    flags: &'static str,
}

const NPM_PACKAGES: [&str; 4] = [
    "@crawlee/cheerio@3.18.1",
    "linkinator@7.6.1",
    "simplecrawler@1.1.9",
    "website-scraper@6.0.0",
];

const PEERS: [ComparedCrawler; 14] = [
    ComparedCrawler {
        name: "crawl",
        short: "cr",
        version: env!("CARGO_PKG_VERSION"),
        source: CrawlerSource::Ours,
        token: "crawl",
        again: "--again=--recrawl --again=--revisit-most --again=1s",
        flags: "{url} --output {dir}/crawl --quiet --delay 200ms --contact https://bot.example/ --scope any \
                --allow-private --resources all --first-byte-timeout 3s --timeout 8s --retries 1 --robots-retry 1s",
    },
    ComparedCrawler {
        name: "wget",
        short: "wg",
        version: "1.21.3",
        source: CrawlerSource::Debian("wget", "usr/bin/wget"),
        token: "Wget",
        again: "",
        flags: "--recursive --level=inf --page-requisites --span-hosts --wait=0.2 --tries=2 --timeout=8 \
                --timestamping --no-verbose --header=From:_bot@example.org --directory-prefix={dir} {url}",
    },
    ComparedCrawler {
        name: "wget2",
        short: "w2",
        version: "1.99.1",
        source: CrawlerSource::Debian("wget2", "usr/bin/wget2"),
        token: "Wget2",
        again: "",
        flags: "--recursive --level=inf --page-requisites --span-hosts --max-threads=1 --wait=0.2 --tries=2 \
                --timeout=8 --timestamping --no-verbose --header=From:_bot@example.org --directory-prefix={dir} {url}",
    },
    ComparedCrawler {
        name: "HTTrack",
        short: "ht",
        version: "3.49.4",
        source: CrawlerSource::Debian("httrack", "usr/bin/httrack"),
        token: "HTTrack",
        again: "--again=--update",
        flags: "{url} -O {dir} --quiet --robots=2 --sockets=1 --connection-per-second=5 --max-rate=0 --timeout=8 \
                --retries=1 --go-everywhere --user-agent HTTrack/3.49_(+https://bot.example/)",
    },
    ComparedCrawler {
        name: "LinkChecker",
        short: "lc",
        version: "10.6.0",
        source: CrawlerSource::Python("linkchecker"),
        token: "LinkChecker",
        again: "",
        flags: "--config={files}/linkchecker.ini --no-status --output=none {url}",
    },
    ComparedCrawler {
        name: "W3C checklink",
        short: "w3",
        version: "5.0.0",
        source: CrawlerSource::Debian("w3c-linkchecker", "usr/bin/checklink"),
        token: "W3C-checklink",
        again: "",
        flags: "--quiet --recursive --sleep 1 --timeout 8 {url}",
    },
    ComparedCrawler {
        name: "Scrapy",
        short: "sc",
        version: "2.19.0",
        source: CrawlerSource::Scrapy("scrapy_site.py"),
        token: "scrapybot",
        again: "",
        flags: "{url} {dir}",
    },
    ComparedCrawler {
        name: "Crawlee",
        short: "ce",
        version: "3.18.1",
        source: CrawlerSource::Node("crawlee.mjs"),
        token: "crawleebot",
        again: "",
        flags: "{url}",
    },
    ComparedCrawler {
        name: "simplecrawler",
        short: "si",
        version: "1.1.9",
        source: CrawlerSource::Node("simplecrawler.cjs"),
        token: "simplecrawler",
        again: "",
        flags: "{url}",
    },
    ComparedCrawler {
        name: "website-scraper",
        short: "ws",
        version: "6.0.0",
        source: CrawlerSource::Node("website-scraper.mjs"),
        token: "website-scraper",
        again: "",
        flags: "{url} {dir}",
    },
    ComparedCrawler {
        name: "linkinator",
        short: "li",
        version: "7.6.1",
        source: CrawlerSource::Node("node_modules/linkinator/build/src/cli.js"),
        token: "linkinator",
        again: "",
        flags: "{url} --recurse --concurrency 1 --timeout 8000 --user-agent linkinator/7.6.1_(+https://bot.example/)",
    },
    ComparedCrawler {
        name: "lychee",
        short: "ly",
        version: "0.24.2",
        source: CrawlerSource::Python("lychee"),
        token: "lychee",
        again: "",
        flags: "--no-progress --max-concurrency 1 --host-concurrency 1 --host-request-interval 200ms --max-retries 1 \
                --timeout 8 --user-agent lychee/0.24.2_(+https://bot.example/) {url}",
    },
    ComparedCrawler {
        name: "SiteOne",
        short: "so",
        version: "2.5.1",
        source: CrawlerSource::Cargo("siteone-crawler", "2.5.1", "siteone-crawler"),
        token: "SiteOne-Crawler",
        again: "",
        flags: "--url={url} --workers=1 --max-reqs-per-sec=5 --allowed-domain-for-crawling=* \
                --allowed-domain-for-external-files=* --user-agent=SiteOne-Crawler/2.5.1_(+https://bot.example/)! \
                --timeout=8 --http-cache-dir={dir}/cache --output-html-report= --hide-progress-bar --no-color",
    },
    ComparedCrawler {
        name: "spider",
        short: "sp",
        version: "2.53.9",
        source: CrawlerSource::Cargo("spider_cli", "2.53.9", "spider"),
        token: "spider",
        again: "",
        // `--sync` would set a delay of one millisecond. Without `--output-links`, nothing is
        // fetched.
        flags: "--http --url {url} --respect-robots-txt --delay 200 --agent spider/2.53.9_(+https://bot.example/) \
                --external-domains * crawl --output-links",
    },
];

/// Runs the crawlers and writes the page.
///
/// # Errors
/// Fails if a crawler can't be fetched or its run ends without a report.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if let Some(name) = args
        .only
        .iter()
        .find(|name| PEERS.iter().all(|peer| peer.name != **name))
    {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        bail!(
            "there is no crawler {name}\nhint: one of {}",
            names.join(", ")
        );
    }
    let results = workspace.target.join("conformance/results");
    std::fs::create_dir_all(&results)?;
    let is_wanted = |peer: &&ComparedCrawler| {
        args.only.is_empty() || args.only.iter().any(|name| name == peer.name)
    };
    if !args.page {
        workspace::run(&mut workspace.cargo(&[
            "build",
            "--package",
            "crawl",
            "--bin",
            "crawl",
            "--locked",
        ]))?;
        for peer in PEERS.iter().filter(is_wanted) {
            eprintln!("\n==== {} ====", peer.name);
            let report = peer
                .check(workspace)
                .with_context(|| format!("{} failed", peer.name))?;
            std::fs::write(results.join(peer.name), report)?;
        }
    }
    write_page(workspace, &results)
}

impl ComparedCrawler {
    /// Runs `crawl conformance` over this crawler and returns the report in JSON.
    fn check(&self, workspace: &Workspace) -> Result<Vec<u8>> {
        let files = workspace.target.join("conformance/files");
        pinned_tools::conformance_files(workspace, &files)?;
        let mut command = workspace.program(ours(workspace));
        command
            .arg("conformance")
            .args(CHECK.split(' '))
            .args(["--token", self.token]);
        command.args(self.again.split_whitespace()).arg("--");
        self.add_program(workspace, &files, &mut command)?;
        let files = files.display().to_string();
        let words = self.flags.split_whitespace();
        command.args(words.map(|word| word.replace('_', " ").replace("{files}", &files)));
        let output = command.stderr(Stdio::inherit()).output()?;
        match output.status.code() {
            // Exit code 4 means that some clauses failed.
            Some(0 | 4) => Ok(output.stdout),
            _ => bail!("crawl conformance ended with {}", output.status),
        }
    }

    /// Adds the program that starts the crawler, with its first arguments, and sets the environment
    /// variables that the crawler needs.
    fn add_program(
        &self,
        workspace: &Workspace,
        files: &Path,
        command: &mut Command,
    ) -> Result<()> {
        match self.source {
            CrawlerSource::Ours => {
                command.arg(ours(workspace));
            }
            CrawlerSource::Debian(package, program) => {
                let root = DebianPackageFolder::of(workspace).unpack_whole(package)?;
                let program = root.join(program);
                command.env("LD_LIBRARY_PATH", debian_packages::libraries(&root)?);
                command.env("W3C_CHECKLINK_CFG", files.join("checklink.conf"));
                if package == "w3c-linkchecker" {
                    // The script runs Perl in taint mode (`-T`), which ignores PERL5LIB, so pass
                    // its folders as arguments.
                    command.args([root.join("usr/bin/perl").as_os_str(), "-T".as_ref()]);
                    for folder in debian_packages::perl_folders(&root)? {
                        command.arg("-I").arg(folder);
                    }
                }
                command.arg(program);
            }
            CrawlerSource::Python(program) => {
                command.arg(
                    pinned_tools::conformance_python(workspace)?
                        .join("bin")
                        .join(program),
                );
            }
            CrawlerSource::Scrapy(script) => {
                command
                    .arg(pinned_tools::scrapy(workspace)?.join("bin/python"))
                    .arg(files.join(script));
            }
            CrawlerSource::Cargo(package, version, program) => {
                let wanted = CratesIoProgram {
                    package,
                    version,
                    program,
                    args: &["--debug"],
                };
                command.arg(pinned_tools::cargo_program(workspace, &wanted)?);
            }
            CrawlerSource::Node(script) => {
                pinned_tools::conformance_node(workspace, files, &NPM_PACKAGES)?;
                let node = pinned_tools::node_program(workspace, "node");
                command.arg(node.get_program()).args(node.get_args());
                command.arg(files.join(script));
            }
        }
        Ok(())
    }
}

fn ours(workspace: &Workspace) -> PathBuf {
    workspace.target.join("debug/crawl")
}

/// Replaces the tables of the page with tables of the results.
fn write_page(workspace: &Workspace, results: &Path) -> Result<()> {
    let mut reports = Vec::new();
    for peer in &PEERS {
        let path = results.join(peer.name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("no result of {}\nhint: run it first", peer.name))?;
        reports.push((peer, serde_json::from_str(&text)?));
    }
    let page = workspace.root.join(PAGE);
    let text = std::fs::read_to_string(&page)?;
    let (head, _) = text
        .split_once(MARK)
        .with_context(|| format!("{PAGE} has no line {MARK}"))?;
    std::fs::write(&page, format!("{head}{MARK}{}", tables(&reports)))?;
    Ok(())
}

fn tables(reports: &[(&ComparedCrawler, Value)]) -> String {
    let mut text = String::from(
        "\n| crawler | version | code | passed | failed | not shown | failed MUST |\n|---|---|---|---|---|---|---|\n",
    );
    for (peer, report) in reports {
        let counts = &report["counts"];
        let clauses = report["clauses"].as_array().map_or(&[][..], Vec::as_slice);
        let must = clauses
            .iter()
            .filter(|clause| clause["level"] == "must" && clause["outcome"] == "fail")
            .count();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {must} |",
            peer.name,
            peer.version,
            peer.short,
            counts["passed"],
            counts["failed"],
            counts["not_shown"]
        );
    }
    text + &failed_clauses(reports)
}

/// Returns the table of the clauses that at least one crawler failed.
fn failed_clauses(reports: &[(&ComparedCrawler, Value)]) -> String {
    let mut rows: Vec<ClauseRow> = Vec::new();
    for (peer, report) in reports {
        for clause in report["clauses"].as_array().into_iter().flatten() {
            let text = |key: &str| clause[key].as_str().unwrap_or_default().to_owned();
            let id = text("id");
            let position = rows.iter().position(|row| row.id == id);
            let index = position.unwrap_or_else(|| {
                rows.push(ClauseRow {
                    id,
                    level: text("level"),
                    failed: Vec::new(),
                    not_shown: Vec::new(),
                });
                rows.len() - 1
            });
            match clause["outcome"].as_str() {
                Some("pass") => {}
                Some("fail") => rows[index].failed.push(peer.short),
                _ => rows[index].not_shown.push(peer.short),
            }
        }
    }
    let mut text = String::from(
        "\nThe clauses that at least one crawler fails. A crawler that isn't in a row passed its clause.\n\n\
         | clause | level | failed | not shown |\n|---|---|---|---|\n",
    );
    for row in rows.iter().filter(|row| !row.failed.is_empty()) {
        let _ = write!(
            text,
            "| {} | {} | {} |",
            row.id,
            row.level,
            row.failed.join(" ")
        );
        match row.not_shown.as_slice() {
            [] => text.push_str(" |\n"),
            not_shown => {
                let _ = writeln!(text, " {} |", not_shown.join(" "));
            }
        }
    }
    text
}

/// A clause, with the abbreviations of the crawlers that did not pass it.
struct ClauseRow {
    id: String,
    level: String,
    failed: Vec<&'static str>,
    not_shown: Vec<&'static str>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PEERS, failed_clauses};

    #[test]
    fn a_clause_that_a_crawler_failed_names_the_crawlers_that_did_not_pass_it() {
        let report = |star: &str, gap: &str| {
            json!({"clauses": [
                {"id": "star", "level": "must", "outcome": star},
                {"id": "gap", "level": "custom", "outcome": gap},
            ]})
        };
        let reports = [
            (&PEERS[0], report("pass", "pass")),
            (&PEERS[1], report("fail", "not_shown")),
            (&PEERS[2], report("not_shown", "pass")),
        ];
        let table = failed_clauses(&reports);
        let rows: Vec<&str> = table.lines().skip(5).collect();
        assert_eq!(rows, ["| star | must | wg | w2 |"]);
        let reports = [(&PEERS[1], report("fail", "fail"))];
        let table = failed_clauses(&reports);
        let rows: Vec<&str> = table.lines().skip(5).collect();
        assert_eq!(rows, ["| star | must | wg | |", "| gap | custom | wg | |"]);
    }
}
