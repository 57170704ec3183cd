//! Tests Arrow IPC files: the same documents as from the same rows in Parquet, kept rows with their columns and
//! metadata, damaged files, and folders as Hugging Face writes them.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, StringBuilder};
use arrow_array::types::{Float16Type, Int8Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal64Array,
    Decimal128Array, Decimal256Array, DictionaryArray, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, NullArray, PrimitiveArray, RecordBatch,
    StringArray, StringViewArray, StructArray, Time32MillisecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, i256};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use twindex_corpus::input::{Batch, Buffers, Documents, FingerprintForm, KEPT, KeptBlock, KeptWriter};
use twindex_corpus::{Also, Dedup, Ids, InputOptions, Keep, Passages};

use crate::corpora::Random;

const ROWS: usize = 40;

fn text(row: usize) -> String {
    // Every fourth text is a copy of the one before it.
    let row = row - usize::from(row % 4 == 3);
    (0..30).map(|at| format!("w{}", (row * 7919 + at * at) % 5_003)).collect::<Vec<_>>().join(" ")
}

/// Returns a column of a value per row.
fn every<C: FromIterator<Option<T>>, T>(of: impl Fn(usize) -> T) -> C {
    (0..ROWS).map(|row| Some(of(row))).collect()
}

/// Returns a column in which every seventh value is null.
fn some<C: FromIterator<Option<T>> + Array + 'static, T>(of: impl Fn(u8) -> T) -> ArrayRef {
    Arc::new((0..ROWS as u8).map(|row| (row % 7 != 6).then(|| of(row))).collect::<C>())
}

/// Returns a column of strings of any type.
fn texts<C: FromIterator<Option<String>> + Array + 'static>() -> ArrayRef {
    Arc::new((0..ROWS).map(|row| (row % 13 != 12).then(|| text(row))).collect::<C>())
}

fn number(row: usize) -> i64 {
    i64::try_from(row).unwrap() * 37 - 500
}

/// Returns columns of all kinds.
fn columns() -> Vec<(&'static str, ArrayRef)> {
    let bytes = |row: usize| text(row).into_bytes();
    let dictionary: Vec<Option<String>> =
        (0..ROWS).map(|row| (row % 13 != 12).then(|| text(row / 4 * 4))).collect();
    let dictionary: DictionaryArray<Int8Type> = dictionary.iter().map(Option::as_deref).collect();
    let mut all: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(every::<StringArray, _>(|row| format!("k{row}")))),
        ("text", texts::<StringArray>()),
        ("large", texts::<LargeStringArray>()),
        ("view", texts::<StringViewArray>()),
        ("bytes", Arc::new(every::<BinaryArray, _>(bytes))),
        ("large_bytes", Arc::new(every::<LargeBinaryArray, _>(bytes))),
        ("bytes_view", Arc::new(every::<BinaryViewArray, _>(bytes))),
        ("dictionary", Arc::new(dictionary)),
        ("hex", some::<StringArray, _>(|row| format!("0x{row:016x}"))),
        ("null", Arc::new(NullArray::new(ROWS))),
        ("note", some::<StringViewArray, _>(|row| format!("a view of row {row} only"))),
    ];
    all.extend(numbers());
    all.extend(times());
    all.extend(nested());
    all
}

