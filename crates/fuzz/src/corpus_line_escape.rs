//! Converts inputs to lines of text and back. A corpus is a single file with one input per line, so
//! a diff shows what changed, and no corpus consists of thousands of small files.

/// Converts an input to a line of ASCII, with other bytes escaped.
pub(crate) fn escaped(input: &[u8]) -> String {
    input.escape_ascii().to_string()
}

/// Converts a line back to the input. `None` if [`escaped`] never returns this line.
pub(crate) fn unescaped(line: &str) -> Option<Vec<u8>> {
    let mut input = Vec::with_capacity(line.len());
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            input.push(byte);
            continue;
        }
        input.push(match rest.next()? {
            b't' => b'\t',
            b'r' => b'\r',
            b'n' => b'\n',
            b'x' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            quoted @ (b'\'' | b'"' | b'\\') => quoted,
            _ => return None,
        });
    }
    Some(input)
}
