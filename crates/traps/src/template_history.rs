//! The history of one template (URLs of the same pattern): how much new content its pages had, and
//! when they count as a trap.

use std::fmt;

use crawl_weburl::{CanonicalUrl, TrapSigns, UrlShape};

/// The number of consecutive pages with nothing new that make a trap if the URLs have trap signs.
const ROW: u32 = 3;
/// The number of consecutive pages with nothing new that make a trap if the URLs have no trap
/// signs.
const PLAIN_ROW: u32 = 24;
/// The number of consecutive pages that make a trap if the URLs have no trap signs and most of the
/// pages had a few new words.
const LITTLE_ROW: u32 = 8 * PLAIN_ROW;
/// The minimum level that makes a trap if the URLs have no trap signs. The level of a URL is the
/// number of consecutive pages with nothing new on the way to it.
const PLAIN_LEVEL: u8 = 8;
/// One page in this many is compared word by word if the template is proven (see `is_proven`).
const SAMPLE: u64 = 8;
/// Maximum number of wrong deferrals to count for a template (URLs of one pattern). Each wrong
/// deferral doubles the number of pages that make a trap.
const MAX_CHANCES: u8 = 6;
/// Maximum number of parameter names that are remembered.
const MAX_NAMES: usize = 64;
/// Maximum number of URLs that are given as evidence.
const MAX_EXAMPLES: usize = 2;
/// Maximum length of a URL given as evidence, in bytes.
const MAX_EXAMPLE_BYTES: usize = 200;

/// The kinds of traps. The rule of an exclusion begins with the name of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrapKind {
    /// A calendar with a page for every day, month or year, without end.
    Calendar,
    /// The same pages, but each link has a new session id.
    SessionIds,
    /// A path that grows by repeating segments.
    RepeatedPath,
    /// The same items, filtered or sorted in ever new ways.
    Facets,
    /// Redirects that lead to further redirects, up to the limit of redirects in a row.
    Redirects,
    /// Missing pages for which the server responds as if they existed.
    SoftMissing,
    /// Pages that lead only to more pages of their kind.
    Endless,
}

impl TrapKind {
    const ALL: [TrapKind; 7] = [
        TrapKind::Calendar,
        TrapKind::SessionIds,
        TrapKind::RepeatedPath,
        TrapKind::Facets,
        TrapKind::Redirects,
        TrapKind::SoftMissing,
        TrapKind::Endless,
    ];

    /// Returns the name of the trap, as written in rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TrapKind::Calendar => "calendar",
            TrapKind::SessionIds => "session-ids",
            TrapKind::RepeatedPath => "repeated-path",
            TrapKind::Facets => "facets",
            TrapKind::Redirects => "redirects",
            TrapKind::SoftMissing => "soft-404",
            TrapKind::Endless => "endless",
        }
    }

    /// Returns the kind of trap that a rule begins with. `None` if the rule names no kind.
    #[must_use]
    pub fn of_rule(rule: &str) -> Option<TrapKind> {
        let name = rule.split(' ').next()?;
        TrapKind::ALL.into_iter().find(|trap| trap.name() == name)
    }
}

impl fmt::Display for TrapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much new content one page of a template (URLs of one pattern) had: something, a little,
/// nothing, or only a redirect.
#[derive(Clone, Copy, Debug)]
pub(super) enum PageYield {
    /// Something new.
    New,
    /// Nothing new. Contains the hash of the page's content.
    Nothing(u64),
    /// A few new words, but too few to count as new. Contains the hash of the page's content.
    Little(u64),
    /// No page, but a redirect to another URL of the same pattern, which is not followed.
    Onwards,
}

