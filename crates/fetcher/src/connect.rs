//! A connection that nothing is sent over: whether one can be made.

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The error that the client is given for a connection that stands, so that it sends no request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection stands")]
pub(crate) struct Stands;

/// Closes a connection as soon as it stands, TLS included.
pub(crate) async fn connect_only<F, C>(connecting: F) -> Result<C, BoxError>
where
    F: Future<Output = Result<C, BoxError>>,
{
    drop(connecting.await?);
    Err(Stands.into())
}
