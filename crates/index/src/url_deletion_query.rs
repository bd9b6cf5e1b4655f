//! Deletes the pages of a URL.

use tantivy::query::{
    ConstScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Score, SegmentReader, Term};

/// A query for the pages of a URL, for deleting them.
///
/// tantivy keeps all deletions in memory until the next commit. The pass at the end of a crawl
/// rewrites nearly every page, which includes deleting its previous version. A `TermQuery` would
/// take more than 1 KiB per deletion, mostly for a table that only scoring needs, so this query
/// keeps only the term.
#[derive(Clone, Debug)]
pub(crate) struct UrlDeletionQuery(Term);

impl UrlDeletionQuery {
    pub(crate) fn new(field: Field, url: &str) -> UrlDeletionQuery {
        UrlDeletionQuery(Term::from_field_text(field, url))
    }
}

impl Query for UrlDeletionQuery {
    fn weight(&self, _scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for UrlDeletionQuery {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let words = segment.inverted_index(self.0.field())?;
        Ok(
            match words.read_postings(&self.0, IndexRecordOption::Basic)? {
                Some(pages) => Box::new(ConstScorer::new(pages, boost)),
                None => Box::new(EmptyScorer),
            },
        )
    }

    fn explain(&self, segment: &SegmentReader, page: DocId) -> tantivy::Result<Explanation> {
        let query = TermQuery::new(self.0.clone(), IndexRecordOption::Basic);
        let schema = segment.schema();
        let weight = query.weight(EnableScoring::disabled_from_schema(schema))?;
        weight.explain(segment, page)
    }
}

#[cfg(test)]
mod tests {
    use tantivy::query::{EnableScoring, Query as _};

    use super::UrlDeletionQuery;
    use crate::schema::schema;

    #[test]
    fn a_deletion_takes_little_memory_and_is_explained() {
        assert!(size_of::<UrlDeletionQuery>() <= 32);
        let (schema, fields) = schema();
        let index = tantivy::Index::create_in_ram(schema.clone());
        let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for url in ["http://a.example/", "http://b.example/"] {
            let mut page = tantivy::TantivyDocument::new();
            page.add_text(fields.url, url);
            writer.add_document(page).unwrap();
        }
        writer.commit().unwrap();
        let searcher = index.reader().unwrap().searcher();
        let deletion = UrlDeletionQuery::new(fields.url, "http://b.example/");
        let weight = deletion.weight(EnableScoring::disabled_from_schema(&schema));
        let weight = weight.unwrap();
        let segment = searcher.segment_reader(0);
        assert_eq!(weight.count(segment).unwrap(), 1);
        assert!(weight.explain(segment, 0).is_err());
        assert!(weight.explain(segment, 1).is_ok());
        writer.delete_query(Box::new(deletion)).unwrap();
        writer.commit().unwrap();
        let searcher = index.reader().unwrap().searcher();
        assert_eq!(searcher.num_docs(), 1);
    }
}
