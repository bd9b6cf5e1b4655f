//! URLs for a crawler: one canonical form, and the keys derived from it.
//!
//! [`canonicalize`] turns a string (a seed, a link, a sitemap entry, a redirect target) into a
//! [`CanonicalUrl`], or returns an [`Unusable`] that explains why it can't. A canonical URL yields
//! its [`Origin`] (the scope of a robots.txt), its [`HostKey`] (the unit for which gaps are kept)
//! and its [`Site`] (the registrable domain). [`public_suffixes`] returns the public suffixes of a
//! host name. [`SpellingRules`] finds other spellings that may name the same page, [`UrlShape`]
//! abstracts a URL's variable parts, and [`safe_line()`] makes untrusted text safe to display. The
//! crate does no I/O and resolves no names.
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

mod address;
mod canonical;
mod host;
mod host_pattern_map;
mod keys;
mod public_suffix;
mod query;
mod safe_text;
mod shape;
mod shape_reader;
mod spellings;

pub use address::{AddressClass, classify};
pub use canonical::{CanonicalUrl, MAX_URL_BYTES, Unusable, canonicalize};
pub use host::{class_of_host, host_address, host_and_port, without_trailing_dot};
pub use host_pattern_map::{BadHostPattern, HostPatternMap};
pub use keys::{HostKey, Origin, Site};
pub use public_suffix::{PublicSuffixes, domain_below, public_suffixes};
pub use safe_text::{is_bidi_control, safe_line, safe_lines, without_bidi_controls};
pub use shape::{TrapSigns, UrlShape};
pub use spellings::{SessionId, Spelling, SpellingRules, SpellingStep, StepPolicy};
