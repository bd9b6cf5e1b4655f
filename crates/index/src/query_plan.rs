//! From what a query asks for to what is looked up, and how much each find weighs.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use regex::Regex;
use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery, Occur, PhraseQuery,
    Query as Lookup, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use crate::bm25f::{self, AskedWord, Bm25fQuery, Place};
use crate::exclude_query::Excluded;
use crate::lexicon::Lexicon;
use crate::query::{Asked, How, Query};
use crate::schema::{Fields, Texts};
use crate::tokens::STEM;
use crate::words::{Kind, Stemmer, Word, words};

/// How much each thing that speaks for a page weighs. A place has two numbers: its weight, and
/// how much of it the place's length takes away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub(crate) title: (f32, f32),
    pub(crate) headings: [(f32, f32); 3],
    pub(crate) lead: (f32, f32),
    pub(crate) body: (f32, f32),
    pub(crate) description: (f32, f32),
    pub(crate) keywords: (f32, f32),
    pub(crate) anchors: (f32, f32),
    pub(crate) path: (f32, f32),
    /// See [`bm25f::Asked`] for these five.
    pub(crate) saturation: f32,
    pub(crate) whole: f32,
    pub(crate) near: f32,
    pub(crate) near_power: f32,
    pub(crate) passage: u32,
    /// How much a rare word outweighs a common one: the power of BM25's measure. Questions hold
    /// rare words that matter little, such as those that only the asker uses.
    pub(crate) rarity_power: f32,
    /// A page that lacks most words of a longer query fits all the same where it has so much of
    /// their rarity.
    pub(crate) least_part: f32,
    /// A word of the same stem, against the word itself.
    pub(crate) stem: f32,
    /// A word that only begins like it.
    pub(crate) beginning: f32,
    /// A word that may be meant.
    pub(crate) meant: f32,
    /// Two words of the query beside each other in the text, and in title or heading.
    pub(crate) beside: (f32, f32),
    /// The weight that other fields than the best one add, for what is looked up by itself.
    pub(crate) others: f32,
    /// The weight that each doubling of the pages that link to a page adds.
    pub(crate) linked: f32,
}

/// Found by drawing changes and keeping those that do the queries marked `tune` of `cargo xtask
/// bench search` good, then rounded; the other queries had no say in it.
pub(crate) const WEIGHTS: Weights = Weights {
    title: (11.0, 0.5),
    headings: [(18.0, 0.7), (1.5, 0.2), (0.5, 0.1)],
    lead: (3.0, 0.5),
    body: (0.7, 0.2),
    description: (5.0, 0.5),
    keywords: (1.5, 0.5),
    anchors: (2.0, 0.1),
    path: (2.5, 0.15),
    saturation: 9.0,
    whole: 0.25,
    near: 0.45,
    near_power: 1.3,
    passage: 65,
    rarity_power: 0.3,
    least_part: 0.3,
    stem: 0.8,
    beginning: 0.7,
    meant: 0.8,
    beside: (0.08, 0.08),
    others: 0.3,
    linked: 0.016,
};

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
    pub(crate) wanted: Wanted,
    pub(crate) did_you_mean: Option<String>,
}

/// The words to mark in a result: each leads to the term of the query that it was found for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    words: HashMap<String, usize>,
    /// Finds what one of them begins with, in ASCII of either case.
    beginnings: Option<Regex>,
}

impl Wanted {
    /// The term that a word of a page was found for.
    pub(crate) fn term(&self, word: &Word) -> Option<usize> {
        let by_stem = || {
            let stem = word.stem.as_ref()?;
            self.words.get(&format!("{STEM}{stem}"))
        };
        self.words.get(&word.text).or_else(by_stem).copied()
    }

    /// The pieces of a text that may have one of them: words, and what stands between two spaces
    /// and is not plain ASCII.
    pub(crate) fn likely_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut likely = Vec::new();
        let Some(beginnings) = &self.beginnings else {
            likely.push(0..text.len());
            return likely;
        };
        let mut found = beginnings
            .find_iter(text)
            .map(|found| found.start())
            .peekable();
        let mut start = 0;
        for piece in text.split_inclusive([' ', '\n']) {
            let end = start + piece.len();
            while found.next_if(|at| *at < start).is_some() {}
            let is_likely = found.peek().is_some_and(|at| *at < end) || !piece.is_ascii();
            if is_likely {
                likely.push(start..end);
            }
            start = end;
        }
        likely
    }

    /// Prepares for quick looks.
    fn sealed(mut self) -> Wanted {
        let beginning = |word: &String| {
            let word = word.trim_start_matches(STEM);
            // A stem may end in another letter than the word.
            let letters = word.chars().count();
            let most = if letters > 3 { letters - 1 } else { letters };
            regex::escape(&word.chars().take(most).collect::<String>())
        };
        let mut all: Vec<String> = self.words.keys().map(beginning).collect();
        all.sort_unstable();
        all.dedup();
        self.beginnings = Regex::new(&format!("(?i-u:{})", all.join("|"))).ok();
        self
    }

    fn want(&mut self, word: &str, term: usize) {
        self.words.entry(word.to_owned()).or_insert(term);
    }
}

