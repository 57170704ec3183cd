//! The near relation of an index: the default condition under which queries return a document.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The resemblance at or above which documents are near: above 0 and at most 1. Decimal numbers are rounded to the
/// nearest `f64`, as in [`Snapshot::resembling`](crate::Snapshot::resembling).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u64);

impl Threshold {
    /// The default threshold of a new index, and of parameters that are stored without a `threshold` line: 0.8.
    pub const USUAL: Self = Self(0.8_f64.to_bits());

    /// Creates a threshold from a resemblance above 0 and at most 1.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other number.
    pub fn new(resemblance: f64) -> Result<Self> {
        if resemblance > 0.0 && resemblance <= 1.0 {
            return Ok(Self(resemblance.to_bits()));
        }
        Err(Error::Invalid(format!(
            "threshold: expected a resemblance above 0 and up to 1, found {resemblance}"
        )))
    }

    /// Returns the resemblance.
    #[must_use]
    pub const fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Debug for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threshold({self})")
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl FromStr for Threshold {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text.parse().unwrap_or(f64::NAN))
    }
}

/// The condition under which two documents are near: a minimum resemblance or a maximum distance of fingerprints. If
/// both are specified, documents are near if they satisfy at least one of them.
///
/// ```
/// use twindex::Params;
/// use twindex::params::Near;
///
/// let both = Params::builder().simhash(3).minhash(20, 6);
/// assert_eq!(both.clone().build()?.near(), Near::resembling(0.8)?);
/// let wider = both.near(Near::resembling(0.95)?.or_within(3)).build()?;
/// assert!(wider.encode().ends_with("\nthreshold=0.95\n"));
/// assert_eq!(wider.near().to_string(), "a resemblance of 0.95 or more, or fingerprints at most 3 bits apart");
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Near {
    /// The resemblance at or above which documents are near; if `None`, resemblance is ignored.
    pub threshold: Option<Threshold>,
    /// The Hamming distance of fingerprints, in bits, up to which documents are near; if `None`, distance is ignored.
    pub within: Option<u16>,
}

impl Near {
    /// Creates the relation in which documents are near if their resemblance is at least `threshold` (above 0 and at
    /// most 1). The distance of their fingerprints is ignored.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a threshold out of range.
    pub fn resembling(threshold: f64) -> Result<Self> {
        Ok(Self { threshold: Some(Threshold::new(threshold)?), within: None })
    }

    /// Creates the relation in which documents are near if their fingerprints differ in at most `bits` bits.
    /// Resemblance is ignored.
    #[must_use]
    pub const fn within(bits: u16) -> Self {
        Self { threshold: None, within: Some(bits) }
    }

    /// Extends the relation: documents are also near if their fingerprints differ in at most `bits` bits.
    #[must_use]
    pub const fn or_within(self, bits: u16) -> Self {
        Self { within: Some(bits), ..self }
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = if self.threshold.is_some() && self.within.is_some() { ", or " } else { "" };
        if let Some(threshold) = self.threshold {
            write!(f, "a resemblance of {threshold} or more{or}")?;
        }
        match self.within {
            Some(1) => f.write_str("fingerprints at most 1 bit apart"),
            Some(bits) => write!(f, "fingerprints at most {bits} bits apart"),
            None => Ok(()),
        }
    }
}
