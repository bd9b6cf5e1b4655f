//! The plan of a query: the look-ups that its terms come to.

mod lookups;
mod marked_words;
mod weights;

use std::cell::Cell;

use tantivy::query::{BooleanQuery, Occur, Query as Lookup};

use self::lookups::clause;
pub(crate) use self::marked_words::MarkedWords;
pub(crate) use self::weights::WEIGHTS;
use crate::lexicon::Lexicon;
use crate::query::{Query, QueryTerm, TermMatch};
use crate::schema::Fields;
use crate::tokens::STEM;
use crate::words::{Stemmer, Word, WordRelation, words};

/// A word that more than this part of the pages has tells little: a page need not have it.
const COMMON: f64 = 0.12;
/// One that more than this part has is not marked in results, where others are.
const EVERYWHERE: f64 = 0.4;
/// Of fewer pages none of that is said.
const MIN_SITE: u64 = 20;

/// Words of a query that are looked for, those that are guessed at, and the beginnings of words.
const MAX_WORDS: u32 = 32;
const MAX_GUESSES: u32 = 4;
const MAX_BEGINNINGS: u32 = 4;
/// Letters of a word that is guessed at, at most.
const MAX_GUESSED_LETTERS: usize = 24;

/// The look-ups for a query.
pub(crate) struct Plan {
    pub(crate) lookup: Box<dyn Lookup>,
    pub(crate) wanted: MarkedWords,
    pub(crate) did_you_mean: Option<String>,
}

/// The strictness with which a page has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It has most words of the query.
    Most,
    /// It has one of them.
    Any,
}

/// Looks words up in an index.
pub(crate) struct Planner<'s> {
    pub(crate) fields: &'s Fields,
    pub(crate) lexicon: Lexicon<'s>,
    /// Rules of the languages that pages are written in.
    pub(crate) stemmers: Vec<Stemmer>,
    pub(crate) pages: u64,
    /// The last word may not be typed to its end.
    pub(crate) partial: bool,
    pub(crate) budget: Budget,
}

/// The most that a query may cost: terms beyond it are not looked for.
#[derive(Debug)]
pub(crate) struct Budget {
    words: Cell<u32>,
    /// Words that no page has, and are guessed at.
    guesses: Cell<u32>,
    beginnings: Cell<u32>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            words: Cell::new(MAX_WORDS),
            guesses: Cell::new(MAX_GUESSES),
            beginnings: Cell::new(MAX_BEGINNINGS),
        }
    }
}

impl Budget {
    /// Takes one, if there is one left.
    fn take(of: &Cell<u32>) -> bool {
        let left = of.get();
        of.set(left.saturating_sub(1));
        left > 0
    }
}

/// A word to look up: forms of it, and how much each weighs.
#[derive(Clone, Debug, Default)]
struct Unit {
    forms: Vec<(String, f32)>,
    /// In a script without spaces: pairs that stand one after the other.
    run: Vec<String>,
    written: String,
    is_common: bool,
    /// Nearly every page has it.
    is_everywhere: bool,
    /// The rareness of it, as the logarithm of BM25.
    rarity: f32,
    /// It is not what was typed, but what may be meant by it.
    is_meant: bool,
}

