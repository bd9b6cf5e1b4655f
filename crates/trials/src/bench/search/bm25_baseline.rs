//! The baseline: BM25 over the body, without any further ranking.

use anyhow::Result;
use frostem::{Algorithm, Stemmer};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::tokenizer::{PreTokenizedString, TextAnalyzer, Token, TokenizerManager};
use tantivy::{Index, IndexReader, TantivyDocument, Term};

use super::ranking_quality::DEPTH;

/// Memory of the index writer, in bytes.
const BUFFER: usize = 64 << 20;

/// Which words the baseline treats as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordEquality {
    /// Words match only with the same spelling, ignoring case: tantivy's default tokenizer.
    AsWritten,
    /// Words with the same English stem.
    Stemmed,
}

/// An in-memory index of bodies.
pub(super) struct Bm25Baseline {
    words: WordEquality,
    analyzer: TextAnalyzer,
    reader: IndexReader,
    url: Field,
    body: Field,
}

impl Bm25Baseline {
    /// Indexes pages, given by URL and main text.
    ///
    /// # Errors
    /// Fails with tantivy's error.
    pub(super) fn of<'p>(
        words: WordEquality,
        pages: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> Result<Bm25Baseline> {
        let mut schema = Schema::builder();
        let url = schema.add_text_field("url", STRING | STORED);
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("default")
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let body = schema.add_text_field("body", options);
        let index = Index::create_in_ram(schema.build());
        let Some(mut analyzer) = TokenizerManager::default().get("default") else {
            anyhow::bail!("tantivy has no default tokenizer");
        };
        let mut writer = index.writer_with_num_threads(1, BUFFER)?;
        for (page, text) in pages {
            let mut document = TantivyDocument::new();
            document.add_text(url, page);
            document.add_pre_tokenized_text(body, tokens(&mut analyzer, words, text));
            writer.add_document(document)?;
        }
        writer.commit()?;
        Ok(Bm25Baseline {
            words,
            analyzer,
            reader: index.reader()?,
            url,
            body,
        })
    }

    /// Returns the URLs of the first ten pages that contain any of the query's words.
    ///
    /// # Errors
    /// Fails with tantivy's error.
    pub(super) fn search(&self, query: &str) -> Result<Vec<String>> {
        let words = tokens(&mut self.analyzer.clone(), self.words, query);
        let term = |token: Token| -> (Occur, Box<dyn Query>) {
            let term = Term::from_field_text(self.body, &token.text);
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(query))
        };
        let query = BooleanQuery::new(words.tokens.into_iter().map(term).collect());
        let searcher = self.reader.searcher();
        let hits = searcher.search(&query, &TopDocs::with_limit(DEPTH).order_by_score())?;
        let mut urls = Vec::with_capacity(hits.len());
        for (_, address) in hits {
            let document: TantivyDocument = searcher.doc(address)?;
            let url = document
                .get_first(self.url)
                .and_then(|value| value.as_str());
            urls.extend(url.map(str::to_owned));
        }
        Ok(urls)
    }
}

fn tokens(analyzer: &mut TextAnalyzer, words: WordEquality, text: &str) -> PreTokenizedString {
    let stemmer = Stemmer::new(Algorithm::English);
    let mut tokens = Vec::new();
    analyzer.token_stream(text).process(&mut |token| {
        let mut token = token.clone();
        if words == WordEquality::Stemmed {
            token.text = stemmer.stem(&token.text).into_owned();
        }
        tokens.push(token);
    });
    PreTokenizedString {
        text: String::new(),
        tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::{Bm25Baseline, WordEquality};

    #[test]
    fn any_word_matches_and_stems_find_inflections() {
        let pages = [("a", "Green tea, brewed"), ("b", "tea"), ("c", "coffee")];
        let urls = |words, query: &str| {
            let baseline = Bm25Baseline::of(words, pages.into_iter()).unwrap();
            baseline.search(query).unwrap().join(" ")
        };
        assert_eq!(urls(WordEquality::AsWritten, "GREEN tea!"), "a b");
        assert_eq!(urls(WordEquality::AsWritten, "brewing teas"), "");
        assert_eq!(urls(WordEquality::Stemmed, "brewing teas"), "a b");
        assert_eq!(urls(WordEquality::Stemmed, "\"-* ("), "");
    }
}
