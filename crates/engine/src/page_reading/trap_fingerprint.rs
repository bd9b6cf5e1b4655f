//! Collects evidence of traps during the single pass over a page.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crawl_extractor::VisibleTextObserver;
use crawl_traps::PageFingerprintBuilder;

use crate::messages::page_pipeline_stages::TrapEvidence;

/// Computes the fingerprint of a page, if the trap detection needs it.
pub(super) struct TrapFingerprinter<'a> {
    pub(super) reader: Option<PageFingerprintBuilder>,
    /// If set, the page must be returned unread.
    pub(super) gives_back: &'a AtomicBool,
}

impl TrapFingerprinter<'_> {
    pub(super) fn finish(self) -> TrapEvidence {
        self.reader.map_or(TrapEvidence::Nothing, |reader| {
            TrapEvidence::Text(Box::new(reader.finish()))
        })
    }
}

impl VisibleTextObserver for TrapFingerprinter<'_> {
    fn wants_text(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| !reader.is_full())
    }

    fn texts(&mut self, page: &str, texts: &[Range<usize>]) {
        if let Some(reader) = &mut self.reader {
            reader.texts(page, texts);
        }
    }

    fn image(&mut self, tag: &str) {
        if let Some(reader) = &mut self.reader {
            reader.image(tag);
        }
    }

    fn is_given_up(&self) -> bool {
        self.gives_back.load(Ordering::Relaxed)
    }
}