impl Planner<'_> {
    pub(crate) fn plan(&self, query: &Query, fit: Strictness) -> tantivy::Result<Plan> {
        let mut wanted = MarkedWords::default();
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        let (mut units, mut meant) = (Vec::new(), Vec::new());
        for (n, term) in query.terms.iter().enumerate() {
            if term.how == TermMatch::Phrase {
                meant.push(Meant::as_typed(term));
                clauses.push(clause(term, self.look_up_phrase(term, &mut wanted)));
                continue;
            }
            let is_last = n + 1 == query.terms.len();
            if term.is_not && is_name(&term.text) {
                // All of the name must be there for a page to be left out.
                clauses.push(clause(term, self.look_up_phrase(term, &mut wanted)));
                meant.push(Meant::as_typed(term));
                continue;
            }
            let found = self.units(term, self.partial && is_last)?;
            meant.push(Meant::by(term, &found));
            if !term.is_not && !term.in_title {
                units.extend(found);
                continue;
            }
            for unit in &found {
                if !term.is_not {
                    wanted.mark(unit);
                }
                clauses.push(clause(term, self.look_up_unit(unit, term.in_title)));
            }
        }
        // Words that most pages have say nothing in an excerpt, where others do.
        let has_others = units.iter().any(|unit| !unit.is_everywhere);
        let marked = units
            .iter()
            .filter(|unit| !(has_others && unit.is_everywhere));
        marked.for_each(|unit| wanted.mark(unit));
        self.join_neighbours(&mut units, &mut wanted)?;
        clauses.extend(self.look_up_words(&units, fit));
        clauses.extend(self.look_up_neighbours(&units));
        self.restrict_to_sites(query, &mut clauses);
        Ok(Plan {
            lookup: Box::new(BooleanQuery::new(clauses)),
            wanted: wanted.sealed(),
            did_you_mean: self.suggestion(query, &meant),
        })
    }

    /// The words that a term is looked up as.
    fn units(&self, term: &QueryTerm, partial: bool) -> tantivy::Result<Vec<Unit>> {
        let found = words(&term.text, &Stemmer::none());
        let mut units = Vec::new();
        let mut run: Vec<&Word> = Vec::new();
        let whole: Vec<&Word> = found
            .iter()
            .filter(|word| word.kind == WordRelation::Plain)
            .collect();
        for word in &found {
            if matches!(word.kind, WordRelation::Character | WordRelation::Pair) {
                // What does not touch stands apart.
                if run
                    .last()
                    .is_some_and(|last| word.range.start > last.range.end)
                {
                    units.extend(Unit::of_run(&run));
                    run.clear();
                }
                run.push(word);
                continue;
            }
            units.extend(Unit::of_run(&run));
            run.clear();
            if word.kind == WordRelation::Plain {
                let is_last = whole.last().is_some_and(|last| last.range == word.range);
                let begins = is_last && (partial || term.how == TermMatch::Prefix);
                let begins = begins && Budget::take(&self.budget.beginnings);
                let found = self.plain(word, &found, begins, !term.is_not)?;
                units.extend(found);
            }
        }
        units.extend(Unit::of_run(&run));
        Ok(units)
    }

    /// A word of a script with spaces; two where a space is missing in it.
    fn plain(
        &self,
        word: &Word,
        all: &[Word],
        begins: bool,
        guess: bool,
    ) -> tantivy::Result<Vec<Unit>> {
        if !Budget::take(&self.budget.words) {
            return Ok(Vec::new());
        }
        let text = &word.text;
        let mut forms = vec![(text.clone(), 1.0)];
        for stemmer in &self.stemmers {
            if let Some(stem) = stemmer.stem_of(text) {
                forms.push((format!("{STEM}{stem}"), WEIGHTS.stem));
                forms.push((stem, WEIGHTS.stem));
            }
        }
        forms.push((format!("{STEM}{text}"), WEIGHTS.stem));
        if begins {
            let more = self.lexicon.beginning_with(text)?;
            forms.extend(more.into_iter().map(|word| (word, WEIGHTS.beginning)));
        }
        let mut pages = 0;
        for (form, _) in &forms {
            pages = pages.max(self.lexicon.pages_with(form)?);
        }
        let unit = Unit {
            is_common: self.is_common(pages, COMMON) && !begins,
            is_everywhere: self.is_common(pages, EVERYWHERE),
            rarity: self.rarity(pages),
            written: text.clone(),
            forms: dedup(forms),
            ..Unit::default()
        };
        match pages == 0 && guess {
            true => self.unknown(unit, word, all),
            false => Ok(vec![unit]),
        }
    }

    /// The words that may be meant by one that no page has.
    fn unknown(&self, mut unit: Unit, word: &Word, all: &[Word]) -> tantivy::Result<Vec<Unit>> {
        let parts = all.iter().filter(|part| {
            part.kind == WordRelation::Part
                && part.range.start >= word.range.start
                && part.range.end <= word.range.end
        });
        let mut units = Vec::new();
        for part in parts {
            units.extend(self.plain(part, &[], false, true)?);
        }
        if !units.is_empty() {
            return Ok(units);
        }
        let is_short = word.text.chars().count() <= MAX_GUESSED_LETTERS;
        if !is_short || !Budget::take(&self.budget.guesses) {
            return Ok(vec![unit]);
        }
        let near = self.lexicon.meant_by(&word.text)?;
        if near.is_empty() {
            if let Some((first, second)) = self.lexicon.halves_of(&word.text)? {
                return Ok(vec![self.meant(first)?, self.meant(second)?]);
            }
            return Ok(vec![unit]);
        }
        unit.written.clone_from(&near[0]);
        unit.is_meant = true;
        for (n, near) in near.into_iter().enumerate() {
            let weight = if n == 0 {
                WEIGHTS.meant
            } else {
                WEIGHTS.meant / 2.0
            };
            let stems = self
                .stemmers
                .iter()
                .filter_map(|stemmer| stemmer.stem_of(&near));
            let stems = stems.map(|stem| (format!("{STEM}{stem}"), weight * WEIGHTS.stem));
            // Those of the likeliest alone: the others are guesses already.
            unit.forms.extend(stems.filter(|_| n == 0));
            unit.forms.push((near, weight));
        }
        unit.rarity = self.rarity(self.lexicon.pages_with(&unit.written)?);
        unit.forms = dedup(unit.forms);
        Ok(vec![unit])
    }

    fn meant(&self, word: String) -> tantivy::Result<Unit> {
        let pages = self.lexicon.pages_with(&word)?;
        Ok(Unit {
            written: word.clone(),
            rarity: self.rarity(pages),
            is_common: self.is_common(pages, COMMON),
            forms: vec![(word, 1.0)],
            is_meant: true,
            ..Unit::default()
        })
    }

    fn is_common(&self, pages: u64, limit: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a part is asked for, roughly")]
        let part = pages as f64 / self.pages.max(1) as f64;
        self.pages >= MIN_SITE && part > limit
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of pages")]
    fn rarity(&self, pages: u64) -> f32 {
        let (all, with) = (self.pages as f32, pages.min(self.pages) as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5))
            .ln()
            .powf(WEIGHTS.rarity_power)
    }

    /// Two words that the pages write as one stand for each other.
    fn join_neighbours(&self, units: &mut [Unit], wanted: &mut MarkedWords) -> tantivy::Result<()> {
        for n in 1..units.len() {
            if !units[n].run.is_empty() || !units[n - 1].run.is_empty() {
                continue;
            }
            let joined = format!("{}{}", units[n - 1].written, units[n].written);
            if self.lexicon.pages_with(&joined)? > 0 {
                wanted.want(&joined, wanted.next_term());
                for unit in &mut units[n - 1..=n] {
                    unit.forms.push((joined.clone(), WEIGHTS.stem));
                }
            }
        }
        Ok(())
    }

    /// The query with what is meant, where that is not what was typed.
    fn suggestion(&self, query: &Query, meant: &[Meant]) -> Option<String> {
        if meant.iter().all(|term| !term.is_other) {
            return None;
        }
        let terms = meant.iter().map(|term| term.text.clone());
        let sites = query.sites.iter().map(|site| format!("site:{site}"));
        let not_sites = query.not_sites.iter().map(|site| format!("-site:{site}"));
        let all: Vec<_> = terms.chain(sites).chain(not_sites).collect();
        Some(all.join(" "))
    }
}

