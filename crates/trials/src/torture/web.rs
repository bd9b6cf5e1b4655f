//! A random web, and what a crawl of it must produce.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use crawl_testweb::{Answer, CrawlReach, LinkMix, Reply, Script, TestWeb, Truth};

use super::random::SeededRandom;

/// Retry-After of a busy page, in seconds.
const RETRY_AFTER: &str = "1";

/// The path to which the robots.txt of one host redirects.
const RULES: &str = "/rules.txt";

/// A running web.
pub(super) struct Web {
    pub(super) web: TestWeb,
    /// The minimum gap for every host.
    pub(super) delay: Duration,
    /// The delay that every robots.txt sets instead.
    pub(super) crawl_delay: Option<Duration>,
    /// Each URL that must have a row, with its status; `None` if it is not answered.
    pub(super) expected: BTreeMap<String, Option<u16>>,
    /// URLs that are found but must not be fetched.
    pub(super) barred: BTreeSet<String>,
    /// URLs that may be fetched but have no row: those to which a robots.txt redirects.
    pub(super) rules: BTreeSet<String>,
    /// Whether links are listed too.
    pub(super) links: bool,
    /// Whether a search index is built.
    pub(super) index: bool,
    /// Whether a rule reads fields from each page.
    pub(super) extracts: bool,
}

impl Web {
    pub(super) fn draw(seed: u64) -> Result<Web> {
        let mut dice = SeededRandom::of(seed);
        let (hosts, pages) = (2 + dice.below(4) as u32, 20 + dice.below(60));
        let mut drawn = Web::drawn(seed, dice, (hosts, pages))?;
        drawn.index = seed.is_multiple_of(2);
        drawn.extracts = !seed.is_multiple_of(3);
        Ok(drawn)
    }

    /// Draws a web of more hosts, for several workers.
    pub(super) fn draw_large(seed: u64) -> Result<Web> {
        let mut dice = SeededRandom::of(seed);
        let (hosts, pages) = (8 + dice.below(5) as u32, 60 + dice.below(60));
        Web::drawn(seed, dice, (hosts, pages))
    }

    fn drawn(seed: u64, mut dice: SeededRandom, (hosts, pages): (u32, u64)) -> Result<Web> {
        let delay = Duration::from_millis(8 + dice.below(20));
        let crawl_delay = (dice.below(3) == 0).then(|| delay + Duration::from_millis(15));
        let mut spec = TestWeb::builder()
            .seed(seed)
            .hosts(hosts)
            .pages(pages)
            .mix(LinkMix {
                shunned: 40,
                ..LinkMix::default()
            });
        for host in 0..hosts {
            spec = spec.latency_of(host, dice.millis(12));
        }
        if let Some(delay) = crawl_delay {
            spec = spec.crawl_delay(&delay.as_secs_f64().to_string());
        }
        let web = spec.try_start().context("the web did not start")?;
        let mut drawn = Web {
            crawl_delay,
            links: dice.below(2) == 0,
            ..Web::of(web, delay)
        };
        drawn.redirect_rules(1 + dice.below(u64::from(hosts) - 1) as u32);
        for host in 0..hosts {
            drawn.misbehave(host, &mut dice);
        }
        Ok(drawn)
    }

    /// Starts a small web where nothing is late. Its crawl also writes link rows and a search
    /// index.
    pub(super) fn quick(seed: u64) -> Result<Web> {
        let web = TestWeb::builder().seed(seed).hosts(2).pages(12);
        let web = web.try_start().context("the web did not start")?;
        let web = Web {
            links: true,
            index: true,
            extracts: true,
            ..Web::of(web, Duration::from_millis(2))
        };
        // Make the robots.txt so long that its value in the store spans whole disk sectors.
        let comment = "# Words that bind nobody.\n".repeat(100);
        for host in 0..web.web.hosts() {
            let rules = web.rules_of(host) + &comment;
            web.web.script(host, "/robots.txt", Answer::text(&rules));
        }
        Ok(web)
    }

