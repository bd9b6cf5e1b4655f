//! Renders pages, and passes the requests that they make to the crawl loop.

use std::sync::Arc;

use crawl_scheduler::Tick;
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::task::spawn_blocking;

use crate::messages::Event;
use crate::messages::render::{PageResourceRequest, RenderId, VisibleContentSize};
use crate::render::{
    PageToRender, RenderFailure, Renderer, ResourceRequestSender, UndecodedResponse,
};

/// Creates the interface that passes the requests of a page to the loop. `events` is weak, so that
/// a page that is still being rendered doesn't keep the loop's channel open.
pub(super) fn requests_of(
    page: RenderId,
    events: WeakUnboundedSender<Event>,
) -> ResourceRequestSender {
    ResourceRequestSender(Arc::new(move |request, answer| {
        let wanted = Box::new(PageResourceRequest {
            page,
            request,
            answer,
        });
        // If the loop is over, dropping the sender of the answer refuses the request.
        if let Some(events) = events.upgrade() {
            let _ = events.send(Event::ResourceWanted(wanted));
        }
    }))
}

/// Renders a page, and measures the result. Runs outside of the crawl loop.
pub(super) async fn rendered(
    renderer: Arc<dyn Renderer>,
    (page, url, fetched): (RenderId, String, Tick),
    answer: UndecodedResponse,
    requests: ResourceRequestSender,
) -> Event {
    let decoded = spawn_blocking(move || PageToRender::of(url, fetched, answer)).await;
    let result = match decoded {
        Ok(input) => renderer.render(input, requests).await,
        Err(error) => Err(RenderFailure {
            name: "page_failed",
            detail: error.to_string(),
            is_browsers: false,
        }),
    };
    let result = match result {
        Ok(page) => {
            let measured = spawn_blocking(move || {
                let size = VisibleContentSize::of_dom(&page.dom);
                (page, size)
            });
            measured.await.map_err(|error| RenderFailure {
                name: "page_failed",
                detail: error.to_string(),
                is_browsers: false,
            })
        }
        Err(failure) => Err(failure),
    };
    Event::Rendered { page, result }
}
