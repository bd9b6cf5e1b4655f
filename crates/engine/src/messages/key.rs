//! The names of messages to the writer: by what in the crawl loop they follow from, so that a
//! replay, which comes by the same messages, knows them again.

use std::fmt;
use std::str::FromStr;

use super::{Effect, WriterMessage};

/// The cause of a message. Requests and turns are counted from 1 in each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// The end of that request.
    Ended(u64),
    /// That turn of a host.
    Turn(u64),
    /// The begin of the run.
    Seeds,
    /// Another look at what was put aside.
    TakeBack,
    /// The sample is drawn.
    Draw,
    /// A person's command.
    Command,
}

/// The name of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageKey {
    pub(crate) cause: Cause,
    /// Its place among those of one cause, from 0.
    place: u32,
}

/// A message to the writer, and its name; a host's state has none, since no order depends on it.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) key: Option<MessageKey>,
    pub(crate) message: WriterMessage,
}

impl Keyed {
    /// A message whose order nobody notes.
    pub(crate) fn unnamed(message: WriterMessage) -> Keyed {
        Keyed { key: None, message }
    }
}

impl fmt::Display for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Cause::Ended(number) => write!(f, "e{number}")?,
            Cause::Turn(number) => write!(f, "t{number}")?,
            Cause::Seeds => f.write_str("seeds")?,
            Cause::TakeBack => f.write_str("take-back")?,
            Cause::Draw => f.write_str("draw")?,
            Cause::Command => f.write_str("command")?,
        }
        match self.place {
            0 => Ok(()),
            place => write!(f, ".{place}"),
        }
    }
}

/// The facts that are noted of a message as it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageFact {
    pub(crate) key: MessageKey,
    /// The messages that were committed when links of a page were left out, as they were known.
    pub(crate) looked_at: Option<u64>,
    /// Words of a page that were new on its host, where it was compared.
    pub(crate) new_words: Option<u32>,
}

impl fmt::Display for MessageFact {
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

impl FromStr for MessageFact {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<MessageFact, NoKey> {
        let (text, new_words) = match text.split_once('+') {
            Some((text, words)) => (text, Some(words.parse().map_err(|_| NoKey)?)),
            None => (text, None),
        };
        let (text, looked_at) = match text.split_once('@') {
            Some((text, messages)) => (text, Some(messages.parse().map_err(|_| NoKey)?)),
            None => (text, None),
        };
        Ok(MessageFact {
            key: text.parse()?,
            looked_at,
            new_words,
        })
    }
}

/// A text that names no message.
#[derive(Debug)]
pub(crate) struct NoKey;

impl FromStr for MessageKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<MessageKey, NoKey> {
        let (cause, place) = text.split_once('.').unwrap_or((text, "0"));
        let number = |digits: &str| digits.parse().map_err(|_| NoKey);
        let cause = match cause {
            "seeds" => Cause::Seeds,
            "take-back" => Cause::TakeBack,
            "draw" => Cause::Draw,
            "command" => Cause::Command,
            _ => match cause.split_at_checked(1) {
                Some(("e", digits)) => Cause::Ended(number(digits)?),
                Some(("t", digits)) => Cause::Turn(number(digits)?),
                _ => return Err(NoKey),
            },
        };
        let place = place.parse().map_err(|_| NoKey)?;
        Ok(MessageKey { cause, place })
    }
}

/// Names the messages of a run, as its effects come.
#[derive(Debug)]
pub(crate) struct MessageKeys {
    cause: Cause,
    place: u32,
    ended: u64,
    turns: u64,
}

impl MessageKeys {
    pub(crate) fn new() -> MessageKeys {
        MessageKeys {
            cause: Cause::Ended(0),
            place: 0,
            ended: 0,
            turns: 0,
        }
    }

    /// The name of the message in an effect, if there is one. Each effect is shown once, in order.
    pub(crate) fn of(&mut self, effect: &Effect) -> Option<MessageKey> {
        let cause = match effect {
            Effect::Log(_) => {
                self.ended += 1;
                (self.cause, self.place) = (Cause::Ended(self.ended), 0);
                return None;
            }
            Effect::NoteTurn(_) => {
                self.turns += 1;
                (self.cause, self.place) = (Cause::Turn(self.turns), 0);
                return None;
            }
            Effect::Read(_) => None,
            Effect::Write(message) => match message {
                WriterMessage::Host(_) | WriterMessage::Broken(_) | WriterMessage::TakeLinks => {
                    return None;
                }
                WriterMessage::Seeds(_) => Some(Cause::Seeds),
                WriterMessage::TakeBack { .. } => Some(Cause::TakeBack),
                WriterMessage::DrawSample => Some(Cause::Draw),
                WriterMessage::Order(_) => Some(Cause::Command),
                _ => None,
            },
            _ => return None,
        };
        if let Some(cause) = cause {
            return Some(MessageKey { cause, place: 0 });
        }
        let key = MessageKey {
            cause: self.cause,
            place: self.place,
        };
        self.place += 1;
        Some(key)
    }

    /// Requests that ended so far.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// Turns so far.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, MessageKey};

    #[test]
    fn ours_a_message_has_one_name() {
        for (cause, place, text) in [
            (Cause::Ended(7), 0, "e7"),
            (Cause::Turn(12), 3, "t12.3"),
            (Cause::Seeds, 0, "seeds"),
            (Cause::TakeBack, 0, "take-back"),
            (Cause::Draw, 0, "draw"),
            (Cause::Command, 0, "command"),
        ] {
            let key = MessageKey { cause, place };
            assert_eq!(key.to_string(), text);
            assert_eq!(text.parse::<MessageKey>().unwrap(), key);
        }
        for text in ["", "e", "x7", "e7.", "e7.x", "7", "é7"] {
            assert!(text.parse::<MessageKey>().is_err(), "{text}");
        }
    }
}
