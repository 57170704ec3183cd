//! Decides, by sets or fingerprints, which groups of equal texts are kept. The decision can be saved to a journal file.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use twindex::sketch::Nearness;
use twindex::sys::Column;
use twindex::{Key, Snapshot};
use twindex_join::{
    CoverPairs, JoinResources, SharedProgress, cover_sets, near_codes_within, numbered_pairs_within,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::journal::folder::Journal;
use crate::rule::score::{Score, ScoreKind};
use crate::settings::near::Near;
use crate::stored::codes::GroupCodes;
use crate::stored::corpus::Corpus;
use crate::stored::groups::Grouped;
use crate::work::watch::Stopwatch;

/// The rules and parameters by which kept groups are chosen.
#[derive(Clone, Copy)]
pub(crate) struct KeepRules<'a> {
    /// The groups in the order in which they are processed; `None` for ascending order of their indices.
    pub order: Option<&'a [u32]>,
    /// For each group, its first document in the order of documents.
    pub firsts: &'a [u32],
    /// Number of groups that belong to the history. They precede all others and are always kept.
    pub fixed: u32,
    pub near: Near,
    /// Maximum number of comparisons with kept groups; `None` for no limit.
    pub most_comparisons: Option<u64>,
}

/// The decision which groups are kept, and statistics of the search.
pub(crate) struct NearGroups {
    /// For each group, the kept group that represents it. A kept group represents itself.
    pub by: Column<u32>,
    /// For each group, its packed score against the kept group that represents it.
    pub scores: Column<u64>,
    pub kind: ScoreKind,
    /// Number of candidate pairs of groups that were compared.
    pub candidates: u64,
    /// Number of candidate pairs whose common shingles were counted; `None` if fingerprints were compared instead.
    pub counted: Option<u64>,
    /// CPU seconds for finding candidates, and for verifying them.
    pub seconds: (f64, f64),
}

/// The folder, memory budget, journal and observers of the search for near groups.
pub(crate) struct JoinLimits<'a> {
    pub folder: &'a Path,
    /// The journal; `None` without [`Results::resume`](crate::settings::results::Results::resume).
    pub journal: Option<&'a Journal<'a>>,
    pub memory: usize,
    /// Reports progress to the caller, and cancels the work if the caller requests it.
    pub watched: Option<&'a SharedProgress>,
}

impl NearGroups {
    /// Returns the decision for jobs in which only equal texts are near: every group is kept.
    pub(crate) fn none(grouped: &Grouped) -> twindex::Result<Self> {
        let groups = grouped.groups.len();
        Ok(Self {
            by: Column::of(&grouped.budget, 0..groups as u32)?,
            scores: Column::filled(&grouped.budget, groups, 0)?,
            kind: ScoreKind::Resemblance,
            candidates: 0,
            counted: None,
            seconds: (0.0, 0.0),
        })
    }

    /// Decides by shingle sets: compares each group with the kept groups that precede it.
    pub(crate) fn by_sets(
        grouped: &Grouped,
        near: Nearness,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> twindex::Result<Self> {
        let watch = Stopwatch::start();
        let kind = match near {
            Nearness::Resemblance(_) => ScoreKind::Resemblance,
            Nearness::Containment(_) => ScoreKind::Containment,
        };
        let priority = twindex_join::Priority {
            order: rules.order,
            fixed: rules.fixed,
            max: rules.most_comparisons,
            watched: limits.watched,
        };
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: limits.folder, memory: limits.memory, threads };
        let covered = cover_sets(&grouped.sets, near, priority, resources)?;
        let seconds = watch.cpu_seconds();
        let size = |set: u32| grouped.sets.size(set);
        let scores = (0..).zip(covered.by.iter().zip(&covered.shared[..])).map(|(set, (&by, &shared))| {
            let others =
                if by == set || kind == ScoreKind::Containment { 0 } else { size(by) - u64::from(shared) };
            Score::Resemblance { intersection: shared, union: (size(set) + others) as u32 }.pack()
        });
        let scores = Column::of(&grouped.budget, scores)?;
        Ok(Self {
            by: covered.by,
            scores,
            kind,
            candidates: covered.comparisons,
            counted: Some(covered.counted),
            seconds: (seconds, 0.0),
        })
    }

