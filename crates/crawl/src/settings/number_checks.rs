//! Checks numeric settings: values that would stop or rush the crawl, or contradict each other.

use std::fmt::Display;

use crawl_archive::MAX_BODY_BYTES;

use super::host_politeness::MAX_DELAY_FACTOR;
use super::setting_definitions::Settings;
use crate::error::{CommandError, ErrorCollector};
use crate::values::{ByteSize, DayHours, DurationSetting, NonNegativeNumber};

/// Maximum jitter, the random part of a delay, as a fraction of the delay. A larger jitter would
/// only cost time.
const MAX_JITTER: f64 = 0.01;
/// Minimum size at which a log file is rotated. With smaller files, the rotated files that are kept
/// would cover too little time.
const MIN_LOG_SIZE: ByteSize = ByteSize(64 << 10);
/// Maximum age of a robots.txt copy (RFC 9309 section 2.4).
const ROBOTS_MAX_AGE: DurationSetting = DurationSetting::from_secs(24 * 60 * 60);
/// Maximum time to use the last valid robots.txt while the current one is unreachable (RFC 9309
/// section 2.3.1.4).
const ROBOTS_LAST_GOOD: DurationSetting = DurationSetting::from_secs(30 * 24 * 60 * 60);

/// Maximum steps of a walker. If all links are known, all steps are taken in one transaction.
/// Beyond the limit: refused.
const MAX_STEPS: u64 = 1_000_000;
/// Maximum number of walkers. All walkers are checked whenever a page is settled that one of them
/// waits for.
/// Beyond the limit: refused.
const MAX_WALKERS: u64 = 1_000;

pub(super) fn check_numbers(settings: &Settings, problems: &mut ErrorCollector) {
    let (politeness, exclusion) = (&settings.politeness, &settings.exclusion);
    let (fetch, recrawl, render) = (&settings.fetch, &settings.recrawl, &settings.render);
    let no_fetch = "nothing could be fetched";
    let no_rest = "robots.txt would be fetched endlessly";
    let is_zero = |span: DurationSetting| span == DurationSetting::ZERO;
    for (flag, is_zero, message) in [
        ("per-host", politeness.per_host == 0, no_fetch),
        ("per-address", politeness.per_address == 0, no_fetch),
        ("concurrency", politeness.concurrency == 0, no_fetch),
        ("look-ups", politeness.look_ups == 0, no_fetch),
        ("timeout", is_zero(fetch.timeout), no_fetch),
        ("connect-timeout", is_zero(fetch.connect_timeout), no_fetch),
        (
            "first-byte-timeout",
            is_zero(fetch.first_byte_timeout),
            no_fetch,
        ),
        ("idle-timeout", is_zero(fetch.idle_timeout), no_fetch),
        ("body-memory", fetch.body_memory.0 == 0, no_fetch),
        ("max-body", fetch.max_body.0 == 0, no_fetch),
        (
            "render-tabs",
            render.render_tabs == 0,
            "no page could be rendered",
        ),
        ("robots-max-age", is_zero(exclusion.robots_max_age), no_rest),
        ("robots-retry", is_zero(exclusion.robots_retry), no_rest),
    ] {
        if is_zero {
            let message = format!("--{flag} is 0, so {message}");
            let hint = format!("remove --{flag} to use the default");
            problems.note(Err::<(), _>(
                CommandError::usage(message).hint(hint).about(flag),
            ));
        }
    }
    if let Some(pages) = settings.sample.sample.0
        && pages.0 < 2
    {
        let message = format!("--sample {pages} is less than 2, but a single page has no variance");
        let hint = "remove --sample to fetch all pages, or draw 30 or more";
        problems.note(Err::<(), _>(
            CommandError::usage(message).hint(hint).about("sample"),
        ));
    }
    if settings.sample.sample.0.is_some() && settings.scope.hops_off_scope > 0 {
        let message = "can't combine --hops-off-scope with --sample: pages outside the scope have \
                       no probability";
        let hint = "remove one of them, or widen the scope with --scope, --host or --surt";
        problems.note(Err::<(), _>(
            CommandError::usage(message)
                .hint(hint)
                .about("hops-off-scope"),
        ));
    }
    check_frame(settings, problems);
    check_walk(settings, problems);
    if let Some(size) = settings.display.log_max_size.0
        && size < MIN_LOG_SIZE
    {
        let message = format!("--log-max-size {size} is less than {MIN_LOG_SIZE}");
        let hint = "`--log-max-size unlimited` keeps the whole log in one file";
        problems.note(Err::<(), _>(
            CommandError::usage(message)
                .hint(hint)
                .about("log-max-size"),
        ));
    }
    if recrawl.every.0 == Some(DurationSetting::ZERO) {
        let message = "--every is 0, so rounds would follow endlessly";
        let problem = CommandError::usage(message).hint("`--every 1d` starts a round every day");
        problems.note(Err::<(), _>(problem.about("every")));
    }
    let robots_hint = "a copy of robots.txt expires after that (RFC 9309 sections 2.3.1.4 and 2.4)";
    problems.note(at_most(
        ("max-body", fetch.max_body),
        ("", ByteSize(MAX_BODY_BYTES)),
        "longer archive records could not be read back",
    ));
    let size_hint = "no document could be kept";
    if let Some(most) = settings.scope.max_size.0 {
        problems.note(at_most(
            ("min-size", settings.scope.min_size),
            ("max-size", most),
            size_hint,
        ));
        let hint = "bodies are truncated at --max-body: raise it too, or remove --max-size";
        problems.note(at_most(
            ("max-size", most),
            ("max-body", fetch.max_body),
            hint,
        ));
    }
    problems.note(at_most(
        ("min-size", settings.scope.min_size),
        ("max-body", fetch.max_body),
        size_hint,
    ));
    problems.note(at_most(
        ("robots-max-age", exclusion.robots_max_age),
        ("", ROBOTS_MAX_AGE),
        robots_hint,
    ));
    problems.note(at_most(
        ("robots-last-good", exclusion.robots_last_good),
        ("", ROBOTS_LAST_GOOD),
        robots_hint,
    ));
    problems.note(at_most(
        ("robots-retry", exclusion.robots_retry),
        ("robots-retry-most", exclusion.robots_retry_most),
        "--robots-retry is the first and shortest wait",
    ));
    problems.note(at_most(
        ("revisit-least", recrawl.revisit_least),
        ("revisit-most", recrawl.revisit_most),
        "pages are revisited at an interval between the two",
    ));
    problems.note(at_most(
        ("jitter", politeness.jitter),
        ("", NonNegativeNumber(MAX_JITTER)),
        "the jitter is a fraction of the delay: 0.01 adds up to 1%",
    ));
    problems.note(at_most(
        ("delay-factor", politeness.delay_factor),
        ("", NonNegativeNumber(MAX_DELAY_FACTOR)),
        "the delay is this multiple of the response time, so a host would get no second request",
    ));
    if DayHours::cover_day(&politeness.quiet_hours) {
        let message = "the quiet hours cover the whole day, so nothing could be fetched";
        problems.note(Err::<(), _>(
            CommandError::usage(message)
                .hint("leave some hours of the day for requests")
                .about("quiet-hours"),
        ));
    }
    if let Some(per_site) = politeness.per_site.0
        && per_site.0 < u64::from(politeness.per_host)
    {
        let message = format!(
            "--per-site {per_site} is less than --per-host {}",
            politeness.per_host
        );
        let hint = "a site includes its hosts: raise --per-site or lower --per-host";
        problems.note(Err::<(), _>(
            CommandError::usage(message)
                .hint(hint)
                .about("per-site")
                .resting_on(&["per-host"]),
        ));
    }
}

