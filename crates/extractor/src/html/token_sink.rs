//! Where the tokenizer's tokens go.

use std::cell::{Cell, RefCell};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult};

use super::consumer::Consumer;
use super::tag_walk::{Mode, Walk};

/// Hands tags and text on to a [`Walk`], and keeps count of what the tokenizer has taken.
pub(super) struct Sink<C> {
    /// Text that the tokenizer has not taken yet.
    pub(super) queue: BufferQueue,
    walk: RefCell<Walk<C>>,
    /// Whether the consumer wants text now. Most text is wanted by nobody.
    wants_text: Cell<bool>,
    /// Address just behind the piece at hand, to know its rest when it is seen.
    piece_end: Cell<usize>,
    left_at_last_token: Cell<Option<usize>>,
}

impl<C: Consumer> Sink<C> {
    pub(super) fn new(consumer: C) -> Sink<C> {
        let walk = Walk::new(consumer);
        Sink {
            queue: BufferQueue::default(),
            wants_text: Cell::new(walk.wants_text()),
            walk: RefCell::new(walk),
            piece_end: Cell::new(0),
            left_at_last_token: Cell::new(None),
        }
    }

    /// Queues the next piece of text.
    pub(super) fn begin_piece(&self, piece: StrTendril) {
        self.piece_end
            .set(piece.as_bytes().as_ptr_range().end as usize);
        self.left_at_last_token.set(None);
        self.queue.push_back(piece);
    }

    /// How many bytes of the piece were still to be read when its last token came;
    /// `None` when none came.
    pub(super) fn left_at_last_token(&self) -> Option<usize> {
        self.left_at_last_token.get()
    }

    /// The tag at hand goes on without its last attributes.
    pub(super) fn tag_was_cut(&self) {
        self.walk.borrow_mut().consumer.tag_was_cut();
    }

    /// The consumer, which has seen the whole page.
    pub(super) fn into_consumer(self) -> C {
        self.walk.into_inner().consumer
    }

    fn bytes_left(&self) -> usize {
        let front = self.queue.peek_front_chunk_mut().map(|front| {
            let bytes = front.as_bytes();
            (bytes.len(), bytes.as_ptr_range().end as usize)
        });
        match front {
            None => 0,
            Some((left, end)) if end == self.piece_end.get() => left,
            // The tokenizer gave bytes back (a `&` that began no character reference),
            // or the rest is so short that it was moved.
            Some(_) => self.bytes_in_all_chunks(),
        }
    }

    fn bytes_in_all_chunks(&self) -> usize {
        let chunks: Vec<StrTendril> = std::iter::from_fn(|| self.queue.pop_front()).collect();
        let bytes = chunks.iter().map(|chunk| chunk.len()).sum();
        chunks
            .into_iter()
            .for_each(|chunk| self.queue.push_back(chunk));
        bytes
    }
}

impl<C: Consumer> TokenSink for Sink<C> {
    type Handle = ();

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<()> {
        if matches!(token, Token::ParseError(_)) {
            return TokenSinkResult::Continue;
        }
        self.left_at_last_token.set(Some(self.bytes_left()));
        match token {
            Token::CharacterTokens(text) if self.wants_text.get() => {
                self.walk.borrow_mut().text(&text);
            }
            Token::TagToken(tag) => {
                let mut walk = self.walk.borrow_mut();
                let mode = match tag.kind {
                    TagKind::StartTag => walk.start_tag(&tag, line),
                    TagKind::EndTag => {
                        walk.end_tag(&tag, line);
                        Mode::Markup
                    }
                };
                self.wants_text.set(walk.wants_text());
                return result(mode);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.walk.borrow().is_foreign()
    }
}

fn result(mode: Mode) -> TokenSinkResult<()> {
    match mode {
        Mode::Markup => TokenSinkResult::Continue,
        Mode::Rcdata => TokenSinkResult::RawData(RawKind::Rcdata),
        Mode::Rawtext => TokenSinkResult::RawData(RawKind::Rawtext),
        Mode::Script => TokenSinkResult::RawData(RawKind::ScriptData),
        Mode::Plaintext => TokenSinkResult::Plaintext,
    }
}
