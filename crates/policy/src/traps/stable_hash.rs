//! Hashes that are the same on every machine and in every run.

/// Mixes a number into a hash: a multiplication to 128 bits, folded.
pub(super) fn mix(hash: u64, number: u64) -> u64 {
    let product =
        u128::from(hash ^ 0x9E37_79B9_7F4A_7C15) * u128::from(number ^ 0xD6E8_FEB8_6659_FD93);
    let folded = (product >> 64) as u64 ^ product as u64;
    folded ^ hash.rotate_left(23)
}

/// The hash of bytes.
pub(super) fn of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(mix(bytes.len() as u64, 0x51_7C_C1_B7), mix)
}

/// The hash of several texts, in order.
pub(super) fn of_all(texts: &[&str]) -> u64 {
    texts.iter().fold(texts.len() as u64, |hash, text| {
        mix(hash, of(text.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::{mix, of, of_all};

    /// They stand in stored state, so that another value would be another kind of URLs.
    #[test]
    fn ours_a_hash_stays_what_it_was() {
        assert_eq!(mix(1, 2), 0xBD60_66E6_B22E_EA0C);
        assert_eq!(of(b""), 0x9CF9_5C1B_88A9_49C4);
        assert_eq!(of(b"a robots.txt"), 0x2697_0FF5_4077_C958);
        assert_eq!(of_all(&["a", "bc"]), 0xB2D3_C68C_9BAA_7059);
    }
}