fn numbers() -> Vec<(&'static str, ArrayRef)> {
    let wide = |row| i256::from_i128(number(row).into()) << 150;
    let half = |row| half::f16::from_f32(row as f32 / 4.0);
    let decimal64 = every::<Decimal64Array, _>(number).with_precision_and_scale(12, 3);
    let decimal128 =
        every::<Decimal128Array, _>(|row| i128::from(number(row)) << 70).with_precision_and_scale(30, 2);
    let decimal256 = every::<Decimal256Array, _>(wide).with_precision_and_scale(76, 1);
    let mut fixed = FixedSizeBinaryBuilder::new(8);
    (0..ROWS).try_for_each(|row| fixed.append_value(number(row).to_be_bytes())).unwrap();
    vec![
        ("boolean", some::<BooleanArray, _>(|row| row % 2 == 0)),
        ("int8", some::<Int8Array, _>(|row| row.cast_signed() - 20)),
        ("int16", some::<Int16Array, _>(|row| i16::from(row) - 20)),
        ("int32", some::<Int32Array, _>(|row| i32::from(row) - 20)),
        ("int64", some::<Int64Array, _>(|row| number(row.into()))),
        ("uint8", some::<UInt8Array, _>(|row| u8::MAX - row)),
        ("uint16", some::<UInt16Array, _>(|row| u16::MAX - u16::from(row))),
        ("uint32", some::<UInt32Array, _>(|row| u32::MAX - u32::from(row))),
        ("uint64", some::<UInt64Array, _>(|row| u64::MAX - u64::from(row))),
        ("float16", Arc::new(every::<PrimitiveArray<Float16Type>, _>(half))),
        ("float32", some::<Float32Array, _>(|row| f32::from(row) / 3.0)),
        ("float64", some::<Float64Array, _>(|row| f64::from(row) / 3.0)),
        ("decimal64", Arc::new(decimal64.unwrap())),
        ("decimal128", Arc::new(decimal128.unwrap())),
        ("decimal256", Arc::new(decimal256.unwrap())),
        ("fixed", Arc::new(fixed.finish())),
    ]
}

fn times() -> Vec<(&'static str, ArrayRef)> {
    let micros = every::<TimestampMicrosecondArray, _>(|row| number(row) * 86_399_999_999);
    let nanos = every::<TimestampNanosecondArray, _>(|row| number(row) * 86_399_999_999_999);
    vec![
        ("date", some::<Date32Array, _>(|row| i32::from(row) * 500 - 9_000)),
        ("seconds", Arc::new(every::<TimestampSecondArray, _>(|row| number(row) * 86_399))),
        ("millis", Arc::new(every::<TimestampMillisecondArray, _>(|row| number(row) * 86_399_999))),
        ("micros", Arc::new(micros.clone())),
        ("zoned", Arc::new(micros.with_timezone("+02:00"))),
        ("nanos", Arc::new(nanos)),
        ("time32", some::<Time32MillisecondArray, _>(i32::from)),
        ("time64", some::<Time64NanosecondArray, _>(i64::from)),
    ]
}

fn nested() -> [(&'static str, ArrayRef); 2] {
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in 0..ROWS {
        (0..row % 3).for_each(|tag| tags.values().append_value(format!("tag {tag} of {row}")));
        tags.append(row % 5 != 4);
    }
    let fields = vec![Field::new("body", DataType::Utf8, true), Field::new("n", DataType::Int64, false)];
    let arrays = vec![texts::<StringArray>(), Arc::new(every::<Int64Array, _>(number)) as ArrayRef];
    let is_struct = NullBuffer::from((0..ROWS).map(|row| row % 11 != 10).collect::<Vec<_>>());
    let meta = StructArray::new(fields.into(), arrays, Some(is_struct));
    [("tags", Arc::new(tags.finish())), ("meta", Arc::new(meta))]
}

/// Returns all columns as two batches with the same dictionary.
fn batches() -> [RecordBatch; 2] {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns()
        .into_iter()
        .map(|(name, array)| {
            let field = Field::new(name, array.data_type().clone(), true);
            let of_field = HashMap::from([("unit".to_owned(), name.to_owned())]);
            (if name == "int8" { field.with_metadata(of_field) } else { field }, array)
        })
        .unzip();
    let metadata = HashMap::from([("huggingface".to_owned(), "{\"info\": {}}".to_owned())]);
    let all = RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, metadata)), arrays).unwrap();
    [all.slice(0, 25), all.slice(25, ROWS - 25)]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    File,
    Stream,
}

