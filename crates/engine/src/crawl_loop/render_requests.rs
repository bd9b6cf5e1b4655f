//! Renders pages, and spends permits on the resources that the pages request.

use crawl_archive::rows::{RenderEventRow, RenderResult};
use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::{
    FrontierError, NotFetchedReason, Reason, RequestedState, UrlKind, UrlToAdmit,
};
use crawl_scheduler::{PollOutcome, RobotsState, Tick};
use crawl_scope::action;
use crawl_weburl::{CanonicalUrl, Origin, canonicalize};

use super::Coordinator;
use super::render_tracker::{
    QueuedPageDestination, ResourceRequestPermission, ResourceRequestState, is_short,
};
use crate::config::Config;
use crate::content_filter;
use crate::messages::page_pipeline_stages::FetchedPage;
use crate::messages::render::{
    PageResourceRequest, RenderId, ResourceFetchRequest, UnrenderedPageSummary, VisibleContentSize,
};
use crate::messages::{Effect, NonPageRequestResult, RequestJob, WriterMessage};
use crate::render::{RenderFailure, RenderedPage, UndecodedResponse};
use crate::time_conversions::millis;

/// Whether to use a permit for a page, or for a resource that a page in the browser waits for.
/// Resources take precedence.
pub(super) enum RenderPermitUse {
    /// Fetch a page.
    Page,
    /// Request this resource.
    Send(RequestJob),
    /// Don't use the permit: robots.txt must be fetched first, or there is no room for pages.
    Nothing,
}

/// How to record a page's request that the crawl's own rules refuse.
enum RefusalRecord {
    /// `excluded.jsonl` lists the URL.
    Listed(NotFetchedReason),
    /// Only a counter in the page's row records the request.
    Counted,
}

impl Coordinator {
    /// Hands a fetched page to the readers or, if it is rendered first, to the browser.
    pub(super) fn take_on(&mut self, now: Tick, mut page: FetchedPage, out: &mut Vec<Effect>) {
        match self.renders.choice(&page) {
            Some(rendering) => {
                page.rendering = rendering;
                self.hand_to_readers(page, out);
            }
            None => {
                self.renders.add(page, UnrenderedPageSummary::default());
                self.fill_tabs(now, out);
            }
        }
    }

    /// Renders a page that a reader gave back because scripts seem to build it.
    pub(super) fn scripted(
        &mut self,
        now: Tick,
        page: FetchedPage,
        shell: UnrenderedPageSummary,
        out: &mut Vec<Effect>,
    ) {
        let step = RenderEventRow {
            url: Some(page.lease.url.to_string()),
            ..self.render_step(now, "scripted")
        };
        out.push(Effect::NoteRender(Box::new(step)));
        self.backlog.dropped_unread(page.exchange.body.len() as u64);
        self.renders.add(page, shell);
        self.fill_tabs(now, out);
    }

    /// Handles the result of rendering a page, and hands the page to the readers.
    pub(super) fn rendered(
        &mut self,
        now: Tick,
        id: RenderId,
        result: Result<(RenderedPage, VisibleContentSize), RenderFailure>,
        out: &mut Vec<Effect>,
    ) {
        if let Some(url) = self.renders.page_url(id) {
            let step = RenderEventRow {
                page: Some(id.0),
                url: self.loggable(url),
                result: Some(self.render_result(url, &result)),
                ..self.render_step(now, "rendered")
            };
            out.push(Effect::NoteRender(Box::new(step)));
        }
        if let Some(page) = self.renders.rendered(id, result) {
            self.hand_to_readers(page, out);
        }
        self.fill_tabs(now, out);
        self.wake_held_pages(now);
    }

    fn fill_tabs(&mut self, now: Tick, out: &mut Vec<Effect>) {
        while let Some(next) = self.renders.next() {
            match next {
                QueuedPageDestination::Render {
                    page,
                    url,
                    fetched,
                    answer,
                } => out.push(Effect::Render {
                    page,
                    url,
                    fetched,
                    answer,
                }),
                QueuedPageDestination::Read(page) => self.hand_to_readers(*page, out),
            }
        }
        self.backlog.note_rendering(now, self.renders.count());
    }

