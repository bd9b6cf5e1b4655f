//! Hosts and seeds that a run could not fetch from: what happened, and what to do about it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crawl_engine::{
    EndReason, LOGIN_FAILED, LOGIN_REFUSED, RunSummary, SeedFailure, UnfetchableHost,
};
use crawl_records::{
    REDIRECTED_TO, counted, evidence_words, failure_words, grouped, split_failure, status_words,
};
use crawl_scheduler::Tick;

/// How many unreachable hosts and failed seeds are named. The others are only counted.
pub(super) const MAX_NAMED: usize = 10;

/// End of the failure text for a certificate whose issuer isn't trusted.
const UNKNOWN_ISSUER: &str = "unknown issuer";

/// End of the failure text for a proxy that requires a user name and a password.
const WANTS_PASSWORD: &str = "(407)";

/// Advice about a host that can't be fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UnfetchableHostAdvice {
    CheckName,
    CheckNetwork,
    CheckServer,
    TrustIssuer,
    CheckCertificate,
    CheckTls,
    CheckProxy,
    NameProxyUser,
    CheckLogin,
    ChangeCredentials,
    RepairRobots,
}

impl UnfetchableHostAdvice {
    fn text(self) -> &'static str {
        match self {
            UnfetchableHostAdvice::CheckName => "check the spelling of the host name",
            UnfetchableHostAdvice::CheckNetwork => {
                "check this machine's network connection and name server"
            }
            UnfetchableHostAdvice::CheckServer => "check that the server is running, and its port",
            UnfetchableHostAdvice::TrustIssuer => "to trust your own CA, add --ca-file FILE",
            UnfetchableHostAdvice::CheckCertificate => "check the server's certificate",
            UnfetchableHostAdvice::CheckTls => {
                "check the server's TLS: it must offer version 1.2 or 1.3, and demand no client \
                 certificate"
            }
            UnfetchableHostAdvice::CheckProxy => "check that the proxy is running, and --proxy",
            UnfetchableHostAdvice::NameProxyUser => {
                "name the proxy's user and password: --proxy http://USER:PASSWORD@HOST:PORT"
            }
            UnfetchableHostAdvice::CheckLogin => {
                "check the login's URL, fields and credentials; the next start logs in again"
            }
            UnfetchableHostAdvice::ChangeCredentials => {
                "correct the credentials; to send the same ones once more, run \
                 `crawl control DIR unpark HOST` first"
            }
            UnfetchableHostAdvice::RepairRobots => {
                "no page is fetched until robots.txt can be read; a site without one answers 404"
            }
        }
    }
}

/// Returns the error of a run whose directory was discarded, since no server answered.
pub(crate) fn nothing_reached(summary: &RunSummary) -> String {
    let mut text = format!("error: {}\n", outcome(summary));
    let hosts = hosts_of(summary);
    if hosts.len() > 1 {
        for host in hosts.iter().take(MAX_NAMED) {
            let _ = writeln!(text, "  {}", sentence(host));
        }
        more(&mut text, hosts.len());
    }
    let advice: Vec<&str> = advice_on(hosts)
        .into_iter()
        .map(UnfetchableHostAdvice::text)
        .collect();
    let _ = match advice.is_empty() {
        true => write!(text, "hint: run the same command again later"),
        false => write!(
            text,
            "hint: {}; then run the same command again",
            advice.join("; ")
        ),
    };
    text
}

/// Returns a line for each host that the run could not fetch from, with the reason. Only counts the
/// hosts after the first `MAX_NAMED`.
pub(crate) fn unfetchable_hosts(summary: &RunSummary) -> String {
    let hosts = hosts_of(summary);
    let mut text = String::new();
    for host in hosts.iter().take(MAX_NAMED) {
        let _ = writeln!(text, "{}", sentence(host));
    }
    more(&mut text, hosts.len());
    text
}

/// Describes in one line a run that ended early or fetched nothing.
pub(super) fn outcome(summary: &RunSummary) -> String {
    let has_pages = summary.seeds_fetched > 0;
    let hosts = match &summary.ended {
        EndReason::NoFetchableHost(hosts) => hosts.as_slice(),
        EndReason::Interrupted => return "interrupted before a server answered".to_owned(),
        EndReason::Budget(budget) => {
            return format!("ended by --{budget} before a server answered");
        }
        EndReason::TableBudget(budget) => {
            return format!("ended by {budget} before a server answered");
        }
        _ => return failed_seeds(&summary.seeds_failed),
    };
    match hosts {
        [host] if host.next_try.is_none() => format!("ended: {} is parked", host.host),
        hosts if all_parked(hosts) => format!("ended: the remaining {} are parked", count(hosts)),
        [host] if has_pages => format!("fetched what was reachable; {}", sentence(host)),
        [host] => sentence(host),
        hosts if has_pages => format!("fetched what was reachable; {} are left", count(hosts)),
        hosts => format!("can't reach any of {}", count(hosts)),
    }
}

