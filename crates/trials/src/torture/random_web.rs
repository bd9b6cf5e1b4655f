//! A random web, and what a crawl of it must produce.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use crawl_testweb::{
    GroundTruth, HostsInScope, HttpAnswer, LinkMix, ReplySequence, ScriptedReply, TestWeb,
};

use super::random::SeededRandom;

/// Retry-After of a busy page, in seconds.
const RETRY_AFTER: &str = "1";

/// The path to which the robots.txt of one host redirects.
const RULES: &str = "/rules.txt";

/// The title of a page that scripts build, before the scripts have run.
pub(super) const UNRENDERED: &str = "Loading";

/// Number of resources that a page requests if scripts build it.
pub(super) const RESOURCES_OF_PAGE: u32 = 4;

/// The script that builds the pages of a host.
const APP: &str = "/app.js";

/// A script on each host, which pages of another host use.
const LIBRARY: &str = "/library.js";

/// The folder with the content of pages that scripts build.
const PARTS: &str = "/parts";

/// A resource that each robots.txt disallows.
const DISALLOWED: &str = "/private/data.json";

/// A random web that is being served, and what a crawl of this web must produce.
pub(super) struct RandomWeb {
    pub(super) web: TestWeb,
    /// The minimum gap for every host.
    pub(super) delay: Duration,
    /// The crawl delay that every robots.txt sets. If set, it is the minimum gap in place of
    /// `delay`.
    pub(super) crawl_delay: Option<Duration>,
    /// Each URL that must have a row, with its status; `None` if it is not answered.
    pub(super) expected: BTreeMap<String, Option<u16>>,
    /// URLs that the crawl discovers but must not fetch.
    pub(super) barred: BTreeSet<String>,
    /// URLs that the crawl may fetch without writing a row: `/robots.txt` of each host, and
    /// [`RULES`], the target of a redirected robots.txt.
    pub(super) rules: BTreeSet<String>,
    /// Whether the crawl also writes link rows.
    pub(super) links: bool,
    /// Whether the crawl builds a search index.
    pub(super) index: bool,
    /// Whether the crawl has a rule that reads fields from each page.
    pub(super) extracts: bool,
    /// The value of `--render`, if pages are rendered.
    pub(super) render: Option<&'static str>,
    /// The pages that scripts build. Their links are only in their content below [`PARTS`].
    pub(super) built: BTreeSet<String>,
    /// URLs that only rendered pages request.
    pub(super) resources: BTreeSet<String>,
}

impl RandomWeb {
    pub(super) fn draw(seed: u64) -> Result<RandomWeb> {
        let mut dice = SeededRandom::of(seed);
        let (hosts, pages) = (2 + dice.below(4) as u32, 20 + dice.below(60));
        let mut drawn = RandomWeb::drawn(seed, &mut dice, (hosts, pages))?;
        drawn.misbehave_everywhere(&mut dice);
        drawn.index = seed.is_multiple_of(2);
        drawn.extracts = !seed.is_multiple_of(3);
        Ok(drawn)
    }

    /// Draws a small web in which scripts build most of the pages.
    pub(super) fn draw_scripted(seed: u64) -> Result<RandomWeb> {
        let mut dice = SeededRandom::of(seed);
        let (hosts, pages) = (2 + dice.below(2) as u32, 3 + dice.below(4));
        let mut drawn = RandomWeb::drawn(seed, &mut dice, (hosts, pages))?;
        let modes = ["auto", "on"];
        drawn.render = Some(modes[usize::from(dice.below(2) == 0)]);
        drawn.build_by_scripts(&mut dice);
        drawn.misbehave_everywhere(&mut dice);
        drawn.index = seed.is_multiple_of(2);
        drawn.extracts = !seed.is_multiple_of(3);
        Ok(drawn)
    }

    /// Draws a web of more hosts, for several workers.
    pub(super) fn draw_large(seed: u64) -> Result<RandomWeb> {
        let mut dice = SeededRandom::of(seed);
        let (hosts, pages) = (8 + dice.below(5) as u32, 60 + dice.below(60));
        let mut drawn = RandomWeb::drawn(seed, &mut dice, (hosts, pages))?;
        drawn.misbehave_everywhere(&mut dice);
        Ok(drawn)
    }

