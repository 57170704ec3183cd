//! Finds pairs of kept documents whose resemblance is a little below the threshold, among a sample of the kept documents.
//!
//! Two documents are compared if their first minima are equal, which has the probability of their resemblance. The
//! sample has the documents whose first minima have the smallest hashes, so that documents with equal minima are all in
//! the sample, or none.

use twindex::sketch::jaccard;
use twindex_join::SetReader;
use xxhash_rust::xxh3::xxh3_64;

use crate::results::survey::DrawnPair;
use crate::rule::clusters::Clusters;
use crate::rule::score::Score;
use crate::stored::corpus::Corpus;
use crate::stored::drawn::{DRAWN, LINE_MAX};

/// The difference between the threshold and the smallest resemblance that is searched for.
pub(crate) const BELOW: f64 = 0.1;
/// Expected maximum number of documents in the sample. There are never more than twice as many.
const SAMPLE: u64 = 1 << 15;
/// Maximum number of following documents with the same minimum with which a document is compared.
const FOLLOWING: usize = 8;
/// Maximum number of comparisons, and maximum total size of the compared sets.
const COMPARED: (usize, u64) = (2048, 1 << 22);

/// The pairs below the threshold.
pub(crate) struct Missed {
    /// Number of kept documents in the sample.
    pub(crate) sample: u64,
    /// Number of pairs found.
    pub(crate) found: u64,
    /// Pairs drawn from those found. Both documents are kept; the later one is in the place of the removed document.
    pub(crate) drawn: Vec<DrawnPair>,
}

impl Missed {
    /// Searches the sample for pairs with a resemblance below `threshold`. The sets must not have been freed.
    pub(crate) fn of(corpus: &Corpus, clusters: &Clusters, threshold: f64) -> twindex::Result<Self> {
        let grouped = &corpus.grouped;
        let sampled = sampled(corpus, clusters);
        let lower = threshold - BELOW;
        let mut missed = Self { sample: sampled.len() as u64, found: 0, drawn: Vec::new() };
        let (mut of_first, mut of_second) = (SetReader::new(&grouped.sets), SetReader::new(&grouped.sets));
        let mut compared = (0, 0);
        for (place, &(hash, first)) in sampled.iter().enumerate() {
            let following = sampled[place + 1..].iter().take(FOLLOWING);
            for &(_, second) in following.take_while(|(other, _)| *other == hash) {
                let sizes = [first, second].map(|group| grouped.sets.size(group));
                let is_similar = sizes[0].min(sizes[1]) as f64 >= lower * sizes[0].max(sizes[1]) as f64;
                if !is_similar || !grouped.are_compared(first, second) {
                    continue;
                }
                compared = (compared.0 + 1, compared.1 + sizes[0] + sizes[1]);
                if compared.0 > COMPARED.0 || compared.1 > COMPARED.1 {
                    return Ok(missed.ended());
                }
                let (both, union) = jaccard(of_first.set(first)?, of_second.set(second)?);
                let value = both as f64 / union.max(1) as f64;
                if value >= lower && value < threshold {
                    missed.found += 1;
                    let score = Score::Resemblance { intersection: both as u32, union: union as u32 };
                    missed.draw(
                        corpus,
                        [first, second].map(|group| clusters.kept_of_group[group as usize]),
                        score,
                    );
                }
            }
        }
        Ok(missed.ended())
    }

    /// Keeps a pair if its hash is one of the smallest. Each document is in at most one pair.
    fn draw(&mut self, corpus: &Corpus, documents: [u32; 2], score: Score) {
        if documents.iter().any(|&document| corpus.line_length(document) > LINE_MAX) {
            return;
        }
        let [first, second] = [documents[0].min(documents[1]), documents[0].max(documents[1])];
        let pair = DrawnPair::new(xxh3_64(corpus.keys.get(second)), second, first, score);
        let shares = |other: &&mut DrawnPair| other.kept == first || other.removed == second;
        if let Some(other) = self.drawn.iter_mut().find(shares) {
            *other = pair.min(*other);
        } else {
            self.drawn.push(pair);
        }
    }

    fn ended(mut self) -> Self {
        self.drawn.sort_unstable();
        self.drawn.truncate(DRAWN);
        self
    }
}

/// Returns the kept groups of the sample: the hash of the first minimum, and the group, in the order of these hashes and of
/// the first documents.
fn sampled(corpus: &Corpus, clusters: &Clusters) -> Vec<(u64, u32)> {
    let grouped = &corpus.grouped;
    let max = (u64::MAX / clusters.count.max(1)).saturating_mul(SAMPLE);
    let mut sampled = Vec::new();
    for group in grouped.in_order() {
        let kept = clusters.kept_of_group[group as usize];
        let is_kept = kept >= corpus.history && grouped.group_of[kept as usize] == group;
        if is_kept && let Some(minimum) = grouped.first_minimum(group) {
            let hash = xxh3_64(&minimum.to_le_bytes());
            if hash <= max && sampled.len() < 2 * SAMPLE as usize {
                sampled.push((hash, group));
            }
        }
    }
    sampled.sort_by_key(|&(hash, _)| hash);
    sampled
}