/// How strictly a page has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
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
    /// How few pages have it, as the logarithm of BM25.
    rarity: f32,
    /// It is not what was typed, but what may be meant by it.
    is_meant: bool,
}

impl Planner<'_> {
    pub(crate) fn plan(&self, query: &Query, fit: Fit) -> tantivy::Result<Plan> {
        let mut wanted = Wanted::default();
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        let (mut units, mut meant) = (Vec::new(), Vec::new());
        for (n, term) in query.terms.iter().enumerate() {
            if term.how == How::Phrase {
                meant.push(Meant::as_typed(term));
                clauses.push(clause(term, self.phrase(term, &mut wanted)));
                continue;
            }
            let is_last = n + 1 == query.terms.len();
            if term.is_not && is_name(&term.text) {
                // All of the name must be there for a page to be left out.
                clauses.push(clause(term, self.phrase(term, &mut wanted)));
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
                    wanted.unit(unit);
                }
                clauses.push(clause(term, self.unit(unit, term.in_title)));
            }
        }
        // Words that most pages have say nothing in an excerpt, where others do.
        let has_others = units.iter().any(|unit| !unit.is_everywhere);
        let marked = units
            .iter()
            .filter(|unit| !(has_others && unit.is_everywhere));
        marked.for_each(|unit| wanted.unit(unit));
        self.join_neighbours(&mut units, &mut wanted)?;
        clauses.extend(self.words(&units, fit));
        clauses.extend(self.beside(&units));
        self.sites(query, &mut clauses);
        Ok(Plan {
            lookup: Box::new(BooleanQuery::new(clauses)),
            wanted: wanted.sealed(),
            did_you_mean: self.suggestion(query, &meant),
        })
    }

    /// The words that a term is looked up as.
    fn units(&self, term: &Asked, partial: bool) -> tantivy::Result<Vec<Unit>> {
        let found = words(&term.text, &Stemmer::none());
        let mut units = Vec::new();
        let mut run: Vec<&Word> = Vec::new();
        let whole: Vec<&Word> = found
            .iter()
            .filter(|word| word.kind == Kind::Plain)
            .collect();
        for word in &found {
            if matches!(word.kind, Kind::Character | Kind::Pair) {
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
            if word.kind == Kind::Plain {
                let is_last = whole.last().is_some_and(|last| last.range == word.range);
                let begins = is_last && (partial || term.how == How::Prefix);
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
            part.kind == Kind::Part
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
    fn join_neighbours(&self, units: &mut [Unit], wanted: &mut Wanted) -> tantivy::Result<()> {
        for n in 1..units.len() {
            if !units[n].run.is_empty() || !units[n - 1].run.is_empty() {
                continue;
            }
            let joined = format!("{}{}", units[n - 1].written, units[n].written);
            if self.lexicon.pages_with(&joined)? > 0 {
                wanted.want(&joined, wanted.words.len());
                for unit in &mut units[n - 1..=n] {
                    unit.forms.push((joined.clone(), WEIGHTS.stem));
                }
            }
        }
        Ok(())
    }

    /// Most of the telling words must be there; the common ones add to the score.
    fn words(&self, units: &[Unit], fit: Fit) -> Vec<(Occur, Box<dyn Lookup>)> {
        let (runs, words): (Vec<_>, Vec<_>) = units.iter().partition(|unit| !unit.run.is_empty());
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        for run in &runs {
            clauses.push((Occur::Must, self.unit(run, false)));
        }
        if words.is_empty() {
            return any_of(clauses, fit);
        }
        let all_common = words.iter().all(|unit| unit.is_common) && runs.is_empty();
        let telling = words
            .iter()
            .filter(|unit| all_common || !unit.is_common)
            .count();
        let least = match (fit, telling) {
            (Fit::Any, _) => 1,
            (Fit::Most, n @ 0..=2) => n,
            (Fit::Most, n) => (n * 3).div_ceil(5),
        };
        let asked = bm25f::Asked {
            words: words
                .iter()
                .map(|unit| AskedWord {
                    forms: unit.forms.clone(),
                    rarity: unit.rarity,
                    is_telling: all_common || !unit.is_common,
                })
                .collect(),
            places: places(&self.fields.texts),
            least: least.min(telling),
            whole: WEIGHTS.whole,
            saturation: WEIGHTS.saturation,
            near: WEIGHTS.near,
            near_power: WEIGHTS.near_power,
            passage: WEIGHTS.passage,
            least_part: match units.len() {
                // Of two words both are meant.
                0..=2 => f32::INFINITY,
                _ => WEIGHTS.least_part,
            },
            body: self.fields.texts.body,
        };
        clauses.push((Occur::Must, Box::new(Bm25fQuery(Arc::new(asked)))));
        any_of(clauses, fit)
    }

    fn unit(&self, unit: &Unit, in_title: bool) -> Box<dyn Lookup> {
        let mut places = places(&self.fields.texts);
        places.retain(|place| !in_title || place.field == self.fields.texts.title);
        let lookups = places.iter().map(|Place { field, weight, .. }| {
            let found: Box<dyn Lookup> = match unit.run.len() {
                0 => Box::new(DisjunctionMaxQuery::new(forms(*field, &unit.forms))),
                1 => term(*field, &unit.run[0]),
                _ if self.has_places(*field) => Box::new(PhraseQuery::new(
                    unit.run
                        .iter()
                        .map(|pair| Term::from_field_text(*field, pair))
                        .collect(),
                )),
                _ => Box::new(BooleanQuery::intersection(
                    unit.run.iter().map(|pair| term(*field, pair)).collect(),
                )),
            };
            Box::new(BoostQuery::new(found, *weight)) as Box<dyn Lookup>
        });
        let lookups = lookups.collect();
        Box::new(DisjunctionMaxQuery::with_tie_breaker(
            lookups,
            WEIGHTS.others,
        ))
    }

    /// Neighbours in the query that are neighbours in the page.
    fn beside(&self, units: &[Unit]) -> Vec<(Occur, Box<dyn Lookup>)> {
        let texts = &self.fields.texts;
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        for pair in units.windows(2) {
            let [first, second] = pair else { continue };
            let (Some(a), Some(b)) = (first.best(), second.best()) else {
                continue;
            };
            for (field, weight) in [
                (texts.body, WEIGHTS.beside.0),
                (texts.title, WEIGHTS.beside.1),
                (texts.headings[0], WEIGHTS.beside.1),
                (texts.headings[1], WEIGHTS.beside.1 / 2.0),
            ] {
                let terms = [a, b].map(|word| Term::from_field_text(field, word));
                let mut phrase = PhraseQuery::new(terms.to_vec());
                phrase.set_slop(1);
                let boosted = BoostQuery::new(Box::new(phrase), weight);
                clauses.push((Occur::Should, Box::new(boosted)));
            }
        }
        clauses
    }

    fn phrase(&self, term: &Asked, wanted: &mut Wanted) -> Box<dyn Lookup> {
        let texts = &self.fields.texts;
        let found = words(&term.text, &Stemmer::none());
        let paired: Vec<_> = found
            .iter()
            .filter(|word| word.kind == Kind::Pair)
            .collect();
        let is_paired = |word: &Word| {
            let mut pairs = paired.iter();
            pairs.any(|pair| {
                pair.range.start <= word.range.start && word.range.end <= pair.range.end
            })
        };
        let pick = |word: &&Word| match word.kind {
            Kind::Plain | Kind::Pair => true,
            // One that stands alone.
            Kind::Character => !is_paired(word),
            Kind::Part => false,
        };
        let picked: Vec<&Word> = found.iter().filter(pick).collect();
        if !term.is_not {
            picked
                .iter()
                .for_each(|word| wanted.want(&word.text, usize::from(u16::MAX)));
        }
        let title = (texts.title, WEIGHTS.title.0);
        let mut places = vec![title];
        if !term.in_title {
            places.push((texts.body, WEIGHTS.body.0));
            let headings = WEIGHTS.headings.map(|heading| heading.0);
            places.extend(texts.headings.into_iter().zip(headings));
        }
        let lookups = places.into_iter().map(|(field, weight)| {
            let place = |word: &&Word| (word.position, Term::from_field_text(field, &word.text));
            let found: Box<dyn Lookup> = match picked.len() {
                0 => Box::new(EmptyQuery),
                1 => self::term(field, &picked[0].text),
                _ => Box::new(PhraseQuery::new_with_offset(
                    picked.iter().map(place).collect(),
                )),
            };
            Box::new(BoostQuery::new(found, weight)) as Box<dyn Lookup>
        });
        Box::new(DisjunctionMaxQuery::new(lookups.collect()))
    }

    fn sites(&self, query: &Query, clauses: &mut Vec<(Occur, Box<dyn Lookup>)>) {
        let site = |site: &String| {
            let found = Box::new(exact(self.fields.site, site));
            Box::new(ConstScoreQuery::new(found, 0.0)) as Box<dyn Lookup>
        };
        if !query.sites.is_empty() {
            let sites = query.sites.iter().map(site).collect();
            clauses.push((Occur::Must, Box::new(BooleanQuery::union(sites))));
        }
        for not in &query.not_sites {
            clauses.push((Occur::MustNot, Box::new(Excluded(site(not)))));
        }
        // What must not be there is no question alone.
        if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
            clauses.push((Occur::Must, Box::new(EmptyQuery)));
        }
    }

    fn has_places(&self, field: Field) -> bool {
        let texts = &self.fields.texts;
        field == texts.title || field == texts.body || texts.headings.contains(&field)
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
    fn as_typed(term: &Asked) -> Meant {
        let quote = if term.how == How::Phrase { "\"" } else { "" };
        let star = if term.how == How::Prefix { "*" } else { "" };
        let not = if term.is_not { "-" } else { "" };
        let title = if term.in_title { "title:" } else { "" };
        Meant {
            text: format!("{not}{title}{quote}{}{quote}{star}", term.text),
            is_other: false,
        }
    }

    fn by(term: &Asked, units: &[Unit]) -> Meant {
        if units.iter().all(|unit| !unit.is_meant) {
            return Meant::as_typed(term);
        }
        let words: Vec<_> = units.iter().map(|unit| unit.written.as_str()).collect();
        let text = words.join(" ");
        Meant {
            is_other: true,
            ..Meant::as_typed(&Asked {
                text,
                ..term.clone()
            })
        }
    }
}

impl Unit {
    /// Characters that stand together: all pairs of them, or the one.
    fn of_run(run: &[&Word]) -> Option<Unit> {
        let pairs: Vec<_> = run.iter().filter(|word| word.kind == Kind::Pair).collect();
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

impl Wanted {
    fn unit(&mut self, unit: &Unit) {
        let term = self.words.len();
        for (form, _) in &unit.forms {
            self.want(form, term);
        }
        for pair in &unit.run {
            self.want(pair, term);
        }
    }
}

/// Clauses that each must hold; or one of them, where any will do.
fn any_of(clauses: Vec<(Occur, Box<dyn Lookup>)>, fit: Fit) -> Vec<(Occur, Box<dyn Lookup>)> {
    if fit == Fit::Most || clauses.len() < 2 {
        return clauses;
    }
    let any = clauses.into_iter().map(|(_, lookup)| lookup).collect();
    vec![(Occur::Must, Box::new(BooleanQuery::union(any)))]
}

/// Whether a term is several words that are typed as one.
fn is_name(text: &str) -> bool {
    let words = words(text, &Stemmer::none());
    words.iter().filter(|word| word.kind != Kind::Part).count() > 1
        || words.iter().any(|word| word.kind == Kind::Part)
}

/// The demand of a term of the query: its word must be there, or must not.
fn clause(term: &Asked, found: Box<dyn Lookup>) -> (Occur, Box<dyn Lookup>) {
    match term.is_not {
        true => (Occur::MustNot, Box::new(Excluded(found))),
        false => (Occur::Must, found),
    }
}

/// Where words are looked for, and how much that weighs.
fn places(texts: &Texts) -> Vec<Place> {
    let of = |field, (weight, length)| Place {
        field,
        weight,
        length,
    };
    vec![
        of(texts.title, WEIGHTS.title),
        of(texts.headings[0], WEIGHTS.headings[0]),
        of(texts.headings[1], WEIGHTS.headings[1]),
        of(texts.headings[2], WEIGHTS.headings[2]),
        of(texts.lead, WEIGHTS.lead),
        of(texts.body, WEIGHTS.body),
        of(texts.description, WEIGHTS.description),
        of(texts.keywords, WEIGHTS.keywords),
        of(texts.anchors, WEIGHTS.anchors),
        of(texts.path, WEIGHTS.path),
    ]
}

fn forms(field: Field, forms: &[(String, f32)]) -> Vec<Box<dyn Lookup>> {
    let form = |(word, weight): &(String, f32)| {
        Box::new(BoostQuery::new(term(field, word), *weight)) as Box<dyn Lookup>
    };
    forms.iter().map(form).collect()
}

fn term(field: Field, word: &str) -> Box<dyn Lookup> {
    let term = Term::from_field_text(field, word);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn exact(field: Field, value: &str) -> TermQuery {
    TermQuery::new(
        Term::from_field_text(field, value),
        IndexRecordOption::Basic,
    )
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
