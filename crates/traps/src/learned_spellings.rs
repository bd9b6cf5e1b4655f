//! Learns from the fetched pages which spellings of a host's URLs lead to the same page.

use std::collections::HashMap;
use std::num::NonZeroU64;

use crawl_weburl::{
    AlternativeSpelling, CanonicalUrl, HostKey, SessionId, SpellingStep, SpellingStepPolicies,
    canonicalize,
};

use super::recent_map::RecentMap;
use super::stable_hash;

/// Number of pairs of equal pages that put a rule in force. A single pair of unequal pages prevents
/// this.
const PAIRS: u32 = 3;
/// Maximum number of recent pages that are remembered per host.
const MAX_PAGES: usize = 2048;
/// Maximum number of kinds of spellings that are remembered for one URL.
const MAX_KINDS: usize = 8;
/// Maximum number of links of one host that are fetched although a rule would replace their URL.
/// Beyond the limit: the rule ends.
const MAX_KEPT: usize = 2048;
/// Maximum number of rules of one host.
const MAX_RULES: usize = 64;
/// The minimum number of words of a page that is compared. Pages with fewer words resemble too many
/// other pages.
const MIN_WORDS: u32 = 8;
/// Separates the two parts of the reason why a URL is not fetched under its own spelling: the
/// evidence, and the URL that is fetched instead.
const ASKED_FOR_AS: &str = "; asked for as ";

/// How a rule changes a URL to the spelling that is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FetchedSpelling {
    /// Use the plain spelling, because its URL gave the same page.
    Plain,
    /// Replace every session id by this one. URLs with other ids gave the same page, but the URL
    /// without an id was never fetched.
    OneId(String),
}

/// A rule that changes the spelling of one kind of URLs of a host.
#[derive(Clone, Debug)]
struct SpellingRule {
    step: SpellingStep,
    about: String,
    form: FetchedSpelling,
    same: u32,
    different: u32,
}

/// A fetched page, reduced to hashes. Pages are compared by these hashes.
#[derive(Clone, Copy, Debug)]
struct HashedPage {
    url: u64,
    text: TextHash,
}

/// The hash of a page's text. `None` for a page with too few words to compare.
type TextHash = Option<NonZeroU64>;

/// A fetched page whose URL is an alternative spelling of a plain URL. `step` is the step that
/// turns the alternative spelling into the plain one.
#[derive(Debug)]
struct VariantPage {
    page: HashedPage,
    step: SpellingStep,
    about: String,
    id: Option<String>,
}

/// The alternative spellings learned for one host.
#[derive(Debug)]
pub(super) struct LearnedSpellings {
    /// The text of each recent page, by the hash of its URL.
    pages: RecentMap<TextHash>,
    /// Maps the hash of each plain URL to its other spellings: for each kind of spelling, the first
    /// page that was fetched.
    variants: RecentMap<Vec<VariantPage>>,
    rules: Vec<SpellingRule>,
    /// The hashes of the URLs that no rule may change ([`LearnedSpellings::keep`]), each with
    /// whether the other spelling gave no page.
    kept: RecentMap<bool>,
    /// The number of pairs of pages that were compared so far.
    compared: u64,
}

impl Default for LearnedSpellings {
    fn default() -> LearnedSpellings {
        LearnedSpellings {
            pages: RecentMap::new(MAX_PAGES),
            variants: RecentMap::new(MAX_PAGES),
            rules: Vec::new(),
            kept: RecentMap::new(MAX_KEPT),
            compared: 0,
        }
    }
}

