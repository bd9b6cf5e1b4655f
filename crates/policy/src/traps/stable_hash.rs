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