fn failed_seeds(seeds: &[SeedFailure]) -> String {
    match seeds {
        [] => "no page could be fetched".to_owned(),
        [seed] => format!("can't fetch {}: {}", seed.url, evidence_words(&seed.why)),
        seeds => {
            let seeds = counted(seeds.len() as u64, "seed", "seeds");
            format!("can't fetch any of {seeds}")
        }
    }
}

/// Lists the unreached hosts and the failed seeds. Omits the one that [`outcome`] already
/// describes, if any.
pub(super) fn name_unreached(summary: &RunSummary, text: &mut String) {
    let hosts = hosts_of(summary);
    for host in hosts.iter().take(MAX_NAMED) {
        let _ = match (host.next_try, hosts.len()) {
            (Some(at), 1) => writeln!(text, "  next try: {}", next_try(host, at)),
            (Some(at), _) => {
                writeln!(
                    text,
                    "  {}; next try {}",
                    sentence(host),
                    next_try(host, at)
                )
            }
            (None, 1) => Ok(()),
            (None, _) => writeln!(text, "  parked: {}", host.host),
        };
    }
    more(text, hosts.len());
    let seeds = &summary.seeds_failed;
    if seeds.len() == 1 && hosts.is_empty() && summary.seeds_fetched == 0 {
        return;
    }
    for seed in seeds.iter().take(MAX_NAMED) {
        let reason = evidence_words(&seed.why);
        let _ = writeln!(text, "  seed failed: {}: {reason}", seed.url);
    }
    more(text, seeds.len());
}

fn next_try(host: &UnfetchableHost, at: Tick) -> String {
    match host.is_tried_at_start {
        true => format!("from {}, or at the next start", moment(at)),
        false => format!("from {}", moment(at)),
    }
}

/// Returns hints about the hosts that were not reached, for a crawl whose directory stays.
pub(super) fn hints(summary: &RunSummary) -> Vec<&'static str> {
    let hosts = hosts_of(summary);
    let last = match (hosts.is_empty(), all_parked(hosts)) {
        (true, _) => None,
        (false, true) => Some("fetch their URLs with `crawl control DIR unpark HOST`"),
        (false, false) => {
            Some("the next start retries these URLs; to wait longer, raise --wait-unreachable")
        }
    };
    let advice = advice_on(hosts)
        .into_iter()
        .map(UnfetchableHostAdvice::text);
    advice.chain(last).collect()
}

pub(super) fn all_parked(hosts: &[UnfetchableHost]) -> bool {
    hosts.iter().all(|host| host.next_try.is_none())
}

/// Formats a time as RFC 3339 in whole seconds.
pub(super) fn moment(at: Tick) -> String {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.0}")
}

fn hosts_of(summary: &RunSummary) -> &[UnfetchableHost] {
    match &summary.ended {
        EndReason::NoFetchableHost(hosts) => hosts,
        _ => &[],
    }
}

fn count(hosts: &[UnfetchableHost]) -> String {
    counted(hosts.len() as u64, "host", "hosts")
}

fn more(text: &mut String, count: usize) {
    if count > MAX_NAMED {
        let _ = writeln!(text, "  and {} more", grouped((count - MAX_NAMED) as u64));
    }
}

/// Returns what to do about these hosts, without duplicates.
fn advice_on(hosts: &[UnfetchableHost]) -> BTreeSet<UnfetchableHostAdvice> {
    let hosts = hosts.iter().filter(|host| host.next_try.is_some());
    let causes = hosts.flat_map(|host| causes(&host.why));
    causes.filter_map(UnfetchableHostCause::advice).collect()
}

/// Describes why a host can't be fetched from.
fn sentence(host: &UnfetchableHost) -> String {
    let mut sentences: Vec<String> = causes(&host.why)
        .map(|cause| cause.sentence(host.host.as_str()))
        .collect();
    sentences.dedup();
    sentences.join("; ")
}

/// The reason why a host can't be fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnfetchableHostCause<'a> {
    /// The request for the robots.txt of `origin` failed; `failure` is its name, with details after
    /// a colon.
    Failed { origin: &'a str, failure: &'a str },
    /// The robots.txt of `origin` had a status that forbids fetching its pages for now. `words`
    /// begins with that status.
    Robots { origin: &'a str, words: &'a str },
    /// The host can't be fetched from for another reason, in words, such as a failed login.
    Rests(&'a str),
}

