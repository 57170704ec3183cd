//! Removes spans from the texts of Parquet rows while kept rows are copied.

use std::ops::Range;

use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ParquetMetaData, SortingColumn};

use crate::input::text::cuts::{Cuts, checked_part_without};

/// Removes spans from the texts of a group of rows, one text column after the other.
#[derive(Clone)]
pub(crate) struct TextCuts<'c> {
    cuts: Cuts<'c>,
    documents: &'c [u32],
    /// For each row, the offset in the joined text at which the value of the next column starts.
    starts: Vec<usize>,
}

/// A column that contains the text, or one of the parts from which the text is joined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextColumn {
    /// The definition level of non-null values.
    defined: i16,
    /// Whether the column is the last part of the text.
    is_last: bool,
}

/// Returns the columns that contain the text, and their indices among the leaf columns. Each has one value per row.
///
/// # Errors
///
/// Two names of the text mean the same column, or a column can have several values in a row.
pub(crate) fn text_columns(
    metadata: &ParquetMetaData,
    text: &[usize],
) -> Result<Vec<(usize, TextColumn)>, String> {
    let schema = metadata.file_metadata().schema_descr();
    let mut columns = Vec::new();
    for (number, &at) in text.iter().enumerate() {
        if at >= schema.num_columns() || columns.iter().any(|&(other, _)| other == at) {
            return Err("two names of the text mean the same column".to_owned());
        }
        let column = schema.column(at);
        if column.max_rep_level() > 0 {
            return Err("its column has several texts in a row".to_owned());
        }
        columns.push((at, TextColumn { defined: column.max_def_level(), is_last: number + 1 == text.len() }));
    }
    Ok(columns)
}

/// Returns the part of the sort order that remains valid when texts change: the sort columns before the first text
/// column.
pub(crate) fn sorting_without(
    sorting: Option<&Vec<SortingColumn>>,
    text: &[usize],
) -> Option<Vec<SortingColumn>> {
    let is_text = |column: &&SortingColumn| {
        usize::try_from(column.column_idx).is_ok_and(|column| text.contains(&column))
    };
    let left: Vec<_> = sorting?.iter().take_while(|column| !is_text(column)).cloned().collect();
    (!left.is_empty()).then_some(left)
}

impl<'c> TextCuts<'c> {
    /// Creates the cuts for a group of rows. `documents` has the index of the document in each row.
    pub(crate) fn new(cuts: Cuts<'c>, documents: &'c [u32]) -> Self {
        Self { cuts, documents, starts: vec![0; documents.len()] }
    }

    /// Returns whether no spans are removed from any text.
    pub(crate) fn is_empty(&self) -> bool {
        self.documents.iter().all(|&document| (self.cuts.of)(document).is_empty())
    }

    /// Removes spans from the values of the next text column, starting with row `first`. `defined` has the definition
    /// level of each row; it is empty if the column cannot have null values.
    ///
    /// # Errors
    ///
    /// A text has changed since it was read first.
    pub(crate) fn leave_out(
        &self,
        column: TextColumn,
        values: &mut [ByteArray],
        defined: &[i16],
        first: usize,
    ) -> Result<(), String> {
        let changed = || "a text is not what it was when it was read, or is not UTF-8".to_owned();
        let rows = if defined.is_empty() { values.len() } else { defined.len() };
        let mut values = values.iter_mut();
        for row in 0..rows {
            let is_there = defined.is_empty() || defined[row] == column.defined;
            let Some(&document) = self.documents.get(first + row) else { return Err(changed()) };
            let cut = (self.cuts.of)(document);
            let start = self.starts[first + row];
            let value = if is_there { Some(values.next().ok_or_else(changed)?) } else { None };
            let mut end = start;
            if let Some(value) = value.filter(|_| !cut.is_empty()) {
                let part = std::str::from_utf8(value.data()).map_err(|_| changed())?;
                let place = start..start + part.len();
                let left = checked_part_without(part, &place, &cut).ok_or_else(changed)?;
                if left.len() < part.len() {
                    *value = ByteArray::from(left.into_bytes());
                }
                end = place.end;
            }
            if column.is_last && cut.last().is_some_and(|last: &Range<usize>| last.end > end) {
                return Err(changed());
            }
        }
        Ok(())
    }

    /// Reads a text column for the lengths of its values, which determine where the next column starts in the joined
    /// text. Reads only the rows in `runs`.
    ///
    /// # Errors
    ///
    /// The column cannot be read.
    pub(crate) fn pass(
        &mut self,
        column: TextColumn,
        from: ColumnReader,
        runs: &[(usize, usize)],
        at_once: usize,
    ) -> Result<(), String> {
        let ColumnReader::ByteArrayColumnReader(mut from) = from else {
            return Err("its column holds no texts".to_owned());
        };
        let (mut values, mut defined, mut row) = (Vec::new(), Vec::new(), 0);
        for &(before, rows) in runs {
            from.skip_records(before).map_err(|error| error.to_string())?;
            let mut left = rows;
            while left > 0 {
                values.clear();
                defined.clear();
                let read = from.read_records(left.min(at_once), Some(&mut defined), None, &mut values);
                let (records, ..) = read.map_err(|error| error.to_string())?;
                if records == 0 {
                    return Err("a column has fewer rows than are said".to_owned());
                }
                let mut lengths = values.iter().map(ByteArray::len);
                for level in 0..records {
                    let is_there = defined.get(level).is_none_or(|&level| level == column.defined);
                    let length = if is_there { lengths.next().unwrap_or(0) } else { 0 };
                    let start = self.starts.get_mut(row).ok_or("more rows than documents")?;
                    *start += length + 1; // the newline between two parts
                    row += 1;
                }
                left -= records;
            }
        }
        Ok(())
    }
}