/// Checks the settings of the frame, which is the set of URLs from which a sample is drawn.
fn check_frame(settings: &Settings, problems: &mut ErrorCollector) {
    let sample = &settings.sample;
    let is_sitemap = settings.seed.iter().any(|seed| seed.is_sitemap);
    if sample.sample.0.is_none() || sample.frame_depth == 0 || !is_sitemap {
        return;
    }
    let message = format!(
        "can't combine --sample with --seed-sitemap and --frame-depth {}: every page in the sitemap \
         would be fetched to find pages to draw from",
        sample.frame_depth
    );
    let hint = "--frame-depth 0 draws from the pages in the sitemap";
    problems.note(Err::<(), _>(
        CommandError::usage(message).hint(hint).about("frame-depth"),
    ));
}

/// Checks the settings of a walk, if there is one.
fn check_walk(settings: &Settings, problems: &mut ErrorCollector) {
    let sample = &settings.sample;
    let Some(steps) = sample.walk.0 else {
        return;
    };
    let mut refuse = |flag: &'static str, message: String, hint: &str| {
        problems.note(Err::<(), _>(
            CommandError::usage(message).hint(hint).about(flag),
        ));
    };
    if sample.sample.0.is_some() {
        let message = "can't combine --sample with --walk".to_owned();
        refuse("walk", message, "remove one of them");
    }
    if settings.seed.iter().any(|seed| seed.is_sitemap) {
        let message =
            "can't combine --seed-sitemap with --walk: a walk goes from page to page".to_owned();
        let hint = "give the start pages of the walkers with --seed or --seed-file";
        refuse("seed-sitemap", message, hint);
    }
    if let Some(depth) = settings.scope.max_depth.0 {
        let message = format!(
            "can't combine --max-depth {depth} with --walk, which may go in \
                               circles"
        );
        let hint = "use --walk-restart instead: with 0.15, walks have 1 / 0.15 steps on average";
        refuse("max-depth", message, hint);
    }
    if settings.scope.hops_off_scope > 0 {
        let message = "can't combine --hops-off-scope with --walk: the distance of a page depends on the path \
             to it";
        let hint = "remove one of them, or widen the scope with --scope, --host or --surt";
        refuse("hops-off-scope", message.to_owned(), hint);
    }
    for (flag, value, most) in [
        ("walk", steps.0, MAX_STEPS),
        ("walkers", u64::from(sample.walkers), MAX_WALKERS),
    ] {
        if value == 0 || value > most {
            let message = format!("--{flag} {value} isn't between 1 and {most}");
            refuse(
                flag,
                message,
                "the walk is kept in memory: use several crawls for more",
            );
        }
    }
    if !(0.0..=1.0).contains(&sample.walk_restart.0) {
        let message = format!("--walk-restart {} isn't a probability", sample.walk_restart);
        refuse(
            "walk-restart",
            message,
            "give a number from 0 to 1, such as 0.15",
        );
    }
}

/// Rejects a flag's value above a bound, which may be the value of another flag.
fn at_most<T: PartialOrd + Display>(
    (flag, value): (&'static str, T),
    (other, bound): (&'static str, T),
    hint: &str,
) -> Result<(), CommandError> {
    match value > bound {
        true => {
            let (dashes, blank, others) = match other {
                "" => ("", "", &[][..]),
                _ => ("--", " ", &[other][..]),
            };
            let message = format!("--{flag} {value} is more than {dashes}{other}{blank}{bound}");
            let problem = CommandError::usage(message).hint(hint).about(flag);
            Err(problem.resting_on(others))
        }
        false => Ok(()),
    }
}