    fn of(web: TestWeb, delay: Duration) -> Web {
        let truth = web.truth(CrawlReach::Any);
        Web {
            expected: expected(&web, &truth),
            barred: truth.barred.into_keys().collect(),
            rules: (0..web.hosts())
                .flat_map(|host| [web.url(host, "/robots.txt"), web.url(host, RULES)])
                .collect(),
            web,
            delay,
            crawl_delay: None,
            links: false,
            index: false,
            extracts: false,
        }
    }

    /// Makes the robots.txt of a host a redirect.
    fn redirect_rules(&self, host: u32) {
        self.web
            .script(host, "/robots.txt", Answer::redirect(302, RULES));
        let text = self.rules_of(host);
        self.web.script(host, RULES, Answer::text(&text));
    }

    fn rules_of(&self, host: u32) -> String {
        let mut text = format!(
            "User-agent: *\nDisallow: /private/\nAllow: /private/open/\nDisallow: /*?action=\n\
             Sitemap: {}\n",
            self.web.url(host, "/sitemap.xml")
        );
        if let Some(delay) = self.crawl_delay {
            text += &format!("Crawl-delay: {}\n", delay.as_secs_f64());
        }
        text
    }

    /// Makes some pages of a host fail for good, answer late, or answer only after some attempts.
    fn misbehave(&mut self, host: u32, dice: &mut SeededRandom) {
        let root = self.web.url(host, "");
        let paths = self.expected.keys().filter_map(|url| {
            let path = url.strip_prefix(&root)?;
            (path != "/sitemap.xml").then(|| path.to_owned())
        });
        // Leaf pages may fail for good. Inner pages must succeed in the end, because other pages
        // are found only through them.
        let (mut leaves, mut inner_pages): (Vec<_>, Vec<_>) = paths.partition(|path| is_leaf(path));
        let busy = |status| Answer::of(status).header("retry-after", RETRY_AFTER);
        let at_last = [
            Script::always(busy(503)).then(Reply::usual()),
            Script::always(Answer::of(500)).then(Reply::usual()),
            Script::always(Reply::reset()).then(Reply::usual()),
            Script::always(Reply::usual().after(dice.millis(120))),
            Script::always(busy(429))
                .then(busy(503))
                .then(Reply::usual()),
        ];
        // Only a quarter of the hosts get the fifth script, because its two waits take long.
        let max_scripts = if dice.below(4) == 0 { 5 } else { 4 };
        for script in at_last.into_iter().take(max_scripts) {
            if let Some(path) = dice.take(&mut inner_pages) {
                self.web.script(host, &path, script);
            }
        }
        // This page must be quick to read. The crawler would be killed several times while it reads
        // a slow page, and give the page up.
        let large = Answer::html(&format!("<p>{}", dice.letters(100_000)));
        let dripping = Answer::html(&"<p>slow</p>".repeat(40));
        let for_good: [(Reply, Option<u16>); 7] = [
            (large.into(), Some(200)),
            (Answer::of(500).into(), Some(500)),
            (Reply::reset(), None),
            (Reply::garbage(), None),
            (Reply::gzip_bomb(2 << 20), Some(200)),
            (
                Reply::drip(dripping, 64, Duration::from_millis(15)),
                Some(200),
            ),
            (Answer::of(410).into(), Some(410)),
        ];
        for (reply, status) in for_good {
            if let Some(path) = dice.take(&mut leaves) {
                self.web.script(host, &path, reply);
                self.expected.insert(self.web.url(host, &path), status);
            }
        }
    }
}

fn expected(web: &TestWeb, truth: &Truth) -> BTreeMap<String, Option<u16>> {
    let fetched = truth.fetched.iter();
    let mut all: BTreeMap<_, _> = fetched
        .map(|(url, expected)| (url.clone(), Some(expected.status)))
        .collect();
    all.extend(truth.by_sitemap.iter().map(|url| (url.clone(), Some(200))));
    for host in 0..web.hosts() {
        if all.contains_key(&web.url(host, "/")) {
            all.insert(web.url(host, "/sitemap.xml"), Some(200));
        }
    }
    all
}

/// Returns whether a page is a leaf: no other page is found only through it.
fn is_leaf(path: &str) -> bool {
    ["/orphan/", "/new/", "/private/open/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}
