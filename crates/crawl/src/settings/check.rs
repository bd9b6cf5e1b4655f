//! Checks the settings before any request is sent.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_engine::{
    HostGroupBudget, MAX_PER_OTHERS_HOST, MIN_OTHERS_DELAY, RenderConfig, RenderLimits, Renderer,
    SiteLogin,
};
use crawl_fetcher::{Contact, CookieFile, HostRequestHeaders, SigningSettings, SiteSessions};
use crawl_fields::CompiledRules;
use crawl_policy::ProductToken;
use crawl_records::stored_settings;
use crawl_scheduler::PolitenessOverrides;
use crawl_scope::{AreaConflict, SeedAreaKind, SeedAreas, SeedSettings};
use crawl_weburl::{
    AddressClass, CanonicalUrl, HostPatternMap, UrlWithCredentials, canonicalize, classify,
    host_address,
};

use super::ca_files::check_ca_files;
use super::choices::CrawlKind;
use super::contact_and_pattern_checks::{
    AGENT_HINT, CONTACT_HINT, PATTERN_HINT, check_pattern, read_agent, read_contact, user_agent,
};
use super::cookies_and_logins::{check_cookie_file, login_warnings, sessions};
use super::extract_rules::compile;
use super::host_groups::{host_groups, terms_by_host};
use super::host_lists::{check_read_in, names};
use super::host_network_class::{HostNetworkClass, reach};
use super::host_politeness::{HostPolitenessOverrides, overrides};
use super::listed_seed::ListedSeed;
use super::number_checks::check_numbers;
use super::placeholder_check::check_placeholders;
use super::request_signing::check_signing;
use super::setting_definitions::{Operator, Settings};
use super::shared_crawl::check_shared;
use super::sites::{accesses, by_name};
use super::toml_output::stored_seeds;
use crate::error::{CommandError, ErrorCollector, left_out, quoted};
use crate::output_file::{inside_error, is_inside};
use crate::rendering::renderer;
use crate::settings::typed_seed::{self, ParsedSeed};
use crate::values::{AddressOverride, BrowserSettings, DurationSetting};

const SEED_HINT: &str =
    "give a URL such as `https://example.org/`, or a host such as `example.org`";

/// Checked settings with which a crawl can start, with files read and values parsed.
#[derive(Clone, Debug)]
pub(crate) struct CheckedSettings {
    /// The seeds. Empty only if a crawl is continued after `crawl forget` removed its seeds.
    pub(crate) seeds: Vec<CanonicalUrl>,
    /// The seeds as typed, in the same order.
    pub(crate) typed: Vec<ParsedSeed>,
    /// The scope, depth and label of each seed that has its own.
    pub(crate) seed_terms: Vec<(CanonicalUrl, SeedSettings)>,
    /// The seeds that are sitemaps.
    pub(crate) seed_sitemaps: HashSet<CanonicalUrl>,
    /// Names of seed hosts that resolved to a public address before the crawl began.
    pub(crate) public_names: Vec<String>,
    /// The crawl's directory.
    pub(crate) output: PathBuf,
    /// The certificates of `--ca-file`, as PEM.
    pub(crate) roots: Option<Vec<u8>>,
    /// The product token that robots.txt files use for this crawler.
    pub(crate) agent: ProductToken,
    /// The contact of the operator. `None` if no contact is given.
    pub(crate) contact: Option<Contact>,
    /// Politeness overrides for some hosts.
    pub(crate) sites: PolitenessOverrides,
    /// Groups of hosts that share a budget.
    pub(crate) groups: HostPatternMap<Arc<HostGroupBudget>>,
    /// Credentials and header fields for single hosts.
    pub(crate) access: Vec<HostRequestHeaders>,
    /// The signer of requests. `None` if requests aren't signed.
    pub(crate) signing: Option<SigningSettings>,
    /// The sites that keep cookies or need a login.
    pub(crate) sessions: SiteSessions,
    /// How to log in to sites.
    pub(crate) logins: Vec<Arc<SiteLogin>>,
    /// The cookies of `--cookies`, and the digest of the file.
    pub(crate) cookie_file: Option<(CookieFile, String)>,
    /// The compiled extraction rules (`[[extract]]`).
    pub(crate) extract: Arc<CompiledRules>,
    /// How pages are rendered. `None` if no pages are rendered.
    pub(crate) render: Option<RenderConfig>,
}

