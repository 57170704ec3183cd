//! Copies kept rows of Parquet files without converting values, so that the output has the same types, logical types,
//! order, compression and metadata as the input.
//!
//! Values are decoded only to their physical types. So values of unsupported logical types are copied, too, for example
//! a 96-bit timestamp that no other type can represent. Each row group of the input becomes one row group without the
//! removed rows, so that metadata about its sort order remains valid.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::input::columns::file::{CopyError, guarded};
use crate::input::kept::annotate::{Annotation, AnnotationOptions, DocumentNote, NoteField};
use crate::input::parquet::columns::{ParquetColumns, metadata_of, rows_at_once};
use crate::input::parquet::cut::{TextColumn, TextCuts, sorting_without, text_columns};
use crate::input::parquet::decoded::{column_reader, is_prefix_coded};
use crate::input::parquet::thrift::Checked;
use crate::input::text::cuts::Cuts;
use crate::work::file::{FileDigest, Hashed};

/// Metadata key under which Arrow writers store the Arrow schema of the columns.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Maximum number of distinct values for which a bloom filter is sized. A filter of this size has a few megabytes.
const BLOOM_VALUES_MAX: u64 = 1 << 22;

/// A file of kept rows.
pub(crate) struct ParquetOutput {
    /// The writer; `None` before the first rows are copied.
    writer: Option<SerializedFileWriter<Hashed<fs::File>>>,
    /// The keys of the metadata entries that were copied so far.
    said: HashSet<String>,
}

impl ParquetOutput {
    pub(crate) fn new() -> Self {
        Self { writer: None, said: HashSet::new() }
    }

    /// Copies rows, in ascending order, of the file `from`, which has these columns. Writes them to the file `to`,
    /// which is created with the first rows. `documents` has the index of the document in each row.
    ///
    /// # Errors
    ///
    /// The input file cannot be read, or the output file cannot be written.
    pub(crate) fn copy(
        &mut self,
        (from, columns): (fs::File, &ParquetColumns),
        to: &Path,
        (rows, documents): (&[u64], &[u32]),
        (annotation, cuts): (Option<Annotation<'_>>, Option<Cuts<'_>>),
    ) -> Result<(), CopyError> {
        let input = guarded(|| ParquetInput::open(from)).map_err(CopyError::Read)?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let made = fs::File::create_new(to).map_err(|error| CopyError::Write(error.into()))?;
                let sorting = match cuts {
                    Some(_) => sorting_without(columns.sorting.as_ref(), &columns.text),
                    None => columns.sorting.clone(),
                };
                let properties = Arc::new(properties(&input.metadata, sorting));
                let root = annotation.map_or_else(
                    || Ok(Arc::clone(&columns.root)),
                    |annotation| annotated(&columns.root, annotation.noted),
                );
                let made =
                    root.and_then(|root| SerializedFileWriter::new(Hashed::new(made), root, properties));
                none.insert(made.map_err(|error| CopyError::Write(error.into()))?)
            }
        };
        let text = cuts.map(|cuts| (cuts, &columns.text[..]));
        guarded(|| copy(&input, (rows, documents), (annotation, text), writer)).map_err(CopyError::Read)?;
        self.say(&input.metadata, annotation.is_some());
        Ok(())
    }

    /// Copies the file-level metadata of an input. A key that was already copied from an earlier input is skipped, even
    /// if its value differs.
    fn say(&mut self, metadata: &ParquetMetaData, has_more_columns: bool) {
        let Some(writer) = &mut self.writer else { return };
        let all = metadata.file_metadata().key_value_metadata().into_iter().flatten();
        // The Arrow schema is not copied if columns are added, because it describes only the columns of the input.
        let all = all.filter(|said| !(has_more_columns && said.key == ARROW_SCHEMA));
        let new: Vec<_> = all.filter(|said| !self.said.contains(&said.key)).cloned().collect();
        self.said.extend(new.iter().map(|said| said.key.clone()));
        for said in new {
            writer.append_key_value_metadata(said);
        }
    }

    /// Writes the end of the file, and syncs it. Returns its digest; `None` if no rows were copied.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn finish(self) -> anyhow::Result<Option<FileDigest>> {
        let Some(writer) = self.writer else { return Ok(None) };
        let mut output = writer.into_inner()?;
        output.flush()?;
        let (file, hash) = output.into_parts();
        file.sync_all()?;
        Ok(Some(hash.digest()))
    }
}

