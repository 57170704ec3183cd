//! Inputs of the fuzz target `inputs`: decodes bytes to a format, options and a compression, generates archives and
//! Parquet files from bytes, and provides the seeds.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, DictionaryArray, Int32Array, Int64Array, LargeStringArray, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use twindex_corpus::input::{
    AttachedFields, Dialect, Ids, InputFormat, InputOptions, InvalidUtf8, Kind, Quote,
};

use super::{OF_ARC, OF_ARROW};

/// Number of bytes of an input that select options, before the bytes of the documents.
pub const HEAD: usize = 12;
/// The record size limits that an input can select.
const RECORD_BYTES_MAX: [usize; 8] = [0, 1, 9, 40, 150, 1000, 16 << 10, 1 << 20];

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FuzzInput {
    Records(Kind),
    Text,
    Html,
}

/// The transformation of the bytes before they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
    /// Two gzip members, one after the other.
    TwoGzip,
    TwoZstd,
    /// Compressed, and then truncated or patched.
    DamagedGzip,
    DamagedZstd,
}

impl Packing {
    const ALL: [Self; 7] = [
        Self::Plain,
        Self::Gzip,
        Self::Zstd,
        Self::TwoGzip,
        Self::TwoZstd,
        Self::DamagedGzip,
        Self::DamagedZstd,
    ];

    pub(super) fn suffix(self) -> &'static str {
        match self {
            // Damaged files have no compression suffix: with one, a file whose magic number is damaged would be
            // refused.
            Self::Plain | Self::DamagedGzip | Self::DamagedZstd => "",
            Self::Gzip | Self::TwoGzip => ".gz",
            Self::Zstd | Self::TwoZstd => ".zst",
        }
    }

    pub(super) fn of(self, plain: &[u8], by: u8) -> Vec<u8> {
        let (first, second) = plain.split_at(plain.len() * usize::from(by) / 256);
        let damaged = |mut packed: Vec<u8>| {
            let at = packed.len() * usize::from(by) / 256;
            if by.is_multiple_of(2) {
                packed.truncate(at);
            } else {
                packed[at] ^= 1 << (by / 2 % 8);
            }
            packed
        };
        match self {
            Self::Plain => plain.to_vec(),
            Self::Gzip => gzip(plain),
            Self::Zstd => zstd(plain),
            Self::TwoGzip => [gzip(first), gzip(second)].concat(),
            Self::TwoZstd => [zstd(first), zstd(second)].concat(),
            Self::DamagedGzip => damaged(gzip(plain)),
            Self::DamagedZstd => damaged(zstd(plain)),
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(bytes, 1).expect("memory")
}

/// The format, options and compression that the first bytes of an input select.
pub(super) struct FuzzHeader {
    pub(super) what: FuzzInput,
    pub(super) packing: Packing,
    pub(super) options: InputOptions,
    /// Whether the format is recognized by the name of the file.
    pub(super) by_name: bool,
    pub(super) written_again: bool,
    pub(super) in_a_folder: bool,
    pub(super) sizes: [u8; 4],
    pub(super) chunk_bytes: usize,
    pub(super) by: u8,
}

impl FuzzHeader {
    pub(super) fn of(head: &[u8; HEAD], what: FuzzInput) -> Self {
        let [_, packing, bits, more, s0, s1, s2, s3, chunk, by, dialect, _] = *head;
        let bit = |at: u8| bits >> at & 1 == 1;
        let is_records = matches!(what, FuzzInput::Records(_));
        let named = |at, name: &str| (is_records && bit(at)).then(|| name.to_owned());
        let mut options = InputOptions {
            skip_bad: [0, 1, 6, u64::MAX][usize::from(bits & 3)],
            invalid_utf8: if bit(2) { InvalidUtf8::Replace } else { InvalidUtf8::Error },
            features: bit(3) && what == FuzzInput::Records(Kind::Jsonl),
            attached: AttachedFields {
                value: named(4, "value"),
                stamp: named(5, "stamp"),
                ..Default::default()
            },
            streaming: bit(6),
            record_bytes_max: RECORD_BYTES_MAX[usize::from(more % 8)],
            // Keys by file and line would differ between a pipe and a file.
            ids: Ids::Field,
            ..InputOptions::default()
        };
        if bit(7) {
            (options.id_field, options.text_field) = ("key".to_owned(), "body".to_owned());
        }
        if matches!(what, FuzzInput::Records(Kind::Csv | Kind::Tsv)) {
            options.dialect = dialect_of(dialect);
            if !options.dialect.has_header {
                (options.id_field, options.text_field) = ("1".to_owned(), "2".to_owned());
                options.attached = AttachedFields::default();
            }
        }
        let packing = match what {
            FuzzInput::Records(Kind::Parquet | Kind::Arrow) => Packing::Plain,
            _ => Packing::ALL[usize::from(packing) % Packing::ALL.len()],
        };
        let format = match what {
            FuzzInput::Records(kind) => InputFormat::Records(kind),
            FuzzInput::Text | FuzzInput::Html => InputFormat::Text,
        };
        Self {
            what,
            packing,
            options: InputOptions { format, ..options },
            by_name: more & 8 != 0,
            written_again: more & 16 != 0,
            in_a_folder: more & 32 != 0,
            sizes: [s0, s1, s2, s3],
            chunk_bytes: 1 << (chunk % 24),
            by,
        }
    }

    pub(super) fn suffix(&self) -> &'static str {
        match self.what {
            FuzzInput::Records(kind) => match kind {
                Kind::Jsonl => "jsonl",
                Kind::Csv => "csv",
                Kind::Tsv => "tsv",
                Kind::Wet => "wet",
                Kind::Warc => "warc",
                Kind::Parquet => "parquet",
                Kind::Arc => "arc",
                Kind::Arrow => "arrow",
            },
            FuzzInput::Text => "txt",
            FuzzInput::Html => "html",
        }
    }
}

