//! A robots.txt, compiled for one agent under one profile.

use std::borrow::Cow;
use std::time::Duration;

use url::{Position, Url};

use crate::product_token::{ProductToken, RobotsProfile};

use super::line_parser::{self, RobotsFileBody};
use super::merged_group_rules::CompiledRule;
use super::non_rule_lines::{
    CleanParamLine, RequestRateLine, SitemapLine, UsageLine, UsageLineVocabulary, VisitTimeLine,
};
use super::oddity::{RobotsOddity, RobotsOddityKind, note};
use super::older_standards_parser::{self, OlderStandard, RobotsRecordSelection};
use super::pattern::{self, NormalizedPath, SpecialCharacters};
use super::request_path::RequestPath;
use super::rfc9309_parser::{self, IndexPageHandling, ParsedRobots};
use super::verdict::{DecidingRule, MatchingUserAgentLine, RobotsAccess, RuleVerdict};

/// The rules of a robots.txt for one agent, under one [`RobotsProfile`].
///
/// [`judge`](AgentRules::judge) decides about a URL, [`judge_path`](AgentRules::judge_path) about a
/// path alone. The other methods return lines that are not rules, such as
/// [`crawl_delay`](AgentRules::crawl_delay) and [`sitemaps`](AgentRules::sitemaps). Invalid lines
/// are skipped (RFC 9309 section 2.3.1.5) and listed in [`oddities`](AgentRules::oddities).
#[derive(Debug)]
pub struct AgentRules {
    profile: RobotsProfile,
    pub(super) reading: ParsedRobots,
    // Only under `RobotsProfile::Strictest`: the rules as each of the other profiles reads them.
    more_readings: Vec<(RobotsProfile, ParsedRobots)>,
}

impl AgentRules {
    /// Parses a robots.txt for one agent only. Returns the same rules as
    /// [`Robots::parse`](crate::Robots::parse) and [`for_token`](crate::Robots::for_token), without
    /// copying the file. Reads at most [`MAX_ROBOTS_BYTES`](crate::MAX_ROBOTS_BYTES).
    #[must_use]
    pub fn parse(file: &[u8], agent: &ProductToken, profile: RobotsProfile) -> AgentRules {
        AgentRules::of(&RobotsFileBody::of(file), agent, profile)
    }

    pub(super) fn of(
        body: &RobotsFileBody<'_>,
        agent: &ProductToken,
        profile: RobotsProfile,
    ) -> AgentRules {
        let bytes = &body.bytes;
        let old = |dialect, pick| older_standards_parser::read(bytes, agent, dialect, pick);
        let mut more_readings = Vec::new();
        let mut reading = match profile {
            RobotsProfile::Rfc9309 => {
                rfc9309_parser::read(bytes, agent, IndexPageHandling::AllowFolder)
            }
            RobotsProfile::Koster1994 => {
                old(OlderStandard::Koster1994, RobotsRecordSelection::First)
            }
            RobotsProfile::Extended1997 => {
                old(OlderStandard::Extended1997, RobotsRecordSelection::First)
            }
            RobotsProfile::Strictest => {
                let koster = old(OlderStandard::Koster1994, RobotsRecordSelection::Every);
                let extended = old(OlderStandard::Extended1997, RobotsRecordSelection::Every);
                more_readings.push((RobotsProfile::Koster1994, koster));
                more_readings.push((RobotsProfile::Extended1997, extended));
                rfc9309_parser::read(bytes, agent, IndexPageHandling::AsWritten)
            }
        };
        note_body(body, &mut reading.oddities);
        AgentRules {
            profile,
            reading,
            more_readings,
        }
    }

    /// Returns the rules of a site without a robots.txt: everything is allowed.
    #[must_use]
    pub fn allow_all() -> AgentRules {
        AgentRules {
            profile: RobotsProfile::default(),
            reading: ParsedRobots::default(),
            more_readings: Vec::new(),
        }
    }

