//! Draws the sample from the URLs that were deferred until the draw.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_frontier::{Frontier, UrlToAdmit};
use crawl_sample::SamplingFrame;
use crawl_weburl::Origin;

use super::Writer;
use super::commit_group::CommitGroup;
use crate::error::EngineError;
use crate::priority::Priority;
use crate::sampling::SampleState;
use crate::sampling::drawn_sample::is_in_frame;

impl Writer {
    /// Draws the sample, and admits its pages in one transaction. After a crash, either all pages
    /// of the sample are pending, or the next run draws the same sample. Returns the origins whose
    /// queues changed. Does nothing once `abandon` is set.
    pub(super) fn draw_sample(
        &mut self,
        frontier: &dyn Frontier,
        abandon: &AtomicBool,
    ) -> Result<BTreeMap<Origin, u64>, EngineError> {
        let Some(SampleState::Draw(sampling)) = self.sampling.clone() else {
            return Ok(BTreeMap::new());
        };
        let go_on = || match abandon.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut frame = SamplingFrame::new(sampling.design());
        let mut drawn = Vec::new();
        frontier.each_deferred(&mut |waiting| {
            // A URL is added only if it ranks among the first n so far, where n is the size of the
            // sample. So `drawn` stays small: for N URLs in random order, about n (1 + ln N/n).
            if is_in_frame(&waiting) && frame.add(waiting.url, waiting.depth) {
                let url = waiting.url.clone();
                drawn.push(UrlToAdmit {
                    priority: Priority::LINK.byte(),
                    via: waiting.via.cloned(),
                    is_seed: self.scope_seeds.contains(&url),
                    ..UrlToAdmit::link(url.clone(), waiting.depth, url)
                });
            }
            go_on()
        })?;
        let draw = frame.draw();
        drawn.retain(|link: &UrlToAdmit| draw.stratum_of(&link.url).is_some());
        // If no page can be drawn, don't record a draw: the next run may find pages.
        if go_on().is_break() || drawn.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Fetch the pages of each host in the order of the draw. If the run ends early, the pages
        // that were fetched are then still a random choice.
        drawn.sort_by_cached_key(|link| draw.rank(&link.url));
        let before = self.totals;
        let mut group = CommitGroup::begin(self, frontier, 0)?;
        group.keep_draw(&draw.to_bytes(), &drawn)?;
        let origins = group.finish(&before)?.origins;
        sampling.drawn(draw);
        Ok(origins.into_iter().collect())
    }
}
