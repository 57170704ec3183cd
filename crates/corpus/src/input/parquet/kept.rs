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

use bytes::Bytes;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{
    ColumnCloseResult, ColumnWriter, ColumnWriterImpl, get_column_writer, get_typed_column_writer_mut,
};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type,
    Int64Type, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{
    SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite,
};
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};
use rayon::prelude::*;

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

    /// Copies rows of files, file by file and in ascending order, to the file `to`, which is created with the first rows.
    /// Columns are encoded on all threads.
    ///
    /// # Errors
    ///
    /// An input file cannot be read, or the output file cannot be written. The error comes with the place of the input
    /// file.
    pub(crate) fn copy(
        &mut self,
        files: Vec<CopiedFile<'_>>,
        to: &Path,
        changes: (Option<Annotation<'_>>, Option<Cuts<'_>>),
    ) -> Result<(), (usize, CopyError)> {
        let mut inputs = Vec::with_capacity(files.len());
        for (place, file) in files.into_iter().enumerate() {
            let input = guarded(|| ParquetInput::open(file)).map_err(|why| (place, CopyError::Read(why)))?;
            self.make(&input, to, changes).map_err(|error| (place, CopyError::Write(error)))?;
            inputs.push(input);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut groups = Vec::new();
        for (place, input) in inputs.iter().enumerate() {
            groups.extend(input.groups(place).map_err(|why| (place, CopyError::Read(why)))?);
        }
        let mut rest = &groups[..];
        while let Some(first) = rest.first() {
            let mut bytes = first.bytes();
            let more = rest[1..].iter().take_while(|group| {
                bytes += group.bytes();
                bytes <= ENCODED_BYTES
            });
            let (now, later) = rest.split_at(1 + more.count());
            copy(now, changes, writer).map_err(|(place, why)| (place, CopyError::Read(why)))?;
            rest = later;
        }
        for input in &inputs {
            self.say(&input.metadata, changes.0.is_some());
        }
        Ok(())
    }

    /// Creates the output file in the format of an input, unless it exists.
    fn make(
        &mut self,
        input: &ParquetInput<'_>,
        to: &Path,
        (annotation, cuts): (Option<Annotation<'_>>, Option<Cuts<'_>>),
    ) -> anyhow::Result<()> {
        if self.writer.is_some() {
            return Ok(());
        }
        let made = fs::File::create_new(to)?;
        let columns = input.columns;
        let sorting = match cuts {
            Some(_) => sorting_without(columns.sorting.as_ref(), &columns.text),
            None => columns.sorting.clone(),
        };
        let properties = Arc::new(properties(&input.metadata, sorting));
        let root = match annotation {
            Some(annotation) => annotated(&columns.root, annotation.noted)?,
            None => Arc::clone(&columns.root),
        };
        self.writer = Some(SerializedFileWriter::new(Hashed::new(made), root, properties)?);
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

/// Maximum size in bytes of the columns of the input that are encoded together, unless one row group is larger.
const ENCODED_BYTES: i64 = 64 << 20;

/// The rows to copy of an input file.
pub(crate) struct CopiedFile<'c> {
    /// The input file, opened again.
    pub(crate) file: fs::File,
    /// Its columns.
    pub(crate) columns: &'c ParquetColumns,
    /// The rows, ascending.
    pub(crate) rows: &'c [u64],
    /// The index of the document in each of these rows.
    pub(crate) documents: &'c [u32],
}

/// An input file that was opened again to copy rows.
struct ParquetInput<'c> {
    file: Arc<Checked>,
    metadata: ParquetMetaData,
    columns: &'c ParquetColumns,
    rows: &'c [u64],
    documents: &'c [u32],
}

/// The rows to copy of a row group, at least one.
struct CopiedGroup<'c> {
    /// The place of the file among the inputs.
    place: usize,
    input: &'c ParquetInput<'c>,
    group: &'c RowGroupMetaData,
    /// The number of rows to skip before each run of consecutive rows, and the length of the run.
    runs: Vec<(usize, usize)>,
    documents: &'c [u32],
}

impl<'c> ParquetInput<'c> {
    fn open(from: CopiedFile<'c>) -> Result<Self, String> {
        let CopiedFile { file, columns, rows, documents } = from;
        let metadata = metadata_of(&file)?;
        // Sets no size limit. The limit applied to the columns that were read as documents; other columns may have
        // longer values.
        let file = Checked::new(file, usize::MAX).map_err(|error| error.to_string())?;
        Ok(Self { file: Arc::new(file), metadata, columns, rows, documents })
    }

    /// Returns the row groups with rows to copy. `place` is that of the file.
    fn groups(&'c self, place: usize) -> Result<Vec<CopiedGroup<'c>>, String> {
        let (mut first, mut rest, mut rest_of_documents) = (0, self.rows, self.documents);
        let mut groups = Vec::new();
        for group in self.metadata.row_groups() {
            let end = first + u64::try_from(group.num_rows()).map_err(|_| "a group of fewer than no rows")?;
            let own;
            (own, rest) = rest.split_at(rest.partition_point(|row| *row < end));
            let documents;
            (documents, rest_of_documents) = rest_of_documents.split_at(own.len());
            if !own.is_empty() {
                groups.push(CopiedGroup { place, input: self, group, runs: runs(own, first)?, documents });
            }
            first = end;
        }
        if rest.is_empty() {
            Ok(groups)
        } else {
            Err(format!("{} of {} are there", self.rows.len() - rest.len(), self.rows.len()))
        }
    }
}

/// The cuts for each text column of a row group, by column index; empty if no text of its rows changes.
type GroupCuts<'c> = HashMap<usize, (TextColumn, TextCuts<'c>)>;

