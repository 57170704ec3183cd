//! `dedup`: texts in memory, as `twindex dedup` does with files: identical texts first, then pairs by prefixes,
//! counted.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use rayon::prelude::*;
use twindex::params::Shingling;
use twindex::sketch::{Buffers, Shingler};
use twindex_join::{
    Effort, Forest, Groups, ShingleSets, for_each_pair_between, for_each_pair_inside, kept_of_groups,
    resembling_sets,
};
use xxhash_rust::xxh3::xxh3_128;

use crate::columns::Column;
use crate::error::{Failure, Result};
use crate::process::check_process;
use crate::sketch::CHUNK;

/// Texts that are shingled before their sets are put away.
const TOGETHER: usize = 64 * CHUNK;

#[pyclass(frozen, get_all, module = "twindex")]
pub(crate) struct Dedup {
    /// Of each text the place of the one that is kept for it.
    clusters: Vec<u32>,
    /// Of each text its resemblance to that.
    scores: Vec<f64>,
    kept: Vec<u32>,
    /// Pairs of texts: the smaller place first.
    pairs: Vec<(u32, u32, f64)>,
    /// Shingles that too many texts have, beyond which pairs may be missing; and how many are too many.
    capped_shingles: u64,
    cap: u64,
}

#[pymethods]
impl Dedup {
    fn __repr__(&self) -> String {
        format!("<twindex.Dedup {} texts, {} kept>", self.clusters.len(), self.kept.len())
    }
}

/// Which text of a cluster stays.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    First,
    Longest,
}

#[pyfunction]
#[pyo3(signature = (texts, threshold=0.8, *, keep="first", words=5, seed=0, max_bucket=10_000, memory=1 << 30))]
#[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
pub(crate) fn dedup(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    threshold: f64,
    keep: &str,
    words: u8,
    seed: u64,
    max_bucket: u32,
    memory: usize,
) -> Result<Dedup> {
    if !(0.05..=1.0).contains(&threshold) {
        return Err(Failure::invalid(format!("threshold: expected 0.05 to 1, found {threshold}")));
    }
    if !(1..=twindex::params::SHINGLE_WIDTH_MAX).contains(&words) {
        let most = twindex::params::SHINGLE_WIDTH_MAX;
        return Err(Failure::invalid(format!("words: expected 1 to {most}, found {words}")));
    }
    let keep = match keep {
        "first" => Keep::First,
        "longest" => Keep::Longest,
        other => return Err(Failure::invalid(format!("keep: expected first or longest, found {other}"))),
    };
    let texts = Column::of("texts", texts)?;
    if u32::try_from(texts.len()).is_err() {
        return Err(Failure::invalid(format!("texts: expected at most 2^32 - 1, found {}", texts.len())));
    }
    let found = py.detach(|| {
        work(&texts, threshold, keep, &Shingling::words(words, seed), max_bucket as usize, memory)
    })?;
    if found.capped_shingles > 0 {
        let Dedup { capped_shingles, cap, .. } = found;
        let why = format!(
            "{capped_shingles} shingles are in the prefixes of more than {cap} texts, which are not paired all with all: \
             pairs may be missing, though clusters hold together; a larger max_bucket finds more"
        );
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(why).unwrap_or_default(), 1)?;
    }
    Ok(found)
}

/// Texts that are the same: the places of its members, ascending.
struct Group {
    members: Vec<u32>,
}

