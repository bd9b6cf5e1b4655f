//! The pages of one template: what they brought, and when that is enough of it.

use std::fmt;

use crawl_weburl::{CanonicalUrl, Shape, TrapSigns};

/// Pages in a row that said nothing new, where the URLs have the looks of a kind that never ends.
const ROW: u32 = 3;
/// The same where they have no such looks.
const PLAIN_ROW: u32 = 24;
/// And by so many pages in a row, each found only on the one before.
const PLAIN_LEVEL: u8 = 8;
/// Times that a template was deferred wrongly, after which it takes twice as much each.
const MAX_CHANCES: u8 = 6;
/// Names of parameters that are kept.
const MAX_NAMES: usize = 64;
/// URLs that are named as evidence.
const MAX_EXAMPLES: usize = 2;
/// An example is cut to this. Bytes.
const MAX_EXAMPLE_BYTES: usize = 200;

/// The kinds of traps. The written form is what the rule of an exclusion begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trap {
    /// A page for every day, month or year there ever was or will be.
    Calendar,
    /// The same pages under ever other ids.
    SessionIds,
    /// A path that grows by the same segments.
    RepeatedPath,
    /// The same things in ever other selections.
    Facets,
    /// Redirects that lead to redirects.
    Redirects,
    /// Pages that can't exist, answered as if they did.
    SoftMissing,
    /// Pages that lead to nothing but more of their kind.
    Endless,
}

impl Trap {
    const ALL: [Trap; 7] = [
        Trap::Calendar,
        Trap::SessionIds,
        Trap::RepeatedPath,
        Trap::Facets,
        Trap::Redirects,
        Trap::SoftMissing,
        Trap::Endless,
    ];

