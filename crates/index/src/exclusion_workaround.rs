//! A query wrapper that works around a defect of tantivy in exclusions of phrases.

use std::fmt;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

/// Wraps a query whose matches are excluded from the results.
///
/// For exclusions, tantivy (0.27) calls `seek_danger`, possibly with a document before the query's
/// first match. Phrase queries don't support that. The default `seek_danger`, which this wrapper
/// uses, only seeks forward.
pub(crate) struct ForwardSeekQuery(pub(crate) Box<dyn Query>);

impl Clone for ForwardSeekQuery {
    fn clone(&self) -> ForwardSeekQuery {
        ForwardSeekQuery(self.0.box_clone())
    }
}

impl fmt::Debug for ForwardSeekQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForwardSeekQuery").field(&self.0).finish()
    }
}

impl Query for ForwardSeekQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ForwardSeekOnly(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

/// A weight or a scorer that seeks only forward.
struct ForwardSeekOnly<T>(T);

impl Weight for ForwardSeekOnly<Box<dyn Weight>> {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(ForwardSeekOnly(self.0.scorer(reader, boost)?)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, doc)
    }
}

impl DocSet for ForwardSeekOnly<Box<dyn Scorer>> {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }
}

impl Scorer for ForwardSeekOnly<Box<dyn Scorer>> {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
