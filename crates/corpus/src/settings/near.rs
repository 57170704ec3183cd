//! The rule by which two documents are near.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use crate::settings::value::Value;

/// The default resemblance of near documents.
pub const THRESHOLD: f64 = 0.8;
/// The smallest threshold of resemblance or containment. Below this value, bands of the minima cannot reach the recall
/// that the documentation promises.
pub const THRESHOLD_MIN: f64 = 0.05;
/// The largest threshold of the Hamming distance of fingerprints in an index, and of simhashes.
pub(crate) const WITHIN_MAX_OF_INDEX: u16 = 10;
/// The largest threshold of the Hamming distance of other fingerprints.
const WITHIN_MAX: u16 = 512;

/// The rule by which two documents are near.
///
/// ```
/// use twindex_corpus::Near;
///
/// assert_eq!("0.9".parse(), Ok(Near::Resemblance(0.9)));
/// assert_eq!("containment:0.9".parse(), Ok(Near::Containment(0.9)));
/// assert_eq!(Near::Within(3).to_string(), "within:3");
/// assert!("within:513".parse::<Near>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Near {
    /// The resemblance of the documents is at least this value, 0.05 to 1: the number of common shingles divided by the
    /// number of distinct shingles in both together. It is computed exactly.
    Resemblance(f64),
    /// At least this share of the smaller document, 0.05 to 1, is in the larger one: the number of common shingles
    /// divided by the number of shingles in the smaller document. It is computed exactly. Of near documents, a larger
    /// one is preferred.
    Containment(f64),
    /// The fingerprints of the documents differ in at most this number of bits: 0 to 10, and up to 512 for fingerprints
    /// that are read.
    Within(u16),
    /// The texts of the documents are equal.
    Equal,
}

/// The default is a resemblance of 0.8.
impl Default for Near {
    fn default() -> Self {
        Self::Resemblance(THRESHOLD)
    }
}

impl Near {
    /// Returns the threshold of resemblance or containment; `None` if neither is measured.
    #[must_use]
    pub fn threshold(self) -> Option<f64> {
        match self {
            Self::Resemblance(threshold) | Self::Containment(threshold) => Some(threshold),
            Self::Within(_) | Self::Equal => None,
        }
    }

    /// Returns the largest Hamming distance of near fingerprints; `None` if fingerprints are not compared.
    #[must_use]
    pub fn within(self) -> Option<u16> {
        match self {
            Self::Within(within) => Some(within),
            _ => None,
        }
    }
}

impl FromStr for Near {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |text: &str| text.parse().ok().filter(|share| (THRESHOLD_MIN..=1.0).contains(share));
        let near = match text.split_once(':') {
            None if text == "equal" => Some(Self::Equal),
            None | Some(("resemblance", _)) => {
                share(text.strip_prefix("resemblance:").unwrap_or(text)).map(Self::Resemblance)
            }
            Some(("containment", text)) => share(text).map(Self::Containment),
            Some(("within", text)) => {
                text.parse().ok().filter(|within| *within <= WITHIN_MAX).map(Self::Within)
            }
            Some(_) => None,
        };
        near.ok_or_else(|| {
            let percent = text.trim_end_matches('%').parse().ok().filter(|share| (1.0..=100.0).contains(share));
            let advice = percent.map(|share: f64| format!("; {share} % is {}", share / 100.0)).unwrap_or_default();
            format!(
                "expected {THRESHOLD_MIN} to 1, containment:J, within:K (0 to {WITHIN_MAX}) or equal, found {text:?}{advice}"
            )
        })
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resemblance(threshold) => write!(f, "{threshold}"),
            Self::Containment(threshold) => write!(f, "containment:{threshold}"),
            Self::Within(within) => write!(f, "within:{within}"),
            Self::Equal => f.write_str("equal"),
        }
    }
}

impl Value for Near {
    fn parse(text: &OsStr) -> Result<Self, String> {
        crate::settings::value::utf8(text)?.parse()
    }

    fn write(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}
