//! The figures of a report.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use twindex::params::FEATURE_BITS_MAX;
use twindex::params::FeatureScheme;
use twindex::{KeyBuf, Snapshot};
use twindex_join::scores::{EqualSignatures, Scores};
use twindex_join::{JoinResources, Forest, band_scores, block_scores, scored_pairs};

use super::groups::GroupSizes;
use super::{VerifyOptions, Space};
use crate::dedup::Hosts;

/// The lowest score of fingerprints that is listed: distance 8, as in the study whose table it is.
pub(crate) const SCORE_MIN: usize = 56;
/// Bins of resemblance.
pub(crate) const BINS: usize = 20;
/// Clusters that are shown with some of their keys.
const CLUSTERS_SHOWN: usize = 10;
/// Candidates from which the clusters to show are chosen at once.
const CLUSTERS_HELD: usize = 1 << 12;
/// Keys of a cluster that are shown.
pub const KEYS_SHOWN: usize = 5;

/// The figures of a report.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub(crate) name: String,
    pub(crate) documents: u64,
    pub(crate) segments: usize,
    pub(crate) generation: u64,
    pub(crate) distinct_fingerprints: u64,
    pub(crate) bytes_on_disk: u64,
    /// Bytes by section.
    pub(crate) bytes: BTreeMap<&'static str, u64>,
    pub(crate) params: Vec<(&'static str, String)>,
    /// Pairs that share a block of their fingerprints.
    pub(crate) blocks: Option<CollisionFigures>,
    /// Pairs that share a band.
    pub(crate) bands: Option<BandFigures>,
    pub(crate) clusters: Option<ClusterFigures>,
    /// Sizes of groups, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<GroupSizes>,
    /// Counts of duplicates by host, if documents have URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hosts: Option<Hosts>,
}

/// Pairs that collide in buckets.
#[derive(Debug, Serialize)]
pub(crate) struct CollisionFigures {
    /// For each block or band, the pairs of each score or bin of resemblance.
    pub(crate) pairs: Vec<Vec<u64>>,
    /// The number of pairs that agree in everything, in every block or band.
    pub(crate) identical_pairs: u64,
    /// How many buckets have 1, 2 to 3, 4 to 7 and so on different members.
    pub(crate) buckets: Vec<u64>,
    pub(crate) largest_bucket: u64,
    pub(crate) capped_buckets: u64,
}

impl CollisionFigures {
    /// `place` puts a score into one of `places`, or leaves it out.
    fn of(scores: &Scores, places: usize, place: impl Fn(usize) -> Option<usize>) -> Self {
        let fold = |counts: &Vec<u64>| {
            let mut folded = vec![0; places];
            for (score, pairs) in counts.iter().enumerate() {
                if let Some(place) = place(score) {
                    folded[place] += pairs;
                }
            }
            folded
        };
        Self {
            pairs: scores.pairs.iter().map(fold).collect(),
            identical_pairs: scores.pairs.first().and_then(|counts| counts.last()).copied().unwrap_or(0),
            buckets: scores.buckets.clone(),
            largest_bucket: scores.largest_bucket,
            capped_buckets: scores.capped_buckets,
        }
    }
}

/// Figures of the candidates of bands.
#[derive(Debug, Serialize)]
pub(crate) struct BandFigures {
    pub(crate) bands: u16,
    pub(crate) rows: u16,
    pub(crate) minima: usize,
    pub(crate) collisions: CollisionFigures,
    /// Resemblance, the share of pairs that share a band as predicted, and as measured, with the pairs it was
    /// measured on.
    pub(crate) curve: Vec<(f64, f64, Option<f64>, u64)>,
    pub(crate) threshold: f64,
    /// The features that predict.
    #[serde(skip)]
    pub(crate) scheme: FeatureScheme,
}

