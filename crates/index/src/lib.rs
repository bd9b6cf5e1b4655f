//! The search index of a crawl: pages in, ranked results out.
//!
//! A [`Page`] is what the index holds of a page that may be indexed; an [`Answer`] is what a
//! query comes to.

mod answer;
mod page;

pub use answer::{Answer, Hit, Part, Section, Stats};
pub use page::{Anchor, Heading, Page};
