//! Splits a settings file that isn't valid TOML into statements, so that the valid ones can be
//! read.

use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};
use toml_parser::Source;
use toml_parser::lexer::{Token, TokenKind};

use super::{extract_rules, host_groups, key_of, sites};
use crate::error::{ConfigTableName, UnreadSettings};
use crate::settings::setting_definitions::TABLES;

/// A file reduced to its valid TOML.
pub(super) struct RecoveredToml {
    /// The file, with unread parts blanked out so that everything else keeps its position.
    pub(super) text: String,
    /// The faults, in file order.
    pub(super) faults: Vec<TomlFault>,
}

/// A statement that isn't valid TOML.
pub(super) struct TomlFault {
    pub(super) error: Error,
    /// The byte offset in the file from which the error's positions count.
    pub(super) offset: usize,
    /// The settings that can't be read because of this fault.
    pub(super) unread: UnreadSettings,
}

/// A statement of a settings file: a key with its value, or the header of a table, such as
/// `[scope]`. The statement may be invalid. The next statement begins where this one ends.
struct TomlStatement {
    span: Range<usize>,
    is_table_header: bool,
    is_read: bool,
}

/// Returns the file with all invalid statements blanked out.
///
/// The keys below an invalid table header are blanked out too, because their table is unknown. The
/// first of duplicate statements wins. An unclosed multi-line string swallows the rest of the file.
pub(super) fn readable(text: &str) -> RecoveredToml {
    let mut readable = RecoveredToml {
        text: text.to_owned(),
        faults: Vec::new(),
    };
    if DeTable::parse_recoverable(text).1.is_empty() {
        return readable;
    }
    let mut statements = statements(text);
    for at in 0..statements.len() {
        let span = statements[at].span.clone();
        let (_, errors) = DeTable::parse_recoverable(&text[span.clone()]);
        for error in errors {
            readable.blank_out(text, &mut statements, at, (error, span.start));
        }
    }
    // Find the faults that involve several statements, such as duplicate keys.
    loop {
        let (_, errors) = DeTable::parse_recoverable(&readable.text);
        let Some(error) = errors.into_iter().next() else {
            break;
        };
        let place = error.span().map_or(0, |span| span.start);
        let holds = |of: &TomlStatement| of.is_read && of.span.contains(&place);
        match statements.iter().position(holds) {
            Some(at) => readable.blank_out(text, &mut statements, at, (error, 0)),
            None => {
                readable.blank(0..text.len());
                readable.faults.push(TomlFault {
                    error,
                    offset: 0,
                    unread: UnreadSettings::Anything,
                });
            }
        }
    }
    let place = |fault: &TomlFault| fault.offset + fault.error.span().map_or(0, |span| span.start);
    readable.faults.sort_by_key(place);
    readable
}

impl RecoveredToml {
    /// Blanks out an invalid statement.
    fn blank_out(
        &mut self,
        text: &str,
        statements: &mut [TomlStatement],
        at: usize,
        (error, offset): (Error, usize),
    ) {
        let beneath = statements[at + 1..]
            .iter()
            .take_while(|next| !next.is_table_header);
        let last = match statements[at].is_table_header {
            true => at + beneath.count(),
            false => at,
        };
        let unread = unread(text, statements, at);
        for statement in &mut statements[at..=last] {
            statement.is_read = false;
            self.blank(statement.span.clone());
        }
        self.faults.push(TomlFault {
            error,
            offset,
            unread,
        });
    }

    fn blank(&mut self, span: Range<usize>) {
        let blanks: String = self.text[span.clone()]
            .bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
            .collect();
        self.text.replace_range(span, &blanks);
    }
}

/// Returns the settings that are lost if the statement at `at` can't be read.
fn unread(text: &str, statements: &[TomlStatement], at: usize) -> UnreadSettings {
    let statement = &text[statements[at].span.clone()];
    let key = statement.split_once('=').map(|(key, _)| key.trim());
    let is_plain = |key: &&str| {
        let mut chars = key.chars();
        chars.all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'))
    };
    match key.filter(is_plain) {
        Some(key) if !key.is_empty() => UnreadSettings::Keys {
            table: named_table(text, &statements[..at]),
            keys: vec![key_of(key)],
        },
        _ => UnreadSettings::Anything,
    }
}