/// Clusters of documents.
#[derive(Debug, Serialize)]
pub struct ClusterFigures {
    /// The near relation, in words.
    pub(crate) near: String,
    /// Clusters of two documents or more.
    pub(crate) clusters: u64,
    /// Documents removed for another one in their cluster.
    pub(crate) redundant: u64,
    /// How many clusters have each size.
    pub(crate) sizes: BTreeMap<u64, u64>,
    /// The largest clusters: documents, and some of their keys.
    pub(crate) largest: Vec<(u64, Vec<String>)>,
}

impl ClusterFigures {
    /// `near` says in words which documents are. Clusters are their documents, which may be of any kind and each stand
    /// for some; `keys` names a few of those that are shown.
    ///
    /// # Errors
    ///
    /// The bytes of `keys`.
    pub fn of(
        near: String,
        clusters: impl IntoIterator<Item = (u64, u32)>,
        mut key: impl FnMut(u32) -> twindex::Result<Vec<String>>,
    ) -> twindex::Result<Self> {
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut many: Vec<(u64, u32)> = Vec::new();
        let (mut count, mut redundant) = (0, 0);
        let largest_first = |&(size, name): &(u64, u32)| (std::cmp::Reverse(size), name);
        for (size, name) in clusters {
            *sizes.entry(size).or_default() += 1;
            if size > 1 {
                (count, redundant) = (count + 1, redundant + size - 1);
                many.push((size, name));
                if many.len() >= CLUSTERS_HELD {
                    many.sort_unstable_by_key(largest_first);
                    many.truncate(CLUSTERS_SHOWN);
                }
            }
        }
        many.sort_unstable_by_key(largest_first);
        let largest = many.iter().take(CLUSTERS_SHOWN).map(|&(size, name)| Ok((size, key(name)?)));
        let largest = largest.collect::<twindex::Result<_>>()?;
        Ok(Self { near, clusters: count, redundant, sizes, largest })
    }
}

impl Figures {
    /// Under the name at the end of another path.
    #[must_use]
    pub fn named(self, path: &Path) -> Self {
        Self { name: name_of(path), ..self }
    }

    /// With clusters that were found otherwise.
    #[must_use]
    pub fn with_clusters(self, clusters: ClusterFigures) -> Self {
        Self { clusters: Some(clusters), ..self }
    }

    /// With groups, of the same index.
    #[must_use]
    pub fn with_groups(self, groups: GroupSizes) -> Self {
        Self { groups: Some(groups), ..self }
    }

    /// With where near documents come from.
    #[must_use]
    pub fn with_hosts(self, hosts: Option<Hosts>) -> Self {
        Self { hosts, ..self }
    }

    /// # Errors
    ///
    /// The index is damaged, or the scratch folder cannot be written to.
    pub(crate) fn of(
        snapshot: &Snapshot,
        index: &Path,
        look: VerifyOptions,
        resources: JoinResources<'_>,
        by_signatures: bool,
    ) -> anyhow::Result<Self> {
        let space = Space::of(snapshot, index);
        let params = snapshot.params();
        let blocks = match params.simhash {
            Some(_) => {
                let scores = block_scores(snapshot, look.max_bucket, resources)?;
                let places = u64::BITS as usize - SCORE_MIN + 1;
                Some(CollisionFigures::of(&scores, places, |score| score.checked_sub(SCORE_MIN)))
            }
            None => None,
        };
        let (bands, clusters) = BandFigures::of(snapshot, look, resources, by_signatures)?.unzip();
        Ok(Self {
            name: name_of(index),
            documents: snapshot.documents(),
            segments: snapshot.entries().len(),
            generation: snapshot.generation(),
            distinct_fingerprints: space.distinct,
            bytes_on_disk: space.on_disk,
            bytes: space.sections,
            params: params.fields(),
            blocks,
            bands,
            clusters: clusters.flatten(),
            groups: None,
            hosts: None,
        })
    }
}

