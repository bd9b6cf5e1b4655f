//! Assembles the server: its routes and middleware.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::sync::watch;
use tokio::time::timeout;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::connections::{MAX_HEAD_BYTES, PeerAddress};
use super::control_api::too_large;
use super::error_response::ErrorResponse;
use super::search_executor::SearchExecutor;
use super::serve_options::ServeOptions;
use super::server_state::{MAX_BODY_BYTES, ServerState};
use super::{api, headers, view};

/// Maximum time between the head of a request and the head of its response.
/// Beyond the limit: 503.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum size of a response to compress. A smaller response fits into one packet anyway.
const MIN_COMPRESSED_BYTES: u64 = 1024;

/// Paths whose responses may be read by web pages of the origins in `--allow-origin`.
const SHARED: [&str; 4] = [
    "/api/search",
    "/api/page",
    "/api/stats",
    "/api/openapi.json",
];

/// The server's robots.txt, which excludes result pages, the API and the page about the crawl.
/// Crawlers can fetch the pages in the results from their own sites.
const ROBOTS: &str = "User-agent: *\nDisallow: /api/\nDisallow: /crawl\nDisallow: /?\n";

/// Builds the routes and their middleware.
///
/// Must be called within a tokio runtime.
pub(crate) fn router(
    options: &ServeOptions,
    searcher: SearchExecutor,
    stop: watch::Receiver<bool>,
) -> Router {
    let app = Arc::new(ServerState::new(options, searcher, stop));
    let mut router = Router::new()
        .route("/", get(view::search))
        .route("/crawl", get(view::crawl))
        .route("/assets/{file}", get(asset))
        .route("/embed.js", get(embed))
        .route("/robots.txt", get(|| async { ROBOTS }));
    for (path, methods) in api::routes() {
        router = router.route(path, methods);
    }
    router
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(CatchPanicLayer::custom(broke_off))
        .layer(from_fn_with_state(Arc::clone(&app), gate))
        .layer(cors(&options.origins))
        .layer(from_fn_with_state(Arc::clone(&app), finish))
        .layer(CompressionLayer::new().compress_when(worthwhile()))
        .with_state(app)
}

/// Rejects requests that are forbidden, too large or too frequent, and limits the time for a
/// response.
async fn gate(State(app): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    match admitted(&app, &request) {
        Err(problem) => problem.into_response(),
        Ok(()) => match timeout(ANSWER_TIMEOUT, next.run(request)).await {
            Ok(response) => response,
            Err(_) => ErrorResponse::busy("the answer took too long").into_response(),
        },
    }
}

fn admitted(app: &ServerState, request: &Request) -> Result<(), ErrorResponse> {
    app.guard
        .admits(request.version(), request.uri(), request.headers())?;
    if head_bytes(request) > MAX_HEAD_BYTES {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let error = format!("the request's head is larger than {MAX_HEAD_BYTES} bytes");
        return Err(ErrorResponse::new(status, error));
    }
    let Some(PeerAddress(peer)) = request.extensions().get().copied() else {
        return Err(ErrorResponse::internal("the client has no address"));
    };
    let client = app.guard.client(peer, request.headers());
    if let Err(seconds) = app.rates.admit(client) {
        return Err(
            ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, "too many requests")
                .hint(format!("try again in {seconds} s"))
                .retry_after(seconds),
        );
    }
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    match length.is_some_and(|length: u64| length > MAX_BODY_BYTES as u64) {
        true => Err(too_large()),
        false => Ok(()),
    }
}

/// Returns the size of a request's head in bytes, counting one space after each colon. The size is
/// checked here because the connection limits only its read buffer, which may hold twice as much.
fn head_bytes(request: &Request) -> usize {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let target = request.uri().to_string().len();
    let line = request.method().as_str().len() + target + "  HTTP/1.1\r\n".len();
    line + fields.sum::<usize>() + "\r\n".len()
}

/// Completes the header fields of a response. If the response is an error and the client is a
/// browser, renders the error as a page.
async fn finish(State(app): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let for_person = !request.uri().path().starts_with("/api/") && takes_page(request.headers());
    let mut response = next.run(request).await;
    if for_person && let Some(problem) = response.extensions_mut().remove::<ErrorResponse>() {
        let page = view::problem(&app, &problem);
        *response.body_mut() = Body::from(page.into_string());
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        let kind = HeaderValue::from_static("text/html; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, kind);
    }
    headers::complete(&mut response);
    response
}

/// Selects which responses to compress. Small responses aren't worth it, and event streams must
/// arrive without delay.
fn worthwhile() -> impl Predicate {
    SizeAbove::new(MIN_COMPRESSED_BYTES).and(NotForContentType::SSE)
}

fn takes_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    accept.is_some_and(|accept| {
        accept
            .to_str()
            .is_ok_and(|accept| accept.contains("text/html"))
    })
}

/// Allows pages of the configured sites to read results (Fetch Standard, CORS protocol).
fn cors(origins: &[HeaderValue]) -> CorsLayer {
    let origins = origins.to_vec();
    let allowed = AllowOrigin::predicate(move |origin, head| {
        SHARED.contains(&head.uri.path()) && origins.contains(origin)
    });
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET])
        .max_age(Duration::from_secs(600))
        .vary([header::ORIGIN])
}

fn broke_off(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("an answer broke off");
    ErrorResponse::internal("the answer failed").into_response()
}

async fn unknown() -> ErrorResponse {
    ErrorResponse::new(StatusCode::NOT_FOUND, "not found")
        .hint("the search page is `/`, the API is described in `/api/openapi.json`")
}

async fn not_allowed(method: Method) -> ErrorResponse {
    let error = format!("the method {method} isn't allowed here");
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, error)
        .hint("the field `Allow` lists the allowed methods")
}

async fn asset(
    State(app): State<Arc<ServerState>>,
    Path(file): Path<String>,
    asked: HeaderMap,
) -> Response {
    app.assets.hashed(&file, &asked)
}

async fn embed(State(app): State<Arc<ServerState>>, asked: HeaderMap) -> Response {
    app.assets.embed(&asked)
}
