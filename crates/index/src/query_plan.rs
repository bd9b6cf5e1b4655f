//! Plans a search: converts the terms of a query to queries of the index.

mod index_queries;
mod marked_words;
mod phrase_ranking_words;
mod ranking_weights;
mod suggestion;

use std::cell::Cell;

use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, Query as Lookup};
use tantivy::schema::Field;

use self::index_queries::clause;
pub(crate) use self::marked_words::{MarkedWords, MatchedTerm};
use self::phrase_ranking_words::{has_parts, is_name};
pub(crate) use self::ranking_weights::WEIGHTS;
use self::suggestion::MaybeCorrectedTerm;
use crate::bm25f::{MIN_SITE, SameStemTerms};
use crate::lexicon::Lexicon;
use crate::page_tokenizer::STEM;
use crate::query::{Query, QueryTerm, QueryTermKind};
use crate::schema::IndexFields;
use crate::synonyms_and_pins::SearchRules;
use crate::words::{Stemmer, Word, WordRelation, words};

/// A word is common if more than this share of all pages have it. A page matches even if it lacks
/// common words.
const COMMON: f64 = 0.12;
/// If more than this share of all pages have a word, results highlight the word only next to
/// another highlighted word.
const EVERYWHERE: f64 = 0.4;
/// On a small site, a word is common only if it is on more pages than this, or on more than
/// `MAX_COMMON_PART` of all pages. For example, a word on three of 22 pages is not common.
const MIN_COMMON_PAGES: f64 = 25.0;
const MAX_COMMON_PART: f64 = 0.5;

/// Maximum words of a query to look up, including the parts of unknown words.
const MAX_WORDS: u32 = 32;
/// Maximum unknown words of a query to correct.
const MAX_GUESSES: u32 = 4;
/// Maximum words of a query for which longer words that start with them are looked up.
const MAX_BEGINNINGS: u32 = 4;
/// Maximum letters of a word to correct.
const MAX_GUESSED_LETTERS: usize = 24;
/// Minimum letters of the query's last word for which longer words that start with it are looked
/// up. If no page has the word itself, they are looked up anyway.
const MIN_OPEN_LETTERS: usize = 3;

/// The index query for a user's query, and what to show with its results.
pub(crate) struct QueryPlan {
    pub(crate) lookup: Box<dyn Lookup>,
    pub(crate) wanted: MarkedWords,
    pub(crate) did_you_mean: Option<String>,
    /// The words and phrases that no page has. They are left out of the index query.
    pub(crate) unknown: Vec<String>,
    /// True if the query has exactly two distinctive words (words that are not common).
    pub(crate) is_pair: bool,
    /// True if the query has several words, and a page with some of them may match.
    pub(crate) has_choice: bool,
}

/// How many of the query's words a page must have: all, most, one of two, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredQueryWords {
    /// The page has all words of the query.
    All,
    /// The page has most words of the query.
    Most,
    /// The page has at least one word of a query with two words. Pages with both words come first.
    Relaxed,
    /// The page has at least one of the words.
    Any,
    /// The page has at least one of the words. Phrases, and text in a script without spaces, are
    /// split: their words or pairs of characters are looked up separately.
    Apart,
}

/// Converts the terms of a query to queries of one index.
pub(crate) struct QueryPlanner<'s> {
    pub(crate) fields: &'s IndexFields,
    pub(crate) lexicon: Lexicon<'s>,
    /// Stemmers for the languages of the pages.
    pub(crate) stemmers: Vec<Stemmer>,
    pub(crate) pages: u64,
    pub(crate) rules: &'s SearchRules,
    pub(crate) budget: PlanningBudget,
}

/// The numbers of words that the planner may still look up, correct and complete for a query. Words
/// beyond the budget are ignored, or not corrected or completed.
#[derive(Debug)]
pub(crate) struct PlanningBudget {
    words: Cell<u32>,
    /// How many words may still be corrected.
    guesses: Cell<u32>,
    beginnings: Cell<u32>,
}