    /// The written form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Trap::Calendar => "calendar",
            Trap::SessionIds => "session-ids",
            Trap::RepeatedPath => "repeated-path",
            Trap::Facets => "facets",
            Trap::Redirects => "redirects",
            Trap::SoftMissing => "soft-404",
            Trap::Endless => "endless",
        }
    }

    /// The kind that a rule speaks of.
    #[must_use]
    pub fn of_rule(rule: &str) -> Option<Trap> {
        let name = rule.split(' ').next()?;
        Trap::ALL.into_iter().find(|trap| trap.name() == name)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The yield of one page of a template.
#[derive(Clone, Copy, Debug)]
pub(super) enum Yield {
    /// Something new.
    New,
    /// Nothing new: the hash of what it said.
    Nothing(u64),
    /// A redirect to another URL of its template.
    Onwards,
}

/// A template's account.
#[derive(Debug)]
pub(super) struct Template {
    pattern: String,
    signs: TrapSigns,
    fetched: u32,
    fresh: u32,
    /// Pages in a row that brought nothing new.
    row: u32,
    /// Redirects among them.
    onwards: u32,
    /// The highest level among them.
    level: u8,
    /// URLs of the template that were met on them first.
    record_children: u32,
    /// The text of the last of them, and how many in a row had it.
    said: u64,
    same: u32,
    /// Names of parameters of pages that brought nothing new, and of those that did.
    names: Vec<String>,
    fresh_names: Vec<String>,
    examples: Vec<String>,
    /// The number of times that it was deferred and then brought something new.
    chances: u8,
}

impl Template {
    pub(super) fn new(pattern: &str, signs: TrapSigns) -> Template {
        Template {
            pattern: pattern.to_owned(),
            signs,
            fetched: 0,
            fresh: 0,
            row: 0,
            onwards: 0,
            level: 0,
            record_children: 0,
            said: 0,
            same: 0,
            names: Vec::new(),
            fresh_names: Vec::new(),
            examples: Vec::new(),
            chances: 0,
        }
    }

    /// Takes a page in.
    pub(super) fn take(&mut self, url: &CanonicalUrl, shape: &Shape, level: u8, found: Yield) {
        self.fetched = self.fetched.saturating_add(1);
        let said = match found {
            Yield::New => {
                self.fresh = self.fresh.saturating_add(1);
                note(&mut self.fresh_names, &shape.names);
                return self.begin_row();
            }
            Yield::Nothing(said) => said,
            Yield::Onwards => {
                self.onwards += 1;
                0
            }
        };
        self.row = self.row.saturating_add(1);
        self.level = self.level.max(level);
        self.same = if self.row > 1 && said == self.said {
            self.same + 1
        } else {
            1
        };
        self.said = said;
        self.signs.repeats |= shape.signs.repeats;
        self.signs.date |= shape.signs.date;
        self.signs.token |= shape.signs.token;
        note(&mut self.names, &shape.names);
        if self.examples.len() < MAX_EXAMPLES {
            let text = url.as_str();
            let end = text.floor_char_boundary(MAX_EXAMPLE_BYTES.min(text.len()));
            self.examples.push(text[..end].to_owned());
        }
    }

    /// So many URLs of the template were met first on the page that was taken in last.
    pub(super) fn count_children(&mut self, urls: u32) {
        if self.row > 0 {
            self.record_children = self.record_children.saturating_add(urls);
        }
    }

    /// It was deferred, and brought something new after all.
    pub(super) fn had_been_misjudged(&mut self) {
        self.chances = self.chances.saturating_add(1).min(MAX_CHANCES);
    }

    fn begin_row(&mut self) {
        self.row = 0;
        self.onwards = 0;
        self.level = 0;
        self.record_children = 0;
        self.same = 0;
        self.names.clear();
        self.examples.clear();
    }

    /// Returns whether its URLs go behind others: the last pages brought nothing new; one is enough
    /// where they look as those do that never end.
    pub(super) fn is_watched(&self) -> bool {
        self.row > 1 || (self.row > 0 && self.signs.any())
    }

    /// Returns whether its pages are worth being asked for several at a time.
    pub(super) fn is_proven(&self) -> bool {
        self.row == 0 && self.fresh >= 2 * ROW
    }

    /// Returns whether enough was seen of it: several pages in a row that say nothing new, found on
    /// each other, each of which led to more of them.
    pub(super) fn verdict(&self) -> Option<Trap> {
        let factor = 1_u32 << self.chances;
        // By the way to them, pages of other templates count too.
        let by_way = if self.row > 1 {
            u32::from(self.level) + 1
        } else {
            0
        };
        if self.level == 0 || self.record_children < self.row {
            return None;
        }
        let in_a_row = self.row.max(by_way) >= ROW * factor;
        match self.looks() {
            Some(trap) => in_a_row.then_some(trap),
            None => {
                let enough = self.row >= PLAIN_ROW * factor && self.level >= PLAIN_LEVEL;
                enough.then_some(Trap::Endless)
            }
        }
    }

    /// The parameters that came with nothing new, and never with something.
    pub(super) fn idle_names(&self) -> Vec<String> {
        let idle = |name: &&String| !self.fresh_names.contains(*name);
        self.names.iter().filter(idle).cloned().collect()
    }

    /// The kind that never ends which it looks like.
    fn looks(&self) -> Option<Trap> {
        if self.onwards == self.row {
            Some(Trap::Redirects)
        } else if self.signs.repeats {
            Some(Trap::RepeatedPath)
        } else if self.signs.date {
            Some(Trap::Calendar)
        } else if self.signs.token {
            Some(Trap::SessionIds)
        } else if self.signs.query {
            Some(Trap::Facets)
        } else if self.same >= ROW {
            Some(Trap::SoftMissing)
        } else {
            None
        }
    }

    /// The evidence, for whoever asks why.
    pub(super) fn evidence(&self, trap: Trap) -> String {
        let Template {
            pattern,
            fetched,
            fresh,
            row,
            record_children,
            ..
        } = self;
        let examples = self.examples.join(" ");
        format!(
            "{trap} {pattern}: {fetched} fetched, {fresh} with something new, none of the last {row}; \
             {record_children} more first met on those {row}; such as {examples}"
        )
    }
}

/// Takes names in that are not there yet.
fn note(known: &mut Vec<String>, names: &[String]) {
    for name in names {
        if known.len() < MAX_NAMES && !known.contains(name) {
            known.push(name.clone());
        }
    }
}
