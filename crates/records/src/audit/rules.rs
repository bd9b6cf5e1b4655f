//! robots.txt first, and nothing that it bars: requests, and what the rows say of it.

use std::rc::Rc;

use crawl_archive::rows::{ExcludedRow, PageRow};
use crawl_policy::{Robots, Verdict};
use crawl_weburl::{CanonicalUrl, canonicalize};

use super::copies::Force;
use super::findings::Source::{Excluded, Pages, Requests};
use super::hosts::{Purpose, Sent};
use super::{EARLIER_RUN, SETTLING_MS, Trial};
use crate::error::RecordsError;

/// One page may follow an answer whose copy is too old by then, within a day.
const LONGEST_LIFE_MS: u64 = 24 * 3600 * 1000;
const NOT_ARCHIVED: &str = "an answer to a request for robots.txt that is not archived";

/// What a request came to by one copy.
enum Judged {
    Kept,
    Undecided(&'static str),
    Broke(&'static str, String),
}

impl Trial<'_> {
    /// Holds a request for a page against the copy that was in force when it began.
    pub(super) fn bound(
        &mut self,
        host: usize,
        sent: &Sent,
        url: &CanonicalUrl,
    ) -> Result<(), RecordsError> {
        let Some(copies) = &self.copies else {
            return Ok(());
        };
        let (key, per_host) = match self.hosts.all.get(host) {
            Some(host) => (host.key.clone(), host.terms.per_host),
            None => return Ok(()),
        };
        let origin = copies.number(&url.origin());
        let last = origin.and_then(|origin| Some((origin, copies.last_at(origin, sent.start)?)));
        let Some((origin, last)) = last else {
            self.findings.checked("page_requests");
            let what = format!(
                "{} was asked for before robots.txt had answered",
                url.as_str()
            );
            let rows = [(Requests, sent.line)];
            self.findings
                .breach("robots-first", &key, what, None, &rows);
            return Ok(());
        };
        let answer = &copies.answers(origin)[last];
        let (line, lags) = (answer.line, answer.end + SETTLING_MS > sent.start);
        let lags = lags && (per_host > 1 || !answer.at_home);
        let mut judged = self.judged(origin, last, sent, url)?;
        if let (Judged::Broke(..), true, Some(before)) = (&judged, lags, last.checked_sub(1))
            && matches!(self.judged(origin, before, sent, url)?, Judged::Kept)
        {
            judged = Judged::Undecided("rules that were answered just then");
        }
        if let (Some(copies), Purpose::Page) = (&mut self.copies, sent.purpose) {
            copies.note_page(origin, last);
        }
        match judged {
            Judged::Kept => self.findings.checked("page_requests"),
            Judged::Undecided(why) => self.findings.undecided(why),
            Judged::Broke(rule, what) => {
                self.findings.checked("page_requests");
                let rows = [(Requests, line), (Requests, sent.line)];
                self.findings.breach(rule, &key, what, None, &rows);
            }
        }
        Ok(())
    }

    fn judged(
        &mut self,
        origin: usize,
        index: usize,
        sent: &Sent,
        url: &CanonicalUrl,
    ) -> Result<Judged, RecordsError> {
        let (terms, Some(copies)) = (self.terms, &mut self.copies) else {
            return Ok(Judged::Kept);
        };
        let Some(answer) = copies.answers(origin).get(index) else {
            return Ok(Judged::Kept);
        };
        let (place, until) = match answer.force(terms) {
            Force::Unknown => return Ok(Judged::Undecided(NOT_ARCHIVED)),
            Force::Unreachable if !terms.held_at(sent.start) => {
                return Ok(Judged::Undecided(EARLIER_RUN));
            }
            Force::Unreachable => {
                let what = format!("{url} was asked for while robots.txt could not be had");
                return Ok(Judged::Broke("unreachable", what));
            }
            Force::Rules { place, until } => (place, until),
        };
        let held = terms.held_at(sent.start);
        let is_page = sent.purpose == Purpose::Page;
        let latest = match answer.page_followed {
            true => until,
            false => until.max(answer.known_at + LONGEST_LIFE_MS),
        };
        if is_page && sent.start > latest + SETTLING_MS {
            return Ok(match (held, terms.restarted_after(answer.end)) {
                (false, _) => Judged::Undecided(EARLIER_RUN),
                (_, true) => Judged::Undecided("a copy that was too old after a restart"),
                _ => {
                    let (age, life) = (sent.start - answer.end, until - answer.end);
                    let what = format!(
                        "{url} was asked for by a copy of robots.txt that was {age} ms old, and holds for {life} ms"
                    );
                    Judged::Broke("stale", what)
                }
            });
        }
        let from = sent.start.saturating_sub(SETTLING_MS);
        let is_welcome = answer
            .asks()
            .is_none_or(|asks| asks.welcomes(from, sent.start));
        let forbidden = answer.forbidden(terms);
        let robots = copies.robots(place)?;
        let verdict = robots.judge(url.path_and_query());
        let broke = if let Some(status) = forbidden.filter(|_| is_page) {
            let what = format!("{url} was asked for where robots.txt answered {status}");
            Judged::Broke("barred", what)
        } else if !verdict.is_allowed() {
            let what = format!(
                "{url} was asked for, and robots.txt bars it: {}",
                words(&verdict)
            );
            Judged::Broke("barred", what)
        } else if is_page && !is_welcome {
            let what = format!("{url} was asked for outside of the Visit-time");
            Judged::Broke("visit-time", what)
        } else {
            return Ok(Judged::Kept);
        };
        Ok(match held {
            true => broke,
            false => Judged::Undecided(EARLIER_RUN),
        })
    }

    /// Holds what a row of `pages.jsonl` says of robots.txt against the copy of its time.
    pub(super) fn page_row(&mut self, row: &PageRow, line: u64) -> Result<(), RecordsError> {
        let (Some(said), Ok(url)) = (&row.robots, canonicalize(None, &row.url)) else {
            return Ok(());
        };
        let started = row.fetched_at.as_millis();
        let Some(copies) = &self.copies else {
            return Ok(());
        };
        let origin = copies.number(&url.origin());
        let last = origin.and_then(|origin| Some((origin, copies.last_at(origin, started)?)));
        let Some((origin, last)) = last else {
            return Ok(self
                .findings
                .undecided("rows of pages.jsonl without a robots.txt before"));
        };
        let is_said = |verdict: &Verdict<'_>| {
            let rule = verdict.rule.map(|rule| (rule.text, rule.line));
            let access = if verdict.is_allowed() {
                "allowed"
            } else {
                "disallowed"
            };
            said.verdict == access
                && said.rule.as_deref() == rule.map(|(text, _)| text)
                && said.line == rule.map(|(_, line)| line)
        };
        let Some(robots) = self.rules_of(origin, last)? else {
            return Ok(self.findings.undecided(NOT_ARCHIVED));
        };
        let verdict = robots.judge(url.path_and_query());
        if is_said(&verdict) {
            return Ok(self.findings.checked("page_rows"));
        }
        let answer = self.answer(origin, last);
        let (answered, just_then) = answer.map_or((0, false), |answer| {
            (answer.line, answer.end + SETTLING_MS > started)
        });
        if let Some(before) = last.checked_sub(1).filter(|_| just_then)
            && let Some(robots) = self.rules_of(origin, before)?
            && is_said(&robots.judge(url.path_and_query()))
        {
            return Ok(self
                .findings
                .undecided("rules that were answered just then"));
        }
        if !self.terms.held_at(started) {
            return Ok(self.findings.undecided(EARLIER_RUN));
        }
        self.findings.checked("page_rows");
        let told = match (&said.rule, said.line) {
            (Some(rule), Some(line)) => format!("`{rule}` on line {line}"),
            (Some(rule), None) => format!("`{rule}`"),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => "no rule".to_owned(),
        };
        let what = format!(
            "the row of {url} says {}, by {told}, where robots.txt has {}, by {}",
            said.verdict,
            if verdict.is_allowed() {
                "allowed"
            } else {
                "disallowed"
            },
            words(&verdict)
        );
        let rows = [(Requests, answered), (Pages, line)];
        self.findings
            .breach("page-row", url.host_key().as_str(), what, None, &rows);
        Ok(())
    }

