//! Versions 1 and 2 of the format, which this build can convert but not query.
//!
//! A segment of these versions differs from a segment of the current version in two respects:
//!
//! - the text of the parameters lacks some lines, and `tokens` has other values in version 1;
//! - all tables have the design `blocks-4`. Table 1 has a column layout of its own ([`BlockTable`]), and there is no section
//!   `design`.
//!
//! All other sections are encoded as in a file of the current version without feature bits. Files of these versions have no
//! feature bits, logs, values, stamps or fields.

use std::ops::Range;

use super::directory::Directory;
use super::header::{Header, Refusal, Role};
use super::place;
use crate::error::{Error, Result};
use crate::params::Params;

/// A version that precedes format 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyVersion {
    /// Version 1: tokens are words, there is one family of minima, and there are no samples.
    One,
    /// Version 2: adds samples, IDF weights, all tokens except `words-symbols` and `raw`, and all families except `darts`.
    Two,
}

impl LegacyVersion {
    /// All versions that precede format 1.0, in ascending order.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    /// Returns the version with this number; `None` if it is the current version or unknown.
    #[must_use]
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }

    /// Returns the number of this version, as in the headers of its files.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// Reads the header of a file of this version. Incompatible feature bits are refused, because the version has none.
    ///
    /// # Errors
    /// Same as [`Header::read`].
    pub fn read_header(self, bytes: &[u8], role: Role) -> std::result::Result<Header, Refusal> {
        Header::read_version(bytes, role, self.number(), 0)
    }

    /// Decodes the parameters of this version from their text. The result describes the same sketches in the current
    /// version: lines that this version lacks get the values that all of its indexes had.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the line, for a text that no writer of this version can have written.
    pub fn decode_params(self, text: &str) -> Result<Params> {
        let mut current = String::new();
        let mut expected = self.lines().iter();
        for line in text.split_inclusive('\n') {
            let wrong =
                || Error::Invalid(format!("parameters of version {}: `{}`", self.number(), line.trim_end()));
            let (name, value) = line.trim_end_matches('\n').split_once('=').ok_or_else(wrong)?;
            // Refuses lines that this version does not have. The current decoder refuses missing lines below.
            expected.by_ref().find(|line| **line == name).ok_or_else(wrong)?;
            match (self, name, value) {
                (Self::One, "tokens", "words") => {
                    current.push_str("tokens=words/14.0.0\nnormal-form=none\nstop-words=\nstemming=none\n");
                }
                (Self::One, "width", width) if !width.contains('+') => {
                    current.push_str(line);
                    current.push_str("shingle-hash=fast\n");
                }
                (Self::One, "simhash", "none" | "occurrences" | "distinct")
                | (Self::One, "minhash", "none" | "one-permutation-filled") => current.push_str(line),
                (Self::Two, "tokens", value)
                    if value.starts_with("words-symbols/") || value.starts_with("raw/") =>
                {
                    return Err(wrong());
                }
                (_, "tables", "blocks-4") => current.push_str("tables=blocks-4\ncodec=auto\n"),
                (Self::One, "tokens" | "width" | "simhash" | "minhash", _)
                | (Self::Two, "minhash", "darts")
                | (_, "tables", _) => return Err(wrong()),
                _ => current.push_str(line),
            }
        }
        if self == Self::One {
            current.push_str("bottom=0\nmodulus=0\n");
        }
        Params::decode(&current)
    }

    /// Returns the names of all lines that parameters of this version can have, in the required order.
    fn lines(self) -> &'static [&'static str] {
        match self {
            Self::One => &[
                "key",
                "tokens",
                "width",
                "seed",
                "simhash",
                "within",
                "tables",
                "minhash",
                "bands",
                "rows",
                "signature-bits",
            ],
            Self::Two => &[
                "key",
                "tokens",
                "normal-form",
                "stop-words",
                "stemming",
                "width",
                "shingle-hash",
                "seed",
                "simhash",
                "idf",
                "within",
                "tables",
                "minhash",
                "bands",
                "rows",
                "signature-bits",
                "bottom",
                "modulus",
            ],
        }
    }

    /// Lists, in words, the kinds of data that indexes of the current version can have and indexes of this version cannot.
    #[must_use]
    pub fn absent(self) -> &'static str {
        match self {
            Self::One => "samples, values, stamps, marks, priorities and sets",
            Self::Two => "values, stamps, marks, priorities and sets",
        }
    }
}

