//! Saves the decision which groups are kept to a journal file.

use std::io::{self, BufRead, Read, Write};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use twindex::sys::Column;
use zerocopy::{FromZeros, IntoBytes};

use super::groups::Grouped;
use super::near::NearGroups;
use super::score::ScoreKind;

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
    /// Writes the decision.
    pub(super) fn save(&self, out: &mut impl Write) -> io::Result<()> {
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

    /// Reads the decision that [`save`](Self::save) wrote. The times are not stored.
    pub(super) fn load(input: &mut impl BufRead, grouped: &Grouped) -> anyhow::Result<Self> {
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

/// Reads a column with one value for each group.
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
