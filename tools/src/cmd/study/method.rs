//! The methods of `study --method`: their parameters, and the score of a pair.

use anyhow::Context;
use clap::ValueEnum;
use twindex::Snapshot;

/// Number of bands. With `ROWS` minima in each, there are 20 minima in total, as in Wu's study (see `bands.rs`).
const BANDS: u16 = 4;
const ROWS: u16 = 5;
/// The largest distance of fingerprints in the table.
const DISTANCE_MAX: u32 = 8;
/// Number of bits in a block of a fingerprint.
const BLOCK_BITS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StudyMethod {
    Simhash,
    Minhash,
}

impl StudyMethod {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Simhash => "simhash",
            Self::Minhash => "minhash",
        }
    }

    /// Returns the lowest and the highest score of the table.
    pub(super) fn scores(self) -> (usize, usize) {
        match self {
            Self::Simhash => ((u64::BITS - DISTANCE_MAX) as usize, u64::BITS as usize),
            Self::Minhash => (usize::from(BANDS * ROWS) / 2, usize::from(BANDS * ROWS)),
        }
    }

    /// Returns the `build` options for the method's index.
    pub(super) fn options(self) -> String {
        match self {
            Self::Simhash => "--method simhash --near within:3".to_owned(),
            Self::Minhash => {
                format!("--method minhash --bands {BANDS} --rows {ROWS} --signature-bits 32 --sets none")
            }
        }
    }

    /// Returns the `pairs` options that find all pairs with a score of the table.
    pub(super) fn pairs(self) -> String {
        match self {
            Self::Simhash => format!("--near within:{DISTANCE_MAX}"),
            // At least half of the minima must be equal. The threshold is slightly below 0.5, because estimates are
            // corrected for chance.
            Self::Minhash => "--near 0.49 --verify signature".to_owned(),
        }
    }

    /// Returns the score of a pair; `None` if the score is too low or the documents share no band.
    pub(super) fn score(
        self,
        snapshot: &Snapshot,
        a: &[u8],
        b: &[u8],
        written: &[u8],
    ) -> anyhow::Result<Option<usize>> {
        let text = std::str::from_utf8(written).unwrap_or_default();
        let (lowest, highest) = self.scores();
        let score = match self {
            Self::Simhash => text.parse().ok().and_then(|distance: usize| highest.checked_sub(distance)),
            Self::Minhash => text.parse().ok().and_then(|share: f64| {
                (0..=highest).find(|&score| (share * highest as f64 - score as f64).abs() < 0.5)
            }),
        };
        let score = score.context("a pair without a score")?;
        let (a, b) = (snapshot.get(a)?, snapshot.get(b)?);
        let (a, b) = (a.context("a document that is not there")?, b.context("a document that is not there")?);
        let shares = match self {
            Self::Simhash => {
                let apart = a.fingerprint.zip(b.fingerprint).map_or(u64::MAX, |(a, b)| a.0 ^ b.0);
                (0..u64::BITS / BLOCK_BITS).any(|block| (apart >> (block * BLOCK_BITS)) as u16 == 0)
            }
            Self::Minhash => {
                let bytes = usize::from(ROWS) * size_of::<u32>();
                a.signature.chunks(bytes).zip(b.signature.chunks(bytes)).any(|(a, b)| a == b)
            }
        };
        Ok((shares && score >= lowest).then_some(score))
    }
}
