//! The crawler's private keys: their storage, and the signing of requests.

mod key_source;
mod published_keys_argument;
mod signer;

pub(crate) use key_source::KeySource;
pub(crate) use published_keys_argument::{PublishedKeysArgument, published_keys};
pub(crate) use signer::RotatingSigner;
