//! The evidence of a page for traps, taken from the one pass over it.

use crawl_extractor::PageObserver;
use crawl_policy::traps::FingerprintReader;

use crate::messages::page::TrapSignal;

/// Makes the fingerprint of a page, where one is wanted.
pub(super) struct TrapEvidence(pub(super) Option<FingerprintReader>);

impl TrapEvidence {
    pub(super) fn finish(self) -> TrapSignal {
        self.0.map_or(TrapSignal::Nothing, |reader| {
            TrapSignal::Text(Box::new(reader.finish()))
        })
    }
}

impl PageObserver for TrapEvidence {
    fn wants_text(&self) -> bool {
        self.0.as_ref().is_some_and(|reader| !reader.is_full())
    }

    fn text(&mut self, text: &str) {
        if let Some(reader) = &mut self.0 {
            reader.text(text);
        }
    }

    fn image(&mut self, tag: &str) {
        if let Some(reader) = &mut self.0 {
            reader.image(tag);
        }
    }
}
