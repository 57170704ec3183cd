//! Parquet files: reads the requested columns row by row. The module [`kept`](super::kept) copies kept rows.
//!
//! The files are decoded by arrow-rs. If a damaged file makes arrow-rs fail or panic, an error is returned. Before
//! arrow-rs is called, [`thrift`] detects damage that could abort the process.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::SystemTime;

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, SortingColumn};
use parquet::schema::types::{Type, TypePtr};

use crate::input::fields::attached::{AttachedFields, HasField, OwnAttached};
use crate::input::fields::deciding::DecidingValues;
use crate::input::fields::fingerprint;
use crate::input::fields::names::{push_key, push_text};
use crate::input::fields::number::FieldNumber;
use crate::input::fields::record::{self, Ids};
use crate::input::open::reader;
use crate::input::parquet::decoded::{ColumnType, DecodedColumn};
use crate::input::parquet::leaves::{Table, TypeTest};
use crate::input::parquet::thrift::{self, Checked};
use crate::input::place::{Place, Problem};

/// Maximum number of rows decoded at a time, and maximum size of these rows in bytes, estimated from the mean row size.
const ROWS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: i64 = 16 << 20;
/// Number of bytes in an encoded row for the row number and the key length.
const HEAD_BYTES: usize = 12;
/// Number of bytes in an encoded row for the stamp and the value length.
const ATTACHED_BYTES: usize = 12;
/// Number of bytes in an encoded row for the number in the `--keep` field, the flag whether it is a time, and the
/// length of the `--inside` value.
const DECIDING_BYTES: usize = 21;
/// Number of bytes in an encoded row for the length of the URL.
const URL_BYTES: usize = 4;

/// A Parquet file whose rows are documents.
#[derive(Debug)]
pub struct ParquetFile {
    pub(crate) path: Arc<Path>,
    pub(crate) columns: ParquetColumns,
    pub(crate) stamp: Stamp,
    /// The leaf columns that contain the text. Their values are joined in this order.
    pub(crate) text: Vec<usize>,
}

/// The schema and sort order of a file. Kept rows of files with equal schema and sort order are written to one file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetColumns {
    pub(crate) root: TypePtr,
    /// The sort order of the rows; `None` if row groups have different orders.
    pub(crate) sorting: Option<Vec<SortingColumn>>,
}

impl PartialEq for ParquetColumns {
    /// Ignores the name of the root, which depends on the program that wrote the file.
    fn eq(&self, other: &Self) -> bool {
        self.root.get_fields() == other.root.get_fields() && self.sorting == other.sorting
    }
}

impl ParquetColumns {
    /// Returns the schema and sort order of a file.
    fn of(metadata: &ParquetMetaData) -> Self {
        let mut orders = metadata.row_groups().iter().map(|group| group.sorting_columns());
        let first = orders.next().flatten();
        let sorting = first.filter(|first| orders.all(|other| other == Some(first))).cloned();
        Self { root: metadata.file_metadata().schema_descr().root_schema_ptr(), sorting }
    }
}

/// Size and modification time of a file. If they differ later, the file has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(file: &fs::File) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { bytes: metadata.len(), modified: metadata.modified().ok() })
    }
}

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls arrow-rs in `what`, and returns a panic as an error, without printing it. Damaged pages make arrow-rs panic in
/// more situations than can be detected in advance.
pub(crate) fn guarded<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // guard: a panic of arrow-rs that is caught is not printed
            // without it: GUARDED.get() -> false
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
    GUARDED.set(true);
    // guard: a panic of arrow-rs is an error
    // without it: catch_unwind(AssertUnwindSafe(what)) -> Ok(what())
    let done = catch_unwind(AssertUnwindSafe(what));
    GUARDED.set(false);
    done.unwrap_or_else(|_| Err("the Parquet reader failed: the file is damaged".to_owned()))
}

/// The rows of one file.
pub(crate) struct ParquetRows {
    path: Arc<Path>,
    batches: Batches,
    places: ColumnPlaces,
    fields: record::Fields,
    /// Number of rows of the current batch that were returned.
    at: usize,
    /// Total number of rows returned so far.
    taken: u64,
    /// Number of rows in the file, from its footer.
    in_all: u64,
    /// Size of the file in bytes.
    bytes: u64,
    /// The counter of bytes read from all files, for progress.
    consumed: Arc<AtomicU64>,
    /// Number of bytes of this file that were added to `consumed`. It is in proportion to the number of rows read.
    counted: u64,
    row_bytes_max: usize,
}

