//! Lines of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end. One that the other side broke off counts as whole.
    Whole(Vec<u8>),
    /// More bytes came than a line may have; the rest of it is not read.
    TooLong,
    /// The other side sends no more.
    End,
}

/// Reads a line of `most` bytes at most, whatever is sent.
pub(crate) async fn next_line(
    from: &mut (impl AsyncBufRead + Unpin),
    most: usize,
) -> io::Result<Line> {
    let mut line = Vec::new();
    // The end of the line counts, so a line that fills it all is one too long.
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let count = from.take(limit).read_until(b'\n', &mut line).await?;
    Ok(match line.pop() {
        None => Line::End,
        Some(b'\n') => {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            Line::Whole(line)
        }
        Some(_) if count > most => Line::TooLong,
        Some(byte) => {
            line.push(byte);
            Line::Whole(line)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Line, next_line};

    #[tokio::test]
    async fn ours_a_line_has_a_longest_length() {
        let mut from = &b"a\n\nbc\r\nabcd\nabcde"[..];
        let whole = |text: &str| Line::Whole(text.into());
        for expected in [whole("a"), whole(""), whole("bc"), whole("abcd")] {
            assert_eq!(next_line(&mut from, 4).await.unwrap(), expected);
        }
        assert_eq!(next_line(&mut from, 4).await.unwrap(), Line::TooLong);
        let mut from = &b"abcd"[..];
        assert_eq!(next_line(&mut from, 4).await.unwrap(), whole("abcd"));
        assert_eq!(next_line(&mut from, 4).await.unwrap(), Line::End);
    }
}