/// Returns the dialect of a table that a byte selects; 0 selects the default.
fn dialect_of(by: u8) -> Dialect {
    Dialect {
        delimiter: [None, Some(b';'), Some(b' '), Some(b'\\')][usize::from(by & 3)],
        quote: [Quote::Usual, Quote::None, Quote::Byte(b'\''), Quote::Byte(b'"')][usize::from(by >> 2 & 3)],
        escape: [None, Some(b'\\'), Some(b'^'), Some(b'"')][usize::from(by >> 4 & 3)],
        has_header: by & 0x80 == 0,
    }
}

/// A generated archive record, and what must be read from it.
pub(super) struct ExpectedRecord {
    pub(super) number: usize,
    /// Whether the length in its header is correct.
    pub(super) fits: bool,
    /// The larger of its content's compressed and decompressed lengths, in bytes.
    pub(super) bytes: usize,
    /// Its text if it is known without reading the record: the content, or a plain page before it was encoded.
    pub(super) text: Option<Vec<u8>>,
}

impl ExpectedRecord {
    /// Returns the key and the text of the record if it must be a document.
    pub(super) fn says(&self, options: &InputOptions) -> Option<(Vec<u8>, Vec<u8>)> {
        let text = String::from_utf8(self.text.clone()?).ok()?;
        let key = if options.id_field == InputOptions::default().id_field { "u" } else { "k" };
        Some((format!("{key}{}", self.number).into_bytes(), text.into_bytes()))
    }
}

