//! Giving the tokenizer its text.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Tokenizer, TokenizerOpts};

use super::consumer::Consumer;
use super::tag_guard::{Seen, TagGuard};
use super::token_sink::Sink;

/// Text given to the tokenizer at a time. Small, since a tag within one piece is not
/// guarded: a piece holds at most some 1,300 different attributes.
const PIECE_BYTES: usize = 4 * 1024;

/// A tokenizer at work, guarded against tags of too many attributes.
pub(super) struct Pump<C: Consumer> {
    tokenizer: Tokenizer<Sink<C>>,
    guard: TagGuard,
    /// The rest of the tag at hand is left out, up to its `>`.
    skipping: bool,
}

impl<C: Consumer> Pump<C> {
    /// A pump whose consumer sees `attributes` of a tag at most, give or take those that
    /// stand in one piece of text.
    pub(super) fn new(consumer: C, attributes: usize) -> Pump<C> {
        // A byte order mark is gone already; the option would take one from each piece.
        let options = TokenizerOpts {
            discard_bom: false,
            ..TokenizerOpts::default()
        };
        Pump {
            tokenizer: Tokenizer::new(Sink::new(consumer), options),
            guard: TagGuard::new(attributes),
            skipping: false,
        }
    }

    /// Reads on in `text`.
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.skipping {
                let Some(end) = self.guard.end_of_tag(rest.as_bytes()) else {
                    return;
                };
                rest = &rest[end..];
                self.skipping = false;
            }
            let mut piece = &rest[..rest.floor_char_boundary(PIECE_BYTES)];
            if let Seen::TooMany(at) = self.guard.watch(piece.as_bytes()) {
                piece = &piece[..at];
                self.skipping = true;
                self.tokenizer.sink.tag_was_cut();
            }
            self.push_piece(piece);
            rest = &rest[piece.len()..];
        }
    }

    /// The consumer, which has seen all.
    pub(super) fn finish(self) -> C {
        self.tokenizer.end();
        self.tokenizer.sink.into_consumer()
    }

    fn push_piece(&mut self, piece: &str) {
        let sink = &self.tokenizer.sink;
        sink.begin_piece(StrTendril::from_slice(piece));
        // Our sink never asks for a script to be run or a charset to be changed, so the
        // tokenizer stops only when it has read the piece.
        let _ = self.tokenizer.feed(&sink.queue);
        let Some(left) = sink.left_at_last_token() else {
            return;
        };
        // A tag that was still open when a token came was none after all.
        self.skipping = false;
        let bytes = piece.as_bytes();
        let mut start = bytes.len().saturating_sub(left);
        // `<<a`: the second `<` was taken from the queue, but its turn is yet to come.
        if bytes.get(start) != Some(&b'<') && start > 0 && bytes[start - 1] == b'<' {
            start -= 1;
        }
        self.guard.restart();
        self.guard.follow(&bytes[start..]);
    }
}
