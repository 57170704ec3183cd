//! Unescapes the text of JSON strings.

use super::{Kernel, Level, Simd};

/// Number of bytes that are compared at once.
const BLOCK: usize = 64;
/// Number of bytes that are copied before a branch: two blocks. In most texts, the next escaped line end is at most two
/// blocks away, but it is unpredictable in which of the two.
const STEP: usize = 2 * BLOCK;

/// The bytes that end a run of literal bytes: quote and backslash.
const SPECIALS: [u8; 2] = *b"\"\\";

/// Maps the letter of a simple escape to its character (RFC 8259, section 7), and other letters to 0. A table avoids an
/// unpredictable branch on the letter.
const ESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    table[b'n' as usize] = b'\n';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b't' as usize] = b'\t';
    table[b'r' as usize] = b'\r';
    table[b'b' as usize] = 8;
    table[b'f' as usize] = 12;
    table
};

/// Returns the character that a backslash followed by `letter` means. `None` for `u`, and for letters that are no
/// escape.
#[must_use]
pub fn simple_escape(letter: u8) -> Option<char> {
    let simple = ESCAPED[usize::from(letter)];
    (simple != 0).then_some(char::from(simple))
}

/// An unescaped JSON string. Its buffer can be reused.
///
/// ```
/// let (mut string, line) = (twindex_kernel::Unescaped::default(), r#""a\nb\u0041c""#);
/// let backslash = string.append(line, 1).unwrap();
/// assert_eq!((&line[backslash..backslash + 2], string.as_str()), ("\\u", "a\nb"));
/// string.push('A');
/// let quote = string.append(line, backslash + 6).unwrap();
/// assert_eq!((&line[quote..], string.as_str()), ("\"", "a\nbAc"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Unescaped {
    /// The first `len` bytes are the text, in UTF-8; later bytes are undefined.
    bytes: Vec<u8>,
    len: usize,
}

impl From<String> for Unescaped {
    fn from(text: String) -> Self {
        Self { len: text.len(), bytes: text.into_bytes() }
    }
}

impl Unescaped {
    /// Removes the text and keeps the buffer.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the text appended so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        #[allow(unsafe_code, reason = "it would be checked once more for each text")]
        // SAFETY: the first `len` bytes are UTF-8. Initially they are empty or the bytes of a `String`, and after `clear`
        // they are empty. `push` appends the bytes of a `char`. `append` appends runs of bytes of a `str` that begin at a
        // character boundary and end before an ASCII character, so they are whole characters. Between the runs it appends
        // entries of `ESCAPED`, which are ASCII, and skips a backslash and a letter, which are ASCII too. No other code
        // writes to `bytes` or `len`.
        unsafe {
            std::str::from_utf8_unchecked(&self.bytes[..self.len])
        }
    }

    /// Appends a character.
    pub fn push(&mut self, character: char) {
        let mut utf8 = [0; 4];
        let utf8 = character.encode_utf8(&mut utf8).as_bytes();
        let end = self.len + utf8.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[self.len..end].copy_from_slice(utf8);
        self.len = end;
    }

    /// Appends the text of a JSON string in `line`, from byte `at` up to a quote or up to a backslash that does not
    /// begin a [simple escape](simple_escape). Returns the offset of this quote or backslash. If there is none, or if
    /// `at` is not on a character boundary, returns `None` and appends nothing.
    pub fn append(&mut self, line: &str, at: usize) -> Option<usize> {
        if !line.is_char_boundary(at) {
            return None;
        }
        // Unescaping never lengthens a string, and at most `STEP` bytes are written at once.
        let needed = self.len + line.len() - at + STEP;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        let unescape = Unescape { bytes: line.as_bytes(), at, to: &mut self.bytes[self.len..] };
        let (end, length) = Level::chosen().dispatch(unescape)?;
        self.len += length;
        Some(end)
    }
}

/// The kernel of [`Unescaped::append`]: unescapes `bytes` from `at` and writes the result to the front of `to`.
struct Unescape<'a> {
    bytes: &'a [u8],
    at: usize,
    to: &'a mut [u8],
}

