//! Inverse document frequencies: how much the occurrence of a shingle says of a document, by how few documents of a
//! collection have it.
//!
//! Spärck Jones, *A statistical interpretation of term specificity and its application in retrieval*, 1972. A simhash
//! whose shingles vote with these weights (weight of a shingle in a document = its occurrences x its inverse document
//! frequency) is decided by what is particular to a document, not by what every document has.
//!
//! **Weight.** A shingle that is in d of N documents has, in fixed point of 8 fractional bits, the weight
//! 256 (1 + log2((N + 1) / (d + 1))), rounded down, by integers alone, so that it is the same on every machine:
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
//! The logarithm comes bit by bit from squarings of a mantissa that is rounded down to 63 fractional bits; the steps
//! above, not the real logarithm, are the definition. The ones added to N and d keep shingles that no document has
//! apart from a division by zero.
//!
//! **Absent shingles.** A table need not have an entry for each shingle: rare ones are left out, as they are most of
//! all shingles and have nearly the same weight. A shingle without an entry is taken to have the least frequency
//! that was left out, or 0 if none was.
//!
//! **Look-up.** Beside its columns the table has slots of 64 bits in the order of the hashes: the low 48
//! bits of a hash and its weight, and a directory over the upper bits, of about as many prefixes as entries, at least
//! 2^16, so that a prefix and 48 bits are all of a hash. A look-up reads two numbers of the directory and, without a
//! branch, the first four slots of the prefix; the few prefixes with more are searched by halves.

use twindex_kernel::weighted::ITEMS_MAX;

use crate::error::{Error, Result};
use crate::params::{Shingling, SimhashWeights, SketchParams};
use crate::simhash::Fingerprint;
use crate::weighted::{Votes, weighted};

/// The weight of a shingle that `frequency` of `documents` documents have: 256 (1 + log2((documents + 1) /
/// (frequency + 1))), rounded down by the steps that the [module](self) defines. A frequency above `documents` counts
/// as `documents`, which has the least weight, 256.
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
    // The greatest e with b * 2^e <= a is the difference of the logarithms, or one less.
    let mut exponent = a.ilog2() - b.ilog2();
    if b << exponent > a {
        exponent -= 1;
    }
    let mut mantissa = (a << 63) / (b << exponent);
    let mut fraction = 0;
    for _ in 0..8 {
        let square = (mantissa * mantissa) >> 63;
        let over = square >> 64; // 1 where the square of the mantissa is 2 or more
        fraction = fraction << 1 | over as u16;
        mantissa = square >> over;
    }
    256 + 256 * exponent as u16 + fraction
}

/// In how many documents of a collection each shingle is, and what it weighs for that.
///
/// Made from counted columns, and never changed; the crate `twindex` counts documents (`IdfBuilder`) and keeps the files.
/// Its [`digest`](Self::digest) is in the parameters of an index ([`SimhashWeights::Idf`]), so that fingerprints made
/// by different tables are never compared.
///
/// Takes 24 to 28 bytes of memory an entry, and 256 KiB.
#[derive(Clone, PartialEq, Eq)]
pub struct IdfTable {
    /// Shingles, ascending.
    hashes: Vec<u64>,
    /// In how many documents each of them is.
    frequencies: Vec<u32>,
    digest: u128,
    documents: u32,
    absent: u32,
    shingling: Shingling,
    absent_weight: u16,
    /// For each prefix where its slots begin, and the number of slots.
    directory: Vec<u32>,
    /// Bits of a hash after its prefix.
    shift: u32,
    /// Low 48 bits of a hash above 16 of its weight; [`AT_ONCE`] more at the end, which are none.
    slots: Vec<u64>,
}

/// Slots that a look-up reads whether they are of its prefix or not.
const AT_ONCE: usize = 4;
/// Fewest bits of a prefix: 48 more are in a slot.
const PREFIX_MIN: u32 = 16;

impl IdfTable {
    /// A table of these columns: `hashes` ascending, each with the number of the `documents` that have it in
    /// `frequencies`. `digest` identifies the table, and `absent` is the frequency of a shingle that it does not list.
    ///
    /// # Errors
    /// [`Error::Invalid`] for columns of different lengths, and for hashes that do not ascend.
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
            before += *count; // at most the entries, which are fewer than 2^32
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

    /// Identifies the table: two of the same digest give the same weights.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// The value of the parameters that use this table.
    #[must_use]
    pub fn weights(&self) -> SimhashWeights {
        SimhashWeights::Idf { table: self.digest }
    }

    /// Documents that were counted, those without shingles left out.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The frequency that a shingle without an entry is taken to have.
    #[must_use]
    pub fn absent(&self) -> u32 {
        self.absent
    }

