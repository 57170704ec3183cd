//! Computes all sketches of a document with one set of parameters.

mod sketch;
mod stored;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use twindex_kernel::Level;

pub use self::sketch::Sketch;

use crate::darts::{WEIGHT_MAX, WEIGHT_MIN, WeightedMinHasher, term_frequencies, weight_out_of_range};
use crate::error::{Error, Result};
use crate::hash::Fast;
use crate::left_out::{LeavesOut, LeftOut};
use crate::occurrences::set_apart;
use crate::params::{MinhashWeights, SimhashWeights, SketchParams, Tokens};
use crate::simhash::of_word;
use crate::whole::{self, ELEMENTS_MAX, WeightUnit};
use crate::{Buffers, Code, IdfTable, MinHasher, Shingler, features, samples, simhash_at, weighted};

/// Computes the [`Sketch`]es of texts, all with the same parameters. It is cheap to clone, and threads can share it.
///
/// ```
/// use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams};
/// use twindex_sketch::{Resemblance, Sketcher};
///
/// let sketcher = Sketcher::new(
///     SketchParams::new(Shingling::words(2, 0)).with_simhash(SimhashWeights::Occurrences).with_minhash(20, 6),
/// )?;
/// let a = sketcher.sketch("The quick brown fox jumps over the lazy dog.")?;
/// let b = sketcher.sketch("the quick brown fox jumps over the lazy cat")?;
/// let apart = a.fingerprint().unwrap().distance(b.fingerprint().unwrap());
/// assert!(apart < 32);
/// assert!(Resemblance::of_signatures(a.signature(), b.signature()).value() > 0.5);
/// assert!(sketcher.sketch("...")?.is_empty());
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketcher {
    params: Arc<SketchParams>,
    digest: u128,
    level: Level,
    shingler: Shingler,
    /// The hash function for the names of features that callers supply.
    names: Fast,
    weights: Option<SimhashWeights>,
    simhash_bits: usize,
    /// The weights of shingles in minima, samples and sets.
    minhash_weights: MinhashWeights,
    /// The unit to which `minhash_weights` are rounded; `None` if they are not rounded.
    unit: Option<WeightUnit>,
    /// Maximum number of [units](crate::params::MinhashParams::unit) of weight in a document.
    elements_max: u64,
    /// The IDF table; `None` if neither `weights` nor `minhash_weights` uses one.
    idf: Option<Arc<IdfTable>>,
    /// The list of spans to remove; `None` if the parameters name no list.
    leaves_out: Option<Arc<dyn LeavesOut>>,
    minhash: Option<Minhash>,
    /// Whether sets are computed for texts with tokens. Always false if the parameters exclude sets.
    makes_sets: bool,
}

#[derive(Clone, Debug)]
struct Minhash {
    hasher: MinHasher,
    rows: usize,
    signature_kept: bool,
}

/// The scratch memory of a [`Sketcher`], reused for each document.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    shingles: Vec<u64>,
    bytes: Vec<u8>,
    hashes: Vec<u64>,
    vector: Vec<(u64, i64)>,
    /// The elements of a document whose shingles are weighted by their occurrences or by whole units.
    elements: Vec<u64>,
    /// Whether the elements of the last document are in `elements`. If not, its elements are its `shingles`.
    has_elements: bool,
    weighted: Vec<(u64, u64)>,
    tokens: usize,
    /// The text without the spans of the list `leaves_out`.
    rest: String,
    left_out: LeftOut,
}

impl Scratch {
    /// Returns how much of the last text was removed; 0 if the parameters name no list of spans.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns the number of tokens of the last document. For a set or vector supplied by the caller, returns the number of
    /// features used.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Returns the shingle hashes of the last document that were used for its sketch: all occurrences in text order, or the
    /// distinct hashes in ascending order if the parameters use both [`SimhashWeights::Distinct`] and
    /// [`MinhashWeights::Distinct`].
    #[must_use]
    pub fn shingles(&self) -> &[u64] {
        &self.shingles
    }

    /// Returns the elements of the last document, in any order. They depend on the weights: the shingle hashes,
    /// possibly repeated; with [`MinhashWeights::Frequencies`], the [occurrences](crate::occurrences) of shingles; with
    /// a unit, the [whole units](crate::whole).
    #[must_use]
    pub fn elements(&self) -> &[u64] {
        if self.has_elements { &self.elements } else { &self.shingles }
    }
}

