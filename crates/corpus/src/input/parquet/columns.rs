//! Parquet files: reads the requested columns. The module [`kept`](super::kept) copies kept rows.
//!
//! The files are decoded by arrow-rs. If a damaged file makes arrow-rs fail or panic, an error is returned. Before
//! arrow-rs is called, [`thrift`] detects damage that could abort the process.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, SortingColumn};
use parquet::schema::types::TypePtr;

use crate::input::columns::column::ColumnType;
use crate::input::columns::file::Stamp;
use crate::input::columns::rows::{Chosen, ColumnPlaces, RowBatches, Rows, choose};
use crate::input::columns::table::Column;
use crate::input::fields::record;
use crate::input::parquet::decoded::DecodedColumn;
use crate::input::parquet::thrift::{self, Checked};
use crate::input::place::Problem;

/// Maximum number of rows decoded at a time, and maximum size of these rows in bytes, estimated from the mean row size.
const ROWS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: i64 = 16 << 20;

/// The schema and sort order of a file. Kept rows of files with equal schema and sort order are written to one file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetColumns {
    pub(crate) root: TypePtr,
    /// The sort order of the rows; `None` if row groups have different orders.
    pub(crate) sorting: Option<Vec<SortingColumn>>,
    /// The leaf columns that contain the text. Their values are joined in this order.
    pub(crate) text: Vec<usize>,
}

impl PartialEq for ParquetColumns {
    /// Ignores the name of the root, which depends on the program that wrote the file, and the names of the text.
    fn eq(&self, other: &Self) -> bool {
        self.root.get_fields() == other.root.get_fields() && self.sorting == other.sorting
    }
}

impl ParquetColumns {
    /// Returns the schema and sort order of a file.
    fn of(metadata: &ParquetMetaData, text: Vec<usize>) -> Self {
        let mut orders = metadata.row_groups().iter().map(|group| group.sorting_columns());
        let first = orders.next().flatten();
        let sorting = first.filter(|first| orders.all(|other| other == Some(first))).cloned();
        Self { root: metadata.file_metadata().schema_descr().root_schema_ptr(), sorting, text }
    }
}

/// The rows of a Parquet file.
pub(crate) type ParquetRows = Rows<Batches>;

/// Decodes the rows of a file in batches.
pub(crate) struct Batches {
    file: Arc<Checked>,
    metadata: ParquetMetaData,
    columns: Vec<DecodedColumn>,
    /// Number of rows to decode next, and the maximum of this number.
    at_once: usize,
    at_most: usize,
    /// Number of row groups that were opened.
    groups: usize,
    /// Number of rows not yet decoded in the last opened row group.
    left: usize,
    /// Size of the file in bytes, and the number of rows in it, from its footer.
    bytes: u64,
    in_all: u64,
}

impl RowBatches for Batches {
    type Column = DecodedColumn;
    const FORMAT: &'static str = "Parquet";

    fn next(&mut self) -> Result<Option<usize>, String> {
        while self.left == 0 {
            let Some(group) = self.metadata.row_groups().get(self.groups) else { return Ok(None) };
            self.left = usize::try_from(group.num_rows()).map_err(|_| "a row group of fewer than no rows")?;
            for column in &mut self.columns {
                column.begin(&self.file, group)?;
            }
            self.groups += 1;
            let is_coded = self.columns.iter().any(DecodedColumn::is_prefix_coded);
            self.at_once = if is_coded { 1 } else { self.at_most };
        }
        let rows = self.left.min(self.at_once);
        self.left -= rows;
        for column in &mut self.columns {
            column.decode(rows)?;
            if self.left == 0 {
                column.end()?;
            }
        }
        let own: usize = self.columns.iter().map(DecodedColumn::own_bytes).sum();
        let fitting = BYTES_AT_ONCE as usize / (own / rows).max(1);
        // guard: rows whose decoded size the footer does not say are decoded a few at a time
        // without it: min(fitting) -> min(usize::MAX)
        self.at_once = (2 * self.at_once).min(fitting).clamp(1, self.at_most);
        Ok(Some(rows))
    }

