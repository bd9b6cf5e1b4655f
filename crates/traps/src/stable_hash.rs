//! Hashes that are the same on every machine and in every run.

/// Mixes a number into a hash: multiplies hash and number to 128 bits, and folds the product to 64
/// bits.
#[inline]
pub(super) const fn mix(hash: u64, number: u64) -> u64 {
    let product = (hash ^ 0x9E37_79B9_7F4A_7C15) as u128 * (number ^ 0xD6E8_FEB8_6659_FD93) as u128;
    let folded = (product >> 64) as u64 ^ product as u64;
    folded ^ hash.rotate_left(23)
}

/// Returns the hash of a byte string.
pub(super) fn of(bytes: &[u8]) -> u64 {
    of_beginning(bytes, bytes.len(), |number| number)
}

/// Returns the hash of the first `length` bytes of a text in lower case. The function is fastest if
/// the text continues after these bytes, because it can then read eight bytes at once.
#[inline]
pub(super) fn of_lower_case(text: &[u8], length: usize) -> u64 {
    of_beginning(text, length, lower_case)
}

/// Returns the hash of a word in lower case, and the word's first eight bytes in lower case as a
/// number. The word is the first `length` bytes of `text`, at least one. The text may continue
/// after the word.
#[inline(always)]
pub(super) fn of_word(text: &[u8], length: usize) -> (u64, u64) {
    match text.first_chunk() {
        // Most words take this branch.
        Some(eight) if (1..=8).contains(&length) => {
            let unused = 64 - 8 * length as u32;
            let beginning = lower_case(u64::from_le_bytes(*eight) << unused >> unused);
            (mix(BY_LENGTH[length], beginning), beginning)
        }
        _ => of_other_word(text, length),
    }
}

#[inline(never)]
fn of_other_word(text: &[u8], length: usize) -> (u64, u64) {
    let beginning = lower_case(number(text, length));
    (of_lower_case(text, length), beginning)
}

#[inline]
fn of_beginning(text: &[u8], length: usize, changed: impl Fn(u64) -> u64) -> u64 {
    let mut hash = match BY_LENGTH.get(length) {
        Some(hash) => *hash,
        None => of_length(length),
    };
    let mut at = 0;
    while at < length {
        hash = mix(hash, changed(number(&text[at..], length - at)));
        at += 8;
    }
    hash
}

/// Returns the initial hash of a text of this length.
const fn of_length(length: usize) -> u64 {
    mix(length as u64, 0x51_7C_C1_B7)
}

/// The initial hashes of texts of the most common lengths.
static BY_LENGTH: [u64; 32] = {
    let mut hashes = [0; 32];
    let mut length = 0;
    while length < hashes.len() {
        hashes[length] = of_length(length);
        length += 1;
    }
    hashes
};

/// Returns the first `length` bytes of a text, at most eight, as a number.
#[inline]
fn number(text: &[u8], length: usize) -> u64 {
    let Some(eight) = text.first_chunk() else {
        let bytes = text[..length.min(text.len())].iter().rev();
        return bytes.fold(0, |number, byte| number << 8 | u64::from(*byte));
    };
    let unused = 8_usize.saturating_sub(length) as u32 * 8;
    u64::from_le_bytes(*eight) << unused >> unused
}

/// Converts the ASCII letters in eight bytes to lower case.
#[inline]
fn lower_case(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low_bits = bytes & (0x7F * EACH);
    // The high bit of each byte is set in `from_a` if the byte is at least `A`, and in `behind_z`
    // if it is greater than `Z`.
    let from_a = low_bits + u64::from(0x80 - b'A') * EACH;
    let behind_z = low_bits + u64::from(0x7F - b'Z') * EACH;
    let is_upper = from_a & !behind_z & !bytes & (0x80 * EACH);
    bytes | is_upper >> 2
}

/// Returns the hash of several texts. Their order matters.
pub(super) fn of_all(texts: &[&str]) -> u64 {
    texts.iter().fold(texts.len() as u64, |hash, text| {
        mix(hash, of(text.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{mix, of, of_all, of_lower_case, of_word};

    proptest! {
        #[test]
        fn lower_case_hash_equals_the_hash_of_the_lower_case_text(
            text in prop::collection::vec(any::<u8>(), 0..40),
            length in 0_usize..40,
        ) {
            let length = length.min(text.len());
            let lower = text[..length].to_ascii_lowercase();
            prop_assert_eq!(of_lower_case(&text, length), of(&lower));
            if length > 0 {
                let mut eight = [0; 8];
                eight[..length.min(8)].copy_from_slice(&lower[..length.min(8)]);
                prop_assert_eq!(of_word(&text, length), (of(&lower), u64::from_le_bytes(eight)));
            }
        }
    }

    /// Stored state contains these hashes. If the hash function changed, the stored hashes would
    /// identify other kinds of URLs.
    #[test]
    fn hashes_never_change() {
        assert_eq!(mix(1, 2), 0xBD60_66E6_B22E_EA0C);
        assert_eq!(of(b""), 0x9CF9_5C1B_88A9_49C4);
        assert_eq!(of(b"a robots.txt"), 0x2697_0FF5_4077_C958);
        assert_eq!(of_all(&["a", "bc"]), 0xB2D3_C68C_9BAA_7059);
    }
}