/// Checks that the parameters name no list of spans, for constructors without such a list.
fn check_no_list(params: &SketchParams) -> Result<()> {
    match params.shingling.boilerplate {
        None => Ok(()),
        Some(list) => Err(Error::Invalid(format!(
            "these parameters (boilerplate={list:032x}) leave spans out of texts, and need the list of them: \
             Sketcher::with_boilerplate takes it, and so do --boilerplate and, in dedup, --without-boilerplate @FILE"
        ))),
    }
}

/// Checks that `list` is the list of spans that the parameters name.
fn check_list(params: &SketchParams, list: &dyn LeavesOut) -> Result<()> {
    match params.shingling.boilerplate {
        Some(named) if named == list.digest() => Ok(()),
        named => Err(Error::Invalid(format!(
            "the list of spans has the digest {:032x}, and these parameters name {}: take the list with which they \
             were made",
            list.digest(),
            named.map_or_else(|| "none".to_owned(), |named| format!("{named:032x}"))
        ))),
    }
}

impl Sketcher {
    /// Creates a sketcher for these parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this build of the crate cannot split text as the parameters require. Also returned if the
    /// parameters weight shingles by an IDF table (use [`with_idf`](Self::with_idf)) or remove the spans of a list (use
    /// [`with_boilerplate`](Self::with_boilerplate)).
    pub fn new(params: impl Into<SketchParams>) -> Result<Self> {
        let params = params.into();
        if let Some(table) = params.idf_table()? {
            let line = if params.simhash == Some(SimhashWeights::Idf { table }) {
                "simhash"
            } else {
                "minhash-weights"
            };
            return Err(Error::Invalid(format!(
                "these parameters ({line}=idf) need the idf table {table:032x}: take the sketcher of the index, which \
                 has it, or Sketcher::with_idf"
            )));
        }
        check_no_list(&params)?;
        Self::made(params, None, None)
    }

    /// Creates a sketcher for parameters that weight shingles by `table`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `table` is not the table that the parameters name, or if its documents were split by other
    /// rules. Other errors are those of [`new`](Self::new).
    pub fn with_idf(params: impl Into<SketchParams>, table: Arc<IdfTable>) -> Result<Self> {
        let params = params.into();
        table.check(&params)?;
        check_no_list(&params)?;
        Self::made(params, Some(table), None)
    }

    /// Creates a sketcher for parameters that remove the spans of `list` from texts. The shingles are computed from the
    /// remaining text.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters do not name this list. Other errors are those of [`new`](Self::new).
    pub fn with_boilerplate(params: impl Into<SketchParams>, list: Arc<dyn LeavesOut>) -> Result<Self> {
        let params = params.into();
        if let Some(table) = params.idf_table()? {
            return Err(Error::Invalid(format!(
                "these parameters need the idf table {table:032x} beside the list of spans: \
                 Sketcher::with_idf_and_boilerplate takes both"
            )));
        }
        check_list(&params, &*list)?;
        Self::made(params, None, Some(list))
    }

    /// Creates a sketcher for parameters that weight shingles by a table and remove the spans of a list from texts. The
    /// table weights the shingles of the remaining text. The counts of the table may come from full texts.
    ///
    /// # Errors
    /// Same as [`with_idf`](Self::with_idf) and [`with_boilerplate`](Self::with_boilerplate).
    pub fn with_idf_and_boilerplate(
        params: impl Into<SketchParams>,
        table: Arc<IdfTable>,
        list: Arc<dyn LeavesOut>,
    ) -> Result<Self> {
        let params = params.into();
        table.check(&params)?;
        check_list(&params, &*list)?;
        Self::made(params, Some(table), Some(list))
    }

    fn made(
        params: SketchParams,
        idf: Option<Arc<IdfTable>>,
        leaves_out: Option<Arc<dyn LeavesOut>>,
    ) -> Result<Self> {
        params.check_simhash_bits()?;
        Ok(Self {
            digest: params.digest(),
            level: Level::chosen(),
            shingler: Shingler::new(&params.shingling)?,
            names: Fast::new(params.shingling.seed),
            weights: params.simhash,
            simhash_bits: params.simhash_bits.into(),
            minhash_weights: params.minhash_weights(),
            unit: params.minhash.and_then(|minhash| minhash.unit),
            elements_max: ELEMENTS_MAX,
            idf,
            leaves_out,
            minhash: params.minhash.map(|minhash| Minhash {
                hasher: MinHasher::of(minhash.family, minhash.minima()),
                rows: usize::from(minhash.rows),
                signature_kept: minhash.signature_bits > 0,
            }),
            makes_sets: params.sets,
            params: Arc::new(params),
        })
    }

