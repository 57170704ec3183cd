//! Documents that were removed because they are near a document of an index.

use std::io::Write;

use anyhow::Context;
use twindex::sys::{Column, MemoryBudget};
use twindex::{KeyBuf, Resemblance};

use crate::input::place::Place;
use crate::rule::score::{Score, ScoreKind};
use crate::stored::keys::{DocumentKeys, DocumentPlaces, KnownKeys};
use crate::work::tsv;

/// The near document of the index for which a document was removed.
pub(crate) struct Dropped {
    pub(crate) other: KeyBuf,
    pub(crate) near: MeasuredNearness,
}

pub(crate) enum MeasuredNearness {
    Counted { intersection: u32, union: u32 },
    Resemblance(Resemblance),
    Distance(u32),
}

impl Dropped {
    /// Writes the key of the near document and the score as table columns.
    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        tsv::write_key(out, &self.other)?;
        match self.near {
            MeasuredNearness::Counted { intersection, union } => {
                out.write_all(b"\t")?;
                Score::Resemblance { intersection, union }.write(ScoreKind::Resemblance, out)
            }
            MeasuredNearness::Resemblance(resemblance) => {
                write!(out, "\t{:.6}\t{:.6}", resemblance.value(), resemblance.standard_error())
            }
            MeasuredNearness::Distance(distance) => write!(out, "\t{distance}"),
        }
    }
}

/// All documents that were removed because of an index.
pub(crate) struct DroppedDocuments {
    keys: DocumentKeys,
    known: Option<KnownKeys>,
    places: DocumentPlaces,
    /// For each document, the table columns after its key.
    columns: DocumentKeys,
    budget: MemoryBudget,
}

impl DroppedDocuments {
    /// Creates an empty list.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        let (keys, columns) = (DocumentKeys::new(budget), DocumentKeys::new(budget));
        Self { keys, known: None, places: DocumentPlaces::new(budget), columns, budget: budget.clone() }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the position of the document with this key.
    pub(crate) fn place_of(&self, key: &[u8]) -> Option<Place> {
        let found = self.known.as_ref().and_then(|known| known.find(&self.keys, key));
        found.map(|number| self.places.get(number))
    }

    /// Returns the position of a document.
    pub(crate) fn place(&self, number: u32) -> Place {
        self.places.get(number)
    }

    /// Returns the key of a document.
    pub(crate) fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number)
    }

    /// Returns the key of the near document of the index, and the score, as a table shows it.
    pub(crate) fn near(&self, number: u32) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
        let mut columns = self.columns.get(number).split(|&byte| byte == b'\t');
        let key = tsv::unescape(columns.next().unwrap_or_default())?.into_owned();
        Ok((key, columns.next().unwrap_or_default().to_vec()))
    }

    /// Adds a document. Its key must be new.
    pub(crate) fn push(&mut self, key: &[u8], place: &Place, dropped: &Dropped) -> anyhow::Result<()> {
        let number = u32::try_from(self.len()).context("more than 2^32 documents")?;
        let known = match &mut self.known {
            Some(known) => known,
            none => none.insert(KnownKeys::new(&self.budget)?),
        };
        known.insert(key, number)?;
        self.keys.push(key)?;
        self.places.push(place)?;
        let mut columns = Vec::new();
        dropped.write(&mut columns)?;
        Ok(self.columns.push(&columns)?)
    }

    /// Returns the indices of the documents in ascending order of their keys. Uses about `memory` bytes.
    pub(crate) fn sorted(&self, memory: usize) -> twindex::Result<Column<u32>> {
        self.keys.sorted(0..self.len() as u32, &self.budget, memory)
    }

    /// Writes the table line of a document.
    pub(crate) fn write(&self, number: u32, out: &mut impl Write) -> std::io::Result<()> {
        tsv::write_field(out, self.keys.get(number))?;
        out.write_all(b"\t")?;
        out.write_all(self.columns.get(number))?;
        out.write_all(b"\n")
    }
}