/// Generates an archive from records that the input describes. Each record is a byte with its kind, then content, and
/// ends with a byte 0xff. Most records have correct lengths, so that mutations of the content reach the parsers of
/// contents.
pub(super) fn made_archive(kind: Kind, body: &[u8]) -> (FuzzInput, Vec<u8>, Option<Vec<ExpectedRecord>>) {
    let mut archive = Vec::new();
    let mut made = Vec::new();
    for (number, piece) in body.split(|&byte| byte == 0xff).enumerate() {
        let (&spec, mut content) = piece.split_first().unwrap_or((&0, &[]));
        let (of_kind, of_type) = match spec & 7 {
            0 | 1 => ("conversion", "text/plain"),
            2 => ("conversion", "text/html; charset=iso-8859-1"),
            3 => ("resource", "text/html"),
            4 | 5 => ("response", "application/http; msgtype=response"),
            6 => ("warcinfo", "application/warc-fields"),
            _ => ("resource", "text/plain; charset=utf-16le"),
        };
        let mut text = (spec & 7 < 2).then(|| content.to_vec());
        let (response, mut unpacked) = (&mut Vec::new(), 0);
        if spec & 7 == 5 {
            let (&codings, page) = content.split_first().unwrap_or((&0, &[]));
            *response = answer(codings, page);
            content = response;
            // An upper bound for the decompressed content, which has an HTTP header of a few lines before the page.
            unpacked = page.len() + 100;
            let is_plain = codings & 0xb0 == 0x10 && codings & 7 != 5 && !page.starts_with(b"\xef\xbb\xbf");
            text = is_plain.then(|| page.to_vec());
        }
        let lie = spec & 0x18 == 0x18;
        let length = if lie { content.len() + usize::from(spec >> 5) } else { content.len() };
        let end = if spec & 0x80 == 0 { "\r\n" } else { "\n" };
        let head = [
            "WARC/1.0".to_owned(),
            format!("WARC-Type: {of_kind}"),
            format!("WARC-Target-URI: <u{number}>"),
            format!("Content-Type: {of_type}"),
            format!("key: k{number}"),
            format!("value: v{number}"),
            "stamp: 2026-01-31T12:00:00Z".to_owned(),
            format!("Content-Length: {length}"),
            String::new(),
            String::new(),
        ];
        archive.extend_from_slice(head.join(end).as_bytes());
        archive.extend_from_slice(content);
        archive.extend_from_slice(["\r\n\r\n", "\n\n", "\r\n", ""][usize::from(spec >> 5 & 3)].as_bytes());
        let fits = length == content.len();
        made.push(ExpectedRecord { number, fits, bytes: content.len().max(unpacked), text });
    }
    (FuzzInput::Records(kind), archive, Some(made))
}

/// Generates an HTTP response. Its page is encoded as its header says, unless `codings` requests a contradiction.
fn answer(codings: u8, page: &[u8]) -> Vec<u8> {
    let mut content = page.to_vec();
    let truly = codings & 0x80 == 0;
    // Compresses in one gzip member or in two.
    let gzip = |bytes: &[u8]| {
        let (first, second) = bytes.split_at(if codings & 0x40 == 0 { 0 } else { bytes.len() / 2 });
        if first.is_empty() { gzip(second) } else { [gzip(first), gzip(second)].concat() }
    };
    let named = match codings & 7 {
        0 => "",
        1 => "gzip",
        2 => "deflate",
        3 => "zstd",
        4 => "gzip, zstd",
        5 => "br",
        6 => "identity, x-gzip",
        _ => "gzip, gzip, gzip",
    };
    if truly {
        content = match codings & 7 {
            1 | 6 => gzip(&content),
            2 => zlib(&content),
            3 => zstd(&content),
            4 => zstd(&gzip(&content)),
            7 => gzip(&gzip(&gzip(&content))),
            _ => content,
        };
    }
    if codings & 8 != 0 && truly {
        let mut chunked = Vec::new();
        for part in content.chunks(11) {
            chunked.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            chunked.extend_from_slice(part);
            chunked.extend_from_slice(b"\r\n");
        }
        content = [&chunked[..], b"0\r\n\r\n"].concat();
    }
    let of_type = ["text/html", "text/plain", "text/html; charset=shift_jis", "image/png"];
    let of_type = of_type[usize::from(codings >> 4 & 3)];
    let transfer = if codings & 8 == 0 { "identity" } else { "chunked" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {of_type}\r\nTransfer-Encoding: {transfer}\r\n\
         Content-Encoding: {named}\r\n\r\n"
    );
    [head.as_bytes(), &content].concat()
}

