//! Draws the sample from the URLs that were deferred for it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_frontier::{Admission, Frontier};
use crawl_sample::Frame;
use crawl_weburl::Origin;

use super::Writer;
use super::group::Group;
use crate::error::EngineError;
use crate::priority::Priority;
use crate::sampling::Sampling;
use crate::sampling::drawn::is_in_frame;

impl Writer {
    /// Draws the sample, and admits its pages in one transaction. After a crash, either all its
    /// pages are pending, or the next run draws the same sample. Returns the origins whose queues
    /// changed. Draws nothing once `abandon` is set.
    pub(super) fn draw_sample(
        &mut self,
        frontier: &dyn Frontier,
        abandon: &AtomicBool,
    ) -> Result<BTreeMap<Origin, u64>, EngineError> {
        let Some(Sampling::Draw(sampling)) = self.sampling.clone() else {
            return Ok(BTreeMap::new());
        };
        let go_on = || match abandon.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut frame = Frame::new(sampling.design());
        let mut drawn = Vec::new();
        frontier.each_deferred(&mut |waiting| {
            // `drawn` stays small. If N URLs arrive in random order, only about n (1 + ln N/n) URLs
            // rank among the first n when they are added.
            if is_in_frame(&waiting) && frame.add(waiting.url, waiting.depth) {
                let url = waiting.url.clone();
                drawn.push(Admission {
                    priority: Priority::LINK.byte(),
                    via: waiting.via.cloned(),
                    is_seed: self.scope_seeds.contains(&url),
                    ..Admission::link(url.clone(), waiting.depth, url)
                });
            }
            go_on()
        })?;
        let draw = frame.draw();
        drawn.retain(|link: &Admission| draw.stratum_of(&link.url).is_some());
        // If the frame is empty, don't record a draw, since the next run may find pages.
        if go_on().is_break() || drawn.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Each host is fetched in the order of the draw. If the run ends early, the pages that it
        // did not fetch are random too.
        drawn.sort_by_cached_key(|link| draw.rank(&link.url));
        let before = self.totals;
        let mut group = Group::begin(self, frontier, 0)?;
        group.keep_draw(&draw.to_bytes(), &drawn)?;
        let origins = group.finish(&before)?.origins;
        sampling.drawn(draw);
        Ok(origins.into_iter().collect())
    }
}
