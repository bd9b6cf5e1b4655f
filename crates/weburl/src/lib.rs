//! URLs for a crawler: one canonical form, and the keys that follow from it.
//!
//! The crate turns a string as found (a seed, a link, a sitemap entry, a redirect
//! target) into a [`CanonicalUrl`], or says in an [`Unusable`] why it can't. From a
//! canonical URL follow its [`Origin`] (what a robots.txt speaks for), its [`HostKey`]
//! (what a gap is kept for) and its [`Site`] (registrable domain); [`public_suffixes`] tells what
//! stands above that. [`SpellingRules`] knows which other spellings may name the same page, and [`Shape`] what a URL is made from;
//! [`safe_line()`] is how text that came from outside is shown. The crate never does I/O and
//! never resolves a name.
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
mod host_table;
mod keys;
mod public_suffix;
mod query;
mod safe_text;
mod shape;
mod shape_reading;
mod spellings;

pub use address::{AddressClass, classify};
pub use canonical::{CanonicalUrl, MAX_URL_BYTES, Unusable, canonicalize};
pub use host::{class_of_host, host_address, host_and_port, without_trailing_dot};
pub use host_table::{BadHostPattern, HostTable};
pub use keys::{HostKey, Origin, Site};
pub use public_suffix::{PublicSuffixes, domain_below, public_suffixes};
pub use safe_text::{is_bidi_control, safe_line, safe_lines, without_bidi_controls};
pub use shape::{Shape, TrapSigns};
pub use spellings::{SessionId, Spelling, SpellingRules, SpellingStep, StepPolicy};