fn write(path: &Path, batches: &[RecordBatch], form: Form, compression: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let (file, schema) = (File::create(path).unwrap(), batches[0].schema());
    match form {
        Form::File => {
            let mut writer = FileWriter::try_new_with_options(file, &schema, options).unwrap();
            writer.write_metadata("of the file", "kept");
            batches.iter().try_for_each(|batch| writer.write(batch)).unwrap();
            writer.finish().unwrap();
        }
        Form::Stream => {
            let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
            batches.iter().try_for_each(|batch| writer.write(batch)).unwrap();
            writer.finish().unwrap();
        }
    }
}

/// Writes a file of these many rows, in the stream format if its name ends in `.arrow`.
pub(crate) fn write_rows(path: &Path, rows: usize) {
    let ids: ArrayRef = Arc::new((0..rows).map(|row| Some(format!("k{row}"))).collect::<StringArray>());
    let texts: ArrayRef = Arc::new((0..rows).map(|row| Some(text(row))).collect::<StringArray>());
    let all = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let parts: Vec<RecordBatch> = (0..rows).step_by(50).map(|at| all.slice(at, 50.min(rows - at))).collect();
    write(
        path,
        &parts,
        if path.extension().is_some_and(|suffix| suffix == "arrow") { Form::Stream } else { Form::File },
        None,
    );
}

fn read(path: &Path, form: Form) -> RecordBatch {
    let file = File::open(path).unwrap();
    let (schema, batches): (_, Vec<RecordBatch>) = match form {
        Form::File => {
            let reader = FileReader::try_new(file, None).unwrap();
            assert_eq!(reader.custom_metadata()["of the file"], "kept");
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
        Form::Stream => {
            let reader = StreamReader::try_new(file, None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
    };
    concat_batches(&schema, &batches).unwrap()
}

/// Returns the key, the text and the other values of each document, or the first error.
fn documents(path: &Path, options: &InputOptions) -> Result<Vec<String>, String> {
    let said = |error: anyhow::Error| {
        let message = format!("{error:#}").replace(path.to_str().unwrap(), "PATH");
        message.replace("read Parquet", "read FORMAT").replace("read Arrow", "read FORMAT")
    };
    let mut documents = Documents::open(&[path.to_owned()], options).map_err(said)?;
    let (mut batch, mut buffers, mut found) = (Batch::default(), Buffers::default(), Vec::new());
    loop {
        documents.next_batch(&mut batch, 1 << 20);
        if batch.is_over() {
            return Ok(found);
        }
        let parser = documents.parser();
        let seen = batch.whole().read(parser, &mut buffers, |record| {
            let (key, attached) = (String::from_utf8_lossy(record.key), record.attached(parser)?);
            found.push(format!("{key}: {:?}, {attached:?}", record.content));
            Ok(())
        });
        documents.account(seen.unwrap()).map_err(said)?;
        batch.take_failure().map_or(Ok(()), |failure| Err(said(failure)))?;
    }
}

/// Sets the name of a field in the options.
type NameField = fn(&mut InputOptions, &str);

#[test]
fn columns_of_every_kind_are_read_as_from_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let [parquet, file, stream] =
        ["in.parquet", "in.feather", "in.arrows"].map(|name| folder.path().join(name));
    let batches = batches();
    let mut writer =
        ArrowWriter::try_new(File::create(&parquet).unwrap(), batches[0].schema(), None).unwrap();
    batches.iter().try_for_each(|batch| writer.write(batch)).unwrap();
    writer.close().unwrap();
    write(&file, &batches, Form::File, Some(CompressionType::LZ4_FRAME));
    write(&stream, &batches, Form::Stream, None);

    let set: [(&str, NameField); 7] = [
        ("id", |options, name| name.clone_into(&mut options.id_field)),
        ("text", |options, name| name.clone_into(&mut options.text_field)),
        ("value", |options, name| options.attached.value = Some(name.to_owned())),
        ("stamp", |options, name| options.attached.stamp = Some(name.to_owned())),
        ("number", |options, name| options.attached.deciding.keep = vec![Keep::Max(name.to_owned())]),
        ("inside", |options, name| options.attached.deciding.inside = Some(name.to_owned())),
        ("url", |options, name| options.attached.deciding.url = Some(name.to_owned())),
    ];
    let mut ways: Vec<(String, InputOptions)> = Vec::new();
    let names = columns().into_iter().map(|(name, _)| name);
    // Parquet has no type for times in seconds.
    for name in names.filter(|name| *name != "seconds").chain([
        "meta.body",
        "/meta/n",
        "meta.none",
        "none",
        "text,meta.body,view",
    ]) {
        for (role, set) in set {
            let ids = if role == "id" { Ids::Field } else { Ids::FieldOrLine };
            let mut options = InputOptions { skip_bad: u64::MAX, ids, ..InputOptions::default() };
            set(&mut options, name);
            ways.push((format!("{role} {name}"), options));
        }
        for form in [FingerprintForm::Hex, FingerprintForm::Decimal, FingerprintForm::Bytes] {
            let options = InputOptions {
                skip_bad: u64::MAX,
                text_field: name.to_owned(),
                fingerprint: Some(form),
                ..InputOptions::default()
            };
            ways.push((format!("{form:?} {name}"), options));
        }
    }
    let (mut read, mut refused) = (0, BTreeSet::new());
    for (way, options) in ways {
        let expected = documents(&parquet, &options);
        for path in [&file, &stream] {
            assert!(documents(path, &options) == expected, "{way}, {}", path.display());
        }
        match expected {
            Ok(found) => read += usize::from(!found.is_empty()),
            Err(error) => _ = refused.insert(error),
        }
    }
    assert!(read > 100, "{read}");
    assert!(refused.iter().any(|error| error.contains("holds List, where strings")), "{refused:#?}");
    let options = InputOptions { id_field: "seconds".to_owned(), ..InputOptions::default() };
    assert!(documents(&file, &options).unwrap()[0].starts_with("1968-08-19T00:08:20: "));
}

/// Deduplicates files with these threads, and returns the names and contents of the results that begin with `stem`.
fn dedup(paths: &[PathBuf], out: &Path, threads: usize, stem: &str) -> Vec<(String, Vec<u8>)> {
    let mut job = Dedup::new(paths, out);
    job.results.also = vec![Also::Annotated];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| job.run()).unwrap();
    let mut found: Vec<_> = fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap_or_default())
        })
        .filter(|(name, _)| name.starts_with(stem))
        .collect();
    found.sort();
    found
}

