//! Reads robots.txt, and judges whether a crawler may fetch a URL. Each verdict names the line that
//! decided.
//!
//! ```
//! use crawl_policy::Robots;
//! use url::Url;
//!
//! let file = b"User-agent: *\nDisallow: /private\nAllow: /private/press$\nCrawl-delay: 2.5\n";
//! let rules = Robots::parse(file).for_agent("ExampleBot/2.1 (+https://example.com/bot)");
//!
//! let verdict = rules.judge(&Url::parse("https://example.org/private/diary")?);
//! assert!(!verdict.is_allowed());
//! let rule = verdict.rule.unwrap();
//! assert_eq!((&*rule.text, rule.line), ("Disallow: /private", 2));
//!
//! let press = Url::parse("https://example.org/private/press")?;
//! assert!(rules.judge(&press).is_allowed());
//! assert_eq!(rules.crawl_delay().unwrap().0.as_millis(), 2500);
//! # Ok::<(), url::ParseError>(())
//! ```
//!
//! [`Robots`] is the file, [`AgentRules`] its rules for one crawler, and a [`RuleVerdict`] the
//! answer for one URL. Files are read by RFC 9309, or by one of the older standards that
//! [`RobotsProfile`] lists. [`RobotsStatus`] is the meaning of an HTTP status, such as a 404 for
//! the file, and [`RequestPath`] is for judging a path without its URL.
//!
//! The crate also reads the META ROBOTS elements and X-Robots-Tag headers of a page
//! ([`PageDirectives`]), and a site's preferences about the use of its pages
//! ([`usage_statements`]).
//!
//! Reading never fails. Invalid lines of a robots.txt are skipped and listed in
//! [`AgentRules::oddities`]. The crate does no I/O, speaks no HTTP and reads no clock.
//!
//! # Features
//!
//! `serde`: `Serialize` and `Deserialize` for [`RuleVerdict`], [`DecidingRule`],
//! [`MatchingUserAgentLine`], [`RobotsAccess`], [`RobotsStatus`] and [`RobotsProfile`].

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod page_directives;
mod product_token;
mod robots;
pub mod usage_statements;

pub use page_directives::{CitedDirective, CitedDirectiveValue, DirectiveSource, PageDirectives};
pub use product_token::{ProductToken, ProductTokenError, RobotsProfile};
pub use robots::{
    AgentRules, CleanParamLine, CleanedUrl, DecidingRule, MAX_ROBOTS_BYTES, MatchingUserAgentLine,
    RequestPath, RequestPathError, RequestRateLine, Robots, RobotsAccess, RobotsOddity,
    RobotsOddityKind, RobotsStatus, RuleVerdict, SitemapLine, VisitHours, VisitTimeLine,
};