/// A term of the query, as it may be meant.
struct Meant {
    text: String,
    is_other: bool,
}

impl Meant {
    /// With the signs that it was typed with.
    fn as_typed(term: &QueryTerm) -> Meant {
        let quote = if term.how == TermMatch::Phrase {
            "\""
        } else {
            ""
        };
        let star = if term.how == TermMatch::Prefix {
            "*"
        } else {
            ""
        };
        let not = if term.is_not { "-" } else { "" };
        let title = if term.in_title { "title:" } else { "" };
        Meant {
            text: format!("{not}{title}{quote}{}{quote}{star}", term.text),
            is_other: false,
        }
    }

    fn by(term: &QueryTerm, units: &[Unit]) -> Meant {
        if units.iter().all(|unit| !unit.is_meant) {
            return Meant::as_typed(term);
        }
        let words: Vec<_> = units.iter().map(|unit| unit.written.as_str()).collect();
        let text = words.join(" ");
        Meant {
            is_other: true,
            ..Meant::as_typed(&QueryTerm {
                text,
                ..term.clone()
            })
        }
    }
}

impl Unit {
    /// Characters that stand together: all pairs of them, or the one.
    fn of_run(run: &[&Word]) -> Option<Unit> {
        let pairs: Vec<_> = run
            .iter()
            .filter(|word| word.kind == WordRelation::Pair)
            .collect();
        let run: Vec<String> = match pairs.is_empty() {
            true => run.iter().map(|word| word.text.clone()).collect(),
            false => pairs.iter().map(|word| word.text.clone()).collect(),
        };
        (!run.is_empty()).then(|| Unit {
            written: run.join(""),
            run,
            ..Unit::default()
        })
    }

    /// The form that weighs most, for phrases.
    fn best(&self) -> Option<&str> {
        self.forms.first().map(|(form, _)| form.as_str())
    }
}

impl MarkedWords {
    fn mark(&mut self, unit: &Unit) {
        let term = self.next_term();
        for (form, _) in &unit.forms {
            self.want(form, term);
        }
        for pair in &unit.run {
            self.want(pair, term);
        }
    }
}

/// Returns whether a term is several words that are typed as one.
fn is_name(text: &str) -> bool {
    let words = words(text, &Stemmer::none());
    words
        .iter()
        .filter(|word| word.kind != WordRelation::Part)
        .count()
        > 1
        || words.iter().any(|word| word.kind == WordRelation::Part)
}

/// Each form once, with the greatest weight that it has; in their order.
fn dedup(forms: Vec<(String, f32)>) -> Vec<(String, f32)> {
    let mut kept: Vec<(String, f32)> = Vec::with_capacity(forms.len());
    for (form, weight) in forms {
        match kept.iter_mut().find(|(known, _)| *known == form) {
            Some((_, known)) => *known = known.max(weight),
            None => kept.push((form, weight)),
        }
    }
    kept
}