/// Decodes the rows of a file in batches.
struct Batches {
    file: Arc<Checked>,
    metadata: ParquetMetaData,
    columns: Vec<DecodedColumn>,
    /// Maximum number of rows decoded at a time.
    at_once: usize,
    /// Number of row groups that were opened.
    groups: usize,
    /// Number of rows not yet decoded in the last opened row group.
    left: usize,
    /// Number of rows in the current batch.
    rows: usize,
}

impl Batches {
    /// Decodes the next batch of rows. Returns false at the end of the file.
    ///
    /// # Errors
    ///
    /// The file is damaged.
    fn next(&mut self) -> Result<bool, String> {
        while self.left == 0 {
            let Some(group) = self.metadata.row_groups().get(self.groups) else { return Ok(false) };
            self.left = usize::try_from(group.num_rows()).map_err(|_| "a row group of fewer than no rows")?;
            for column in &mut self.columns {
                column.begin(&self.file, group)?;
            }
            self.groups += 1;
        }
        self.rows = self.left.min(self.at_once);
        self.left -= self.rows;
        for column in &mut self.columns {
            column.decode(self.rows)?;
            if self.left == 0 {
                column.end()?;
            }
        }
        Ok(true)
    }
}

/// The columns with the key, the text and other values, as indices in [`Batches::columns`].
#[derive(Clone, Debug)]
struct ColumnPlaces {
    /// The columns of the key; empty if keys are created from row numbers.
    key: Vec<usize>,
    /// The columns whose texts are joined, in this order.
    text: Vec<usize>,
    value: Option<usize>,
    stamp: Option<usize>,
    number: Option<usize>,
    inside: Option<usize>,
    url: Option<usize>,
}

/// The number of a row, from 1, and the row encoded as a line, or the reason why the row is bad.
pub(crate) type NumberedRow = (u64, Result<Vec<u8>, String>);

impl ParquetRows {
    /// Opens a file and finds the requested columns. The file is opened again later to copy kept rows.
    ///
    /// # Errors
    ///
    /// The file is not a Parquet file, or a requested column is missing or has an unsupported type.
    pub(crate) fn open(
        path: &Path,
        fields: &record::Fields,
        row_bytes_max: usize,
        consumed: &Arc<AtomicU64>,
    ) -> Result<(Self, ParquetFile), Problem> {
        let name: Arc<Path> = Arc::from(path);
        let problem = |reason: String| Problem { place: Place::file(Arc::clone(&name)), reason };
        let file = fs::File::open(path).map_err(|error| reader::cannot(path, "open", &error))?;
        let stamp = Stamp::of(&file).map_err(|error| reader::cannot(path, "read the size", &error))?;
        let bytes = stamp.bytes;
        let OpenFile { batches, columns, rows, places, text } =
            guarded(|| begin(file, fields, row_bytes_max))
                .map_err(|reason| problem(format!("cannot read Parquet: {reason}")))?;
        let file = ParquetFile { path: Arc::clone(&name), columns, stamp, text };
        let consumed = Arc::clone(consumed);
        let rows = Self {
            path: name,
            batches,
            places,
            fields: fields.clone(),
            at: 0,
            taken: 0,
            in_all: rows,
            bytes,
            consumed,
            counted: 0,
            row_bytes_max,
        };
        Ok((rows, file))
    }

    /// Returns the name of the file for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        &self.path
    }

    /// Returns the next row and its number, from 1; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read to its end.
    pub(crate) fn next(&mut self) -> Result<Option<NumberedRow>, Problem> {
        loop {
            if self.at < self.batches.rows {
                let columns = &self.batches.columns;
                let line = line(columns, &self.places, self.at, self.taken, self.row_bytes_max, &self.fields);
                self.at += 1;
                self.taken += 1;
                return Ok(Some((self.taken, line)));
            }
            let done = u128::from(self.bytes) * u128::from(self.taken) / u128::from(self.in_all.max(1));
            let has_more = guarded(|| self.batches.next()).map_err(|reason| Problem {
                place: Place::file(Arc::clone(&self.path)),
                reason: format!("cannot read Parquet on after {} rows: {reason}", self.taken),
            })?;
            let done = if has_more { done as u64 } else { self.bytes };
            self.consumed.fetch_add(done.saturating_sub(self.counted), Ordering::Relaxed);
            self.counted = self.counted.max(done);
            if !has_more {
                return Ok(None);
            }
            self.at = 0;
        }
    }
}