impl CheckedSettings {
    /// Replaces the seeds with `seeds`, the URLs chosen for the typed seeds, in the same order. For
    /// example, a seed typed without a scheme may have got its http URL. Removes duplicates.
    pub(crate) fn crawl_at(&mut self, seeds: Vec<CanonicalUrl>) {
        let terms = self.typed.iter().map(|typed| &typed.terms);
        let own = seeds
            .iter()
            .zip(terms)
            .filter(|(_, terms)| !terms.is_empty());
        self.seed_terms = own
            .map(|(seed, terms)| (seed.clone(), terms.clone()))
            .collect();
        let sitemaps = seeds.iter().zip(&self.typed);
        let sitemaps = sitemaps.filter(|(_, typed)| typed.is_sitemap);
        self.seed_sitemaps = sitemaps.map(|(seed, _)| seed.clone()).collect();
        let mut once = HashSet::new();
        self.seeds = seeds;
        self.seeds.retain(|seed| once.insert(seed.clone()));
    }
}

/// Checks the settings of a crawl.
///
/// # Errors
/// All problems found.
pub(crate) fn check(settings: &Settings) -> Result<CheckedSettings, CommandError> {
    let mut problems = ErrorCollector::default();
    let checked = check_all(settings, &mut problems);
    // A continued crawl may lack seeds, because `crawl forget` can remove them. Such a crawl
    // resumes with the URLs that it knows.
    let goes_on = settings.output.output.0.join("crawl.toml").is_file();
    if settings.seed.is_empty() && !goes_on {
        problems.note(Err::<(), _>(no_seed()));
    }
    let checked = problems.or(checked)?;
    // Only the seeds can be missing here: any other missing value was recorded as a problem and has
    // been returned as an error.
    checked.ok_or_else(no_seed)
}

/// Checks settings without requiring seeds, which another source may add. Returns warnings.
///
/// # Errors
/// All problems found.
pub(crate) fn check_without_seeds(settings: &Settings) -> Result<Vec<String>, CommandError> {
    let mut problems = ErrorCollector::default();
    check_all(settings, &mut problems);
    problems.or(())?;
    let (_, logins) = sessions(&settings.site, !settings.fetch.proxy.is_empty())?;
    Ok(login_warnings(&logins))
}

/// Adds a problem for each setting that needs a feature which this build doesn't have.
fn check_features(settings: &Settings, problems: &mut ErrorCollector) {
    let mut lacks = |what: &str, feature, key| {
        problems.note::<()>(Err(left_out(what, feature).about(key)));
    };
    if cfg!(not(feature = "search")) && settings.output.index.is_on() {
        lacks("--index on", "search", "index");
    }
    if cfg!(not(feature = "search")) && settings.display.metrics.0.is_some() {
        lacks("--metrics", "search", "metrics");
    }
    if settings.output.warc_compression.meaning().is_none() {
        lacks("--warc-compression zstd", "zstd", "warc-compression");
    }
    if cfg!(feature = "logins") {
        return;
    }
    if !settings.fetch.cookies.is_empty() {
        lacks("--cookies", "logins", "cookies");
    }
    for (site, terms) in settings
        .site
        .iter()
        .filter(|(_, terms)| terms.keeps_cookies())
    {
        let (key, what) = match terms.has_login() {
            true => ("login", "logins"),
            false => ("cookies", "cookies of sites"),
        };
        let problem = left_out(what, "logins").about(key).about_site(site);
        problems.note::<()>(Err(problem));
    }
}