/// Parses the reason of an [`UnfetchableHost`], which may list several causes: a host has one
/// robots.txt for each of its origins.
fn causes(why: &str) -> impl Iterator<Item = UnfetchableHostCause<'_>> {
    let parts = why.match_indices("; http").map(|(at, _)| at);
    let ends: Vec<usize> = parts.chain([why.len()]).collect();
    let mut start = 0;
    ends.into_iter().map(move |end| {
        let part = why[start..end].trim_start_matches("; ");
        start = end;
        cause(part)
    })
}

fn cause(why: &str) -> UnfetchableHostCause<'_> {
    let Some((origin, rest)) = why.split_once("/robots.txt") else {
        return UnfetchableHostCause::Rests(why);
    };
    if !origin.contains("://") {
        return UnfetchableHostCause::Rests(why);
    }
    match (rest.strip_prefix(": "), rest.strip_prefix(" answered ")) {
        (Some(failure), _) => UnfetchableHostCause::Failed { origin, failure },
        (_, Some(words)) => UnfetchableHostCause::Robots { origin, words },
        (None, None) => UnfetchableHostCause::Rests(why),
    }
}

impl UnfetchableHostCause<'_> {
    fn sentence(self, host: &str) -> String {
        match self {
            UnfetchableHostCause::Failed { origin, failure } => failed(origin, failure),
            UnfetchableHostCause::Robots { origin, words } => {
                let end = words.find([' ', ',']).unwrap_or(words.len());
                let (status, rest) = words.split_at(end);
                let status = status.parse().map_or(status.to_owned(), status_words);
                format!("can't crawl {origin}: its robots.txt answered {status}{rest}")
            }
            UnfetchableHostCause::Rests(why) => {
                format!("can't fetch from {host} for now: {}", failure_words(why))
            }
        }
    }

    fn advice(self) -> Option<UnfetchableHostAdvice> {
        let failure = match self {
            // The user can only repair the redirect.
            UnfetchableHostCause::Failed { failure, .. } if failure.contains(REDIRECTED_TO) => {
                return Some(UnfetchableHostAdvice::RepairRobots);
            }
            UnfetchableHostCause::Failed { failure, .. } => failure,
            // Give no advice, because the cause is the user's own setting.
            UnfetchableHostCause::Robots { words, .. } if words.contains("--exclude-host") => {
                return None;
            }
            UnfetchableHostCause::Robots { .. } => {
                return Some(UnfetchableHostAdvice::RepairRobots);
            }
            UnfetchableHostCause::Rests(why) if why.starts_with(LOGIN_FAILED) => {
                return Some(UnfetchableHostAdvice::CheckLogin);
            }
            UnfetchableHostCause::Rests(why) if why.starts_with(LOGIN_REFUSED) => {
                return Some(UnfetchableHostAdvice::ChangeCredentials);
            }
            UnfetchableHostCause::Rests(why) => split_failure(why)?.1,
        };
        match token(failure) {
            "no_such_name" | "no_address" => Some(UnfetchableHostAdvice::CheckName),
            "dns_timeout" | "dns_failed" => Some(UnfetchableHostAdvice::CheckNetwork),
            "tls_failed" if failure.ends_with(UNKNOWN_ISSUER) => {
                Some(UnfetchableHostAdvice::TrustIssuer)
            }
            "tls_failed" if failure.contains("certificate") => {
                Some(UnfetchableHostAdvice::CheckCertificate)
            }
            "tls_failed" => Some(UnfetchableHostAdvice::CheckTls),
            "proxy_failed" if failure.ends_with(WANTS_PASSWORD) => {
                Some(UnfetchableHostAdvice::NameProxyUser)
            }
            "proxy_failed" => Some(UnfetchableHostAdvice::CheckProxy),
            name if name.starts_with("connect_") => Some(UnfetchableHostAdvice::CheckServer),
            _ => None,
        }
    }
}

/// Describes a failed request for a robots.txt. Names the origin, because another origin of the
/// host may be reachable. Names only the host if its address can't be looked up.
fn failed(origin: &str, failure: &str) -> String {
    let words = failure_words(failure);
    if failure.contains(REDIRECTED_TO) {
        return format!("can't fetch the robots.txt of {origin}: {words}");
    }
    let host = || origin.split_once("://").map_or(origin, |(_, host)| host);
    match token(failure) {
        "no_such_name" | "no_address" => format!("can't find host {} ({words})", host()),
        "dns_timeout" | "dns_failed" => format!("can't look up host {}: {words}", host()),
        "first_byte_timeout" => format!("{origin} accepts connections, but sent {words}"),
        "tls_failed" => format!("can't connect securely to {origin}: {words}"),
        name if name.starts_with("connect_") => format!("can't connect to {origin}: {words}"),
        _ => format!("can't fetch from {origin}: {words}"),
    }
}