/// Returns the `[site]` or `[group]` table that the statements after `before` belong to. `None` if
/// they belong to another table or to none.
fn named_table(text: &str, before: &[TomlStatement]) -> Option<ConfigTableName> {
    let head = before.iter().rfind(|statement| statement.is_table_header)?;
    let (root, _) = DeTable::parse_recoverable(&text[head.span.clone()]);
    [sites::TABLE, host_groups::TABLE]
        .into_iter()
        .find_map(|kind| {
            let DeValue::Table(names) = root.get_ref().get(kind)?.get_ref() else {
                return None;
            };
            let (name, _) = names.iter().next()?;
            Some((kind, name.get_ref().to_string()))
        })
}

/// Splits a file into statements. Comments and empty lines belong to the statement before them.
fn statements(text: &str) -> Vec<TomlStatement> {
    let tokens = Source::new(text).lex().into_vec();
    let mut statements: Vec<TomlStatement> = Vec::new();
    let (mut square, mut curly) = (0_usize, 0_usize);
    // Split at line breaks outside of multi-line strings, because such a string is a single token.
    for line in tokens.split_inclusive(|token| token.kind() == TokenKind::Newline) {
        let tokens = without_blanks(line);
        let Some(first) = tokens.first() else {
            continue;
        };
        let is_open = square > 0 || curly > 0;
        let is_table_header = match is_open {
            true => is_known_table_header(text, &tokens),
            false => first.kind() == TokenKind::LeftSquareBracket,
        };
        // A key within the braces of an inline table doesn't begin a statement.
        let is_key = curly == 0 && begins_with_key(&tokens);
        let start = line.first().map_or(0, |token| token.span().start());
        if is_table_header || is_key || !is_open {
            (square, curly) = (0, 0);
            if let Some(before) = statements.last_mut() {
                before.span.end = start;
            }
            statements.push(TomlStatement {
                span: start..text.len(),
                is_table_header,
                is_read: true,
            });
        }
        for token in tokens.iter().filter(|_| !is_table_header) {
            match token.kind() {
                TokenKind::LeftSquareBracket => square += 1,
                TokenKind::RightSquareBracket => square = square.saturating_sub(1),
                TokenKind::LeftCurlyBracket => curly += 1,
                TokenKind::RightCurlyBracket => curly = curly.saturating_sub(1),
                _ => {}
            }
        }
    }
    statements
}

fn without_blanks(line: &[Token]) -> Vec<Token> {
    let is_blank = |token: &&Token| {
        matches!(
            token.kind(),
            TokenKind::Whitespace | TokenKind::Comment | TokenKind::Newline | TokenKind::Eof
        )
    };
    line.iter()
        .filter(|token| !is_blank(token))
        .copied()
        .collect()
}

/// Returns whether a line is only the header of a settings table, such as `[scope]`. Within a list,
/// such a line means that the list was not closed.
fn is_known_table_header(text: &str, line: &[Token]) -> bool {
    let word = |at: usize| {
        let span = line.get(at)?.span();
        text.get(span.start()..span.end())
    };
    let heads = TABLES.iter().map(|(table, _)| *table);
    let mut heads = heads.chain([sites::TABLE, host_groups::TABLE, extract_rules::TABLE]);
    word(0) == Some("[")
        && word(line.len() - 1) == Some("]")
        && [word(1), word(2).filter(|_| word(1) == Some("["))]
            .into_iter()
            .flatten()
            .any(|table| heads.any(|head| head == table))
}

fn begins_with_key(line: &[Token]) -> bool {
    let is_part = |kind: TokenKind| {
        matches!(
            kind,
            TokenKind::Atom | TokenKind::Dot | TokenKind::BasicString | TokenKind::LiteralString
        )
    };
    let behind = line.iter().skip_while(|token| is_part(token.kind()));
    let is_named = line.first().is_some_and(|token| is_part(token.kind()));
    is_named && behind.map(Token::kind).next() == Some(TokenKind::Equals)
}
