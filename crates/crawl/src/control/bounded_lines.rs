//! Reads lines of bounded length from the control socket.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineReadResult {
    /// A line without its terminator. The last line may lack a terminator if the peer closed the
    /// stream.
    Whole(Vec<u8>),
    /// A line over the limit. The rest of it is not read.
    TooLong,
    /// The peer closed the stream at the end of a line.
    End,
}

/// Reads a line of at most `max` bytes, not counting the terminator.
pub(crate) async fn next_line(
    from: &mut (impl AsyncBufRead + Unpin),
    max: usize,
) -> io::Result<LineReadResult> {
    let mut line = Vec::new();
    // One byte more than `max`, for the terminator. If the last byte read isn't a terminator, the
    // line is too long.
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    let count = from.take(limit).read_until(b'\n', &mut line).await?;
    Ok(match line.pop() {
        None => LineReadResult::End,
        Some(b'\n') => {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            LineReadResult::Whole(line)
        }
        Some(_) if count > max => LineReadResult::TooLong,
        Some(byte) => {
            line.push(byte);
            LineReadResult::Whole(line)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{LineReadResult, next_line};

    #[tokio::test]
    async fn a_line_has_a_longest_length() {
        let mut from = &b"a\n\nbc\r\nabcd\nabcde"[..];
        let whole = |text: &str| LineReadResult::Whole(text.into());
        for expected in [whole("a"), whole(""), whole("bc"), whole("abcd")] {
            assert_eq!(next_line(&mut from, 4).await.unwrap(), expected);
        }
        assert_eq!(
            next_line(&mut from, 4).await.unwrap(),
            LineReadResult::TooLong
        );
        let mut from = &b"abcd"[..];
        assert_eq!(next_line(&mut from, 4).await.unwrap(), whole("abcd"));
        assert_eq!(next_line(&mut from, 4).await.unwrap(), LineReadResult::End);
    }
}