/// Valid Parquet files with a few rows, for each supported column type, compression and encoding.
static PARQUET: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let texts = |rows: i64| -> ArrayRef {
        Arc::new(
            (0..rows).map(|row| (row % 7 != 6).then(|| format!("text {}", row % 5))).collect::<StringArray>(),
        )
    };
    let strings = |rows: i64| -> ArrayRef {
        Arc::new((0..rows).map(|row| Some(format!("k{row}"))).collect::<StringArray>())
    };
    let large: ArrayRef = Arc::new((0..9).map(|row| Some("x".repeat(row * 9))).collect::<LargeStringArray>());
    let binary: ArrayRef =
        Arc::new(BinaryArray::from_iter_values((0..9_u8).map(|row| [row, 0xe4, b'a', row | 0x80])));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(-4..5));
    let times: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..9).map(|row| row * 1_000_000_007)));
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values(0..9));
    let small: ArrayRef = Arc::new(UInt8Array::from_iter_values(0..9));
    let ints: ArrayRef = Arc::new((0..9).map(|row| (row != 3).then_some(row)).collect::<Int32Array>());
    let plain = WriterProperties::builder;
    let second = || plain().set_writer_version(WriterVersion::PARQUET_2_0);
    [
        (vec![("id", strings(9)), ("text", texts(9))], plain()),
        (
            vec![("text", large), ("id", numbers.clone()), ("value", binary.clone()), ("stamp", times)],
            plain().set_compression(Compression::SNAPPY),
        ),
        (
            vec![("id", small), ("stamp", days), ("text", binary)],
            plain().set_compression(Compression::ZSTD(ZstdLevel::default())),
        ),
        (
            vec![("key", strings(40)), ("body", texts(40))],
            second()
                .set_max_row_group_row_count(Some(15))
                .set_compression(Compression::GZIP(GzipLevel::default())),
        ),
        (
            vec![("id", strings(9)), ("text", texts(9)), ("stamp", ints.clone())],
            second()
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding("stamp".into(), Encoding::DELTA_BINARY_PACKED),
        ),
        (
            vec![("id", ints), ("text", texts(9)), ("value", numbers)],
            plain()
                .set_dictionary_enabled(false)
                .set_compression(Compression::LZ4_RAW)
                .set_data_page_row_count_limit(3)
                .set_write_batch_size(3),
        ),
        (
            vec![("id", strings(9)), ("text", texts(9))],
            second()
                .set_dictionary_enabled(false)
                .set_column_encoding("text".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
                .set_compression(Compression::BROTLI(BrotliLevel::default())),
        ),
    ]
    .into_iter()
    .map(|(columns, properties)| {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        );
        let batch = batch.expect("columns of one length");
        let mut file = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).expect("a writer");
        writer.write(&batch).expect("memory");
        writer.close().expect("memory");
        file
    })
    .collect()
});