impl BandFigures {
    /// What bands find, and, if asked for, the clusters of what is near by signatures. None where no bands, or no
    /// signatures to compare, are kept.
    fn of(
        snapshot: &Snapshot,
        look: VerifyOptions,
        resources: JoinResources<'_>,
        by_signatures: bool,
    ) -> anyhow::Result<Option<(Self, Option<ClusterFigures>)>> {
        let Some(minhash) = snapshot.params().minhash.filter(|minhash| minhash.signature_bits > 0) else {
            return Ok(None);
        };
        let (minima, bits) = (minhash.minima(), minhash.signature_bits);
        let estimate = |matches: usize| twindex::Resemblance::from_matches(matches, minima, bits);
        let is_near: Vec<bool> = (0..=minima).map(|score| estimate(score).at_least(look.threshold)).collect();
        let (found, clusters) = if by_signatures {
            // No more different signatures than documents.
            let mut forest = Forest::new(u32::try_from(snapshot.documents()).unwrap_or(u32::MAX));
            let found = scored_pairs(snapshot, look.max_bucket, resources, |a, b, score| {
                if is_near[score as usize] {
                    forest.join(a, b);
                }
                Ok(())
            })?;
            let clusters = clusters_of(snapshot, &found.alike, &mut forest, look)?;
            (found, Some(clusters))
        } else {
            (band_scores(snapshot, look.max_bucket, resources)?, None)
        };

        // 32 bits agree by chance so rarely that it makes no difference, 8 do not.
        let feature_bits = if minhash.feature_bits == FEATURE_BITS_MAX { 64 } else { minhash.feature_bits };
        let scheme = FeatureScheme { feature_bits, ..FeatureScheme::new(minhash.bands, minhash.rows, 1) };
        let bin = |score: usize| {
            let resemblance = estimate(score).value();
            // The last bin includes a resemblance of 1.
            (0..BINS).rev().find(|&place| resemblance >= place as f64 / BINS as f64)
        };
        let curve = (0..BINS).map(|place| {
            let middle = (place as f64 + 0.5) / BINS as f64;
            let scores = (0..=minima).filter(|&score| bin(score) == Some(place));
            // Weighted by the pairs that there are, by each score's own measure.
            let (mut pairs, mut there) = (0, 0.0);
            for score in scores {
                if let Some(accepted) = found.accepted(score, minhash.bands).filter(|share| *share > 0.0) {
                    pairs += found.shared[score].0;
                    there += found.shared[score].0 as f64 / accepted;
                }
            }
            let measured = (pairs > 0).then(|| pairs as f64 / there);
            (middle, scheme.fungible(middle), measured, pairs)
        });
        let bands = Self {
            bands: minhash.bands,
            rows: minhash.rows,
            minima,
            curve: curve.collect(),
            collisions: CollisionFigures::of(&found.scores, BINS, bin),
            threshold: look.threshold,
            scheme,
        };
        Ok(Some((bands, clusters)))
    }
}

/// The clusters that estimates make of documents by signature.
fn clusters_of(
    snapshot: &Snapshot,
    alike: &[EqualSignatures],
    forest: &mut Forest,
    look: VerifyOptions,
) -> anyhow::Result<ClusterFigures> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for number in 0..alike.len() as u32 {
        members.entry(forest.root(number)).or_default().push(number);
    }
    let documents = |members: &[u32]| -> u64 {
        members.iter().map(|&number| u64::from(alike[number as usize].documents)).sum()
    };
    let segments: Vec<_> = snapshot.segments().map(|(segment, _)| segment).collect();
    Ok(ClusterFigures::of(
        format!("an estimated resemblance of {} or more", look.threshold),
        members.iter().map(|(&root, members)| (documents(members), root)),
        |root| {
            let members = members[&root].iter().take(KEYS_SHOWN);
            let key = |&number: &u32| {
                let alike = alike[number as usize];
                segments[alike.segment as usize].key(alike.ordinal).map(|key| shown(&key))
            };
            members.map(key).collect()
        },
    )?)
}

/// The last part of a path, for a person.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A key for a person.
fn shown(key: &KeyBuf) -> String {
    match key.as_key() {
        twindex::Key::U64(number) => number.to_string(),
        twindex::Key::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
