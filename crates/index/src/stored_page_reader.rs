//! Reads stored pages back from an index.

use std::ops::ControlFlow;
use std::path::Path;

use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::query::TermQuery;
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{DocAddress, Index, Searcher, TantivyDocument, Term};

use crate::error::{IndexError, guarded};
use crate::schema::IndexFields;
use crawl_index_entry::IndexedPage;

/// Returns a searcher of the last commit of the index in `dir`.
pub(crate) fn searcher(dir: &Path, index: &Index) -> Result<Searcher, IndexError> {
    let error = IndexError::of(dir);
    let reader = index.reader_builder();
    let reader = reader.reload_policy(tantivy::ReloadPolicy::Manual);
    let reader: tantivy::IndexReader = reader.try_into().map_err(&error)?;
    reader.reload().map_err(&error)?;
    Ok(reader.searcher())
}

/// Visits each stored page, in arbitrary order. Calls `is_stopped` before each page, and ends if it
/// returns true.
pub(crate) fn each_stored<E: From<IndexError>>(
    dir: &Path,
    fields: &IndexFields,
    searcher: &Searcher,
    is_stopped: &dyn Fn() -> bool,
    mut visit: impl FnMut(IndexedPage) -> Result<(), E>,
) -> Result<ControlFlow<()>, E> {
    for segment in searcher.segment_readers() {
        let store = segment.get_store_reader(2);
        let store = store.map_err(IndexError::disk(dir))?;
        let mut documents = store.iter::<TantivyDocument>(segment.alive_bitset());
        let mut next = || documents.next().transpose().map_err(IndexError::of(dir));
        while let Some(document) = guarded(dir, &mut next)? {
            if is_stopped() {
                return Ok(ControlFlow::Break(()));
            }
            let page = stored(fields, &document)
                .ok_or_else(|| IndexError::damaged(dir, "a stored page can't be read"))?;
            visit(page)?;
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the stored page with this URL.
pub(crate) fn page_at(
    searcher: &Searcher,
    fields: &IndexFields,
    url: &str,
) -> tantivy::Result<Option<IndexedPage>> {
    let Some(address) = address_of(searcher, fields, url)? else {
        return Ok(None);
    };
    let document: TantivyDocument = searcher.doc(address)?;
    Ok(stored(fields, &document))
}

/// Returns the address of the stored page with this URL.
pub(crate) fn address_of(
    searcher: &Searcher,
    fields: &IndexFields,
    url: &str,
) -> tantivy::Result<Option<DocAddress>> {
    let term = Term::from_field_text(fields.url, url);
    let query = TermQuery::new(term, IndexRecordOption::Basic);
    let top_pages = searcher.search(&query, &TopDocs::with_limit(1).order_by_score())?;
    Ok(top_pages.first().map(|(_, address)| *address))
}

/// Returns the pages whose field `leaving` has the value `mark` (`LEAVING` or `GIVES_WAY`).
pub(crate) fn marked_as(
    mark: &str,
    searcher: &Searcher,
    fields: &IndexFields,
) -> tantivy::Result<Vec<IndexedPage>> {
    let term = Term::from_field_text(fields.leaving, mark);
    let query = TermQuery::new(term, IndexRecordOption::Basic);
    let mut pages = Vec::new();
    for address in searcher.search(&query, &DocSetCollector)? {
        let document: TantivyDocument = searcher.doc(address)?;
        pages.extend(stored(fields, &document));
    }
    Ok(pages)
}

/// Returns the page stored in a document.
pub(crate) fn stored(fields: &IndexFields, document: &TantivyDocument) -> Option<IndexedPage> {
    let stored = document.get_first(fields.page)?;
    serde_json::from_str(stored.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::stored;
    use crate::index_document::document;
    use crate::schema::schema;
    use crawl_index_entry::IndexedPage;

    #[test]
    fn a_page_is_read_as_it_is_stored() {
        let page = IndexedPage {
            url: "http://a.example/".to_owned(),
            text: "tea".to_owned(),
            ..IndexedPage::default()
        };
        let (_, fields) = schema();
        assert_eq!(stored(&fields, &document(&fields, &page)), Some(page));
    }
}
