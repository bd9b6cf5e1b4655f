//! Bounded HTTP exchanges, name resolution and address checks, and copies of robots.txt.
//!
//! [`Fetcher::fetch`] spends a permit on one request. The result is an [`Exchange`] (the server's
//! answer, with the body in its content coding) or an [`ExchangeFailure`] (the phase, whose fault
//! it was, and whether a retry may help). Everything a server can send is bounded: time, headers,
//! body. Addresses that don't belong to a public server are refused before connecting, unless the
//! operator allowed them. [`robots`] interprets answers to requests for robots.txt, tracks how long
//! they are valid, and keeps copies. [`interstitial()`] detects login pages, challenges and block
//! pages.
//!
//! The crate never decides when to fetch: the permit does. The crate never follows a redirect,
//! keeps no cookies and sends no referer unless configured, and reads no proxy from the
//! environment. A request that was answered is never retried: one permit is one request.

mod address_checker;
mod body_filter;
mod body_framing;
mod body_memory_pool;
mod body_reader;
mod clock;
mod config;
mod connection_probe;
mod contact;
mod exchange;
mod exchange_limiter;
mod failure;
mod failure_classification;
mod failure_kind;
mod fetch;
#[cfg(any(test, fuzzing))]
pub mod fuzz_checks;
mod host_request_headers;
mod host_set;
#[cfg_attr(not(feature = "http2"), path = "http2_disabled.rs")]
mod http2;
mod http_client_setup;
mod interstitial;
mod kept_connection_limiter;
mod name_lookup;
mod rate_limit_fields;
mod referer;
mod request_timeout;
mod resolver;
mod retry_after;
pub mod robots;
mod secret_finder;
mod sessions;
mod signature_demands;
mod tls_settings;
mod worker_lease_deadline;

pub use body_filter::BodyFilter;
pub use body_memory_pool::BodyMemoryReservation;
pub use clock::MonotonicClock;
pub use config::{
    FetchConfig, FetcherSetupError, ResolveOverride, RootCertificatesError, check_roots, user_agent,
};
pub use contact::{BadContact, Contact, MAX_CONTACT_BYTES};
pub use exchange::{
    Exchange, FetchRequest, FormBody, PostBody, SentRequestRecord, TlsVersion, TruncationReason,
    Validators,
};
pub use failure::ExchangeFailure;
pub use failure_kind::{FailureKind, FailurePhase, FaultyParty};
pub use fetch::Fetcher;
pub use host_request_headers::{HostRequestHeaders, HostRequestHeadersError};
pub use interstitial::{Interstitial, InterstitialSigns, interstitial};
pub use rate_limit_fields::rate_limit;
pub use retry_after::retry_after;
pub use secret_finder::{MIN_SECRET_BYTES, Secrets};
pub use sessions::{BadCookieLine, CookieFile, RefusedCredentialsDigest, SiteSessions};
pub use signature_demands::{RequestSigner, SignWhen, SigningSettings};
pub use worker_lease_deadline::SendDeadlineSource;