/// Valid Arrow IPC files and streams of two record batches, for column types, dictionaries and both compressions.
static ARROW: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let texts: StringArray = (0..9).map(|row| (row != 6).then(|| format!("text {}", row % 5))).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..9));
    let large: ArrayRef =
        Arc::new((0..9).map(|row| Some("x".repeat(row * 40))).collect::<LargeStringArray>());
    let coded: ArrayRef =
        Arc::new((0..9).map(|row| Some(["a b", "c"][row % 2])).collect::<DictionaryArray<Int8Type>>());
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..9).map(|row| (row != 2).then(|| (0..row).map(Some))),
    ));
    let binary: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..9_u8).map(|row| [row, 0xe4, b'a'])));
    let texts: ArrayRef = Arc::new(texts);
    let plain = vec![("id", Arc::clone(&ids)), ("text", texts.clone()), ("tags", lists)];
    let named = vec![("key", Arc::clone(&texts)), ("body", coded), ("stamp", Arc::clone(&ids))];
    let widest = vec![("id", ids), ("text", large), ("value", binary)];
    let batches = [plain, named, widest].map(|columns| {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .expect("columns of one length")
    });
    let mut files = Vec::new();
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let options = IpcWriteOptions::default().try_with_compression(compression).expect("an option");
        for batch in &batches {
            let parts = [batch.slice(0, 5), batch.slice(5, 4)];
            let mut file = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options.clone())
                .expect("memory");
            let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options.clone())
                .expect("memory");
            for part in &parts {
                file.write(part).expect("memory");
                stream.write(part).expect("memory");
            }
            files.push(file.into_inner().expect("memory"));
            files.push(stream.into_inner().expect("memory"));
        }
    }
    files
});

/// Patches a valid Arrow file. A patch has four bytes: an offset (2 bytes), an operation and a value.
pub(super) fn patched_arrow(body: &[u8]) -> Vec<u8> {
    let (&which, patches) = body.split_first().unwrap_or((&0, &[]));
    let mut file = ARROW[usize::from(which) % ARROW.len()].clone();
    for patch in patches.chunks_exact(4) {
        let (&[low, high, way, value], all) = (patch.first_chunk().expect("four"), file.len());
        if all == 0 {
            break;
        }
        let at = usize::from(u16::from_le_bytes([low, high])) % all;
        match way % 6 {
            0 => file[at] = value,
            1 => file[at] ^= 1 << (value % 8),
            2 => file[at] = file[at].wrapping_add(value),
            3 => file[at..all.min(at + 8)].fill(value),
            4 => file.truncate(at),
            _ => file.insert(at, value),
        }
    }
    file
}

/// Patches a valid Parquet file. A patch has four bytes: an offset (2 bytes), an operation and a value. If bytes are
/// added to the footer or removed from it, the stored length of the footer is updated.
pub(super) fn patched_parquet(body: &[u8]) -> Vec<u8> {
    let (&which, patches) = body.split_first().unwrap_or((&0, &[]));
    let mut file = PARQUET[usize::from(which) % PARQUET.len()].clone();
    for patch in patches.chunks_exact(4) {
        let (&[low, high, way, value], all) = (patch.first_chunk().expect("four"), file.len());
        let at = usize::from(u16::from_le_bytes([low, high])) % all;
        let footer = file[all - 8..all - 4].try_into().map_or(0, u32::from_le_bytes);
        let in_footer = at < all - 8 && at >= (all - 8).saturating_sub(footer as usize);
        let set_footer_length = |file: &mut Vec<u8>, bytes: u32| {
            let end = file.len();
            file[end - 8..end - 4].copy_from_slice(&bytes.to_le_bytes());
        };
        match way % 6 {
            0 => file[at] = value,
            1 => file[at] ^= 1 << (value % 8),
            2 => file[at] = file[at].wrapping_add(value),
            3 => file[at..all.min(at + 8)].fill(value),
            4 if in_footer => {
                file.insert(at, value);
                set_footer_length(&mut file, footer.wrapping_add(1));
            }
            5 if in_footer => {
                file.remove(at);
                set_footer_length(&mut file, footer.saturating_sub(1));
            }
            _ => {}
        }
    }
    file
}

