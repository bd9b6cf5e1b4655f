//! Keys of writer messages. A key names the cause of a message in the crawl loop, so that a replay
//! can match its own messages with the logged ones.

use std::fmt;
use std::str::FromStr;

use super::{Effect, WriterMessage};

/// The cause of a message to the writer. Requests, turns (uses of permits) and messages about
/// rendered pages are numbered from 1 in each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MessageCause {
    /// The end of the request with this number.
    Ended(u64),
    /// The turn with this number.
    Turn(u64),
    /// The message with this number about pages that are rendered.
    Render(u64),
    /// The start of the run.
    Seeds,
    /// A re-examination of deferred URLs.
    TakeBack,
    /// A re-examination of the pages of mirrors.
    Mirrored,
    /// The draw of the sample.
    Draw,
    /// An operator's command.
    Command,
}

/// Identifies a writer message in a crawl and in its replay: by its cause, and its index among the
/// messages with this cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReplayMessageKey {
    pub(crate) cause: MessageCause,
    /// The index among the messages with the same cause, from 0.
    place: u32,
}

/// A writer message with its key. Host states have no key, because their order does not matter.
#[derive(Debug)]
pub(crate) struct KeyedMessage {
    pub(crate) key: Option<ReplayMessageKey>,
    pub(crate) message: WriterMessage,
}

impl KeyedMessage {
    /// Wraps a message without a key. The order in which such messages are committed isn't logged.
    pub(crate) fn unnamed(message: WriterMessage) -> KeyedMessage {
        KeyedMessage { key: None, message }
    }
}

impl fmt::Display for ReplayMessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            MessageCause::Ended(number) => write!(f, "e{number}")?,
            MessageCause::Turn(number) => write!(f, "t{number}")?,
            MessageCause::Render(number) => write!(f, "r{number}")?,
            MessageCause::Seeds => f.write_str("seeds")?,
            MessageCause::TakeBack => f.write_str("take-back")?,
            MessageCause::Mirrored => f.write_str("mirrored")?,
            MessageCause::Draw => f.write_str("draw")?,
            MessageCause::Command => f.write_str("command")?,
        }
        match self.place {
            0 => Ok(()),
            place => write!(f, ".{place}"),
        }
    }
}

/// The entry of a committed message in the replay order log (`state/order.jsonl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedMessageEntry {
    pub(crate) key: ReplayMessageKey,
    /// The number of messages that were committed when a reader looked up the page's links. The
    /// reader drops links to URLs that are known at that moment. `None` if no links were looked
    /// up.
    pub(crate) looked_at: Option<u64>,
    /// The number of words of the page that were new on its host; `None` if the page was not
    /// compared with others.
    pub(crate) new_words: Option<u32>,
}

impl fmt::Display for LoggedMessageEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if let Some(messages) = self.looked_at {
            write!(f, "@{messages}")?;
        }
        match self.new_words {
            Some(words) => write!(f, "+{words}"),
            None => Ok(()),
        }
    }
}

impl FromStr for LoggedMessageEntry {
    type Err = MessageKeyParseError;

    fn from_str(text: &str) -> Result<LoggedMessageEntry, MessageKeyParseError> {
        let (text, new_words) = match text.split_once('+') {
            Some((text, words)) => (text, Some(words.parse().map_err(|_| MessageKeyParseError)?)),
            None => (text, None),
        };
        let (text, looked_at) = match text.split_once('@') {
            Some((text, messages)) => (
                text,
                Some(messages.parse().map_err(|_| MessageKeyParseError)?),
            ),
            None => (text, None),
        };
        Ok(LoggedMessageEntry {
            key: text.parse()?,
            looked_at,
            new_words,
        })
    }
}

/// The error for text that can't be parsed as a message key.
#[derive(Debug)]
pub(crate) struct MessageKeyParseError;

impl FromStr for ReplayMessageKey {
    type Err = MessageKeyParseError;

