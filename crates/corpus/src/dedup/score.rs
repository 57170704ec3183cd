//! The score of two texts: how similar they are, and how the similarity was computed.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use twindex::Resemblance;
use twindex_join::Common;

/// The score of two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Score {
    /// Exact resemblance, from the sets of both groups.
    Resemblance { intersection: u32, union: u32 },
    /// Resemblance estimated from the equal minima of two signatures.
    Estimate(Estimate),
    /// Resemblance estimated from the common elements of two sketches.
    Sampled(Sampled),
    /// Hamming distance: the number of bits in which the fingerprints differ.
    Distance(u32),
    /// The groups agree in a band, and the pair was not verified.
    Candidate,
}

/// The number of equal minima, the number of all minima, and the number of bits of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    pub matches: u32,
    pub minima: u32,
    pub bits: u8,
}

/// The number of common elements in a sample of the shingles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampled {
    both: u32,
    either: u32,
    /// The sampled share of all shingles, in units of 1 / [`WHOLE`]. It is rounded down, so that the error of the
    /// estimate is over-estimated rather than under-estimated.
    share: u32,
}

/// The share of a sample that contains all shingles. A packed score consists of this share and two counts of
/// [`COUNT_BITS`] bits each, enough for the number of elements in two sketches.
const WHOLE: u32 = (1 << (u64::BITS - 2 * COUNT_BITS)) - 1;
/// See [`WHOLE`].
const COUNT_BITS: u32 = 20;

/// The kind of score that a run computes; all scores of a run are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum ScoreKind {
    Resemblance,
    /// The share of the removed document's shingles that the kept document contains.
    Containment,
    Estimate {
        minima: u32,
        bits: u8,
    },
    Sampled,
    Distance,
    Candidate,
}

impl ScoreKind {
    /// Returns the names of the table columns of a score.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Resemblance => "resemblance\tintersection\tunion",
            Self::Containment => "containment\tintersection\tshingles",
            Self::Estimate { .. } | Self::Sampled => "resemblance\tstandard_error",
            Self::Distance => "distance",
            Self::Candidate => "resemblance",
        }
    }

    /// Returns the score of a text against itself; `shingles` is its number of distinct shingles.
    pub(super) fn itself(self, shingles: u32) -> Score {
        match self {
            Self::Resemblance
            | Self::Containment
            | Self::Estimate { .. }
            | Self::Sampled
            | Self::Candidate => Score::Resemblance { intersection: shingles, union: shingles },
            Self::Distance => Score::Distance(0),
        }
    }

    /// Unpacks a score. The score of identical texts is that of a text against itself.
    pub(super) fn unpack(self, packed: u64) -> Score {
        let (first, second) = ((packed >> 32) as u32, packed as u32);
        match self {
            _ if packed == u64::MAX => Score::Resemblance { intersection: 1, union: 1 },
            Self::Resemblance | Self::Containment => {
                Score::Resemblance { intersection: first, union: second }
            }
            Self::Estimate { minima, bits } => Score::Estimate(Estimate { matches: first, minima, bits }),
            Self::Sampled => Score::Sampled(Sampled::unpack(packed)),
            Self::Distance => Score::Distance(first),
            Self::Candidate => Score::Candidate,
        }
    }

    /// Returns the packed score of identical texts. It differs from the scores of near texts unless scores are exact.
    pub(super) fn pack_itself(self, itself: Score) -> u64 {
        match self {
            Self::Estimate { .. } | Self::Sampled | Self::Candidate => u64::MAX,
            Self::Resemblance | Self::Containment | Self::Distance => itself.pack(),
        }
    }
}

impl Score {
    /// Returns the score for an exact resemblance.
    pub(super) fn counted(resemblance: Resemblance) -> Self {
        match resemblance {
            // The counts fit in 32 bits: a text of 2^32 shingles would exceed the longest line that can be read.
            Resemblance::Exact { intersection, union } => {
                Self::Resemblance { intersection: intersection as u32, union: union as u32 }
            }
            Resemblance::Estimate { .. } => unreachable!("sets are counted, not estimated"),
        }
    }

