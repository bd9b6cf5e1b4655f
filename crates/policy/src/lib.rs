//! May we? The rules that bind a crawler, read and judged; each answer names its rule.
//!
//! [`Robots`] is a robots.txt compiled for one agent under one [`Profile`]; [`PageDirectives`]
//! is what a page and its headers ask of robots; [`usage`] is what a site says about the use of
//! its pages. Reading foreign text never fails: a value comes back, with its oddities. The crate
//! does no I/O, knows no HTTP and reads no clock.
//!
//! ```
//! use crawl_policy::{RobotsAccess, ProductToken, Profile, Robots};
//!
//! let agent = ProductToken::new("crawl").unwrap();
//! let file = b"User-agent: *\nDisallow: /private\nAllow: /private/press$\nCrawl-delay: 2.5\n";
//! let robots = Robots::parse(file, &agent, Profile::Rfc9309);
//!
//! let verdict = robots.judge("/private/diary");
//! assert_eq!(verdict.access, RobotsAccess::Disallowed);
//! let rule = verdict.rule.unwrap();
//! assert_eq!((rule.text, rule.line), ("Disallow: /private", 2));
//! assert!(robots.judge("https://example.org/private/press").is_allowed());
//! assert_eq!(robots.crawl_delay().unwrap().0.as_millis(), 2500);
//! ```

mod agent;
mod page_directives;
mod robots;
pub mod usage;

pub use agent::{BadToken, ProductToken, Profile};
pub use page_directives::{CitedText, CitedValue, DirectivePlace, PageDirectives};
pub use robots::{
    CleanParam, Cleaned, Group, MAX_ROBOTS_BYTES, RequestRate, Robots, RobotsAccess, RobotsOddity,
    RobotsOddityKind, Rule, SitemapLine, Verdict, VisitHours, VisitTime, request_path,
};
