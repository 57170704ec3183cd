//! The similarity score of two texts: a resemblance, a containment or a Hamming distance.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use twindex::Resemblance;

/// The score of two groups of equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Score {
    /// Exact resemblance, from the sets of both groups.
    Resemblance { intersection: u32, union: u32 },
    /// Hamming distance: the number of bits in which the fingerprints differ.
    Distance(u32),
}

/// The kind of score that a run computes; all scores of a run are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum ScoreKind {
    Resemblance,
    /// The share of the removed document's shingles that the kept document contains.
    Containment,
    Distance,
}

impl ScoreKind {
    /// Returns the names of the table columns of a score.
    pub(crate) fn columns(self) -> &'static str {
        match self {
            Self::Resemblance => "resemblance\tintersection\tunion",
            Self::Containment => "containment\tintersection\tshingles",
            Self::Distance => "distance",
        }
    }

    /// Returns the score of a text against itself; `shingles` is its number of distinct shingles.
    pub(crate) fn itself(self, shingles: u32) -> Score {
        match self {
            Self::Resemblance | Self::Containment => {
                Score::Resemblance { intersection: shingles, union: shingles }
            }
            Self::Distance => Score::Distance(0),
        }
    }

    pub(crate) fn unpack(self, packed: u64) -> Score {
        let (first, second) = ((packed >> 32) as u32, packed as u32);
        match self {
            Self::Resemblance | Self::Containment => {
                Score::Resemblance { intersection: first, union: second }
            }
            Self::Distance => Score::Distance(first),
        }
    }
}

impl Score {
    /// Packs the score into 64 bits; [`ScoreKind::unpack`] reverses it.
    pub(crate) fn pack(self) -> u64 {
        match self {
            Self::Resemblance { intersection, union } => u64::from(intersection) << 32 | u64::from(union),
            Self::Distance(distance) => u64::from(distance) << 32,
        }
    }

    /// Returns whether no score is higher.
    pub(crate) fn is_highest(self) -> bool {
        match self {
            Self::Resemblance { intersection, union } => intersection == union,
            Self::Distance(distance) => distance == 0,
        }
    }

    /// Returns the resemblance; `None` for a distance. The resemblance of two equal texts without shingles is 1.
    pub(crate) fn resemblance(self) -> Option<Resemblance> {
        match self {
            Self::Resemblance { union: 0, .. } => Some(Resemblance::Exact { intersection: 1, union: 1 }),
            Self::Resemblance { intersection, union } => {
                Some(Resemblance::Exact { intersection: intersection as usize, union: union as usize })
            }
            Self::Distance(_) => None,
        }
    }

    /// Writes only the first column of the score, as in clusters.tsv.
    pub(crate) fn write_short(self, out: &mut impl Write) -> io::Result<()> {
        match (self, self.resemblance()) {
            (Self::Resemblance { intersection, union: union @ 1.. }, _) => {
                write_quotient(intersection, union, out)
            }
            (Self::Distance(distance), _) => write!(out, "{distance}"),
            (_, Some(resemblance)) => write!(out, "{:.6}", resemblance.value()),
            (_, None) => out.write_all(b"-"),
        }
    }

    /// Writes the [columns](ScoreKind::columns) of the score in a run of this kind, separated by tabs.
    pub(crate) fn write(self, kind: ScoreKind, out: &mut impl Write) -> io::Result<()> {
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
            _ => self.write_short(out),
        }
    }
}

/// Writes the quotient, which is at most 1, with the same digits as `{:.6}` of the nearest float.
fn write_quotient(intersection: u32, union: u32, out: &mut impl Write) -> io::Result<()> {
    // The float differs from the quotient by at most 2^-54. This can change the rounded digits only if the quotient is
    // on a rounding boundary, or so close to one as only a large divisor permits.
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
        for (kind, score) in [
            (ScoreKind::Resemblance, Score::Resemblance { intersection: 0, union: 0 }),
            (ScoreKind::Resemblance, Score::Resemblance { intersection: 8, union: u32::MAX }),
            (ScoreKind::Containment, Score::Resemblance { intersection: 8, union: 9 }),
            (ScoreKind::Distance, Score::Distance(64)),
        ] {
            assert_eq!(kind.unpack(score.pack()), score);
        }
        for kind in [ScoreKind::Resemblance, ScoreKind::Containment, ScoreKind::Distance] {
            let itself = kind.unpack(kind.itself(7).pack());
            assert!(itself.resemblance().is_none_or(|resemblance| resemblance.value() >= 1.0), "{kind:?}");
            let mut columns = Vec::new();
            itself.write(kind, &mut columns).unwrap();
            let columns = String::from_utf8(columns).unwrap();
            assert_eq!(columns.split('\t').count(), kind.columns().split('\t').count());
        }
    }
}
