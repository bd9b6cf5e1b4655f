//! URLs for a crawler: one canonical form, and the keys derived from it.
//!
//! [`canonicalize`] turns a string (a seed, a link, a sitemap entry, a redirect target) into a
//! [`CanonicalUrl`], or returns an [`UnusableUrlError`] that explains why it can't. A canonical URL
//! yields its [`Origin`] (the scope of a robots.txt), its [`HostKey`] (the unit for which gaps are
//! kept) and its [`Site`] (the registrable domain). [`public_suffixes`] returns the public suffixes
//! of a host name. [`SpellingStepPolicies`] finds other spellings that may name the same page,
//! [`UrlShape`] abstracts a URL's variable parts, and [`safe_line()`] makes untrusted text safe to
//! display. The crate does no I/O and resolves no names.
//!
//! ```
//! use crawl_weburl::canonicalize;
//!
//! let page = canonicalize(None, "HTTP://Example.ORG:80/a/./b?q#part").unwrap();
//! assert_eq!(page.as_str(), "http://example.org/a/b?q");
//! let link = canonicalize(Some(&page), "../c").unwrap();
//! assert_eq!(link.as_str(), "http://example.org/c");
//! assert_eq!(link.origin().as_str(), "http://example.org");
//! assert_eq!(link.host_key().as_str(), "example.org");
//! ```

mod address_class;
mod canonical;
mod host_parsing;
mod host_pattern_map;
mod public_suffix;
mod query;
mod safe_display_text;
mod shape;
mod shape_computation;
mod spellings;
mod url_credentials;
mod url_keys;

pub use address_class::{AddressClass, classify};
pub use canonical::{
    CanonicalUrl, MAX_URL_BYTES, UnusableUrlError, canonicalize, location_target,
    reference_from_bytes,
};
pub use host_parsing::{class_of_host, host_address, host_and_port, without_trailing_dot};
pub use host_pattern_map::{HostPatternError, HostPatternMap};
pub use public_suffix::{HostPublicSuffixes, domain_below, public_suffixes};
pub use safe_display_text::{is_bidi_control, safe_line, safe_lines, without_bidi_controls};
pub use shape::{TrapSigns, UrlShape};
pub use spellings::{
    AlternativeSpelling, SessionId, SpellingStep, SpellingStepPolicies, SpellingStepPolicy,
};
pub use url_credentials::UrlWithCredentials;
pub use url_keys::{HostKey, Origin, Site};
