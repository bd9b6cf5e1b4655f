//! The requests that find out an origin's rules: robots.txt, its hops, `tdmrep.json`.

use std::net::IpAddr;

use crawl_fetcher::robots::{
    CompiledRobots, EXCLUDED_HOST, RobotsAnswer, RobotsCopyState, TDMREP_PATH, TdmFile,
};
use crawl_fetcher::{Exchange, Failure, FailureKind, FetchRequest, Secrets, Validators};
use crawl_frontier::{Admission, Exclusion, FrontierError, NewState, Reason};
use crawl_scheduler::{Purpose, RobotsPace, RobotsState, Tick};
use crawl_scope::ScopeVerdict;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::Coordinator;
use super::robots_state::PendingRobotsFetch;
use crate::admissions::{sitemap_admission, sitemap_guess};
use crate::messages::{Effect, Job, RobotsExchange, WriterMessage};
use crate::secrets::SECRET_IN_URL;

/// Counter of sitemaps on out-of-scope hosts.
const SITEMAP_ELSEWHERE: &str = "sitemap_elsewhere";

/// Why rules can't be had that lie on a host of another worker: this one may not ask it.
const OTHER_WORKERS_HOST: &str = "it redirects to a host that another worker asks";

impl Coordinator {
    /// The job that a permit for an origin's robots.txt, or a hop of it, is used for.
    pub(crate) fn robots_job(
        &mut self,
        of: Origin,
        url: CanonicalUrl,
        hop: u8,
    ) -> Result<Job, FrontierError> {
        let request = self.origins.request(&of, url, &*self.frontier)?;
        Ok(Job::Robots { of, request, hop })
    }

    /// The job that a permit for what follows a robots.txt is used for.
    pub(crate) fn pending_fetch_job(
        &mut self,
        now: Tick,
        of: Origin,
    ) -> Result<Option<Job>, FrontierError> {
        let is_out = self.scope.is_left_out(&of.host_key());
        match self.origins.take_pending_fetch(&of) {
            Some(PendingRobotsFetch::Hop(url, hop))
                if !is_out && !self.scope.is_left_out(&url.host_key()) =>
            {
                self.robots_job(of, url, hop).map(Some)
            }
            Some(PendingRobotsFetch::TdmRep(tries)) if !is_out => Ok(Some(Job::TdmRep {
                request: FetchRequest::robots(of.url(TDMREP_PATH), Validators::default()),
                of,
                tries,
            })),
            None | Some(_) => {
                // Nothing is known that may follow.
                self.begin_rules_anew(now, &of);
                Ok(None)
            }
        }
    }

    /// The robots.txt of an origin is asked for again, unless the origin was handed over.
    fn begin_rules_anew(&mut self, now: Tick, of: &Origin) {
        if self.scheduler.host_of(of).is_some() {
            self.scheduler.set_robots(now, of, RobotsState::Unknown);
        }
    }

