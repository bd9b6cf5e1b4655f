//! Writings of one word made one.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// `lower` without accents, in compatible forms: `café` is `cafe`, full-width letters are
/// plain ones. Marks of scripts that can't be read without them stay.
pub(super) fn fold(lower: &str) -> String {
    // Chinese characters have one form alone, and there are many of them in a text.
    let is_plain = |c: char| c.is_ascii() || matches!(c, '\u{4E00}'..='\u{9FFF}');
    if lower.chars().all(is_plain) {
        return lower.to_owned();
    }
    let apart = DecomposingNormalizerBorrowed::new_nfkd();
    let together = ComposingNormalizerBorrowed::new_nfc();
    let mut plain = String::with_capacity(lower.len());
    for c in apart.normalize_iter(lower.chars()) {
        match c {
            // Accents of Latin, Greek and Cyrillic letters.
            '\u{300}'..='\u{36F}' => {}
            // What joins or hides within a word.
            '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' => {}
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'ø' => plain.push('o'),
            'đ' | 'ð' => plain.push('d'),
            'ł' => plain.push('l'),
            'ı' => plain.push('i'),
            'þ' => plain.push_str("th"),
            '\u{2019}' => plain.push('\''),
            c => plain.extend(c.to_lowercase()),
        }
    }
    together.normalize(&plain).into_owned()
}