/// Adds all problems in the settings to `problems`, and returns the checked settings. `None` if a
/// value that [`CheckedSettings`] needs is missing or unusable.
pub(super) fn check_all(
    settings: &Settings,
    problems: &mut ErrorCollector,
) -> Option<CheckedSettings> {
    let usual = settings.scope.scope.meaning().area();
    let typed = check_seeds(&settings.seed, usual, problems);
    let seeds: Vec<CanonicalUrl> = typed.iter().map(|seed| seed.url.clone()).collect();
    let agent = problems.note(check_agent(&settings.operator.agent));
    let contact = problems.note(check_contact(&settings.operator.contact));
    check_patterns(settings, problems);
    problems.note(check_read_in("host", &settings.scope.host));
    problems.note(check_read_in("exclude-host", &settings.scope.exclude_host));
    check_numbers(settings, problems);
    problems.note(check_proxy(&settings.fetch.proxy));
    check_shared(settings, problems);
    check_features(settings, problems);
    let sites =
        by_name(&settings.site).map(|sites| overrides(&sites, &terms_by_host(&settings.group)));
    let sites = problems.note(sites);
    let access = problems.note(accesses(&settings.site));
    let sessions = problems.note(sessions(&settings.site, !settings.fetch.proxy.is_empty()));
    let cookie_file = match &sessions {
        Some((kept, _)) => problems.note(check_cookie_file(&settings.fetch.cookies, kept)),
        None => None,
    };
    let groups = problems.note(host_groups(&settings.group));
    let signing = problems.note(check_signing(&settings.operator));
    let extract = problems.note(compile(&settings.extract));
    let render = problems.note(check_render(settings, &agent, contact.as_ref()));
    let public = seeds
        .iter()
        .find(|seed| reach(seed, &settings.fetch.resolve) == HostNetworkClass::Public);
    let named = settings.fetch.resolve.iter().any(names_public);
    let needs_contact = public.or(seeds.first().filter(|_| named));
    check_study(&settings.operator, problems);
    let is_research = settings.operator.kind == CrawlKind::Research;
    if let (Some(seed), Some(None), false) = (needs_contact, &contact, is_research) {
        problems.note(Err::<(), _>(no_contact(seed)));
    }
    if let Some(seed) = public {
        check_manners(settings, seed, problems);
        check_placeholders(settings, &seeds, problems);
    }
    let roots = problems.note(check_ca_files(&settings.fetch.ca_file));
    let output = match settings.output.output.is_empty() {
        true => default_output(seeds.first()?),
        false => settings.output.output.0.clone(),
    };
    problems.note(check_log(&settings.display.log.0, &output));
    let (sessions, logins) = sessions?;
    let mut checked = CheckedSettings {
        roots: roots?,
        seeds: Vec::new(),
        typed,
        seed_terms: Vec::new(),
        seed_sitemaps: HashSet::new(),
        public_names: Vec::new(),
        output,
        agent: agent?,
        contact: contact?,
        sites: sites?,
        access: access?,
        sessions,
        logins,
        cookie_file: cookie_file?,
        groups: groups?,
        signing: signing?,
        extract: Arc::new(extract?),
        render: render?,
    };
    checked.crawl_at(seeds);
    Some(checked)
}

/// Returns how pages are rendered; `None` if no pages are rendered.
fn check_render(
    settings: &Settings,
    agent: &Option<ProductToken>,
    contact: Option<&Option<Contact>>,
) -> Result<Option<RenderConfig>, CommandError> {
    if settings.render.render.meaning().is_none() {
        return Ok(None);
    }
    if !settings.frontier.frontier.is_empty() {
        let message = "pages can't be rendered in a crawl that several workers share";
        let problem = CommandError::usage(message).hint("remove --render or --frontier");
        return Err(problem.about("render").resting_on(&["frontier"]));
    }
    if settings.render.screenshots.is_on() && !settings.output.warc.is_on() {
        let message = "screenshots are kept in the archive, and --warc off writes none";
        let problem = CommandError::usage(message).hint("remove --screenshots or --warc off");
        return Err(problem.about("screenshots").resting_on(&["warc"]));
    }
    // `check_all` reports problems with the agent and the contact, so ignore them here.
    let (Some(agent), Some(contact)) = (agent, contact) else {
        return Ok(None);
    };
    render_config(settings, &user_agent(agent, contact.as_ref()), renderer)
}

