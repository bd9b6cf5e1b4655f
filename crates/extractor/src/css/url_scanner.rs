//! Finds the URLs in CSS by its tokens (CSS Syntax Level 3, section 4).

use std::borrow::Cow;
use std::ops::Range;

use super::CssUrl;
use crate::collapsed_text_builder::is_space;

/// The kind of CSS text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CssContext {
    Sheet,
    /// Declarations outside of any rule, such as those of a `style` attribute.
    Declarations,
}

/// Walks over CSS once, forwards, and yields the URLs in it.
pub(super) struct CssUrlScanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    place: CssContext,
    /// The open blocks and functions, outermost first.
    open: Vec<OpenBracket>,
    /// The current at-rule, and the number of blocks that were open when it began.
    rule: Option<(AtRule, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBracket {
    Curly,
    Square,
    /// Parentheses, or a function whose strings are not URLs, such as `format(`.
    Paren,
    /// `url(` or `src(`, whose string comes next.
    Url,
    /// `image-set(` or `image(`, in which each string is a URL.
    Images,
}

/// At-rules in which a URL doesn't lead to an image or a font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtRule {
    /// `@import`, whose URL comes next.
    Import,
    /// A rule without URLs, such as `@namespace`, or an `@import` whose URL was read.
    Mute,
}

impl<'a> CssUrlScanner<'a> {
    pub(super) fn new(text: &'a str, place: CssContext) -> CssUrlScanner<'a> {
        CssUrlScanner {
            text,
            bytes: text.as_bytes(),
            at: 0,
            place,
            open: Vec::new(),
            rule: None,
        }
    }

    /// Returns the current offset.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Consumes one token. Returns the URL if the token is a URL.
    fn token(&mut self, first: u8) -> Option<CssUrl<'a>> {
        match first {
            b'/' if self.peek(1) == Some(b'*') => self.comment(),
            b'"' | b'\'' => {
                let start = self.at;
                let text = self.string(first)?;
                return self.string_url(text, start..self.at);
            }
            b'#' => {
                self.at += 1;
                if self.peek(0).is_some_and(is_name) || self.is_escape(0) {
                    self.name();
                }
            }
            b'@' => {
                self.at += 1;
                if self.starts_name(0) {
                    let name = self.name();
                    self.at_rule(&name);
                }
            }
            b'<' if self.rest().starts_with(b"<!--") => self.at += 4,
            b'-' if self.rest().starts_with(b"-->") => self.at += 3,
            b'0'..=b'9' => self.number(),
            b'+' | b'-' | b'.' if self.starts_number() => self.number(),
            _ if self.starts_name(0) => return self.word(),
            b'(' => self.begin(OpenBracket::Paren),
            b'[' => self.begin(OpenBracket::Square),
            b'{' => {
                self.end_rule();
                self.begin(OpenBracket::Curly);
            }
            b')' => self.end(|open| !matches!(open, OpenBracket::Curly | OpenBracket::Square)),
            b']' => self.end(|open| open == OpenBracket::Square),
            b'}' => self.end(|open| open == OpenBracket::Curly),
            b';' => {
                self.end_rule();
                self.at += 1;
            }
            _ => self.at += 1,
        }
        None
    }

    fn begin(&mut self, open: OpenBracket) {
        self.open.push(open);
        self.at += 1;
    }

    /// Processes a closing bracket, which ends the innermost open block or function if `is_kind`
    /// accepts its kind.
    fn end(&mut self, is_kind: impl Fn(OpenBracket) -> bool) {
        self.at += 1;
        if self.open.last().copied().is_some_and(is_kind) {
            self.open.pop();
            if self.rule.is_some_and(|(_, depth)| depth > self.open.len()) {
                self.rule = None;
            }
        }
    }

    fn at_rule(&mut self, name: &str) {
        let is = |keyword: &str| name.eq_ignore_ascii_case(keyword);
        // An `@import` counts only outside of blocks.
        let is_top_level = self.place == CssContext::Sheet && self.open.is_empty();
        let rule = if is("import") && is_top_level {
            AtRule::Import
        } else if is("import") || is("namespace") || is("charset") {
            AtRule::Mute
        } else {
            return;
        };
        self.rule = Some((rule, self.open.len()));
    }

    fn end_rule(&mut self) {
        if self.rule.is_some_and(|(_, depth)| depth == self.open.len()) {
            self.rule = None;
        }
    }