impl Kernel for Unescape<'_> {
    /// The offset of the byte that ends the string, and the number of bytes written.
    type Output = Option<(usize, usize)>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Self { bytes, mut at, to } = self;
        let mut length = 0;
        let mut last = [0; STEP];
        loop {
            let rest = bytes.get(at..)?;
            let step: &[u8; STEP] = if let Some(step) = rest.first_chunk() {
                step
            } else {
                last[..rest.len()].copy_from_slice(rest);
                last[rest.len()..].fill(0);
                &last
            };
            let copy: &mut [u8; STEP] = to.get_mut(length..)?.first_chunk_mut()?;
            let blocks = step.as_chunks().0.iter().zip(copy.as_chunks_mut().0);
            let specials = (0..).step_by(BLOCK).zip(blocks).fold(0, |mask, (place, (block, copy))| {
                mask | u128::from(simd.copy_either(block, copy, SPECIALS)) << place
            });
            let before = specials.trailing_zeros() as usize;
            (at, length) = (at + before, length + before);
            if specials == 0 {
                continue; // all bytes are literal; at the end of the line, `bytes.get` ends the loop
            }
            let simple = match bytes.get(at..)? {
                [b'\\', letter, ..] => ESCAPED[usize::from(*letter)],
                _ => 0,
            };
            if simple == 0 {
                return Some((at, length));
            }
            to[length] = simple;
            (at, length) = (at + 2, length + 1);
        }
    }
}

