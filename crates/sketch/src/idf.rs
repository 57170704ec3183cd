//! Inverse document frequencies: the fewer documents of a collection contain a shingle, the greater its weight.
//!
//! The weights are those of Spärck Jones, *A statistical interpretation of term specificity and its application in
//! retrieval*, 1972. In a simhash, a shingle can vote with its number of occurrences in the document times its inverse
//! document frequency. Then the shingles that distinguish a document decide its bits, not the shingles that are in
//! every document.
//!
//! **Weight.** The weight of a shingle that is in d of N documents is 256 (1 + log2((N + 1) / (d + 1))), rounded down. It is
//! a fixed-point number with 8 fractional bits, computed in integers, so that it is the same on every machine:
//!
//! ```text
//! a = N + 1;   b = d + 1                             0 <= d <= N < 2^32
//! e = the greatest with b * 2^e <= a
//! x = a * 2^63 / (b * 2^e), rounded down             2^63 <= x < 2^64
//! f = 0;  eight times:  y = x * x / 2^63, rounded down
//!                       if y >= 2^64:  f = 2 f + 1;  x = y / 2, rounded down
//!                       otherwise:     f = 2 f;      x = y
//! weight = 256 + 256 e + f                           256 to 8448
//! ```
//!
//! Each step squares a mantissa with 63 fractional bits, rounded down, and yields one bit of the logarithm. The weight is
//! defined by these steps and not by the real logarithm. Adding 1 to N and d avoids a division by zero for shingles that no
//! document contains.
//!
//! **Absent shingles.** A table need not have an entry for every shingle. Rare shingles are the majority and have
//! nearly equal weights, so they can be omitted. A shingle without an entry is assigned the least frequency among the
//! omitted shingles, or 0 if none was omitted.
//!
//! **Look-up.** In addition to its columns, the table has one 64-bit slot for each entry, in the order of the hashes, with
//! the low 48 bits of the hash and its weight. A directory maps a prefix, the upper bits of a hash, to its first slot. It
//! has about as many prefixes as there are entries, and at least 2^16, so that a prefix and 48 bits identify a hash. A
//! look-up reads two numbers of the directory and, without a branch, the first four slots of the prefix. A prefix with more
//! slots is rare and is searched by bisection.

use twindex_kernel::weighted::ITEMS_MAX;

use crate::error::{Error, Result};
use crate::params::{Shingling, SimhashWeights, SketchParams};
use crate::simhash::{Fingerprint, of_word};
use crate::weighted::{Votes, weighted};

/// Returns the weight of a shingle that is in `frequency` of `documents` documents: 256 (1 + log2((documents + 1) /
/// (frequency + 1))), rounded down by the steps that the [module](self) defines. A frequency greater than `documents` is
/// treated as `documents`, which gives the least weight, 256.
///
/// ```
/// use twindex_sketch::idf::weight;
///
/// assert_eq!(weight(1023, 1023), 256);
/// assert_eq!(weight(1023, 511), 512);
/// assert_eq!(weight(1023, 0), 256 * 11);
/// ```
#[must_use]
pub fn weight(documents: u32, frequency: u32) -> u16 {
    let (a, b) = (u128::from(documents) + 1, u128::from(frequency.min(documents)) + 1);
    // The greatest e with b * 2^e <= a is the difference of the two rounded-down logarithms, or one less.
    let mut exponent = a.ilog2() - b.ilog2();
    if b << exponent > a {
        exponent -= 1;
    }
    let mut mantissa = (a << 63) / (b << exponent);
    let mut fraction = 0;
    for _ in 0..8 {
        let square = (mantissa * mantissa) >> 63;
        let over = square >> 64; // 1 if the square of the mantissa is 2 or more
        fraction = fraction << 1 | over as u16;
        mantissa = square >> over;
    }
    256 + 256 * exponent as u16 + fraction
}

