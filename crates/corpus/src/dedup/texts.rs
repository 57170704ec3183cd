//! The same rule for texts in memory: nothing is read, and nothing is written but scratch files.

use std::collections::HashSet;
use std::path::Path;

use rayon::prelude::*;
use twindex::Error;
use twindex::params::Shingling;
use twindex::sketch::{Buffers, Shingler, Sketch};
use twindex::sys::{Column, Room};
use xxhash_rust::xxh3::xxh3_128;

use super::choices::{check_clusters, check_common, check_containment, check_cut};
use super::clusters::Clusters;
use super::groups::{Grouped, NewSet, Newcomer};
use super::inside::put_inside;
use super::near::{Join, Limits, Near};
use super::out::Listed;
use super::priority::{Keep, OrderedBy, Priority};
use super::rules::{Clustering, NearBy, Rules};
use super::score::Score;
use super::{ListedPairs, MAX_BUCKET, MEMORY};
use crate::InvalidOptions;
use crate::input::FieldNumber;

/// Texts that one thread shingles at a time.
const CHUNK: usize = 256;
/// Texts that are shingled before their sets are put away.
const TOGETHER: usize = 64 * CHUNK;

/// A job on texts in memory: what [`Dedup`](super::Dedup) does by default, without keys, files and an index.
///
/// ```
/// use twindex_corpus::DedupTexts;
///
/// let texts = ["a rose is a rose is a rose", "something else", "a rose is a rose is a rose"];
/// let found = DedupTexts::default().run(&texts.map(str::as_bytes))?;
/// assert_eq!(found.kept_of, [0, 1, 0]);
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DedupTexts {
    /// Resemblance from which on texts are near, 0.05 to 1; 0.8 by default.
    pub threshold: f64,
    /// What is counted of two texts; their resemblance by default.
    pub near: NearBy,
    /// How they are cut into shingles; five words by default.
    pub shingling: Shingling,
    /// Which of near texts stays; [`Keep::SmallestKey`] is the first, as there are no keys, and [`Keep::KeyHash`] is
    /// refused. [`Keep::Max`] and [`Keep::Min`] go by [`Beside::numbers`], of equal ones the first stays.
    pub keep: Keep,
    /// As [`Dedup::clusters`](field@super::Dedup::clusters).
    pub clusters: Clustering,
    /// As [`Dedup::pairs`](field@super::Dedup::pairs).
    pub pairs: ListedPairs,
    /// As [`Dedup::max_work`](super::Dedup::max_work).
    pub max_work: Option<u64>,
    /// As [`Dedup::max_cluster`](super::Dedup::max_cluster).
    pub max_cluster: Option<u32>,
    /// As [`Dedup::max_bucket`](super::Dedup::max_bucket).
    pub max_bucket: u32,
    /// Bytes for work that can go to disk instead, beside the texts and what is returned; [`MEMORY_MIN`](super::MEMORY_MIN) or more.
    pub memory: usize,
}

impl Default for DedupTexts {
    fn default() -> Self {
        Self {
            threshold: 0.8,
            near: NearBy::Resemblance,
            shingling: Shingling::words(5, 0),
            keep: Keep::First,
            clusters: Clustering::Leaders,
            pairs: ListedPairs::Covering,
            max_work: None,
            max_cluster: None,
            max_bucket: MAX_BUCKET,
            memory: MEMORY,
        }
    }
}

/// What texts in memory have beside them, for each text in their order.
///
/// ```
/// use twindex_corpus::{Beside, DedupTexts, FieldNumber, Keep};
///
/// let texts = ["a rose is a rose is a rose"; 4].map(str::as_bytes);
/// let numbers = [7, 9, 9, 8].map(|number| FieldNumber::integer(number).expect("of few bits"));
/// let inside = [&b"en"[..], b"en", b"en", b"de"];
/// let job = DedupTexts { keep: Keep::Max, ..DedupTexts::default() };
/// let beside = Beside { numbers: Some(&numbers), inside: Some(&inside) };
/// assert_eq!(job.run_beside(&texts, beside)?.kept_of, [1, 1, 1, 3]);
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'b> {
    /// The numbers by which [`Keep::Max`] and [`Keep::Min`] go.
    pub numbers: Option<&'b [FieldNumber]>,
    /// The values inside of which texts are compared, none of them empty.
    pub inside: Option<&'b [&'b [u8]]>,
}