/// Returns how pages are rendered, with a browser from `renderer`; `None` if no pages are rendered.
pub(crate) fn render_config(
    settings: &Settings,
    user_agent: &str,
    renderer: fn(BrowserSettings) -> Result<Arc<dyn Renderer>, CommandError>,
) -> Result<Option<RenderConfig>, CommandError> {
    let terms = &settings.render;
    let Some(mode) = terms.render.meaning() else {
        return Ok(None);
    };
    let tabs = usize::try_from(terms.render_tabs).unwrap_or(1);
    let renderer = renderer(BrowserSettings {
        program: (!terms.browser.is_empty()).then(|| terms.browser.0.clone()),
        sandbox: terms.browser_sandbox.is_on(),
        tabs,
        page_time: terms.render_time.get(),
        timeout: terms.render_timeout.get(),
        memory: terms.render_memory.0,
        max_requests: terms.render_max_requests,
        user_agent: user_agent.to_owned(),
        screenshots: terms.screenshots.is_on(),
    })?;
    Ok(Some(RenderConfig {
        mode,
        renderer,
        tabs,
        all_resources: terms.render_resources.meaning(),
        posts: terms.render_post.is_on(),
        limits: RenderLimits {
            requests: terms.render_max_requests,
            bytes: terms.render_max_bytes.0,
            hosts: usize::try_from(terms.render_max_hosts).unwrap_or(1),
        },
    }))
}

/// Rejects a log inside the crawl's directory, which may hold only the crawl's own files.
fn check_log(log: &Path, output: &Path) -> Result<(), CommandError> {
    if log.as_os_str().is_empty() || !is_inside(log, output) {
        return Ok(());
    }
    let log = format!("--log {}", log.display());
    Err(inside_error(&log, output)
        .about("log")
        .resting_on(&["output"]))
}

/// Returns whether an entry of `--resolve` maps its host to at least one public address.
fn names_public(resolve: &AddressOverride) -> bool {
    let public = |address: &IpAddr| classify(*address) == AddressClass::Public;
    resolve.addresses.iter().any(public)
}

/// Returns the error for a crawl of the public host of `url` without a contact.
pub(crate) fn no_contact(url: &CanonicalUrl) -> CommandError {
    CommandError::usage(format!("no contact given, which is required to crawl {}", url.host())).hint(
        "add --contact MAIL-OR-URL, or set CRAWL_CONTACT, so that owners of visited sites can reach \
         you",
    )
    .about("contact")
    .resting_on(&["resolve"])
}

/// Parses a product token.
pub(crate) fn check_agent(agent: &str) -> Result<ProductToken, CommandError> {
    read_agent(agent).map_err(|why| {
        CommandError::usage(format!("unusable --agent: {why}"))
            .hint(AGENT_HINT)
            .about("agent")
    })
}

/// Parses a contact; `None` if it is empty.
pub(crate) fn check_contact(contact: &str) -> Result<Option<Contact>, CommandError> {
    read_contact(contact).map_err(|why| {
        CommandError::usage(format!("unusable --contact {why}"))
            .hint(CONTACT_HINT)
            .about("contact")
    })
}

/// Checks the URL of the study page, and that a research crawl describes its operator and its
/// study.
fn check_study(operator: &Operator, problems: &mut ErrorCollector) {
    let page = operator.study_page.as_str();
    if let (false, Err(why)) = (page.is_empty(), canonicalize(None, page)) {
        let message = format!("unusable --study-page `{page}`: {why}");
        let problem =
            CommandError::usage(message).hint("it looks like `https://example.org/study`");
        problems.note(Err::<(), _>(problem.about("study-page")));
    }
    if operator.kind != CrawlKind::Research {
        return;
    }
    for (key, value) in [
        ("contact", &operator.contact),
        ("operator-name", &operator.operator_name),
        ("institution", &operator.institution),
        ("study", &operator.study),
        ("study-page", &operator.study_page),
    ] {
        if value.trim().is_empty() {
            let message = format!("no {key} given, which is required for research crawls");
            let hint =
                format!("add --{key}, or set `{key}` under [operator] in a file for --config");
            problems.note(Err::<(), _>(
                CommandError::usage(message)
                    .hint(hint)
                    .about("kind")
                    .resting_on(&[key]),
            ));
        }
    }
}

fn no_seed() -> CommandError {
    CommandError::usage("no seed given").hint(
        "start a crawl with `crawl URL`, or continue one with `crawl --output DIR`; `crawl \
               --help` lists all flags",
    )
}

