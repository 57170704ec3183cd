//! Predicts the costs and the recall of parameters, and chooses parameters. All results are computed from formulas.
//!
//! **Permutation tables.** Most users choose `auto`, `small` or `fast` and can skip these modules:
//!
//! - [`cost`]: predicts the bytes, the work and the query time of tables before they are built;
//! - [`recall`]: computes the recall of designs, exactly or by sampling;
//! - [`scheme`]: chooses the design and the codecs of a segment;
//! - [`codes`]: chooses how codes are indexed and searched, which needs no tables.
//!
//! **Features.** A signature has t minima. Each minimum is equal in two documents of resemblance J with probability J,
//! so the number of equal minima has a binomial distribution. This answers, before any document is sketched:
//!
//! | you want to know | see |
//! |---|---|
//! | How far off is an estimate from t minima? | [`standard_error`](twindex_sketch::standard_error), sqrt(J (1 - J) / t) |
//! | How many minima limit this error to a fraction of J? | [`samples_exact`]; by the textbook bound [`samples_by_chernoff`] |
//! | How likely are two documents *fungible* (r or more of k features agree)? | [`FeatureScheme::fungible`] |
//! | How close do features come to a comparison of whole sketches? | [`FeatureScheme::full_sketch`], and the tails of [`Binomial`] in logarithms |
//! | How many pairs agree by accident? | [`FeatureScheme::accidental_pairs`] |
//! | How likely do two documents share a band? | [`Banding::recall`] |
//! | Which parameters do other programs use? | [`Preset`] |
//! | Which parameters should I choose? | [`choose`], for a recall and a bound on false positives |
//!
//! `docs/choosing.md` has tables of the results. The floating-point numbers computed here are not stored in files.
//!
//! Sources: Broder, *Identifying and filtering near-duplicate documents*, 2000, and his slides *Algorithms for
//! duplicate documents*, 2005 (features, the polynomials, the presets); Chernoff's bounds as in Mitzenmacher and
//! Upfal, *Probability and Computing*, theorems 4.4 and 4.5.
//!
//! [`FeatureScheme::fungible`]: crate::params::FeatureScheme::fungible
//! [`FeatureScheme::full_sketch`]: crate::params::FeatureScheme::full_sketch
//! [`FeatureScheme::accidental_pairs`]: crate::params::FeatureScheme::accidental_pairs
//! [`Preset`]: crate::params::Preset

pub mod banding;
mod binomial;
mod bounds;
pub mod codes;
pub mod cost;
mod features;
#[cfg(test)]
mod presets;
pub mod recall;
pub mod scheme;
mod search;

pub use banding::Banding;
pub use binomial::Binomial;
pub use bounds::{
    Miss, SAMPLES_MAX, chernoff_bound, miss_probability, samples_by_chernoff, samples_by_relative_entropy,
    samples_exact,
};
pub use search::{FalsePositiveBound, Goal, Infeasible, choose};