impl<'c> CopiedGroup<'c> {
    fn bytes(&self) -> i64 {
        self.group.compressed_size()
    }

    /// Returns the spans to remove from its texts.
    fn cuts(&self, cuts: Option<Cuts<'c>>) -> Result<GroupCuts<'c>, String> {
        let text = &self.input.columns.text;
        let at_once = rows_at_once(&self.input.metadata);
        cuts.map_or_else(
            || Ok(HashMap::new()),
            |cuts| cut_texts(self.input, self.group, (cuts, text), self.documents, (&self.runs, at_once)),
        )
    }

    /// Returns the encoded rows of a column.
    fn encode(
        &self,
        column: usize,
        texts: &GroupCuts<'_>,
        descriptor: ColumnDescPtr,
        properties: WriterPropertiesPtr,
    ) -> Result<(Bytes, ColumnCloseResult), String> {
        let failed = |error: ParquetError| error.to_string();
        let Self { input, group, runs, .. } = self;
        let from = column_reader(&input.file, group, column).map_err(failed)?;
        let at_once = if is_prefix_coded(group, column) { 1 } else { rows_at_once(&input.metadata) };
        let mut encoded = TrackedWrite::new(Vec::new());
        let mut to =
            get_column_writer(descriptor, properties, Box::new(SerializedPageWriter::new(&mut encoded)));
        match (from, texts.get(&column)) {
            (ColumnReader::ByteArrayColumnReader(from), Some((text, cuts))) => {
                let to = get_typed_column_writer_mut::<ByteArrayType>(&mut to);
                copy_values(from, to, runs, at_once, |values, defined, first| {
                    cuts.leave_out(*text, values, defined, first)
                })?;
            }
            (_, Some(_)) => return Err("its column holds no texts".to_owned()),
            (from, None) => copy_column(from, &mut to, runs, at_once)?,
        }
        let closed = to.close().map_err(failed)?;
        Ok((encoded.into_inner().map_err(failed)?.into(), closed))
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

/// Encodes the columns of row groups on all threads, and appends them to a file. An error comes with the place of the
/// input file.
fn copy<'c>(
    groups: &[CopiedGroup<'c>],
    (annotation, cuts): (Option<Annotation<'_>>, Option<Cuts<'c>>),
    output: &mut SerializedFileWriter<Hashed<fs::File>>,
) -> Result<(), (usize, String)> {
    let texts: Vec<GroupCuts<'_>> = groups
        .par_iter()
        .map(|group| guarded(|| group.cuts(cuts)).map_err(|why| (group.place, why)))
        .collect::<Result<_, _>>()?;
    let columns: Vec<(usize, usize)> = (0..)
        .zip(groups)
        .flat_map(|(number, group)| (0..group.group.num_columns()).map(move |column| (number, column)))
        .collect();
    let (schema, properties) = (output.schema_descr(), output.properties());
    let encoded = columns.par_iter().map(|&(number, column)| {
        let group = &groups[number];
        let encode = || group.encode(column, &texts[number], schema.column(column), Arc::clone(properties));
        guarded(encode).map_err(|why| (group.place, why))
    });
    let encoded: Vec<_> = encoded.collect::<Result<_, _>>()?;
    let mut encoded = encoded.into_iter();
    for group in groups {
        let mut append = || {
            let mut to = output.next_row_group()?;
            for (bytes, closed) in encoded.by_ref().take(group.group.num_columns()) {
                to.append_column(&bytes, closed)?;
            }
            if let Some(annotation) = annotation {
                write(&mut to, group.documents, annotation)?;
            }
            to.close().map(drop)
        };
        append().map_err(|error: ParquetError| (group.place, error.to_string()))?;
    }
    Ok(())
}

/// Returns the cuts for the rows of a row group.
fn cut_texts<'c>(
    input: &ParquetInput<'_>,
    group: &RowGroupMetaData,
    (cuts, text): (Cuts<'c>, &[usize]),
    documents: &'c [u32],
    (runs, at_once): (&[(usize, usize)], usize),
) -> Result<GroupCuts<'c>, String> {
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
    to: &mut ColumnWriter<'_>,
    runs: &[(usize, usize)],
    at_once: usize,
) -> Result<(), String> {
    match from {
        ColumnReader::BoolColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<BoolType>(to), runs, at_once, as_they_are)
        }
        ColumnReader::Int32ColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<Int32Type>(to), runs, at_once, as_they_are)
        }
        ColumnReader::Int64ColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<Int64Type>(to), runs, at_once, as_they_are)
        }
        ColumnReader::Int96ColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<Int96Type>(to), runs, at_once, as_they_are)
        }
        ColumnReader::FloatColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<FloatType>(to), runs, at_once, as_they_are)
        }
        ColumnReader::DoubleColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<DoubleType>(to), runs, at_once, as_they_are)
        }
        ColumnReader::ByteArrayColumnReader(from) => {
            copy_values(from, get_typed_column_writer_mut::<ByteArrayType>(to), runs, at_once, as_they_are)
        }
        ColumnReader::FixedLenByteArrayColumnReader(from) => copy_values(
            from,
            get_typed_column_writer_mut::<FixedLenByteArrayType>(to),
            runs,
            at_once,
            as_they_are,
        ),
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
