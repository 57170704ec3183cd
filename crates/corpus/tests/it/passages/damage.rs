//! Generates all damaged forms of a small file.

/// Passes `bytes` with each single bit flipped, and each truncated prefix of `bytes`, to `check`, with a description of the
/// damage.
pub(crate) fn for_each_damage(bytes: &[u8], mut check: impl FnMut(&[u8], &str)) {
    let mut damaged = bytes.to_vec();
    for bit in 0..8 * bytes.len() {
        damaged[bit / 8] ^= 1 << (bit % 8);
        check(&damaged, &format!("bit {bit}"));
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    for length in 0..bytes.len() {
        check(&bytes[..length], &format!("cut to {length}"));
    }
}
