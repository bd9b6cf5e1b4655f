//! The stream of pages.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crawl_archive::rows::PageRow;
use crawl_engine::{EngineError, RunSummary, StopUrgency};
use futures_core::Stream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::error::CrawlError;
use super::output_directory::OutputDirectory;
use super::page::Page;

/// The pages of a crawl, as they are committed to its directory: a [`Stream`], with a method
/// [`next`](PageStream::next) for programs that don't use streams otherwise.
///
/// The crawl pauses while the consumer falls behind. The stream ends when no URL is left or a
/// budget is spent; then [`PageStream::summary`] has the result. An error is the last item.
///
/// To end a crawl early, call [`PageStream::stop`] and take the remaining pages, or call
/// [`PageStream::close`]. Dropping the stream ends the crawl too, but does not wait for the end:
/// until then, the output directory is in use, and another crawl in it fails with
/// [`EngineError::OutputInUse`].
///
/// Each page is delivered at most once. A page that is committed but not taken before `close` or a
/// drop is lost to the consumer: no later crawl in the directory delivers it. Its row remains in
/// `pages.jsonl`.
#[derive(Debug)]
pub struct PageStream(PageStreamState);

#[derive(Debug)]
enum PageStreamState {
    Running(RunningCrawl),
    /// The crawl could not start.
    Failed(CrawlError),
    Ended(Option<Box<RunSummary>>),
}

#[derive(Debug)]
struct RunningCrawl {
    rows: mpsc::Receiver<PageRow>,
    stop: watch::Sender<StopUrgency>,
    task: JoinHandle<Result<RunSummary, EngineError>>,
    output: Arc<OutputDirectory>,
}

impl PageStream {
    pub(super) fn running(
        rows: mpsc::Receiver<PageRow>,
        stop: watch::Sender<StopUrgency>,
        task: JoinHandle<Result<RunSummary, EngineError>>,
        output: Arc<OutputDirectory>,
    ) -> PageStream {
        PageStream(PageStreamState::Running(RunningCrawl {
            rows,
            stop,
            task,
            output,
        }))
    }

    pub(super) fn failed(error: CrawlError) -> PageStream {
        PageStream(PageStreamState::Failed(error))
    }

    /// Waits for the next page. `None` once the crawl has ended.
    pub async fn next(&mut self) -> Option<Result<Page, CrawlError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Drains the crawl: no new requests are sent, but pages in flight still arrive. Take them
    /// until the stream ends.
    pub fn stop(&self) {
        if let PageStreamState::Running(running) = &self.0 {
            running.stop.send_replace(StopUrgency::Drain);
        }
    }

    /// Ends the crawl immediately, and waits until it no longer uses its output directory. Requests
    /// in flight are abandoned, and pages that were not taken are dropped. A crawl with an output
    /// directory can be resumed there. Returns the summary, or `None` if the stream returned an
    /// error before.
    ///
    /// # Errors
    /// The error that ended the crawl, if the stream has not returned it.
    pub async fn close(mut self) -> Result<Option<RunSummary>, CrawlError> {
        if let PageStreamState::Running(running) = &mut self.0 {
            running.stop.send_replace(StopUrgency::Now);
        }
        while let Some(page) = self.next().await {
            page?;
        }
        match self.0 {
            PageStreamState::Ended(summary) => Ok(summary.map(|summary| *summary)),
            PageStreamState::Running(_) | PageStreamState::Failed(_) => Ok(None),
        }
    }

    /// Returns the counts of the crawl and why it ended. `None` before the stream has ended, and
    /// after an error.
    #[must_use]
    pub fn summary(&self) -> Option<&RunSummary> {
        match &self.0 {
            PageStreamState::Ended(summary) => summary.as_deref(),
            PageStreamState::Running(_) | PageStreamState::Failed(_) => None,
        }
    }
}

impl Stream for PageStream {
    type Item = Result<Page, CrawlError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let running = match &mut self.0 {
            PageStreamState::Running(running) => running,
            PageStreamState::Ended(_) => return Poll::Ready(None),
            PageStreamState::Failed(_) => {
                let PageStreamState::Failed(error) =
                    std::mem::replace(&mut self.0, PageStreamState::Ended(None))
                else {
                    return Poll::Ready(None);
                };
                return Poll::Ready(Some(Err(error)));
            }
        };
        if let Some(row) = ready!(running.rows.poll_recv(cx)) {
            let output = Arc::clone(&running.output);
            return Poll::Ready(Some(Ok(Page::new(row, output))));
        }
        let ended = ready!(Pin::new(&mut running.task).poll(cx));
        let (summary, error) = match ended {
            Ok(Ok(summary)) => (Some(Box::new(summary)), None),
            Ok(Err(error)) => (None, Some(CrawlError::Engine(error))),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime is shutting down and has cancelled the task, so there is neither a
            // summary nor an error.
            Err(_) => (None, None),
        };
        self.0 = PageStreamState::Ended(summary);
        Poll::Ready(error.map(Err))
    }
}

impl Drop for RunningCrawl {
    fn drop(&mut self) {
        // Signal the crawl to stop instead of aborting its task. The task then ends only after the
        // crawl's threads, so the directory is not removed while they still write to it.
        self.stop.send_replace(StopUrgency::Now);
    }
}