    pub(super) fn resource_wanted(
        &mut self,
        now: Tick,
        wanted: PageResourceRequest,
        out: &mut Vec<Effect>,
    ) {
        let url = self.renders.url_of(&wanted);
        if self.renders.page_url(wanted.page).is_some() {
            self.note_wanted(now, &wanted, url.as_ref(), out);
        }
        let mut renders = std::mem::take(&mut self.renders);
        let mut excluded = None;
        let access = |from: &CanonicalUrl, url: &CanonicalUrl| match self.refusal(now, url) {
            None => self.access(from, url),
            Some(refusal) => {
                if let RefusalRecord::Listed(exclusion) = refusal {
                    excluded = Some((from.clone(), url.clone(), exclusion));
                }
                ResourceRequestPermission::Barred
            }
        };
        let waits = renders.wanted(now, wanted, url, access);
        self.renders = renders;
        if let Some((from, url, exclusion)) = excluded {
            self.list_refused(url, from, exclusion, out);
        }
        if let ResourceRequestState::Waits(origin) = waits {
            self.wake_pending(now, &origin);
        }
    }

    /// Records a page's request for a resource in the replay order log (`state/order.jsonl`), so
    /// that a replay can repeat it.
    fn note_wanted(
        &self,
        now: Tick,
        PageResourceRequest { page, request, .. }: &PageResourceRequest,
        url: Option<&CanonicalUrl>,
        out: &mut Vec<Effect>,
    ) {
        let step = RenderEventRow {
            page: Some(page.0),
            url: url.and_then(|url| self.loggable(url)),
            method: Some(request.method.clone()),
            kind: Some(request.kind.name().to_owned()),
            has_post_body: request.post.as_ref().is_some_and(is_short),
            ..self.render_step(now, "wanted")
        };
        out.push(Effect::NoteRender(Box::new(step)));
    }

    /// Returns a row of the replay order log (`state/order.jsonl`) for a step of rendering, with
    /// the columns that every step has.
    pub(super) fn render_step(&self, now: Tick, step: &str) -> RenderEventRow {
        RenderEventRow {
            at: now.as_millis(),
            step: step.to_owned(),
            ended: self.hosts.requests().ended_in_run(),
            settled: self.report.of_all_runs().messages,
            ..RenderEventRow::default()
        }
    }

    /// Returns the text of a URL for the replay order log (`state/order.jsonl`). `None` if a secret
    /// is in it.
    pub(super) fn loggable(&self, url: &CanonicalUrl) -> Option<String> {
        let has_secret = self.secrets.are_in_url(url);
        (!has_secret).then(|| url.to_string())
    }

    fn render_result(
        &self,
        url: &CanonicalUrl,
        result: &Result<(RenderedPage, VisibleContentSize), RenderFailure>,
    ) -> RenderResult {
        match result {
            Ok((page, size)) => {
                let to = page.navigation.as_deref();
                let to = to.and_then(|to| canonicalize(Some(url), to).ok());
                RenderResult {
                    page_ms: millis(page.page_time),
                    letters: size.letters as u64,
                    links: size.links as u64,
                    withheld: page.withheld,
                    navigation: to.and_then(|to| self.loggable(&to)),
                    error: None,
                }
            }
            Err(failure) => RenderResult {
                error: Some(failure.name.to_owned()),
                ..RenderResult::default()
            },
        }
    }

    /// Returns how a page may request a URL that the crawl's rules allow. Only pages of the same
    /// site use the operator's header fields and the site's session.
    fn access(&self, from: &CanonicalUrl, url: &CanonicalUrl) -> ResourceRequestPermission {
        let (asking, host) = (from.host_key(), url.host_key());
        let fetch = &self.config.fetch;
        let site = fetch.sessions.site_of(&host);
        let is_same = asking == host || (site.is_some() && fetch.sessions.site_of(&asking) == site);
        match is_same && (site.is_some() || !fetch.access.is_empty()) {
            true => ResourceRequestPermission::Own,
            false => ResourceRequestPermission::Anonymous,
        }
    }

