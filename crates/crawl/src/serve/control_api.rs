//! Commands to the running crawl: pause, resume, add, delay, park, unpark.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::error_response::ErrorResponse;
use super::live_state_feed::of_client;
use super::server_state::{MAX_BODY_BYTES, ServerState};
use crate::control::client::{ControlClient, ControlClientError};
use crate::control::protocol::ControlCommand;

/// Commands accepted over HTTP.
pub(crate) const COMMANDS: [&str; 6] = ["pause", "resume", "add", "delay", "park", "unpark"];

/// Maximum time for receiving a request body.
/// Beyond the limit: 408.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Handles `POST /api/crawl/COMMAND`, with the command's values as a JSON object.
pub(crate) async fn command(
    State(app): State<Arc<ServerState>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<Value>, ErrorResponse> {
    if !COMMANDS.contains(&name.as_str()) {
        return Err(
            ErrorResponse::new(StatusCode::NOT_FOUND, "there is no such command")
                .hint(format!("commands: {}", COMMANDS.join(", "))),
        );
    }
    let (head, body) = request.into_parts();
    app.guard.may_control(&head.uri, &head.headers)?;
    let command = read(&name, &head.headers, body).await?;
    let client = ControlClient::connect(&app.dir).await.map_err(of_client)?;
    let Some(mut client) = client else {
        return Err(
            ErrorResponse::new(StatusCode::CONFLICT, "no crawl is running here")
                .hint("continue the crawl with `crawl --output DIR`"),
        );
    };
    let done = client.send(&command).await;
    done.map_err(|why| match why {
        ControlClientError::Refused(refused) => ErrorResponse {
            hint: refused.hint,
            ..ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, refused.error)
        },
        why => of_client(why),
    })?;
    Ok(Json(json!({"ok": true})))
}

async fn read(
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<ControlCommand, ErrorResponse> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // Require this type, because pages of other sites can't send it without a preflight request
    // (Fetch Standard, CORS).
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(
            ErrorResponse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body isn't JSON")
                .hint("send a JSON object with `Content-Type: application/json`"),
        );
    }
    let Ok(bytes) = timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await else {
        return Err(ErrorResponse::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        ));
    };
    let bytes = bytes.map_err(|_| too_large())?;
    let mut object: Map<String, Value> = match bytes.trim_ascii() {
        b"" => Map::new(),
        bytes => serde_json::from_slice(bytes)
            .map_err(|why| unreadable(&format!("the body isn't a JSON object: {why}")))?,
    };
    if object.insert("do".to_owned(), json!(name)).is_some() {
        return Err(unreadable("the body must not contain `do`"));
    }
    serde_json::from_value(Value::Object(object))
        .map_err(|why| unreadable(&format!("can't read `{name}`: {why}")))
}

fn unreadable(error: &str) -> ErrorResponse {
    ErrorResponse::bad_request(error)
        .hint("`/api/openapi.json` describes the parameters of each command")
}

/// Returns the error for a body that is longer than any command.
pub(crate) fn too_large() -> ErrorResponse {
    ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")
        .hint(format!("the maximum is {MAX_BODY_BYTES} bytes"))
}