    /// Returns the content `text` of a string as a URL. `None` if a string at this position is not
    /// a URL.
    fn string_url(&mut self, text: Cow<'a, str>, range: Range<usize>) -> Option<CssUrl<'a>> {
        let is_import =
            matches!(self.rule, Some((AtRule::Import, depth)) if depth == self.open.len());
        match self.open.last_mut() {
            _ if is_import => {}
            // The first string in `url(` is the URL. Strings after it belong to modifiers.
            Some(open) if *open == OpenBracket::Url => *open = OpenBracket::Paren,
            Some(OpenBracket::Images) => {}
            _ => return None,
        }
        self.record_url(text, range)
    }

    /// Records a URL. In an `@import`, only the first URL counts, which leads to the style sheet.
    /// The rest of the rule consists of conditions.
    fn record_url(&mut self, url: Cow<'a, str>, range: Range<usize>) -> Option<CssUrl<'a>> {
        let is_import = match &mut self.rule {
            None => false,
            Some((AtRule::Mute, _)) => return None,
            Some((rule, _)) => {
                *rule = AtRule::Mute;
                true
            }
        };
        Some(CssUrl {
            url,
            is_import,
            range,
        })
    }

    /// Consumes a name, a function or a URL ("consume an ident-like token").
    fn word(&mut self) -> Option<CssUrl<'a>> {
        let name = self.name();
        if self.peek(0) != Some(b'(') {
            return None;
        }
        let is = |keyword: &str| name.eq_ignore_ascii_case(keyword);
        if !is("url") {
            self.begin(if is("src") {
                OpenBracket::Url
            } else if is("image-set") || is("-webkit-image-set") || is("image") {
                OpenBracket::Images
            } else {
                OpenBracket::Paren
            });
            return None;
        }
        self.begin(OpenBracket::Url);
        self.skip_space();
        if matches!(self.peek(0), Some(b'"' | b'\'')) {
            return None;
        }
        self.open.pop();
        let (url, range) = self.bare_url()?;
        self.record_url(url, range)
    }

    /// Consumes the rest of a URL without quotes: "consume a url token". Returns the URL and its
    /// range.
    fn bare_url(&mut self) -> Option<(Cow<'a, str>, Range<usize>)> {
        let start = self.at;
        let mut parts = TokenTextBuilder::from(self.at);
        while let Some(byte) = self.peek(0) {
            match byte {
                b')' => break,
                b'\\' if self.is_escape(0) => self.escape(&mut parts),
                _ if is_space(byte) => {
                    let end = self.at;
                    self.skip_space();
                    if !matches!(self.peek(0), None | Some(b')')) {
                        self.skip_bad_url();
                        return None;
                    }
                    self.at += usize::from(self.at < self.bytes.len());
                    return Some((parts.end(self.text, end), start..end));
                }
                b'"' | b'\'' | b'(' | b'\\' | 0x01..=0x08 | 0x0b | 0x0e..=0x1f | 0x7f => {
                    self.skip_bad_url();
                    return None;
                }
                _ => self.at += 1,
            }
        }
        let end = self.at;
        self.at += usize::from(self.at < self.bytes.len());
        Some((parts.end(self.text, end), start..end))
    }

    fn skip_bad_url(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' if self.is_escape(0) => self.escape(&mut TokenTextBuilder::from(self.at)),
                b')' => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Consumes a string. `None` if the line ends before the string does.
    fn string(&mut self, quote: u8) -> Option<Cow<'a, str>> {
        self.at += 1;
        let mut parts = TokenTextBuilder::from(self.at);
        while let Some(byte) = self.peek(0) {
            match byte {
                _ if byte == quote => {
                    let text = parts.end(self.text, self.at);
                    self.at += 1;
                    return Some(text);
                }
                b'\n' | b'\r' | 0x0c => return None,
                b'\\' => match self.peek(1) {
                    Some(b'\n' | b'\r' | 0x0c) | None => {
                        parts.skip(self.text, self.at, "");
                        self.at += 1;
                        self.skip_newline();
                        parts.resume(self.at);
                    }
                    Some(_) => self.escape(&mut parts),
                },
                _ => self.at += 1,
            }
        }
        Some(parts.end(self.text, self.at))
    }

    fn name(&mut self) -> Cow<'a, str> {
        let mut parts = TokenTextBuilder::from(self.at);
        while let Some(byte) = self.peek(0) {
            if is_name(byte) {
                self.at += 1;
            } else if self.is_escape(0) {
                self.escape(&mut parts);
            } else {
                break;
            }
        }
        parts.end(self.text, self.at)
    }