/// The codec of table 1, and of filter tables without filter bytes. Filter tables with 1 and 2 filter bytes for each row
/// have the codecs 2 and 3.
pub const CODEC: u16 = 1;
/// The highest codec of a filter table.
pub const FILTER_CODEC_MAX: u16 = 3;
/// The index of the last table. Filter tables have the indices 2 to `TABLES`.
pub const TABLES: u16 = 4;
/// Number of bits of each of the four blocks of a fingerprint.
const BLOCK_BITS: u32 = 16;

/// The positions of the columns of table 1 in its section. Its rows are the distinct fingerprints in ascending order.
///
/// The columns are, in this order: a directory over the first bits of block 1; block 1, which is absent if the directory
/// covers all of its bits; blocks 2 and 3 as a number of 4 bytes with block 2 in the upper half; block 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTable {
    /// The directory at the start of the section.
    pub directory: Directory,
    /// The offset of the column of block 1; `None` if the column is absent.
    first: Option<u64>,
    /// The offset of the column of blocks 2 and 3.
    middle: u64,
    /// The offset of the column of block 4.
    last: u64,
    /// The length of the section in bytes.
    pub length: u64,
}

impl BlockTable {
    /// Returns the layout of a table with `rows` fingerprints.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        let directory = Directory::of(rows, BLOCK_BITS);
        let end = directory.length();
        let first_bytes = if directory.bits == BLOCK_BITS { 0 } else { 2 * rows };
        let first = place(end, first_bytes);
        let middle = place(first + first_bytes, 4 * rows);
        let last = place(middle + 4 * rows, 2 * rows);
        let stored = directory.bits < BLOCK_BITS;
        Self { directory, first: stored.then_some(first), middle, last, length: last + 2 * rows }
    }

    /// Returns the byte ranges in the section of the three columns of a row: block 1 (`None` if the column is absent),
    /// blocks 2 and 3, and block 4.
    #[must_use]
    pub fn ranges(&self, row: u64) -> (Option<Range<u64>>, Range<u64>, Range<u64>) {
        let at = |start: u64, width: u64| start + row * width..start + (row + 1) * width;
        (self.first.map(|first| at(first, 2)), at(self.middle, 4), at(self.last, 2))
    }

    /// Returns the length in bytes of the section of a filter table with `rows` rows. `codec` must be 1 to
    /// [`FILTER_CODEC_MAX`].
    #[must_use]
    pub fn filter_length(rows: u64, codec: u16) -> u64 {
        let filter_bytes = u64::from(codec - CODEC) * rows;
        let pointers = place(Directory::of(rows, BLOCK_BITS).length(), 2 * rows);
        place(pointers + 2 * rows, filter_bytes) + filter_bytes
    }
}

