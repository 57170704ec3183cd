//! Verified pairs, and the clusters they make.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use clap::ValueEnum;
use rayon::prelude::*;
use twindex::join::{Forest, numbered_pairs_within};
use twindex::{Resemblance, Snapshot};

use super::Method;
use super::corpus::Corpus;

/// Which document of a cluster stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Keep {
    First,
    Longest,
    SmallestKey,
}

/// How near two groups are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Score {
    Resemblance { intersection: u32, union: u32 },
    Distance(u32),
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // Two empty texts that are equal have nothing to divide.
            Self::Resemblance { union: 0, .. } => write!(f, "1.000000\t0\t0"),
            Self::Resemblance { intersection, union } => {
                write!(f, "{:.6}\t{intersection}\t{union}", f64::from(intersection) / f64::from(union))
            }
            Self::Distance(distance) => distance.fmt(f),
        }
    }
}

impl Score {
    fn counted(resemblance: Resemblance) -> Self {
        match resemblance {
            // A text of 2^32 shingles would be larger than the longest line that is read.
            Resemblance::Exact { intersection, union } => {
                Self::Resemblance { intersection: intersection as u32, union: union as u32 }
            }
            Resemblance::Estimate { .. } => unreachable!("sets are counted, not estimated"),
        }
    }
}

/// A verified pair of groups, the smaller number first.
pub(super) type Pair = (u32, u32, Score);

/// Pairs of groups that resemble each other by `threshold` or more, out of the candidates.
pub(super) fn verified(
    corpus: &Corpus,
    candidates: &[(u32, u32)],
    threshold: f64,
) -> anyhow::Result<Vec<Pair>> {
    let verified = candidates.par_iter().filter_map(|&(a, b)| {
        let resemblance = corpus.sets.resemblance_from(a, b, threshold).transpose()?;
        Some(resemblance.map(|resemblance| (a, b, Score::counted(resemblance))))
    });
    Ok(verified.collect::<twindex::Result<_>>()?)
}

/// Pairs of groups whose fingerprints are near.
pub(super) fn near_groups(corpus: &Corpus, snapshot: &Snapshot, within: u32) -> anyhow::Result<Vec<Pair>> {
    let pairs = numbered_pairs_within(snapshot, within, |place| Ok(corpus.group_at(place.key()?.as_key())))?;
    Ok(pairs.into_iter().map(|(a, b, distance)| (a, b, Score::Distance(distance))).collect())
}

/// The clusters, numbered from 1 in the order of their smallest keys.
pub(super) struct Clusters {
    pub(super) kept_of_group: Vec<u32>,
    pub(super) scores: Vec<Option<Score>>,
    /// Documents of each cluster.
    pub(super) sizes: Vec<u32>,
    /// Documents that are less near to the kept one than the threshold.
    pub(super) chained: u64,
}

impl Clusters {
    /// Connected components, and the document to keep of each.
    pub(super) fn of(
        corpus: &Corpus,
        pairs: &[Pair],
        method: Method,
        keep: Keep,
        threshold: f64,
    ) -> anyhow::Result<Self> {
        let mut forest = Forest::new(corpus.groups.len() as u32);
        let mut distances: HashMap<(u32, u32), u32> = HashMap::new();
        for &(a, b, score) in pairs {
            forest.join(a, b);
            if let Score::Distance(distance) = score {
                distances.insert((a, b), distance);
            }
        }
        let mut kept: HashMap<u32, u32> = HashMap::new();
        for document in 0..corpus.keys.len() as u32 {
            let root = forest.root(corpus.group_of[document as usize]);
            match kept.entry(root) {
                Entry::Vacant(vacant) => {
                    vacant.insert(document);
                }
                Entry::Occupied(mut occupied) => {
                    let other = *occupied.get();
                    let better = match keep {
                        Keep::First => false, // documents come in the order of the input
                        Keep::Longest => corpus.group(document).text_bytes > corpus.group(other).text_bytes,
                        Keep::SmallestKey => corpus.keys[document as usize] < corpus.keys[other as usize],
                    };
                    if better {
                        occupied.insert(document);
                    }
                }
            }
        }
        let kept_of_group: Vec<u32> =
            (0..corpus.groups.len() as u32).map(|group| kept[&forest.root(group)]).collect();
        let scores: Vec<Option<Score>> = (0..corpus.groups.len() as u32)
            .into_par_iter()
            .map(|group| {
                let other = corpus.group_of[kept_of_group[group as usize] as usize];
                Ok(match method {
                    Method::Minhash if group != other => {
                        Some(Score::counted(corpus.sets.resemblance(group, other)?))
                    }
                    Method::Simhash if group != other => {
                        distances.get(&(group.min(other), group.max(other))).copied().map(Score::Distance)
                    }
                    Method::Simhash => Some(Score::Distance(0)),
                    Method::Minhash | Method::Exact => Some(corpus.itself(group)),
                })
            })
            .collect::<twindex::Result<_>>()?;
        Ok(Self::new(corpus, kept_of_group, scores, threshold))
    }

    fn new(corpus: &Corpus, kept_of_group: Vec<u32>, scores: Vec<Option<Score>>, threshold: f64) -> Self {
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        let mut chained = 0;
        for (group, &kept) in corpus.groups.iter().zip(&kept_of_group) {
            *sizes.entry(kept).or_default() += group.members.len() as u32;
        }
        for (group, score) in corpus.groups.iter().zip(&scores) {
            let near = match *score {
                Some(Score::Resemblance { intersection, union }) => {
                    let (intersection, union) = (intersection as usize, union as usize);
                    intersection == union || Resemblance::Exact { intersection, union }.at_least(threshold)
                }
                Some(Score::Distance(_)) => true,
                None => false,
            };
            chained += if near { 0 } else { group.members.len() as u64 };
        }
        Self { kept_of_group, scores, sizes: sizes.into_values().collect(), chained }
    }
}
