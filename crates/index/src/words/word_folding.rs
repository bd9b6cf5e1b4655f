//! Maps the spellings of a word to one form.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// The digit zero of each run of decimal digits that NFKD doesn't change, in ascending order
/// (Unicode 17).
const ZEROS: [u32; 68] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6,
    0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0,
    0x10D30, 0x10D40, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x116D0, 0x116DA, 0x11730, 0x118E0, 0x11950, 0x11BF0, 0x11C50, 0x11D50, 0x11DA0,
    0x11DE0, 0x11F50, 0x16130, 0x16A60, 0x16AC0, 0x16B50, 0x16D70, 0x1E140, 0x1E2F0, 0x1E4F0,
    0x1E5F1, 0x1E950,
];

/// Returns `lower` in the form that pages and queries share: without accents or optional marks,
/// with ASCII digits, in compatible forms. `café` becomes `cafe`, and full-width letters become
/// plain ones. Marks that are essential in their script stay.
pub(super) fn fold(lower: &str) -> String {
    // Return early for ASCII and Chinese characters, which are frequent and already folded.
    let is_plain = |c: char| c.is_ascii() || matches!(c, '\u{4E00}'..='\u{9FFF}');
    if lower.chars().all(is_plain) {
        return lower.to_owned();
    }
    let apart = DecomposingNormalizerBorrowed::new_nfkd();
    let together = ComposingNormalizerBorrowed::new_nfc();
    let mut plain = String::with_capacity(lower.len());
    for c in apart.normalize_iter(lower.chars()) {
        match c {
            c if is_optional_mark(c) => {}
            // Invisible characters within a word.
            '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' => {}
            // The Arabic decimal and thousands separators.
            '\u{66B}' => plain.push('.'),
            '\u{66C}' => plain.push(','),
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'ø' => plain.push('o'),
            'đ' | 'ð' => plain.push('d'),
            'ł' => plain.push('l'),
            'ı' => plain.push('i'),
            'þ' => plain.push_str("th"),
            '\u{2019}' | '\u{5F3}' => plain.push('\''),
            // Quotation marks within a Hebrew abbreviation, and the gershayim that they stand for.
            '\u{5F4}' | '\u{201C}' | '\u{201D}' => plain.push('"'),
            // The Persian keheh and yeh, and the alef maksura, which many writers take for a yeh.
            '\u{6A9}' => plain.push('\u{643}'),
            '\u{6CC}' | '\u{649}' => plain.push('\u{64A}'),
            c => match ascii_digit(c) {
                Some(digit) => plain.push(digit),
                None => plain.extend(c.to_lowercase()),
            },
        }
    }
    together.normalize(&plain).into_owned()
}

/// Returns true for marks that writers often omit: accents of Latin, Greek and Cyrillic letters,
/// Hebrew points and accents, Arabic vowel marks and the tatweel, and Syriac points. Includes hamza
/// and madda, which many writers omit too.
fn is_optional_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36F}'
        | '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}' | '\u{5C2}' | '\u{5C4}' | '\u{5C5}' | '\u{5C7}'
        | '\u{610}'..='\u{61A}' | '\u{640}' | '\u{64B}'..='\u{65F}' | '\u{670}'
        | '\u{6D6}'..='\u{6DC}' | '\u{6DF}'..='\u{6E4}' | '\u{6E7}' | '\u{6E8}' | '\u{6EA}'..='\u{6ED}'
        | '\u{711}' | '\u{730}'..='\u{74A}'
        | '\u{897}'..='\u{89F}' | '\u{8CA}'..='\u{8E1}' | '\u{8E3}'..='\u{8FF}')
}

/// Returns the ASCII form of a decimal digit of another script; `None` for all other characters.
fn ascii_digit(c: char) -> Option<char> {
    if c.is_ascii() {
        return None;
    }
    let c = u32::from(c);
    let zero = ZEROS[..ZEROS.partition_point(|zero| *zero <= c)].last()?;
    char::from_digit(c - zero, 10)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::fold;

    #[track_caller]
    fn check(written: &str, expected: &str) {
        assert_eq!(fold(&written.to_lowercase()), expected);
    }

    #[test]
    fn optional_marks_are_dropped() {
        check("שָׁלוֹם", "שלום");
        check("\u{FB2A}\u{5B8}", "ש");
        check("مُحَمَّد", "محمد");
        check("مـــحمد", "محمد");
        check("أحمد", "احمد");
        check("ܫܠܳܡܳܐ", "ܫܠܡܐ");
        check("Ёлка", "елка");
        check("کتابی", "كتابي");
        check("مصطفى", "مصطفي");
        check("צה״ל", "צה\"ל");
        check("ג׳ירפה", "ג'ירפה");
        // Vowel signs are essential in their script, so they stay.
        check("नमस्ते", "नमस्ते");
    }

    #[test]
    fn digits_of_all_scripts_are_ascii() {
        check("٢٠٢٤", "2024");
        check("۱۴۰۳", "1403");
        check("३७", "37");
        check("٣٫١٤", "3.14");
        let digit = Regex::new(r"^\p{Nd}$").unwrap();
        let digits = ('\0'..=char::MAX).filter(|c| digit.is_match(c.encode_utf8(&mut [0; 4])));
        let mut value = 0;
        for c in digits {
            check(&c.to_string(), &value.to_string());
            value = (value + 1) % 10;
        }
    }
}
