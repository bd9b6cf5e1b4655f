//! Which URLs and documents the operator of a crawl wants. Each refusal names its rule.
//!
//! [`Scope`] decides which URLs belong to the crawl. Seeds and SURT prefixes ([`SurtPrefix`]) widen
//! the scope, and a seed may have settings of its own ([`SeedSettings`]). [`ContentFilter`] decides
//! which fetched documents to keep, and [`action`] recognises URLs that look as if requesting them
//! had a side effect. The crate does no I/O and reads no clock.
//!
//! ```
//! use crawl_scope::{Scope, ScopeMode, ScopeVerdict};
//! use crawl_weburl::canonicalize;
//!
//! let mut scope = Scope::new(ScopeMode::Host, &[], &[r"\.zip$".to_owned()], None)?;
//! scope.add_seed(&canonicalize(None, "https://example.org/")?);
//!
//! let page = canonicalize(None, "https://example.org/page")?;
//! assert_eq!(scope.judge(&page, 1), ScopeVerdict::In);
//! let file = canonicalize(None, "https://example.org/file.zip")?;
//! let ScopeVerdict::Out { rule, .. } = scope.judge(&file, 1) else {
//!     panic!("the file is excluded");
//! };
//! assert_eq!(rule, r"exclude \.zip$");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod content_filter;
mod scope;
mod seed_settings;
mod side_effect_urls;
mod surt_prefix;

pub use content_filter::{
    BadLanguageRange, BadMediaRange, ContentFilter, LanguageRange, MediaRange, UnwantedReason,
};
pub use scope::{BadScopePattern, OutOfScopeReason, Scope, ScopeMode, ScopeVerdict};
pub use seed_settings::{AreaConflict, SeedArea, SeedAreaKind, SeedAreas, SeedSettings, folder};
pub use side_effect_urls::{SideEffectReason, action};
pub use surt_prefix::{BadSurtPrefix, SurtPrefix};
