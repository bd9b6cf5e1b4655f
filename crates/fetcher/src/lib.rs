//! One bounded HTTP exchange; names and addresses; copies of robots.txt.
//!
//! [`Fetcher::fetch`] spends a permit on one GET and comes back with an [`Exchange`] (what
//! the server answered, the body as it was encoded) or a [`Failure`] (in which phase, whose
//! fault, whether trying again helps). Everything a server can send is bounded: time,
//! headers, body. Addresses that are not anyone's public server are refused before a connection is
//! made, unless the operator allowed them. [`robots`] says what an answer to a request for
//! robots.txt means, how long it holds, and keeps copies. [`interstitial()`] tells login pages,
//! challenges and block pages from pages.
//!
//! The crate never decides when to ask (that is the permit), never follows a redirect,
//! keeps no cookie, sends no referer unless told to, reads no proxy from the environment and
//! never asks again by itself: one permit is one request.

mod address_rules;
mod body_filter;
mod body_memory;
mod body_reader;
mod client;
mod client_error;
mod clock;
mod config;
mod connect;
mod contact;
mod deadline;
mod descriptor_limit;
mod exchange;
mod failure;
mod failure_kind;
mod fetch;
mod host_access;
mod interstitial;
mod kept_connections;
mod name_servers;
mod rate_limit;
mod referer;
mod resolver;
mod retry_after;
pub mod robots;
mod secrets;
mod send_guard;

pub use body_filter::BodyFilter;
pub use body_memory::BodyMemory;
pub use clock::Clock;
pub use config::{BadRoots, FetchConfig, ResolveOverride, SetupError, check_roots, user_agent};
pub use contact::{BadContact, Contact, MAX_CONTACT_BYTES};
pub use exchange::{Exchange, FetchRequest, SentFields, TlsVersion, Truncation, Validators};
pub use failure::Failure;
pub use failure_kind::{FailureKind, FailurePhase, Fault};
pub use fetch::Fetcher;
pub use host_access::{AccessError, HostAccess};
pub use interstitial::{Interstitial, PageOutline, interstitial};
pub use rate_limit::rate_limit;
pub use retry_after::retry_after;
pub use secrets::{MIN_SECRET_BYTES, Secrets};
pub use send_guard::SendGuard;