    /// Judges whether a URL may be fetched. `/robots.txt` itself always may (RFC 9309 section
    /// 2.2.2).
    ///
    /// Only the path and the query are compared. The caller must judge each URL by the robots.txt
    /// of its scheme, host and port.
    #[must_use]
    pub fn judge(&self, url: &Url) -> RuleVerdict<'_> {
        self.judge_text(&url[Position::BeforePath..Position::AfterQuery])
    }

    /// Judges whether a path may be fetched, as [`judge`](AgentRules::judge) does for a URL.
    #[must_use]
    pub fn judge_path(&self, path: &RequestPath<'_>) -> RuleVerdict<'_> {
        self.judge_text(path.as_str())
    }

    fn judge_text(&self, path_and_query: &str) -> RuleVerdict<'_> {
        let profile = match self.profile {
            RobotsProfile::Strictest => RobotsProfile::Rfc9309,
            profile => profile,
        };
        if self.reading.rules.len() == 0 && self.more_readings.is_empty() {
            return self.reading.verdict(None, profile);
        }
        let path = NormalizedPath::of(path_and_query);
        let verdict = self.reading.judge(&path, profile);
        if verdict.is_allowed() {
            let mut verdicts = self
                .more_readings
                .iter()
                .map(|(name, other)| other.judge(&path, *name));
            if let Some(refusal) = verdicts.find(|verdict| !verdict.is_allowed()) {
                return refusal;
            }
        }
        verdict
    }

    /// Returns the first group that applies to the agent; `None` if the file has no such group.
    #[must_use]
    pub fn group(&self) -> Option<MatchingUserAgentLine<'_>> {
        self.reading.rules.first_group().map(group_of)
    }

    /// Returns the longest `Crawl-delay` of the agent's groups, with its line. Under
    /// [`RobotsProfile::Strictest`], the longest by any profile.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<(Duration, u32)> {
        let readings = self.more_readings.iter().map(|(_, other)| other);
        std::iter::once(&self.reading)
            .chain(readings)
            .filter_map(|reading| reading.group.crawl_delay)
            .max_by_key(|&(delay, line)| (delay, std::cmp::Reverse(line)))
    }

    /// Returns the `Request-rate` lines of the agent's groups. Under [`RobotsProfile::Strictest`],
    /// these are the lines of the groups that apply when the file is read by RFC 9309.
    #[must_use]
    pub fn request_rates(&self) -> &[RequestRateLine] {
        &self.reading.group.request_rates
    }

    /// Returns the `Visit-time` lines of the agent's groups. The agent may visit during the hours
    /// of any of these lines. Under [`RobotsProfile::Strictest`], these are the lines of the groups
    /// that apply when the file is read by RFC 9309.
    #[must_use]
    pub fn visit_times(&self) -> &[VisitTimeLine] {
        &self.reading.group.visit_times
    }

    /// Returns the `Sitemap` lines of the file, whether inside a group or not.
    #[must_use]
    pub fn sitemaps(&self) -> &[SitemapLine] {
        &self.reading.file.sitemaps
    }

    /// Returns the `Clean-param` lines of the file.
    #[must_use]
    pub fn clean_params(&self) -> &[CleanParamLine] {
        &self.reading.file.clean_params
    }

    /// Returns the first `Host` value of the file (the site's main mirror), with its line.
    #[must_use]
    pub fn host(&self) -> Option<(&str, u32)> {
        let (host, line) = self.reading.file.hosts.first()?;
        Some((host, *line))
    }

    /// Returns the usage lines of the vocabulary `kind` that apply to a path: those with the
    /// longest matching path. Lines before the first group apply only if no line in the agent's
    /// groups matches.
    pub(crate) fn preferences(&self, kind: UsageLineVocabulary, path: &str) -> Vec<&UsageLine> {
        let path = NormalizedPath::of(path).bytes;
        let reading = &self.reading;
        for lines in [&reading.group.preferences, &reading.file.preferences] {
            let of_kind = lines.iter().filter(|line| line.kind == kind);
            let lengths: Vec<_> = of_kind
                .filter_map(|line| Some((preference_bytes(line, &path)?, line)))
                .collect();
            if let Some(longest) = lengths.iter().map(|(bytes, _)| *bytes).max() {
                let longest = lengths.iter().filter(|(bytes, _)| *bytes == longest);
                return longest.map(|(_, line)| *line).collect();
            }
        }
        Vec::new()
    }

    /// Returns the first thousand oddities of the file, by line.
    #[must_use]
    pub fn oddities(&self) -> &[RobotsOddity] {
        &self.reading.oddities
    }

    /// Returns the approximate memory in bytes, for a cache with a memory limit.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let readings = self
            .more_readings
            .iter()
            .map(|(_, other)| other.memory_bytes());
        size_of::<AgentRules>() + self.reading.memory_bytes() + readings.sum::<usize>()
    }
}