    /// Returns why a URL can't be requested for a page now. `None` if the crawl's own rules allow
    /// it.
    fn refusal(&mut self, now: Tick, url: &CanonicalUrl) -> Option<RefusalRecord> {
        let host = url.host_key();
        // An exclusion would list the URL, and so the secret in it.
        if self.secrets.are_in_url(url) {
            return Some(RefusalRecord::Counted);
        }
        if let Some(rule) = self.scope.current().excluded(url) {
            return Some(RefusalRecord::Listed(NotFetchedReason {
                rule: Some(rule),
                ..NotFetchedReason::of(Reason::Scope)
            }));
        }
        if let Some(exclusion) = self.action_of_page(url) {
            return Some(RefusalRecord::Listed(exclusion));
        }
        let is_left_out = self.scope.is_left_out(&host)
            || self.hosts.is_parked(&host)
            || self.robots.why_unreachable(&url.origin()).is_some()
            || self.hosts.is_budget_spent(now, &host)
            || matches!(self.end.spent_budget(&self.spent()), Some(budget) if budget != "max-pages");
        is_left_out.then_some(RefusalRecord::Counted)
    }

    /// Returns the reason to exclude a page resource whose URL looks like an action, such as a
    /// log-out. `None` if the URL doesn't look like an action, or if actions may be requested on
    /// its site.
    fn action_of_page(&self, url: &CanonicalUrl) -> Option<NotFetchedReason> {
        let is_skipped = self.config.traps.skip_actions || self.skips_actions_at_login(url);
        let action = is_skipped.then(|| action(url)).flatten()?;
        Some(NotFetchedReason {
            rule: Some(action.to_string()),
            ..NotFetchedReason::of(Reason::Action)
        })
    }