/// Returns the number of rows to decode at a time: at most [`ROWS_AT_ONCE`], and about [`BYTES_AT_ONCE`] bytes. The row
/// size is the largest mean size of a row group, as given in the footer.
pub(crate) fn rows_at_once(metadata: &ParquetMetaData) -> usize {
    let groups = metadata.row_groups().iter();
    let widest =
        groups.map(|group| group.total_byte_size().max(0) / group.num_rows().max(1)).max().unwrap_or(0);
    usize::try_from(BYTES_AT_ONCE / widest.max(1)).unwrap_or(ROWS_AT_ONCE).clamp(1, ROWS_AT_ONCE)
}

/// The result of opening a file.
struct OpenFile {
    batches: Batches,
    columns: ParquetColumns,
    rows: u64,
    places: ColumnPlaces,
    /// The leaf columns of the text.
    text: Vec<usize>,
}

/// Checks the footer of a file, and reads the metadata in it.
pub(crate) fn metadata_of(file: &fs::File) -> Result<ParquetMetaData, String> {
    thrift::check_footer(file)?;
    ParquetMetaDataReader::new().parse_and_finish(file).map_err(|error| error.to_string())
}

/// Returns an error if two columns have the same name, because programs differ in which of the two they read.
fn check_names(group: &Type) -> Result<(), String> {
    let mut names = HashSet::new();
    for field in group.get_fields() {
        if !names.insert(field.name()) {
            return Err(format!("two columns have the name {:?}; rename one of them", field.name()));
        }
        if field.is_group() {
            check_names(field)?;
        }
    }
    Ok(())
}

fn begin(file: fs::File, fields: &record::Fields, row_bytes_max: usize) -> Result<OpenFile, String> {
    let metadata = metadata_of(&file).map_err(|error| format!("{error} (is it a Parquet file?)"))?;
    let columns = ParquetColumns::of(&metadata);
    let stored = metadata.file_metadata().schema_descr();
    check_names(stored.root_schema())?;
    stored.root_schema().get_fields().iter().try_for_each(|column| fields.check_name(column.name()))?;
    let numbers = "strings or whole numbers";
    let table = Table(stored);
    let mut key = match fields.ids {
        Ids::Line => Vec::new(),
        Ids::FieldOrLine if !table.has(&fields.id) => Vec::new(),
        Ids::Field | Ids::FieldOrLine => {
            let selection = fields.named.as_deref().map(|named| &named.id);
            let (fits, expected) = (ColumnType::is_key as TypeTest, "strings, numbers, times or UUIDs");
            table.select(&fields.id, selection, fits, expected)?
        }
    };
    let selection = fields.named.as_deref().map(|named| &named.text);
    let (fits, expected) = match fields.fingerprint {
        Some(_) => (ColumnType::is_text_or_number as TypeTest, numbers),
        None => (ColumnType::is_text as TypeTest, "strings"),
    };
    let text = table.select(&fields.text, selection, fits, expected)?;
    let named = |name: Option<&str>, option: &str, expected: &str, fits: TypeTest| {
        name.map(|name| table.named(name, option, fits, expected)).transpose()
    };
    let AttachedFields { value, stamp, deciding } = &fields.attached;
    let value = named(value.as_deref(), "--value-field", numbers, ColumnType::is_text_or_number)?;
    let stamp =
        named(stamp.as_deref(), "--stamp-field", "whole numbers, times or strings", ColumnType::is_stamp)?;
    let number = named(
        deciding.number(),
        deciding.number_option(),
        "numbers, times or strings",
        ColumnType::is_number,
    )?;
    let values = "strings, whole numbers, times or booleans";
    let inside = named(deciding.inside.as_deref(), "--inside", values, ColumnType::is_value)?;
    let url = named(deciding.url.as_deref(), "--url-field", "strings", ColumnType::is_text)?;
    let rows = u64::try_from(metadata.file_metadata().num_rows()).map_err(|_| "fewer than no rows")?;
    // The leaf columns to decode, each once, in file order.
    let mut leaves = [&key[..], &text].concat();
    leaves.extend([value, stamp, number, inside, url].into_iter().flatten());
    leaves.sort_unstable();
    leaves.dedup();
    let place = |leaf: usize| leaves.partition_point(|&other| other < leaf);
    for leaf in &mut key {
        *leaf = place(*leaf);
    }
    let places = ColumnPlaces {
        key,
        text: text.iter().map(|&leaf| place(leaf)).collect(),
        value: value.map(place),
        stamp: stamp.map(place),
        number: number.map(place),
        inside: inside.map(place),
        url: url.map(place),
    };
    let file = Checked::new(file, row_bytes_max).map_err(|error| error.to_string())?;
    let decoded =
        leaves.iter().map(|&leaf| DecodedColumn::new(leaf, stored.columns()[leaf].as_ref())).collect();
    let at_once = rows_at_once(&metadata);
    let batches =
        Batches { file: Arc::new(file), metadata, columns: decoded, at_once, groups: 0, left: 0, rows: 0 };
    Ok(OpenFile { batches, columns, rows, places, text })
}

