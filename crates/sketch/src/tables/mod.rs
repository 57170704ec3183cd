//! Tables of character properties, and of words that test the stemmers. `tests/second/tables.py` creates the files and
//! defines their format.
//!
//! The arrays are decoded at compile time, so a truncated file or an array of unexpected size is a compile error.

/// Tables of Unicode 14.0.0 for the tokenizer: character classes and lower case.
pub(crate) const TOKEN: &[u8] = include_bytes!("token.bin");
/// Tables of Unicode 17.0.0: the properties `Word_Break` and `Sentence_Break`.
#[cfg(feature = "languages")]
pub(crate) const BREAKS: &[u8] = include_bytes!("breaks.bin");
/// Tables of Unicode 18.0.0: NFKC, and the flags of marks.
#[cfg(feature = "languages")]
pub(crate) const NORMAL: &[u8] = include_bytes!("normal.bin");
/// A line for each language with a stemmer: its name, a digest, and test words whose stems reveal a changed stemmer.
/// The digest is the XXH3 hash of the stems of the test words, each followed by a line feed.
#[cfg(feature = "languages")]
pub(crate) const STEMS: &str = include_str!("stems.tsv");

/// Returns three numbers for the array with index `array` in a file: its offset, its number of elements, and the width
/// of an element in bytes.
const fn place(file: &[u8], array: usize) -> (usize, usize, usize) {
    let (mut at, mut passed) = (0, 0);
    loop {
        let (elements, width) = (number(file, at, 4) as usize, number(file, at + 4, 4) as usize);
        if passed == array {
            return (at + 8, elements, width);
        }
        at += 8 + elements * width;
        passed += 1;
    }
}

const fn number(file: &[u8], at: usize, width: usize) -> u32 {
    let (mut number, mut byte) = (0, width);
    while byte > 0 {
        byte -= 1;
        number = number << 8 | file[at + byte] as u32;
    }
    number
}

pub(crate) const fn count(file: &[u8], array: usize) -> usize {
    place(file, array).1
}

macro_rules! arrays {
    ($($name:ident of $number:ty)*) => {$(
        /// Decodes the array with this index in a file.
        pub(crate) const fn $name<const N: usize>(file: &[u8], array: usize) -> [$number; N] {
            let (start, elements, width) = place(file, array);
            assert!(elements == N && width == size_of::<$number>(), "this array has other elements");
            let (mut values, mut i) = ([0; N], 0);
            while i < N {
                values[i] = number(file, start + i * width, width) as $number;
                i += 1;
            }
            values
        }
    )*};
}

arrays! { u8s of u8 u32s of u32 }
#[cfg(feature = "languages")]
arrays! { u16s of u16 }