    /// Decides whether a permit for a page is used for a resource instead.
    pub(super) fn render_turn(
        &mut self,
        now: Tick,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<RenderPermitUse, FrontierError> {
        let before = self.renders.waiting_at(origin);
        if before == 0 {
            return Ok(self.page_turn(now, origin));
        }
        let turn = self.resource_turn(now, origin, out)?;
        let is_sent = matches!(turn, RenderPermitUse::Send(_));
        let after = self.renders.waiting_at(origin) + u64::from(is_sent);
        // Count the refused resources as results of the turn, so that a replay repeats them.
        for _ in after..before {
            self.turns.passed();
        }
        Ok(turn)
    }

    fn resource_turn(
        &mut self,
        now: Tick,
        origin: &Origin,
        out: &mut Vec<Effect>,
    ) -> Result<RenderPermitUse, FrontierError> {
        let standing = self.robots.standing(origin)?;
        while let Some(request) = self.renders.next_at(origin) {
            // The crawl's own rules may have changed since the page requested the resource.
            let judged = match self.refusal(now, &request.key.url) {
                None => self.robots.judge_url(&standing, &request.key.url).map(drop),
                Some(RefusalRecord::Listed(exclusion)) => Err(Some(exclusion)),
                Some(RefusalRecord::Counted) => {
                    self.renders.refuse(&request.key);
                    continue;
                }
            };
            match judged {
                Ok(()) => return Ok(RenderPermitUse::Send(RequestJob::Render(Box::new(request)))),
                Err(Some(exclusion)) => {
                    self.renders.refuse(&request.key);
                    let ResourceFetchRequest { key, page, .. } = request;
                    self.list_refused(key.url, page, exclusion, out);
                }
                Err(None) => {
                    self.renders.put_back(&request.key);
                    self.hosts.set_robots(now, origin, RobotsState::Unknown);
                    return Ok(RenderPermitUse::Nothing);
                }
            }
        }
        Ok(self.page_turn(now, origin))
    }

    /// Decides whether to use a permit for a page, if no resource of its origin waits. The origin's
    /// pages must wait while there is no room for pages.
    fn page_turn(&mut self, now: Tick, origin: &Origin) -> RenderPermitUse {
        if !self.renders.are_resources_alone {
            return RenderPermitUse::Page;
        }
        // The origin's pages wait until there is room again.
        self.renders.hold_pages_of(origin);
        self.hosts.set_pending(now, origin, 0);
        RenderPermitUse::Nothing
    }

    /// Records that a resource of a page is not requested, with the reason.
    fn list_refused(
        &mut self,
        url: CanonicalUrl,
        page: CanonicalUrl,
        exclusion: NotFetchedReason,
        out: &mut Vec<Effect>,
    ) {
        let admission = UrlToAdmit {
            kind: UrlKind::Resource,
            state: RequestedState::Excluded(exclusion),
            ..UrlToAdmit::link(url, 0, page)
        };
        let message = WriterMessage::Side(Box::new(NonPageRequestResult {
            purpose: "render",
            admissions: vec![admission],
            ..NonPageRequestResult::default()
        }));
        self.write(message, out);
    }

    pub(super) fn resource_fetched(
        &mut self,
        now: Tick,
        request: &ResourceFetchRequest,
        result: Result<Exchange, ExchangeFailure>,
        out: &mut Vec<Effect>,
    ) -> Result<(), FrontierError> {
        let key = &request.key;
        let origin = key.url.origin();
        let host = self.hosts.state(&origin.host_key());
        let exchange = match result {
            Ok(exchange) => {
                let answer = UndecodedResponse::of(&exchange, key.is_own);
                self.renders.answered(key, &answer);
                Some(exchange)
            }
            Err(failure) => {
                if failure.kind.is_refusal() {
                    // The host name had an allowed address when robots.txt was fetched, but has
                    // another one now.
                    let exclusion = NotFetchedReason {
                        rule: Some(failure.detail.clone()),
                        ..NotFetchedReason::of(Reason::Address)
                    };
                    let (url, page) = (key.url.clone(), request.page.clone());
                    self.list_refused(url, page, exclusion, out);
                }
                let is_counted = !failure.kind.is_ours();
                self.renders.failed(key, failure.retry, is_counted);
                None
            }
        };
        let standing = self.robots.standing(&origin)?;
        let is_withheld = exchange.as_ref().is_some_and(|exchange| {
            self.robots.withholds(&standing, exchange) || is_unwanted(&self.config, exchange)
        });
        let bytes = exchange
            .as_ref()
            .map_or(0, |exchange| exchange.body.len() as u64);
        let message = WriterMessage::Side(Box::new(NonPageRequestResult {
            purpose: "render",
            exchange,
            bytes,
            via: Some(request.page.clone()),
            is_withheld,
            host: Some(host),
            ..NonPageRequestResult::default()
        }));
        self.backlog.written(message.weight(), bytes);
        out.push(Effect::Write(message));
        self.wake_pending(now, &origin);
        Ok(())
    }

    /// Uses permits for resources while there is no room for pages. Otherwise the pages that wait
    /// for these resources could fill all room, and wait forever. Returns when to try again.
    pub(super) fn issue_for_renders(&mut self, now: Tick, out: &mut Vec<Effect>) -> Option<Tick> {
        if self
            .renders
            .next_deadline()
            .is_some_and(|until| until <= now)
        {
            self.expire_resources(now, out);
        }
        let later = |until: &Tick| *until > now;
        let mut wake = self.renders.next_deadline().filter(later);
        let hosts = self.renders.hosts_waited_for();
        self.renders.are_resources_alone = true;
        while self.use_found(now, out).is_ok() {}
        for host in hosts {
            match self.hosts.poll_host(now, &host) {
                PollOutcome::Issue(permit) => self.issue(now, permit, out),
                PollOutcome::SleepUntil(tick) => wake = wake.into_iter().chain([tick]).min(),
                PollOutcome::Idle => {}
            }
        }
        self.renders.are_resources_alone = false;
        wake
    }

    /// Refuses the resources that have waited too long.
    pub(crate) fn expire_resources(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let expired = self.renders.expire(now);
        if !expired.is_empty() {
            let step = self.render_step(now, "expired");
            out.push(Effect::NoteRender(Box::new(step)));
        }
        for origin in expired {
            self.wake_pending(now, &origin);
        }
    }

    /// Wakes origins that got no permit for a page because permits were for resources, or because
    /// too many pages waited to be rendered.
    pub(crate) fn wake_held_pages(&mut self, now: Tick) {
        for origin in self.renders.take_turned_away() {
            self.wake_pending(now, &origin);
        }
    }

    /// Gives up the pages that are being rendered, at the end of a run. Their URLs are pending
    /// again, as after a kill.
    pub(crate) fn give_up_renders(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let pages = self.renders.give_up();
        self.backlog.note_rendering(now, 0);
        for page in pages {
            self.unsettle(now, page, out);
        }
    }
}

/// Returns whether the operator's filter keeps the body of a resource out of the archive.
fn is_unwanted(config: &Config, exchange: &Exchange) -> bool {
    content_filter::before_reading(&config.wanted, exchange).is_some()
}

#[cfg(test)]
mod tests;