/// Encodes a row as a line: the row number, the length of the key, and the key. If other values are requested, they
/// follow: the stamp, the length of the value, the value, the number in the `--keep` field, the flag whether it is a
/// time, the length of the `--inside` value, that value, the length of the URL, and the URL. The text is last.
fn to_line(row: u64, key: &[u8], attached: Option<&OwnAttached>, text: &[u8]) -> Vec<u8> {
    let value_bytes = attached.map_or(0, |attached| {
        let deciding = &attached.deciding;
        let of_deciding = DECIDING_BYTES + deciding.inside.len() + URL_BYTES + deciding.url.len();
        ATTACHED_BYTES + attached.value.len() + of_deciding
    });
    let mut line = Vec::with_capacity(HEAD_BYTES + key.len() + value_bytes + text.len());
    line.extend_from_slice(&row.to_le_bytes());
    line.extend_from_slice(&(key.len() as u32).to_le_bytes());
    line.extend_from_slice(key);
    if let Some(OwnAttached { value, stamp, deciding, has: _ }) = attached {
        line.extend_from_slice(&stamp.unwrap_or(0).to_le_bytes());
        line.extend_from_slice(&(value.len() as u32).to_le_bytes());
        line.extend_from_slice(value);
        line.extend_from_slice(&deciding.number.to_bytes());
        line.push(deciding.is_time.into());
        line.extend_from_slice(&(deciding.inside.len() as u32).to_le_bytes());
        line.extend_from_slice(&deciding.inside);
        line.extend_from_slice(&(deciding.url.len() as u32).to_le_bytes());
        line.extend_from_slice(&deciding.url);
    }
    line.extend_from_slice(text);
    line
}

/// Returns the row number in a line, from 0; `None` if the line is too short.
pub(crate) fn row(line: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*line.first_chunk()?))
}

/// The parts of a line that [`to_line`] encoded.
pub(crate) struct LineParts<'l> {
    /// The key; `None` if it is created from the row number.
    pub(crate) key: Option<&'l [u8]>,
    pub(crate) text: &'l [u8],
    value: &'l [u8],
    stamp: Option<u64>,
    number: FieldNumber,
    is_time: bool,
    inside: &'l [u8],
    url: &'l [u8],
}

impl LineParts<'_> {
    pub(crate) fn attached(&self) -> OwnAttached {
        let (inside, url) = (self.inside.to_vec(), self.url.to_vec());
        let deciding = DecidingValues { number: self.number, is_time: self.is_time, inside, url };
        // Every row has the named columns, because a file that lacks one is refused when it is opened.
        let has = HasField { value: true, url: true };
        OwnAttached { value: self.value.to_vec(), stamp: self.stamp, deciding, has }
    }
}

