//! Builds the index queries for the words and phrases of a plan.

use std::sync::Arc;

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EmptyQuery, Occur, PhraseQuery,
    Query as Lookup, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::ranking_weights::{WEIGHTS, weighted_fields};
use super::{MarkedWords, MatchedTerm, PlannedWord, QueryPlanner, RequiredQueryWords};
use crate::bm25f::{self, Bm25fQuery, ScoredQueryWord, WeightedField};
use crate::exclusion_workaround::ForwardSeekQuery;
use crate::query::{Query, QueryTerm};
use crate::words::{Stemmer, Word, WordRelation, words};

impl QueryPlanner<'_> {
    /// Returns clauses for pages that have most of the distinctive words or, depending on `fit`, at
    /// least one of them. Common words only raise the score.
    pub(super) fn look_up_words(
        &self,
        planned_words: &[PlannedWord],
        fit: RequiredQueryWords,
    ) -> Vec<(Occur, Box<dyn Lookup>)> {
        let (runs, words): (Vec<_>, Vec<_>) =
            planned_words.iter().partition(|word| !word.run.is_empty());
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        for run in &runs {
            clauses.push((Occur::Must, self.look_up_word(run, None)));
        }
        if words.is_empty() {
            return any_of(clauses, fit);
        }
        let free = words.iter().filter(|word| !word.is_in_phrase);
        let all_common = free.clone().all(|word| word.is_common) && runs.is_empty();
        let is_distinctive =
            |word: &PlannedWord| !word.is_in_phrase && (all_common || !word.is_common);
        let distinctive = free.clone().filter(|word| is_distinctive(word)).count();
        let least = match (fit, distinctive) {
            (
                RequiredQueryWords::Any | RequiredQueryWords::Apart | RequiredQueryWords::Relaxed,
                _,
            ) => 1,
            (RequiredQueryWords::All, n) | (RequiredQueryWords::Most, n @ 0..=2) => n,
            (RequiredQueryWords::Most, n) => (n * 3).div_ceil(5),
        };
        let texts = &self.fields.texts;
        let terms = bm25f::Bm25fQueryDefinition {
            words: words
                .iter()
                .map(|word| ScoredQueryWord {
                    forms: word.forms.clone(),
                    inflections: word.inflections.clone(),
                    idf: word.idf,
                    rarity: word.idf.powf(WEIGHTS.rarity_power),
                    is_distinctive: is_distinctive(word),
                    is_name: word.is_name,
                    shared_in: word.shared_in.clone(),
                })
                .collect(),
            places: weighted_fields(texts),
            least: least.min(distinctive),
            whole: WEIGHTS.whole,
            distinctive,
            partial: match fit {
                RequiredQueryWords::Relaxed => WEIGHTS.one_of_pair,
                _ => 1.0,
            },
            saturation: WEIGHTS.saturation,
            text_alone: WEIGHTS.text_alone,
            passage: WEIGHTS.passage,
            heading: WEIGHTS.heading,
            least_part: match (fit, runs.len() + free.count()) {
                // In a query of two words, both matter. So a page with only one word doesn't match,
                // even if that is the rarer one.
                (RequiredQueryWords::All, _) | (_, 0..=2) => f32::INFINITY,
                _ => WEIGHTS.least_part,
            },
            title: texts.title,
            body: texts.body,
            headings: [texts.title, texts.description]
                .into_iter()
                .chain(texts.headings)
                .collect(),
        };
        clauses.push((Occur::Must, Box::new(Bm25fQuery(Arc::new(terms)))));
        any_of(clauses, fit)
    }

    /// Returns a query for pages with a word. Searches all fields, or only those that the term
    /// `term_of` allows.
    pub(super) fn look_up_word(
        &self,
        word: &PlannedWord,
        term_of: Option<&QueryTerm>,
    ) -> Box<dyn Lookup> {
        let texts = &self.fields.texts;
        let mut places = weighted_fields(texts);
        if let Some(QueryTerm {
            in_title, is_not, ..
        }) = term_of
        {
            places.retain(|place| !in_title || place.field == texts.title);
            // Don't search the text outside the main text for an excluded word. Otherwise a footer
            // with the word could exclude every page.
            places.retain(|place| !is_not || place.field != texts.beside);
        }
        let lookups = places.iter().map(|WeightedField { field, weight, .. }| {
            let lookup: Box<dyn Lookup> = match word.run.len() {
                0 => Box::new(DisjunctionMaxQuery::new(forms(*field, &word.forms))),
                1 => term(*field, &word.run[0]),
                _ if self.has_places(*field) => Box::new(PhraseQuery::new(
                    word.run
                        .iter()
                        .map(|pair| Term::from_field_text(*field, pair))
                        .collect(),
                )),
                _ => Box::new(BooleanQuery::intersection(
                    word.run.iter().map(|pair| term(*field, pair)).collect(),
                )),
            };
            Box::new(BoostQuery::new(lookup, *weight)) as Box<dyn Lookup>
        });
        let lookups = lookups.collect();
        Box::new(DisjunctionMaxQuery::with_tie_breaker(
            lookups,
            WEIGHTS.others,
        ))
    }

    /// Returns clauses that raise the score if two words that are adjacent in the query are
    /// adjacent in a page.
    pub(super) fn look_up_neighbours(
        &self,
        planned_words: &[PlannedWord],
    ) -> Vec<(Occur, Box<dyn Lookup>)> {
        let texts = &self.fields.texts;
        let mut clauses: Vec<(Occur, Box<dyn Lookup>)> = Vec::new();
        for pair in planned_words.windows(2) {
            let [first, second] = pair else { continue };
            let (Some(a), Some(b)) = (first.best(), second.best()) else {
                continue;
            };
            for (field, weight) in [
                (texts.body, WEIGHTS.neighbours.0),
                (texts.title, WEIGHTS.neighbours.1),
                (texts.headings[0], WEIGHTS.neighbours.1),
                (texts.headings[1], WEIGHTS.neighbours.1 / 2.0),
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

    /// Returns a clause that raises the score of pages that contain all words of a name (typed
    /// without spaces) in sequence. `None` if the term is a single word.
    pub(super) fn look_up_name(&self, term: &QueryTerm) -> Option<(Occur, Box<dyn Lookup>)> {
        let all_words = words(&term.text, &Stemmer::none());
        let whole = all_words
            .iter()
            .filter(|word| word.kind == WordRelation::Plain);
        if whole.count() < 2 {
            return None;
        }
        let boosted = BoostQuery::new(self.look_up_text(&term.text), WEIGHTS.name);
        Some((Occur::Should, Box::new(boosted)))
    }

    /// Returns a query for pages whose text, title or headings contain the words of `text` in
    /// sequence.
    pub(crate) fn look_up_text(&self, text: &str) -> Box<dyn Lookup> {
        let texts = &self.fields.texts;
        let all_words = words(text, &Stemmer::none());
        let whole = all_words
            .iter()
            .filter(|word| word.kind == WordRelation::Plain);
        let whole: Vec<&Word> = whole.collect();
        let places = [texts.body, texts.title].into_iter().chain(texts.headings);
        let lookups = places.map(|field| words_in_order(field, &whole));
        Box::new(DisjunctionMaxQuery::new(lookups.collect()))
    }

    /// Returns a query for pages with the words of a phrase in sequence. Adds the words to
    /// `wanted`, so that results mark them, unless the phrase is excluded.
    pub(super) fn look_up_phrase(
        &self,
        term: &QueryTerm,
        wanted: &mut MarkedWords,
    ) -> Box<dyn Lookup> {
        let texts = &self.fields.texts;
        let all_words = words(&term.text, &Stemmer::none());
        let paired: Vec<_> = all_words
            .iter()
            .filter(|word| word.kind == WordRelation::Pair)
            .collect();
        let is_paired = |word: &Word| {
            let mut pairs = paired.iter();
            pairs.any(|pair| {
                pair.range.start <= word.range.start && word.range.end <= pair.range.end
            })
        };
        let pick = |word: &&Word| match word.kind {
            WordRelation::Plain | WordRelation::Pair => true,
            // A character next to another is already part of a pair.
            WordRelation::Character => !is_paired(word),
            WordRelation::Part => false,
        };
        let picked: Vec<&Word> = all_words.iter().filter(pick).collect();
        if !term.is_not {
            picked
                .iter()
                .for_each(|word| wanted.want(&word.text, MatchedTerm::of(usize::from(u16::MAX))));
        }
        let title = (texts.title, WEIGHTS.title.0);
        let mut places = vec![title];
        if !term.in_title {
            places.push((texts.body, WEIGHTS.body.0));
            let headings = WEIGHTS.headings.map(|heading| heading.0);
            places.extend(texts.headings.into_iter().zip(headings));
        }
        if !term.in_title && !term.is_not {
            places.push((texts.beside, WEIGHTS.beside.0));
        }
        let lookups = places.into_iter().map(|(field, weight)| {
            let lookup = words_in_order(field, &picked);
            Box::new(BoostQuery::new(lookup, weight)) as Box<dyn Lookup>
        });
        Box::new(DisjunctionMaxQuery::new(lookups.collect()))
    }

    /// Adds clauses for the sites that a query names or excludes.
    pub(super) fn restrict_to_sites(
        &self,
        query: &Query,
        clauses: &mut Vec<(Occur, Box<dyn Lookup>)>,
    ) {
        let site = |site: &String| {
            let matching = Box::new(exact(self.fields.site, site));
            Box::new(ConstScoreQuery::new(matching, 0.0)) as Box<dyn Lookup>
        };
        if !query.sites.is_empty() {
            let sites = query.sites.iter().map(site).collect();
            clauses.push((Occur::Must, Box::new(BooleanQuery::union(sites))));
        }
        for not in &query.not_sites {
            clauses.push((Occur::MustNot, Box::new(ForwardSeekQuery(site(not)))));
        }
        // A query that consists only of exclusions has no results.
        if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
            clauses.push((Occur::Must, Box::new(EmptyQuery)));
        }
    }

    fn has_places(&self, field: Field) -> bool {
        let texts = &self.fields.texts;
        [texts.title, texts.body, texts.beside].contains(&field) || texts.headings.contains(&field)
    }
}

/// Combines clauses so that a page must match all of them or, if `fit` is `Any` or `Apart`, at
/// least one.
fn any_of(
    clauses: Vec<(Occur, Box<dyn Lookup>)>,
    fit: RequiredQueryWords,
) -> Vec<(Occur, Box<dyn Lookup>)> {
    let is_any = matches!(fit, RequiredQueryWords::Any | RequiredQueryWords::Apart);
    if !is_any || clauses.len() < 2 {
        return clauses;
    }
    let any = clauses.into_iter().map(|(_, lookup)| lookup).collect();
    vec![(Occur::Must, Box::new(BooleanQuery::union(any)))]
}

/// Returns the clause for a term: pages must match `lookup` or, if the term is excluded, must not
/// match it.
pub(super) fn clause(term: &QueryTerm, lookup: Box<dyn Lookup>) -> (Occur, Box<dyn Lookup>) {
    match term.is_not {
        true => (Occur::MustNot, Box::new(ForwardSeekQuery(lookup))),
        false => (Occur::Must, lookup),
    }
}

/// Returns a query for pages whose field `field` contains the words in the same order and with the
/// same distances.
fn words_in_order(field: Field, words: &[&Word]) -> Box<dyn Lookup> {
    let place = |word: &&Word| (word.position, Term::from_field_text(field, &word.text));
    match words {
        [] => Box::new(EmptyQuery),
        [word] => term(field, &word.text),
        _ => Box::new(PhraseQuery::new_with_offset(
            words.iter().map(place).collect(),
        )),
    }
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