#[test]
fn kept_rows_have_all_columns_metadata_and_the_format_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    for (form, compression) in [
        (Form::File, None),
        (Form::File, Some(CompressionType::ZSTD)),
        (Form::Stream, None),
        (Form::Stream, Some(CompressionType::LZ4_FRAME)),
    ] {
        let name = format!("{form:?}{}", compression.is_some());
        // A shard in two batches, and one in a batch for each row with the same dictionary.
        let shards = ["a.arrow", "b.arrow"].map(|shard| folder.path().join(format!("{name}-{shard}")));
        let [first, second] = batches();
        write(&shards[0], &[first.clone(), second.clone()], form, compression);
        let rows: Vec<RecordBatch> = (0..second.num_rows()).map(|row| second.slice(row, 1)).collect();
        write(&shards[1], &rows, form, compression);
        let out = folder.path().join(&name);
        let results = dedup(&shards, &out, 1, "");
        for threads in [2, 3] {
            let again = dedup(&shards, &folder.path().join(format!("{name}-{threads}")), threads, "kept");
            assert_eq!(again.len(), 1);
            assert!(results.contains(&again[0]), "{name}, {threads} threads");
        }
        let [before, kept] = [&shards[0], &out.join("kept.arrow")].map(|path| read(path, form));
        let annotated = read(&out.join("annotated.arrow"), form);
        let is_kept =
            annotated.column_by_name("kept").unwrap().as_any().downcast_ref::<BooleanArray>().unwrap();
        let all = concat_batches(&before.schema(), [&before, &second]).unwrap();
        let expected = filter_record_batch(&all, is_kept).unwrap();
        // All rows of the second shard are copies.
        assert!(
            (25..ROWS).contains(&kept.num_rows()) && is_kept.values().slice(ROWS, 15).count_set_bits() == 0
        );
        assert_eq!(kept.schema(), before.schema());
        assert_eq!(kept, expected, "{name}");
        let bytes = fs::read(out.join("kept.arrow")).unwrap();
        let has = |text: &str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
        // No text of a removed row is left, except in the dictionary.
        assert!(
            compression.is_some()
                || ["tag 0 of ", "a view of row "]
                    .iter()
                    .all(|text| has(&format!("{text}37")) && !has(&format!("{text}31"))),
            "{name}"
        );

        assert_eq!(annotated.num_rows(), ROWS + second.num_rows());
        let names: Vec<String> = annotated.schema().fields()[before.num_columns()..]
            .iter()
            .map(|field| field.name().clone())
            .collect();
        assert_eq!(names, ["cluster_id", "cluster_size", "kept", "score", "near_key"]);
        let near = annotated.column_by_name("near_key").unwrap();
        assert_eq!(near.as_any().downcast_ref::<StringArray>().unwrap().value(3), "k2");
        let projected: Vec<usize> = (0..before.num_columns()).collect();
        assert_eq!(annotated.project(&projected).unwrap().columns(), all.columns());
    }
}