/// The reference implementation of [`Simd::copy_either`].
#[inline(always)]
pub(super) fn copy_either(bytes: &[u8; BLOCK], copy: &mut [u8; BLOCK], either: [u8; 2]) -> u64 {
    *copy = *bytes;
    let is_special = |byte: u8| byte == either[0] || byte == either[1];
    (0..).zip(bytes).fold(0, |mask, (place, &byte)| mask | u64::from(is_special(byte)) << place)
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::cast_ptr_alignment, reason = "loads and stores with a u in their name take any alignment")]
pub(super) mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8, _mm256_storeu_si256, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_set1_epi8,
        _mm512_storeu_si512,
    };

    use super::BLOCK;

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(in super::super) fn copy_either_avx2(
        bytes: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
        either: [u8; 2],
    ) -> u64 {
        let mut mask = 0;
        for half in 0..2 {
            #[allow(unsafe_code, reason = "the intrinsics take pointers")]
            // SAFETY: reads 32 bytes at offset 0 or 32 of the 64 bytes of `bytes`, and writes them to offset 0 or 32
            // of the 64 bytes of `copy`, at any alignment.
            let x = unsafe {
                let x = _mm256_loadu_si256(bytes.as_ptr().add(32 * half).cast::<__m256i>());
                _mm256_storeu_si256(copy.as_mut_ptr().add(32 * half).cast::<__m256i>(), x);
                x
            };
            let equal = |byte: u8| _mm256_cmpeq_epi8(x, _mm256_set1_epi8(byte.cast_signed()));
            let special = _mm256_or_si256(equal(either[0]), equal(either[1]));
            mask |= u64::from(_mm256_movemask_epi8(special).cast_unsigned()) << (32 * half);
        }
        mask
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(in super::super) fn copy_either_avx512(
        bytes: &[u8; BLOCK],
        copy: &mut [u8; BLOCK],
        either: [u8; 2],
    ) -> u64 {
        #[allow(unsafe_code, reason = "the intrinsics take pointers")]
        // SAFETY: reads the 64 bytes of `bytes` and writes the 64 bytes of `copy`, at any alignment.
        let x = unsafe {
            let x = _mm512_loadu_si512(bytes.as_ptr().cast::<__m512i>());
            _mm512_storeu_si512(copy.as_mut_ptr().cast::<__m512i>(), x);
            x
        };
        let equal = |byte: u8| _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(byte.cast_signed()));
        equal(either[0]) | equal(either[1])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Unescapes one character at a time.
    fn naive(line: &str, at: usize) -> Option<(usize, String)> {
        let mut text = String::new();
        let mut characters = line.get(at..)?.char_indices().peekable();
        while let Some((place, character)) = characters.next() {
            match (character, characters.peek()) {
                ('"', _) => return Some((at + place, text)),
                ('\\', next) => {
                    let letter = next.and_then(|&(_, letter)| u8::try_from(letter).ok());
                    let Some(simple) = letter.and_then(simple_escape) else {
                        return Some((at + place, text));
                    };
                    text.push(simple);
                    characters.next();
                }
                _ => text.push(character),
            }
        }
        None
    }

    struct CopySpecials<'a>(&'a [u8; BLOCK]);

    impl Kernel for CopySpecials<'_> {
        type Output = (u64, [u8; BLOCK]);

        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut copy = [7; BLOCK];
            (simd.copy_either(self.0, &mut copy, SPECIALS), copy)
        }
    }

    /// Compares the results of all levels with `naive`, for each start offset in a line.
    #[track_caller]
    fn check(line: &str, before: &str) {
        for at in 0..=line.len() + 1 {
            let wanted = naive(line, at);
            let mut string = Unescaped::from(before.to_owned());
            let end = string.append(line, at);
            let whole = format!("{before}{}", wanted.as_ref().map_or("", |(_, text)| text));
            assert_eq!(
                (end, string.as_str()),
                (wanted.as_ref().map(|&(end, _)| end), &whole[..]),
                "{line} {at}"
            );
            for level in Level::tested() {
                if line.is_char_boundary(at) {
                    let mut to = vec![9; line.len() - at + STEP];
                    let found = level.dispatch(Unescape { bytes: line.as_bytes(), at, to: &mut to });
                    let found =
                        found.map(|(end, length)| (end, String::from_utf8(to[..length].to_vec()).unwrap()));
                    assert_eq!(found, wanted, "{level}: {line} {at}");
                }
            }
        }
    }

    #[test]
    fn all_levels_find_quotes_and_backslashes_at_every_position() {
        for level in Level::tested() {
            for byte in 0..=255 {
                for at in 0..BLOCK {
                    let mut bytes = [b'!'; BLOCK];
                    bytes[at] = byte;
                    let special = if byte == b'"' || byte == b'\\' { 1 << at } else { 0 };
                    assert_eq!(
                        level.dispatch(CopySpecials(&bytes)),
                        (special, bytes),
                        "{level}, {byte} at {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn strings_of_every_length_end_at_their_quote() {
        for length in 0..300 {
            for (end, escape) in
                [("\"", ""), ("\"}", "\\n"), ("\\u00e4\"", "\\\""), ("\\", "\\\\"), ("", "ü")]
            {
                let line =
                    format!("{}{escape}{}{end}", "a".repeat(length / 2), "b".repeat(length - length / 2));
                let wanted = naive(&line, 0);
                let mut string = Unescaped::default();
                let found = string.append(&line, 0).map(|end| (end, string.as_str().to_owned()));
                assert_eq!(found, wanted, "{line}");
            }
        }
    }

    #[test]
    fn push_and_append_keep_their_order() {
        let mut string = Unescaped::from("left".to_owned());
        string.clear();
        string.push('ü');
        assert_eq!(string.append("\\t\"", 0), Some(2));
        string.push('\u{1f600}');
        assert_eq!((string.append("no end", 0), string.as_str()), (None, "ü\t\u{1f600}"));
    }

    proptest! {
        #[test]
        fn unescaping_equals_the_character_by_character_version(
            pieces in proptest::collection::vec(
                prop_oneof![
                    3 => "[a-z ü\u{1f600}]{0,40}",
                    2 => proptest::sample::select(vec!["\\n", "\\\"", "\\\\", "\\u0041", "\"", "\\", "\\/", "\\ü"])
                        .prop_map(str::to_owned),
                ],
                0..8,
            ),
            before in "[aü]{0,3}",
        ) {
            check(&pieces.concat(), &before);
        }
    }
}