    /// How the documents were cut; parameters that use the table must say the same.
    #[must_use]
    pub fn shingling(&self) -> &Shingling {
        &self.shingling
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// True for a table without entries, in which all shingles weigh the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The columns: shingles, ascending, and in how many documents each of them is.
    #[must_use]
    pub fn columns(&self) -> (&[u64], &[u32]) {
        (&self.hashes, &self.frequencies)
    }

    /// The shingles and their frequencies, ascending by hash.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u32)> {
        self.hashes.iter().copied().zip(self.frequencies.iter().copied())
    }

    /// The weight of an occurrence of this shingle: [`weight`] of its frequency.
    #[must_use]
    #[inline]
    pub fn weight(&self, shingle: u64) -> u16 {
        let prefix = (shingle >> self.shift) as usize;
        let (start, end) = (self.directory[prefix] as usize, self.directory[prefix + 1] as usize);
        if end - start > AT_ONCE {
            return self.search(shingle, start, end);
        }
        // Slots after the end may be of another prefix and have the same 48 bits; those are masked.
        let mut found = 0;
        for (place, slot) in (start..).zip(&self.slots[start..start + AT_ONCE]) {
            let same = (slot ^ shingle << 16) >> 16 == 0 && place < end;
            found |= if same { *slot as u16 } else { 0 }; // no weight is 0
        }
        if found == 0 { self.absent_weight } else { found }
    }

    #[cold]
    fn search(&self, shingle: u64, start: usize, end: usize) -> u16 {
        // The slots of one prefix ascend by the low 48 bits of their hashes.
        let slots = &self.slots[start..end];
        match slots.binary_search_by_key(&(shingle << 16 >> 16), |slot| slot >> 16) {
            Ok(place) => slots[place] as u16,
            Err(_) => self.absent_weight,
        }
    }

    /// The fingerprint of a document with these shingles, each occurrence a vote of its [`weight`](Self::weight):
    /// [`weighted`] by term frequency times inverse document frequency.
    ///
    /// Linear time, no allocation; the order of the shingles does not matter.
    #[must_use]
    pub fn simhash(&self, shingles: &[u64]) -> Fingerprint {
        let mut votes = Votes::default();
        let mut weights = [0; ITEMS_MAX];
        for some in shingles.chunks(ITEMS_MAX) {
            let weights = &mut weights[..some.len()];
            for (weight, &shingle) in weights.iter_mut().zip(some) {
                *weight = self.weight(shingle);
            }
            votes.add(some, weights);
        }
        votes.fingerprint()
    }

    /// The fingerprint of a vector whose weights are multiplied by those of the table.
    #[must_use]
    pub fn vector(&self, features: &[(u64, i64)]) -> Fingerprint {
        // Weights of the table are below 2^14.
        if features.iter().all(|(_, value)| value.unsigned_abs() < 1 << 49) {
            return weighted(
                features.iter().map(|&(hash, value)| (hash, value * i64::from(self.weight(hash)))),
            );
        }
        let mut votes = Votes::default();
        for &(hash, value) in features {
            let hash_of_vote = if value < 0 { !hash } else { hash };
            votes.add_one(hash_of_vote, u128::from(value.unsigned_abs()) * u128::from(self.weight(hash)));
        }
        votes.fingerprint()
    }

    /// Refuses parameters that name another table, or none, or cut text in another way.
    ///
    /// # Errors
    /// [`Error::Invalid`].
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

    /// Refuses to be used with documents that are cut in another way, naming the first line that differs. A table that
    /// counted all words has a weight for every shingle that a [list of spans](Shingling::boilerplate) leaves in a text, so
    /// that it goes with any list; one that was made without the spans of a list goes with that list alone.
    ///
    /// # Errors
    /// [`Error::Invalid`].
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
    /// Its digest and counts, not its entries.
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
    fn table_of_all_words_goes_with_any_list_of_spans_and_one_without_the_spans_with_its_own() {
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
    fn weights_are_the_logarithm_rounded_down() {
        let real = |n: u32, df: u32| 256.0 * (1.0 + ((f64::from(n) + 1.0) / (f64::from(df) + 1.0)).log2());
        for n in (0..300).chain([999, 1000, 65_535, 1 << 20, 12_345_678, u32::MAX - 1, u32::MAX]) {
            let some =
                [0, 1, 2, 3, 5, 7, 100, 1 << 10, 1 << 31, u32::MAX].into_iter().chain([n / 3, n / 2, n]);
            for df in some.filter(|&df| df <= n) {
                let (exact, found) = (real(n, df), f64::from(weight(n, df)));
                // If the logarithm is an integer within the error of floats, both neighbours are accepted.
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
    fn a_rarer_shingle_never_weighs_less() {
        for n in [1, 2, 10, 1000, 70_000] {
            let weights: Vec<u16> = (0..=n).map(|df| weight(n, df)).collect();
            assert!(weights.is_sorted_by(|a, b| a >= b), "N = {n}");
        }
    }
}
