//! The pages of one template: what they brought, and when that is enough of it.

use std::fmt;

use crawl_weburl::{CanonicalUrl, Shape, TrapSigns};

/// Pages in a row that said nothing new, where the URLs have the looks of a kind that never ends.
const ROW: u32 = 3;
/// The same where they have no such looks.
const PLAIN_ROW: u32 = 24;
/// The same where most of these pages had a few new words.
const LITTLE_ROW: u32 = 8 * PLAIN_ROW;
/// And by so many pages in a row, each found only on the one before.
const PLAIN_LEVEL: u8 = 8;
/// Of a template whose last page said something new, as 6 or more before it did, one page in so many
/// is looked at word for word.
const SAMPLE: u64 = 8;
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
    /// A few new words, too few to count as something new: the hash of what it said.
    Little(u64),
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
    /// Pages among them that had a few new words.
    little: u32,
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
            little: 0,
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
            Yield::Little(said) => {
                self.little += 1;
                said
            }
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
        self.little = 0;
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

    /// Returns whether the words of a page, with this hash of its URL, are to be compared with those
    /// that its host said: of a proven template's one in eight. Whoever asks gets one answer, however
    /// many pages came in between.
    pub(super) fn is_doubtful(&self, url: u64) -> bool {
        !self.is_proven() || url.is_multiple_of(SAMPLE)
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
                // Pages that each say a little, like entries of a dictionary, may go on for longer.
                let row = match self.little.saturating_mul(2) > self.row {
                    true => LITTLE_ROW,
                    false => PLAIN_ROW,
                };
                let enough = self.row >= row * factor && self.level >= PLAIN_LEVEL;
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

#[cfg(test)]
mod tests {
    use crawl_weburl::{Shape, TrapSigns, canonicalize};

    use super::{MAX_CHANCES, MAX_EXAMPLE_BYTES, MAX_NAMES, Template, Trap, Yield};

    const NONE: TrapSigns = TrapSigns {
        date: false,
        token: false,
        repeats: false,
        query: false,
    };
    const DATE: TrapSigns = TrapSigns { date: true, ..NONE };

    fn take(template: &mut Template, path: &str, level: u8, found: Yield) {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        template.take(&url, &Shape::of(&url), level, found);
    }

    /// A template of which so many pages in a row said nothing new, each something else.
    fn row(signs: TrapSigns, pages: u32, level: u8, children: u32) -> Template {
        let mut template = Template::new("/x", signs);
        for page in 0..pages {
            take(&mut template, "/x", level, Yield::Nothing(page.into()));
        }
        template.count_children(children);
        template
    }

    #[test]
    fn ours_so_many_pages_in_a_row_are_enough() {
        for (signs, pages, level, children, trap) in [
            (DATE, 3, 1, 3, Some(Trap::Calendar)),
            (DATE, 3, 0, 3, None),
            (DATE, 3, 1, 2, None),
            // The way to them counts from the second page on.
            (DATE, 2, 1, 2, None),
            (DATE, 2, 2, 2, Some(Trap::Calendar)),
            (DATE, 1, 9, 9, None),
            (NONE, 24, 8, 24, Some(Trap::Endless)),
            (NONE, 23, 8, 24, None),
            (NONE, 24, 7, 24, None),
            (NONE, 24, 8, 23, None),
        ] {
            let found = row(signs, pages, level, children).verdict();
            assert_eq!(found, trap, "{signs:?} {pages} {level} {children}");
        }
    }

    #[test]
    fn ours_the_first_of_its_looks_names_a_trap() {
        let [repeats, token, query] = [
            TrapSigns {
                repeats: true,
                ..NONE
            },
            TrapSigns {
                token: true,
                ..NONE
            },
            TrapSigns {
                query: true,
                ..NONE
            },
        ];
        let both = |one: TrapSigns, other: TrapSigns| TrapSigns {
            date: one.date || other.date,
            token: one.token || other.token,
            repeats: one.repeats || other.repeats,
            query: one.query || other.query,
        };
        for (signs, trap) in [
            (both(repeats, DATE), Trap::RepeatedPath),
            (both(DATE, token), Trap::Calendar),
            (both(token, query), Trap::SessionIds),
            (query, Trap::Facets),
        ] {
            assert_eq!(row(signs, 3, 1, 3).verdict(), Some(trap));
        }
        // Signs of single pages count for all of them, but for parameters, which all have.
        for (path, trap) in [
            ("/x/x/x", Trap::RepeatedPath),
            ("/2031/05/07", Trap::Calendar),
            ("/8f3a91c0d4e75b26", Trap::SessionIds),
        ] {
            let mut template = row(NONE, 2, 1, 3);
            take(&mut template, path, 1, Yield::Nothing(2));
            assert_eq!(template.verdict(), Some(trap), "{path}");
        }
        // Redirects go before all, where there is nothing else.
        for (first, trap) in [
            (Yield::Onwards, Trap::Redirects),
            (Yield::Nothing(1), Trap::Calendar),
        ] {
            let mut template = Template::new("/x", DATE);
            for found in [first, Yield::Onwards, Yield::Onwards] {
                take(&mut template, "/x", 1, found);
            }
            template.count_children(3);
            assert_eq!(template.verdict(), Some(trap));
        }
    }

    #[test]
    fn ours_three_times_the_same_text_is_a_page_that_is_missing() {
        for (said, trap) in [
            ([7, 7, 7], Some(Trap::SoftMissing)),
            ([7, 8, 7], None),
            ([8, 7, 7], None),
        ] {
            let mut template = Template::new("/x", NONE);
            for said in said {
                take(&mut template, "/x", 1, Yield::Nothing(said));
            }
            template.count_children(3);
            assert_eq!(template.verdict(), trap, "{said:?}");
        }
    }

    #[test]
    fn ours_each_wrong_deferral_doubles_what_is_enough() {
        for (times, pages) in [(0, 3), (1, 6), (2, 12), (6, 192), (20, 192)] {
            for (pages, enough) in [(pages - 1, false), (pages, true)] {
                let mut template = row(DATE, pages, 1, pages);
                for _ in 0..times {
                    template.had_been_misjudged();
                }
                let found = template.verdict().is_some();
                assert_eq!(found, enough, "{times} {pages}");
            }
        }
        assert_eq!(3 << MAX_CHANCES, 192);
    }

    #[test]
    fn ours_something_new_ends_a_row() {
        let mut template = row(DATE, 9, 3, 9);
        take(&mut template, "/x", 3, Yield::New);
        // What is met on a page that said something new counts for nothing.
        template.count_children(50);
        for n in 0..2 {
            assert_eq!(template.verdict(), None, "{n}");
            take(&mut template, "/x", 1, Yield::Nothing(n));
        }
        template.count_children(2);
        take(&mut template, "/x", 1, Yield::Nothing(2));
        assert_eq!(template.verdict(), None);
        template.count_children(1);
        assert_eq!(template.verdict(), Some(Trap::Calendar));
        let rule = "calendar /x: 13 fetched, 1 with something new, none of the last 3; 3 more first \
                    met on those 3; such as http://a.example/x http://a.example/x";
        assert_eq!(template.evidence(Trap::Calendar), rule);
    }

    #[test]
    fn ours_urls_go_behind_others_after_two_pages_and_by_their_looks_after_one() {
        for (signs, pages, is_watched) in [
            (NONE, 0, false),
            (NONE, 1, false),
            (NONE, 2, true),
            (DATE, 0, false),
            (DATE, 1, true),
        ] {
            let template = row(signs, pages, 1, 0);
            assert_eq!(template.is_watched(), is_watched, "{signs:?} {pages}");
        }
    }

    #[test]
    fn ours_six_pages_with_something_new_prove_a_template() {
        let mut template = Template::new("/x", DATE);
        for _ in 0..6 {
            assert!(!template.is_proven());
            take(&mut template, "/x", 0, Yield::New);
        }
        assert!(template.is_proven());
        take(&mut template, "/x", 0, Yield::Nothing(1));
        assert!(!template.is_proven());
    }

    #[test]
    fn ours_names_are_idle_that_never_came_with_something_new() {
        let mut template = Template::new("/x?", NONE);
        take(&mut template, "/x?a&b", 0, Yield::New);
        take(&mut template, "/x?b&c", 0, Yield::Nothing(1));
        take(&mut template, "/x?c&d", 0, Yield::Nothing(1));
        assert_eq!(template.idle_names(), ["c", "d"]);
        let many: Vec<String> = (0..MAX_NAMES).map(|n| format!("n{n:02}")).collect();
        let path = format!("/x?{}", many.join("&"));
        take(&mut template, &path, 0, Yield::Nothing(1));
        assert_eq!(template.names.len(), MAX_NAMES);
    }

    #[test]
    fn ours_two_examples_are_kept_each_cut() {
        let mut template = Template::new("/x", NONE);
        let long = format!("/{}", "a".repeat(300));
        for path in [&long, "/b", "/c"] {
            take(&mut template, path, 1, Yield::Nothing(1));
        }
        let cut = &format!("http://a.example{long}")[..MAX_EXAMPLE_BYTES];
        assert_eq!(template.examples, [cut, "http://a.example/b"]);
    }
}