impl Default for PlanningBudget {
    fn default() -> PlanningBudget {
        PlanningBudget {
            words: Cell::new(MAX_WORDS),
            guesses: Cell::new(MAX_GUESSES),
            beginnings: Cell::new(MAX_BEGINNINGS),
        }
    }
}

impl PlanningBudget {
    /// Takes one unit from a budget. Returns false if the budget is used up.
    fn take(of: &Cell<u32>) -> bool {
        let remaining = of.get();
        of.set(remaining.saturating_sub(1));
        remaining > 0
    }
}

/// A word to look up, with its forms and their weights, or a run of characters in a script without
/// spaces.
#[derive(Clone, Debug, Default)]
struct PlannedWord {
    forms: Vec<(String, f32)>,
    /// Groups of forms whose occurrences are added up.
    inflections: Vec<SameStemTerms>,
    /// In a script without spaces between words: the pairs of consecutive characters. Otherwise
    /// empty.
    run: Vec<String>,
    /// The word or the run of characters as typed, or the correction of the word.
    written: String,
    is_common: bool,
    /// True if the share of pages with the word exceeds [`EVERYWHERE`].
    is_everywhere: bool,
    /// The inverse document frequency, as in BM25.
    idf: f32,
    /// True if the word replaces an unknown typed word.
    is_correction: bool,
    /// True if no page has the word or a similar one.
    is_unknown: bool,
    /// True if the word is part of a phrase that a page must have anyway.
    is_in_phrase: bool,
    /// True for a name of several parts, such as `user_agent`.
    is_name: bool,
    /// The fields in which most pages have the word.
    shared_in: Vec<Field>,
}

/// Whether longer words that start with a word match it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrefixMatchMode {
    /// The word is complete, so longer words don't match.
    Never,
    /// The word is the last of the query, so the user may still be typing it.
    Maybe,
    /// The word was typed as a prefix (`word*`).
    Always,
}