#[test]
fn files_with_other_dictionaries_are_kept_apart_only_in_the_file_format() {
    let folder = tempfile::tempdir().unwrap();
    let shard = |words: [&str; 3]| {
        let kind: DictionaryArray<Int8Type> = ["x", words[2]].into_iter().collect();
        let ids = StringArray::from_iter_values(words[..2].iter());
        let texts = StringArray::from_iter_values(words[..2].iter().map(|word| format!("{word} ").repeat(9)));
        RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as ArrayRef),
            ("text", Arc::new(texts)),
            ("kind", Arc::new(kind)),
        ])
        .unwrap()
    };
    for (form, names) in
        [(Form::File, &["kept-2.arrow", "kept.arrow"][..]), (Form::Stream, &["kept.arrow"][..])]
    {
        let paths = ["a", "b", "c"].map(|name| folder.path().join(format!("{form:?}-{name}.arrow")));
        for (path, words) in paths.iter().zip([["a", "b", "y"], ["c", "d", "z"], ["e", "f", "y"]]) {
            write(path, &[shard(words)], form, None);
        }
        let out = folder.path().join(format!("{form:?}"));
        let found: Vec<String> = dedup(&paths, &out, 2, "kept").into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, names);
        let rows = |name: &str| read(&out.join(name), form).num_rows();
        assert_eq!(names.iter().map(|name| rows(name)).sum::<usize>(), 6);
    }
}