    /// Learns from an exchange for robots.txt: a redirect is followed by asking for a
    /// permit of its host, anything else is the origin's new state.
    pub(crate) fn robots_fetched(
        &mut self,
        now: Tick,
        of: &Origin,
        request: &FetchRequest,
        hop: u8,
        result: Result<Exchange, Failure>,
        out: &mut Vec<Effect>,
    ) -> Result<(), FrontierError> {
        let mut item = RobotsExchange {
            of: Some(of.clone()),
            host: Some(self.host_state(&request.url.host_key())),
            purpose: "robots",
            ..RobotsExchange::default()
        };
        if !self.keeps_host(&of.host_key()) {
            // Its next owner asks by itself, and may follow where this worker may not.
            self.begin_rules_anew(now, of);
            self.write_exchange(item, result, out);
            return Ok(());
        }
        let mut answer = RobotsAnswer::of(request, &result, hop);
        if let RobotsAnswer::Redirect { to, status } = &answer
            && self.scope.current().excluded_host(&to.host_key()).is_some()
        {
            answer = RobotsAnswer::Unreachable {
                why: EXCLUDED_HOST.to_owned(),
                status: Some(*status),
                retry_after: None,
            };
        }
        if let RobotsAnswer::Redirect { to, status } = &answer
            && !self.keeps_host(&to.host_key())
        {
            answer = RobotsAnswer::Unreachable {
                why: OTHER_WORKERS_HOST.to_owned(),
                status: Some(*status),
                retry_after: None,
            };
        }
        if let RobotsAnswer::Redirect { to, .. } = &answer {
            self.origins
                .set_pending_fetch(of, PendingRobotsFetch::Hop(to.clone(), hop + 1));
            let host = to.host_key();
            self.recall(now, &host)?;
            self.heed_siblings(now, &to.origin())?;
            self.scheduler
                .queue_request(now, &host, Purpose::Hop { of: of.clone() });
        } else if let Some(why) = refusal(hop, &result) {
            // Rules that may not be asked for can't be known, and need not be: each URL
            // of the origin is settled as refused when it is leased.
            self.origins.refuse(of, why);
            let state = RobotsState::InForce {
                pace: RobotsPace::default(),
                until: Tick::from_micros(u64::MAX),
            };
            self.scheduler.set_robots(now, of, state);
        } else {
            let compiled = self.origins.learn(of, &answer, &result, &*self.frontier)?;
            let address = result.as_ref().ok().and_then(|exchange| exchange.address);
            let address = address.filter(|_| hop == 0).map(|address| address.ip());
            if self.origins.wants_tdmrep(&compiled) {
                let state = self
                    .origins
                    .state(compiled.copy.fetched_at, &compiled, address);
                if let RobotsState::InForce { pace, .. } = state {
                    self.scheduler.set_robots_pace(now, of, &pace);
                }
                // Kept at once: pages must never be judged by the copy before.
                item.copy = Some((of.clone(), compiled.copy.to_bytes()));
                self.ask_for_tdmrep(now, of, 0);
            } else {
                self.rules_known(now, of, &compiled, address, &mut item);
            }
        }
        self.write_exchange(item, result, out);
        Ok(())
    }

    /// Learns from an exchange for an origin's `tdmrep.json`, the last thing that pages wait
    /// for. One that can't be had after the usual retries is as none, or as it was last.
    pub(crate) fn tdmrep_fetched(
        &mut self,
        now: Tick,
        of: &Origin,
        tries: u32,
        result: Result<Exchange, Failure>,
        out: &mut Vec<Effect>,
    ) -> Result<(), FrontierError> {
        let mut item = RobotsExchange {
            of: Some(of.clone()),
            host: Some(self.host_state(&of.host_key())),
            purpose: "tdmrep",
            ..RobotsExchange::default()
        };
        let file = TdmFile::of(&result);
        let may_change = result
            .as_ref()
            .map_or_else(|failure| failure.retry, |_| true);
        if file.is_none() && may_change && tries < self.config.retries {
            self.ask_for_tdmrep(now, of, tries + 1);
        } else if let Some(held) = self.origins.load(of, &*self.frontier)? {
            let mut copy = held.copy.clone();
            copy.tdmrep = match (file, copy.tdmrep) {
                (Some(file), _) => file,
                (None, TdmFile::NotAsked) => TdmFile::None,
                (None, held) => held,
            };
            let address = result.as_ref().ok().and_then(|exchange| exchange.address);
            let address = address.map(|address| address.ip());
            let compiled = self.origins.keep(copy);
            self.rules_known(now, of, &compiled, address, &mut item);
        } else {
            // The copy left memory before the state had it: robots.txt comes first again.
            self.scheduler.set_robots(now, of, RobotsState::Unknown);
        }
        self.write_exchange(item, result, out);
        Ok(())
    }

    /// Hands an exchange for an origin's rules to the writer, with what it came to.
    fn write_exchange(
        &mut self,
        mut item: RobotsExchange,
        result: Result<Exchange, Failure>,
        out: &mut Vec<Effect>,
    ) {
        item.exchange = result.ok();
        item.bytes = item
            .exchange
            .as_ref()
            .map_or(0, |exchange| exchange.body.len() as u64);
        let bytes = item.bytes;
        let message = WriterMessage::Robots(Box::new(item));
        self.backlog.written(message.weight(), bytes);
        out.push(Effect::Write(message));
    }