/// Returns the seeds of fuzzing.
pub fn seeds() -> Vec<Vec<u8>> {
    // The low bits of `more` select how far the size limit is below the highest one.
    let head = |what: u8, packing: u8, bits: u8, more: u8| -> [u8; HEAD] {
        [what, packing, bits, more ^ 7, 0x80, 3, 0x84, 1, 9, 0x61, 0, 0]
    };
    let json: &[u8] = b"\xef\xbb\xbf{\"id\":1,\"text\":\"a b\",\"value\":{\"x\":[1]},\"stamp\":7}\r\n\n \t\r\n\
        {\"text\":\"\\u00fc\\ud83d\\ude00 c\",\"id\":\"k\",\"stamp\":\"2026-01-31T12:00:00+01:00\"}\n\
        {\"id\":2,\"text\":\"\xe4\xb8\"}\n[1]\n{\"id\":\"\",\"text\":\"x\"}\n\
        {\"id\":\"\xfe\",\"text\":\"x\",\"stamp\":1}\n{\"id\":[],\"text\":\"x\"}\n{\"te\\u0078t\":\"last\",\"id\":-3}";
    let features: &[u8] = b"{\"id\":1,\"text\":[\"a\",7]}\n{\"id\":2,\"text\":{\"a\":0.5}}\n\
        {\"id\":3,\"text\":[[\"b\",2]]}\n{\"id\":4,\"text\":[]}\n";
    let csv: &[u8] = b"\xef\xbb\xbfid,text,value,stamp,key,body\r\n1,\"a, \"\"b\"\"\nc\",v,3,k,b\r\n\n\
        2,t\n3,\xff,,5,l,c\n4,\"open";
    let unquoted: &[u8] =
        b"\xef\xbb\xbfid,text,value,stamp,key,body\n\xef\xbb\xbfa,one,v,1,\xef\xbb\xbfa,one\n\
        a,two,v,2,a,two\n,three,v,3,,three\nb\xfe,four,v,4,b\xfe,four\r\n\r\nfive\nc,six,v,6,c,six";
    let tsv: &[u8] = b"text\tid\tkey\tbody\tvalue\tstamp\n a \tx\tk\tb\tv\t0\n\"q\tr\"\ty\tl\t\tw\t1\n";
    let wet: &[u8] =
        b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: a\r\nContent-Type: text/plain\r\n\
        WARC-Date: 2026-01-31T12:00:00Z\r\nstamp: 5\r\nContent-Length: 3\r\n\r\none\r\n\r\nWARC/1.0\r\n\
        WARC-Type: conversion\r\nWARC-Target-URI: b\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n\
        two\r\n\r\nWARC/1.0\nWARC-Type: resource\nkey: c\nContent-Type: text/html\nContent-Length: 4\n\n<p>x\n\n\
        WARC/1.0\nWARC-Type: conversion\nWARC-Target-URI: d\xfe\nContent-Type: text/plain\nContent-Length: 1\n\nx\n\n\
        WARC/1.0\nWARC-Type: conversion\nWARC-Target-URI:\nContent-Type: text/plain\nContent-Length: 1\n\nx\n\n\
        WARC/1.0\nWARC-Type: resource\nWARC-Target-URI: e\xfe\nContent-Type: text/html\nContent-Length: 4\n\n<p>x";
    let warc: &[u8] =
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: <a>\r\nContent-Type: application/http\r\n\
        Content-Length: 70\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html; charset=\"koi8-r\"\r\n\r\n\
        <p>\xc1\xc2&amp;x\r\n\r\n";
    let page: &[u8] =
        b"<!doctype html><title>T &ngE; &#x1F600;</title><style>p{}</style><svg><svg></svg></svg>\
        <p>a<b>b</b><textarea>c<i></textarea><!-- x --><plaintext>d&amp;</p>";
    let arc: &[u8] = b"filedesc://a.arc 0.0.0.0 20260131120000 text/plain 4\n1 0 \n\
        http://a/ 192.0.2.1 20260131120000 text/html 52\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>a b c\n\
        http://b/ 192.0.2.1 20260131120000 text/plain 99\nshort\n\
        ftp://c/ 192.0.2.1 20260131120000 text/plain 5\nplain\ndns:d 192.0.2.1 20260131120000 text/dns 1\nx\n";
    let made: &[u8] = b"\x00one text\xff\x80two\xff\x05\x09<p>page of gzip\xff\x05\x03<p>zstd\xff\x25\x1aplain\
        \xff\x45\x17deep\xff\x05\x84no gzip\xff\x18a lie\xff\x43<p>resource\xff\x06info\xff\x02<p>\xe4\xff\x07a\0b\0\
        \xff\x04HTTP/1.1 200 OK\nContent-Type: text/plain\n\nx\
        \xff\x00last\nWARC/1.0\n";
    let sound: &[u8] =
        b"\x00one\xff\x01two\nWARC/1.0\r\n\r\n\xff\x05\x01<p>three\xff\xa0\xff\x06\xff\x05\x51two members";
    let bomb = [&b"\x05\x11"[..], &[b'x'; 2000]].concat();
    let mut seeds = Vec::new();
    let mut add = |head: [u8; HEAD], body: &[u8]| seeds.push([&head[..], body].concat());
    for (at, (what, body)) in [
        (0, json),
        (1, csv),
        (1, unquoted),
        (2, tsv),
        (3, wet),
        (4, warc),
        (5, made),
        (6, made),
        (6, sound),
        (9, page),
        (9, b"a\0b"),
        (10, page),
        (OF_ARC, arc),
    ]
    .into_iter()
    .enumerate()
    {
        let at = at as u8;
        add(head(what, 0, 3, 48), body);
        add(head(what, 0, 0x77 ^ at & 3, 0x38), body);
        add(head(what, 1 + at % 4, 7, 8), body);
        add(head(what, 5 + at % 2, 0x47, 0), body);
        add(head(what, 0, 0x83, 0), body);
        // Size limits of 40 bytes, and of one byte.
        add(head(what, 0, 7, 4), body);
        add(head(what, 0, 3, 6), body);
    }
    add(head(6, 0, 3, 3), &bomb);
    add(head(0, 0, 0x0b, 56), features);
    for (at, file) in PARQUET.iter().enumerate() {
        let at = at as u8;
        add(head(7, 0, if at == 3 { 0x83 } else { 3 }, 48), file);
        add(head(8, 0, if at == 3 { 0x83 } else { 7 }, 56), &[at, 40, 1, 1, 3, 9, 3, 2, 1]);
        add(head(8, 0, if matches!(at, 1 | 2 | 4) { 0x23 } else { 3 }, 0), &[at]);
        add(head(8, 0, if at == 3 { 0x83 } else { 3 }, 6), &[at]);
    }
    for (at, file) in ARROW.iter().enumerate() {
        let at = at as u8;
        let bits = if at % 6 / 2 == 1 { 0x83 } else { 3 };
        add(head(OF_ARROW, 0, bits, 48), file);
        add(head(OF_ARROW + 1, 0, bits, 56), &[at, 40, 1, 1, 3, 9, 3, 2, 1]);
        add(head(OF_ARROW + 1, 0, bits, 6), &[at]);
    }
    let dump: &[u8] = b"1\ta b\\tc\\\\d\\\ne\n2\t\\N\n3\tf;'g''h\\'i'\n";
    let quoted: &[u8] = b"id;text;value\r\n1;'a;''b\\'c';v\r\n2;\"d;e\";w\r\n'3';f ^' g;x";
    for dialect in [0x94, 0x14, 0x11, 0x19, 0x29, 0x2b, 0x3d, 0x86, 0x12] {
        for (what, body) in [(2, dump), (1, quoted), (1, csv)] {
            let mut head = head(what, 0, 3, 48);
            head[10] = dialect;
            add(head, body);
        }
    }
    for (at, body) in [json, csv, tsv, wet, warc].into_iter().enumerate() {
        add(head(11, at as u8, 3, 0), &gzip(body));
        add(head(11, at as u8, 3, 0), &zstd(body));
    }
    seeds
}