/// An input file that was opened again to copy rows.
struct ParquetInput {
    file: Arc<Checked>,
    metadata: ParquetMetaData,
}

impl ParquetInput {
    fn open(file: fs::File) -> Result<Self, String> {
        let metadata = metadata_of(&file)?;
        // Sets no size limit. The limit applied to the columns that were read as documents; other columns may have
        // longer values.
        let file = Checked::new(file, usize::MAX).map_err(|error| error.to_string())?;
        Ok(Self { file: Arc::new(file), metadata })
    }
}

/// Returns the properties of a writer that writes columns in the format of the input file.
fn properties(metadata: &ParquetMetaData, sorting: Option<Vec<SortingColumn>>) -> WriterProperties {
    let mut most_values = HashMap::new();
    // Allows bloom filters for columns with dictionaries. The loop below sets a filter for each column that has one in
    // the input.
    let mut builder = WriterProperties::builder()
        .set_sorting_columns(sorting)
        .set_bloom_filter_for_dictionary_encoded_chunks(true);
    if let Some(group) = metadata.row_groups().first() {
        for column in group.columns() {
            let path = column.column_path().clone();
            builder = builder.set_column_compression(path.clone(), column.compression());
            let has_dictionary = column.dictionary_page_offset().is_some()
                || column.encodings().any(|encoding| encoding == Encoding::RLE_DICTIONARY);
            builder = builder.set_column_dictionary_enabled(path, has_dictionary);
        }
    }
    for group in metadata.row_groups() {
        for column in group.columns().iter().filter(|column| column.bloom_filter_offset().is_some()) {
            let path = column.column_path().clone();
            // The number of values is an upper bound; the writer shrinks the filter to the number of distinct values.
            let values = u64::try_from(column.num_values()).unwrap_or(0).clamp(1, BLOOM_VALUES_MAX);
            let known = most_values.entry(path.clone()).or_insert(0);
            *known = values.max(*known);
            builder = builder.set_column_bloom_filter_max_ndv(path, *known);
        }
    }
    builder.build()
}

/// Copies rows, in ascending order, from one file to the end of another.
fn copy(
    input: &ParquetInput,
    (rows, documents): (&[u64], &[u32]),
    (annotation, text): (Option<Annotation<'_>>, Option<(Cuts<'_>, &[usize])>),
    output: &mut SerializedFileWriter<Hashed<fs::File>>,
) -> Result<(), String> {
    let failed = |error: ParquetError| error.to_string();
    let metadata = &input.metadata;
    let at_once = rows_at_once(metadata);
    let (mut first, mut rest, mut rest_of_documents) = (0, rows, documents);
    for group in metadata.row_groups() {
        let end = first + u64::try_from(group.num_rows()).map_err(|_| "a group of fewer than no rows")?;
        let (own, others) = rest.split_at(rest.partition_point(|row| *row < end));
        rest = others;
        let (own_documents, other_documents) = rest_of_documents.split_at(own.len());
        rest_of_documents = other_documents;
        if !own.is_empty() {
            let runs = runs(own, first)?;
            let texts = match text {
                Some((cuts, text)) => cut_texts(input, group, (cuts, text), own_documents, (&runs, at_once))?,
                None => HashMap::new(),
            };
            let mut writer = output.next_row_group().map_err(failed)?;
            for column in 0..group.num_columns() {
                let from = column_reader(&input.file, group, column).map_err(failed)?;
                let at_once = if is_prefix_coded(group, column) { 1 } else { at_once };
                let mut to = writer.next_column().map_err(failed)?.ok_or("fewer columns than before")?;
                match (from, texts.get(&column)) {
                    (ColumnReader::ByteArrayColumnReader(from), Some((text, cuts))) => {
                        let to = to.typed::<ByteArrayType>();
                        copy_values(from, to, &runs, at_once, |values, defined, first| {
                            cuts.leave_out(*text, values, defined, first)
                        })?;
                    }
                    (_, Some(_)) => return Err("its column holds no texts".to_owned()),
                    (from, None) => copy_column(from, &mut to, &runs, at_once)?,
                }
                to.close().map_err(failed)?;
            }
            if let Some(annotation) = annotation {
                write(&mut writer, own_documents, annotation).map_err(failed)?;
            }
            writer.close().map_err(failed)?;
        }
        first = end;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(format!("{} of {} are there", rows.len() - rest.len(), rows.len()))
    }
}