impl<'b> Beside<'b> {
    /// Refuses what is not there for each text, or goes with nothing.
    fn check(self, keep: Keep, texts: usize) -> Result<(), InvalidOptions> {
        let counts = [("numbers", self.numbers.map(<[_]>::len)), ("inside", self.inside.map(<[_]>::len))];
        for (name, count) in counts {
            if let Some(count) = count.filter(|&count| count != texts) {
                return Err(InvalidOptions::new(format!(
                    "{name}: expected {texts}, one a text, found {count}"
                )));
            }
        }
        if keep.by_number() != self.numbers.is_some() {
            return Err(InvalidOptions::new(
                "keep: max and min go with numbers, one a text, and only they do",
            ));
        }
        let empty = self.inside.and_then(|inside| inside.iter().position(|value| value.is_empty()));
        if let Some(at) = empty {
            return Err(InvalidOptions::new(format!(
                "inside: the value at {at} is empty: give each text a value, as those without one would share it"
            )));
        }
        Ok(())
    }

    /// The value of a text, empty where there are none.
    fn inside(self, at: usize) -> &'b [u8] {
        self.inside.map_or(&[], |inside| inside[at])
    }
}

/// What was found. Texts go by their places, from 0.
#[derive(Clone, Debug)]
pub struct Found {
    /// Of each text the one that is kept for it, itself if it stays.
    pub kept_of: Vec<u32>,
    /// Of each text its resemblance to that.
    pub scores: Vec<f64>,
    /// Each text that goes, the one that is kept for it, and their resemblance; or all pairs that are near, the smaller
    /// place first. Sorted.
    pub pairs: Vec<(u32, u32, f64)>,
    /// Shingles that too many texts have, beyond which pairs may be missing.
    pub capped_shingles: u64,
    /// How many texts are too many.
    pub cap: u64,
}

impl DedupTexts {
    /// Finds the texts that are near each other, and which of them to keep, on the threads of the pool of rayon that it is
    /// called in. A text that is not UTF-8 is near nothing but equal ones.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::InvalidOptions); a shingling that this build does not know; scratch files that cannot be written; more than 2^32 texts.
    pub fn run(&self, texts: &[&[u8]]) -> anyhow::Result<Found> {
        self.run_beside(texts, Beside::default())
    }

