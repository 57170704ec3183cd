//! The numbers that a report shows.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use twindex::format::contents::Kind;
use twindex::params::{FEATURE_BITS_MAX, FeatureScheme};
use twindex::{GroupRule, KeyBuf, Resources, Snapshot};
use twindex_join::bands::scores::{EqualSignatures, Scores};
use twindex_join::{Forest, JoinResources, block_scores, scored_pairs};

use crate::results::page::chart::{Chart, Scale};
use crate::urls::hosts::Hosts;
use crate::work::numbers::count;

/// The smallest score in the table of colliding pairs. A score is the number of equal bits of two 64-bit fingerprints,
/// so 56 is a Hamming distance of 8.
pub(crate) const SCORE_MIN: usize = 56;
/// Number of bins into which resemblances are grouped.
pub(crate) const BINS: usize = 20;
/// Number of clusters that are shown with some of their keys.
const CLUSTERS_SHOWN: usize = 10;
/// Number of clusters collected in memory before the largest [`CLUSTERS_SHOWN`] are selected.
const CLUSTERS_HELD: usize = 1 << 12;
/// Maximum number of keys shown for a cluster.
pub const KEYS_SHOWN: usize = 5;

/// The numbers that a report shows.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub(crate) name: String,
    pub(crate) documents: u64,
    pub(crate) segments: usize,
    pub(crate) generation: u64,
    pub(crate) distinct_fingerprints: u64,
    pub(crate) bytes_on_disk: u64,
    /// Number of bytes in each kind of section of the index.
    pub(crate) bytes: BTreeMap<&'static str, u64>,
    pub(crate) params: Vec<(&'static str, String)>,
    /// Statistics of the pairs of fingerprints that agree in a block.
    pub(crate) blocks: Option<CollisionFigures>,
    /// Statistics of the pairs of documents that agree in a band.
    pub(crate) bands: Option<BandFigures>,
    pub(crate) clusters: Option<ClusterFigures>,
    /// Sizes of groups; `None` if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) groups: Option<GroupSizes>,
    /// Statistics of duplicates by host; `None` if documents have no URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hosts: Option<Hosts>,
}

/// Statistics of pairs that are in the same bucket.
#[derive(Debug, Serialize)]
pub(crate) struct CollisionFigures {
    /// For each block or band, the number of pairs with each score or in each bin of resemblance.
    pub(crate) pairs: Vec<Vec<u64>>,
    /// Number of pairs that agree in all blocks or bands.
    pub(crate) identical_pairs: u64,
    /// Number of buckets with 1, 2 to 3, 4 to 7, and so on distinct members.
    pub(crate) buckets: Vec<u64>,
    pub(crate) largest_bucket: u64,
    pub(crate) capped_buckets: u64,
}

impl CollisionFigures {
    /// Groups scores into `places` bins. `place` returns the bin of a score, or `None` to ignore the score.
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

/// Statistics of the candidate pairs that banding finds.
#[derive(Debug, Serialize)]
pub(crate) struct BandFigures {
    pub(crate) bands: u16,
    pub(crate) rows: u16,
    pub(crate) minima: usize,
    #[serde(rename = "meetings")]
    pub(crate) collisions: CollisionFigures,
    /// For each bin of resemblance: its middle, the predicted share of pairs that collide in a band, the measured
    /// share, and the number of measured pairs.
    pub(crate) curve: Vec<(f64, f64, Option<f64>, u64)>,
    pub(crate) threshold: f64,
    /// The scheme of features that predicts the share.
    #[serde(skip)]
    pub(crate) scheme: FeatureScheme,
}

/// Statistics of clusters.
#[derive(Debug, Serialize)]
pub struct ClusterFigures {
    /// The definition of near documents in words.
    pub(crate) near: String,
    /// Number of clusters with at least two documents.
    pub(crate) clusters: u64,
    /// Number of documents that duplicate another document of their cluster.
    pub(crate) redundant: u64,
    /// Number of clusters of each size.
    pub(crate) sizes: BTreeMap<u64, u64>,
    /// The largest clusters, each with its number of documents and some of their keys.
    pub(crate) largest: Vec<(u64, Vec<String>)>,
}

impl ClusterFigures {
    /// Computes the statistics of clusters, given the size and identifier of each. `near` is the definition of near
    /// documents in words. `key` returns some keys of a cluster; it is called for the clusters shown.
    ///
    /// # Errors
    ///
    /// The errors of `key`.
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
    /// Adds the sizes of groups of the same index.
    #[must_use]
    pub fn with_groups(self, groups: GroupSizes) -> Self {
        Self { groups: Some(groups), ..self }
    }

