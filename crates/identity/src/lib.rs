//! Proves the identity of a crawler with Web Bot Auth (draft-ietf-webbotauth-httpsig-protocol-01),
//! a profile of HTTP Message Signatures (RFC 9421) with Ed25519.
//!
//! This crate signs requests with a [`SigningKeySet`] and verifies the signatures of a
//! [`SignableMessage`] with the published keys of a [`KeyDirectory`]. The crate does no I/O, reads
//! no clock and generates no random numbers: time, nonce and key seeds are arguments.
//!
//! ```
//! use crawl_identity::{
//!     KeyDirectory, SigningKeySet, LIFETIME, SignableMessage, AcceptSignature, SignatureConditions, signature_fields, verify,
//! };
//!
//! let (mut keys, agent) = (SigningKeySet::default(), "https://bot.example/keys.json");
//! keys.add([7; 32], None);
//! let mut message = SignableMessage { authority: "site.example".to_owned(), ..SignableMessage::default() };
//! let (key, asked) = (keys.at(1_000).unwrap(), AcceptSignature::default());
//! let fields = signature_fields(key, agent, &message, &asked, 1_000, &[1; 32]).unwrap();
//! message.fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
//! let directories = [KeyDirectory::new(agent, keys.public())];
//! let terms = SignatureConditions { at: 1_010, max_lifetime: LIFETIME, ..SignatureConditions::default() };
//! assert!(verify(&message, &directories, &terms)[0].result.is_ok());
//! ```

mod accept_signature;
mod key;
mod key_directory;
mod key_directory_signatures;
mod sign;
mod signable_message;
mod signed_html;
#[cfg(test)]
mod test_key;
mod verify;

pub use accept_signature::{AcceptSignature, AcceptSignatureError, TAG};
pub use key::{KeyError, PublicKey, SigningKey, SigningKeySet};
pub use key_directory::{
    AgentCardDetails, DIRECTORY_PATH, DIRECTORY_TYPE, DirectoryFault, SignatureAgentCard,
    check_directory,
};
pub use key_directory_signatures::{DirectoryResponseFault, verify_directory_response};
pub use sign::{LIFETIME, signature_fields};
pub use signable_message::{SignableMessage, SignatureBaseError};
pub use signed_html::{DocumentSignatureFault, sign_document, verify_document};
pub use verify::{
    KeyDirectory, SeenNonces, SignatureConditions, SignatureFault, SignatureVerdict, verify,
};
