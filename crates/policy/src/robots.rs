//! A robots.txt, compiled for one agent under one profile.

mod clean_params;
mod dialects;
mod lines;
mod oddity;
mod other_lines;
mod part_index;
mod pattern;
mod prefilter;
mod rfc9309;
mod rule_heads;
mod rules;

use std::borrow::Cow;
use std::time::Duration;

use crate::agent::{ProductToken, Profile};

pub use clean_params::Cleaned;
pub use lines::MAX_ROBOTS_BYTES;
pub use oddity::{RobotsOddity, RobotsOddityKind};
pub use other_lines::{CleanParam, RequestRate, SitemapLine, VisitHours, VisitTime};

use dialects::{Dialect, Pick};
pub(crate) use other_lines::{Preference, PreferenceKind};

use lines::Body;
use oddity::note;
use pattern::{Path, Specials};
use rfc9309::{IndexPages, Reading};
use rules::Entry;

/// A robots.txt, compiled for one agent under one [`Profile`].
///
/// [`Robots::parse`] never fails: what can't be read is skipped, as RFC 9309 section 2.3.1.5
/// has it, and listed among the [`oddities`](Robots::oddities). [`Robots::judge`] answers
/// for a path.
#[derive(Debug)]
pub struct Robots {
    profile: Profile,
    reading: Reading,
    // Under `Strictest`: the other readings, with their names.
    others: Vec<(Profile, Reading)>,
}

/// May the path be asked for?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsAccess {
    /// It may.
    Allowed,
    /// It may not.
    Disallowed,
}

/// An answer and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// May the path be asked for?
    pub access: RobotsAccess,
    /// The rule that decided; none where no rule matches.
    pub rule: Option<Rule<'a>>,
    /// The group of that rule; without a rule, the first group that speaks for the agent.
    pub group: Option<Group<'a>>,
    /// The reading that decided. Under [`Profile::Strictest`] it is the one that refused.
    pub profile: Profile,
}

impl Verdict<'_> {
    /// Returns whether the path may be asked for.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.access == RobotsAccess::Allowed
    }
}

/// A line of a robots.txt that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// As written, without comment: `Disallow: /private`.
    pub text: &'a str,
    /// The line, from 1.
    pub line: u32,
}

/// A group of a robots.txt that speaks for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The value of the user-agent line that addresses the agent: its name, or `*`.
    pub agent: &'a str,
    /// That line, from 1.
    pub line: u32,
}

impl Robots {
    /// Compiles a robots.txt for `agent` as `profile` reads it. Of a longer file only
    /// [`MAX_ROBOTS_BYTES`] are read.
    #[must_use]
    pub fn parse(body: &[u8], agent: &ProductToken, profile: Profile) -> Robots {
        let body = Body::of(body);
        let bytes = &body.bytes;
        let old = |dialect, pick| dialects::read(bytes, agent, dialect, pick);
        let mut others = Vec::new();
        let mut reading = match profile {
            Profile::Rfc9309 => rfc9309::read(bytes, agent, IndexPages::AllowFolder),
            Profile::Koster1994 => old(Dialect::Koster1994, Pick::First),
            Profile::Extended1997 => old(Dialect::Extended1997, Pick::First),
            Profile::Strictest => {
                let koster = old(Dialect::Koster1994, Pick::Every);
                let extended = old(Dialect::Extended1997, Pick::Every);
                others.push((Profile::Koster1994, koster));
                others.push((Profile::Extended1997, extended));
                rfc9309::read(bytes, agent, IndexPages::AsWritten)
            }
        };
        note_body(&body, &mut reading.oddities);
        Robots {
            profile,
            reading,
            others,
        }
    }

    /// The rules where there is no robots.txt: everything is allowed.
    #[must_use]
    pub fn allow_all() -> Robots {
        Robots {
            profile: Profile::default(),
            reading: Reading::default(),
            others: Vec::new(),
        }
    }