impl LearnedSpellings {
    /// Records a fetched page, given its number of words and the hash of its text.
    pub(super) fn learn(
        &mut self,
        naming: &SpellingStepPolicies,
        url: &CanonicalUrl,
        words: u32,
        text: u64,
    ) {
        let page = HashedPage {
            url: stable_hash::of(url.as_str().as_bytes()),
            text: NonZeroU64::new(text).filter(|_| words >= MIN_WORDS),
        };
        *self.pages.entry(page.url, || None) = page.text;
        if page.text.is_none() {
            return;
        }
        if let Some(variants) = self.variants.get(page.url) {
            // If other spellings of this URL were fetched earlier, compare their pages with this
            // one.
            let matches: Vec<_> = variants
                .iter()
                .map(|variant| {
                    (
                        variant.step,
                        variant.about.clone(),
                        variant.page.text == page.text,
                    )
                })
                .collect();
            for (step, about, same) in matches {
                self.note(step, &about, FetchedSpelling::Plain, same);
            }
        }
        let has_other_failed = self.kept.get(page.url) == Some(&true);
        for spelling in naming.candidates(url) {
            if has_other_failed {
                self.doubt(&spelling);
            }
            self.learn_spelling(page, url, spelling);
        }
    }

    /// Keeps the spelling of a URL, so that no rule changes it. If `has_other_failed`, the other
    /// spelling did not give a page. A page at the kept URL then ends the rule.
    pub(super) fn keep(
        &mut self,
        naming: &SpellingStepPolicies,
        url: &CanonicalUrl,
        has_other_failed: bool,
    ) {
        let key = stable_hash::of(url.as_str().as_bytes());
        if let Some(has_failed) = self.kept.get_mut(key) {
            *has_failed |= has_other_failed;
        } else if self.kept.len() < MAX_KEPT {
            self.kept.entry(key, || has_other_failed);
        } else {
            // This URL can't be remembered, because the map is full, so end the rules that would
            // change its spelling.
            for spelling in naming.candidates(url) {
                self.doubt(&spelling);
            }
        }
    }

    /// Ends the rules in force for a spelling.
    fn doubt(&mut self, spelling: &AlternativeSpelling) {
        let rules = self.rules.iter_mut().filter(|rule| {
            rule.step == spelling.step && rule.about == spelling.about && rule.is_in_force()
        });
        for rule in rules {
            rule.different = rule.different.saturating_add(1);
            self.compared += 1;
        }
    }

    /// Returns whether a page was fetched recently from exactly this URL.
    pub(super) fn has_met(&self, url: &CanonicalUrl) -> bool {
        self.pages
            .get(stable_hash::of(url.as_str().as_bytes()))
            .is_some()
    }

    /// Returns the number of pairs of pages that were compared so far.
    pub(super) fn compared(&self) -> u64 {
        self.compared
    }

    /// Returns true if any rule is in force, so that a URL may be replaced by another spelling.
    pub(super) fn has_rules(&self) -> bool {
        self.rules.iter().any(SpellingRule::is_in_force)
    }