    /// Returns the same sketcher, except that it computes [sets](Sketch::set) only for texts without tokens. It suits
    /// callers that already have the shingle hashes of all other texts.
    #[must_use]
    pub fn with_sets_of_wordless_only(mut self) -> Self {
        self.makes_sets = false;
        self
    }

    /// Returns the same sketcher with a maximum of `elements` [units](crate::params::MinhashParams::unit) per document;
    /// documents with more units are refused. A maximum above [`ELEMENTS_MAX`] is reduced to [`ELEMENTS_MAX`]. Each
    /// unit takes 8 bytes of memory, so callers with little memory can set a lower maximum.
    #[must_use]
    pub fn with_elements_max(mut self, elements: u64) -> Self {
        self.elements_max = elements.min(ELEMENTS_MAX);
        self
    }

    /// Returns the same sketcher restricted to the instructions of `level`, for tests and measurements. The sketches
    /// stay the same. Weighted votes and the shingle hashes `rabin` and `rabin-karp` still use the level of the
    /// process, [`Level::chosen`].
    #[must_use]
    pub fn at(mut self, level: Level) -> Self {
        self.level = level;
        self.shingler = self.shingler.at(level);
        self.minhash = self.minhash.map(|minhash| Minhash { hasher: minhash.hasher.at(level), ..minhash });
        self
    }

    /// Computes the sketch of one document.
    ///
    /// Takes time linear in the length of the text. Documents of fewer than about t shingles, for t minima, take t more
    /// steps for each shingle. Takes 8 bytes of memory for each token, plus twice the longest token. To sketch many
    /// documents, see [`sketch_into`](Self::sketch_into).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters are for features supplied by the caller ([`Tokens::Features`]) and not for
    /// texts. With weights in [units](crate::params::MinhashParams::unit), also returned if the text has more than
    /// [`ELEMENTS_MAX`](crate::whole::ELEMENTS_MAX) units, or more than the maximum set by
    /// [`with_elements_max`](Self::with_elements_max).
    pub fn sketch(&self, text: &str) -> Result<Sketch> {
        let mut sketch = Sketch::default();
        self.sketch_into(text, &mut Scratch::default(), &mut sketch)?;
        Ok(sketch)
    }