impl QueryPlanner<'_> {
    pub(crate) fn plan(
        &self,
        query: &Query,
        fit: RequiredQueryWords,
    ) -> tantivy::Result<QueryPlan> {
        let mut wanted = MarkedWords::default();
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        let (mut words, mut suggested, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for (n, term) in query.terms.iter().enumerate() {
            let is_apart = fit == RequiredQueryWords::Apart && !term.is_not && !term.in_title;
            if term.how == QueryTermKind::Phrase {
                // In this case, the words of the phrase are looked up and marked one by one below,
                // so discard the marks of the phrase.
                let mut apart = MarkedWords::default();
                let marks = if is_apart { &mut apart } else { &mut wanted };
                let phrase = self.look_up_phrase(term, marks);
                if !is_apart {
                    suggested.push(MaybeCorrectedTerm::as_typed(term));
                    let ranked_by = self.phrase_words(term)?;
                    clauses.push(match ranked_by.is_empty() {
                        true => clause(term, phrase),
                        false => (Occur::Must, Box::new(ConstScoreQuery::new(phrase, 0.0))),
                    });
                    words.extend(ranked_by);
                    continue;
                }
                if !self.lexicon.has(&*phrase)? {
                    unknown.push(format!("\"{}\"", term.text));
                }
            }
            let is_last = n + 1 == query.terms.len();
            if term.is_not && is_name(&term.text) {
                // Exclude only pages that contain the whole name, not those that contain a part of
                // it.
                clauses.push(clause(term, self.look_up_phrase(term, &mut wanted)));
                suggested.push(MaybeCorrectedTerm::as_typed(term));
                continue;
            }
            let prefix_mode = match term.how {
                QueryTermKind::Prefix => PrefixMatchMode::Always,
                QueryTermKind::Words if is_last && !term.is_not => PrefixMatchMode::Maybe,
                QueryTermKind::Words | QueryTermKind::Phrase => PrefixMatchMode::Never,
            };
            let term_words = self.planned_words(term, prefix_mode)?;
            suggested.push(MaybeCorrectedTerm::by(term, &term_words));
            if !term.is_not && !term.in_title {
                clauses.extend(self.look_up_name(term));
                words.extend(term_words);
                continue;
            }
            for word in &term_words {
                if !term.is_not {
                    wanted.mark(word, false);
                }
                clauses.push(clause(term, self.look_up_word(word, Some(term))));
            }
        }
        let is_asked = |(occur, _): &(Occur, _)| *occur == Occur::Must;
        self.join_neighbours(&mut words, &mut wanted)?;
        if words.iter().any(|word| !word.is_unknown) || clauses.iter().any(is_asked) {
            remove_unknown(&mut words, &mut unknown);
        } else {
            unknown.extend(words.iter().map(|word| word.written.clone()));
            if words.is_empty() && clauses.is_empty() {
                // All terms are symbols, which are not words.
                unknown.extend(query.terms.iter().map(|term| term.text.clone()));
            }
        }
        if fit == RequiredQueryWords::Apart {
            words = self.apart(words)?;
        }
        // Excerpts mark a very frequent word only next to other words, unless all words of the
        // query are very frequent.
        let has_others = words.iter().any(|word| !word.is_everywhere);
        for word in &words {
            wanted.mark(word, has_others && word.is_everywhere);
        }
        let distinctive = words.iter().filter(|word| !word.is_common).count();
        let is_pair = distinctive == 2
            && words
                .iter()
                .all(|word| !word.is_in_phrase && word.run.is_empty());
        let has_choice = match fit {
            RequiredQueryWords::All => false,
            RequiredQueryWords::Most => words.len() > 2,
            RequiredQueryWords::Relaxed | RequiredQueryWords::Any | RequiredQueryWords::Apart => {
                words.len() > 1
            }
        };
        clauses.extend(self.look_up_words(&words, fit));
        clauses.extend(self.look_up_neighbours(&words));
        self.restrict_to_sites(query, &mut clauses);
        Ok(QueryPlan {
            lookup: Box::new(BooleanQuery::new(clauses)),
            wanted: wanted.sealed(),
            did_you_mean: self.suggestion(query, &suggested),
            unknown,
            is_pair,
            has_choice,
        })
    }

    /// Replaces each run of characters in a script without spaces by its pairs of characters, which
    /// are looked up separately. Drops pairs that no page has. Leaves all other words unchanged.
    fn apart(&self, words: Vec<PlannedWord>) -> tantivy::Result<Vec<PlannedWord>> {
        let mut apart = Vec::with_capacity(words.len());
        for mut planned in words {
            let run = std::mem::take(&mut planned.run);
            if run.is_empty() {
                apart.push(planned);
            }
            for pair in run {
                let pages = self.lexicon.pages_with(&pair)?;
                if pages > 0 {
                    apart.push(PlannedWord {
                        idf: self.idf(pages),
                        written: pair.clone(),
                        forms: vec![(pair, 1.0)],
                        ..PlannedWord::default()
                    });
                }
            }
        }
        Ok(apart)
    }

    /// Returns the words and runs of characters to look up for a term.
    fn planned_words(
        &self,
        term: &QueryTerm,
        prefix_mode: PrefixMatchMode,
    ) -> tantivy::Result<Vec<PlannedWord>> {
        let all_words = words(&term.text, &Stemmer::none());
        let mut planned_words = Vec::new();
        let mut run: Vec<&Word> = Vec::new();
        let whole: Vec<&Word> = all_words
            .iter()
            .filter(|word| word.kind == WordRelation::Plain)
            .collect();
        for word in &all_words {
            if matches!(word.kind, WordRelation::Character | WordRelation::Pair) {
                // A gap between two characters separates runs.
                if run
                    .last()
                    .is_some_and(|last| word.range.start > last.range.end)
                {
                    planned_words.extend(PlannedWord::of_run(&term.text, &run));
                    run.clear();
                }
                run.push(word);
                continue;
            }
            planned_words.extend(PlannedWord::of_run(&term.text, &run));
            run.clear();
            if word.kind == WordRelation::Plain {
                let is_last = whole.last().is_some_and(|last| last.range == word.range);
                let mode = if is_last {
                    prefix_mode
                } else {
                    PrefixMatchMode::Never
                };
                let plain_words = self.plain(word, &all_words, mode, !term.is_not)?;
                planned_words.extend(plain_words);
            }
        }
        planned_words.extend(PlannedWord::of_run(&term.text, &run));
        Ok(planned_words)
    }

    /// Returns the [`PlannedWord`]s to look up for a word in a script with spaces. If no page has
    /// the word and `guess` is set, returns the result of [`QueryPlanner::unknown`].
    fn plain(
        &self,
        word: &Word,
        all: &[Word],
        prefix_mode: PrefixMatchMode,
        guess: bool,
    ) -> tantivy::Result<Vec<PlannedWord>> {
        if !PlanningBudget::take(&self.budget.words) {
            return Ok(Vec::new());
        }
        let text = &word.text;
        let (mut forms, mut inflections) = (Vec::new(), Vec::new());
        self.add_forms(text, 1.0, &mut forms, &mut inflections);
        for synonym in self.rules.synonyms(text) {
            self.add_forms(synonym, WEIGHTS.synonym, &mut forms, &mut inflections);
        }
        let mut pages = self.most_pages(&forms)?;
        let stems = forms.iter().filter_map(|(form, _)| form.strip_prefix(STEM));
        let compounds = self
            .lexicon
            .compounds_of(text, &stems.collect::<Vec<_>>())?;
        let compounds: Vec<_> = compounds
            .into_iter()
            .map(|word| (word, WEIGHTS.compound))
            .collect();
        if pages == 0 {
            pages = self.most_pages(&compounds)?;
        }
        forms.extend(compounds);
        let longer = match prefix_mode {
            PrefixMatchMode::Never => None,
            PrefixMatchMode::Maybe if pages > 0 && text.chars().count() < MIN_OPEN_LETTERS => None,
            PrefixMatchMode::Maybe if pages > 0 => Some(WEIGHTS.longer),
            PrefixMatchMode::Maybe | PrefixMatchMode::Always => Some(WEIGHTS.beginning),
        };
        if let Some(weight) = longer
            && PlanningBudget::take(&self.budget.beginnings)
        {
            let more = self.lexicon.beginning_with(text)?;
            let more: Vec<_> = more.into_iter().map(|word| (word, weight)).collect();
            if pages == 0 || prefix_mode == PrefixMatchMode::Always {
                pages = pages.max(self.most_pages(&more)?);
            }
            forms.extend(more);
        }
        let planned = PlannedWord {
            is_common: self.is_common(pages, self.common_part())
                && prefix_mode != PrefixMatchMode::Always,
            is_everywhere: self.is_common(pages, EVERYWHERE),
            idf: self.idf(pages),
            is_name: has_parts(word, all),
            shared_in: self.lexicon.shared_in(text, self.pages)?,
            written: text.clone(),
            forms: dedup(forms),
            inflections,
            ..PlannedWord::default()
        };
        match pages == 0 && guess {
            true => self.unknown(planned, word, all),
            false => Ok(vec![planned]),
        }
    }

    /// Returns the [`PlannedWord`]s to look up in place of a word that no page has.
    ///
    /// These are the word's parts. A word without parts is replaced by its corrections, and a word
    /// without corrections by the two words that it consists of. If there are none, returns
    /// `planned`, marked as unknown.
    fn unknown(
        &self,
        mut planned: PlannedWord,
        word: &Word,
        all: &[Word],
    ) -> tantivy::Result<Vec<PlannedWord>> {
        let parts = all.iter().filter(|part| {
            part.kind == WordRelation::Part
                && part.range.start >= word.range.start
                && part.range.end <= word.range.end
        });
        let mut planned_words = Vec::new();
        for part in parts {
            planned_words.extend(self.plain(part, &[], PrefixMatchMode::Never, true)?);
        }
        if !planned_words.is_empty() {
            return Ok(planned_words);
        }
        planned.is_unknown = true;
        let is_short = word.text.chars().count() <= MAX_GUESSED_LETTERS;
        if !is_short || !PlanningBudget::take(&self.budget.guesses) {
            return Ok(vec![planned]);
        }
        let near = self.lexicon.corrections_of(&word.text)?;
        if near.is_empty() {
            if let Some((first, second)) = self.lexicon.halves_of(&word.text)? {
                return Ok(vec![self.corrected(first)?, self.corrected(second)?]);
            }
            return Ok(vec![planned]);
        }
        planned.is_unknown = false;
        // Look up only the corrections, because no page has a form of the word as typed.
        planned.forms.clear();
        planned.inflections.clear();
        planned.written.clone_from(&near[0]);
        planned.is_correction = true;
        for (n, near) in near.into_iter().enumerate() {
            let weight = if n == 0 {
                WEIGHTS.correction
            } else {
                WEIGHTS.correction / 2.0
            };
            // Add the inflections of the likeliest correction only. Inflections of the other
            // corrections would match too much.
            match n {
                0 => self.add_forms(&near, weight, &mut planned.forms, &mut planned.inflections),
                _ => planned.forms.push((near, weight)),
            }
        }
        planned.idf = self.idf(self.lexicon.pages_with(&planned.written)?);
        planned.forms = dedup(planned.forms);
        Ok(vec![planned])
    }

    /// Adds a word with a weight, and all words with the same stem with a lower weight. Uses the
    /// stems of all languages in the index. Occurrences of words with the same stem are added up.
    fn add_forms(
        &self,
        word: &str,
        weight: f32,
        forms: &mut Vec<(String, f32)>,
        inflections: &mut Vec<SameStemTerms>,
    ) {
        let stems = self.stemmers.iter();
        let stems: Vec<String> = stems.filter_map(|stemmer| stemmer.stem_of(word)).collect();
        let mut terms = vec![format!("{STEM}{word}")];
        // A word with a stem is found by the term of its stem, which is added below.
        if stems.is_empty() {
            terms.push(word.to_owned());
        }
        for stem in stems {
            terms.push(format!("{STEM}{stem}"));
            terms.push(stem);
        }
        terms.sort_unstable();
        terms.dedup();
        let stemmed = weight * WEIGHTS.stem;
        forms.push((word.to_owned(), weight));
        forms.extend(terms.iter().map(|term| (term.clone(), stemmed)));
        inflections.push((terms, stemmed));
    }

    fn corrected(&self, word: String) -> tantivy::Result<PlannedWord> {
        let pages = self.lexicon.pages_with(&word)?;
        Ok(PlannedWord {
            written: word.clone(),
            idf: self.idf(pages),
            is_common: self.is_common(pages, self.common_part()),
            forms: vec![(word, 1.0)],
            is_correction: true,
            ..PlannedWord::default()
        })
    }

    /// Returns the number of pages that have a form of a word: the greatest number over all forms.
    fn most_pages(&self, forms: &[(String, f32)]) -> tantivy::Result<u64> {
        let mut max_pages = 0;
        for (form, _) in forms {
            max_pages = max_pages.max(self.lexicon.pages_with(form)?);
        }
        Ok(max_pages)
    }

    /// Returns true if `pages` exceeds the share `part` of all pages. Always false on a very small
    /// site.
    #[expect(clippy::cast_precision_loss, reason = "a part is asked for, roughly")]
    fn is_common(&self, pages: u64, part: f64) -> bool {
        self.pages >= MIN_SITE && pages as f64 > part * self.pages as f64
    }

    /// Returns the share of pages above which a word is common. It is larger on a small site.
    #[expect(clippy::cast_precision_loss, reason = "a part is asked for, roughly")]
    fn common_part(&self) -> f64 {
        COMMON.max((MIN_COMMON_PAGES / self.pages.max(1) as f64).min(MAX_COMMON_PART))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of pages")]
    fn idf(&self, pages: u64) -> f32 {
        let all = self.pages as f32;
        let with = (pages as f32 * WEIGHTS.frequency).min(all);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    /// Makes two adjacent query words also match the word that they form when joined, if pages have
    /// that word.
    fn join_neighbours(
        &self,
        words: &mut [PlannedWord],
        wanted: &mut MarkedWords,
    ) -> tantivy::Result<()> {
        for n in 1..words.len() {
            if !words[n].run.is_empty() || !words[n - 1].run.is_empty() {
                continue;
            }
            let joined = format!("{}{}", words[n - 1].written, words[n].written);
            if self.lexicon.pages_with(&joined)? > 0 {
                wanted.want(&joined, MatchedTerm::of(wanted.next_term()));
                for planned in &mut words[n - 1..=n] {
                    planned.forms.push((joined.clone(), WEIGHTS.stem));
                    planned.is_unknown = false;
                }
            }
        }
        Ok(())
    }
}

impl PlannedWord {
    /// Plans the look-up of consecutive characters in a script without spaces. The result contains
    /// their pairs, or the character if there is only one. `text` is the text of the term.
    fn of_run(text: &str, run: &[&Word]) -> Option<PlannedWord> {
        let written = run.first()?.range.start..run.last()?.range.end;
        let pairs: Vec<_> = run
            .iter()
            .filter(|word| word.kind == WordRelation::Pair)
            .collect();
        let run: Vec<String> = match pairs.is_empty() {
            true => run.iter().map(|word| word.text.clone()).collect(),
            false => pairs.iter().map(|word| word.text.clone()).collect(),
        };
        Some(PlannedWord {
            written: text[written].to_owned(),
            run,
            ..PlannedWord::default()
        })
    }

    /// Returns the first form, normally the word as typed. Phrases use this form.
    fn best(&self) -> Option<&str> {
        self.forms.first().map(|(form, _)| form.as_str())
    }
}

impl MarkedWords {
    /// Marks the forms of a word in results. If `needs_another`, a form is marked only next to
    /// another marked word.
    fn mark(&mut self, planned: &PlannedWord, needs_another: bool) {
        let term = MatchedTerm {
            term: self.next_term(),
            needs_another,
        };
        for (form, _) in &planned.forms {
            self.want(form, term);
        }
        for pair in &planned.run {
            self.want(pair, term);
        }
    }
}

/// Removes the words that no page has from `words`, and adds them to `named`. A word that is
/// already contained in an entry of `named` is not added.
fn remove_unknown(words: &mut Vec<PlannedWord>, named: &mut Vec<String>) {
    for planned in words.extract_if(.., |planned| planned.is_unknown) {
        let is_named = |name: &String| name.to_lowercase().contains(&planned.written);
        if !named.iter().any(is_named) {
            named.push(planned.written);
        }
    }
}

/// Keeps each form only once, with its greatest weight, in the order of first occurrence.
fn dedup(forms: Vec<(String, f32)>) -> Vec<(String, f32)> {
    let mut merged: Vec<(String, f32)> = Vec::with_capacity(forms.len());
    for (form, weight) in forms {
        match merged
            .iter_mut()
            .find(|(merged_form, _)| *merged_form == form)
        {
            Some((_, merged_form)) => *merged_form = merged_form.max(weight),
            None => merged.push((form, weight)),
        }
    }
    merged
}