    fn drawn(seed: u64, dice: &mut SeededRandom, (hosts, pages): (u32, u64)) -> Result<RandomWeb> {
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
        let drawn = RandomWeb {
            crawl_delay,
            links: dice.below(2) == 0,
            ..RandomWeb::of(web, delay)
        };
        drawn.redirect_rules(1 + dice.below(u64::from(hosts) - 1) as u32);
        Ok(drawn)
    }

    /// Starts a small web whose servers answer at once. A crawl of this web writes everything: link
    /// rows, extracts and a search index.
    pub(super) fn quick(seed: u64) -> Result<RandomWeb> {
        let web = TestWeb::builder().seed(seed).hosts(2).pages(12);
        let web = web.try_start().context("the web did not start")?;
        let web = RandomWeb {
            links: true,
            index: true,
            extracts: true,
            ..RandomWeb::of(web, Duration::from_millis(2))
        };
        // Make the robots.txt so long that its value in the store spans whole disk sectors.
        let comment = "# Text without rules.\n".repeat(100);
        for host in 0..web.web.hosts() {
            let rules = web.rules_of(host) + &comment;
            web.web
                .script(host, "/robots.txt", HttpAnswer::text(&rules));
        }
        Ok(web)
    }

    fn of(web: TestWeb, delay: Duration) -> RandomWeb {
        let truth = web.truth(HostsInScope::Any);
        RandomWeb {
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
            render: None,
            built: BTreeSet::new(),
            resources: BTreeSet::new(),
        }
    }