/// Returns the usable seeds without duplicates. `usual` is the scope of seeds that don't set their
/// own.
fn check_seeds(
    seeds: &[ListedSeed],
    usual: SeedAreaKind,
    problems: &mut ErrorCollector,
) -> Vec<ParsedSeed> {
    let mut read: Vec<ParsedSeed> = Vec::with_capacity(seeds.len());
    let mut places: HashMap<CanonicalUrl, usize> = HashMap::new();
    let mut areas = SeedAreas::default();
    let mut listed_at: HashMap<CanonicalUrl, &str> = HashMap::new();
    for listed in seeds {
        let seed = check_seed(&listed.url).map_err(|mut problem| match &listed.place {
            Some(place) => {
                problem.message = format!("{place}: {}", problem.message);
                problem
            }
            None => problem.about("seed"),
        });
        let Some(mut seed) = problems.note(seed) else {
            continue;
        };
        seed.terms = listed.terms.clone();
        seed.is_sitemap = listed.is_sitemap;
        let place = listed.place.as_deref();
        if let Err(taken) = areas.add(&seed.url, &seed.terms, usual) {
            let other_place = listed_at.get(&taken.other).copied();
            problems.note::<()>(Err(taken_area(&taken, place, other_place)));
            continue;
        }
        if let Some(place) = place.filter(|_| !seed.terms.is_empty()) {
            listed_at.entry(seed.url.clone()).or_insert(place);
        }
        match places.get(&seed.url).and_then(|&place| read.get_mut(place)) {
            Some(known) => {
                // Keep the fallback to http only if both duplicates were typed without a scheme.
                known.stand_in = known.stand_in.take().and(seed.stand_in);
                known.is_sitemap |= seed.is_sitemap;
                if known.terms.is_empty() {
                    known.terms = seed.terms;
                }
            }
            None => {
                places.insert(seed.url.clone(), read.len());
                read.push(seed);
            }
        }
    }
    read
}

/// Returns the error for two seeds with different settings for the same URLs. `place` and `other`
/// are the file and line of each seed, if a file lists it.
fn taken_area(taken: &AreaConflict, place: Option<&str>, other: Option<&str>) -> CommandError {
    let before = place.map_or_else(String::new, |place| format!("{place}: "));
    let there = other.map_or_else(String::new, |other| format!(" of {other}"));
    let AreaConflict { seed, other, area } = taken;
    let message = match seed == other {
        true => format!("the seed `{seed}`{there} has a different scope, depth or label"),
        false => format!(
            "the seeds `{seed}` and `{other}`{there} set a different depth or label for the same \
             {area}"
        ),
    };
    let problem = CommandError::usage(format!("{before}{message}")).hint(
        "set the same values for both, or give one a smaller `scope`: `prefix` for its folder, \
         `page` for only the page",
    );
    match place {
        Some(_) => problem,
        None => problem.about("seed"),
    }
}

/// Rejects a file or a crawl's directory given in place of a host.
fn check_no_file(typed: &str) -> Result<(), CommandError> {
    let path = Path::new(typed);
    if typed_seed::has_scheme(typed) {
        return Ok(());
    }
    let (message, hint) = match path.join("crawl.toml").is_file() {
        true if !holds_seed_at(path, typed) => (
            "the directory of a crawl",
            format!("continue it with `crawl --output {}`", quoted(path)),
        ),
        false if typed.ends_with(".toml") && path.is_file() => (
            "a file",
            format!(
                "read settings from it with `crawl --config {}`",
                quoted(path)
            ),
        ),
        _ => return Ok(()),
    };
    Err(
        CommandError::usage(format!("`{typed}` is {message}, not a host")).hint(format!(
            "{hint}; to crawl a host with that name, give `https://{typed}/`"
        )),
    )
}

/// Returns whether the crawl in the directory `dir` started at the typed host. If so, the directory
/// is only named after the host, and the user means the host.
fn holds_seed_at(dir: &Path, typed: &str) -> bool {
    let typed = typed_seed::read(typed).map(|seed| seed.url);
    let mut seeds = stored_seeds(&stored_settings(dir)).into_iter();
    typed.is_ok_and(|typed| seeds.any(|seed| seed.host() == typed.host()))
}

pub(crate) fn check_seed(typed: &str) -> Result<ParsedSeed, CommandError> {
    refuse_credentials(typed)?;
    check_no_file(typed)?;
    let seed = typed_seed::read(typed).map_err(|why| {
        CommandError::usage(format!("unusable seed `{typed}`: {why}")).hint(SEED_HINT)
    })?;
    match host_address(seed.url.host()) {
        Some(address) if classify(address) == AddressClass::Unusable => {
            let message = format!("unusable seed `{typed}`: {address} can't be a server's address");
            Err(CommandError::usage(message).hint(SEED_HINT))
        }
        _ => Ok(seed),
    }
}

