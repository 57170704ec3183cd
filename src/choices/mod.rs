//! How good a choice of parameters is, and which one to choose: the mathematics, without any documents.
//!
//! A signature has t minima, and each of them is equal in two documents of resemblance J with probability J.
//! All that can be said of sketches before anything is sketched follows from that by the binomial distribution:
//!
//! | question | answer |
//! |---|---|
//! | How far off is an estimate from t minima? | [`standard_error`](twindex_sketch::standard_error), sqrt(J (1 - J) / t) |
//! | How many minima keep it within a share of J? | [`samples_exact`]; [`samples_by_chernoff`] by the bound of the text books |
//! | How likely are two documents *fungible*: r of their k features agree? | [`FeatureScheme::fungible`] |
//! | How near is that to comparing whole sketches? | [`FeatureScheme::full_sketch`], and the tails of [`Binomial`] in logarithms |
//! | How many pairs agree by accident? | [`FeatureScheme::accidental_pairs`] |
//! | What have others chosen? | [`Preset`] |
//! | What should I choose? | [`choose`], for a recall and a bound on false positives |
//!
//! `docs/choosing.md` has the answers as tables. Floating-point numbers are made here and stored nowhere.
//!
//! Sources: Broder, *Identifying and filtering near-duplicate documents*, 2000, and his slides *Algorithms for
//! duplicate documents*, 2005 (features, the polynomials, the presets); Chernoff's bounds as in Mitzenmacher and
//! Upfal, *Probability and Computing*, theorems 4.4 and 4.5.

mod binomial;
mod bounds;
mod preset;
mod scheme;
mod search;

pub use binomial::Binomial;
pub use bounds::{
    Miss, SAMPLES_MAX, chernoff_bound, miss_probability, samples_by_chernoff, samples_by_relative_entropy,
    samples_exact,
};
pub use preset::Preset;
pub use scheme::FeatureScheme;
pub use search::{Strangers, Unmet, Wanted, choose};