/// Combines the columns of a row to a fingerprint: block 1, blocks 2 and 3 as one number, and block 4.
#[must_use]
pub fn fingerprint(first: u64, middle: u64, last: u64) -> u64 {
    first << 48 | middle << 16 | last
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "key=bytes\ntokens=words\nwidth=2\nseed=0\nsimhash=occurrences\nwithin=3\ntables=blocks-4\n\
        minhash=one-permutation-filled\nbands=2\nrows=2\nsignature-bits=8\n";
    const TWO: &str = "key=u64\ntokens=characters/14.0.0\nnormal-form=none\nstop-words=\nstemming=none\nwidth=3+5\n\
        shingle-hash=rabin\nseed=7\nsimhash=idf\nidf=000102030405060708090a0b0c0d0e0f\nwithin=3\ntables=blocks-4\n\
        minhash=none\nbottom=4\nmodulus=3\n";

    #[test]
    fn old_parameters_are_converted_to_current_parameters() {
        let one = LegacyVersion::One.decode_params(ONE).unwrap();
        let expected = Params::builder().words(2).simhash(3).minhash(2, 2).signature_bits(8);
        let expected = expected.tables("blocks-4".parse().unwrap(), "auto".parse().unwrap());
        let expected = expected.near(crate::params::Near::resembling(0.8).unwrap().or_within(3)); // the rule of then
        assert_eq!(one, expected.build().unwrap());
        let two = LegacyVersion::Two.decode_params(TWO).unwrap().encode();
        assert_eq!(two, TWO.replace("tables=blocks-4\n", "tables=blocks-4\ncodec=auto\n"));
    }

    #[test]
    fn parameters_that_no_old_writer_wrote_are_refused() {
        for (version, text, from, to) in [
            (LegacyVersion::One, ONE, "tokens=words", "tokens=words/14.0.0"),
            (LegacyVersion::One, ONE, "width=2", "width=1+2"),
            (LegacyVersion::One, ONE, "simhash=occurrences", "simhash=idf"),
            (LegacyVersion::One, ONE, "one-permutation-filled", "linear"),
            (LegacyVersion::One, ONE, "signature-bits=8\n", "signature-bits=8\nbottom=3\nmodulus=0\n"),
            (LegacyVersion::One, ONE, "width=2\n", ""),
            (LegacyVersion::One, ONE, "seed=0\nsimhash=occurrences\n", "simhash=occurrences\nseed=0\n"),
            (LegacyVersion::One, ONE, "seed=0\n", "seed=0\nseed=0\n"),
            (LegacyVersion::One, ONE, "seed=0\n", "seed=0\n\n"),
            (LegacyVersion::Two, TWO, "characters/14.0.0", "raw/14.0.0"),
            (LegacyVersion::Two, TWO, "blocks-4\n", "blocks-4\ncodec=auto\n"),
            (LegacyVersion::Two, TWO, "blocks-4", "blocks-3"),
            (LegacyVersion::Two, TWO, "modulus=3\n", "modulus=3\nvalues=kept\n"),
            (LegacyVersion::Two, TWO, "modulus=3\n", "modulus=3"),
            (LegacyVersion::Two, TWO, "bottom=4\n", ""),
            (LegacyVersion::Two, TWO, "minhash=none\n", "minhash=darts\nbands=2\nrows=2\nsignature-bits=8\n"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            assert!(
                matches!(version.decode_params(&changed), Err(Error::Invalid(_))),
                "{version:?}: {changed}"
            );
        }
    }

    #[test]
    fn table_columns_have_the_offsets_of_the_old_specification() {
        // The lengths in the dump of the specification of version 2, which has two fingerprints.
        let two = BlockTable::of(2);
        assert_eq!((two.length, two.directory.length()), (196, 8));
        assert_eq!(two.ranges(1), (Some(66..68), 132..136, 194..196));
        assert_eq!([1, 2, 3].map(|codec| BlockTable::filter_length(2, codec)), [68, 130, 132]);
        assert_eq!((BlockTable::of(0).length, BlockTable::filter_length(0, 3)), (8, 8));
        // The directory of a large table covers all 16 bits of block 1, so the column of block 1 is absent.
        let large = BlockTable::of(524_288);
        assert_eq!(large.directory.bits, 16);
        assert_eq!(large.ranges(0), (None, 262_208..262_212, 2_359_360..2_359_362));
        assert_eq!(fingerprint(0x4a64, 0x1196_0010, 0xa4a1), 0x4a64_1196_0010_a4a1);
    }
}