    /// Adds the statistics of duplicates by host.
    #[must_use]
    pub fn with_hosts(self, hosts: Option<Hosts>) -> Self {
        Self { hosts, ..self }
    }

    /// Computes the numbers for a report about an index.
    ///
    /// # Errors
    ///
    /// The index is damaged, or scratch files cannot be written.
    pub(crate) fn of(
        snapshot: &Snapshot,
        index: &Path,
        look: VerifyOptions,
        resources: JoinResources<'_>,
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
        let (bands, clusters) = BandFigures::of(snapshot, look, resources)?.unzip();
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
            clusters,
            groups: None,
            hosts: None,
        })
    }
}

impl BandFigures {
    /// Computes the statistics of bands, and clusters of documents whose signatures are near. `None` if the index has no
    /// bands, or no signatures to compare.
    fn of(
        snapshot: &Snapshot,
        look: VerifyOptions,
        resources: JoinResources<'_>,
    ) -> anyhow::Result<Option<(Self, ClusterFigures)>> {
        let Some(minhash) = snapshot.params().minhash.filter(|minhash| minhash.signature_bits > 0) else {
            return Ok(None);
        };
        let (minima, bits) = (minhash.minima(), minhash.signature_bits);
        let estimate = |matches: usize| twindex::Resemblance::from_matches(matches, minima, bits);
        let is_near: Vec<bool> = (0..=minima).map(|score| estimate(score).at_least(look.threshold)).collect();
        // The number of distinct signatures is at most the number of documents.
        let mut forest = Forest::new(u32::try_from(snapshot.documents()).unwrap_or(u32::MAX));
        let found = scored_pairs(snapshot, look.max_bucket, resources, |a, b, score| {
            if is_near[score as usize] {
                forest.join(a, b);
            }
            Ok(())
        })?;
        let clusters = clusters_of(snapshot, &found.alike, &mut forest, look)?;

        // Features of 32 bits hardly ever agree by chance, so the prediction assumes 64 bits. Shorter features, for
        // example of 8 bits, often agree by chance, so their width is used.
        let feature_bits = if minhash.feature_bits == FEATURE_BITS_MAX { 64 } else { minhash.feature_bits };
        let scheme = FeatureScheme { feature_bits, ..FeatureScheme::new(minhash.bands, minhash.rows, 1) };
        let bin = |score: usize| {
            let resemblance = estimate(score).value();
            // The last bin includes resemblance 1.
            (0..BINS).rev().find(|&place| resemblance >= place as f64 / BINS as f64)
        };
        let curve = (0..BINS).map(|place| {
            let middle = (place as f64 + 0.5) / BINS as f64;
            let scores = (0..=minima).filter(|&score| bin(score) == Some(place));
            // `found` has only pairs that share a band. Dividing their number by the share that collides estimates the
            // number of all pairs with this score.
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

/// Computes clusters of documents whose signatures are near.
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

/// Returns the last component of a path as text.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn shown(key: &KeyBuf) -> String {
    match key.as_key() {
        twindex::Key::U64(number) => number.to_string(),
        twindex::Key::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Options for comparing the documents of an index for the report.
#[derive(Clone, Copy, Debug)]
pub struct VerifyOptions {
    /// The smallest estimated resemblance of documents in a cluster.
    pub threshold: f64,
    /// In buckets with more than this number of distinct members, only adjacent members are compared.
    pub max_bucket: usize,
}

/// Number of groups of near documents by size ([`Snapshot::groups`]).
#[derive(Clone, Debug, Serialize)]
pub struct GroupSizes {
    groups: u64,
    /// Number of documents in the largest group.
    largest: u32,
    /// Whether groups are based on estimated resemblance.
    is_estimate: bool,
    /// Number of groups of each size.
    sizes: BTreeMap<u32, u64>,
}

impl GroupSizes {
    /// Finds all groups of the index.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::groups`].
    pub fn of(snapshot: &Snapshot, resources: &Resources<'_>) -> twindex::Result<Self> {
        let all = twindex_join::living_groups(snapshot, resources)?;
        let sizes = all.sizes();
        let largest = sizes.last_key_value().map_or(0, |(size, _)| *size);
        Ok(Self { groups: all.count(), largest, is_estimate: all.rule() == GroupRule::Estimated, sizes })
    }

    /// Returns the total number of groups, and then the number of groups with 1, 2, 3 to 4, 5 to 8, and so on
    /// documents.
    #[must_use]
    pub fn classes(&self) -> Vec<(String, u64)> {
        let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
        for (size, groups) in &self.sizes {
            *classes.entry(size.next_power_of_two()).or_default() += groups;
        }
        let name = |max: u32| match max / 2 + 1 {
            min if min >= max => format!("of {max}"),
            min => format!("of {min} to {max}"),
        };
        let of_classes = classes.into_iter().map(|(max, groups)| (name(max), groups));
        let all = if self.is_estimate { "groups, by estimates" } else { "groups" };
        std::iter::once((all.to_owned(), self.groups)).chain(of_classes).collect()
    }

    /// Returns the section of the report about groups.
    pub(crate) fn html(&self) -> String {
        let estimated = if self.is_estimate { ", by estimates of resemblance" } else { "" };
        let mut page = format!(
            "<h2 id=\"groups\">Groups</h2>\n<p>{} groups{estimated}: each has a document that leads it and is near all \
             others of it. The largest has {} documents.</p>\n",
            count(self.groups),
            count(self.largest.into())
        );
        if self.groups > 0 {
            let max = self.sizes.values().copied().max().unwrap_or(1);
            let mut chart = Chart::new(Scale::log_to(self.largest.into()), Scale::log_to(max as f64));
            chart.dots("a", self.sizes.iter().map(|(&size, &groups)| (f64::from(size), groups as f64)));
            page.push_str(&chart.figure(
                "documents of a group",
                "groups",
                "How many groups there are of each size, both in powers of ten; a group of one is a document alone.",
            ));
        }
        page
    }
}

/// The disk space of an index.
pub struct Space {
    /// Number of bytes by kind of section. `other` is the sum of headers, tables of contents, checksums, gaps, the
    /// manifest and `CURRENT`.
    pub sections: BTreeMap<&'static str, u64>,
    /// Number of bytes in the files of the current generation. Excludes the lock, earlier generations and foreign
    /// files.
    pub on_disk: u64,
    /// Sum of the numbers of distinct fingerprints in the segments.
    pub distinct: u64,
}

impl Space {
    /// Computes the disk space of `snapshot`, whose index is in `dir`.
    #[must_use]
    pub fn of(snapshot: &Snapshot, dir: &Path) -> Self {
        let mut sections: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut distinct = 0;
        // Documents in the log form a segment that is not on disk.
        let on_disk = snapshot.entries().len();
        for (place, (segment, _)) in snapshot.segments().enumerate() {
            distinct += segment.distinct_fingerprints();
            if place >= on_disk {
                continue;
            }
            for section in segment.sections() {
                *sections.entry(section.kind.name()).or_default() += section.length;
            }
        }
        // The lengths of segments are taken from the manifest in memory. Files that another process has removed
        // meanwhile count 0 bytes.
        let manifest = format!("MANIFEST-{:06}", snapshot.manifest().generation);
        let length = |name: &str| std::fs::metadata(dir.join(name)).map_or(0, |metadata| metadata.len());
        let segments: u64 = snapshot.entries().iter().map(|entry| entry.length).sum();
        let on_disk = segments + length("CURRENT") + length(&manifest);
        let table = snapshot.params().sketch().idf_table().ok().flatten();
        let idf = table.map_or(0, |table| length(&format!("IDF-{table:032x}")));
        sections.insert("idf", idf);
        let log: u64 = snapshot
            .manifest()
            .logged
            .iter()
            .flat_map(|logged| &logged.logs)
            .map(|log| length(&format!("LOG-{:06}", log.number)))
            .sum();
        sections.insert("log", log);
        let on_disk = on_disk + idf + log;
        let named: u64 = sections.values().sum();
        sections.insert("other", on_disk.saturating_sub(named));
        Self { sections, on_disk, distinct }
    }

    /// Returns the number of bytes per distinct fingerprint; 0 if there are no fingerprints. Excludes keys, values,
    /// stamps, the ranks and postings that connect documents and fingerprints, the IDF table and the log.
    pub fn per_fingerprint(&self) -> f64 {
        let kinds = [Kind::Keys, Kind::Ranks, Kind::Postings, Kind::Values, Kind::Stamps].map(Kind::name);
        let names = kinds.iter().copied().chain(["idf", "log"]);
        let of_documents: u64 = names.filter_map(|name| self.sections.get(name)).sum();
        if self.distinct == 0 {
            return 0.0;
        }
        self.on_disk.saturating_sub(of_documents) as f64 / self.distinct as f64
    }
}