#[test]
fn spans_are_removed_from_texts_of_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let text = |row: usize| {
        let own = |word: &str| (0..30).map(|at| format!("{word}{row}x{at}")).collect::<Vec<_>>().join(" ");
        let shared = (0..40).map(|at| format!("shared{at}")).collect::<Vec<_>>().join(" ");
        format!("{} {shared} {}", own("a"), own("b"))
    };
    let texts: Vec<Option<String>> = (0..4).map(|row| (row != 2).then(|| text(row))).collect();
    let plain: StringArray = texts.iter().map(Option::as_deref).collect();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(plain.clone()),
        Arc::new(texts.iter().map(Option::as_deref).collect::<LargeStringArray>()),
        Arc::new(texts.iter().map(Option::as_deref).collect::<StringViewArray>()),
        Arc::new(texts.iter().map(|text| text.as_ref().map(String::as_bytes)).collect::<BinaryArray>()),
        Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int8Type>>()),
    ];
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values(["a", "b", "c", "d"]));
    let structs = |array: ArrayRef| -> ArrayRef {
        let field = Arc::new(Field::new("body", array.data_type().clone(), true));
        // The third struct is null, but its text is not.
        let nulls = NullBuffer::from(vec![true, true, false, true]);
        Arc::new(StructArray::new(vec![field].into(), vec![array], Some(nulls)))
    };
    let full: ArrayRef = Arc::new(StringArray::from_iter_values((0..4).map(text)));
    let mut lines = Vec::new();
    for (number, array) in arrays.into_iter().map(Some).chain([None]).enumerate() {
        let (name, column) = match array {
            Some(array) => ("text", array),
            None => ("meta", structs(Arc::clone(&full))),
        };
        let path = folder.path().join(format!("{number}.arrow"));
        let title: ArrayRef = Arc::new(StringArray::from(vec![Some("t"), None, Some("u"), Some("v")]));
        let columns = [("id", Arc::clone(&ids)), ("title", title), (name, column)];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
        write(&path, &[batch.unwrap()], Form::File, None);
        let out = folder.path().join(format!("{number}"));
        let mut job = Passages::new([&path], &out);
        job.input.text_field = if name == "meta" { "title,meta.body" } else { "title,text" }.to_owned();
        (job.cut, job.min_words) = (true, Some(20));
        job.run().unwrap();
        let options = InputOptions { text_field: job.input.text_field.clone(), ..InputOptions::default() };
        lines.push(documents(&out.join("kept.arrow"), &options).unwrap());
    }
    assert!(lines[0][0].contains("shared7") && lines[0][0].contains("b0x7"), "{}", lines[0][0]);
    assert!(!lines[0][1].contains("shared7") && lines[0][1].contains("b1x7"), "{}", lines[0][1]);
    for other in &lines[1..] {
        assert_eq!(*other, lines[0]);
    }
}

/// Reads all documents of a file and copies their rows. Returns the first error.
fn read_and_copy(path: &Path, out: &Path, record_bytes_max: usize) -> Result<(), String> {
    let _ = fs::remove_dir_all(out);
    fs::create_dir(out).unwrap();
    let options = InputOptions { record_bytes_max, ..InputOptions::default() };
    let copy = || -> anyhow::Result<()> {
        let mut documents = Documents::open(&[path.to_owned()], &options)?;
        let mut kept = KeptWriter::new(out, documents.parser().headers().clone(), KEPT, None);
        let (mut batch, mut buffers) = (Batch::default(), Buffers::default());
        loop {
            documents.next_batch(&mut batch, 1 << 20);
            if batch.is_over() {
                return kept.finish().map(drop);
            }
            let (parser, mut block) = (documents.parser(), KeptBlock::default());
            let seen = batch.whole().read(parser, &mut buffers, |record| {
                block.push(0, record.form(), &record.line(parser)?, record.ending(), None);
                Ok(())
            })?;
            documents.account(seen)?;
            kept.write(&block)?;
            batch.take_failure().map_or(Ok(()), Err)?;
        }
    };
    copy().map_err(|error| format!("{error:#}"))
}

#[test]
fn damaged_files_are_errors_that_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("in.arrow"), folder.path().join("out"));
    let mut random = Random(5);
    for (form, compression) in [
        (Form::File, None),
        (Form::Stream, Some(CompressionType::ZSTD)),
        (Form::File, Some(CompressionType::LZ4_FRAME)),
        (Form::Stream, None),
    ] {
        write(&path, &batches(), form, compression);
        let sound = fs::read(&path).unwrap();
        read_and_copy(&path, &out, 1 << 20).unwrap();
        let (mut errors, mut begun) = (0, 0);
        for _ in 0..500 {
            let mut bytes = sound.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                match random.below(5) {
                    0 => bytes[at] = 0xff,
                    1 => bytes[at] = random.below(256) as u8,
                    2 => bytes[at] ^= 1 << random.below(8),
                    3 => bytes[at] = bytes[at].wrapping_add(1),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            fs::write(&path, bytes).unwrap();
            if let Err(error) = read_and_copy(&path, &out, 1 << 20) {
                assert!(error.contains("in.arrow"), "{error}");
                errors += 1;
                begun += usize::from(error.contains("after ") || error.contains("copied"));
            }
        }
        assert!(errors > 50 && begun > 0, "{form:?}: {errors} errors, {begun} after the first row");
    }
}

