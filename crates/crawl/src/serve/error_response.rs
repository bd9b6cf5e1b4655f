//! Error responses.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why a request failed, sent to the client as JSON, or as a page if a browser requested one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ErrorResponse {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// The cause, in lower case without a full stop.
    pub(crate) error: String,
    /// How to fix the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Seconds after which the client may retry.
    #[serde(skip)]
    pub(crate) retry_after: Option<u64>,
}

impl ErrorResponse {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> ErrorResponse {
        ErrorResponse {
            status,
            error: error.into(),
            hint: None,
            retry_after: None,
        }
    }

    /// Creates the error for a malformed request.
    pub(crate) fn bad_request(error: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn forbidden(error: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(StatusCode::FORBIDDEN, error)
    }

    /// Creates the error for an overloaded server.
    pub(crate) fn busy(error: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, error)
            .hint("try again in a few seconds")
            .retry_after(2)
    }

    pub(crate) fn internal(error: impl Into<String>) -> ErrorResponse {
        ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> ErrorResponse {
        ErrorResponse {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Sets the seconds after which the client may retry.
    pub(crate) fn retry_after(self, seconds: u64) -> ErrorResponse {
        ErrorResponse {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// Sets the response's status and header fields.
    pub(crate) fn mark(&self, response: &mut Response) {
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = Json(&self).into_response();
        self.mark(&mut response);
        response.extensions_mut().insert(self);
        response
    }
}