/// The document frequencies of shingles in a collection, and the weights computed from them.
///
/// The table is created from columns of counts and cannot be changed. The crate `twindex` counts documents (`IdfBuilder`)
/// and stores the files. The parameters of an index contain the [`digest`](Self::digest) of the table
/// ([`SimhashWeights::Idf`]), so that fingerprints made with different tables are never compared.
///
/// Takes 24 to 28 bytes of memory for each entry, plus 256 KiB.
#[derive(Clone, PartialEq, Eq)]
pub struct IdfTable {
    /// The hashes of the shingles, ascending.
    hashes: Vec<u64>,
    /// The number of documents that contain each shingle.
    frequencies: Vec<u32>,
    digest: u128,
    documents: u32,
    absent: u32,
    shingling: Shingling,
    absent_weight: u16,
    /// For each prefix, the index of its first slot; after the last prefix, the number of slots.
    directory: Vec<u32>,
    /// Number of bits of a hash after its prefix.
    shift: u32,
    /// One slot for each entry: the low 48 bits of the hash, followed by the 16 bits of the weight. The last
    /// [`AT_ONCE`] slots are unused, so that a look-up can always read [`AT_ONCE`] slots.
    slots: Vec<u64>,
}

/// Number of slots that a look-up always reads, even if some of them belong to another prefix.
const AT_ONCE: usize = 4;
/// Minimum number of bits of a prefix. A slot has the other 48 bits of the hash, so the prefix and the slot identify
/// the hash.
const PREFIX_MIN: u32 = 16;

impl IdfTable {
    /// Creates a table from two columns: `hashes`, ascending, and `frequencies`, the number of documents that contain each
    /// of them. `documents` is the number of all documents, `digest` identifies the table, and `absent` is the frequency of
    /// a shingle without an entry.
    ///
    /// # Errors
    /// [`Error::Invalid`] for columns of different lengths, and for hashes that are not ascending.
    pub fn new(
        digest: u128,
        documents: u32,
        absent: u32,
        shingling: Shingling,
        hashes: Vec<u64>,
        frequencies: Vec<u32>,
    ) -> Result<Self> {
        if hashes.len() != frequencies.len() || u32::try_from(hashes.len()).is_err() {
            return Err(Error::Invalid(format!(
                "an idf table of {} hashes and {} frequencies: expected as many, and fewer than 2^32",
                hashes.len(),
                frequencies.len()
            )));
        }
        if !hashes.is_sorted_by(|a, b| a < b) {
            return Err(Error::Invalid("an idf table whose hashes do not ascend".into()));
        }
        let entries = hashes.len();
        let bits = if entries == 0 { 0 } else { entries.ilog2() + 1 }.max(PREFIX_MIN);
        let shift = 64 - bits;
        let mut directory = vec![0_u32; (1 << bits) + 1];
        let mut slots = Vec::with_capacity(entries + AT_ONCE);
        let (mut last, mut last_weight) = (0, weight(documents, 0));
        for (&hash, &frequency) in hashes.iter().zip(&frequencies) {
            if frequency != last {
                (last, last_weight) = (frequency, weight(documents, frequency));
            }
            directory[(hash >> shift) as usize + 1] += 1;
            slots.push(hash << 16 | u64::from(last_weight));
        }
        slots.resize(entries + AT_ONCE, 0);
        let mut before = 0;
        for count in &mut directory {
            before += *count; // at most the number of entries, which is below 2^32
            *count = before;
        }
        let absent_weight = weight(documents, absent);
        Ok(Self {
            hashes,
            frequencies,
            digest,
            documents,
            absent,
            shingling,
            absent_weight,
            directory,
            shift,
            slots,
        })
    }

    /// Returns the digest that identifies the table. Tables with the same digest give the same weights.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// Returns the parameter value for a simhash that is weighted by this table.
    #[must_use]
    pub fn weights(&self) -> SimhashWeights {
        SimhashWeights::Idf { table: self.digest }
    }

    /// Returns the number of documents that were counted. Documents without shingles are not included.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Returns the frequency that is assigned to a shingle without an entry.
    #[must_use]
    pub fn absent(&self) -> u32 {
        self.absent
    }

    /// Returns the shingling of the counted documents. Parameters that use the table must have the same shingling.
    #[must_use]
    pub fn shingling(&self) -> &Shingling {
        &self.shingling
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns true if the table has no entries. Then all shingles have the same weight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the columns: the hashes of the shingles, ascending, and the number of documents that contain each of them.
    #[must_use]
    pub fn columns(&self) -> (&[u64], &[u32]) {
        (&self.hashes, &self.frequencies)
    }

    /// Returns the shingles and their frequencies, ascending by hash.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u32)> {
        self.hashes.iter().copied().zip(self.frequencies.iter().copied())
    }