#[test]
fn lengths_that_a_file_does_not_have_are_refused_before_memory_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("in.arrow"), folder.path().join("out"));
    let said = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        read_and_copy(&path, &out, 1 << 20).unwrap_err()
    };
    let hint = "(is it a whole Arrow IPC file? copy it again)";
    for (bytes, wanted) in [
        (&b"FEA1\0\0\0\0"[..], "it is Feather of version 1"),
        (b"ARROW1\0\0\0\0\0\0ARROW1", hint),
        (
            b"ARROW1\0\0\xff\xff\xff\x7fARROW1",
            "its end names a footer of 2147483647 bytes, and the file has 18",
        ),
        (b"ARROW1\0\0 not the end of one", "it does not end as an Arrow file does"),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\x7f",
            "the metadata of a message has 2147483647 bytes, and the file 0",
        ),
        (b"{\"id\":1}", hint),
        (b"\xff\xff\xff\xff", hint),
        (b"", "it has no schema"),
    ] {
        let said = said(bytes);
        assert!(said.contains(wanted) && said.contains("in.arrow: cannot read Arrow: "), "{said}");
    }
    write(&path, &batches(), Form::Stream, Some(CompressionType::ZSTD));
    let sound = fs::read(&path).unwrap();
    // A buffer that has a terabyte after decompression, and one of a length that no memory has.
    for length in [1_u64 << 40, u64::MAX >> 1] {
        let zstd = memchr::memmem::find(&sound, b"\x28\xb5\x2f\xfd").unwrap();
        let bytes = [&sound[..zstd - 8], &length.to_le_bytes(), &sound[zstd..]].concat();
        let said = said(&bytes);
        assert!(said.contains("once decompressed, more than the limit of"), "{said}");
    }
    // A buffer that is moved over all others.
    write(&path, &batches(), Form::Stream, None);
    let sound = fs::read(&path).unwrap();
    let schema_bytes = 8 + u32::from_le_bytes(*sound[4..].first_chunk().unwrap()) as usize;
    let mut at = schema_bytes;
    let (buffers, body) = loop {
        let length = u32::from_le_bytes(*sound[at + 4..].first_chunk().unwrap()) as usize;
        let message = arrow_ipc::root_as_message(&sound[at + 8..at + 8 + length]).unwrap();
        if let Some(batch) = message.header_as_record_batch() {
            let buffers = batch.buffers().unwrap().bytes().as_ptr().addr() - sound.as_ptr().addr();
            break (buffers, message.bodyLength());
        }
        at += 8 + length + usize::try_from(message.bodyLength()).unwrap();
    };
    let mut bytes = sound.clone();
    // The values of the texts are the sixth buffer: both columns have validity, offsets and values.
    bytes[buffers + 5 * 16..buffers + 6 * 16]
        .copy_from_slice(&[0_i64.to_le_bytes(), body.to_le_bytes()].concat());
    let message = said(&bytes);
    assert!(
        message.contains("its buffers have") && message.contains(&format!("and its body {body}")),
        "{message}"
    );
    // A footer that names a dictionary as a batch.
    write(&path, &batches(), Form::File, None);
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len() - 10;
    let start = end - u32::from_le_bytes(*bytes[end..].first_chunk().unwrap()) as usize;
    let footer = arrow_ipc::root_as_footer(&bytes[start..end]).unwrap();
    let (dictionary, batch) =
        (footer.dictionaries().unwrap().get(0).offset(), footer.recordBatches().unwrap());
    let place = batch.bytes().as_ptr().addr() - bytes.as_ptr().addr();
    bytes[place..place + 8].copy_from_slice(&dictionary.to_le_bytes());
    let message = said(&bytes);
    assert!(
        message.contains(&format!("its footer has a batch at offset {dictionary}, where there is none")),
        "{message}"
    );

    let two = [&sound[..], &sound].concat();
    let message = said(&two);
    assert!(message.contains(&format!("{} bytes follow its end", sound.len())), "{message}");
    let packed = folder.path().join("in.arrow.zst");
    fs::write(&packed, zstd::encode_all(&sound[..], 1).unwrap()).unwrap();
    let message = documents(&packed, &InputOptions::default()).unwrap_err();
    assert!(message.contains("Arrow is read in parts, so not out of a packed file; unpack it"), "{message}");
}