    /// Like [`sketch`](Self::sketch), for bytes that should be UTF-8.
    ///
    /// ```
    /// # use twindex_sketch::{SketchParams, Sketcher, params::{Shingling, SimhashWeights}};
    /// # let params = SketchParams::new(Shingling::words(5, 0)).with_simhash(SimhashWeights::Occurrences);
    /// # let sketcher = Sketcher::new(params)?;
    /// let error = sketcher.sketch_bytes(b"Grammatik f\xfcr").unwrap_err();
    /// assert_eq!(error.to_string(), "not UTF-8: byte 0xfc at offset 11");
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] with the offset of the first byte that is not UTF-8. Other errors are those of
    /// [`sketch`](Self::sketch).
    pub fn sketch_bytes(&self, text: &[u8]) -> Result<Sketch> {
        match std::str::from_utf8(text) {
            Ok(text) => self.sketch(text),
            Err(error) => {
                let offset = error.valid_up_to();
                Err(Error::Invalid(format!("not UTF-8: byte {:#04x} at offset {offset}", text[offset])))
            }
        }
    }

    /// Like [`sketch`](Self::sketch), but overwrites `sketch`. Allocates no memory once `scratch` and `sketch` have grown to
    /// the longest document.
    ///
    /// # Errors
    /// Same as [`sketch`](Self::sketch).
    pub fn sketch_into(&self, text: &str, scratch: &mut Scratch, sketch: &mut Sketch) -> Result<()> {
        if self.params.shingling.tokens == Tokens::Features {
            return Err(Error::Invalid(
                "these parameters (tokens=features) are for sets of features, not for texts".into(),
            ));
        }
        let Scratch { buffers, shingles, rest, left_out, .. } = &mut *scratch;
        *left_out = match &self.leaves_out {
            None => LeftOut::default(),
            Some(list) => list.leave_out(text, rest)?,
        };
        // The shingles are computed from the text without the spans of the list.
        let counted = if left_out.words > 0 { &**rest } else { text };
        if self.takes_distinct() {
            self.shingler.distinct(counted, buffers, shingles);
        } else {
            // Unweighted minima can be computed from all occurrences, because repetitions do not change them.
            self.shingler.occurrences(counted, buffers, shingles);
        }
        scratch.tokens = scratch.buffers.tokens();
        self.finish_unweighted(scratch, sketch)?;
        if self.params.sets && scratch.shingles.is_empty() {
            // The set of a text without shingles is a hash of the whole text, including removed spans. So only exact
            // copies have the same set.
            sketch.set.push(self.names.single(text.as_bytes()));
        }
        Ok(())
    }

    /// Replaces the [set](Sketch::set) of a sketch with a set that only documents with the same `bytes` have. Lossy
    /// decoding can give documents of different bytes the same text; this method still distinguishes them. Does nothing
    /// if the parameters keep no sets.
    ///
    /// ```
    /// # use twindex_sketch::{SketchParams, Sketcher, params::Shingling};
    /// # let mut params = SketchParams::new(Shingling::words(1, 0));
    /// params.sets = true;
    /// let sketcher = Sketcher::new(params)?;
    /// let (mut one, mut other) = (sketcher.sketch("caf? au lait")?, sketcher.sketch("caf? au lait")?);
    /// sketcher.replace_set(b"caf\xe9 au lait", &mut one);
    /// sketcher.replace_set(b"caf\xe8 au lait", &mut other);
    /// assert_ne!(one.set(), other.set());
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    pub fn replace_set(&self, bytes: &[u8], sketch: &mut Sketch) {
        if self.params.sets {
            sketch.set.clear();
            sketch.set.push(self.names.single(bytes));
        }
    }

    /// Returns the hash that identifies an element of a set or vector supplied by the caller. It is the hash of the shingle
    /// whose only token is `name`, with the seed of the parameters.
    ///
    /// ```
    /// use twindex_sketch::params::{Shingling, SketchParams, Tokens};
    /// use twindex_sketch::{Scratch, Sketch, Sketcher};
    ///
    /// let features = Shingling::words(1, 0).with_tokens(Tokens::Features)?;
    /// let sketcher = Sketcher::new(SketchParams::new(features).with_minhash(6, 14))?;
    /// let set: Vec<u64> = ["add", "load", "store"].map(|name| sketcher.feature(name.as_bytes())).into();
    /// let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    /// sketcher.sketch_features(&set, &mut scratch, &mut sketch)?;
    /// assert_eq!(sketch.features().len(), 6);
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    #[must_use]
    pub fn feature(&self, name: &[u8]) -> u64 {
        self.names.single(name)
    }

    /// Like [`feature`](Self::feature), for an element that is identified by a number. Hashes its eight little-endian
    /// bytes.
    #[must_use]
    pub fn feature_number(&self, number: u64) -> u64 {
        self.names.single(&number.to_le_bytes())
    }

    /// Computes the sketch of a set supplied by the caller and stores it in `sketch`. The set can be the features of an
    /// image, a sound, a program or any other object. A feature is a well-mixed 64-bit hash, as returned by
    /// [`feature`](Self::feature).
    ///
    /// A feature that is given n times has n votes in the simhash, unless the parameters use [`SimhashWeights::Distinct`].
    /// An empty set gives an empty sketch. The order does not matter.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters are for texts. Features require parameters with [`Tokens::Features`], so that
    /// texts and features are never mixed in one index by accident.
    pub fn sketch_features(
        &self,
        features: &[u64],
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> Result<()> {
        self.check_features()?;
        scratch.shingles.clear();
        scratch.shingles.extend_from_slice(features);
        if self.takes_distinct() {
            scratch.shingles.sort_unstable();
            scratch.shingles.dedup();
        }
        scratch.tokens = scratch.shingles.len();
        self.finish_unweighted(scratch, sketch)
    }

    /// Returns true if no part of the sketch depends on the number of occurrences of a shingle.
    fn takes_distinct(&self) -> bool {
        self.weights == Some(SimhashWeights::Distinct) && self.minhash_weights == MinhashWeights::Distinct
    }

    /// Computes the sketch of a weighted vector supplied by the caller and stores it in `sketch`. The vector is a list of
    /// features, as in [`sketch_features`](Self::sketch_features), each with a weight. The weights of a repeated feature are
    /// added.
    ///
    /// - The simhash is computed by [`weighted`]. If the parameters use [`SimhashWeights::Idf`], each weight is first
    ///   multiplied by the inverse document frequency of its feature. Weights may be negative, and are fixed-point numbers
    ///   in any unit, because only their ratios matter.
    /// - Minima, samples and sets are computed from the features whose total weight is above 0. If the minima are
    ///   [weighted](crate::params::MinhashParams::weights), they use these weights, in units of 2^-16. Without a unit, a
    ///   weight must be at least 1/16 and less than 2^24. If the parameters use [`MinhashWeights::Idf`], the weights are
    ///   multiplied by the features' inverse document frequencies. With a [unit](crate::params::MinhashParams::unit),
    ///   weights are rounded to whole units. Each unit is an element of minima of any family, of samples and of sets.
    /// - The sketch is empty if the total weight of every feature is 0, or if the parameters keep minima or samples and no
    ///   total weight is above 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters are for texts, see [`sketch_features`](Self::sketch_features), or if they
    /// give each distinct feature one vote ([`SimhashWeights::Distinct`]), which would ignore weights. If minima are
    /// weighted with a unit, also returned for a positive weight below half a unit. If they are weighted without a
    /// unit, also returned for a weight out of range, for a family other than
    /// [`Family::Darts`](crate::params::Family::Darts), and for parameters that keep sets or samples, which contain
    /// whole elements only.
    pub fn sketch_weighted(
        &self,
        features: &[(u64, i64)],
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> Result<()> {
        self.check_features()?;
        if self.weights == Some(SimhashWeights::Distinct) {
            return Err(Error::Invalid(
                "these parameters (simhash=distinct) let each feature vote once; weights need simhash=occurrences \
                 or simhash=idf"
                    .into(),
            ));
        }
        let Scratch { shingles, vector, elements, has_elements, weighted: weighted_features, .. } =
            &mut *scratch;
        vector.clear();
        vector.extend_from_slice(features);
        vector.sort_unstable_by_key(|&(feature, _)| feature);
        shingles.clear();
        self.check_vectors()?;
        let weights_count = self.minhash_weights != MinhashWeights::Distinct;
        *has_elements = self.unit.is_some();
        weighted_features.clear();
        elements.clear();
        let mut is_zero = true;
        for same in vector.chunk_by(|(a, _), (b, _)| a == b) {
            let weight: i128 = same.iter().map(|&(_, weight)| i128::from(weight)).sum();
            is_zero &= weight == 0;
            if weight <= 0 {
                continue;
            }
            shingles.push(same[0].0);
            if let Some(unit) = self.unit {
                let count = unit.count(weight.unsigned_abs(), self.idf_of_minima(same[0].0));
                if count == 0 {
                    return Err(Error::Invalid(format!(
                        "a weight of {weight} / 65536: less than half of the unit {unit}; multiply all weights by one \
                         number, or take a smaller unit"
                    )));
                }
                weighted_features.push((same[0].0, whole_weight(count)));
                whole::append(same[0].0, count, self.elements_max, elements)?;
            } else if weights_count {
                let units =
                    u64::try_from(weight).ok().filter(|units| (WEIGHT_MIN..=WEIGHT_MAX).contains(units));
                let units = units.ok_or_else(|| Error::Invalid(weight_out_of_range(weight)))?;
                weighted_features.push((same[0].0, self.by_idf(same[0].0, units)));
            }
        }
        let sets_kept = self.params.minhash.is_some() || self.params.bottom > 0 || self.params.modulus > 0;
        let counts = if sets_kept { !shingles.is_empty() } else { !is_zero };
        let votes = |word| match self.idf_of_fingerprints() {
            Some(idf) => idf.vector_word(features, word),
            None => weighted(features.iter().map(|&(hash, weight)| (of_word(hash, word), weight))),
        };
        let code = self.weights.filter(|_| counts).map(|_| Code::of_votes(self.simhash_bits, votes));
        scratch.tokens = scratch.shingles.len();
        self.finish(scratch, sketch, code);
        Ok(())
    }

    /// Stores in `sketch` a fingerprint that was supplied by the caller and not computed from a text.
    ///
    /// ```
    /// use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams, Tokens};
    /// use twindex_sketch::{Fingerprint, Scratch, Sketch, Sketcher};
    ///
    /// let features = Shingling::words(1, 0).with_tokens(Tokens::Features)?;
    /// let mut params = SketchParams::new(features);
    /// params.simhash = Some(SimhashWeights::Occurrences);
    /// let sketcher = Sketcher::new(params)?;
    /// let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    /// sketcher.sketch_fingerprint(Fingerprint(7), &mut scratch, &mut sketch)?;
    /// assert_eq!(sketch.fingerprint(), Some(Fingerprint(7)));
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters keep no simhash of this number of bits, or if they keep minima, samples or sets,
    /// which cannot be computed from a fingerprint.
    pub fn sketch_fingerprint(
        &self,
        fingerprint: impl Into<Code>,
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> Result<()> {
        let keeps_sets = self.params.minhash.is_some()
            || self.params.bottom > 0
            || self.params.modulus > 0
            || self.params.sets;
        if self.weights.is_none() || keeps_sets {
            return Err(Error::Invalid(
                "these parameters keep more than a simhash, and a fingerprint is nothing else".into(),
            ));
        }
        let code = fingerprint.into();
        if code.bits() != self.simhash_bits {
            return Err(Error::Invalid(format!(
                "these parameters keep fingerprints of {} bits, and this one has {}",
                self.simhash_bits,
                code.bits()
            )));
        }
        scratch.shingles.clear();
        scratch.tokens = 1;
        self.finish(scratch, sketch, Some(code));
        Ok(())
    }

    /// Checks that weights without a unit, which can be fractions, are used with the family `darts` only, and without
    /// sets and samples.
    fn check_vectors(&self) -> Result<()> {
        if self.minhash_weights == MinhashWeights::Distinct || self.unit.is_some() {
            return Ok(());
        }
        if self.darts().is_none() {
            return Err(Error::Invalid(
                "vectors of weights need minhash=darts, or a minhash-unit, where minhash-weights is not `distinct`".into(),
            ));
        }
        if self.params.sets || self.params.bottom > 0 || self.params.modulus > 0 {
            return Err(Error::Invalid(
                "vectors of weights cannot be kept as sets, bottom or modulus, which hold whole elements: leave these out, or \
                 give a minhash-unit, in which weights are whole"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Returns the hasher of weighted sets, or `None` if the family is not `darts`.
    fn darts(&self) -> Option<&WeightedMinHasher> {
        self.minhash.as_ref().and_then(|minhash| minhash.hasher.weighted())
    }

    /// Returns the table that weights fingerprints, or `None` if fingerprints are not weighted by a table.
    fn idf_of_fingerprints(&self) -> Option<&IdfTable> {
        self.idf.as_deref().filter(|_| matches!(self.weights, Some(SimhashWeights::Idf { .. })))
    }

    /// Returns a weight of the minima in units of 2^-16: `units`, multiplied by the shingle's inverse document
    /// frequency if an IDF table weights the minima. Clamps the product to the range of weights.
    fn by_idf(&self, shingle: u64, units: u64) -> u64 {
        // Cannot overflow: weights of the table are below 2^14, and `units` is below 2^40.
        ((units * u64::from(self.idf_of_minima(shingle))) >> 8).clamp(WEIGHT_MIN, WEIGHT_MAX)
    }

    /// Returns the inverse document frequency of a shingle in units of 2^-8, or 256 (1.0) if no IDF table weights the
    /// minima.
    fn idf_of_minima(&self, shingle: u64) -> u16 {
        let by_table = matches!(self.minhash_weights, MinhashWeights::Idf { .. });
        self.idf.as_deref().filter(|_| by_table).map_or(1 << 8, |idf| idf.weight(shingle))
    }

    fn check_features(&self) -> Result<()> {
        if self.params.shingling.tokens == Tokens::Features {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "these parameters (tokens={}) are for texts; sets and vectors of features need tokens=features",
            self.params.shingling.tokens
        )))
    }

    /// Computes the sketch from the shingles in `scratch`. The caller supplies no weights.
    fn finish_unweighted(&self, scratch: &mut Scratch, sketch: &mut Sketch) -> Result<()> {
        let Scratch { shingles, hashes, elements, has_elements, weighted, .. } = &mut *scratch;
        weighted.clear();
        elements.clear();
        if let Some(unit) = self.unit {
            hashes.clear();
            hashes.extend_from_slice(shingles);
            hashes.sort_unstable();
            for same in hashes.chunk_by(|a, b| a == b) {
                let count = unit.count((same.len() as u128) << 16, self.idf_of_minima(same[0]));
                weighted.push((same[0], whole_weight(count)));
                whole::append(same[0], count, self.elements_max, elements)?;
            }
        } else if self.minhash_weights != MinhashWeights::Distinct {
            elements.extend_from_slice(shingles);
            if self.darts().is_some() {
                term_frequencies(elements, weighted);
                for (shingle, weight) in weighted {
                    *weight = self.by_idf(*shingle, *weight);
                }
            }
        }
        let mut distinct = Vec::new();
        let voters = if self.weights == Some(SimhashWeights::Distinct) && !self.takes_distinct() {
            distinct.extend_from_slice(shingles);
            distinct.sort_unstable();
            distinct.dedup();
            &distinct
        } else {
            &*shingles
        };
        let votes = |word| {
            if let Some(idf) = self.idf_of_fingerprints() {
                return idf.simhash_word(voters, word);
            }
            if word == 0 {
                return simhash_at(self.level, voters);
            }
            hashes.clear();
            hashes.extend(voters.iter().map(|&hash| of_word(hash, word)));
            simhash_at(self.level, hashes)
        };
        let has_code = self.weights.is_some() && !shingles.is_empty();
        let code = has_code.then(|| Code::of_votes(self.simhash_bits, votes));
        *has_elements = self.unit.is_some() || self.minhash_weights == MinhashWeights::Frequencies;
        if *has_elements && self.unit.is_none() {
            set_apart(elements);
        }
        self.finish(scratch, sketch, code);
        Ok(())
    }

    /// Removes the data of the previous document from `sketch`.
    fn clear(&self, sketch: &mut Sketch) {
        if sketch.digest != self.digest {
            sketch.params = Some(Arc::clone(&self.params));
            sketch.digest = self.digest;
        }
        sketch.code = None;
        sketch.signature.clear();
        sketch.features.clear();
        sketch.bottom.clear();
        sketch.modular.clear();
        sketch.set.clear();
    }

    /// Completes the sketch from `code` and `scratch`. Weighted minima of the family `darts` are computed from
    /// `weighted`. The other sketches are computed from `elements` if `has_elements`, otherwise from `shingles`.
    fn finish(&self, scratch: &mut Scratch, sketch: &mut Sketch, code: Option<Code>) {
        let Scratch { bytes, shingles, hashes, elements, has_elements, weighted, .. } = scratch;
        self.clear(sketch);
        sketch.code = code;
        if shingles.is_empty() {
            return;
        }
        let elements = if *has_elements { elements } else { shingles };
        if let Some(minhash) = &self.minhash {
            match minhash.hasher.weighted().filter(|_| self.minhash_weights != MinhashWeights::Distinct) {
                Some(darts) => darts.minima_of(|| weighted.iter().copied(), &mut sketch.signature),
                None => minhash.hasher.signature(elements, &mut sketch.signature),
            }
            features(&sketch.signature, minhash.rows, bytes, &mut sketch.features);
            if !minhash.signature_kept {
                sketch.signature.clear();
            }
        }
        if self.params.bottom > 0 {
            samples::bottom(elements, self.params.bottom.into(), hashes, &mut sketch.bottom);
        }
        if self.params.modulus > 0 {
            samples::modular(elements, self.params.modulus, &mut sketch.modular);
        }
        if self.makes_sets {
            sketch.set.extend_from_slice(elements);
            sketch.set.sort_unstable();
            sketch.set.dedup();
        }
    }

    /// Returns the shingler, which computes only shingles, for exact comparisons.
    #[must_use]
    pub fn shingler(&self) -> &Shingler {
        &self.shingler
    }

    /// Returns the parameters.
    #[must_use]
    pub fn params(&self) -> &SketchParams {
        &self.params
    }

    /// Returns the digest of the parameters, [`SketchParams::digest`], which every sketch contains.
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }
}

/// Converts a number of units to a weight for [`darts`](crate::darts), as if the unit were 1. Only the ratios of
/// weights matter. Numbers of 2^24 or more give the greatest weight; [`whole::append`] refuses documents of more than
/// 2^24 units.
fn whole_weight(count: u128) -> u64 {
    u64::try_from(count << 16).unwrap_or(WEIGHT_MAX).min(WEIGHT_MAX)
}