    /// As [`run`](Self::run), for texts that have something beside them.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run_beside(&self, texts: &[&[u8]], beside: Beside<'_>) -> anyhow::Result<Found> {
        check_common(self.threshold, self.max_bucket, self.memory)?;
        check_clusters(self.clusters, self.max_cluster)?;
        check_cut(self.keep, self.max_cluster)?;
        check_containment(self.near, self.clusters, self.pairs)?;
        beside.check(self.keep, texts.len())?;
        if self.keep == Keep::KeyHash {
            return Err(InvalidOptions::new("keep: texts have no keys to be hashed").into());
        }
        let scratch = tempfile::tempdir()
            .map_err(|error| Error::io("create a scratch folder in", &std::env::temp_dir(), error))?;
        let grouped = self.group(texts, beside, scratch.path())?;
        let limits = Limits {
            folder: scratch.path(),
            journal: None,
            observer: &(),
            memory: self.memory / 2,
            max_bucket: self.max_bucket as usize,
        };
        let numbers = beside.numbers.unwrap_or_default().iter().map(|number| number.bits());
        let numbers = Column::of(&grouped.room, numbers)?;
        let by = OrderedBy {
            keep: self.keep,
            near: self.near,
            keys: None,
            numbers: &numbers,
            history: 0,
            history_keys: None,
        };
        let priority = Priority::of(&grouped, by, limits.memory / 2)?;
        let rules = Rules {
            clustering: self.clusters,
            order: priority.order.as_deref(),
            firsts: &priority.firsts[..],
            fixed: 0,
            near: self.near,
            threshold: self.threshold,
            max_cluster: self.max_cluster.unwrap_or(u32::MAX),
            all_pairs: self.pairs == ListedPairs::All,
            most_comparisons: self.max_work,
        };
        let mut near = Near::by_sets(&grouped, Join::Auto, &rules, &limits)?;
        let measure = |a: u32, b: u32| Ok(Some(Score::counted(grouped.sets.resemblance(a, b)?)));
        let clusters = Clusters::of(&grouped, &mut near, &rules, &measure, 0)?;
        let value = |score: Score| score.resemblance().map_or(0.0, |resemblance| resemblance.value());
        let score_of = |group: u32| clusters.score(&grouped, group).map_or(0.0, value);
        let mut pairs = Vec::new();
        let listed = Listed { near: &near, clusters: &clusters };
        listed.for_each(&grouped, 0, limits.max_bucket, &mut |a, b, score| {
            let (a, b) = if listed.is_covering() { (a, b) } else { (a.min(b), a.max(b)) };
            pairs.push((a, b, value(near.kind.unpack(score))));
            Ok(())
        })?;
        pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
        Ok(Found {
            kept_of: grouped.group_of.iter().map(|&group| clusters.kept_of_group[group as usize]).collect(),
            scores: grouped.group_of.iter().map(|&group| score_of(group)).collect(),
            pairs,
            capped_shingles: near.capped.shingles,
            cap: near.capped.cap,
        })
    }

    /// Puts equal texts into groups, and shingles one of each.
    fn group(&self, texts: &[&[u8]], beside: Beside<'_>, folder: &Path) -> anyhow::Result<Grouped> {
        let room = Room::new(folder, self.memory / 4);
        let mut grouped = Grouped::new(&room, self.memory / 4, None)?;
        let shingler = Shingler::new(&self.shingling)?;
        let shingles = |text: &[u8], inside: &[u8], buffers: &mut Buffers| {
            let mut set = Vec::new();
            // Of a text that is not UTF-8 only an equal one is a copy.
            let Ok(text) = std::str::from_utf8(text) else { return (set, 0) };
            shingler.distinct(text, buffers, &mut set);
            if !inside.is_empty() {
                put_inside(&mut set, inside);
                set.sort_unstable();
            }
            (set, buffers.tokens() as u64)
        };
        let (sketch, mut seen) = (Sketch::default(), HashSet::new()); // seen in one piece
        for (number, some) in texts.chunks(TOGETHER).enumerate() {
            let inside = |at: usize| beside.inside(number * TOGETHER + at);
            let hashes: Vec<u128> = some.par_iter().with_min_len(CHUNK).map(|text| xxh3_128(text)).collect();
            seen.clear();
            let mut is_new = |(at, &hash): (usize, &u128)| {
                !grouped.may_have(hash, inside(at)) && seen.insert((hash, inside(at)))
            };
            let is_new: Vec<bool> = (0..).zip(&hashes).map(&mut is_new).collect();
            let sets: Vec<Option<(Vec<u64>, u64)>> = (some, is_new)
                .into_par_iter()
                .with_min_len(CHUNK)
                .enumerate()
                .map_init(Buffers::default, |buffers, (at, (text, is_new))| {
                    is_new.then(|| shingles(text, inside(at), buffers))
                })
                .collect();
            for (at, ((text, hash), set)) in some.iter().zip(hashes).zip(sets).enumerate() {
                let inside = inside(at);
                let is_equal = |other: u32| anyhow::Ok(texts[other as usize] == *text);
                // Another text with the hash of one before is shingled if it ever comes, and begins a group.
                let late = || shingles(text, inside, &mut Buffers::default());
                let (set, tokens) = match &set {
                    Some((set, tokens)) => (NewSet::Held(set), *tokens),
                    None => (NewSet::Late(&late), 0),
                };
                let new = Newcomer { hash, tokens, inside, sketch: &sketch, set };
                grouped.add(&new, is_equal)?;
            }
        }
        Ok(grouped)
    }
}