fn work(
    texts: &Column,
    threshold: f64,
    keep: Keep,
    shingling: &Shingling,
    max_bucket: usize,
    memory: usize,
) -> Result<Dedup> {
    check_process()?;
    let scratch = tempfile::tempdir()
        .map_err(|error| Failure::io("create a scratch folder in", &std::env::temp_dir(), error))?;
    let (groups, group_of) = groups(texts)?;
    let mut sets = ShingleSets::new(scratch.path(), memory / 2);
    let shingler = Shingler::new(shingling)?;
    for some in groups.chunks(TOGETHER) {
        let shingled: Vec<Vec<u64>> = some
            .par_chunks(CHUNK)
            .flat_map_iter(|groups| {
                let mut buffers = Buffers::default();
                let sets: Vec<Result<Vec<u64>>> = groups
                    .iter()
                    .map(|group| {
                        let text = String::from_utf8_lossy(texts.text(group.members[0] as usize)?);
                        let mut set = Vec::new();
                        shingler.distinct(&text, &mut buffers, &mut set);
                        Ok(set)
                    })
                    .collect();
                sets
            })
            .collect::<Result<_>>()?;
        for set in shingled {
            sets.push(&set)?;
        }
    }

    let threads = rayon::current_num_threads();
    let effort = Effort { dir: scratch.path(), memory: memory / 4, threads };
    let mut forest = Forest::new(groups.len() as u32);
    let mut near: Vec<(u32, u32, f64)> = Vec::new();
    let prefixes =
        resembling_sets(&sets, threshold, max_bucket, effort, |a, b, resemblance| -> Result<()> {
            forest.join(a, b);
            near.push((a.min(b), a.max(b), resemblance.value()));
            Ok(())
        })?;
    near.sort_unstable_by_key(|&(a, b, _)| (a, b));
    near.dedup();

    let roots: Vec<u32> = (0..groups.len() as u32).map(|group| forest.root(group)).collect();
    let kept = kept(texts, &group_of, &roots, keep)?;
    let scores = scores(&sets, &near, &kept, &group_of)?;
    let clusters: Vec<u32> = group_of.iter().map(|&group| kept[group as usize]).collect();
    let mut all_kept: Vec<u32> =
        (0..).zip(&clusters).filter(|&(at, &kept)| at == kept).map(|(at, _)| at).collect();
    all_kept.sort_unstable();
    Ok(Dedup {
        scores: group_of.iter().map(|&group| scores[group as usize]).collect(),
        pairs: pairs(&groups, &near, max_bucket)?,
        capped_shingles: prefixes.capped,
        cap: prefixes.cap,
        clusters,
        kept: all_kept,
    })
}

/// Groups of equal texts in the order of their first members, and the group of each text.
fn groups(texts: &Column) -> Result<(Vec<Group>, Vec<u32>)> {
    let rows: Vec<usize> = (0..texts.len()).collect();
    let hashes: Vec<u128> =
        rows.par_iter().map(|&row| Ok(xxh3_128(texts.text(row)?))).collect::<Result<_>>()?;
    let (mut equal, mut groups, mut group_of) =
        (Groups::default(), Vec::new(), Vec::with_capacity(rows.len()));
    for (row, hash) in rows.into_iter().zip(hashes) {
        let group = equal.group(hash, |group| -> Result<bool> {
            let first: &Group = &groups[group as usize];
            Ok(texts.text(first.members[0] as usize)? == texts.text(row)?)
        })?;
        if group as usize == groups.len() {
            groups.push(Group { members: Vec::new() });
        }
        groups[group as usize].members.push(row as u32);
        group_of.push(group);
    }
    Ok((groups, group_of))
}

/// The text that is kept for each group.
fn kept(texts: &Column, group_of: &[u32], roots: &[u32], keep: Keep) -> Result<Vec<u32>> {
    kept_of_groups(roots, group_of, |text, other| match keep {
        Keep::First => Ok(false),
        Keep::Longest => Ok(texts.text(text as usize)?.len() > texts.text(other as usize)?.len()),
    })
}

/// Of each group its resemblance to the one that is kept for it.
fn scores(sets: &ShingleSets, near: &[(u32, u32, f64)], kept: &[u32], group_of: &[u32]) -> Result<Vec<f64>> {
    let kept_group = |group: u32| group_of[kept[group as usize] as usize];
    let mut known: Vec<Option<f64>> = vec![None; kept.len()];
    for &(a, b, resemblance) in near {
        for (group, other) in [(a, b), (b, a)] {
            if kept_group(group) == other {
                known[group as usize] = Some(resemblance);
            }
        }
    }
    (0..kept.len() as u32)
        .into_par_iter()
        .map(|group| match (kept_group(group), known[group as usize]) {
            (other, _) if other == group => Ok(1.0),
            (_, Some(score)) => Ok(score),
            (other, None) => Ok(sets.resemblance(group, other)?.value()),
        })
        .collect()
}

/// Pairs of texts: of groups that are near, and inside each group; a large group is a star around its first member.
fn pairs(groups: &[Group], near: &[(u32, u32, f64)], max_bucket: usize) -> Result<Vec<(u32, u32, f64)>> {
    let members = |group: u32| &groups[group as usize].members[..];
    let mut pairs = Vec::new();
    let mut push = |a: u32, b: u32, resemblance: f64| {
        pairs.push((a.min(b), a.max(b), resemblance));
        Ok(())
    };
    for group in groups {
        for_each_pair_inside(&group.members, max_bucket, |a, b| -> Result<()> { push(a, b, 1.0) })?;
    }
    for &(a, b, resemblance) in near {
        for_each_pair_between(members(a), members(b), max_bucket, |a, b| push(a, b, resemblance))?;
    }
    pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
    Ok(pairs)
}