/// Splits a line into its parts; `None` if the line is too short. `fields` must be those with which it was encoded.
pub(crate) fn parts<'l>(line: &'l [u8], fields: &record::Fields) -> Option<LineParts<'l>> {
    let key_bytes = u32::from_le_bytes(*line.get(8..)?.first_chunk()?);
    let (key, rest) = line.get(HEAD_BYTES..)?.split_at_checked(key_bytes as usize)?;
    // An empty key means that the key was not read from a column, because such a key is never empty.
    let key = Some(key).filter(|key| !key.is_empty());
    if !fields.has_attached() {
        let (number, is_time) = (FieldNumber::default(), false);
        return Some(LineParts {
            key,
            text: rest,
            value: &[],
            stamp: None,
            number,
            is_time,
            inside: &[],
            url: &[],
        });
    }
    let stamp = u64::from_le_bytes(*rest.first_chunk()?);
    let value_bytes = u32::from_le_bytes(*rest.get(8..)?.first_chunk()?);
    let (value, rest) = rest.get(ATTACHED_BYTES..)?.split_at_checked(value_bytes as usize)?;
    let number = FieldNumber::from_bytes(*rest.first_chunk()?);
    let is_time = *rest.get(16)? != 0;
    let inside_bytes = u32::from_le_bytes(*rest.get(17..)?.first_chunk()?);
    let (inside, rest) = rest.get(DECIDING_BYTES..)?.split_at_checked(inside_bytes as usize)?;
    let url_bytes = u32::from_le_bytes(*rest.first_chunk()?);
    let (url, text) = rest.get(URL_BYTES..)?.split_at_checked(url_bytes as usize)?;
    let stamp = fields.attached.stamp.is_some().then_some(stamp);
    Some(LineParts { key, text, value, stamp, number, is_time, inside, url })
}

/// Encodes a decoded row as a line.
fn line(
    columns: &[DecodedColumn],
    places: &ColumnPlaces,
    at: usize,
    row: u64,
    bytes_max: usize,
    fields: &record::Fields,
) -> Result<Vec<u8>, String> {
    // A null text is treated as an empty text.
    let part = |place: usize| columns[place].bytes(at).unwrap_or_default();
    let mut joined = Vec::new();
    let text = match &places.text[..] {
        &[place] if fields.fingerprint.is_some() => {
            joined = fingerprint_of(&columns[place], at, fields)?.into_bytes();
            &joined
        }
        &[place] => part(place),
        places => {
            for (number, &place) in places.iter().enumerate() {
                push_text(&mut joined, part(place), number);
            }
            &joined
        }
    };
    // guard: a long text of Parquet is refused
    if text.len() > bytes_max {
        return Err(format!("a text of more than {bytes_max} bytes"));
    }
    let part = |place: usize| -> Result<Vec<u8>, String> {
        let key = columns[place].key(at);
        key.ok_or_else(|| "its key is null (--id-field FILE:ROW takes the row instead)".to_owned())
    };
    let mut key = Vec::new();
    if let &[place] = &places.key[..] {
        key = part(place)?;
    } else {
        for (number, &place) in places.key.iter().enumerate() {
            push_key(&mut key, &part(place)?, number);
        }
    }
    if !places.key.is_empty() {
        // guard: keys of Parquet are checked before they are copied
        crate::input::place::check_key(&key)?;
    }
    if !fields.has_attached() {
        return Ok(to_line(row, &key, None, text));
    }
    let value = places.value.and_then(|place| columns[place].number_or_bytes(at));
    let stamp = match places.stamp {
        Some(place) => Some(columns[place].field_value(at).ok_or("its stamp is null")?),
        None => None,
    };
    let number = places.number.and_then(|place| columns[place].field_value(at));
    let inside = places.inside.and_then(|place| columns[place].value_bytes(at));
    let url = places.url.and_then(|place| columns[place].number_or_bytes(at));
    let attached = fields.attached.take(value, stamp).and_then(|own| {
        let deciding = fields.attached.deciding.of_text(number, inside.as_deref(), url.as_deref())?;
        Ok(OwnAttached { deciding, ..own })
    });
    Ok(to_line(row, &key, Some(&attached.map_err(|error| error.to_string())?), text))
}