/// Returns the cuts for each text column of a row group, by column index; empty if no text of these rows changes.
fn cut_texts<'c>(
    input: &ParquetInput,
    group: &RowGroupMetaData,
    (cuts, text): (Cuts<'c>, &[usize]),
    documents: &'c [u32],
    (runs, at_once): (&[(usize, usize)], usize),
) -> Result<HashMap<usize, (TextColumn, TextCuts<'c>)>, String> {
    let mut next = TextCuts::new(cuts, documents);
    let mut all = HashMap::new();
    if next.is_empty() {
        return Ok(all);
    }
    let columns = text_columns(&input.metadata, text)?;
    if columns.is_empty() {
        return Err("its text is in no column".to_owned());
    }
    for (number, &(column, of_text)) in columns.iter().enumerate() {
        all.insert(column, (of_text, next.clone()));
        if number + 1 < columns.len() {
            let from = column_reader(&input.file, group, column).map_err(|error| error.to_string())?;
            next.pass(of_text, from, runs, at_once)?;
        }
    }
    Ok(all)
}

/// Splits the requested rows of a row group into runs of consecutive rows. Returns the number of rows to skip before
/// each run, and the length of the run.
fn runs(rows: &[u64], first: u64) -> Result<Vec<(usize, usize)>, String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut next = first;
    for &row in rows {
        let before = row.checked_sub(next).and_then(|before| usize::try_from(before).ok());
        let before = before.ok_or("rows that do not ascend, or more than this machine can address")?;
        match runs.last_mut() {
            Some((_, rows)) if before == 0 => *rows += 1,
            _ => runs.push((before, 1)),
        }
        next = row + 1;
    }
    Ok(runs)
}

/// Copies rows of a column in a row group.
fn copy_column(
    from: ColumnReader,
    to: &mut SerializedColumnWriter<'_>,
    runs: &[(usize, usize)],
    at_once: usize,
) -> Result<(), String> {
    match from {
        ColumnReader::BoolColumnReader(from) => {
            copy_values(from, to.typed::<BoolType>(), runs, at_once, as_they_are)
        }
        ColumnReader::Int32ColumnReader(from) => {
            copy_values(from, to.typed::<Int32Type>(), runs, at_once, as_they_are)
        }
        ColumnReader::Int64ColumnReader(from) => {
            copy_values(from, to.typed::<Int64Type>(), runs, at_once, as_they_are)
        }
        ColumnReader::Int96ColumnReader(from) => {
            copy_values(from, to.typed::<Int96Type>(), runs, at_once, as_they_are)
        }
        ColumnReader::FloatColumnReader(from) => {
            copy_values(from, to.typed::<FloatType>(), runs, at_once, as_they_are)
        }
        ColumnReader::DoubleColumnReader(from) => {
            copy_values(from, to.typed::<DoubleType>(), runs, at_once, as_they_are)
        }
        ColumnReader::ByteArrayColumnReader(from) => {
            copy_values(from, to.typed::<ByteArrayType>(), runs, at_once, as_they_are)
        }
        ColumnReader::FixedLenByteArrayColumnReader(from) => {
            copy_values(from, to.typed::<FixedLenByteArrayType>(), runs, at_once, as_they_are)
        }
    }
}

/// Leaves values unchanged. Used as the `change` function of [`copy_values`].
#[allow(clippy::unnecessary_wraps, clippy::ptr_arg, reason = "the shape of what changes values")]
fn as_they_are<T>(_: &mut Vec<T>, _: &[i16], _: usize) -> Result<(), String> {
    Ok(())
}

