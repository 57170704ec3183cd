//! The rules that determine the order of near documents. The first document in this order is kept.

use std::fmt;
use std::str::FromStr;

use crate::input::fields::number::FieldNumber;

/// A rule for the order in which near documents are preferred: the first document in this order is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first document of the input.
    First,
    /// The document with the most tokens.
    Longest,
    /// The document with the smallest key in byte order.
    SmallestKey,
    /// The document whose key has the smallest xxh3-64 hash; among equals, the one with the smallest key. The choice
    /// depends neither on the input order nor on the meaning of keys.
    KeyHash,
    /// The document with the largest number or time in this field.
    Max(String),
    /// The document with the smallest number or time in this field.
    Min(String),
    /// As [`Min`](Self::Min), for dates.
    Earliest(String),
    /// The document whose value in this field is the first in the list. Values that are not listed are last.
    Rank(String, Vec<String>),
    /// A document whose URL has the scheme `https`.
    Https,
    /// The document with the shortest URL, in bytes.
    ShortestUrl,
    /// A page whose canonical link is its own URL; then pages without a canonical link, then those that name another.
    Canonical,
}

/// Maximum number of rules in [`KeepOrder`].
const RULES_MAX: usize = 16;
/// Maximum number of values in [`Keep::Rank`].
const RANKS_MAX: usize = 65_535;

impl Keep {
    /// Returns the field that the rule compares; `None` if it compares no field.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Max(field) | Self::Min(field) | Self::Earliest(field) | Self::Rank(field, _) => Some(field),
            _ => None,
        }
    }

    /// Returns the place of a value in the list of [`Rank`](Self::Rank), from 0; the length of the list if it is not
    /// listed.
    #[must_use]
    pub fn place(&self, value: &[u8]) -> FieldNumber {
        let listed: &[String] = if let Self::Rank(_, listed) = self { listed } else { &[] };
        let place = listed.iter().position(|listed| listed.as_bytes() == value).unwrap_or(listed.len());
        FieldNumber::integer(place as i128).unwrap_or_default()
    }

    /// Returns whether the rule compares URLs.
    #[must_use]
    pub fn is_of_url(&self) -> bool {
        matches!(self, Self::Https | Self::ShortestUrl | Self::Canonical)
    }

    /// Returns the name of the rule in explanations.
    pub(crate) fn option(&self) -> &'static str {
        match self {
            Self::Max(_) => "keep max",
            Self::Min(_) => "keep min",
            Self::Earliest(_) => "keep earliest",
            Self::Rank(..) => "keep rank",
            _ => "keep",
        }
    }

    /// Returns whether the rule distinguishes any two documents with different keys.
    fn is_total(&self) -> bool {
        matches!(self, Self::First | Self::SmallestKey | Self::KeyHash)
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
            None if text == "https" => Self::Https,
            None if text == "shortest-url" => Self::ShortestUrl,
            None if text == "canonical" => Self::Canonical,
            Some(("max", field)) if !field.is_empty() => Self::Max(field.to_owned()),
            Some(("min", field)) if !field.is_empty() => Self::Min(field.to_owned()),
            Some(("earliest", field)) if !field.is_empty() => Self::Earliest(field.to_owned()),
            Some(("rank", rest)) => {
                let (field, listed) = rest.split_once('=').unwrap_or_default();
                let values: Vec<String> = listed.split(',').map(str::to_owned).collect();
                let is_repeated = |at: usize| values[..at].contains(&values[at]);
                let is_bad = field.is_empty() || values.iter().any(String::is_empty);
                if is_bad || values.len() > RANKS_MAX || (0..values.len()).any(is_repeated) {
                    return Err(format!(
                        "expected rank:FIELD=A,B,... with different values, separated by commas, found {text:?}"
                    ));
                }
                Self::Rank(field.to_owned(), values)
            }
            _ => {
                return Err(format!(
                    "expected first, longest, smallest-key, key-hash, max:FIELD, min:FIELD, earliest:FIELD, \
                     rank:FIELD=A,B,..., https, shortest-url or canonical, found {text:?}; give --keep again for the \
                     next rule"
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
            Self::Earliest(field) => write!(f, "earliest:{field}"),
            Self::Rank(field, values) => write!(f, "rank:{field}={}", values.join(",")),
            Self::Https => f.write_str("https"),
            Self::ShortestUrl => f.write_str("shortest-url"),
            Self::Canonical => f.write_str("canonical"),
        }
    }
}

/// The rules that order near documents. The first rule that distinguishes two documents decides which comes first.
///
/// ```
/// use twindex_corpus::{Keep, KeepOrder};
///
/// let rules = KeepOrder::of([Keep::Https, Keep::Earliest("fetched".into())])?;
/// assert_eq!(rules.rules().len(), 2);
/// assert!(KeepOrder::of([Keep::First, Keep::Longest]).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeepOrder(
    /// The rules; none means [`Keep::First`].
    Vec<Keep>,
);

impl PartialEq for KeepOrder {
    fn eq(&self, other: &Self) -> bool {
        self.rules() == other.rules()
    }
}

impl KeepOrder {
    /// Creates the list; without rules, it is [`Keep::First`].
    ///
    /// # Errors
    ///
    /// A rule is repeated, or follows one that distinguishes all documents, or there are too many rules.
    pub fn of(rules: impl IntoIterator<Item = Keep>) -> Result<Self, String> {
        let mut all = Self::default();
        rules.into_iter().try_for_each(|rule| all.push(rule))?;
        Ok(all)
    }

    /// Adds a rule; see [`of`](Self::of).
    pub(crate) fn push(&mut self, rule: Keep) -> Result<(), String> {
        if let Some(last) = self.0.last().filter(|last| last.is_total()) {
            return Err(format!("{rule} after {last}, which distinguishes all documents; leave it out"));
        }
        if self.0.contains(&rule) {
            return Err(format!("{rule} twice"));
        }
        if self.0.len() == RULES_MAX {
            return Err(format!("expected at most {RULES_MAX} rules"));
        }
        self.0.push(rule);
        Ok(())
    }

    /// Returns the rules in their order, at least one.
    #[must_use]
    pub fn rules(&self) -> &[Keep] {
        if self.0.is_empty() { &[Keep::First] } else { &self.0 }
    }

    /// Returns the single rule; `None` if there are several.
    #[must_use]
    pub fn single(&self) -> Option<&Keep> {
        match self.rules() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns whether one of the rules is `rule`.
    #[must_use]
    pub fn has(&self, rule: &Keep) -> bool {
        self.rules().contains(rule)
    }

    /// Returns the rule that orders documents that the rules do not distinguish: [`Keep::First`] or
    /// [`Keep::SmallestKey`].
    pub(crate) fn tie(&self) -> Keep {
        match self.rules() {
            [.., Keep::First | Keep::Longest] => Keep::First,
            _ => Keep::SmallestKey,
        }
    }

    /// Returns whether documents that the rules do not distinguish are in input order, not in the order of their keys.
    #[must_use]
    pub fn is_by_place(&self) -> bool {
        self.tie() == Keep::First
    }
}

impl From<Keep> for KeepOrder {
    fn from(rule: Keep) -> Self {
        Self(vec![rule])
    }
}

impl fmt::Display for KeepOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.rules().iter().map(Keep::to_string).collect();
        f.write_str(&rules.join(", "))
    }
}