    /// Judges whether a URL may be asked for. `target` is its path and query, which begin with `/`,
    /// or the whole URL, whose path and query are taken by [`request_path`]. `/robots.txt` itself
    /// always may (RFC 9309 section 2.2.2).
    #[must_use]
    pub fn judge(&self, target: &str) -> Verdict<'_> {
        let profile = match self.profile {
            Profile::Strictest => Profile::Rfc9309,
            profile => profile,
        };
        if self.reading.rules.len() == 0 && self.others.is_empty() {
            return self.reading.verdict(None, profile);
        }
        // `//host/path` is a path here, as in the request for `http://host//host/path`.
        let target = match target.starts_with('/') {
            true => Cow::Borrowed(target),
            false => request_path(target),
        };
        let path = Path::of(&target);
        let verdict = self.reading.judge(&path, profile);
        if verdict.is_allowed() {
            let mut others = self
                .others
                .iter()
                .map(|(name, other)| other.judge(&path, *name));
            if let Some(refusal) = others.find(|verdict| !verdict.is_allowed()) {
                return refusal;
            }
        }
        verdict
    }

    /// The first group that speaks for the agent; none where the file has no word for it.
    #[must_use]
    pub fn group(&self) -> Option<Group<'_>> {
        let (agent, line) = self.reading.rules.first_group()?;
        Some(Group { agent, line })
    }

    /// The longest `Crawl-delay` of the agent's groups, with its line.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<(Duration, u32)> {
        let others = self.others.iter().map(|(_, other)| other);
        std::iter::once(&self.reading)
            .chain(others)
            .filter_map(|reading| reading.group.crawl_delay)
            .max_by_key(|&(delay, line)| (delay, std::cmp::Reverse(line)))
    }

    /// The `Request-rate` lines of the agent's groups.
    #[must_use]
    pub fn request_rates(&self) -> &[RequestRate] {
        &self.reading.group.request_rates
    }

    /// The `Visit-time` lines of the agent's groups: visits are welcome in any of them.
    #[must_use]
    pub fn visit_times(&self) -> &[VisitTime] {
        &self.reading.group.visit_times
    }

    /// The `Sitemap` lines of the file, whatever group they stand in.
    #[must_use]
    pub fn sitemaps(&self) -> &[SitemapLine] {
        &self.reading.file.sitemaps
    }

    /// The `Clean-param` lines of the file.
    #[must_use]
    pub fn clean_params(&self) -> &[CleanParam] {
        &self.reading.file.clean_params
    }

    /// The first `Host` line of the file, with its line: the site's main mirror.
    #[must_use]
    pub fn host(&self) -> Option<(&str, u32)> {
        let (host, line) = self.reading.file.hosts.first()?;
        Some((host, *line))
    }

    /// The lines about the use of a path that speak for the agent: those with the longest
    /// path that matches, its groups' before the file's.
    pub(crate) fn preferences(&self, kind: PreferenceKind, path: &str) -> Vec<&Preference> {
        let path = Path::of(path).bytes;
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

    /// The oddities of the file, by line; the first thousand.
    #[must_use]
    pub fn oddities(&self) -> &[RobotsOddity] {
        &self.reading.oddities
    }

    /// Memory held, in bytes: for a cache that weighs its entries.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let others = self.others.iter().map(|(_, other)| other.memory_bytes());
        size_of::<Robots>() + self.reading.memory_bytes() + others.sum::<usize>()
    }
}

impl Reading {
    fn judge(&self, path: &Path<'_>, profile: Profile) -> Verdict<'_> {
        let entry = match &*path.bytes {
            b"/robots.txt" => None,
            _ => self.rules.decide(path),
        };
        self.verdict(entry, profile)
    }

    fn verdict(&self, entry: Option<&Entry>, profile: Profile) -> Verdict<'_> {
        let group = match entry {
            Some(entry) => self.rules.group(entry),
            None => self.rules.first_group(),
        };
        Verdict {
            access: match entry.is_none_or(Entry::allows) {
                true => RobotsAccess::Allowed,
                false => RobotsAccess::Disallowed,
            },
            rule: entry.map(|entry| Rule {
                text: self.rules.text(entry),
                line: entry.line,
            }),
            group: group.map(|(agent, line)| Group { agent, line }),
            profile,
        }
    }

    fn memory_bytes(&self) -> usize {
        let sitemaps = self.file.sitemaps.iter().map(|s| s.url.capacity() + 32);
        self.rules.memory_bytes()
            + sitemaps.sum::<usize>()
            + self.oddities.capacity() * size_of::<RobotsOddity>()
    }
}

/// The bytes of a preference's path, none where it does not match. No path matches all.
fn preference_bytes(line: &Preference, path: &[u8]) -> Option<u32> {
    if line.kind == PreferenceKind::License || !line.value.starts_with('/') {
        return Some(0);
    }
    let pattern = line.value.split([' ', '\t']).next().unwrap_or_default();
    matching_bytes(pattern, path)
}

fn matching_bytes(pattern: &str, path: &[u8]) -> Option<u32> {
    let mut bytes = Vec::new();
    let shape = pattern::push_pattern(pattern.as_bytes(), Specials::Meant, &mut bytes);
    pattern::matches(&bytes, shape, path).then_some(shape.bytes)
}

/// Returns whether a path pattern as of RFC 9309 matches a path.
pub(crate) fn path_matches(pattern: &str, path_and_query: &str) -> bool {
    matching_bytes(pattern, &Path::of(path_and_query).bytes).is_some()
}

fn note_body(body: &Body<'_>, oddities: &mut Vec<RobotsOddity>) {
    if body.bytes.trim_ascii_start().first() == Some(&b'<') {
        note(oddities, 1, RobotsOddityKind::Markup);
    }
    if body.bridged {
        note(oddities, 1, RobotsOddityKind::Utf16);
    }
    if body.cut {
        let lines = lines::Lines::of(&body.bytes).count();
        note(
            oddities,
            u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1,
            RobotsOddityKind::Cut,
        );
    }
}

/// Path and query of a URL as text, as the most used parser cuts them out: for URLs that
/// stand in test cases or on a command line. Nothing is normalised.
///
/// Scheme and authority end at the first of `/ ? ;` behind `://` or a leading `//`; the
/// fragment is dropped; without a path it is `/`.
#[must_use]
pub fn request_path(url: &str) -> Cow<'_, str> {
    let url = url.split('#').next().unwrap_or_default();
    let behind = match url.strip_prefix("//") {
        Some(rest) => rest,
        None => {
            let early = url.find(['/', '?', ';']);
            match url.find("://") {
                Some(at) if early.is_none_or(|early| at < early) => &url[at + 3..],
                _ => url,
            }
        }
    };
    match behind.find(['/', '?', ';']) {
        None => Cow::Borrowed("/"),
        Some(at) if behind[at..].starts_with('/') => Cow::Borrowed(&behind[at..]),
        Some(at) => Cow::Owned(format!("/{}", &behind[at..])),
    }
}

#[cfg(test)]
mod tests;