#[test]
fn batches_and_dictionaries_above_their_limit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("in.arrow"), folder.path().join("out"));
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values(["a", "b"]));
    let long: ArrayRef =
        Arc::new(StringArray::from_iter_values(["x".repeat(17 << 20), "y".repeat(17 << 20)]));
    let short: ArrayRef = Arc::new(StringArray::from_iter_values(["x", "y"]));
    let dictionary = |value: &str| -> ArrayRef {
        Arc::new(
            [value.repeat(17 << 20), "b".to_owned()]
                .iter()
                .map(|value| Some(&**value))
                .collect::<DictionaryArray<Int8Type>>(),
        )
    };
    let said = |text: &ArrayRef, more: [ArrayRef; 2], record_bytes_max| {
        let [first, second] = more;
        let columns = [("id", Arc::clone(&ids)), ("text", Arc::clone(text)), ("a", first), ("b", second)];
        write(&path, &[RecordBatch::try_from_iter(columns).unwrap()], Form::File, None);
        read_and_copy(&path, &out, record_bytes_max)
    };
    let plain = || [Arc::clone(&short), Arc::clone(&short)];
    let error = said(&long, plain(), 1000).unwrap_err();
    assert!(
        error.contains("the body of a message has 35") && error.contains("more than the limit of 33554432"),
        "{error}"
    );
    said(&long, plain(), 17 << 20).unwrap();
    let error = said(&short, [dictionary("a"), dictionary("b")], 1000).unwrap_err();
    assert!(
        error.contains("its dictionaries have") && error.contains("more than the limit of 33554432"),
        "{error}"
    );
    said(&short, [dictionary("a"), Arc::clone(&short)], 1000).unwrap();
}

#[test]
fn arrow_files_of_a_dataset_folder_are_its_documents() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("dataset");
    let [first, second] = batches();
    for (split, batch) in [("test", &second), ("train", &first)] {
        fs::create_dir_all(root.join(split)).unwrap();
        write(
            &root.join(split).join("data-00000-of-00001.arrow"),
            std::slice::from_ref(batch),
            Form::Stream,
            None,
        );
        fs::write(root.join(split).join("state.json"), "{\"_split\": null}").unwrap();
        fs::write(root.join(split).join("dataset_info.json"), "{\n  \"features\": {}\n}").unwrap();
    }
    fs::write(root.join("dataset_dict.json"), "{\"splits\": [\"train\", \"test\"]}").unwrap();
    let report = Dedup::new([&root], folder.path().join("out")).run().unwrap();
    assert_eq!(report.input.documents, ROWS as u64);
    assert_eq!(report.kept_files, ["kept.arrow"]);
    let remark = format!(
        "5 files passed over that describe the dataset, the first: {}",
        root.join("dataset_dict.json").display()
    );
    assert!(report.input.remarks().contains(&remark), "{:?}", report.input.remarks());
    // The files of the split "test" come first.
    let kept = read(&folder.path().join("out/kept.arrow"), Form::Stream);
    assert_eq!(kept.column(0).as_any().downcast_ref::<StringArray>().unwrap().value(0), "k25");
    // Without Arrow files, a file of such a name is a document like any other.
    fs::remove_dir_all(root.join("train")).unwrap();
    fs::remove_dir_all(root.join("test")).unwrap();
    fs::write(root.join("dataset_dict.json"), "{\"id\": 1, \"text\": \"of a record\"}").unwrap();
    let report = Dedup::new([&root], folder.path().join("other")).run().unwrap();
    assert_eq!(report.input.documents, 1);
}
