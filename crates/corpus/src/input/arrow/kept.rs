//! Copies kept rows of Arrow IPC files, so that the output has the same columns, types, metadata, format and
//! compression as the input. Each batch of the input becomes one batch without the removed rows.

use std::fs;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, GenericBinaryBuilder, GenericStringBuilder, StringViewBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, UInt32Array, make_array,
};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::take::take;

use crate::input::arrow::columns::{ArrowColumns, value};
use crate::input::arrow::ipc::IpcFile;
use crate::input::columns::column::Value;
use crate::input::columns::file::{CopyError, guarded};
use crate::input::kept::annotate::{Annotation, AnnotationOptions, DocumentNote, NoteField};
use crate::input::text::cuts::{Cuts, checked_part_without};
use crate::work::file::{FileDigest, Hashed};

/// A file of kept rows.
pub(crate) struct ArrowOutput {
    /// The writer and its schema; `None` before the first rows are copied.
    writer: Option<(Writer, SchemaRef)>,
}

type Output = BufWriter<Hashed<fs::File>>;

enum Writer {
    File(Box<FileWriter<Output>>),
    Stream(Box<StreamWriter<Output>>),
}

impl Writer {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(self) -> Result<Output, ArrowError> {
        match self {
            Self::File(writer) => writer.into_inner(),
            Self::Stream(writer) => writer.into_inner(),
        }
    }
}

impl ArrowOutput {
    pub(crate) fn new() -> Self {
        Self { writer: None }
    }

    /// Copies rows, in ascending order, of the file `from`, which has these columns. Writes them to the file `to`,
    /// which is created with the first rows. `documents` has the index of the document in each row.
    ///
    /// # Errors
    ///
    /// The input file cannot be read, or the output file cannot be written.
    pub(crate) fn copy(
        &mut self,
        (from, columns): (fs::File, &ArrowColumns),
        to: &Path,
        (mut rows, mut documents): (&[u64], &[u32]),
        (annotation, cuts): (Option<Annotation<'_>>, Option<Cuts<'_>>),
    ) -> Result<(), CopyError> {
        let open = || {
            let mut input = IpcFile::open(from, columns.record_bytes_max)?;
            Ok((input.next(None)?, input))
        };
        let (mut next, mut input) = guarded(open).map_err(CopyError::Read)?;
        let (writer, schema) = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let schema = schema(columns, annotation, cuts.is_some());
                let made = create(&input, &schema, to).map_err(CopyError::Write)?;
                none.insert((made, schema))
            }
        };
        let mut first = 0;
        while let Some(batch) = next.filter(|_| !rows.is_empty()) {
            let end = first + batch.num_rows() as u64;
            let (own, others) = rows.split_at(rows.partition_point(|row| *row < end));
            let (own_documents, other_documents) = documents.split_at(own.len());
            if !own.is_empty() {
                let copied = guarded(|| {
                    let text = cuts.map(|cuts| (cuts, &columns.text[..]));
                    let copied = kept_columns(&batch, (own, first), own_documents, annotation, text)?;
                    let options = RecordBatchOptions::new().with_row_count(Some(own.len()));
                    RecordBatch::try_new_with_options(Arc::clone(schema), copied, &options)
                        .and_then(|batch| writer.write(&batch))
                        .map_err(|error| error.to_string())
                });
                copied.map_err(CopyError::Read)?;
            }
            (rows, documents, first) = (others, other_documents, end);
            next = guarded(|| input.next(None)).map_err(CopyError::Read)?;
        }
        if rows.is_empty() {
            return Ok(());
        }
        Err(CopyError::Read(format!("{} rows are missing", rows.len())))
    }

    /// Writes the end of the file, and syncs it. Returns its digest; `None` if no rows were copied.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn finish(self) -> anyhow::Result<Option<FileDigest>> {
        let Some((writer, _)) = self.writer else { return Ok(None) };
        let output = writer.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let (file, hash) = output.into_parts();
        file.sync_all()?;
        Ok(Some(hash.digest()))
    }
}

/// Creates an output file in the format and compression of an input whose first batch was read.
fn create(input: &IpcFile, schema: &Schema, to: &Path) -> anyhow::Result<Writer> {
    let output = BufWriter::new(Hashed::new(fs::File::create_new(to)?));
    let options = IpcWriteOptions::default().try_with_compression(input.compression)?;
    Ok(if input.is_of_file_format() {
        let mut writer = FileWriter::try_new_with_options(output, schema, options)?;
        for (key, value) in &input.metadata {
            writer.write_metadata(key, value);
        }
        Writer::File(Box::new(writer))
    } else {
        Writer::Stream(Box::new(StreamWriter::try_new_with_options(output, schema, options)?))
    })
}