/// How much new content the pages of a template (URLs of one pattern) had so far.
#[derive(Debug)]
pub(super) struct TemplateHistory {
    pattern: String,
    signs: TrapSigns,
    fetched: u32,
    fresh: u32,
    /// The number of consecutive pages with nothing that counts as new, up to and including the
    /// template's last page. 0 if the last page had something new.
    row: u32,
    /// How many of the `row` pages had a few new words, but too few to count as new
    /// ([`PageYield::Little`]).
    little: u32,
    /// How many of the `row` pages are redirects.
    onwards: u32,
    /// The highest level of the URLs of the `row` pages. The level of a URL is the number of
    /// consecutive pages on the way to it that brought nothing new.
    level: u8,
    /// The number of the template's URLs that were first found on one of the `row` pages.
    record_children: u32,
    /// The hash of the last page's content.
    text: u64,
    /// The number of consecutive pages with the content `text`.
    same: u32,
    /// Names of parameters in URLs of pages with nothing new.
    names: Vec<String>,
    /// Names of parameters in URLs of pages with something new.
    fresh_names: Vec<String>,
    examples: Vec<String>,
    /// How many times the template (URLs of one pattern) was deferred wrongly, that is, brought
    /// something new after its deferral.
    chances: u8,
}

impl TemplateHistory {
    pub(super) fn new(pattern: &str, signs: TrapSigns) -> TemplateHistory {
        TemplateHistory {
            pattern: pattern.to_owned(),
            signs,
            fetched: 0,
            fresh: 0,
            row: 0,
            little: 0,
            onwards: 0,
            level: 0,
            record_children: 0,
            text: 0,
            same: 0,
            names: Vec::new(),
            fresh_names: Vec::new(),
            examples: Vec::new(),
            chances: 0,
        }
    }

    /// Records a page of the template.
    pub(super) fn take(
        &mut self,
        url: &CanonicalUrl,
        shape: &UrlShape,
        level: u8,
        page_yield: PageYield,
    ) {
        self.fetched = self.fetched.saturating_add(1);
        let text = match page_yield {
            PageYield::New => {
                self.fresh = self.fresh.saturating_add(1);
                note(&mut self.fresh_names, &shape.names);
                return self.begin_row();
            }
            PageYield::Nothing(text) => text,
            PageYield::Little(text) => {
                self.little += 1;
                text
            }
            PageYield::Onwards => {
                self.onwards += 1;
                0
            }
        };
        self.row = self.row.saturating_add(1);
        self.level = self.level.max(level);
        self.same = if self.row > 1 && text == self.text {
            self.same + 1
        } else {
            1
        };
        self.text = text;
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

    /// Records how many URLs of this pattern were first found on the last page.
    pub(super) fn count_children(&mut self, urls: u32) {
        if self.row > 0 {
            self.record_children = self.record_children.saturating_add(urls);
        }
    }

    /// Records that this pattern of URLs brought something new after it had been deferred.
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

    /// Returns whether URLs of this pattern are queued behind others, because the last pages
    /// brought nothing new. If the URLs have trap signs, a single such page is enough.
    pub(super) fn is_watched(&self) -> bool {
        self.row > 1 || (self.row > 0 && self.signs.any())
    }

    /// Returns true if the last page of this pattern had something new and enough earlier ones did,
    /// so that several pages may be fetched at a time.
    pub(super) fn is_proven(&self) -> bool {
        self.row == 0 && self.fresh >= 2 * ROW
    }

    /// Returns true if a page has to be compared word by word. `url` is the hash of the page's URL.
    /// If the template is proven, only one page in eight is compared. The choice depends on the URL
    /// alone, so it stays the same while other pages are recorded.
    pub(super) fn is_doubtful(&self, url: u64) -> bool {
        !self.is_proven() || url.is_multiple_of(SAMPLE)
    }

    /// Returns the kind of trap if there is enough evidence. The evidence is several consecutive
    /// pages with nothing new. At least one of these pages was found on a page with nothing new,
    /// and together they led to at least as many further URLs of the pattern. `None` without such
    /// evidence.
    pub(super) fn verdict(&self) -> Option<TrapKind> {
        let factor = 1_u32 << self.chances;
        // The number of consecutive pages with nothing new that the level implies: the pages on the
        // way and the last page. Pages of other URL patterns are included.
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
                // Require more pages if most of them add a little, like the entries of a
                // dictionary.
                let row = match self.little.saturating_mul(2) > self.row {
                    true => LITTLE_ROW,
                    false => PLAIN_ROW,
                };
                let is_endless = self.row >= row * factor && self.level >= PLAIN_LEVEL;
                is_endless.then_some(TrapKind::Endless)
            }
        }
    }

    /// Returns the parameter names that occur only in URLs of pages with nothing new.
    pub(super) fn idle_names(&self) -> Vec<String> {
        let idle = |name: &&String| !self.fresh_names.contains(*name);
        self.names.iter().filter(idle).cloned().collect()
    }

    /// Returns the kind of trap that the URLs' signs suggest. `None` if there are no signs.
    fn looks(&self) -> Option<TrapKind> {
        if self.onwards == self.row {
            Some(TrapKind::Redirects)
        } else if self.signs.repeats {
            Some(TrapKind::RepeatedPath)
        } else if self.signs.date {
            Some(TrapKind::Calendar)
        } else if self.signs.token {
            Some(TrapKind::SessionIds)
        } else if self.signs.query {
            Some(TrapKind::Facets)
        } else if self.same >= ROW {
            Some(TrapKind::SoftMissing)
        } else {
            None
        }
    }

    /// Returns a description of the evidence for a trap, for the user.
    pub(super) fn evidence(&self, trap: TrapKind) -> String {
        let TemplateHistory {
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
             {record_children} more URLs first found on those {row}; such as {examples}"
        )
    }
}

