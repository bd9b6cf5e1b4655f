//! A connection that nothing is sent over: whether one can be made.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The error that the client is given for a connection that stands, so that it sends no request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection stands")]
pub(crate) struct Stands;

/// Closes each connection as soon as it stands, TLS included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectOnly;

impl<S> Layer<S> for ConnectOnly {
    type Service = Connecting<S>;

    fn layer(&self, connector: S) -> Connecting<S> {
        Connecting(connector)
    }
}

/// A connector that hands no connection over.
#[derive(Clone, Debug)]
pub(crate) struct Connecting<S>(S);

impl<S, R> Service<R> for Connecting<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async move {
            drop(connecting.await.map_err(Into::into)?);
            Err(Stands.into())
        })
    }
}