/// Returns the schema of an output file: the columns of the input, followed by the added columns. If spans are removed
/// from texts, text columns have no dictionary.
fn schema(columns: &ArrowColumns, annotation: Option<Annotation<'_>>, has_cuts: bool) -> SchemaRef {
    let mut fields = columns.schema.fields().clone();
    if has_cuts {
        for path in &columns.text {
            fields = without_dictionary(&fields, path);
        }
    }
    let added = annotation.into_iter().flat_map(|annotation| added_fields(annotation.noted));
    let fields: Vec<_> = fields.iter().cloned().chain(added.map(Arc::new)).collect();
    Arc::new(Schema::new_with_metadata(fields, columns.schema.metadata().clone()))
}

/// Returns fields in which the field at `path` has no dictionary.
fn without_dictionary(fields: &Fields, path: &[usize]) -> Fields {
    let changed = |(number, field): (usize, &Arc<Field>)| {
        let of_type = match (path.split_first(), field.data_type()) {
            (Some((first, [])), DataType::Dictionary(_, values)) if *first == number => (**values).clone(),
            (Some((first, rest)), DataType::Struct(fields)) if *first == number => {
                DataType::Struct(without_dictionary(fields, rest))
            }
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(of_type))
    };
    fields.iter().enumerate().map(changed).collect()
}

fn added_fields(noted: &AnnotationOptions) -> impl Iterator<Item = Field> {
    noted.fields().map(|field| {
        let of_type = match field {
            NoteField::ClusterId | NoteField::ClusterSize => DataType::Int64,
            NoteField::Kept => DataType::Boolean,
            NoteField::Score => DataType::Float64,
            NoteField::NearKey | NoteField::Spans => DataType::Utf8,
        };
        Field::new(noted.name(field), of_type, !matches!(field, NoteField::Kept | NoteField::Spans))
    })
}

/// Returns the columns of the kept rows of a batch, followed by the added columns. `first` is the number of rows before
/// the batch.
fn kept_columns(
    batch: &RecordBatch,
    (rows, first): (&[u64], u64),
    documents: &[u32],
    annotation: Option<Annotation<'_>>,
    text: Option<(Cuts<'_>, &[Vec<usize>])>,
) -> Result<Vec<ArrayRef>, String> {
    let mut columns = batch.columns().to_vec();
    if rows.len() < batch.num_rows() {
        let kept: Option<UInt32Array> =
            rows.iter().map(|row| u32::try_from(row.checked_sub(first)?).ok().map(Some)).collect();
        let kept = kept.ok_or("rows that do not ascend, or a batch of more than 2^32 rows")?;
        for column in &mut columns {
            let taken = take(column, &kept, None).map_err(|error| error.to_string())?;
            *column = compacted(&taken.to_data()).map(make_array)?;
        }
    }
    if let Some((cuts, text)) = text {
        let mut starts = vec![0; documents.len()];
        for (number, path) in text.iter().enumerate() {
            if text[..number].contains(path) {
                return Err("two names of the text mean the same column".to_owned());
            }
            let is_last = number + 1 == text.len();
            let mut change = |array: &ArrayRef| cut(array, (cuts, documents), &mut starts, is_last);
            replace(&mut columns, path, &mut change)?;
        }
    }
    if let Some(annotation) = annotation {
        let notes: Vec<DocumentNote> = documents.iter().map(|&document| (annotation.of)(document)).collect();
        columns.extend(annotation.noted.fields().map(|field| added_column(field, &notes)));
    }
    Ok(columns)
}

/// Returns an array without the bytes of its data buffers that no value of a view has.
fn compacted(array: &ArrayData) -> Result<ArrayData, String> {
    match array.data_type() {
        DataType::Utf8View => return Ok(make_array(array.clone()).as_string_view().gc().into_data()),
        DataType::BinaryView => return Ok(make_array(array.clone()).as_binary_view().gc().into_data()),
        DataType::Dictionary(..) => return Ok(array.clone()),
        _ if array.child_data().is_empty() => return Ok(array.clone()),
        _ => {}
    }
    let inner = array.child_data().iter().map(compacted).collect::<Result<_, _>>()?;
    array.clone().into_builder().child_data(inner).build().map_err(|error| error.to_string())
}

/// Replaces the array at `path` with the result of `change`.
fn replace(
    columns: &mut [ArrayRef],
    path: &[usize],
    change: &mut dyn FnMut(&ArrayRef) -> Result<ArrayRef, String>,
) -> Result<(), String> {
    let missing = || "a column that is not there any more".to_owned();
    let (&first, rest) = path.split_first().ok_or_else(missing)?;
    let column = columns.get_mut(first).ok_or_else(missing)?;
    if rest.is_empty() {
        *column = change(column)?;
        return Ok(());
    }
    let (fields, mut inner, nulls) = column.as_struct_opt().ok_or_else(missing)?.clone().into_parts();
    if let Some(array) = inner.get_mut(rest[0]) {
        // In a struct that is null, a field may have a value, which is not read.
        let nulls = NullBuffer::union(array.nulls(), nulls.as_ref());
        let masked = array.to_data().into_builder().nulls(nulls).build();
        *array = make_array(masked.map_err(|error| error.to_string())?);
    }
    replace(&mut inner, rest, change)?;
    let of_type = |(field, array): (&Arc<Field>, &ArrayRef)| {
        Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()))
    };
    let fields: Fields = fields.iter().zip(&inner).map(of_type).collect();
    *column = Arc::new(StructArray::try_new(fields, inner, nulls).map_err(|error| error.to_string())?);
    Ok(())
}

