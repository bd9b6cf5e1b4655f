//! The crawler's private keys: where they are stored, and how requests are signed with them.

mod key_source;
mod published;
mod signer;

pub(crate) use key_source::KeySource;
pub(crate) use published::{KeysOf, published_keys};
pub(crate) use signer::RotatingSigner;