    /// Returns the weight of one occurrence of this shingle: the [`weight`] of its frequency.
    #[must_use]
    #[inline]
    pub fn weight(&self, shingle: u64) -> u16 {
        let prefix = (shingle >> self.shift) as usize;
        let (start, end) = (self.directory[prefix] as usize, self.directory[prefix + 1] as usize);
        if end - start > AT_ONCE {
            return self.search(shingle, start, end);
        }
        // Slots from `end` on may belong to another prefix and have the same 48 bits, so they are masked out.
        let mut found = 0;
        for (place, slot) in (start..).zip(&self.slots[start..start + AT_ONCE]) {
            let same = (slot ^ shingle << 16) >> 16 == 0 && place < end;
            found |= if same { *slot as u16 } else { 0 }; // weights are never 0
        }
        if found == 0 { self.absent_weight } else { found }
    }

    #[cold]
    fn search(&self, shingle: u64, start: usize, end: usize) -> u16 {
        // The slots of one prefix are sorted by the low 48 bits of their hashes.
        let slots = &self.slots[start..end];
        match slots.binary_search_by_key(&(shingle << 16 >> 16), |slot| slot >> 16) {
            Ok(place) => slots[place] as u16,
            Err(_) => self.absent_weight,
        }
    }

    /// Returns the fingerprint of a document with these shingles. Each occurrence votes with its [`weight`](Self::weight),
    /// so the result equals [`weighted`] with weights of term frequency times inverse document frequency.
    ///
    /// Takes linear time and allocates nothing. The order of the shingles does not matter.
    #[must_use]
    pub fn simhash(&self, shingles: &[u64]) -> Fingerprint {
        self.simhash_word(shingles, 0)
    }

    /// Like [`simhash`](Self::simhash), for one word of a fingerprint.
    pub(crate) fn simhash_word(&self, shingles: &[u64], word: usize) -> Fingerprint {
        let mut votes = Votes::default();
        let (mut hashes, mut weights) = ([0; ITEMS_MAX], [0; ITEMS_MAX]);
        for some in shingles.chunks(ITEMS_MAX) {
            let (hashes, weights) = (&mut hashes[..some.len()], &mut weights[..some.len()]);
            for ((hash, weight), &shingle) in hashes.iter_mut().zip(weights.iter_mut()).zip(some) {
                (*hash, *weight) = (of_word(shingle, word), self.weight(shingle));
            }
            votes.add(hashes, weights);
        }
        votes.fingerprint()
    }

    /// Returns the fingerprint of a weighted vector. Each weight is multiplied by the feature's weight here.
    #[must_use]
    pub fn vector(&self, features: &[(u64, i64)]) -> Fingerprint {
        self.vector_word(features, 0)
    }

    /// Like [`vector`](Self::vector), for one word of a fingerprint.
    pub(crate) fn vector_word(&self, features: &[(u64, i64)], word: usize) -> Fingerprint {
        // These products cannot overflow, because the weights of the table are below 2^14.
        if features.iter().all(|(_, value)| value.unsigned_abs() < 1 << 49) {
            return weighted(
                features
                    .iter()
                    .map(|&(hash, value)| (of_word(hash, word), value * i64::from(self.weight(hash)))),
            );
        }
        let mut votes = Votes::default();
        for &(hash, value) in features {
            let of_word = of_word(hash, word);
            let hash_of_vote = if value < 0 { !of_word } else { of_word };
            votes.add_one(hash_of_vote, u128::from(value.unsigned_abs()) * u128::from(self.weight(hash)));
        }
        votes.fingerprint()
    }

    /// Checks that parameters use this table and split text into shingles by the same rules.
    ///
    /// # Errors
    /// [`Error::Invalid`] if they do not.
    pub fn check(&self, params: &SketchParams) -> Result<()> {
        match params.idf_table()? {
            Some(table) if table == self.digest => self.check_shingling(&params.shingling),
            Some(table) => Err(Error::Invalid(format!(
                "the parameters name the idf table {table:032x}, and this is {:032x}",
                self.digest
            ))),
            None => Err(Error::Invalid(
                "an idf table for parameters that have no use for it (simhash=idf and minhash-weights=idf have)".into(),
            )),
        }
    }