    fn columns(&self) -> &[DecodedColumn] {
        &self.columns
    }

    fn bytes_before(&self, row: u64) -> u64 {
        (u128::from(self.bytes) * u128::from(row) / u128::from(self.in_all.max(1))) as u64
    }
}

/// Opens a file and finds the requested columns. Returns its columns, its stamp, and the leaf columns of the text, from
/// which kept rows are copied later.
///
/// # Errors
///
/// The file is not a Parquet file, or a requested column is missing or has an unsupported type.
pub(crate) fn open(
    path: &Path,
    fields: &record::Fields,
    row_bytes_max: usize,
    consumed: &Arc<AtomicU64>,
) -> Result<(ParquetRows, ParquetColumns, Stamp), Problem> {
    Rows::open(path, fields, row_bytes_max, consumed, |file, bytes| begin(file, bytes, fields, row_bytes_max))
}

/// Returns the number of rows to decode at a time: at most [`ROWS_AT_ONCE`], and about [`BYTES_AT_ONCE`] bytes. The row
/// size is the largest mean size of a row group, as given in the footer.
pub(crate) fn rows_at_once(metadata: &ParquetMetaData) -> usize {
    let groups = metadata.row_groups().iter();
    let widest =
        groups.map(|group| group.total_byte_size().max(0) / group.num_rows().max(1)).max().unwrap_or(0);
    usize::try_from(BYTES_AT_ONCE / widest.max(1)).unwrap_or(ROWS_AT_ONCE).clamp(1, ROWS_AT_ONCE)
}
/// Checks the footer of a file, and reads the metadata in it.
pub(crate) fn metadata_of(file: &fs::File) -> Result<ParquetMetaData, String> {
    thrift::check_footer(file)?;
    ParquetMetaDataReader::new().parse_and_finish(file).map_err(|error| error.to_string())
}

/// Returns the columns of a schema. `leaves` is the number of leaf columns before them.
fn columns_of(fields: &[TypePtr], leaves: &mut usize) -> Vec<Column> {
    let column = |field: &TypePtr| {
        let leaf = *leaves;
        let inner = if field.is_group() { columns_of(field.get_fields(), leaves) } else { Vec::new() };
        *leaves += usize::from(!field.is_group());
        Column { name: field.name().to_owned(), of_type: ColumnType::of(field), inner, leaf }
    };
    fields.iter().map(column).collect()
}

