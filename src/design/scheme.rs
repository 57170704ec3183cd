//! A table design with the codecs of its tables, and how parameters specify them or leave them to the planner.
//!
//! [`Scheme::choose`] selects a design and codecs that the parameters leave open. It is defined in the
//! [`planner`](crate::planner), which estimates the costs.

use std::fmt;
use std::str::FromStr;

use super::tables::DesignName;
use crate::error::{Error, Result};

/// A codec for tables that store whole fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Complete {
    /// A directory of the leading bits, and bit planes of the other bits. The fastest codec.
    Planes,
    /// Elias-Fano coding: at most 1.1 times the entropy bound for 10,000 or more fingerprints.
    Compact,
    /// Huffman-coded differences of sorted fingerprints, in blocks (Manku, Jain and Das Sarma, WWW 2007, section 3.2).
    Manku,
    /// Sorted whole fingerprints.
    Plain,
}

impl Complete {
    /// All codecs.
    pub const ALL: [Self; 4] = [Self::Planes, Self::Compact, Self::Manku, Self::Plain];

    /// Returns the name of the codec.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Planes => "planes",
            Self::Compact => "compact",
            Self::Manku => "manku",
            Self::Plain => "plain",
        }
    }
}

/// The codecs of a design's tables. Table 1 always stores complete fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codecs {
    /// The codec of table 1.
    pub first: Complete,
    /// The codec of the other tables. `Some(n)`: their entries are partial and have `n` bytes (2 to 4): the first 16
    /// bits of the fingerprint, which locate it in table 1, and 0 to 2 further bytes. `None`: the other tables use the
    /// codec of table 1.
    pub partial: Option<u8>,
}

impl fmt::Display for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.first.name())?;
        self.partial.map_or(Ok(()), |bytes| write!(f, "+{bytes}"))
    }
}

impl FromStr for Codecs {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = Complete::ALL
            .into_iter()
            .flat_map(|first| [None, Some(2), Some(3), Some(4)].map(|partial| Self { first, partial }));
        all.into_iter().find(|codecs| codecs.to_string() == text).ok_or_else(|| {
            Error::Invalid(format!(
                "codec `{}`: expected planes, compact, manku or plain, followed by +2, +3 or +4 for partial tables",
                text.escape_debug()
            ))
        })
    }
}

/// The table design as specified in an index's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DesignChoice {
    /// For each segment, the smallest block design that takes at most 15 % more query time than the fastest block
    /// design.
    #[default]
    Auto,
    /// For each segment, the smallest block design that takes at most 6 times the query time of the fastest block
    /// design.
    Small,
    /// For each segment, the smallest design that takes at most 5 % more query time than the fastest design.
    Fast,
    /// The named design, for all segments.
    Named(DesignName),
}

impl fmt::Display for DesignChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Small => f.write_str("small"),
            Self::Fast => f.write_str("fast"),
            Self::Named(name) => name.fmt(f),
        }
    }
}

impl FromStr for DesignChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "small" => Ok(Self::Small),
            "fast" => Ok(Self::Fast),
            name => name.parse().map(Self::Named),
        }
    }
}

/// The codecs as specified in an index's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CodecChoice {
    /// For each segment, the codecs that are chosen together with its design.
    #[default]
    Auto,
    /// The given codecs, for all segments.
    Named(Codecs),
}

impl fmt::Display for CodecChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Named(codecs) => codecs.fmt(f),
        }
    }
}

impl FromStr for CodecChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Named) }
    }
}

/// The tables of a segment: a design and its codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// The table design.
    pub design: DesignName,
    /// The codecs of the tables.
    pub codecs: Codecs,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.design, self.codecs)
    }
}