    /// Consumes a number with its unit. Otherwise the unit would look like a name.
    fn number(&mut self) {
        self.at += 1;
        while matches!(self.peek(0), Some(b'0'..=b'9' | b'.')) {
            self.at += 1;
        }
        if self.starts_name(0) {
            self.name();
        }
    }

    fn comment(&mut self) {
        let body = &self.bytes[self.at + 2..];
        let end = memchr::memmem::find(body, b"*/");
        self.at = end.map_or(self.bytes.len(), |end| self.at + 2 + end + 2);
    }

    /// Consumes an escape, starting at its backslash ("consume an escaped code point").
    fn escape(&mut self, parts: &mut TokenTextBuilder) {
        let start = self.at;
        self.at += 1;
        let digits = self.rest().iter().take(6);
        let digits = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
        let mut buffer = [0; 4];
        let character = if digits > 0 {
            let code = u32::from_str_radix(&self.text[self.at..self.at + digits], 16);
            self.at += digits;
            if !self.skip_newline() && self.peek(0).is_some_and(is_space) {
                self.at += 1;
            }
            let character = code.ok().filter(|code| *code != 0).and_then(char::from_u32);
            character.unwrap_or(char::REPLACEMENT_CHARACTER)
        } else {
            let character = self.text[self.at..].chars().next();
            self.at += character.map_or(0, char::len_utf8);
            character.unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        parts.skip(self.text, start, character.encode_utf8(&mut buffer));
        parts.resume(self.at);
    }

    /// Skips a line end at the current position. Returns whether there is one.
    fn skip_newline(&mut self) -> bool {
        let bytes = match self.rest() {
            [b'\r', b'\n', ..] => 2,
            [b'\n' | b'\r' | 0x0c, ..] => 1,
            _ => return false,
        };
        self.at += bytes;
        true
    }

    fn skip_space(&mut self) {
        while self.peek(0).is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// Returns whether a name starts `ahead` bytes from here ("would start an ident sequence").
    fn starts_name(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            Some(b'-') => {
                self.peek(ahead + 1)
                    .is_some_and(|next| next == b'-' || starts_name(next))
                    || self.is_escape(ahead + 1)
            }
            Some(byte) => starts_name(byte) || self.is_escape(ahead),
            None => false,
        }
    }

    /// Returns whether a number starts here, possibly with a sign or a dot ("would start a
    /// number").
    fn starts_number(&self) -> bool {
        let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
        match (self.peek(0), self.peek(1)) {
            (Some(b'.'), next) => is_digit(next),
            (_, Some(b'.')) => is_digit(self.peek(2)),
            (_, next) => is_digit(next),
        }
    }

    /// Returns whether there is a valid escape `ahead` bytes from here: a backslash before another
    /// character.
    fn is_escape(&self, ahead: usize) -> bool {
        self.peek(ahead) == Some(b'\\')
            && !matches!(self.peek(ahead + 1), Some(b'\n' | b'\r' | 0x0c))
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }
}

impl<'a> Iterator for CssUrlScanner<'a> {
    type Item = CssUrl<'a>;

    fn next(&mut self) -> Option<CssUrl<'a>> {
        while let Some(first) = self.peek(0) {
            if let Some(url) = self.token(first) {
                return Some(url);
            }
        }
        None
    }
}

/// Collects the text of a token. The text is copied only if an escape was replaced or a part was
/// dropped.
struct TokenTextBuilder {
    done: Option<String>,
    from: usize,
}

impl TokenTextBuilder {
    fn from(at: usize) -> TokenTextBuilder {
        TokenTextBuilder {
            done: None,
            from: at,
        }
    }

    /// Adds the text up to `to`, where an escape or a dropped part begins. Adds `instead` in place
    /// of that part.
    fn skip(&mut self, text: &str, to: usize, instead: &str) {
        let done = self.done.get_or_insert_default();
        done.push_str(&text[self.from..to]);
        done.push_str(instead);
    }

    fn resume(&mut self, at: usize) {
        self.from = at;
    }

    fn end(self, text: &str, to: usize) -> Cow<'_, str> {
        let last = &text[self.from..to];
        match self.done {
            None => Cow::Borrowed(last),
            Some(done) => Cow::Owned(done + last),
        }
    }
}

/// Returns whether a byte may start a name. All non-ASCII bytes may, and NUL, which is read as
/// U+FFFD.
fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 || byte == 0
}

fn is_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || byte == b'-'
}
