//! Chooses the words of a phrase that decide the rank of the pages with the phrase.

use super::{PlannedWord, PlanningBudget, QueryPlanner};
use crate::query::QueryTerm;
use crate::words::{Stemmer, Word, WordRelation, words};

impl QueryPlanner<'_> {
    /// Returns the words of a phrase that decide the rank of the pages with the phrase. Empty for
    /// phrases that are ranked as a whole: those in titles, and those in a script without spaces.
    /// Also empty for an excluded phrase.
    pub(super) fn phrase_words(&self, term: &QueryTerm) -> tantivy::Result<Vec<PlannedWord>> {
        let all = words(&term.text, &Stemmer::none());
        let is_paired =
            |word: &Word| matches!(word.kind, WordRelation::Character | WordRelation::Pair);
        if term.is_not || term.in_title || all.iter().any(is_paired) {
            return Ok(Vec::new());
        }
        let mut planned_words = Vec::new();
        for word in all.iter().filter(|word| word.kind == WordRelation::Plain) {
            if !PlanningBudget::take(&self.budget.words) {
                break;
            }
            let pages = self.lexicon.pages_with(&word.text)?;
            planned_words.push(PlannedWord {
                is_in_phrase: true,
                is_name: has_parts(word, &all),
                is_common: self.is_common(pages, self.common_part()),
                shared_in: self.lexicon.shared_in(&word.text, self.pages)?,
                idf: self.idf(pages),
                written: word.text.clone(),
                forms: vec![(word.text.clone(), 1.0)],
                ..PlannedWord::default()
            });
        }
        Ok(planned_words)
    }
}

/// Returns whether a word consists of several parts, which are in `all`.
pub(super) fn has_parts(word: &Word, all: &[Word]) -> bool {
    let is_part = |part: &&Word| {
        part.kind == WordRelation::Part
            && word.range.start <= part.range.start
            && part.range.end <= word.range.end
    };
    all.iter().filter(is_part).count() > 1
}

/// Returns true if a term consists of several words or parts, such as `user_agent`.
pub(super) fn is_name(text: &str) -> bool {
    let words = words(text, &Stemmer::none());
    words
        .iter()
        .filter(|word| word.kind != WordRelation::Part)
        .count()
        > 1
        || words.iter().any(|word| word.kind == WordRelation::Part)
}
