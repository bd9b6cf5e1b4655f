//! Opens connections without sending a request, to test whether a server accepts connections.

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The error that [`connect_only`] returns once a connection is established, so that the HTTP
/// client sends no request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is established")]
pub(crate) struct ProbeConnectedError;

/// Establishes a connection, including TLS, and closes it immediately. Returns the error
/// [`ProbeConnectedError`] if that succeeds.
pub(crate) async fn connect_only<F, C>(connecting: F) -> Result<C, BoxError>
where
    F: Future<Output = Result<C, BoxError>>,
{
    drop(connecting.await?);
    Err(ProbeConnectedError.into())
}