    fn from_str(text: &str) -> Result<ReplayMessageKey, MessageKeyParseError> {
        let (cause, place) = text.split_once('.').unwrap_or((text, "0"));
        let number = |digits: &str| digits.parse().map_err(|_| MessageKeyParseError);
        let cause = match cause {
            "seeds" => MessageCause::Seeds,
            "take-back" => MessageCause::TakeBack,
            "mirrored" => MessageCause::Mirrored,
            "draw" => MessageCause::Draw,
            "command" => MessageCause::Command,
            _ => match cause.split_at_checked(1) {
                Some(("e", digits)) => MessageCause::Ended(number(digits)?),
                Some(("t", digits)) => MessageCause::Turn(number(digits)?),
                Some(("r", digits)) => MessageCause::Render(number(digits)?),
                _ => return Err(MessageKeyParseError),
            },
        };
        let place = place.parse().map_err(|_| MessageKeyParseError)?;
        Ok(ReplayMessageKey { cause, place })
    }
}

/// Assigns keys to the messages of a run. Must be given all effects of the run, in order.
#[derive(Debug)]
pub(crate) struct MessageKeyAssigner {
    cause: MessageCause,
    place: u32,
    ended: u64,
    turns: u64,
    renders: u64,
}

impl MessageKeyAssigner {
    pub(crate) fn new() -> MessageKeyAssigner {
        MessageKeyAssigner {
            cause: MessageCause::Ended(0),
            place: 0,
            ended: 0,
            turns: 0,
            renders: 0,
        }
    }

    /// Returns the key of the message in an effect. `None` if the effect has no message, or its
    /// message has no key. Call this once for each effect, in order.
    pub(crate) fn of(&mut self, effect: &Effect) -> Option<ReplayMessageKey> {
        let cause = match effect {
            Effect::Log(_) => {
                self.ended += 1;
                (self.cause, self.place) = (MessageCause::Ended(self.ended), 0);
                return None;
            }
            Effect::NoteTurn(_) => {
                self.turns += 1;
                (self.cause, self.place) = (MessageCause::Turn(self.turns), 0);
                return None;
            }
            Effect::NoteRender(_) => {
                self.renders += 1;
                (self.cause, self.place) = (MessageCause::Render(self.renders), 0);
                return None;
            }
            Effect::Read(_) => None,
            Effect::Write(message) => match message {
                WriterMessage::Host(_) | WriterMessage::Broken(_) | WriterMessage::TakeLinks => {
                    return None;
                }
                WriterMessage::Seeds(_) => Some(MessageCause::Seeds),
                WriterMessage::TakeBack { .. } => Some(MessageCause::TakeBack),
                WriterMessage::TakeBackMirrored => Some(MessageCause::Mirrored),
                WriterMessage::DrawSample => Some(MessageCause::Draw),
                WriterMessage::Order(_) => Some(MessageCause::Command),
                _ => None,
            },
            _ => return None,
        };
        if let Some(cause) = cause {
            return Some(ReplayMessageKey { cause, place: 0 });
        }
        let key = ReplayMessageKey {
            cause: self.cause,
            place: self.place,
        };
        self.place += 1;
        Some(key)
    }

    /// Returns the number of requests that have ended in this run.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// Returns the number of turns so far.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageCause, ReplayMessageKey};

    #[test]
    fn each_message_has_a_unique_key() {
        for (cause, place, text) in [
            (MessageCause::Ended(7), 0, "e7"),
            (MessageCause::Turn(12), 3, "t12.3"),
            (MessageCause::Render(4), 1, "r4.1"),
            (MessageCause::Seeds, 0, "seeds"),
            (MessageCause::TakeBack, 0, "take-back"),
            (MessageCause::Mirrored, 0, "mirrored"),
            (MessageCause::Draw, 0, "draw"),
            (MessageCause::Command, 0, "command"),
        ] {
            let key = ReplayMessageKey { cause, place };
            assert_eq!(key.to_string(), text);
            assert_eq!(text.parse::<ReplayMessageKey>().unwrap(), key);
        }
        for text in ["", "e", "x7", "e7.", "e7.x", "7", "é7"] {
            assert!(text.parse::<ReplayMessageKey>().is_err(), "{text}");
        }
    }
}