    fn ask_for_tdmrep(&mut self, now: Tick, of: &Origin, tries: u32) {
        self.origins
            .set_pending_fetch(of, PendingRobotsFetch::TdmRep(tries));
        self.scheduler
            .queue_request(now, &of.host_key(), Purpose::Hop { of: of.clone() });
    }

    /// All that pages of an origin wait for was answered, well or not.
    fn rules_known(
        &mut self,
        now: Tick,
        of: &Origin,
        compiled: &CompiledRobots,
        address: Option<IpAddr>,
        item: &mut RobotsExchange,
    ) {
        // As of the answer, however late it is read: one page at least may go by it, or a
        // short life would have robots.txt asked for without end.
        let state = self
            .origins
            .state(compiled.copy.fetched_at, compiled, address);
        self.scheduler.set_robots(now, of, state);
        self.events.rules_known(of, &compiled.copy);
        item.copy = Some((of.clone(), compiled.copy.to_bytes()));
        let known = !matches!(compiled.copy.state, RobotsCopyState::Unreachable { .. });
        if self.config.sitemaps && known {
            item.sitemaps = self.sitemaps(of, compiled);
        }
    }

    /// The sitemaps that a robots.txt names, by a relative path too; /sitemap.xml where
    /// it names none. Those of other hosts must lie in scope, and none may carry a secret on.
    fn sitemaps(&mut self, of: &Origin, compiled: &CompiledRobots) -> Vec<Admission> {
        let robots_url = of.robots_url();
        let named = compiled.robots.sitemaps();
        let (mut sitemaps, mut with_secret) = (Vec::new(), 0);
        let secrets = Secrets::of(&self.config.fetch.access);
        for sitemap in named {
            match canonicalize(Some(&robots_url), sitemap.url.as_ref()) {
                Ok(url) if secrets.are_in_url(&url) => with_secret += 1,
                Ok(url) => sitemaps.push(sitemap_admission(url, &robots_url)),
                Err(_) => {}
            }
        }
        if with_secret > 0 {
            self.report.add_unusable(SECRET_IN_URL, with_secret);
        }
        let is_guess = named.is_empty();
        if is_guess {
            sitemaps.push(sitemap_guess(of.url("/sitemap.xml"), &robots_url));
        }
        let host = of.host_key();
        let is_off = self.scope.current().hops_off() > 0
            && !self.scope.current().holds_some_of_host(&robots_url);
        let mut elsewhere = 0;
        for sitemap in &mut sitemaps {
            if self.scope.may_read_sitemap(&sitemap.url, &host) {
                continue;
            }
            // Its pages will be missing, so record why.
            elsewhere += u64::from(sitemap.url.host_key() != host);
            let rule = match self.scope.current().judge(&sitemap.url, 0) {
                ScopeVerdict::Out { rule, .. } => rule,
                ScopeVerdict::In => "hops-off-scope".to_owned(),
            };
            sitemap.state = NewState::Excluded(Exclusion {
                rule: Some(rule),
                ..Exclusion::of(Reason::Scope)
            });
        }
        if elsewhere > 0 && !is_off {
            self.report.add_unusable(SITEMAP_ELSEWHERE, elsewhere);
        }
        // A guessed sitemap has no entry: nobody named it.
        let is_told = !is_guess && !is_off;
        sitemaps.retain(|sitemap| sitemap.state == NewState::Pending || is_told);
        sitemaps
    }
}

/// The reason why no page of an origin may be asked for, by what came of the request for its
/// robots.txt.
fn refusal(hop: u8, result: &Result<Exchange, Failure>) -> Option<Exclusion> {
    let failure = result.as_ref().err()?;
    match failure.kind {
        FailureKind::NotArchived => Some(Exclusion::of(Reason::NotArchived)),
        kind if hop == 0 && kind.is_refusal() => Some(Exclusion {
            rule: Some(failure.detail.clone()),
            ..Exclusion::of(Reason::Address)
        }),
        _ => None,
    }
}