/// Returns the fingerprint in a row as `0x` and 16 hexadecimal digits.
fn fingerprint_of(column: &DecodedColumn, at: usize, fields: &record::Fields) -> Result<String, String> {
    let form = fields.fingerprint.unwrap_or_default();
    let found = match column.digits(at) {
        Some(digits) => form.parse_number(&digits),
        None => match column.bytes(at) {
            Some(written) => form.parse(&String::from_utf8_lossy(written)),
            None => Err("it is null, and a document needs a fingerprint".to_owned()),
        },
    };
    found.map(fingerprint::written).map_err(|why| format!("field {:?}: {why}", fields.text))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::arrow::arrow_writer::ArrowWriter;
    use parquet::data_type::ByteArrayType;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::input::parquet::kept::Writers;
    use crate::work::file::FileDigest;

    fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(300)).build();
        let file = fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn fields() -> record::Fields {
        record::Fields { id: "id".to_owned(), text: "text".to_owned(), features: false, ..Default::default() }
    }

    fn open(path: &Path) -> Result<(ParquetRows, ParquetFile), Problem> {
        ParquetRows::open(path, &fields(), 1000, &Arc::default())
    }

    fn strings(of: impl Iterator<Item = Option<String>>) -> ArrayRef {
        Arc::new(of.collect::<StringArray>())
    }

    #[test]
    fn rows_are_read_in_order_and_kept_rows_are_written_with_all_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let texts = strings((0..1000).map(|row| Some(format!("text {row}"))));
        let extra = strings((0..1000).map(|row| (row % 3 == 0).then(|| format!("extra {row}"))));
        let ids: ArrayRef = Arc::new((0..1000).map(|row| row - 5).collect::<Int64Array>());
        write(&path, vec![("text", texts), ("extra", extra), ("id", ids)]);

        let (mut rows, file) = open(&path).unwrap();
        let file = Arc::new(file);
        let mut kept = Writers::new(folder.path(), "kept", None);
        let mut number = 0_i64;
        while let Some((row, line)) = rows.next().unwrap() {
            let line = line.unwrap();
            assert_eq!(i64::try_from(row).unwrap(), number + 1);
            let LineParts { key, text, .. } = parts(&line, &fields()).unwrap();
            assert_eq!(std::str::from_utf8(key.unwrap()).unwrap(), (number - 5).to_string());
            assert_eq!(std::str::from_utf8(text).unwrap(), format!("text {number}"));
            if [0, 1, 299, 300, 777, 999].contains(&number) {
                kept.push(&file, &line, 0, None).unwrap();
            }
            number += 1;
        }
        assert_eq!(number, 1000);
        let [written] = kept.finish().unwrap().try_into().unwrap();
        assert_eq!(written.name, "kept.parquet");
        assert_eq!(FileDigest::read(&folder.path().join(&written.name)).unwrap(), written.digest);

        let output = fs::File::open(folder.path().join("kept.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(output).unwrap().build().unwrap();
        let mut seen = Vec::new();
        for batch in reader {
            let batch = batch.unwrap();
            assert_eq!(batch.num_columns(), 3);
            for row in 0..batch.num_rows() {
                let extra = batch.column(1).as_string::<i32>();
                let extra = (!extra.is_null(row)).then(|| extra.value(row).as_bytes().to_vec());
                seen.push((batch.column(2).as_primitive::<Int64Type>().value(row).to_string(), extra));
            }
        }
        let wanted = [0, 1, 299, 300, 777, 999].map(|row: i64| {
            ((row - 5).to_string(), (row % 3 == 0).then(|| format!("extra {row}").into_bytes()))
        });
        assert_eq!(seen, wanted);
    }

    #[test]
    fn row_with_a_null_key_or_a_long_text_is_bad_and_the_next_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let some = |text: &str| Some(text.to_owned());
        let ids = strings([some("a"), None, some("c"), some("d"), some("")].into_iter());
        let texts = strings([None, some("b"), Some("x".repeat(1001)), some("d"), some("e")].into_iter());
        write(&path, vec![("id", ids), ("text", texts)]);
        let (mut rows, _) = open(&path).unwrap();
        let mut said = Vec::new();
        while let Some((_, line)) = rows.next().unwrap() {
            said.push(line.map(|line| {
                let LineParts { key, text, .. } = parts(&line, &fields()).unwrap();
                [key.unwrap(), b"=", text].concat()
            }));
        }
        let wanted = [
            Ok(b"a=".to_vec()), // a null text is read as empty
            Err("its key is null (--id-field FILE:ROW takes the row instead)"),
            Err("a text of more than 1000 bytes"),
            Ok(b"d=d".to_vec()),
            Err("the key is empty"),
        ];
        assert_eq!(said, wanted.map(|line| line.map_err(str::to_owned)));
    }

    #[test]
    fn missing_columns_and_columns_of_another_type_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        write(&path, vec![("id", Arc::clone(&ids)), ("body", strings([Some(String::new())].into_iter()))]);
        let message = open(&path).err().unwrap().to_string();
        assert!(
            message.ends_with("no column \"text\" among \"id\", \"body\"; see --id-field and --text-field"),
            "{message}"
        );
        write(&path, vec![("id", Arc::clone(&ids)), ("text", ids)]);
        let message = open(&path).err().unwrap().to_string();
        assert!(
            message.ends_with("the column \"text\" holds Int64, where strings are expected"),
            "{message}"
        );
    }

    #[test]
    fn long_dictionary_value_is_not_copied_for_each_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let ids = strings((0..ROWS_AT_ONCE).map(|row| Some(row.to_string())));
        let texts = strings((0..ROWS_AT_ONCE).map(|_| Some("x".repeat(200_000))));
        write(&path, vec![("id", ids), ("text", texts)]);
        let (mut rows, _) = ParquetRows::open(&path, &fields(), 1 << 20, &Arc::default()).unwrap();
        assert_eq!(rows.next().unwrap().unwrap().1.unwrap().len(), HEAD_BYTES + 1 + 200_000);
        let text = &rows.batches.columns[rows.places.text[0]];
        let places: HashSet<_> = (0..ROWS_AT_ONCE).map(|row| text.bytes(row).unwrap().as_ptr()).collect();
        assert_eq!((rows.batches.rows, places.len()), (ROWS_AT_ONCE, 1));
    }

    #[test]
    fn columns_have_exactly_the_rows_of_their_row_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let column = || strings((0..50).map(|row| Some(format!("text {row}"))));
        write(&path, vec![("id", column()), ("text", column())]);
        let read = |stated: i64| {
            let (mut rows, _) = open(&path).unwrap();
            let metadata = &rows.batches.metadata;
            let group = metadata.row_group(0).clone().into_builder().set_num_rows(stated).build().unwrap();
            rows.batches.metadata = ParquetMetaData::new(metadata.file_metadata().clone(), vec![group]);
            let mut read = 0;
            while rows.next().map_err(|error| error.to_string())?.is_some() {
                read += 1;
            }
            Ok::<_, String>(read)
        };
        assert_eq!(read(50), Ok(50));
        for (stated, expected) in
            [(51, "fewer rows than its row group"), (49, "more rows than its row group")]
        {
            let message = read(stated).unwrap_err();
            assert!(message.ends_with(&format!("on after 0 rows: a column has {expected}")), "{message}");
        }
    }

    #[test]
    fn values_that_their_type_does_not_allow_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let read = |types: [&str; 2], id: Vec<u8>, text: Vec<u8>| {
            let [of_id, of_text] = types;
            let schema =
                format!("message root {{ required binary id {of_id}; optional binary text {of_text}; }}");
            let schema = Arc::new(parse_message_type(&schema).unwrap());
            let mut writer =
                SerializedFileWriter::new(fs::File::create(&path).unwrap(), schema, Arc::default()).unwrap();
            let mut group = writer.next_row_group().unwrap();
            for (value, levels) in [(id, None), (text, Some(&[1][..]))] {
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<ByteArrayType>().write_batch(&[value.into()], levels, None).unwrap();
                column.close().unwrap();
            }
            group.close().unwrap();
            writer.close().unwrap();
            let (mut rows, _) = open(&path).unwrap();
            let (_, line) = rows.next().map_err(|error| error.to_string())?.unwrap();
            let line = line.unwrap();
            let LineParts { key, text, .. } = parts(&line, &fields()).unwrap();
            Ok::<_, String>([key.unwrap(), b"=", text].concat())
        };
        let (string, decimal) = (["(UTF8)"; 2], ["(DECIMAL(70, 1))", ""]);
        assert_eq!(read(string, b"a".to_vec(), "\u{e9}".into()).unwrap(), "a=\u{e9}".as_bytes());
        assert_eq!(read(["(UTF8)", ""], b"a".to_vec(), b"\xff".to_vec()).unwrap(), b"a=\xff");
        let message = read(string, b"a".to_vec(), b"\xff".to_vec()).unwrap_err();
        assert!(message.ends_with("a string that is not UTF-8"), "{message}");
        assert_eq!(read(decimal, vec![0xff; 32], b"b".to_vec()).unwrap(), b"-0.1=b");
        let message = read(decimal, vec![0xff; 33], b"b".to_vec()).unwrap_err();
        assert!(message.ends_with("a decimal number of more than 32 bytes"), "{message}");
    }

    #[test]
    fn columns_with_the_same_name_or_encryption_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let column = || strings((0..3).map(|row| Some(format!("text {row}"))));
        write(&path, vec![("id", column()), ("text", column()), ("more", column()), ("more", column())]);
        let message = open(&path).err().unwrap().to_string();
        assert!(message.ends_with("two columns have the name \"more\"; rename one of them"), "{message}");

        write(&path, vec![("id", column()), ("text", column())]);
        let plain = fs::read(&path).unwrap();
        assert!(open(&path).is_ok());
        // Adds a field to the footer, the encryption algorithm, after the column orders, which are the last field.
        let (rest, tail) = plain.split_at(plain.len() - 8);
        let bytes = u32::from_le_bytes(*tail.first_chunk().unwrap());
        let (footer, end) = rest.split_at(rest.len() - 1);
        assert_eq!(end, [0]);
        let encryption = [0x1c, 0x1c, 0, 0, 0];
        let length = (bytes + encryption.len() as u32 - 1).to_le_bytes();
        fs::write(&path, [footer, &encryption[..], &length[..], b"PAR1"].concat()).unwrap();
        let message = open(&path).err().unwrap().to_string();
        assert!(message.contains("it is encrypted, which twindex does not decode"), "{message}");
    }

    #[test]
    fn damaged_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let column = || strings((0..50).map(|row| Some(format!("text {row}"))));
        write(&path, vec![("id", column()), ("text", column())]);
        let good = fs::read(&path).unwrap();
        let mut errors = 0;
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            fs::write(&path, if at % 2 == 0 { &bad } else { &good[..at] }).unwrap();
            let read = open(&path).and_then(|(mut rows, _)| {
                while rows.next()?.is_some() {}
                Ok(())
            });
            errors += usize::from(read.is_err());
        }
        assert!(errors > good.len() / 2, "{errors} of {}", good.len());
    }

    #[test]
    fn caught_panics_are_silent_and_others_are_printed() {
        const ALONE: &str = "TWINDEX_ALONE";
        static TOLD: AtomicU64 = AtomicU64::new(0);
        if std::env::var_os(ALONE).is_none() {
            // The panic hook is shared by all tests of a process, so this test needs a process of its own.
            let name = "input::parquet::columns::tests::caught_panics_are_silent_and_others_are_printed";
            let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
            let alone = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&alone.stdout);
            assert!(alone.status.success() && said.contains("1 passed"), "alone: {said}");
            return;
        }
        std::panic::set_hook(Box::new(|_| {
            TOLD.fetch_add(1, Ordering::Relaxed);
        }));
        let done = guarded(|| -> Result<(), String> { panic!("as arrow-rs does") });
        assert_eq!(done, Err("the Parquet reader failed: the file is damaged".to_owned()));
        assert_eq!(TOLD.load(Ordering::Relaxed), 0);
        assert_eq!(guarded(|| Ok(1)), Ok(1));
        assert!(catch_unwind(|| panic!("of ours")).is_err());
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn rows_are_not_copied_from_a_file_that_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let column = || strings((0..5).map(|row| Some(format!("text {row}"))));
        write(&path, vec![("id", column()), ("text", column())]);
        let (mut rows, file) = open(&path).unwrap();
        let (_, line) = rows.next().unwrap().unwrap();
        let mut kept = Writers::new(folder.path(), "kept", None);
        kept.push(&Arc::new(file), &line.unwrap(), 0, None).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"x").unwrap();
        let message = kept.finish().unwrap_err().to_string();
        assert!(message.contains("changed since it was read"), "{message}");
    }
}
