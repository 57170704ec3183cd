//! The rule that decides which documents are near, and which near document is kept.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use twindex::params::{SIMHASH_BITS, WeightUnit};
use twindex::sketch::CODE_WIDTHS;

pub use crate::input::fields::keep::{Keep, KeepOrder};
use crate::passages::boilerplate::count::BOILERPLATE_WORDS;
use crate::settings::declared::settings;
use crate::settings::near::Near;
use crate::settings::value::{Kind, Value, choices};

settings! {
    /// The rule: what is near, and which of several near documents stays.
    Rule, "What is near, and which stays" {
        /// Rule for near documents: J, containment:J, within:K or equal
        ///
        /// `J`, 0.05 to 1: the resemblance is J or more. Resemblance is the number of shingles in both documents,
        /// divided by the number of shingles in at least one of them, counted exactly. `containment:J`: the larger
        /// document contains at least the share J of the shingles of the smaller one. The smaller one is removed;
        /// between documents of equal size, --keep decides. `within:K`, 0 to 10: the simhashes differ in at most K
        /// bits; with --simhash-bits or --fingerprint-field, up to 512. `equal`: the texts are equal after --normal-form and --fold. [default: 0.8; within:3 with
        /// --fingerprint-field]
        near: Option<Near> = None, "NEAR", alias "threshold";
        /// Number of bits of the simhashes of --near within:K: 64, 128, 192, 256, 384 or 512
        ///
        /// More bits distinguish documents better. With more than 64, all simhashes are compared, and K may be up to BITS.
        simhash_bits: SimhashBits = SimhashBits::default(), "BITS", rare true;
        /// Which of several near documents is kept; repeated, the first rule that distinguishes two documents decides
        ///
        /// `first`: the first in input order. `longest`: the one with the most tokens. `smallest-key`: the one with the
        /// smallest key, by bytes. `key-hash`: the one whose key has the smallest hash, whatever the input order.
        /// `max:FIELD`, `min:FIELD`, `earliest:FIELD`: the one with the largest or smallest number or time in FIELD.
        /// `rank:FIELD=A,B,...`: the one whose value in FIELD is listed first; other values are last. `https`,
        /// `shortest-url`: by the URL, --url-field or the key. `canonical`: pages whose canonical link is their own URL,
        /// then those without one. Where no rule decides: the first after `longest`, otherwise the one with the smallest
        /// key.
        keep: KeepOrder = KeepOrder::default(), "WHICH";
        /// Weight of a shingle in the resemblance: distinct, tf or idf
        ///
        /// `distinct`: all shingles have equal weight. `tf`: the number of occurrences of the shingle, or the weight in
        /// a vector of --features-field. `idf`: the `tf` weight, multiplied by the inverse document frequency in the
        /// table of --idf. Weighted resemblance compares the two weights of each shingle: it is the sum of the smaller
        /// ones, divided by the sum of the larger ones.
        weights: Weights = Weights::Distinct, "WEIGHTS";
        /// Round fractional weights to multiples of U, 1/256 to 2
        ///
        /// The weights of --weights idf and of vectors may be fractions. Rounding changes a resemblance by at most U
        /// divided by the mean weight. Memory and time for a shingle are proportional to its weight divided by U.
        /// [default: 1]
        weight_unit: Option<WeightUnit> = None, "U", rare true;
        /// Ignore spans of words that more than N documents share
        ///
        /// Such spans are menus, footers and licences. A span has 10 words; `N:T` sets its length to T words, 1 to
        /// 65535. N should be larger than any group of copies. The spans are written to OUT/boilerplate; `@FILE` reads
        /// them from such a list. With --against OUT, the list of OUT is used; N and T, if given, must equal those of
        /// the list. The inputs are read three times.
        without_boilerplate: Option<BoilerplateSpans> = None, "N";
        /// Stop with an error after N comparisons of documents
        ///
        /// Documents that share their rarest shingles are all compared, near or not, so time may grow with the square of
        /// their number. The number of comparisons depends on the processor. [default: no limit]
        max_work: Option<u64> = None, "N", rare true;
    }
}

/// The number of bits of a simhash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimhashBits(u16);

impl SimhashBits {
    /// Returns the number of bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns whether simhashes have more than 64 bits, which no tables find.
    #[must_use]
    pub fn are_long(self) -> bool {
        self.0 > SIMHASH_BITS
    }
}

impl Default for SimhashBits {
    fn default() -> Self {
        Self(SIMHASH_BITS)
    }
}

impl FromStr for SimhashBits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bits = CODE_WIDTHS.into_iter().find(|bits| bits.to_string() == text);
        let expected = || CODE_WIDTHS.map(|bits| bits.to_string()).join(", ");
        bits.map(|bits| Self(bits as u16))
            .ok_or_else(|| format!("expected one of {}, found {text:?}", expected()))
    }
}

impl fmt::Display for SimhashBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The weights of shingles when resemblance is computed exactly.
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

impl Value for KeepOrder {
    const KIND: Kind = Kind::OneOrMore;

    fn parse(text: &OsStr) -> Result<Self, String> {
        crate::settings::value::utf8(text)?.parse().map(|rule: Keep| rule.into())
    }

    fn read(&mut self, text: &OsStr) -> Result<(), String> {
        self.push(crate::settings::value::utf8(text)?.parse()?)
    }

    fn write(&self) -> Vec<String> {
        self.rules().iter().map(Keep::to_string).collect()
    }
}

/// The boilerplate, as spans of words, that is ignored in texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoilerplateSpans {
    /// Spans that occur in more than `more_than` documents.
    SharedBy {
        /// The number of documents, 1 or more.
        more_than: u32,
        /// The number of words in a span, 1 to 65,535; [`BOILERPLATE_WORDS`] if it is not given.
        words: Option<u32>,
    },
    /// The spans in this list, which an earlier run wrote as `OUT/boilerplate`.
    List(PathBuf),
}

impl BoilerplateSpans {
    /// Returns `more_than` and the number of words in a span; `None` if the spans are from a list.
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

by_text!(BoilerplateSpans, SimhashBits, WeightUnit);

choices! {
    Weights {
        Weights::Distinct => "distinct",
        Weights::Frequencies => "tf",
        Weights::Idf => "idf",
    }
}
