//! Text to numbers: what two documents are compared by.
//!
//! ```text
//! text --token--> words --shingle--> hashes of w words --+--simhash--> fingerprint
//!                                                        +--minhash--> signature --feature--> features
//! ```
//!
//! [`Sketcher`] does all of it with one set of parameters, and is all that most programs need. The modules
//! below are for those who bring their own tokens, sets or signatures; each names the paper it follows and
//! where it departs from it, and defines its numbers completely.
//!
//! The same text and parameters give the same sketch on every machine and with every version: what is
//! computed here stands in files. Nothing in this module reads files, clocks or random numbers, or starts
//! threads.

pub mod estimate;
pub mod feature;
pub mod minhash;
pub mod shingle;
pub mod simhash;
pub mod token;
mod token_tables;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::params::{Params, SimhashWeights};

pub use estimate::{Resemblance, containment, jaccard};
pub use feature::features;
pub use minhash::{MinHasher, matches, pack};
pub use shingle::Shingler;
pub use simhash::{Fingerprint, simhash, weighted};
pub use token::{UNICODE_VERSION, tokens};

/// Makes [`Sketch`]es of texts, all with the same parameters. Cheap to clone, and shared by threads at will.
///
/// ```
/// use twindex::Params;
/// use twindex::sketch::{Resemblance, Sketcher};
///
/// let sketcher = Sketcher::new(&Params::builder().words(2).simhash(3).minhash(20, 6).build()?);
/// let a = sketcher.sketch("The quick brown fox jumps over the lazy dog.");
/// let b = sketcher.sketch("the quick brown fox jumps over the lazy cat");
/// let apart = a.fingerprint().unwrap().distance(b.fingerprint().unwrap());
/// assert!(apart < 32);
/// assert!(Resemblance::of_signatures(a.signature(), b.signature()).value() > 0.5);
/// assert!(sketcher.sketch("...").is_empty());
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketcher {
    params: Arc<Params>,
    digest: u128,
    shingler: Shingler,
    weights: Option<SimhashWeights>,
    minhash: Option<Minhash>,
}

#[derive(Clone, Debug)]
struct Minhash {
    hasher: MinHasher,
    rows: usize,
    signature_kept: bool,
}

/// Working memory of a [`Sketcher`], reused from document to document.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    bytes: Vec<u8>,
    shingles: Vec<u64>,
}

impl Scratch {
    /// The shingle hashes of the document sketched last, as they went into its sketch: occurrences in the order of
    /// the text, or the sorted distinct ones where [`SimhashWeights::Distinct`] asked for those.
    #[must_use]
    pub fn shingles(&self) -> &[u64] {
        &self.shingles
    }
}

impl Sketcher {
    /// A sketcher for these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            params: Arc::new(params.clone()),
            digest: params.digest(),
            shingler: Shingler::new(&params.shingling),
            weights: params.simhash.map(|simhash| simhash.weights),
            minhash: params.minhash.map(|minhash| Minhash {
                hasher: MinHasher::new(minhash.minima()),
                rows: usize::from(minhash.rows),
                signature_kept: minhash.signature_bits > 0,
            }),
        }
    }

    /// The sketch of one document.
    ///
    /// Time is linear in the text, plus t steps for each shingle of documents of fewer than about t shingles,
    /// for t minima. Memory is 8 bytes a token, and the longest token. For many documents, see
    /// [`sketch_into`](Self::sketch_into).
    #[must_use]
    pub fn sketch(&self, text: &str) -> Sketch {
        let mut sketch = Sketch::default();
        self.sketch_into(text, &mut Scratch::default(), &mut sketch);
        sketch
    }

    /// As [`sketch`](Self::sketch), replacing what `sketch` holds: no memory is allocated once `scratch` and
    /// `sketch` have grown to the longest document.
    pub fn sketch_into(&self, text: &str, scratch: &mut Scratch, sketch: &mut Sketch) {
        let Scratch { bytes, shingles } = scratch;
        if sketch.digest != self.digest {
            sketch.params = Some(Arc::clone(&self.params));
            sketch.digest = self.digest;
        }
        sketch.fingerprint = None;
        if self.weights == Some(SimhashWeights::Distinct) {
            self.shingler.distinct(text, bytes, shingles);
        } else {
            self.shingler.occurrences(text, bytes, shingles); // minima do not mind repetitions
        }
        sketch.signature.clear();
        sketch.features.clear();
        if shingles.is_empty() {
            return;
        }
        sketch.fingerprint = self.weights.map(|_| simhash(shingles));
        if let Some(minhash) = &self.minhash {
            minhash.hasher.signature(shingles, &mut sketch.signature);
            features(&sketch.signature, minhash.rows, bytes, &mut sketch.features);
            if !minhash.signature_kept {
                sketch.signature.clear();
            }
        }
    }

    /// The first half of sketching alone, for exact comparisons.
    #[must_use]
    pub fn shingler(&self) -> &Shingler {
        &self.shingler
    }

    /// The digest of the parameters, [`Params::digest`]; it stands in every sketch.
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }
}

