//! Reads requests from lines in the combined log format with four more quoted fields: `Host`,
//! `Signature-Agent`, `Signature-Input` and `Signature`.

use crawl_identity::SignableMessage;
use jiff::fmt::strtime;

use super::logged_request::LoggedRequest;

/// Names of the three header fields at the end of a line, after `Host`.
const FIELDS: [&str; 3] = ["signature-agent", "signature-input", "signature"];

/// Parses a line. `None` if it isn't in this format.
pub(super) fn read(line: &str) -> Option<LoggedRequest> {
    let (_, rest) = line.split_once('[')?;
    let (time, rest) = rest.split_once(']')?;
    let at = strtime::parse("%d/%b/%Y:%H:%M:%S %z", time).ok()?;
    let at = u64::try_from(at.to_timestamp().ok()?.as_second()).ok();
    let quoted = quoted_strings(rest);
    let (request_line, fields) = quoted.split_first()?;
    let mut words = request_line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    words.next()?.strip_prefix("HTTP/")?;
    let [.., host, agent, input, signature] = fields else {
        return None;
    };
    let values = [agent, input, signature];
    let is_other = |value: &&String, marks: &str| !is_absent(value) && !value.contains(marks);
    // Skip a line whose last fields are not those of a signature. Such a line is in another format,
    // and must not count as a request with a broken signature.
    let is_other = is_other(&agent, "\"") || is_other(&input, "=(") || is_other(&signature, "=:");
    if is_absent(host) || is_other {
        return None;
    }
    let fields = FIELDS.iter().zip(values);
    let fields = fields.filter(|(_, value)| !is_absent(value));
    Some(LoggedRequest {
        message: SignableMessage {
            method: method.to_owned(),
            authority: host.clone(),
            target: target.to_owned(),
            fields: fields
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            ..SignableMessage::default()
        },
        at,
        is_whole: false,
    })
}

/// Returns whether `value` is what servers write for a missing field.
fn is_absent(value: &str) -> bool {
    matches!(value, "" | "-")
}

/// Returns the quoted strings in a line, unescaped. nginx escapes a quote as `\x22`, Apache as
/// `\"`.
fn quoted_strings(text: &str) -> Vec<String> {
    let (mut strings, mut open) = (Vec::new(), None::<String>);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, &mut open) {
            ('"', None) => open = Some(String::new()),
            ('"', Some(_)) => strings.extend(open.take()),
            ('\\', Some(string)) => match chars.next() {
                Some('x') => {
                    let hex: String = chars.by_ref().take(2).collect();
                    // Decode an escaped byte as the character with this code: a valid signature has
                    // only ASCII bytes. An invalid escape becomes U+FFFD.
                    string.push(u8::from_str_radix(&hex, 16).map_or('\u{fffd}', char::from));
                }
                Some(escaped) => string.push(escaped),
                None => {}
            },
            (char, Some(string)) => string.push(char),
            (_, None) => {}
        }
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_line_of_nginx_or_apache_in_the_combined_format_is_a_request() {
        let start =
            r#"192.0.2.1 - - [14/Nov/2023:23:13:20 +0100] "GET /a?b HTTP/1.1" 200 5 "-" "bot/1""#;
        for fields in [
            r#""e.example" "sig1=\x22https://b.example\x22" "sig1=(\x22@authority\x22)" "sig1=:AA==:""#,
            r#""e.example" "sig1=\"https://b.example\"" "sig1=(\"@authority\")" "sig1=:AA==:""#,
        ] {
            let read = read(&format!("{start} {fields}\n")).unwrap();
            assert_eq!(read.at, Some(1_700_000_000));
            assert_eq!(read.message.authority, "e.example");
            assert_eq!(read.message.target, "/a?b");
            let field = |name| read.message.field(name).unwrap();
            assert_eq!(field("signature-agent"), r#"sig1="https://b.example""#);
            assert_eq!(field("signature-input"), r#"sig1=("@authority")"#);
            assert_eq!(field("signature"), "sig1=:AA==:");
        }
        let unsigned = read(&format!(r#"{start} "e.example" "-" "-" "-""#)).unwrap();
        assert!(unsigned.message.fields.is_empty());
        // Lines in another format, or with an unusable value, are not read as requests.
        for line in [
            start.to_owned(),
            format!(r#"{start} "a" "b" "c" "d""#),
            format!(r#"{start} "-" "-" "-" "-""#),
            format!(r#"{start} "e.example" "-" "-" "#),
            start.replace("14/Nov", "14/Foo"),
            start.replace("GET /a?b HTTP/1.1", "\\x16\\x03"),
        ] {
            assert_eq!(read(&line), None, "{line}");
        }
    }
}