/// Copies the values in `runs`, `at_once` rows at a time. Before values are written, `change` may modify them. It
/// receives the values, the definition level of each row, and the number of rows that were already written.
fn copy_values<T: DataType>(
    mut from: ColumnReaderImpl<T>,
    to: &mut ColumnWriterImpl<'_, T>,
    runs: &[(usize, usize)],
    at_once: usize,
    change: impl Fn(&mut Vec<T::T>, &[i16], usize) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: ParquetError| error.to_string();
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut written) = (0, 0);
    let mut write = |held: usize, values: &mut Vec<T::T>, defined: &mut Vec<i16>, repeated: &mut Vec<i16>| {
        change(values, defined, written)?;
        written += held;
        // A column with exactly one value in each row has no levels. Empty levels must be passed as `None`.
        let (of_values, of_lists) = (Some(&defined[..]), Some(&repeated[..]));
        let (of_values, of_lists) =
            (of_values.filter(|all| !all.is_empty()), of_lists.filter(|all| !all.is_empty()));
        to.write_batch(values, of_values, of_lists).map_err(failed)?;
        values.clear();
        defined.clear();
        repeated.clear();
        Ok::<_, String>(())
    };
    for &(before, rows) in runs {
        let skipped = from.skip_records(before).map_err(failed)?;
        let mut left = rows;
        while left > 0 && skipped == before {
            let wanted = left.min(at_once - held);
            let read = from.read_records(wanted, Some(&mut defined), Some(&mut repeated), &mut values);
            let (records, ..) = read.map_err(failed)?;
            if records == 0 {
                break;
            }
            (left, held) = (left - records, held + records);
            if held == at_once {
                write(held, &mut values, &mut defined, &mut repeated)?;
                held = 0;
            }
        }
        if left > 0 {
            return Err("a column has fewer rows than are said".to_owned());
        }
    }
    write(held, &mut values, &mut defined, &mut repeated)
}

/// Number of documents whose annotations are in memory at a time.
const TOGETHER: usize = 4096;

/// Returns the schema of annotated files: the columns of the input, followed by the added columns.
fn annotated(root: &Type, noted: &AnnotationOptions) -> Result<TypePtr, ParquetError> {
    let mut fields = root.get_fields().to_vec();
    for field in noted.fields() {
        let (of_type, logical) = match field {
            NoteField::ClusterId | NoteField::ClusterSize => (PhysicalType::INT64, None),
            NoteField::Kept => (PhysicalType::BOOLEAN, None),
            NoteField::Score => (PhysicalType::DOUBLE, None),
            NoteField::NearKey | NoteField::Spans => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if matches!(field, NoteField::Kept | NoteField::Spans) {
            Repetition::REQUIRED
        } else {
            Repetition::OPTIONAL
        };
        let name = noted.name(field);
        let column = Type::primitive_type_builder(&name, of_type);
        fields.push(Arc::new(column.with_repetition(repetition).with_logical_type(logical).build()?));
    }
    Ok(Arc::new(Type::group_type_builder(root.name()).with_fields(fields).build()?))
}

/// Writes the added columns of a row group. `documents` has the index of the document in each row.
fn write<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    documents: &[u32],
    annotation: Annotation<'_>,
) -> Result<(), ParquetError> {
    for field in annotation.noted.fields() {
        let missing = || ParquetError::General("fewer columns than were added".to_owned());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        for some in documents.chunks(TOGETHER) {
            let notes: Vec<DocumentNote> = some.iter().map(|&document| (annotation.of)(document)).collect();
            let levels = |is_there: fn(&DocumentNote) -> bool| -> Vec<i16> {
                notes.iter().map(|note| i16::from(is_there(note))).collect()
            };
            match field {
                NoteField::ClusterId | NoteField::ClusterSize => {
                    let of = |(id, size)| i64::from(if field == NoteField::ClusterId { id } else { size });
                    let values: Vec<i64> = notes.iter().filter_map(|note| note.cluster.map(of)).collect();
                    let levels = levels(|note| note.cluster.is_some());
                    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                NoteField::Kept => {
                    let values: Vec<bool> = notes.iter().map(|note| note.is_kept).collect();
                    column.typed::<BoolType>().write_batch(&values, None, None)?;
                }
                NoteField::Score => {
                    let values: Vec<f64> = notes.iter().filter_map(DocumentNote::score).collect();
                    let levels = levels(|note| note.score().is_some());
                    column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                NoteField::Spans => {
                    let values: Vec<ByteArray> =
                        notes.iter().map(|note| ByteArray::from(note.spans.clone())).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                NoteField::NearKey => {
                    // String columns must be UTF-8.
                    let of = |key: &Vec<u8>| ByteArray::from(String::from_utf8_lossy(key).as_ref());
                    let values: Vec<ByteArray> =
                        notes.iter().filter_map(|note| note.near_key.as_ref().map(of)).collect();
                    let levels = levels(|note| note.near_key.is_some());
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
            }
        }
        column.close()?;
    }
    Ok(())
}