/// Adds each of `names` that `names_seen` does not contain yet, up to `MAX_NAMES` in total.
fn note(names_seen: &mut Vec<String>, names: &[String]) {
    for name in names {
        if names_seen.len() < MAX_NAMES && !names_seen.contains(name) {
            names_seen.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{TrapSigns, UrlShape, canonicalize};

    use super::{MAX_CHANCES, MAX_EXAMPLE_BYTES, MAX_NAMES, PageYield, TemplateHistory, TrapKind};

    const NONE: TrapSigns = TrapSigns {
        date: false,
        token: false,
        repeats: false,
        query: false,
    };
    const DATE: TrapSigns = TrapSigns { date: true, ..NONE };

    fn take(template: &mut TemplateHistory, path: &str, level: u8, page_yield: PageYield) {
        let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
        template.take(&url, &UrlShape::of(&url), level, page_yield);
    }

    /// Creates a template and records consecutive pages with nothing new, each with different
    /// content.
    fn row(signs: TrapSigns, pages: u32, level: u8, children: u32) -> TemplateHistory {
        let mut template = TemplateHistory::new("/x", signs);
        for page in 0..pages {
            take(&mut template, "/x", level, PageYield::Nothing(page.into()));
        }
        template.count_children(children);
        template
    }

    #[test]
    fn a_row_of_pages_makes_a_trap() {
        for (signs, pages, level, children, trap) in [
            (DATE, 3, 1, 3, Some(TrapKind::Calendar)),
            (DATE, 3, 0, 3, None),
            (DATE, 3, 1, 2, None),
            // A single page isn't evidence. From the second page on, the level counts as evidence.
            (DATE, 2, 1, 2, None),
            (DATE, 2, 2, 2, Some(TrapKind::Calendar)),
            (DATE, 1, 9, 9, None),
            (NONE, 24, 8, 24, Some(TrapKind::Endless)),
            (NONE, 23, 8, 24, None),
            (NONE, 24, 7, 24, None),
            (NONE, 24, 8, 23, None),
        ] {
            let verdict = row(signs, pages, level, children).verdict();
            assert_eq!(verdict, trap, "{signs:?} {pages} {level} {children}");
        }
    }

    #[test]
    fn the_first_matching_sign_names_a_trap() {
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
            (both(repeats, DATE), TrapKind::RepeatedPath),
            (both(DATE, token), TrapKind::Calendar),
            (both(token, query), TrapKind::SessionIds),
            (query, TrapKind::Facets),
        ] {
            assert_eq!(row(signs, 3, 1, 3).verdict(), Some(trap));
        }
        // Trap signs of a single page's URL count for the whole template, except parameters.
        for (path, trap) in [
            ("/x/x/x", TrapKind::RepeatedPath),
            ("/2031/05/07", TrapKind::Calendar),
            ("/8f3a91c0d4e75b26", TrapKind::SessionIds),
        ] {
            let mut template = row(NONE, 2, 1, 3);
            take(&mut template, path, 1, PageYield::Nothing(2));
            assert_eq!(template.verdict(), Some(trap), "{path}");
        }
        // If all pages are redirects, the trap is one of redirects, even if the URLs look like a
        // calendar.
        for (first, trap) in [
            (PageYield::Onwards, TrapKind::Redirects),
            (PageYield::Nothing(1), TrapKind::Calendar),
        ] {
            let mut template = TemplateHistory::new("/x", DATE);
            for page_yield in [first, PageYield::Onwards, PageYield::Onwards] {
                take(&mut template, "/x", 1, page_yield);
            }
            template.count_children(3);
            assert_eq!(template.verdict(), Some(trap));
        }
    }

    #[test]
    fn the_same_text_three_times_is_a_soft_404() {
        for (texts, trap) in [
            ([7, 7, 7], Some(TrapKind::SoftMissing)),
            ([7, 8, 7], None),
            ([8, 7, 7], None),
        ] {
            let mut template = TemplateHistory::new("/x", NONE);
            for text in texts {
                take(&mut template, "/x", 1, PageYield::Nothing(text));
            }
            template.count_children(3);
            assert_eq!(template.verdict(), trap, "{texts:?}");
        }
    }

    #[test]
    fn each_wrong_deferral_doubles_the_threshold() {
        for (times, pages) in [(0, 3), (1, 6), (2, 12), (6, 192), (20, 192)] {
            for (pages, enough) in [(pages - 1, false), (pages, true)] {
                let mut template = row(DATE, pages, 1, pages);
                for _ in 0..times {
                    template.had_been_misjudged();
                }
                let is_trap = template.verdict().is_some();
                assert_eq!(is_trap, enough, "{times} {pages}");
            }
        }
        assert_eq!(3 << MAX_CHANCES, 192);
    }

    #[test]
    fn something_new_ends_a_row() {
        let mut template = row(DATE, 9, 3, 9);
        take(&mut template, "/x", 3, PageYield::New);
        // These 50 URLs don't count, since they were found on a page with something new.
        template.count_children(50);
        for n in 0..2 {
            assert_eq!(template.verdict(), None, "{n}");
            take(&mut template, "/x", 1, PageYield::Nothing(n));
        }
        template.count_children(2);
        take(&mut template, "/x", 1, PageYield::Nothing(2));
        assert_eq!(template.verdict(), None);
        template.count_children(1);
        assert_eq!(template.verdict(), Some(TrapKind::Calendar));
        let rule = "calendar /x: 13 fetched, 1 with something new, none of the last 3; 3 more URLs \
                    first found on those 3; such as http://a.example/x http://a.example/x";
        assert_eq!(template.evidence(TrapKind::Calendar), rule);
    }

    #[test]
    fn urls_are_delayed_after_two_pages_or_one_with_trap_signs() {
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
    fn six_pages_with_something_new_prove_a_template() {
        let mut template = TemplateHistory::new("/x", DATE);
        for _ in 0..6 {
            assert!(!template.is_proven());
            take(&mut template, "/x", 0, PageYield::New);
        }
        assert!(template.is_proven());
        take(&mut template, "/x", 0, PageYield::Nothing(1));
        assert!(!template.is_proven());
    }

    #[test]
    fn names_that_never_brought_something_new_are_idle() {
        let mut template = TemplateHistory::new("/x?", NONE);
        take(&mut template, "/x?a&b", 0, PageYield::New);
        take(&mut template, "/x?b&c", 0, PageYield::Nothing(1));
        take(&mut template, "/x?c&d", 0, PageYield::Nothing(1));
        assert_eq!(template.idle_names(), ["c", "d"]);
        let many: Vec<String> = (0..MAX_NAMES).map(|n| format!("n{n:02}")).collect();
        let path = format!("/x?{}", many.join("&"));
        take(&mut template, &path, 0, PageYield::Nothing(1));
        assert_eq!(template.names.len(), MAX_NAMES);
    }

    #[test]
    fn two_examples_are_kept_and_truncated() {
        let mut template = TemplateHistory::new("/x", NONE);
        let long = format!("/{}", "a".repeat(300));
        for path in [&long, "/b", "/c"] {
            take(&mut template, path, 1, PageYield::Nothing(1));
        }
        let cut = &format!("http://a.example{long}")[..MAX_EXAMPLE_BYTES];
        assert_eq!(template.examples, [cut, "http://a.example/b"]);
    }
}