    /// Returns the approximate memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        const PAGE: usize = 24;
        const VARIANT: usize = 160;
        PAGE * (self.pages.len() + self.kept.len())
            + VARIANT * (self.variants.len() + self.rules.len())
    }

    fn learn_spelling(
        &mut self,
        page: HashedPage,
        url: &CanonicalUrl,
        spelling: AlternativeSpelling,
    ) {
        let AlternativeSpelling {
            url: plain,
            step,
            about,
        } = spelling;
        let key = stable_hash::of(plain.as_str().as_bytes());
        if let Some(text) = self.pages.get(key).filter(|text| text.is_some()) {
            let same = *text == page.text;
            self.note(step, &about, FetchedSpelling::Plain, same);
        }
        let id = SessionId::find(url).filter(|_| step == SpellingStep::SessionId);
        let id = id.map(|session| session.id);
        let variants = self.variants.entry(key, Vec::new);
        let of_kind = |variant: &&VariantPage| variant.step == step && variant.about == about;
        match variants.iter().find(of_kind) {
            None if variants.len() < MAX_KINDS => variants.push(VariantPage {
                page,
                step,
                about,
                id,
            }),
            Some(variant) if variant.page.url != page.url && variant.id != id => {
                let same = variant.page.text == page.text;
                if let Some(first) = variant.id.clone() {
                    self.note(step, &about, FetchedSpelling::OneId(first), same);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, step: SpellingStep, about: &str, form: FetchedSpelling, same: bool) {
        self.compared += 1;
        let is_id = |form: &FetchedSpelling| matches!(form, FetchedSpelling::OneId(_));
        let of_kind = |rule: &SpellingRule| {
            rule.step == step && rule.about == about && is_id(&rule.form) == is_id(&form)
        };
        let at = match self.rules.iter().position(of_kind) {
            Some(at) => at,
            None if self.rules.len() < MAX_RULES => {
                self.rules.push(SpellingRule {
                    step,
                    about: about.to_owned(),
                    form,
                    same: 0,
                    different: 0,
                });
                self.rules.len() - 1
            }
            None => return,
        };
        let rule = &mut self.rules[at];
        match same {
            true => rule.same = rule.same.saturating_add(1),
            false => rule.different = rule.different.saturating_add(1),
        }
    }

    /// Returns the spelling under which a URL's page is fetched, and the reason. `None` if the URL
    /// itself is fetched.
    pub(super) fn same_as(
        &self,
        naming: &SpellingStepPolicies,
        url: &CanonicalUrl,
    ) -> Option<(CanonicalUrl, String)> {
        if !self.has_rules() {
            return None;
        }
        let replacement = same_as(&self.rules, naming, url)?;
        let is_kept = self.kept.get(stable_hash::of(url.as_str().as_bytes()));
        is_kept.is_none().then_some(replacement)
    }
}

/// Applies the rules in force to a URL. Returns the other spelling, and the reason of the first
/// rule that changed the URL.
fn same_as(
    rules: &[SpellingRule],
    naming: &SpellingStepPolicies,
    url: &CanonicalUrl,
) -> Option<(CanonicalUrl, String)> {
    let mut result: Option<(CanonicalUrl, String)> = None;
    for spelling in naming.candidates(url) {
        let now = result.as_ref().map_or(url, |(url, _)| url);
        if let Some(rule) = rule_for(rules, &spelling)
            && let Some(target) = rule.apply(now)
            && target != *now
        {
            let reason = result.map_or_else(|| rule.evidence(&target), |(_, reason)| reason);
            result = Some((target, reason));
        }
    }
    result
}

/// Returns the rule in force for a spelling. A rule for the plain form is preferred.
fn rule_for<'a>(
    rules: &'a [SpellingRule],
    spelling: &AlternativeSpelling,
) -> Option<&'a SpellingRule> {
    let in_force = rules.iter().filter(|rule| {
        rule.step == spelling.step && rule.about == spelling.about && rule.is_in_force()
    });
    in_force.min_by_key(|rule| rule.form != FetchedSpelling::Plain)
}

/// The spelling rules that a crawl learned, collected from the reasons why it did not fetch URLs
/// ([`UrlDisposition::SameAs`](crate::UrlDisposition::SameAs)).
#[derive(Debug, Default)]
pub struct SpellingRulesFromRecords(HashMap<HostKey, Vec<SpellingRule>>);

impl SpellingRulesFromRecords {
    /// Adds the rule that `reason` names, which is the reason why `url` was not fetched. Ignores
    /// any other reason.
    pub fn add(&mut self, url: &CanonicalUrl, reason: &str) {
        let Some(rule) = SpellingRule::of_evidence(reason) else {
            return;
        };
        let rules = self.0.entry(url.host_key()).or_default();
        let is_it = |known: &SpellingRule| {
            (known.step, &known.about, &known.form) == (rule.step, &rule.about, &rule.form)
        };
        if rules.len() < MAX_RULES && !rules.iter().any(is_it) {
            rules.push(rule);
        }
    }

    /// Returns the URL that the crawl fetched for a link to `url`. `None` if no rule changes `url`.
    #[must_use]
    pub fn same_as(
        &self,
        naming: &SpellingStepPolicies,
        url: &CanonicalUrl,
    ) -> Option<CanonicalUrl> {
        // Most crawls learn no rule.
        if self.0.is_empty() {
            return None;
        }
        same_as(self.0.get(&url.host_key())?, naming, url).map(|(other, _)| other)
    }
}

/// Returns whether the reason of [`UrlDisposition::SameAs`](crate::UrlDisposition::SameAs) is a
/// rule about session ids. The other spelling is then fetched even if nothing links to it, because
/// each link may have another id.
#[must_use]
pub fn is_about_session_ids(reason: &str) -> bool {
    reason.starts_with(SpellingStep::SessionId.name())
}