/// Returns the name of a failure without its details.
fn token(failure: &str) -> &str {
    failure.split(':').next().unwrap_or_default()
}

#[cfg(test)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is used"
)]
mod tests {
    use crawl_engine::UnfetchableHost;
    use crawl_scheduler::Tick;
    use crawl_weburl::HostKey;
    use expect_test::{Expect, expect};

    use super::{advice_on, sentence};

    fn check(why: &[&str], expect: Expect) {
        let host = |why: &&str| UnfetchableHost {
            host: HostKey::parse("e.example").unwrap(),
            why: (*why).to_owned(),
            next_try: Some(Tick::from_micros(1)),
            is_tried_at_start: false,
        };
        let hosts: Vec<UnfetchableHost> = why.iter().map(host).collect();
        let mut lines: Vec<String> = hosts.iter().map(sentence).collect();
        lines.push(format!("{:?}", advice_on(&hosts)));
        expect.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn the_cause_of_an_unreachable_host_is_listed_first() {
        check(
            &[
                "http://e.example/robots.txt: no_such_name",
                "http://e.example/robots.txt: dns_timeout",
                "https://e.example:8443/robots.txt: connect_refused",
                "http://e.example/robots.txt: connect_timeout",
                "https://e.example/robots.txt: tls_failed: unknown issuer",
                "https://e.example/robots.txt: tls_failed: certificate expired",
                "https://e.example/robots.txt: tls_failed: received fatal alert: CertificateRequired",
                "http://e.example/robots.txt: proxy_failed: the proxy wants a user name and a \
                 password (407)",
                "a request failed: proxy_failed: tcp connect error",
                "3 requests in a row failed: connect_refused",
                "http://e.example/robots.txt: first_byte_timeout",
                "http://e.example/robots.txt: address_refused: redirected to http://10.0.0.1/r",
                "http://e.example/robots.txt answered 503",
                "http://e.example/robots.txt answered 503, redirected to http://b.example/r",
                "http://e.example/robots.txt answered 200 in an encoding that can't be undone",
                "it sent a Retry-After",
            ],
            expect![[r#"
                can't find host e.example (host name not found)
                can't look up host e.example: name server did not answer
                can't connect to https://e.example:8443: connection refused
                can't connect to http://e.example: connection timed out
                can't connect securely to https://e.example: certificate error: unknown issuer
                can't connect securely to https://e.example: TLS failed: certificate expired
                can't connect securely to https://e.example: TLS failed: received fatal alert: CertificateRequired
                can't fetch from http://e.example: proxy failed: the proxy wants a user name and a password (407)
                can't fetch from e.example for now: a request failed: proxy failed: tcp connect error
                can't fetch from e.example for now: 3 requests in a row failed: connection refused
                http://e.example accepts connections, but sent no answer in time
                can't fetch the robots.txt of http://e.example: address refused, redirected to http://10.0.0.1/r
                can't crawl http://e.example: its robots.txt answered service unavailable (503)
                can't crawl http://e.example: its robots.txt answered service unavailable (503), redirected to http://b.example/r
                can't crawl http://e.example: its robots.txt answered ok (200) in an encoding that can't be undone
                can't fetch from e.example for now: it sent a Retry-After
                {CheckName, CheckNetwork, CheckServer, TrustIssuer, CheckCertificate, CheckTls, CheckProxy, NameProxyUser, RepairRobots}"#]],
        );
    }

    #[test]
    fn the_report_does_not_blame_the_site_for_exclusions_by_flags() {
        check(
            &["http://e.example/robots.txt answered 301, to a host that --exclude-host leaves out"],
            expect![[r#"
                can't crawl http://e.example: its robots.txt answered moved permanently (301), to a host that --exclude-host leaves out
                {}"#]],
        );
    }

    #[test]
    fn each_origin_of_a_host_has_its_cause() {
        check(
            &[
                "http://e.example/robots.txt: no_such_name; https://e.example/robots.txt: \
                 no_such_name",
                "http://e.example/robots.txt: connect_refused; https://e.example/robots.txt: \
                 tls_failed: a; b",
            ],
            expect![[r#"
                can't find host e.example (host name not found)
                can't connect to http://e.example: connection refused; can't connect securely to https://e.example: TLS failed: a; b
                {CheckName, CheckServer, CheckTls}"#]],
        );
    }
}