/// Rejects a user name or password in a seed, which would never be sent: credentials of a host come
/// from `[site]`. The error doesn't repeat the password.
fn refuse_credentials(seed: &str) -> Result<(), CommandError> {
    let Some(credentials) = UrlWithCredentials::find(seed) else {
        return Ok(());
    };
    let host = credentials.host();
    let name = canonicalize(None, &format!("http://{host}/"));
    let name = name.map_or_else(|_| host.to_owned(), |url| url.host().to_owned());
    Err(CommandError::usage(format!(
        "the seed `{credentials}` contains a user name or password"
    ))
    .hint(format!(
        "remove it, and set it for the host in a file for --config: [site.\"{name}\"] basic-auth = \
         \"env:NAME\""
    )))
}

fn check_patterns(settings: &Settings, problems: &mut ErrorCollector) {
    let include = settings.scope.include.iter().map(|re| ("include", re));
    let exclude = settings.scope.exclude.iter().map(|re| ("exclude", re));
    for (flag, pattern) in include.chain(exclude) {
        problems.note(check_pattern(pattern).map_err(|why| {
            CommandError::usage(format!("bad regular expression in --{flag} {why}"))
                .hint(PATTERN_HINT)
                .about(flag)
        }));
    }
}

fn check_proxy(proxy: &str) -> Result<(), CommandError> {
    let scheme = proxy.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        _ if proxy.is_empty() => Ok(()),
        Some("http" | "https" | "socks5" | "socks5h") => Ok(()),
        // The URL may hold a password, so it is not repeated.
        _ => Err(CommandError::usage(
            "unusable --proxy: not an http, https, socks5 or socks5h URL",
        )
        .hint("it looks like `http://127.0.0.1:3128`")
        .about("proxy")),
    }
}

fn check_manners(settings: &Settings, seed: &CanonicalUrl, problems: &mut ErrorCollector) {
    let politeness = &settings.politeness;
    if politeness.own_site.is_on() {
        return;
    }
    let host = seed.host();
    check_pace(politeness.delay, politeness.per_host, "--", host, problems);
    let is_public = |name: &str| {
        let url = canonicalize(None, &format!("http://{name}/"));
        url.is_ok_and(|url| reach(&url, &settings.fetch.resolve) == HostNetworkClass::Public)
    };
    let of_terms = |terms: &HostPolitenessOverrides, host: &str| {
        let mut of_terms = ErrorCollector::default();
        let delay = terms.delay.unwrap_or(politeness.delay);
        check_pace(delay, terms.per_host.unwrap_or(1), "", host, &mut of_terms);
        of_terms
    };
    for (name, terms) in settings.site.iter().filter(|(name, _)| is_public(name)) {
        let of_site = of_terms(&terms.politeness, name);
        problems.extend(of_site.map(|problem| problem.about_site(name)));
    }
    for (name, terms) in &settings.group {
        if let Some(host) = names(&terms.hosts).find(|host| is_public(host)) {
            let of_group = of_terms(&terms.politeness, host);
            problems.extend(of_group.map(|problem| problem.about_group(name)));
        }
    }
}

/// Adds a problem for each setting that is too fast for the public host `host`. `dashes` precedes
/// the names of settings in messages: `--` for flags, empty for keys.
fn check_pace(
    delay: DurationSetting,
    per_host: u32,
    dashes: &str,
    host: &str,
    problems: &mut ErrorCollector,
) {
    let mut refuse = |key: &'static str, message: String| {
        let message = format!("{message}, which isn't allowed for the public host {host}");
        let problem = CommandError::usage(message)
            .hint("add --own-site if you are responsible for the hosts of this crawl");
        let problem = problem.about(key).resting_on(&["own-site", "resolve"]);
        problems.note::<()>(Err(problem));
    };
    if delay.get() < MIN_OTHERS_DELAY {
        let least = MIN_OTHERS_DELAY.as_millis();
        refuse(
            "delay",
            format!("{dashes}delay {delay} is less than {least}ms"),
        );
    }
    if per_host > MAX_PER_OTHERS_HOST {
        let message = format!("{dashes}per-host {per_host} is more than {MAX_PER_OTHERS_HOST}");
        refuse("per-host", message);
    }
}