impl ParsedRobots {
    fn judge(&self, path: &NormalizedPath<'_>, profile: RobotsProfile) -> RuleVerdict<'_> {
        let entry = match &*path.bytes {
            b"/robots.txt" => None,
            _ => self.rules.decide(path),
        };
        self.verdict(entry, profile)
    }

    fn verdict(&self, entry: Option<&CompiledRule>, profile: RobotsProfile) -> RuleVerdict<'_> {
        let group = match entry {
            Some(entry) => self.rules.group(entry),
            None => self.rules.first_group(),
        };
        RuleVerdict {
            access: match entry.is_none_or(CompiledRule::allows) {
                true => RobotsAccess::Allowed,
                false => RobotsAccess::Disallowed,
            },
            rule: entry.map(|entry| DecidingRule {
                text: Cow::Borrowed(self.rules.text(entry)),
                line: entry.line,
            }),
            group: group.map(group_of),
            profile,
        }
    }

    fn memory_bytes(&self) -> usize {
        self.rules.memory_bytes()
            + self.group.memory_bytes()
            + self.file.memory_bytes()
            + self.oddities.capacity() * size_of::<RobotsOddity>()
    }
}

fn group_of((agent, line): (&str, u32)) -> MatchingUserAgentLine<'_> {
    let agent = Cow::Borrowed(agent);
    MatchingUserAgentLine { agent, line }
}

/// Returns how specific a usage line is for `path`: the length of its own path in bytes, or 0 if it
/// has none. `None` if the line's path doesn't match `path`. A line without a path matches every
/// path.
fn preference_bytes(line: &UsageLine, path: &[u8]) -> Option<u32> {
    if line.kind == UsageLineVocabulary::License || !line.value.starts_with('/') {
        return Some(0);
    }
    let pattern = line.value.split([' ', '\t']).next().unwrap_or_default();
    matching_bytes(pattern, path)
}

fn matching_bytes(pattern: &str, path: &[u8]) -> Option<u32> {
    let mut bytes = Vec::new();
    let shape = pattern::push_pattern(pattern.as_bytes(), SpecialCharacters::Meant, &mut bytes);
    pattern::matches(&bytes, shape, path).then_some(shape.bytes)
}

/// Returns whether a path pattern matches a path, as in RFC 9309.
pub(crate) fn path_matches(pattern: &str, path_and_query: &str) -> bool {
    matching_bytes(pattern, &NormalizedPath::of(path_and_query).bytes).is_some()
}

fn note_body(body: &RobotsFileBody<'_>, oddities: &mut Vec<RobotsOddity>) {
    if body.bytes.trim_ascii_start().first() == Some(&b'<') {
        note(oddities, 1, RobotsOddityKind::Markup);
    }
    if body.bridged {
        note(oddities, 1, RobotsOddityKind::Utf16);
    }
    if body.cut {
        let lines = line_parser::RobotsLineIterator::of(&body.bytes).count();
        note(
            oddities,
            u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1,
            RobotsOddityKind::Cut,
        );
    }
}