    /// Packs the score into 64 bits; [`ScoreKind::unpack`] reverses it.
    pub(super) fn pack(self) -> u64 {
        match self {
            Self::Resemblance { intersection, union } => u64::from(intersection) << 32 | u64::from(union),
            Self::Estimate(Estimate { matches, .. }) => u64::from(matches) << 32,
            Self::Sampled(sampled) => sampled.pack(),
            Self::Distance(distance) => u64::from(distance) << 32,
            Self::Candidate => 0,
        }
    }

    /// Returns the resemblance; `None` if the score is not one. Two equal texts without shingles have resemblance 1
    /// here.
    pub(super) fn resemblance(self) -> Option<Resemblance> {
        match self {
            Self::Resemblance { union: 0, .. } => Some(Resemblance::Exact { intersection: 1, union: 1 }),
            Self::Resemblance { intersection, union } => {
                Some(Resemblance::Exact { intersection: intersection as usize, union: union as usize })
            }
            Self::Estimate(estimate) => Some(estimate.resemblance()),
            Self::Sampled(sampled) => Some(sampled.resemblance()),
            Self::Distance(_) | Self::Candidate => None,
        }
    }

    /// Writes the first column, for tables that have only one column for the score.
    pub(super) fn write_short(self, out: &mut impl Write) -> io::Result<()> {
        match (self, self.resemblance()) {
            (Self::Resemblance { intersection, union: union @ 1.. }, _) => {
                write_quotient(intersection, union, out)
            }
            (Self::Distance(distance), _) => write!(out, "{distance}"),
            (_, Some(resemblance)) => write!(out, "{:.6}", resemblance.value()),
            (_, None) => out.write_all(b"-"),
        }
    }

    /// Writes all columns of the score for a run of this kind, separated by tabs.
    pub(super) fn write(self, kind: ScoreKind, out: &mut impl Write) -> io::Result<()> {
        match (self, kind) {
            // Two equal texts without shingles: the quotient is undefined, so 1 is written.
            (Self::Resemblance { union: 0, .. }, ScoreKind::Resemblance | ScoreKind::Containment) => {
                out.write_all(b"1.000000\t0\t0")
            }
            (Self::Resemblance { intersection, union }, ScoreKind::Resemblance | ScoreKind::Containment) => {
                let (mut first, mut second) = (itoa::Buffer::new(), itoa::Buffer::new());
                write_quotient(intersection, union, out)?;
                out.write_all(b"\t")?;
                out.write_all(first.format(intersection).as_bytes())?;
                out.write_all(b"\t")?;
                out.write_all(second.format(union).as_bytes())
            }
            (Self::Resemblance { .. }, ScoreKind::Estimate { .. } | ScoreKind::Sampled) => {
                out.write_all(b"1.000000\t0.000000")
            }
            (Self::Estimate(_) | Self::Sampled(_), _) => {
                let Some(resemblance) = self.resemblance() else { return Ok(()) };
                write!(out, "{:.6}\t{:.6}", resemblance.value(), resemblance.standard_error())
            }
            _ => self.write_short(out),
        }
    }
}

/// Writes the quotient, which is at most 1, with the same digits as `{:.6}` of the nearest float.
fn write_quotient(intersection: u32, union: u32, out: &mut impl Write) -> io::Result<()> {
    // The float differs from the quotient by at most 2^-54. This can only change the rounded digits if the quotient is
    // on a rounding boundary, or if the divisor is so large that the quotient may be that close to a boundary.
    let millions = u64::from(intersection) * 1_000_000;
    let (digits, rest) = (millions / u64::from(union), millions % u64::from(union));
    if intersection > union || union > 1 << 28 || 2 * rest == u64::from(union) {
        return write!(out, "{:.6}", f64::from(intersection) / f64::from(union));
    }
    let digits = digits + u64::from(2 * rest > u64::from(union));
    let mut shown = *b"0.000000";
    shown[0] += (digits / 1_000_000) as u8;
    let mut left = digits % 1_000_000;
    for place in shown[2..].iter_mut().rev() {
        *place += (left % 10) as u8;
        left /= 10;
    }
    out.write_all(&shown)
}