    /// Checks that a shingling equals the shingling of the table. A table that was counted on full texts can be used
    /// with any [list of spans](Shingling::boilerplate), because it also counted every shingle that remains after the
    /// spans are removed. A table that was counted without the spans of a list can be used with that list only.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the first line that differs.
    pub fn check_shingling(&self, shingling: &Shingling) -> Result<()> {
        let mut shingling = shingling.clone();
        if self.shingling.boilerplate.is_none() {
            shingling.boilerplate = None;
        }
        let (all_mine, all_given) = (self.shingling.fields(), shingling.fields());
        let value = |fields: &[(&'static str, String)], name: &str| {
            fields
                .iter()
                .find(|field| field.0 == name)
                .map_or_else(|| "none".to_owned(), |field| field.1.clone())
        };
        for &(name, _) in all_mine.iter().chain(&all_given) {
            let (mine, given) = (value(&all_mine, name), value(&all_given, name));
            if mine != given {
                return Err(Error::Invalid(format!(
                    "the idf table was made with {name}={mine}, and cannot be used with {name}={given}; make \
                     another table, or cut text as this one says"
                )));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for IdfTable {
    /// Formats the digest and the counts, without the entries.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdfTable")
            .field("digest", &format_args!("{:032x}", self.digest))
            .field("documents", &self.documents)
            .field("entries", &self.len())
            .field("absent", &self.absent)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Folding;

    #[test]
    fn table_of_full_texts_accepts_any_list_of_spans() {
        let plain = Shingling::words(2, 0);
        let [one, other] = [1, 2].map(|list| Shingling { boilerplate: Some(list), ..plain.clone() });
        let folded = Shingling { folding: Folding { invisible: true, marks: None }, ..plain.clone() };
        let table =
            |shingling: &Shingling| IdfTable::new(0, 1, 0, shingling.clone(), vec![7], vec![1]).unwrap();
        for shingling in [&plain, &one, &other] {
            table(&plain).check_shingling(shingling).unwrap();
        }
        table(&one).check_shingling(&one).unwrap();
        for (made, given, why) in [
            (&one, &other, "boilerplate=00000000000000000000000000000001"),
            (&one, &plain, "cannot be used with boilerplate=none"),
            (&plain, &folded, "cannot be used with fold=invisible"),
            (&folded, &plain, "made with fold=invisible"),
            (&plain, &Shingling::words(3, 0), "width=2"),
        ] {
            let error = table(made).check_shingling(given).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn weights_equal_the_rounded_down_logarithm() {
        let real = |n: u32, df: u32| 256.0 * (1.0 + ((f64::from(n) + 1.0) / (f64::from(df) + 1.0)).log2());
        for n in (0..300).chain([999, 1000, 65_535, 1 << 20, 12_345_678, u32::MAX - 1, u32::MAX]) {
            let some =
                [0, 1, 2, 3, 5, 7, 100, 1 << 10, 1 << 31, u32::MAX].into_iter().chain([n / 3, n / 2, n]);
            for df in some.filter(|&df| df <= n) {
                let (exact, found) = (real(n, df), f64::from(weight(n, df)));
                // If the logarithm is within rounding error of an integer, both neighbouring integers are accepted.
                let close = (exact - exact.round()).abs() < 1e-9 && (found - exact).abs() < 1.0 + 1e-9;
                assert!(
                    (found - exact.floor()).abs() < 0.5 || close,
                    "N = {n}, df = {df}: {found} for {exact}"
                );
            }
        }
        for e in 0..32 {
            assert_eq!(weight(u32::MAX, ((1_u64 << e) - 1) as u32), 256 * (33 - e), "2^32 / 2^{e} exactly");
        }
        assert_eq!((weight(0, 0), weight(5, 9), weight(u32::MAX, u32::MAX)), (256, 256, 256));
    }

    #[test]
    fn rarer_shingle_never_weighs_less() {
        for n in [1, 2, 10, 1000, 70_000] {
            let weights: Vec<u16> = (0..=n).map(|df| weight(n, df)).collect();
            assert!(weights.is_sorted_by(|a, b| a >= b), "N = {n}");
        }
    }
}