/// Returns the default directory, `crawl-HOST`. On loopback the name includes the port. Characters
/// that are unsafe in file names become `-`.
pub(crate) fn default_output(seed: &CanonicalUrl) -> PathBuf {
    let key = seed.host_key();
    let bare = key.as_str().replace(['[', ']'], "");
    let safe = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
        _ => '-',
    };
    PathBuf::from(format!(
        "crawl-{}",
        bare.chars().map(safe).collect::<String>()
    ))
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use crawl_fetcher::Contact;
    use crawl_weburl::CanonicalUrl;
    use expect_test::{Expect, expect};

    use super::{CheckedSettings, check};
    use crate::settings::contact_and_pattern_checks::user_agent;
    use crate::settings::setting_definitions::{Settings, SettingsLayer};
    use crate::settings::toml_output::effective;

    fn with(toml: &str) -> Settings {
        let layer: SettingsLayer = super::super::config_file::parse(toml, "x").unwrap();
        layer.settle()
    }

    fn check_text(toml: &str, expect: Expect) {
        let outcome = match check(&with(toml)) {
            Ok(CheckedSettings {
                seeds,
                output,
                agent,
                contact,
                ..
            }) => {
                let seeds: Vec<&str> = seeds.iter().map(CanonicalUrl::as_str).collect();
                format!(
                    "{} -> {}\n{}, from {:?}",
                    seeds.join(" "),
                    output.display(),
                    user_agent(&agent, contact.as_ref()),
                    contact.as_ref().and_then(Contact::mail)
                )
            }
            Err(refusal) => refusal.to_string(),
        };
        expect.assert_eq(&outcome.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }

    fn check_seed(seed: &str, expect: Expect) {
        check_text(&format!("seed = [\"{seed}\"]"), expect);
    }

    #[test]
    fn seeds_are_refused_with_a_reason() {
        check_text(
            "",
            expect![[r#"
            error: no seed given
            hint: start a crawl with `crawl URL`, or continue one with `crawl --output DIR`; `crawl --help` lists all flags"#]],
        );
        check_seed(
            "example",
            expect![[r#"
            error: unusable seed `example`: not a URL: relative URL without a base
            hint: give a URL such as `https://example.org/`, or a host such as `example.org`"#]],
        );
        check_seed(
            "ftp://example.org/",
            expect![[r#"
            error: unusable seed `ftp://example.org/`: scheme `ftp` is not http or https
            hint: give a URL such as `https://example.org/`, or a host such as `example.org`"#]],
        );
        check_seed(
            "http://0.0.0.0/",
            expect![[r#"
            error: unusable seed `http://0.0.0.0/`: 0.0.0.0 can't be a server's address
            hint: give a URL such as `https://example.org/`, or a host such as `example.org`"#]],
        );
    }

    #[test]
    fn output_is_named_after_the_first_seed() {
        check_seed(
            "http://127.0.0.1:8080/a",
            expect![[r#"
            http://127.0.0.1:8080/a -> crawl-127.0.0.1-8080
            crawl/VERSION, from None"#]],
        );
        check_seed(
            "http://[::1]:8080/a",
            expect![[r#"
            http://[::1]:8080/a -> crawl---1-8080
            crawl/VERSION, from None"#]],
        );
        check_seed(
            "http://10.0.0.7:8080/",
            expect![[r#"
            http://10.0.0.7:8080/ -> crawl-10.0.0.7
            crawl/VERSION, from None"#]],
        );
        check_seed(
            "http://localhost/",
            expect![[r#"
            http://localhost/ -> crawl-localhost-80
            crawl/VERSION, from None"#]],
        );
    }

    #[test]
    fn public_hosts_need_a_contact() {
        check_seed(
            "http://example.org/",
            expect![[r#"
            error: no contact given, which is required to crawl example.org
            hint: add --contact MAIL-OR-URL, or set CRAWL_CONTACT, so that owners of visited sites can reach you"#]],
        );
        check_text(
            "seed = [\"http://127.0.0.1/\", \"http://93.184.215.14/\"]",
            expect![[r#"
            error: no contact given, which is required to crawl 93.184.215.14
            hint: add --contact MAIL-OR-URL, or set CRAWL_CONTACT, so that owners of visited sites can reach you"#]],
        );
        check_text(
            "seed = [\"http://example.org/\"]\n[operator]\ncontact = \"a@e.example\"",
            expect![[r#"
            http://example.org/ -> crawl-example.org
            crawl/VERSION (+a@e.example), from Some("a@e.example")"#]],
        );
        check_text(
            "seed = [\"http://example.org/\"]\n[operator]\nagent = \"our-bot\"\ncontact = \"https://e.example/bot\"",
            expect![[r#"
            http://example.org/ -> crawl-example.org
            our-bot/VERSION (+https://e.example/bot), from None"#]],
        );
        check_text(
            "seed = [\"http://site.test:8080/\"]\n[fetch]\nresolve = [\"site.test:8080:127.0.0.9\"]",
            expect![[r#"
            http://site.test:8080/ -> crawl-site.test
            crawl/VERSION, from None"#]],
        );
    }

    #[test]
    fn an_empty_contact_is_none_and_a_bad_one_is_refused() {
        assert_eq!(super::check_contact(" ").unwrap(), None);
        let refusal = super::check_contact("me").unwrap_err();
        let expect = "unusable --contact `me`: not an email address, nor an http or https URL";
        assert_eq!(refusal.message, expect);
    }

    #[test]
    fn rapid_fire_needs_own_site() {
        let public =
            "seed = [\"http://e.example/\"]\n[operator]\ncontact = \"a@e.example\"\n[politeness]\n";
        check_text(
            &format!("{public}delay = \"199ms\""),
            expect![[r#"
            error: --delay 199ms is less than 200ms, which isn't allowed for the public host e.example
            hint: add --own-site if you are responsible for the hosts of this crawl"#]],
        );
        check_text(
            &format!("{public}per-host = 5"),
            expect![[r#"
            error: --per-host 5 is more than 4, which isn't allowed for the public host e.example
            hint: add --own-site if you are responsible for the hosts of this crawl"#]],
        );
        for fine in [
            "delay = \"0s\"\nown-site = \"on\"",
            "delay = \"200ms\"\nper-host = 4",
        ] {
            assert!(check(&with(&format!("{public}{fine}"))).is_ok());
        }
        let private =
            "seed = [\"http://192.168.1.5/\"]\n[politeness]\ndelay = \"0\"\nper-host = 50";
        assert!(check(&with(private)).is_ok());
    }

    #[test]
    fn values_that_contradict_are_refused() {
        let seed = "seed = [\"http://127.0.0.1/\"]\n";
        check_text(
            &format!("{seed}[politeness]\nper-host = 3\nper-site = 2"),
            expect![[r#"
            error: --per-site 2 is less than --per-host 3
            hint: a site includes its hosts: raise --per-site or lower --per-host"#]],
        );
        check_text(
            &format!("{seed}[politeness]\nconcurrency = 0"),
            expect![[r#"
            error: --concurrency is 0, so nothing could be fetched
            hint: remove --concurrency to use the default"#]],
        );
        check_text(
            &format!("{seed}[fetch]\nmax-body = \"256MiB\""),
            expect![[r#"
            error: --max-body 256MiB is more than 255MiB
            hint: longer archive records could not be read back"#]],
        );
        assert!(check(&with(&format!("{seed}[fetch]\nmax-body = \"255MiB\""))).is_ok());
        check_text(
            &format!("{seed}[fetch]\nproxy = \"me:secret@proxy\""),
            expect![[r#"
            error: unusable --proxy: not an http, https, socks5 or socks5h URL
            hint: it looks like `http://127.0.0.1:3128`"#]],
        );
        let agent = |text: &str| super::check_agent(text).unwrap_err().message;
        expect![
            "unusable --agent: `a b` isn't a product token: use one or more letters, digits, `_` and `-`"
        ]
        .assert_eq(&agent("a b"));
        let long = "a".repeat(65);
        let expected = format!("unusable --agent: `{long}` has 65 bytes, the maximum is 64");
        assert_eq!(agent(&long), expected);
    }

    #[test]
    fn same_seed_twice_counts_once() {
        let settings = with("seed = [\"http://127.0.0.1\", \"http://127.0.0.1:80/\"]");
        assert_eq!(check(&settings).unwrap().seeds.len(), 1);
        assert!(effective(&settings).starts_with("seed = ["));
    }
}