/// Returns the URL that is fetched instead, according to the reason of
/// [`UrlDisposition::SameAs`](crate::UrlDisposition::SameAs). `None` for any other reason.
#[must_use]
pub fn fetched_instead(reason: &str) -> Option<CanonicalUrl> {
    let (_, other) = reason.split_once(ASKED_FOR_AS)?;
    canonicalize(None, other).ok()
}

impl SpellingRule {
    fn is_in_force(&self) -> bool {
        self.same >= PAIRS && self.different == 0
    }

    fn apply(&self, url: &CanonicalUrl) -> Option<CanonicalUrl> {
        match &self.form {
            FetchedSpelling::Plain => self.step.take(url).map(|spelling| spelling.url),
            FetchedSpelling::OneId(id) => SessionId::find(url)?.replaced(url, id),
        }
    }

    fn evidence(&self, other: &CanonicalUrl) -> String {
        let SpellingRule {
            step, about, same, ..
        } = self;
        let (step, about) = (step.name(), about.as_str());
        let subject = if about.is_empty() {
            step.to_owned()
        } else {
            format!("{step} {about}")
        };
        format!("{subject}: {same} of {same} pairs of pages were the same{ASKED_FOR_AS}{other}")
    }

    /// Reads the text of [`SpellingRule::evidence`].
    fn of_evidence(text: &str) -> Option<SpellingRule> {
        let (evidence, url) = text.split_once(ASKED_FOR_AS)?;
        let (subject, _) = evidence.split_once(": ")?;
        let (name, about) = subject.split_once(' ').unwrap_or((subject, ""));
        let step = SpellingStep::ALL
            .into_iter()
            .find(|step| step.name() == name)?;
        let url = canonicalize(None, url).ok();
        let id = url.and_then(|url| SessionId::find(&url));
        let form = match id.filter(|id| step == SpellingStep::SessionId && id.name == about) {
            Some(session_id) => FetchedSpelling::OneId(session_id.id),
            None => FetchedSpelling::Plain,
        };
        Some(SpellingRule {
            step,
            about: about.to_owned(),
            form,
            same: PAIRS,
            different: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::{SpellingStep, SpellingStepPolicies, canonicalize};
    use expect_test::{Expect, expect};

    use super::{
        LearnedSpellings, MAX_KEPT, MAX_KINDS, MAX_RULES, MIN_WORDS, SpellingRulesFromRecords,
        fetched_instead, stable_hash,
    };

    /// Fetches `pages`, each a path and a text, and checks under which spelling `link` is fetched.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "expectations are written in place"
    )]
    fn check(pages: &[(&str, u64)], link: &str, expect: Expect) {
        let naming = SpellingStepPolicies::default();
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let mut names = LearnedSpellings::default();
        for (path, text) in pages {
            names.learn(&naming, &url(path), 20, *text);
        }
        let spelling = names.same_as(&naming, &url(link));
        if let Some((other, why)) = &spelling {
            let mut recorded = SpellingRulesFromRecords::default();
            recorded.add(&url(link), why);
            assert_eq!(recorded.same_as(&naming, &url(link)).as_ref(), Some(other));
            assert_eq!(fetched_instead(why).as_ref(), Some(other));
        }
        expect.assert_eq(&spelling.map_or("its own".to_owned(), |(_, why)| why));
    }

    #[test]
    fn three_pairs_without_an_exception_make_a_rule() {
        let three = [
            ("/a/", 1),
            ("/a/index.html", 1),
            ("/b/index.html", 2),
            ("/b/", 2),
            ("/c/", 3),
        ];
        check(&three, "/x/index.html", expect!["its own"]);
        let more = [&three[..], &[("/c/index.html", 3)]].concat();
        check(
            &more,
            "/x/index.html",
            expect![
                "default-document index.html: 3 of 3 pairs of pages were the same; asked for as http://a.example/x/"
            ],
        );
        check(&more, "/x/index.htm", expect!["its own"]);
        let one_differs = [&more[..], &[("/d/", 4), ("/d/index.html", 5)]].concat();
        check(&one_differs, "/x/index.html", expect!["its own"]);
    }

    #[test]
    fn a_host_has_rules_while_one_is_in_force() {
        let mut names = LearnedSpellings::default();
        let mut learn = |path: &str, text| {
            let url = canonicalize(None, &format!("http://a.example{path}")).unwrap();
            names.learn(&SpellingStepPolicies::default(), &url, 20, text);
            names.has_rules()
        };
        for (folder, text) in [("a", 1), ("b", 2), ("c", 3)] {
            assert!(!learn(&format!("/{folder}/"), text));
            let is_third = folder == "c";
            assert_eq!(learn(&format!("/{folder}/index.html"), text), is_third);
        }
        assert!(learn("/d/", 4));
        assert!(!learn("/d/index.html", 5), "one pair differs");
    }

    #[test]
    fn a_kept_url_is_not_replaced_and_may_end_the_rule() {
        let naming = SpellingStepPolicies::default();
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let learned = || {
            let mut names = LearnedSpellings::default();
            for (folder, text) in [("a", 1), ("b", 2), ("c", 3)] {
                names.learn(&naming, &url(&format!("/{folder}/")), 20, text);
                names.learn(&naming, &url(&format!("/{folder}/index.html")), 20, text);
            }
            names
        };
        let (x, y) = (url("/x/index.html"), url("/y/index.html"));
        for (has_other_failed, is_ended) in [(false, false), (true, true)] {
            let mut names = learned();
            names.keep(&naming, &x, has_other_failed);
            assert!(names.same_as(&naming, &x).is_none());
            assert!(names.same_as(&naming, &y).is_some());
            names.learn(&naming, &x, 20, 9);
            assert_eq!(names.same_as(&naming, &y).is_none(), is_ended);
        }
        let mut names = learned();
        for number in 0..MAX_KEPT {
            names.keep(&naming, &url(&format!("/{number}/index.html")), false);
        }
        assert!(names.same_as(&naming, &y).is_some());
        names.keep(&naming, &x, false);
        assert!(names.same_as(&naming, &y).is_none());
    }

    #[test]
    fn kinds_of_spellings_of_one_url_are_bounded() {
        let mut names = LearnedSpellings::default();
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        for ending in [
            "html", "htm", "php", "xhtml", "shtml", "asp", "aspx", "jsp", "cgi",
        ] {
            let url = url(&format!("/index.{ending}"));
            names.learn(&SpellingStepPolicies::default(), &url, 20, 1);
        }
        let plain = stable_hash::of(url("/").as_str().as_bytes());
        assert_eq!(names.variants.get(plain).unwrap().len(), MAX_KINDS);
    }

    #[test]
    fn other_ids_are_replaced_by_the_first_one() {
        let id = |n: u8| format!("0a1b2c3d4e5f6a7{n}");
        let page = |path: &str, n: u8| format!("{path}?sid={}", id(n));
        let pages: Vec<(String, u64)> = (1..5)
            .flat_map(|n| {
                [
                    (page(&format!("/p{n}"), 0), n),
                    (page(&format!("/p{n}"), 1), n),
                ]
            })
            .collect();
        let pages: Vec<(&str, u64)> = pages
            .iter()
            .map(|(url, text)| (url.as_str(), *text))
            .collect();
        check(
            &pages,
            &page("/x", 9),
            expect![
                "session-id sid: 4 of 4 pairs of pages were the same; asked for as http://a.example/x?sid=0a1b2c3d4e5f6a70"
            ],
        );
        check(&pages, &page("/x", 0), expect!["its own"]);
        check(&pages[..4], &page("/x", 9), expect!["its own"]);
    }

    #[test]
    fn parameter_order_is_learned_path_by_path() {
        let pages = [
            ("/list?a=1&b=1", 1),
            ("/list?b=1&a=1", 1),
            ("/list?a=1&b=2", 2),
            ("/list?b=2&a=1", 2),
            ("/list?a=1&b=3", 3),
            ("/list?b=3&a=1", 3),
        ];
        check(
            &pages,
            "/list?b=7&a=1",
            expect![
                "parameter-order /list: 3 of 3 pairs of pages were the same; asked for as http://a.example/list?a=1&b=7"
            ],
        );
        check(&pages, "/other?b=7&a=1", expect!["its own"]);
    }

    #[test]
    fn each_kind_of_spelling_is_learned_separately() {
        let pages = [
            ("/a/", 1),
            ("/a/index.html", 1),
            ("/b/", 2),
            ("/b/index.html", 2),
            ("/c/", 3),
            ("/c/index.html", 3),
            ("/d/", 4),
            ("/d/index.php", 5),
        ];
        check(
            &pages,
            "/x/index.html",
            expect![
                "default-document index.html: 3 of 3 pairs of pages were the same; asked for as http://a.example/x/"
            ],
        );
        check(&pages, "/x/index.php", expect!["its own"]);
        // The pages with an id are all equal, but the page without an id differs.
        let id = |n: u32, id: u32| format!("/p{n}?sid=0a1b2c3d4e5f6a7{id}");
        let mut pages = Vec::new();
        for n in 1..4 {
            pages.extend([(id(n, 0), 1), (id(n, 1), 1), (format!("/p{n}"), 2)]);
        }
        let pages: Vec<_> = pages.iter().map(|(path, text)| (&**path, *text)).collect();
        check(
            &pages,
            &id(9, 9),
            expect![
                "session-id sid: 3 of 3 pairs of pages were the same; asked for as http://a.example/p9?sid=0a1b2c3d4e5f6a70"
            ],
        );
    }

    #[test]
    fn short_pages_and_repeated_pages_teach_nothing() {
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let rules = |pages: &[(&str, u32, u64)]| {
            let mut names = LearnedSpellings::default();
            for (path, words, text) in pages {
                names.learn(&SpellingStepPolicies::default(), &url(path), *words, *text);
                assert!(names.has_met(&url(path)));
            }
            assert!(!names.has_met(&url("/other")));
            let of_ids = |rule: &&super::SpellingRule| rule.step == SpellingStep::SessionId;
            (names.rules.iter().filter(of_ids).count(), names.rules.len())
        };
        let (few, enough) = (MIN_WORDS - 1, MIN_WORDS);
        assert_eq!(
            rules(&[("/", enough, 1), ("/index.html", enough, 1)]),
            (0, 1)
        );
        assert_eq!(rules(&[("/", few, 1), ("/index.html", enough, 1)]), (0, 0));
        assert_eq!(rules(&[("/", enough, 1), ("/index.html", few, 1)]), (0, 0));
        assert_eq!(rules(&[("/index.html", few, 1), ("/", enough, 1)]), (0, 0));
        let [one, other] = ["sid=0a1b2c3d4e5f6a71", "sid=0a1b2c3d4e5f6a72"];
        let path = |query: &str| format!("/p?{query}");
        let again = [(&*path(one), 20, 1), (&*path(one), 20, 2)];
        assert_eq!(rules(&again), (0, 0));
        let ids = [(&*path(one), 20, 1), (&*path(other), 20, 1)];
        assert_eq!(rules(&ids), (1, 1));
        // The same id at two places in the query does not count as two ids.
        let [front, back] = [format!("/p?{one}&x=1"), format!("/p?x=1&{one}")];
        assert_eq!(rules(&[(&front, 20, 1), (&back, 20, 1)]), (0, 1));
    }

    #[test]
    fn rules_are_bounded_and_all_memory_is_counted() {
        let url = |path: &str| canonicalize(None, &format!("http://a.example{path}")).unwrap();
        let mut names = LearnedSpellings::default();
        let mut learn = |path: &str| {
            let before = names.bytes();
            names.learn(&SpellingStepPolicies::default(), &url(path), 20, 1);
            (names.bytes() - before, names.rules.len())
        };
        for n in 0..MAX_RULES {
            assert_eq!(learn(&format!("/{n}?a&b")), (24, n), "a page");
            let spelled = learn(&format!("/{n}?b&a"));
            assert_eq!(
                spelled,
                (24 + 160 + 160, n + 1),
                "a page, a spelling, a rule"
            );
        }
        learn("/more?a&b");
        assert_eq!(learn("/more?b&a"), (24 + 160, MAX_RULES));
    }
}