fn begin(
    file: fs::File,
    bytes: u64,
    fields: &record::Fields,
    row_bytes_max: usize,
) -> Result<(Batches, ColumnPlaces, ParquetColumns), String> {
    let metadata =
        metadata_of(&file).map_err(|error| format!("{error} (is it a whole Parquet file? copy it again)"))?;
    let stored = metadata.file_metadata().schema_descr();
    let Chosen { leaves, places, text } =
        choose(&columns_of(stored.root_schema().get_fields(), &mut 0), fields)?;
    let columns = ParquetColumns::of(&metadata, text);
    let in_all = u64::try_from(metadata.file_metadata().num_rows()).map_err(|_| "fewer than no rows")?;
    let file = Arc::new(Checked::new(file, row_bytes_max).map_err(|error| error.to_string())?);
    let decoded =
        leaves.iter().map(|&leaf| DecodedColumn::new(leaf, stored.columns()[leaf].as_ref())).collect();
    let at_most = rows_at_once(&metadata);
    let batches = Batches {
        file,
        metadata,
        columns: decoded,
        at_once: at_most,
        at_most,
        groups: 0,
        left: 0,
        bytes,
        in_all,
    };
    Ok((batches, places, columns))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
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
    use crate::input::columns::column::ColumnValues;
    use crate::input::columns::rows::{HEAD_BYTES, LineParts, parts};
    use crate::input::headers::{ColumnFile, FileColumns};
    use crate::input::kept::rows::Writers;
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

    fn open(path: &Path) -> Result<(ParquetRows, ColumnFile), Problem> {
        let (rows, columns, stamp) = super::open(path, &fields(), 1000, &Arc::default())?;
        let file =
            ColumnFile { path: Arc::clone(rows.name()), stamp, columns: FileColumns::Parquet(columns) };
        Ok((rows, file))
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
        let (mut rows, ..) = super::open(&path, &fields(), 1 << 20, &Arc::default()).unwrap();
        assert_eq!(rows.next().unwrap().unwrap().1.unwrap().len(), HEAD_BYTES + 1 + 200_000);
        let text = &rows.batches.columns[rows.places.text[0]];
        let places: HashSet<_> = (0..ROWS_AT_ONCE).map(|row| text.bytes(row).unwrap().as_ptr()).collect();
        assert_eq!((rows.in_batch, places.len()), (ROWS_AT_ONCE, 1));
    }

    #[test]
    fn decoded_rows_of_a_prefix_coded_column_are_within_their_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.parquet");
        let long = "x".repeat(1 << 20);
        let texts: Vec<String> = (0..200).map(|row| format!("{long}{row}")).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", strings((0..200).map(|row| Some(row.to_string())))),
            ("text", strings(texts.iter().cloned().map(Some))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(parquet::basic::Encoding::DELTA_BYTE_ARRAY)
            .build();
        let mut writer =
            ArrowWriter::try_new(fs::File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let (mut rows, ..) = super::open(&path, &fields(), 2 << 20, &Arc::default()).unwrap();
        let mut read = 0;
        while let Some((_, line)) = rows.next().unwrap() {
            assert!(line.unwrap().ends_with(texts[read].as_bytes()), "{read}");
            assert!(rows.in_batch <= 16, "{read}: {}", rows.in_batch);
            read += 1;
        }
        assert_eq!(read, 200);
        assert!(rows_at_once(&rows.batches.metadata) > 100, "the footer says little of it");
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
    fn rows_of_many_files_and_groups_are_copied_by_any_number_of_threads_alike() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = Vec::new();
        // More files than are copied together, most of several groups; some have no row to copy.
        let files: Vec<_> = (0..150_usize)
            .map(|number| {
                let path = folder.path().join(format!("{number}.parquet"));
                let rows = || 0..number * 7;
                let extra = strings(rows().map(|row| (row % 3 > 0).then(|| format!("extra {row}"))));
                let texts = strings(rows().map(|row| Some(format!("text {row}"))));
                let ids = strings(rows().map(|row| Some(format!("{number}-{row}"))));
                write(&path, vec![("extra", extra), ("text", texts), ("id", ids)]);
                path
            })
            .collect();
        let mut copies = Vec::new();
        for threads in [1, 4] {
            let mut kept = Writers::new(folder.path(), if threads == 1 { "one" } else { "four" }, None);
            wanted.clear();
            for (number, path) in files.iter().enumerate() {
                let (mut rows, file) = open(path).unwrap();
                let file = Arc::new(file);
                kept.make(&file).unwrap();
                while let Some((row, line)) = rows.next().unwrap() {
                    if row % 3 == 0 && number % 4 > 0 {
                        kept.push(&file, &line.unwrap(), 0, None).unwrap();
                        wanted.push(format!("{number}-{}", row - 1));
                    }
                }
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let [written] = pool.install(|| kept.finish()).unwrap().try_into().unwrap();
            copies.push(fs::read(folder.path().join(written.name)).unwrap());
        }
        assert!(copies[0] == copies[1]);
        let output = fs::File::open(folder.path().join("one.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(output).unwrap().build().unwrap();
        let mut seen = Vec::new();
        for batch in reader {
            let batch = batch.unwrap();
            seen.extend(batch.column(2).as_string::<i32>().iter().map(|id| id.unwrap().to_owned()));
        }
        assert_eq!(seen, wanted);
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
