//! The rule that decides which documents are near, and which near document is kept.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use twindex::params::WeightUnit;

use crate::passages::boilerplate::count::BOILERPLATE_WORDS;
use crate::settings::declared::settings;
use crate::settings::near::Near;
use crate::settings::value::{Value, choices};

settings! {
    /// The rule: what is near, and which of several near documents stays.
    Rule, "What is near, and which stays" {
        /// What is near: J, containment:J, within:K or equal
        ///
        /// `J`, 0.05 to 1: the number of shingles that both documents have, divided by the number that either has; counted.
        /// `containment:J`: that number, divided by the number of shingles in the smaller document, which goes if enough of
        /// it is in the larger one; larger documents are preferred, and --keep decides among equally large ones.
        /// `within:K`, 0 to 10: the simhashes differ in at most K bits.
        /// `equal`: the texts are equal, after --normal-form and --fold. [default: 0.8; within:3 with --fingerprint-field]
        near: Option<Near> = None, "NEAR", alias "threshold";
        /// What stays: first, longest, max:FIELD and others
        ///
        /// `first`: in the order of the input. `longest`: with the most tokens, the first of several.
        /// `smallest-key`: with the smallest key, by bytes. `key-hash`: whose key has the smallest hash; does not depend
        /// on the order of the input. `max:FIELD`, `min:FIELD`: with the largest or smallest number or time in a field;
        /// of equal ones, with the smallest key.
        keep: Keep = Keep::First, "WHICH";
        /// Weight of a shingle in the resemblance: distinct, tf or idf
        ///
        /// `distinct`: all the same. `tf`: the number of its occurrences, or the weight in a vector of --features-field.
        /// `idf`: that number, multiplied by the inverse document frequency of the table --idf. Resemblance is then the
        /// sum of the smaller weights, divided by the sum of the larger weights.
        weights: Weights = Weights::Distinct, "WEIGHTS";
        /// Unit to which fractional weights are rounded, 1/256 to 2
        ///
        /// Weights of idf, and of vectors, are fractions. Rounding changes a resemblance by at most U / the mean weight.
        /// A shingle costs memory and time in proportion to its number of units. [default: 1]
        weight_unit: Option<WeightUnit> = None, "U", rare true;
        /// Ignore spans of words that more than N documents share
        ///
        /// `N:T` is for spans of T words, `@FILE` for a list. Such spans are menus, footers and licences. N should be larger than any group of copies; T is 10 if it is not
        /// given, at most 65535. The list is written to OUT/boilerplate, which @FILE names. With --against OUT, the list
        /// of OUT is used, and N and T, if given, must be those of the list. The inputs are read three times.
        without_boilerplate: Option<BoilerplateSpans> = None, "N";
        /// Stop with an error after N comparisons of documents
        ///
        /// Documents that share their rarest shingles without being near are all compared with each other, so time may
        /// grow with the square of their number. [default: no limit]
        max_work: Option<u64> = None, "N", rare true;
    }
}

/// The weights of a document's shingles if resemblance is computed exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// All distinct shingles have equal weight.
    #[default]
    Distinct,
    /// Term frequency: the number of occurrences of a shingle in the document. For features, the weight in the feature
    /// vector.
    Frequencies,
    /// The weight of [`Frequencies`](Self::Frequencies), multiplied by the inverse document frequency in a table.
    Idf,
}

/// Selects the near document that is kept: the first one in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first document of the input.
    #[default]
    First,
    /// The document with the most tokens; of equal numbers, the first document.
    Longest,
    /// The document with the smallest key in byte order.
    SmallestKey,
    /// The document whose key has the smallest xxh3-64 hash; of equal hashes, the smallest key. Does not depend on the
    /// input order or on the meaning of keys.
    KeyHash,
    /// The document with the largest number in this field; of equal numbers, the smallest key.
    Max(String),
    /// The document with the smallest number in this field; of equal numbers, the smallest key.
    Min(String),
}

impl Keep {
    /// Returns the field whose number determines the order; `None` if the order does not depend on a field.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Max(field) | Self::Min(field) => Some(field),
            _ => None,
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.split_once(':') {
            None if text == "first" => Self::First,
            None if text == "longest" => Self::Longest,
            None if text == "smallest-key" => Self::SmallestKey,
            None if text == "key-hash" => Self::KeyHash,
            Some(("max", field)) if !field.is_empty() => Self::Max(field.to_owned()),
            Some(("min", field)) if !field.is_empty() => Self::Min(field.to_owned()),
            _ => {
                return Err(format!(
                    "expected first, longest, smallest-key, key-hash, max:FIELD or min:FIELD, found {text:?}"
                ));
            }
        })
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Longest => f.write_str("longest"),
            Self::SmallestKey => f.write_str("smallest-key"),
            Self::KeyHash => f.write_str("key-hash"),
            Self::Max(field) => write!(f, "max:{field}"),
            Self::Min(field) => write!(f, "min:{field}"),
        }
    }
}

/// The spans of words that are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoilerplateSpans {
    /// Spans that occur in more than `more_than` documents.
    SharedBy {
        /// The number of documents, 1 or more.
        more_than: u32,
        /// The number of words in a span, 1 to 65,535; [`BOILERPLATE_WORDS`] if it is not given.
        words: Option<u32>,
    },
    /// The spans in a list, the file `OUT/boilerplate` of an earlier run.
    List(PathBuf),
}

impl BoilerplateSpans {
    /// Returns the number of documents and the number of words in a span; `None` for a list.
    #[must_use]
    pub fn shared(&self) -> Option<(u32, u32)> {
        match self {
            Self::SharedBy { more_than, words } => Some((*more_than, words.unwrap_or(BOILERPLATE_WORDS))),
            Self::List(_) => None,
        }
    }
}

impl FromStr for BoilerplateSpans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@').filter(|path| !path.is_empty()) {
            return Ok(Self::List(path.into()));
        }
        let (more_than, words) = text.split_once(':').map_or((text, None), |(n, t)| (n, Some(t)));
        let more_than = more_than.parse().ok().filter(|more_than| *more_than > 0);
        let words = words.map(|words| words.parse().ok().filter(|words| (1..=65_535).contains(words)));
        match (more_than, words) {
            (Some(more_than), None) => Ok(Self::SharedBy { more_than, words: None }),
            (Some(more_than), Some(Some(words))) => Ok(Self::SharedBy { more_than, words: Some(words) }),
            _ => Err(format!(
                "expected a number of documents, 1 or more, N:T with 1 to 65535 words, or @FILE, found {text:?}"
            )),
        }
    }
}

impl fmt::Display for BoilerplateSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedBy { more_than, words: None } => write!(f, "{more_than}"),
            Self::SharedBy { more_than, words: Some(words) } => write!(f, "{more_than}:{words}"),
            Self::List(path) => write!(f, "@{}", path.display()),
        }
    }
}

/// Implements [`Value`] by `FromStr` and `Display`.
macro_rules! by_text {
    ($($type:ty),+) => {$(
        impl Value for $type {
            fn parse(text: &OsStr) -> Result<Self, String> {
                crate::settings::value::utf8(text)?.parse::<$type>().map_err(|error| error.to_string())
            }

            fn write(&self) -> Vec<String> {
                vec![self.to_string()]
            }
        }
    )+};
}

by_text!(Keep, BoilerplateSpans, WeightUnit);

choices! {
    Weights {
        Weights::Distinct => "distinct",
        Weights::Frequencies => "tf",
        Weights::Idf => "idf",
    }
}