/// Removes spans from the values of a text column, which is the last part of the text if `is_last`. `starts` has the
/// offset of each value in its text, and is moved to the next part.
fn cut(
    array: &ArrayRef,
    (cuts, documents): (Cuts<'_>, &[u32]),
    starts: &mut [usize],
    is_last: bool,
) -> Result<ArrayRef, String> {
    let changed = || "a text is not what it was when it was read, or is not UTF-8".to_owned();
    let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(array.len());
    for (at, (&document, start)) in documents.iter().zip(starts).enumerate() {
        let cut = (cuts.of)(document);
        let bytes = match value(array, at) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            Some(_) => return Err("its column holds no texts".to_owned()),
            None => None,
        };
        let place = *start..*start + bytes.map_or(0, <[u8]>::len);
        if is_last && cut.last().is_some_and(|last: &Range<usize>| last.end > place.end) {
            return Err(changed());
        }
        values.push(match bytes {
            Some(bytes) if !cut.is_empty() => {
                let part = std::str::from_utf8(bytes).map_err(|_| changed())?;
                Some(checked_part_without(part, &place, &cut).ok_or_else(changed)?.into_bytes())
            }
            bytes => bytes.map(<[u8]>::to_vec),
        });
        *start = place.end + 1; // the newline between two parts
    }
    let of_type = match array.data_type() {
        DataType::Dictionary(_, values) => values,
        of_type => of_type,
    };
    built(of_type, &values).ok_or_else(changed)
}

/// Returns an array of texts; `None` if the type is no text type, or a text is not UTF-8.
fn built(of_type: &DataType, values: &[Option<Vec<u8>>]) -> Option<ArrayRef> {
    macro_rules! built {
        ($builder:expr, $of:expr) => {{
            let mut builder = $builder;
            for value in values {
                builder.append_option(value.as_deref().map($of).transpose().ok()?);
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    let bytes = Ok::<_, std::str::Utf8Error>;
    Some(match of_type {
        DataType::Utf8 => built!(GenericStringBuilder::<i32>::new(), std::str::from_utf8),
        DataType::LargeUtf8 => built!(GenericStringBuilder::<i64>::new(), std::str::from_utf8),
        DataType::Utf8View => built!(StringViewBuilder::new(), std::str::from_utf8),
        DataType::Binary => built!(GenericBinaryBuilder::<i32>::new(), bytes),
        DataType::LargeBinary => built!(GenericBinaryBuilder::<i64>::new(), bytes),
        DataType::BinaryView => built!(BinaryViewBuilder::new(), bytes),
        _ => return None,
    })
}

/// Returns an added column.
fn added_column(field: NoteField, notes: &[DocumentNote]) -> ArrayRef {
    let of_cluster = |of: fn((u32, u32)) -> u32| -> ArrayRef {
        Arc::new(notes.iter().map(|note| note.cluster.map(of).map(i64::from)).collect::<Int64Array>())
    };
    // String columns must be UTF-8.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match field {
        NoteField::ClusterId => of_cluster(|(id, _)| id),
        NoteField::ClusterSize => of_cluster(|(_, size)| size),
        NoteField::Kept => Arc::new(notes.iter().map(|note| Some(note.is_kept)).collect::<BooleanArray>()),
        NoteField::Score => Arc::new(notes.iter().map(DocumentNote::score).collect::<Float64Array>()),
        NoteField::NearKey => {
            Arc::new(notes.iter().map(|note| note.near_key.as_deref().map(text)).collect::<StringArray>())
        }
        NoteField::Spans => {
            Arc::new(notes.iter().map(|note| Some(text(&note.spans))).collect::<StringArray>())
        }
    }
}