    /// Holds a row of `excluded.jsonl` whose reason is robots.txt against the copies that
    /// the crawl had.
    pub(super) fn excluded_row(
        &mut self,
        row: &ExcludedRow,
        line: u64,
    ) -> Result<(), RecordsError> {
        let (Ok(url), Some(copies)) = (canonicalize(None, &row.url), &self.copies) else {
            return Ok(());
        };
        let origin = copies.number(&url.origin());
        let answers = origin.map_or(0, |origin| copies.answers(origin).len());
        let mut undecided = None;
        for index in (0..answers).rev() {
            let origin = origin.unwrap_or_default();
            let Some(robots) = self.rules_of(origin, index)? else {
                undecided = Some(NOT_ARCHIVED);
                continue;
            };
            let verdict = robots.judge(url.path_and_query());
            let rule = verdict.rule.map(|rule| (rule.text, rule.line));
            let barred = !verdict.is_allowed()
                && row.rule.as_deref() == rule.map(|(text, _)| text)
                && row.line == rule.map(|(_, line)| line);
            let Some(answer) = self.answer(origin, index) else {
                continue;
            };
            let forbidden = answer.forbidden(self.terms).is_some_and(|status| {
                row.rule.as_deref() == Some(&format!("robots.txt answered {status}"))
            });
            if barred || forbidden {
                return Ok(self.findings.checked("excluded_rows"));
            }
            if !self.terms.held_at(answer.end) {
                undecided = undecided.or(Some(EARLIER_RUN));
            }
        }
        if let Some(why) = undecided {
            return Ok(self.findings.undecided(why));
        }
        self.findings.checked("excluded_rows");
        let what = format!("{url} is listed as barred by robots.txt, and no copy of it says so");
        let rows = [(Excluded, line)];
        self.findings
            .breach("excluded-row", url.host_key().as_str(), what, None, &rows);
        Ok(())
    }

    fn answer(&self, origin: usize, index: usize) -> Option<&super::copies::Answer> {
        self.copies.as_ref()?.answers(origin).get(index)
    }

    /// The rules that an answer put into force, where they can be told.
    fn rules_of(
        &mut self,
        origin: usize,
        index: usize,
    ) -> Result<Option<Rc<Robots>>, RecordsError> {
        let force = self
            .answer(origin, index)
            .map(|answer| answer.force(self.terms));
        match (&mut self.copies, force) {
            (Some(copies), Some(Force::Rules { place, .. })) => copies.robots(place).map(Some),
            _ => Ok(None),
        }
    }
}

fn words(verdict: &Verdict<'_>) -> String {
    match verdict.rule {
        Some(rule) => format!("`{}` on line {}", rule.text, rule.line),
        None => "no rule".to_owned(),
    }
}
