//! The golden segments of versions 1 and 2 of the format, and a function that updates the checksums of changed copies.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use twindex::format::checksum::checksum;

/// The golden segments of versions 1 and 2.
pub const SEGMENTS: [&[u8]; 2] =
    [include_bytes!("../golden/version-1.seg"), include_bytes!("../golden/version-2.seg")];

/// Updates the checksums of a segment after a change that keeps its length. `sound` is the segment before the change. The
/// offsets of the checksums are read from it, because the change may have damaged them.
pub fn reseal(bytes: &mut [u8], sound: &[u8]) {
    let footer = bytes.len() - 64;
    let number = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().unwrap()) as usize;
    let contents = number(footer + 16);
    let (sums, length) = (number(footer - 24), number(footer - 16));
    let salt = u128::from_le_bytes(bytes[24..40].try_into().unwrap());
    let put = |bytes: &mut [u8], at: usize, sum: u32| bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    put(bytes, 60, checksum(salt, 0, &bytes[..60]));
    for page in 0..length / 4 {
        let range = page * 4096..sums.min(page * 4096 + 4096);
        put(bytes, sums + 4 * page, checksum(salt, range.start as u64, &bytes[range]));
    }
    put(bytes, footer + 32, checksum(salt, sums as u64, &bytes[sums..sums + length]));
    put(bytes, footer + 28, checksum(salt, contents as u64, &bytes[contents..footer]));
    put(bytes, footer + 60, checksum(salt, footer as u64, &bytes[footer..footer + 60]));
}
