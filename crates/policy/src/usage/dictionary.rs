//! Dictionaries of structured fields (RFC 9651 section 4.2.2).

/// The members of a dictionary in order, each with its value where that is a token. Of
/// members with one key the last counts. None where the text breaks the grammar: then it
/// says nothing at all.
pub(super) fn parse(text: &str) -> Option<Vec<(String, Option<String>)>> {
    let mut reader = Reader {
        rest: text.trim_matches(' ').as_bytes(),
    };
    let mut members: Vec<(String, Option<String>)> = Vec::new();
    while !reader.rest.is_empty() {
        let key = reader.key()?;
        let value = match reader.eat(b'=') {
            true => reader.item_or_list()?,
            false => None,
        };
        reader.parameters()?;
        members.retain(|(known, _)| *known != key);
        members.push((key, value));
        reader.blanks();
        if reader.rest.is_empty() {
            return Some(members);
        }
        if !reader.eat(b',') {
            return None;
        }
        reader.blanks();
        if reader.rest.is_empty() {
            return None;
        }
    }
    Some(members)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn eat(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take(&mut self, holds: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().take_while(|&&b| holds(b)).count();
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn blanks(&mut self) {
        self.take(|b| matches!(b, b' ' | b'\t'));
    }

    fn spaces(&mut self) {
        self.take(|b| b == b' ');
    }

    fn key(&mut self) -> Option<String> {
        let first = *self.rest.first()?;
        if !(first.is_ascii_lowercase() || first == b'*') {
            return None;
        }
        let key = self.take(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.' | b'*')
        });
        Some(String::from_utf8_lossy(key).into_owned())
    }

    fn parameters(&mut self) -> Option<()> {
        while self.eat(b';') {
            self.spaces();
            self.key()?;
            if self.eat(b'=') {
                self.item()?;
            }
        }
        Some(())
    }

    fn item_or_list(&mut self) -> Option<Option<String>> {
        if !self.eat(b'(') {
            return self.item();
        }
        loop {
            self.spaces();
            if self.eat(b')') {
                return Some(None);
            }
            self.item()?;
            self.parameters()?;
            if !matches!(self.rest.first(), Some(b' ' | b')')) {
                return None;
            }
        }
    }

    /// A bare item; its text where it is a token.
    fn item(&mut self) -> Option<Option<String>> {
        match *self.rest.first()? {
            b'"' => self.string(),
            b':' => {
                self.eat(b':');
                self.take(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
                self.eat(b':').then_some(None)
            }
            b'?' => {
                self.eat(b'?');
                (self.eat(b'0') || self.eat(b'1')).then_some(None)
            }
            b'@' => {
                self.eat(b'@');
                self.number(false)
            }
            b'%' => {
                self.eat(b'%');
                self.display_string()
            }
            b'-' | b'0'..=b'9' => self.number(true),
            first if first.is_ascii_alphabetic() || first == b'*' => {
                let token = self.take(is_token_byte);
                Some(Some(String::from_utf8_lossy(token).into_owned()))
            }
            _ => None,
        }
    }

    fn number(&mut self, fraction: bool) -> Option<Option<String>> {
        self.eat(b'-');
        let whole = self.take(|b| b.is_ascii_digit()).len();
        if whole == 0 || whole > 15 {
            return None;
        }
        if fraction && self.eat(b'.') {
            let digits = self.take(|b| b.is_ascii_digit()).len();
            if whole > 12 || !(1..=3).contains(&digits) {
                return None;
            }
        }
        Some(None)
    }

    fn string(&mut self) -> Option<Option<String>> {
        self.eat(b'"');
        loop {
            self.take(|b| matches!(b, 0x20..=0x7E) && b != b'"' && b != b'\\');
            if self.eat(b'"') {
                return Some(None);
            }
            if !(self.eat(b'\\') && (self.eat(b'"') || self.eat(b'\\'))) {
                return None;
            }
        }
    }

    fn display_string(&mut self) -> Option<Option<String>> {
        if !self.eat(b'"') {
            return None;
        }
        let mut bytes = Vec::new();
        loop {
            let plain = |b: u8| matches!(b, 0x20..=0x7E) && b != b'"' && b != b'%';
            bytes.extend_from_slice(self.take(plain));
            if self.eat(b'"') {
                return String::from_utf8(bytes).is_ok().then_some(None);
            }
            if !self.eat(b'%') {
                return None;
            }
            let (hex, rest) = self.rest.split_at_checked(2)?;
            let hex = std::str::from_utf8(hex).ok()?;
            let lower = hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            bytes.push(u8::from_str_radix(hex, 16).ok().filter(|_| lower)?);
            self.rest = rest;
        }
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn tokens(text: &str) -> Option<String> {
        let shown = |(key, value): (String, Option<String>)| match value {
            Some(value) => format!("{key}={value}"),
            None => key,
        };
        Some(
            parse(text)?
                .into_iter()
                .map(shown)
                .collect::<Vec<_>>()
                .join(" "),
        )
    }

    #[test]
    fn rfc9651_4_2_2_dictionaries() {
        for (text, expect) in [
            ("", Some("")),
            ("a=y, b=n", Some("a=y b=n")),
            ("a;x=n;y, a=y", Some("a=y")),
            (
                "a=1, b=\"x\\\"\", c=?1, d=:aGk=:, e=(y n);q=1, f=-1.5, g=@5",
                Some("a b c d e f g"),
            ),
            ("a=%\"f%c3%bc\"", Some("a")),
            ("a\t,\tb", Some("a b")),
            ("A=y", None),
            ("a=y,", None),
            ("a=y b=n", None),
            ("a= y", None),
            ("a=", None),
            ("a=\"x", None),
            ("a=(y", None),
            ("a=1.2345", None),
            ("a=%\"%ff\"", None),
            ("a=é", None),
        ] {
            assert_eq!(tokens(text).as_deref(), expect, "{text}");
        }
    }
}