impl Estimate {
    fn resemblance(self) -> Resemblance {
        Resemblance::from_matches(self.matches as usize, self.minima as usize, self.bits)
    }
}

impl From<Common> for Sampled {
    fn from(common: Common) -> Self {
        #[allow(clippy::cast_sign_loss, reason = "a share is 0 to 1")]
        let share = (common.share * f64::from(WHOLE)) as u32;
        Self { both: common.both, either: common.either, share }
    }
}

impl Sampled {
    fn resemblance(self) -> Resemblance {
        let share = f64::from(self.share) / f64::from(WHOLE);
        Common { both: self.both, either: self.either, share }.resemblance()
    }

    fn pack(self) -> u64 {
        let counts = u64::from(self.both) << COUNT_BITS | u64::from(self.either);
        counts << (u64::BITS - 2 * COUNT_BITS) | u64::from(self.share)
    }

    fn unpack(packed: u64) -> Self {
        let counts = packed >> (u64::BITS - 2 * COUNT_BITS);
        let mask = (1 << COUNT_BITS) - 1;
        let (both, either) = ((counts >> COUNT_BITS) as u32, counts as u32 & mask);
        Self { both, either, share: packed as u32 & WHOLE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_printed_like_floats() {
        let check = |intersection: u32, union: u32| {
            let mut shown = Vec::new();
            write_quotient(intersection, union, &mut shown).unwrap();
            let float = format!("{:.6}", f64::from(intersection) / f64::from(union));
            assert_eq!(String::from_utf8(shown).unwrap(), float, "{intersection} of {union}");
        };
        for union in (1..700).chain([1 << 10, 15_625, 31_250, 78_125, 2_000_000]) {
            for intersection in (0..=union.min(3000)).chain(union - union.min(700)..=union) {
                check(intersection, union);
            }
        }
        let mut random = 1_u64;
        for _ in 0..100_000 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let union = (random >> 32) as u32 >> (random & 31);
            if union > 0 {
                check((random >> 16) as u32 % (union.saturating_add(1)), union);
            }
        }
    }

    #[test]
    fn scores_round_trip_through_packing() {
        let estimate = |matches| Score::Estimate(Estimate { matches, minima: 120, bits: 8 });
        let estimates = ScoreKind::Estimate { minima: 120, bits: 8 };
        let sampled = |both, either, share| Score::Sampled(Sampled::from(Common { both, either, share }));
        for (kind, score) in [
            (ScoreKind::Resemblance, Score::Resemblance { intersection: 0, union: 0 }),
            (ScoreKind::Resemblance, Score::Resemblance { intersection: 8, union: u32::MAX }),
            (ScoreKind::Containment, Score::Resemblance { intersection: 8, union: 9 }),
            (estimates, estimate(0)),
            (estimates, estimate(120)),
            (ScoreKind::Sampled, sampled(0, 1, 0.0)),
            (ScoreKind::Sampled, sampled(65_535, 131_070, 0.04)),
            (ScoreKind::Sampled, sampled(4096, 8192, 1.0)),
            (ScoreKind::Distance, Score::Distance(64)),
            (ScoreKind::Candidate, Score::Candidate),
        ] {
            assert_eq!(kind.unpack(score.pack()), score);
        }
        let exact = sampled(3, 4, 1.0).resemblance().unwrap();
        assert_eq!(exact, Resemblance::Exact { intersection: 3, union: 4 });
        assert!(sampled(3, 4, 1.0 - f64::EPSILON).resemblance().unwrap().standard_error() > 0.0);
        for kind in [
            ScoreKind::Resemblance,
            ScoreKind::Containment,
            estimates,
            ScoreKind::Sampled,
            ScoreKind::Distance,
            ScoreKind::Candidate,
        ] {
            let itself = kind.unpack(kind.pack_itself(kind.itself(7)));
            assert!(itself.resemblance().is_none_or(|resemblance| resemblance.value() >= 1.0), "{kind:?}");
            assert_ne!(itself, Score::Candidate);
            let mut columns = Vec::new();
            itself.write(kind, &mut columns).unwrap();
            let columns = String::from_utf8(columns).unwrap();
            assert_eq!(columns.split('\t').count(), kind.columns().split('\t').count());
        }
    }
}
