//! The programs to compare, and their arguments. With these, all programs do the same: crawl one
//! site, obey robots.txt, and add no delays. The number of concurrent requests is the best one for
//! each program.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use xtask::debian_packages::{self, DebianPackageFolder};
use xtask::pinned_tools::{self, CratesIoProgram};
use xtask::workspace::Workspace;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ComparedProgram {
    /// This crawler, without an archive
    Ours,
    /// This crawler, with its WARC archive
    OursWarc,
    /// This crawler, with its WARC archive in zstd
    OursWarcZstd,
    /// This crawler, with its WARC archive uncompressed, as others save files
    OursWarcNone,
    /// This crawler, without an archive, with a search index
    OursIndex,
    /// A loop that fetches the same URLs and does no more
    Floor,
    /// GNU Wget2, 8 threads; it saves files
    Wget2,
    /// GNU Wget; it saves files
    Wget,
    /// HTTrack, 32 connections; it saves files
    Httrack,
    /// Scrapy, 32 requests at once
    Scrapy,
    /// spider, the Rust crate, by its own command line; only where it is named
    Spider,
}

/// The programs to compare by default. Excludes spider, because its installation compiles 488
/// packages.
pub(super) const USUAL: [ComparedProgram; 10] = [
    ComparedProgram::Ours,
    ComparedProgram::OursWarc,
    ComparedProgram::OursWarcZstd,
    ComparedProgram::OursWarcNone,
    ComparedProgram::OursIndex,
    ComparedProgram::Floor,
    ComparedProgram::Wget2,
    ComparedProgram::Wget,
    ComparedProgram::Httrack,
    ComparedProgram::Scrapy,
];

/// The reason why a program to compare with can't run here, such as a failed installation.
pub(super) struct MissingProgramReason(pub(super) String);

/// The crate `spider`, built without its browser feature, because the program would start a browser
/// by default.
const SPIDER: CratesIoProgram<'_> = CratesIoProgram {
    package: "spider_cli",
    version: "2.53.9",
    program: "spider",
    args: &["--no-default-features"],
};

const SCRAPY_SCRIPT: &str = r#"
import sys
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

class Site(CrawlSpider):
    name = "site"
    start_urls = [sys.argv[-1]]
    allowed_domains = ["127.0.0.1"]
    rules = [Rule(LinkExtractor(), follow=True)]
    custom_settings = {
        "ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
        "DOWNLOAD_DELAY": 0, "LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False,
        "HTTPCACHE_ENABLED": False, "AUTOTHROTTLE_ENABLED": False, "DEPTH_LIMIT": 0,
    }

from scrapy.crawler import CrawlerProcess
process = CrawlerProcess()
process.crawl(Site)
process.start()
"#;

impl fmt::Display for ComparedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl ComparedProgram {
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Installs the program and returns its path. `None` for a program of this project, which is
    /// already built.
    pub(super) fn install(
        self,
        workspace: &Workspace,
    ) -> Result<Option<PathBuf>, MissingProgramReason> {
        self.fetch(workspace)
            .map_err(|error| MissingProgramReason(format!("{error:#}")))
    }

    fn fetch(self, workspace: &Workspace) -> Result<Option<PathBuf>> {
        let package = match self {
            ComparedProgram::Ours
            | ComparedProgram::OursWarc
            | ComparedProgram::OursWarcZstd
            | ComparedProgram::OursWarcNone
            | ComparedProgram::OursIndex
            | ComparedProgram::Floor => {
                return Ok(None);
            }
            ComparedProgram::Wget2 => "wget2",
            ComparedProgram::Wget => "wget",
            ComparedProgram::Httrack => "httrack",
            ComparedProgram::Scrapy => {
                return Ok(Some(pinned_tools::scrapy(workspace)?.join("bin/python")));
            }
            ComparedProgram::Spider => {
                return pinned_tools::cargo_program(workspace, &SPIDER).map(Some);
            }
        };
        let root = DebianPackageFolder::of(workspace).unpack_whole(package)?;
        Ok(Some(root.join("usr/bin").join(package)))
    }

    /// Returns the variable with the library path that a program from a Debian package needs.
    pub(super) fn environment(self, workspace: &Workspace) -> Result<Vec<(&'static str, String)>> {
        let package = match self {
            ComparedProgram::Wget2 | ComparedProgram::Wget | ComparedProgram::Httrack => {
                self.name()
            }
            _ => return Ok(Vec::new()),
        };
        let root = DebianPackageFolder::of(workspace).unpack_whole(&package)?;
        Ok(vec![(
            "LD_LIBRARY_PATH",
            debian_packages::libraries(&root)?,
        )])
    }

    /// Returns the program and its arguments, for a crawl of `url` that writes below `dir/out`.
    pub(super) fn argv(self, program: &Path, url: &str, dir: &Path) -> Vec<OsString> {
        let out = dir.join("out");
        let ours = format!("-q --seed {url} --delay 0s --delay-factor 0 --per-host 32 --own-site");
        let wget = format!("-q -r -l inf -np -nH -P {}", out.display());
        let args = match self {
            ComparedProgram::Ours => format!("{ours} --warc off --output {}", out.display()),
            ComparedProgram::OursWarc => format!("{ours} --output {}", out.display()),
            ComparedProgram::OursWarcZstd => {
                format!("{ours} --warc-compression zstd --output {}", out.display())
            }
            ComparedProgram::OursWarcNone => {
                format!("{ours} --warc-compression none --output {}", out.display())
            }
            ComparedProgram::OursIndex => {
                format!("{ours} --warc off --index on --output {}", out.display())
            }
            ComparedProgram::Floor => format!("bench floor --urls {}", dir.join("urls").display()),
            ComparedProgram::Wget2 => format!("{wget} --max-threads=8 {url}"),
            ComparedProgram::Wget => format!("{wget} {url}"),
            // By default HTTrack waits a tenth of a second for each link of unknown type (disabled
            // by `-%N0`), waits for kept connections (disabled by `-%k0`), and limits rates.
            ComparedProgram::Httrack => format!(
                "{url} -O {} -q -s2 -c32 -%N0 -%k0 -A0 -%c0 -C0 -I0 --disable-security-limits",
                out.display()
            ),
            ComparedProgram::Scrapy => {
                return [
                    program.into(),
                    "-c".into(),
                    SCRAPY_SCRIPT.into(),
                    url.into(),
                ]
                .to_vec();
            }
            // Without `--output-links`, spider ends immediately without fetching anything.
            ComparedProgram::Spider => {
                format!("--url {url} --respect-robots-txt --http crawl --output-links")
            }
        };
        let args = args.split(' ').map(OsString::from);
        std::iter::once(program.into()).chain(args).collect()
    }
}