    /// Makes the robots.txt of a host a redirect.
    fn redirect_rules(&self, host: u32) {
        self.web
            .script(host, "/robots.txt", HttpAnswer::redirect(302, RULES));
        let text = self.rules_of(host);
        self.web.script(host, RULES, HttpAnswer::text(&text));
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

    /// Lets scripts build two thirds of the pages. Such a page gets its content from its own host,
    /// and a script from another host.
    fn build_by_scripts(&mut self, dice: &mut SeededRandom) {
        let hosts = self.web.hosts();
        let javascript = |source: &str| {
            let answer = HttpAnswer::of(200).header("content-type", "text/javascript");
            answer.body(source)
        };
        let app = format!(
            "(async () => {{
                const part = await fetch('{PARTS}' + location.pathname + location.search);
                const html = await part.text();
                await fetch('{DISALLOWED}').catch(() => {{}});
                document.documentElement.innerHTML = html + words(40);
            }})();"
        );
        let library = "const words = (count) => '<p>' + 'much more '.repeat(count);";
        let mut parts = Vec::new();
        for host in 0..hosts {
            let root = self.web.url(host, "");
            let library_url = self.web.url((host + 1) % hosts, LIBRARY);
            let shell = format!(
                "<!doctype html><title>{UNRENDERED}</title><div id=root></div>\
                 <script src=\"{library_url}\"></script><script src=\"{APP}\"></script>"
            );
            let paths = self.expected.iter().filter_map(|(url, status)| {
                let path = url.strip_prefix(&root)?;
                let is_page = *status == Some(200) && path != "/sitemap.xml";
                (is_page && dice.below(3) > 0).then(|| path.to_owned())
            });
            let paths: Vec<_> = paths.collect();
            for path in &paths {
                let content = self.web.usual(host, path);
                let mut page = content.clone().body(shell.clone());
                // Remove the page's validators, so that later rounds fetch it in full.
                let validators = ["etag", "last-modified"];
                page.headers
                    .retain(|(name, _)| !validators.contains(&name.as_str()));
                self.web.script(host, path, page);
                let part = format!("{PARTS}{path}");
                self.built.insert(self.web.url(host, path));
                self.resources.insert(self.web.url(host, &part));
                self.web.script(host, &part, content.clone());
                parts.push((host, part, content));
            }
            if !paths.is_empty() {
                let app_url = self.web.url(host, APP);
                self.resources.extend([app_url, library_url]);
                self.barred.insert(self.web.url(host, DISALLOWED));
            }
            self.web.script(host, APP, javascript(&app));
            self.web.script(host, LIBRARY, javascript(library));
        }
        self.delay_parts(parts, dice);
    }

    /// Makes some resources of scripted pages answer late, and others only at the second attempt.
    fn delay_parts(&self, mut parts: Vec<(u32, String, HttpAnswer)>, dice: &mut SeededRandom) {
        let busy = HttpAnswer::of(503).header("retry-after", RETRY_AFTER);
        let first: [ScriptedReply; 2] = [busy.into(), ScriptedReply::reset()];
        for reply in first {
            if let Some((host, path, content)) = dice.take(&mut parts) {
                let script = ReplySequence::always(reply).then(content);
                self.web.script(host, &path, script);
            }
        }
        if let Some((host, path, content)) = dice.take(&mut parts) {
            let late = ScriptedReply::from(content).after(dice.millis(300));
            self.web.script(host, &path, late);
        }
    }

    fn misbehave_everywhere(&mut self, dice: &mut SeededRandom) {
        for host in 0..self.web.hosts() {
            self.misbehave(host, dice);
        }
    }

    /// Makes some pages of a host fail permanently, answer late, or answer only after some
    /// attempts.
    fn misbehave(&mut self, host: u32, dice: &mut SeededRandom) {
        let root = self.web.url(host, "");
        let paths = self.expected.keys().filter_map(|url| {
            let path = url.strip_prefix(&root)?;
            let is_scripted = path == "/sitemap.xml" || self.built.contains(url);
            (!is_scripted).then(|| path.to_owned())
        });
        // Leaf pages may fail permanently. Inner pages must succeed in the end, because other pages
        // are found only through them.
        let (mut leaves, mut inner_pages): (Vec<_>, Vec<_>) = paths.partition(|path| is_leaf(path));
        let busy = |status| HttpAnswer::of(status).header("retry-after", RETRY_AFTER);
        let at_last = [
            ReplySequence::always(busy(503)).then(ScriptedReply::usual()),
            ReplySequence::always(HttpAnswer::of(500)).then(ScriptedReply::usual()),
            ReplySequence::always(ScriptedReply::reset()).then(ScriptedReply::usual()),
            ReplySequence::always(ScriptedReply::usual().after(dice.millis(120))),
            ReplySequence::always(busy(429))
                .then(busy(503))
                .then(ScriptedReply::usual()),
        ];
        // The fifth script makes the crawl wait twice, which takes long. Use it for only a quarter
        // of the hosts.
        let max_scripts = if dice.below(4) == 0 { 5 } else { 4 };
        for script in at_last.into_iter().take(max_scripts) {
            if let Some(path) = dice.take(&mut inner_pages) {
                self.web.script(host, &path, script);
            }
        }
        // Keep this page quick to read. The crawler would be killed several times while it reads a
        // slow page, and give the page up.
        let large = HttpAnswer::html(&format!("<p>{}", dice.letters(100_000)));
        let dripping = HttpAnswer::html(&"<p>slow</p>".repeat(40));
        let for_good: [(ScriptedReply, Option<u16>); 7] = [
            (large.into(), Some(200)),
            (HttpAnswer::of(500).into(), Some(500)),
            (ScriptedReply::reset(), None),
            (ScriptedReply::garbage(), None),
            (ScriptedReply::gzip_bomb(2 << 20), Some(200)),
            (
                ScriptedReply::drip(dripping, 64, Duration::from_millis(15)),
                Some(200),
            ),
            (HttpAnswer::of(410).into(), Some(410)),
        ];
        for (reply, status) in for_good {
            if let Some(path) = dice.take(&mut leaves) {
                self.web.script(host, &path, reply);
                self.expected.insert(self.web.url(host, &path), status);
            }
        }
    }
}

fn expected(web: &TestWeb, truth: &GroundTruth) -> BTreeMap<String, Option<u16>> {
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

/// Returns whether an answer with this status settles its URL: the crawl doesn't request the URL
/// again in the same round.
pub(super) fn settles(status: u16) -> bool {
    status < 500 && status != 429
}
