//! Generates the pages that a crawler would fetch, the same in every run. A third of the pages are copies of an earlier
//! page in which one or two words are changed.

/// Number of words of a page.
const WORDS: u64 = 60;
/// Number of distinct words.
const VOCABULARY: u64 = 20_000;

/// Hashes a number to 64 bits (the finalizer of `splitmix64`).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

pub(crate) fn url(number: u64) -> String {
    format!("https://example.org/{number}")
}

pub(crate) fn page(number: u64) -> String {
    let draw = mixed(number ^ 1 << 40);
    // The copied page may be a copy, too.
    let is_copy = number > 0 && draw.is_multiple_of(3);
    let first = if is_copy { mixed(draw) % number } else { number };
    let mut words: Vec<u64> = (0..WORDS).map(|at| mixed(first << 8 | at) % VOCABULARY).collect();
    for change in 0..if is_copy { 1 + draw / 3 % 2 } else { 0 } {
        words[(mixed(draw ^ change) % WORDS) as usize] = VOCABULARY + draw % 1000;
    }
    let words: Vec<String> = words.iter().map(|word| format!("w{word:x}")).collect();
    words.join(" ")
}