    /// Decides by the Hamming distances of fingerprints, found in `snapshot`, an index of all documents.
    pub(crate) fn by_fingerprints(
        corpus: &Corpus,
        snapshot: &Snapshot,
        within: u32,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> anyhow::Result<Self> {
        let (watch, grouped) = (Stopwatch::start(), &corpus.grouped);
        let pairs = CoverPairs::new(&grouped.budget, limits.memory / 4, grouped.groups.len(), rules.order)?;
        let mut pairs = pairs.fixing(rules.fixed);
        let threads = rayon::current_num_threads();
        let mut candidates = 0;
        numbered_pairs_within(
            snapshot,
            within,
            JoinResources { dir: limits.folder, memory: limits.memory / 2, threads },
            |place| match place.key()?.as_key() {
                Key::U64(document) => Ok(grouped.group_of.get(document as usize).copied()),
                Key::Bytes(_) => Ok(None),
            },
            |a, b, distance| {
                candidates += 1;
                if !grouped.are_compared(a, b) {
                    return Ok(());
                }
                pairs.push(a, b, Score::Distance(distance).pack())
            },
        )?;
        let (by, scores) = pairs.finish()?;
        Ok(Self {
            by,
            scores,
            kind: ScoreKind::Distance,
            candidates,
            counted: None,
            seconds: (0.0, watch.cpu_seconds()),
        })
    }
}

impl NearGroups {
    /// Decides by the Hamming distances of the fingerprints of groups.
    pub(crate) fn by_codes(
        grouped: &Grouped,
        codes: &GroupCodes,
        within: u32,
        rules: &KeepRules<'_>,
        limits: &JoinLimits<'_>,
    ) -> anyhow::Result<Self> {
        let watch = Stopwatch::start();
        let (codes, groups) = codes.all()?;
        let pairs = CoverPairs::new(&grouped.budget, limits.memory / 4, grouped.groups.len(), rules.order)?;
        let pairs = Mutex::new((pairs.fixing(rules.fixed), 0));
        let threads = rayon::current_num_threads();
        let resources = JoinResources { dir: limits.folder, memory: limits.memory / 2, threads };
        near_codes_within(
            codes,
            None,
            within,
            resources,
            || (),
            |(), some| {
                let (pairs, candidates) = &mut *pairs.lock().unwrap_or_else(PoisonError::into_inner);
                *candidates += some.len() as u64;
                for pair in some {
                    let (a, b) = (groups[pair.a as usize], groups[pair.b as usize]);
                    if grouped.are_compared(a, b) {
                        pairs.push(a, b, Score::Distance(pair.distance).pack())?;
                    }
                }
                Ok(())
            },
        )?;
        let (pairs, candidates) = pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (by, scores) = pairs.finish()?;
        let seconds = (0.0, watch.cpu_seconds());
        Ok(Self { by, scores, kind: ScoreKind::Distance, candidates, counted: None, seconds })
    }
}

/// The first line of the journal file: the size of the columns that follow, and statistics of the search.
#[derive(Deserialize, Serialize)]
struct NearFileHeader {
    groups: usize,
    kind: ScoreKind,
    candidates: u64,
    counted: Option<u64>,
}

/// Number of values of a column that are read at a time.
const TOGETHER: usize = 1 << 16;

impl NearGroups {
    /// Writes the decision, without its times.
    pub(crate) fn save(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { by, scores, .. } = self;
        let head = NearFileHeader {
            groups: by.len(),
            kind: self.kind,
            candidates: self.candidates,
            counted: self.counted,
        };
        serde_json::to_writer(&mut *out, &head)?;
        out.write_all(b"\n")?;
        out.write_all(by[..].as_bytes())?;
        out.write_all(scores[..].as_bytes())
    }

    /// Reads the decision that [`save`](Self::save) wrote. Sets its times to 0.
    pub(crate) fn load(input: &mut impl BufRead, grouped: &Grouped) -> anyhow::Result<Self> {
        let mut head = Vec::new();
        input.read_until(b'\n', &mut head)?;
        let NearFileHeader { groups, kind, candidates, counted } = serde_json::from_slice(&head)?;
        let expected = grouped.groups.len();
        ensure!(groups == expected, "expected {expected} groups, found {groups}");
        let by = column(input, grouped, 0_u32)?;
        let scores = column(input, grouped, 0_u64)?;
        let is_there = by.iter().all(|&by| (by as usize) < groups);
        ensure!(is_there && input.read(&mut [0])? == 0, "expected {groups} groups, found others");
        Ok(Self { by, scores, kind, candidates, counted, seconds: (0.0, 0.0) })
    }
}

fn column<T>(input: &mut impl Read, grouped: &Grouped, none: T) -> anyhow::Result<Column<T>>
where
    T: twindex::sys::column::Value + FromZeros,
{
    let mut column = Column::filled(&grouped.budget, grouped.groups.len(), none)?;
    for some in column.chunks_mut(TOGETHER) {
        input.read_exact(some.as_mut_bytes())?;
    }
    Ok(column)
}