/// What is kept of one document's text: its fingerprint, signature and features, as far as the parameters ask
/// for them.
///
/// A document without tokens has an empty sketch: no fingerprint, no minima, no features, so that no such
/// document is near another by accident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    params: Option<Arc<Params>>,
    digest: u128,
    fingerprint: Option<Fingerprint>,
    signature: Vec<u32>,
    features: Vec<u64>,
}

impl Sketch {
    /// True if the document had no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fingerprint.is_none() && self.features.is_empty()
    }

    /// The simhash fingerprint; `None` if the parameters keep none or the sketch is empty.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// All minima, whole, [`pack`]ed only where they are stored: t of them, or none if the parameters keep no
    /// signature or the sketch is empty.
    #[must_use]
    pub fn signature(&self) -> &[u32] {
        &self.signature
    }

    /// One feature a band, or none if the parameters keep no bands or the sketch is empty.
    #[must_use]
    pub fn features(&self) -> &[u64] {
        &self.features
    }

    /// The digest of the parameters it was made with, [`Params::digest`].
    #[must_use]
    pub fn params_digest(&self) -> u128 {
        self.digest
    }

    /// Refuses a sketch that an index with these parameters, whose digest is `digest`, cannot compare with its own.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] names the first parameter that differs.
    pub fn check_comparable(&self, params: &Params, digest: u128) -> Result<()> {
        if self.digest == digest {
            return Ok(());
        }
        let Some(mine) = &self.params else {
            return Err(Error::Invalid("an empty sketch that no sketcher has made".into()));
        };
        params.check_same_sketch(mine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Params {
        Params::builder().words(3).simhash(3).minhash(6, 14).build().unwrap()
    }

    #[test]
    fn a_sketch_has_what_the_parameters_ask_for() {
        let text = "one two three four five";
        let sketch = Sketcher::new(&both()).sketch(text);
        assert!(sketch.fingerprint().is_some());
        assert_eq!((sketch.signature().len(), sketch.features().len()), (84, 6));
        assert_eq!(sketch.params_digest(), both().digest());

        let simhash_only = Params::builder().words(3).simhash(3).build().unwrap();
        let sketch = Sketcher::new(&simhash_only).sketch(text);
        assert!(sketch.fingerprint().is_some() && !sketch.is_empty());
        assert_eq!((sketch.signature().len(), sketch.features().len()), (0, 0));

        let features_only = Params::builder().words(3).minhash(6, 14).signature_bits(0).build().unwrap();
        let sketch = Sketcher::new(&features_only).sketch(text);
        assert!(sketch.fingerprint().is_none() && !sketch.is_empty());
        assert_eq!((sketch.signature().len(), sketch.features().len()), (0, 6));
    }

    #[test]
    fn a_document_without_tokens_has_no_sketch() {
        for text in ["", "--- ***", "😀"] {
            let sketch = Sketcher::new(&both()).sketch(text);
            assert!(sketch.is_empty() && sketch.signature().is_empty(), "{text:?}");
            assert_eq!(sketch.params_digest(), both().digest());
        }
    }

    #[test]
    fn nothing_of_the_last_document_stays_behind() {
        let sketcher = Sketcher::new(&both());
        let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
        for text in ["a b c d e f g h", "", "a", "Ä ö ü ß x y", "a b c d e f g h"] {
            sketcher.sketch_into(text, &mut scratch, &mut sketch);
            assert_eq!(sketch, sketcher.sketch(text), "{text:?}");
        }
    }

    #[test]
    fn weights_matter_to_the_fingerprint_only() {
        let distinct = Params::builder()
            .words(1)
            .simhash_weighted(3, SimhashWeights::Distinct)
            .minhash(6, 14)
            .build()
            .unwrap();
        let occurrences = Params::builder().words(1).simhash(3).minhash(6, 14).build().unwrap();
        let (text, once) = ("x y z x x x y x", "z y x");
        let (distinct, occurrences) = (Sketcher::new(&distinct), Sketcher::new(&occurrences));
        assert_eq!(distinct.sketch(text), distinct.sketch(once));
        assert_ne!(occurrences.sketch(text).fingerprint(), occurrences.sketch(once).fingerprint());
        assert_eq!(occurrences.sketch(text).signature(), distinct.sketch(text).signature());
        // Four of the eight votes are x's and three are y's and z's together: x decides where they are
        // divided.
        assert_eq!(occurrences.sketch("x x x y z").fingerprint(), occurrences.sketch("x").fingerprint());
    }

    #[test]
    fn sketchers_can_be_shared_by_threads() {
        fn shared<T: Clone + Send + Sync>() {}
        shared::<Sketcher>();
        shared::<Sketch>();
    }
}
