//! Lets a page's virtual time pass until the page is idle, and scrolls the page in the meantime.
//!
//! Many pages load a part of their text only when a reader scrolls to it. So a page that reacts to
//! scrolling is scrolled once from top to bottom. It is read at its top again, because a long list
//! may keep only its visible rows in the DOM.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{PageRendering, TargetRole};
use crate::RenderError;
use crate::devtools_client::PendingCommandReply;

/// Virtual time between two checks of whether the page is idle. Virtual time is not real time: if a
/// page only waits for a timer, virtual time jumps ahead.
const SLICE: Duration = Duration::from_secs(1);

/// Offset of the checks from whole multiples of [`SLICE`], in virtual time. Page timers fire at
/// whole milliseconds, so none fires at the same time as a check.
const CHECK_DELAY: Duration = Duration::from_micros(500);

/// A page is idle after this many periods of [`SLICE`] without a request or a change of its DOM.
const QUIET_SLICES: u32 = 3;

/// Maximum screens (1,024 pixels each) that a rendered page is scrolled down.
/// Beyond the limit: text loaded further down is missing.
const MAX_SCREENS: u32 = 12;

/// How long the page may react to each screen, in virtual time.
const SCREEN_SLICE: Duration = Duration::from_millis(100);

/// Maximum number of tasks that the browser runs before it forces virtual time to advance. Without
/// a maximum, virtual time would stop for a page that always has tasks.
const MAX_TASKS_AT_A_TIME: u32 = 10_000;

/// How long the workers of a page may be busy before the page is read without them.
const WORKER_PATIENCE: Duration = Duration::from_secs(2);

impl PageRendering<'_> {
    /// Lets virtual time pass until the page is idle or [`BrowserConfig::page_time`] is over.
    ///
    /// [`BrowserConfig::page_time`]: crate::BrowserConfig::page_time
    pub(super) async fn spend_page_time(&mut self, world: i64) -> Result<(), RenderError> {
        let mut quiet = 0;
        let mut has_scrolled = false;
        while !self.remaining_time().is_zero() && quiet < QUIET_SLICES {
            let passed_on = self.passed_on;
            self.spend(SLICE).await?;
            let is_quiet = self.evaluate(world, "isQuiet()").await? == true;
            // The page may react later to an answer received in this slice, so it isn't idle yet.
            let is_idle = is_quiet && self.passed_on == passed_on;
            quiet = if is_idle { quiet + 1 } else { 0 };
            // Don't wait any longer for a page that is never idle.
            if !has_scrolled && (is_idle || self.remaining_time() < self.config.page_time / 2) {
                has_scrolled = true;
                if self.scroll(world).await? {
                    quiet = 0;
                }
            }
        }
        self.is_time_over = true;
        self.wait_for_answers().await?;
        Ok(())
    }

    /// Scrolls to the end of the page and back to its top. Returns false if the window shows the
    /// whole page, or if the page doesn't react to scrolling.
    async fn scroll(&mut self, world: i64) -> Result<bool, RenderError> {
        let mut screens = 0;
        while screens < MAX_SCREENS
            && !self.remaining_time().is_zero()
            && self.evaluate(world, "scrollDown()").await? == true
        {
            screens += 1;
            self.draw().await?;
            self.spend(SCREEN_SLICE).await?;
        }
        if screens > 0 {
            self.evaluate(world, "scrollToTop()").await?;
            self.draw().await?;
        }
        Ok(screens > 0)
    }

    /// Draws the visible part of the page. The browser tells the page that it was scrolled, and
    /// which elements have become visible, only when it draws. It rarely draws on its own while
    /// virtual time passes.
    async fn draw(&mut self) -> Result<(), RenderError> {
        let session = self.main_session.as_deref();
        let pixel = json!({"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1});
        let options = json!({"format": "jpeg", "optimizeForSpeed": true, "clip": pixel});
        let mut drawn = self
            .connection
            .send(session, "Page.captureScreenshot", options);
        self.ended(&mut drawn).await
    }

    fn remaining_time(&self) -> Duration {
        self.config.page_time.saturating_sub(self.page_time)
    }

    /// Lets this much virtual time pass, or what is left of it. Then waits until the caller has
    /// answered all requests, and until each of the page's workers has handled its current task.
    async fn spend(&mut self, time: Duration) -> Result<(), RenderError> {
        let slice = time.min(self.remaining_time());
        let is_first = self.page_time.is_zero();
        let delay = if is_first {
            CHECK_DELAY
        } else {
            Duration::ZERO
        };
        let policy = json!({
            "policy": "pauseIfNetworkFetchesPending",
            "budget": (slice + delay).as_secs_f64() * 1000.0,
            "maxVirtualTimeTaskStarvationCount": MAX_TASKS_AT_A_TIME,
        });
        self.is_slice_over = false;
        self.command("Emulation.setVirtualTimePolicy", policy)
            .await?;
        while !self.is_slice_over {
            self.turn().await?;
        }
        self.page_time += slice;
        // Virtual time has passed without waiting for the page's workers, so wait until each has
        // handled its current task.
        self.wait_for_answers().await?;
        self.wait_for_workers().await
    }

    async fn wait_for_answers(&mut self) -> Result<(), RenderError> {
        while !self.waiting.is_empty() {
            self.turn().await?;
        }
        Ok(())
    }

    /// Waits until each worker has handled its current task. Workers that take too long are ignored
    /// from then on.
    async fn wait_for_workers(&mut self) -> Result<(), RenderError> {
        let sessions = self.sessions.iter();
        let workers = sessions.filter(|(_, role)| **role == TargetRole::Worker);
        let workers: Vec<String> = workers.map(|(session, _)| session.clone()).collect();
        let task = |session: &String| {
            let options = json!({"expression": "0"});
            let connection = self.connection;
            connection.send(Some(session), "Runtime.evaluate", options)
        };
        let replies: Vec<PendingCommandReply> = workers.iter().map(task).collect();
        let deadline = Instant::now() + WORKER_PATIENCE;
        for (session, mut reply) in workers.into_iter().zip(replies) {
            match timeout_at(deadline, self.ended(&mut reply)).await {
                Ok(ended) => ended?,
                Err(_) => {
                    self.sessions.insert(session, TargetRole::Page);
                }
            }
        }
        Ok(())
    }
}
