//! Directives of a page and its headers for robots: META ROBOTS and X-Robots-Tag.

mod directive_words;

use std::fmt;

use crate::agent::{ProductToken, Profile};

use directive_words::{Directive, DirectiveWord};

/// The directives of a page and its headers for one robot, each with the text that it rests on.
///
/// A field that is `None` asks nothing: missing words mean index and follow. Words for all
/// robots and words for this one add up; where they contradict, the stricter wins, except
/// under [`Profile::Extended1997`], which lets a META's `ALL` and its permissive words win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageDirectives {
    /// The page is not to be indexed.
    pub noindex: Option<CitedText>,
    /// The page's links are not to be followed.
    pub nofollow: Option<CitedText>,
    /// No copy is to be kept for others to see (`noarchive`, `nocache`).
    pub noarchive: Option<CitedText>,
    /// No part of the page is to be shown.
    pub nosnippet: Option<CitedText>,
    /// Characters of a snippet at most; -1 is without limit, 0 is none.
    pub max_snippet: Option<CitedValue<i32>>,
    /// Not to be shown from this moment on, in seconds since 1970 (UTC).
    pub unavailable_after: Option<CitedValue<i64>>,
    /// The page is not for AI use (`noai`).
    pub noai: Option<CitedText>,
    /// The page's images are not for AI use (`noimageai`).
    pub noimageai: Option<CitedText>,
}

/// A value and the text it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedValue<T> {
    /// The value.
    pub value: T,
    /// The place at which it stands.
    pub source: CitedText,
}

/// The text that an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedText {
    /// Header or page.
    pub place: DirectivePlace,
    /// The header or META as written: `X-Robots-Tag: crawl: noindex`.
    pub text: String,
}

/// The places at which a directive is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectivePlace {
    /// In the response's headers.
    Header,
    /// In the page's META elements.
    Meta,
}

impl fmt::Display for CitedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PageDirectives {
    /// Reads the values of all `X-Robots-Tag` headers and all `(name, content)` pairs of META
    /// elements, in their order; METAs with other names are skipped.
    #[must_use]
    pub fn read<'a>(
        headers: impl IntoIterator<Item = &'a str>,
        metas: impl IntoIterator<Item = (&'a str, &'a str)>,
        agent: &ProductToken,
        profile: Profile,
    ) -> PageDirectives {
        let mut found = PageDirectives::default();
        for value in headers {
            for said in directive_words::of_header(value, agent) {
                found.take(&said, DirectivePlace::Header, || {
                    format!("X-Robots-Tag: {value}")
                });
            }
        }
        let metas: Vec<_> = metas
            .into_iter()
            .map(|(name, content)| (name.trim(), content))
            .filter(|(name, _)| addresses(name, agent))
            .collect();
        let liberal = profile == Profile::Extended1997;
        let spoken: Vec<_> = metas
            .iter()
            .flat_map(|m| directive_words::of_meta(m.1))
            .collect();
        for (name, content) in metas {
            for said in directive_words::of_meta(content) {
                if !(liberal && overruled_1997(&said, &spoken)) {
                    let text = || format!("<meta name=\"{name}\" content=\"{content}\">");
                    found.take(&said, DirectivePlace::Meta, text);
                }
            }
        }
        found
    }

    /// The first text that says a word stays; of values the strictest stays.
    fn take(&mut self, said: &Directive, place: DirectivePlace, text: impl Fn() -> String) {
        let source = || CitedText {
            place,
            text: text(),
        };
        let flag = match *said {
            Directive::Word(DirectiveWord::None) => {
                self.noindex.get_or_insert_with(source);
                &mut self.nofollow
            }
            Directive::Word(DirectiveWord::Noindex) => &mut self.noindex,
            Directive::Word(DirectiveWord::Nofollow) => &mut self.nofollow,
            Directive::Word(DirectiveWord::Noarchive) => &mut self.noarchive,
            Directive::Word(DirectiveWord::Nosnippet) => &mut self.nosnippet,
            Directive::Word(DirectiveWord::Noai) => &mut self.noai,
            Directive::Word(DirectiveWord::Noimageai) => &mut self.noimageai,
            Directive::Word(DirectiveWord::All | DirectiveWord::Index | DirectiveWord::Follow) => {
                return;
            }
            Directive::MaxSnippet(n) => return least(&mut self.max_snippet, n, unlimited, source),
            Directive::UnavailableAfter(at) => {
                return least(&mut self.unavailable_after, at, |at| at, source);
            }
        };
        flag.get_or_insert_with(source);
    }
}

fn least<T: Copy, K: Ord>(
    slot: &mut Option<CitedValue<T>>,
    value: T,
    rank: impl Fn(T) -> K,
    source: impl Fn() -> CitedText,
) {
    if slot
        .as_ref()
        .is_none_or(|kept| rank(value) < rank(kept.value))
    {
        *slot = Some(CitedValue {
            value,
            source: source(),
        });
    }
}

/// -1 is no limit, so it comes last.
fn unlimited(n: i32) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn addresses(name: &str, agent: &ProductToken) -> bool {
    name.eq_ignore_ascii_case("robots")
        || (!agent.as_str().is_empty() && name.eq_ignore_ascii_case(agent.as_str()))
}

/// Returns whether a restriction gives way to `ALL`, `INDEX` or `FOLLOW` among the page's words
/// (1997: ALL outweighs every other word, and of two that contradict the robot takes the
/// permissive one).
fn overruled_1997(said: &Directive, spoken: &[Directive]) -> bool {
    let any = |word: DirectiveWord| spoken.contains(&Directive::Word(word));
    match said {
        Directive::Word(DirectiveWord::Noindex) => {
            any(DirectiveWord::All) || any(DirectiveWord::Index)
        }
        Directive::Word(DirectiveWord::Nofollow) => {
            any(DirectiveWord::All) || any(DirectiveWord::Follow)
        }
        Directive::Word(DirectiveWord::None) => {
            any(DirectiveWord::All) || (any(DirectiveWord::Index) && any(DirectiveWord::Follow))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
