//! Tests that the code agrees with the format specification, `format-spec.md`. Every offset, size and number in its
//! tables is compared with the constants and structs of `src/format`, and its annotated dump is compared with a file that
//! the test builds.
//!
//! Tables are found by their headings and compared row by row. A row that is missing in the specification or in the code
//! is a failure.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};

use twindex::design::{
    BLOCKS_MAX, Codecs, Complete, Design, DesignName, POINTER_BITS, TABLES_MAX, WITHIN_MAX, prefix_bits,
};
use twindex::format::attached::{self, StampsHead};
use twindex::format::bands::{self, KEY_BITS};
use twindex::format::checksum::PAGE;
use twindex::format::contents::{ENTRY_BYTES, Entry, Kind};
use twindex::format::current::{CURRENT_BYTES, Current};
use twindex::format::fields as document_fields;
use twindex::format::footer::{self, FOOTER_BYTES, Footer};
use twindex::format::header::{self, FINGERPRINT_BITS, HEADER_BYTES, Header, Role};
use twindex::format::keys::{self, FRAME_HEAD_BYTES, FrameHead, GROUP};
use twindex::format::manifest::{
    LOGS_MAX, MANIFEST_BYTES_MAX, Manifest, PARAMS_BYTES_MAX, SEGMENTS_MAX, SegmentEntry,
};
use twindex::format::prefixes::CLASSES;
use twindex::format::sketches::{END_BYTES, SketchFileEnd};
use twindex::format::table::{Codec, compact, filter, manku, plain, planes};
use twindex::format::{
    ALIGNMENT, DOCUMENTS_MAX, VERSION, design, hot, idf, log, postings, ranks, samples, signatures,
};
use twindex::key::KEY_BYTES_MAX;
use twindex::params::{
    BANDS_MAX, BOTTOM_MAX, FEATURE_BITS_MAX, Family, MINIMA_MAX, MODULAR_MAX, MinhashWeights, Near,
    NormalForm, SHINGLE_WIDTH_MAX, SIGNATURE_BITS, ShingleHash, Shingling, SimhashWeights, Stemming,
    StopWords, Tokens, WeightUnit, Widths,
};
use twindex::segment::records::Kept;
use twindex::segment::{Records, build};
use twindex::sketch::{CODE_WIDTHS, Sketcher, UNICODE_VERSION, pack};
use twindex::sys::vfs::TEMPORARY_PREFIX;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Key, Params};

const SPEC: &str = include_str!("../../format-spec.md");

/// Returns the lines below a heading, up to the next heading.
fn part(heading: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = SPEC.lines();
    assert!(lines.any(|line| line == heading), "format-spec.md has no heading `{heading}`");
    lines.take_while(|line| !line.starts_with('#'))
}

/// Returns the rows of the first table below a heading. Cells are trimmed, and backquotes are removed.
pub(crate) fn rows(heading: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let mut lines =
        part(heading).skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let head = lines.next().unwrap_or_else(|| panic!("no table below `{heading}`"));
    assert_eq!(cells(head), columns, "columns of the table below `{heading}`");
    assert!(lines.next().is_some_and(|line| line.starts_with("|-")), "a rule below the head of `{heading}`");
    lines.map(cells).collect()
}

/// Compares the table below a heading with `expected`. The last column is prose, so it is not compared.
fn compare(heading: &str, columns: &[&str], expected: &[Vec<String>]) {
    let found: Vec<Vec<String>> = rows(heading, columns)
        .into_iter()
        .map(|mut row| {
            assert_eq!(row.len(), columns.len(), "cells in a row below `{heading}`: {row:?}");
            assert!(row.pop().is_some_and(|prose| !prose.is_empty()), "a meaning below `{heading}`");
            row
        })
        .collect();
    assert_eq!(found, expected, "`{heading}`: left the specification, right the code");
}

/// Compares a table of fields with `expected`: the name, the offset and the size of each field.
fn fields(heading: &str, expected: &[(&str, usize, usize)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, offset, size)| vec![(*name).to_owned(), offset.to_string(), size.to_string()])
        .collect();
    compare(heading, &["field", "offset", "size", "meaning"], &expected);
}

/// Returns the name, the offset and the size of a struct's field.
macro_rules! field {
    ($of:ty, $name:ident) => {{
        fn size<T, F>(_: fn(&T) -> &F) -> usize {
            size_of::<F>()
        }
        (stringify!($name), offset_of!($of, $name), size::<$of, _>(|whole| &whole.$name))
    }};
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

fn numbered(pairs: &[(u64, &str)]) -> Vec<Vec<String>> {
    pairs.iter().map(|(number, name)| vec![number.to_string(), (*name).to_owned()]).collect()
}

/// Checks that the fields cover `start..end` without gaps, so that the table lists every byte.
fn tile(fields: &[(&str, usize, usize)], start: usize, end: usize) {
    let mut next = start;
    for (name, offset, size) in fields {
        assert_eq!(*offset, next, "{name} does not follow the field before it");
        next += size;
    }
    assert_eq!(next, end, "bytes after the last field");
}

#[test]
fn header_matches_the_specification() {
    let expected = [
        field!(Header, magic),
        field!(Header, version),
        field!(Header, role),
        field!(Header, fingerprint_bits),
        field!(Header, incompatible),
        field!(Header, read_only_compatible),
        field!(Header, compatible),
        field!(Header, salt),
        field!(Header, params_digest),
        field!(Header, reserved),
        field!(Header, checksum),
    ];
    tile(&expected, 0, HEADER_BYTES);
    fields("### Header", &expected);
}

#[test]
fn table_of_contents_entry_matches_the_specification() {
    let expected = [
        field!(Entry, kind),
        field!(Entry, index),
        field!(Entry, codec),
        field!(Entry, reserved),
        field!(Entry, offset),
        field!(Entry, length),
        field!(Entry, rows),
    ];
    tile(&expected, 0, ENTRY_BYTES);
    fields("### Table of contents", &expected);
}

#[test]
fn footer_matches_the_specification() {
    let expected = [
        field!(Footer, magic),
        field!(Footer, file_length),
        field!(Footer, contents_offset),
        field!(Footer, contents_entries),
        field!(Footer, contents_checksum),
        field!(Footer, checksums_checksum),
        field!(Footer, reserved),
        field!(Footer, documents),
        field!(Footer, distinct),
        field!(Footer, reserved_too),
        field!(Footer, checksum),
    ];
    tile(&expected, 0, FOOTER_BYTES);
    fields("### Footer", &expected);
}

#[test]
fn current_file_matches_the_specification() {
    let expected = [
        field!(Current, header),
        field!(Current, generation),
        field!(Current, digest),
        field!(Current, reserved),
        field!(Current, checksum),
    ];
    tile(&expected, 0, CURRENT_BYTES);
    fields("### CURRENT", &expected);
}

#[test]
fn frame_head_matches_the_specification() {
    let expected = [field!(StampsHead, base), field!(StampsHead, width), field!(StampsHead, reserved)];
    fields("### Stamps", &expected);
    let expected = [field!(FrameHead, base), field!(FrameHead, width), field!(FrameHead, reserved)];
    tile(&expected, 0, FRAME_HEAD_BYTES as usize);
    fields("#### Key codec 1: frame", &expected);
}

/// The manifest has no struct, so the test encodes a manifest in which each field has a unique value, and looks for the
/// values at the specified offsets.
#[test]
fn manifest_matches_the_specification() {
    let params = Params::builder().words(5).simhash(3).build().unwrap();
    let deleted: roaring::RoaringBitmap = [1, 3].into_iter().collect();
    let entry = SegmentEntry {
        number: 0x0101,
        length: 0x0202,
        digest: 0x0303,
        salt: 0x0404,
        documents: 0x0505,
        deleted: deleted.clone(),
    };
    let segments = vec![entry];
    let manifest = Manifest {
        uuid: 0x0606,
        read_only_compatible: 0,
        generation: 0x0707,
        next_segment: 0x0808,
        params: params.clone(),
        segments,
        logged: None,
        now: None,
    };
    let bytes = manifest.encode();
    let text = params.encode();
    let value = |offset: usize, size: usize| {
        let mut wide = [0; 16];
        wide[..size].copy_from_slice(&bytes[offset..offset + size]);
        u128::from_le_bytes(wide)
    };

    let columns = ["field", "offset", "size", "meaning"];
    let head: Vec<(String, u128)> = rows("#### Fixed part", &columns)
        .iter()
        .filter(|row| row[0] != "header")
        .map(|row| (row[0].clone(), value(number(&row[1]), number(&row[2]))))
        .collect();
    let expected =
        [("generation", 0x0707), ("next_segment", 0x0808), ("params_length", text.len()), ("segments", 1)];
    assert_eq!(head, expected.map(|(name, value)| (name.to_owned(), value as u128)));
    let start = HEADER_BYTES + 24;
    tile_of("#### Fixed part", 0, start);
    assert_eq!(&bytes[start..start + text.len()], text.as_bytes());

    let segment = start + text.len();
    let found: Vec<(String, u128)> = rows("#### Segment entry", &columns)
        .iter()
        .map(|row| (row[0].clone(), value(segment + number::<usize>(&row[1]), number(&row[2]))))
        .collect();
    let length = deleted.serialized_size();
    let expected = [
        ("number", 0x0101),
        ("length", 0x0202),
        ("digest", 0x0303),
        ("salt", 0x0404),
        ("documents", 0x0505),
        ("deletes_length", length as u128),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    tile_of("#### Segment entry", 0, 60);
    assert_eq!(bytes.len(), segment + 60 + length + 4);
}

#[test]
fn idf_table_fields_match_the_specification() {
    let shingling = Shingling::words(2, 0);
    let (hashes, frequencies) = ([7, 9], [3, 4]);
    let bytes = idf::encode(5, 2, &shingling, &hashes, &frequencies);
    tile_of("### IDF table", 0, 88);
    for row in rows("### IDF table", &["field", "offset", "size", "meaning"]).iter().skip(1) {
        let (offset, size) = (number::<usize>(&row[1]), number::<usize>(&row[2]));
        let found =
            bytes[offset..offset + size].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let expected = match row[0].as_str() {
            "documents" => 5,
            "entries" | "absent" => 2,
            "text_length" => shingling.encode().len() as u64,
            other => panic!("{other}"),
        };
        assert_eq!(found, expected, "{}", row[0]);
    }
    assert_eq!(bytes.len(), 88 + shingling.encode().len() + 2 * 12);
}

/// Checks that the rows of a table of fields follow one another without a gap.
fn tile_of(heading: &str, start: usize, end: usize) {
    let rows = rows(heading, &["field", "offset", "size", "meaning"]);
    let fields: Vec<(&str, usize, usize)> =
        rows.iter().map(|row| (row[0].as_str(), number(&row[1]), number(&row[2]))).collect();
    tile(&fields, start, end);
}

#[test]
fn end_of_a_sketch_file_matches_the_specification() {
    let expected = [
        field!(SketchFileEnd, magic),
        field!(SketchFileEnd, file_length),
        field!(SketchFileEnd, blocks),
        field!(SketchFileEnd, documents),
        field!(SketchFileEnd, sketched),
        field!(SketchFileEnd, digest),
        field!(SketchFileEnd, reserved),
        field!(SketchFileEnd, checksum),
    ];
    tile(&expected, 0, END_BYTES);
    fields("#### End of a file of sketches", &expected);
}

#[test]
fn log_heads_and_records_match_the_specification() {
    let (uuid, log_number, first) = (0x0101, 0x0303, 0x0404);
    let params = Params::builder().simhash(3).build().unwrap();
    let mut bytes = log::encode_head(uuid, &params, log_number, first);
    assert_eq!(bytes.len() as u64, log::LOG_HEAD_BYTES);
    let start = bytes.len();
    let mut batch = log::LogBatch::default();
    batch.delete(Key::U64(0x0505));
    batch.encode(&mut bytes, log::record_salt(uuid, log_number), start as u64, 0x0606, 0x58, Some(b"abc"));
    let columns = ["field", "offset", "size", "meaning"];
    let values = |heading: &str, base: usize| -> Vec<(String, u128)> {
        rows(heading, &columns)
            .iter()
            .filter(|row| row[0] != "header" && row[0] != "checksum")
            .map(|row| {
                let (offset, size): (usize, usize) = (number(&row[1]), number(&row[2]));
                let offset = base + offset;
                let mut wide = [0; 16];
                wide[..size].copy_from_slice(&bytes[offset..offset + size]);
                (row[0].clone(), u128::from_le_bytes(wide))
            })
            .collect()
    };
    let named = |all: &[(&str, u128)]| -> Vec<(String, u128)> {
        all.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    };
    assert_eq!(
        values("#### Head of a log", 0),
        named(&[("number", 0x0303), ("first", 0x0404), ("reserved", 0)])
    );
    // The fields of a batch follow the fields of a record. Their offsets are relative to the payload of the record.
    let all = values("#### Record of a log", start);
    let length = log::BATCH_HEAD_BYTES as u128 + 3 + 9;
    assert_eq!(all, named(&[("length", length), ("kind", 1), ("reserved", 0), ("commit", 0x0606)]));
    assert_eq!(bytes.len(), start + (log::RECORD_HEAD_BYTES + length as usize).next_multiple_of(8));
}

#[test]
fn roles_and_kinds_have_the_specified_numbers() {
    let roles = [
        (Role::Segment as u64, "segment"),
        (Role::Manifest as u64, "manifest"),
        (Role::Current as u64, "current"),
        (Role::Log as u64, "log"),
        (Role::Idf as u64, "idf"),
        (Role::Sketches as u64, "sketches"),
    ];
    compare("#### Roles", &["role", "name", "file"], &numbered(&roles));

    let kinds: Vec<(u64, &str)> = Kind::ALL.iter().map(|&kind| (kind as u64, kind.name())).collect();
    compare("#### Kinds", &["kind", "name", "meaning"], &numbered(&kinds));
}

#[test]
fn codecs_have_the_specified_numbers() {
    let expected = [
        ("params", 1, "text"),
        ("keys", keys::CODEC_FRAME, "frame"),
        ("keys", keys::CODEC_FRONT, "front-coded"),
        ("ranks", ranks::CODEC, "plain"),
        ("design", design::CODEC, "name"),
        ("hot", hot::CODEC, "nested tables"),
        ("table", planes::CODEC, "planes"),
        ("table", compact::CODEC, "compact"),
        ("table", manku::CODEC, "manku"),
        ("table", plain::CODEC, "plain"),
        ("filter table", filter::codec(2), "entries of 2 bytes"),
        ("filter table", filter::codec(3), "entries of 3 bytes"),
        ("filter table", filter::codec(4), "entries of 4 bytes"),
        ("postings", postings::CODEC, "single or list"),
        ("band", bands::CODEC_BYTES, "tag and ordinal"),
        ("band", bands::CODEC_PACKED, "tag and ordinal, bit by bit"),
        ("signatures", signatures::CODEC, "packed"),
        ("bottom", samples::CODEC, "offsets and hashes"),
        ("modular", samples::CODEC, "offsets and hashes"),
        ("values", attached::CODEC, "offsets and bytes"),
        ("stamps", attached::CODEC, "frame and order"),
        ("fields", document_fields::CODEC, "offsets and fields"),
        ("common", bands::CODEC_PACKED, "tag and class, bit by bit"),
        ("prefixes", bands::CODEC_PACKED, "tag and ordinal, bit by bit"),
        ("suffixes", bands::CODEC_PACKED, "tag and ordinal, bit by bit"),
        ("part", bands::CODEC_PACKED, "tag and ordinal, bit by bit"),
        ("checksums", 1, "CRC-32 of pages"),
    ]
    .map(|(name, codec, text)| vec![name.to_owned(), codec.to_string(), text.to_owned()]);
    let found = rows("#### Codecs", &["section", "codec", "name"]);
    assert_eq!(found, expected);
    // Every table codec in the code must be in the table.
    let all = Complete::ALL.map(Codec::Complete).into_iter().chain((2..=4).map(Codec::Partial));
    for codec in all {
        let name = match codec {
            Codec::Complete(complete) => complete.name().to_owned(),
            Codec::Partial(width) => format!("entries of {width} bytes"),
        };
        let row = [codec.kind().name().to_owned(), codec.number().to_string(), name];
        assert!(expected.contains(&row.to_vec()), "{row:?}");
    }
}

/// The specification must list the bit and the name of each incompatible feature.
#[test]
fn incompatible_features_have_the_specified_bits_and_names() {
    let table = rows("#### Incompatible features", &["bit", "name", "files", "set if and only if"]);
    let found: BTreeSet<(u32, String)> = table.iter().map(|row| (number(&row[0]), row[1].clone())).collect();
    let expected = [
        (header::FEATURE_LOG, "log"),
        (header::FEATURE_VALUES, "values"),
        (header::FEATURE_STAMPS, "stamps"),
        (header::FEATURE_GROWN, "grown"),
        (header::FEATURE_PACKED, "packed"),
        (header::FEATURE_NARROW, "narrow"),
        (header::FEATURE_TEXT, "text"),
        (header::FEATURE_NEAR, "near"),
        (header::FEATURE_FIELDS, "fields"),
        (header::FEATURE_PRIORITIES, "priorities"),
        (header::FEATURE_WEIGHTS, "weights"),
        (header::FEATURE_BOILERPLATE, "boilerplate"),
        (header::FEATURE_SUFFIXES, "suffixes"),
        (header::FEATURE_CODES, "codes"),
        (header::FEATURE_PARTS, "parts"),
        (header::FEATURE_SIMHASHES, "simhashes"),
    ];
    assert_eq!(found, expected.map(|(number, name)| (number, name.to_owned())).into());
    let roles = [Role::Segment, Role::Manifest, Role::Current, Role::Log, Role::Idf, Role::Sketches];
    let known = roles.into_iter().fold(0, |known, role| known | role.incompatible_known());
    assert_eq!(found.iter().map(|(number, _)| number).sum::<u32>(), known, "the code knows other features");
    // The specification must list each feature for exactly those kinds of files in which the code accepts it.
    let names = ["segment", "manifest", "CURRENT", "log", "idf", "sketches"];
    for row in &table {
        let listed: Vec<&str> = row[2].split(", ").collect();
        for (role, name) in roles.into_iter().zip(names) {
            let is_known = role.incompatible_known() & number::<u32>(&row[0]) != 0;
            assert_eq!(listed.contains(&name), is_known, "{} in {name}", row[1]);
        }
    }
}

/// Returns the tags and the lengths of a document's fields.
fn tags_and_lengths(bytes: &[u8]) -> Vec<(String, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
        found.push((bytes[at].to_string(), length));
        at += 5 + length;
    }
    assert_eq!(at, bytes.len());
    found
}

#[test]
fn document_fields_match_the_specification() {
    let columns = ["field", "tag", "bytes of the content", "there"];
    let found: Vec<(String, String, String)> = rows("### Fields", &columns)
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[2].clone()))
        .collect();
    let params = Params::builder().minhash(1, 1).sets().marks().priorities().build().unwrap();
    let mut bytes = Vec::new();
    document_fields::encode(&params, true, &[], Some(0), &mut bytes);
    let min = tags_and_lengths(&bytes);
    document_fields::encode(&params, true, &[7], Some(1), &mut bytes);
    let larger = tags_and_lengths(&bytes);
    let expected: Vec<(String, String, String)> = ["mark", "set", "priority"]
        .into_iter()
        .zip(min.iter().zip(&larger))
        .map(|(name, ((tag, min), (_, larger)))| {
            let length = if min == larger { min.to_string() } else { format!("{min} or more") };
            (name.to_owned(), tag.clone(), length)
        })
        .collect();
    assert_eq!((min.len(), larger.len()), (3, 3));
    let mut of_codes = Vec::new();
    for bits in CODE_WIDTHS {
        let params = Params::builder().codes(bits as u16, 0).build().unwrap();
        document_fields::encode(&params, false, &[], None, &mut bytes);
        of_codes.extend(tags_and_lengths(&bytes));
    }
    assert!(of_codes.iter().all(|(tag, _)| tag == "4"));
    let lengths: Vec<String> = of_codes.iter().map(|(_, length)| length.to_string()).collect();
    let expected = [expected, vec![("code".to_owned(), "4".to_owned(), lengths.join(", "))]].concat();
    assert_eq!(found, expected, "left the specification, right the code");
    // The reader must refuse all other tags.
    for tag in 0..=u8::MAX {
        let field = [&[tag, 4, 0, 0, 0][..], &[0; 4]].concat();
        let is_taken = document_fields::Fields::of(&field).check(&params).is_ok();
        assert_eq!(is_taken, found[1].1 == tag.to_string(), "tag {tag}");
    }
}

#[test]
fn encoded_sets_have_the_specified_lengths() {
    let table = rows("#### High bytes", &["hashes", "c", "bytes of the content"]);
    let params = Params::builder().minhash(1, 1).sets().build().unwrap();
    let (mut bytes, mut last) = (Vec::new(), None);
    for row in &table {
        let (count, high, length): (u64, u32, usize) = (number(&row[0]), number(&row[1]), number(&row[2]));
        let set: Vec<u64> = (0..count).map(|i| i * (u64::MAX / count)).collect();
        document_fields::encode(&params, false, &set, None, &mut bytes);
        assert_eq!(tags_and_lengths(&bytes)[0].1, length, "{row:?}");
        let map = if high == 0 { 0 } else { (count + (1 << (8 * high))).div_ceil(8) };
        assert_eq!(length as u64, 4 + count * u64::from(8 - high) + map, "{row:?}");
        if let Some((before, other)) = last.replace((count, high)) {
            assert!(high == other || count == before + 1, "c changes somewhere between {before} and {count}");
        }
    }
    assert_eq!(table.iter().map(|row| row[1].as_str()).collect::<BTreeSet<_>>(), ["0", "1", "2"].into());
}

/// The writer's choice of common tags is private, so this test only compares the constants in the specification with the
/// source. `golden_files.rs` tests the choice itself, with segments whose common tags the Python reader computes
/// independently.
#[test]
fn common_tag_constants_match_the_specification() {
    let value = |text: &str| -> u64 {
        let text = text.replace('_', "").to_lowercase();
        if let Some((one, shift)) = text.split_once(" << ") {
            return number::<u64>(one) << number::<u32>(shift);
        }
        text.strip_prefix("0x").map_or_else(|| number(&text), |hex| u64::from_str_radix(hex, 16).unwrap())
    };
    let source = include_str!("../../src/segment/sets.rs");
    let constants = source.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("const ")?.split_once(": ")?;
        Some((name.to_owned(), value(rest.split_once(" = ")?.1.strip_suffix(';')?)))
    });
    // `FIRST_BITS` only affects how a list in memory is searched, not the file.
    let expected: Vec<(String, u64)> = constants.filter(|(name, _)| name != "FIRST_BITS").collect();
    let table = rows("#### Common tags", &["constant", "value", "meaning"]);
    let found: Vec<(String, u64)> = table.iter().map(|row| (row[0].clone(), value(&row[1]))).collect();
    assert_eq!(found, expected, "left the specification, right the source");
}

/// Each row has a pattern of names, an example, its number of tables, the lengths of their prefixes in bits, and the
/// largest radius.
#[test]
fn designs_have_the_specified_names_tables_and_radii() {
    let columns =
        ["name", "numbers", "tables", "for example", "its tables", "bits that lead", "largest radius"];
    let found = rows("#### Designs", &columns);
    let forms = found.iter().map(|row| row[0].as_str()).collect::<Vec<_>>();
    let expected =
        ["blocks-M", "choose-M-J", "nested-A-B", "expansion", "prefix-P", "reversed-P", "random-T-P-S"];
    assert_eq!(forms, expected);
    for row in &found {
        let name: DesignName = row[3].parse().unwrap_or_else(|error| panic!("{}: {error}", row[3]));
        assert_eq!(row[0].split('-').next(), row[3].split('-').next());
        let design = Design::new(name).unwrap();
        let leads = design.tables.iter().map(|table| table.lead);
        let (min, max) = (leads.clone().min().unwrap(), leads.max().unwrap());
        let leads = if min == max { max.to_string() } else { format!("{min} to {max}") };
        let computed = [design.tables.len().to_string(), leads, name.within_max().to_string()];
        assert_eq!(row[4..], computed, "{}", row[3]);
    }
    // The allowed ranges of the numbers in a name.
    let ranges = |form: usize| found[form][1].clone();
    assert_eq!(ranges(0), format!("M 1 to {BLOCKS_MAX}"));
    assert_eq!(ranges(1), format!("M 3 to {BLOCKS_MAX}, J 2 to M - 1, at most {TABLES_MAX} tables"));
    assert_eq!(ranges(2), "A and B 2 to 8");
    assert_eq!(ranges(4), "P 1 to 64");
    assert_eq!(ranges(6), format!("T 1 to {TABLES_MAX}, P 1 to 64, S 0 to {}", u64::MAX));
    let names = |good: &[&str], bad: &[&str]| {
        assert!(good.iter().all(|name| name.parse::<DesignName>().is_ok()), "{good:?}");
        assert!(bad.iter().all(|name| name.parse::<DesignName>().is_err()), "{bad:?}");
    };
    names(&["blocks-1", "blocks-16"], &["blocks-0", "blocks-17"]);
    names(
        &["choose-3-2", "choose-16-15", "choose-11-2"],
        &["choose-2-2", "choose-4-1", "choose-4-4", "choose-12-2"],
    );
    names(&["nested-2-8", "nested-8-2"], &["nested-1-2", "nested-2-9"]);
    names(&["prefix-1", "prefix-64", "reversed-64"], &["prefix-0", "reversed-65"]);
    names(
        &["random-1-64-0", "random-64-1-18446744073709551615"],
        &["random-65-1-0", "random-2-9-18446744073709551616"],
    );
}

#[test]
fn limits_and_constants_match_the_specification() {
    let magic = |bytes: [u8; 8]| bytes.map(|byte| format!("{byte:02X}")).join(" ");
    let limits = [
        ("version", VERSION.to_string()),
        ("magic of a header", magic(header::MAGIC)),
        ("magic of a footer", magic(footer::MAGIC)),
        ("alignment", ALIGNMENT.to_string()),
        ("page", PAGE.to_string()),
        ("header", HEADER_BYTES.to_string()),
        ("footer", FOOTER_BYTES.to_string()),
        ("entry of the table of contents", ENTRY_BYTES.to_string()),
        ("CURRENT", CURRENT_BYTES.to_string()),
        ("bits of a fingerprint", FINGERPRINT_BITS.to_string()),
        ("bits of a pointer", POINTER_BITS.to_string()),
        ("bytes of a design's name, at most", design::NAME_BYTES_MAX.to_string()),
        ("keys in a group", GROUP.to_string()),
        ("bits of a band key", KEY_BITS.to_string()),
        ("bytes of a sampled hash", samples::VALUE_BYTES.to_string()),
        ("bytes of a value, at most", attached::VALUE_BYTES_MAX.to_string()),
        ("bytes of a document's fields, at most", document_fields::FIELDS_BYTES_MAX.to_string()),
        ("classes of tags", CLASSES.to_string()),
        ("rank of no fingerprint", format!("{:#010x}", ranks::NO_RANK)),
        ("bit that says list", format!("{:#010x}", postings::LIST)),
        ("prefix of temporary names", TEMPORARY_PREFIX.to_owned()),
        ("version of Unicode", UNICODE_VERSION.to_owned()),
    ]
    .map(|(name, value)| vec![name.to_owned(), value]);
    compare("### Constants", &["constant", "value", "used for"], &limits);

    let limits = [
        ("documents of a segment", DOCUMENTS_MAX),
        ("bytes of a key", KEY_BYTES_MAX as u64),
        ("logs of an index", LOGS_MAX.into()),
        ("bytes of a log's record", log::RECORD_BYTES_MAX.into()),
        ("bytes of a value", attached::VALUE_BYTES_MAX as u64),
        ("bytes of a document's fields", document_fields::FIELDS_BYTES_MAX as u64),
        ("entries of prefixes of a segment", u32::MAX.into()),
        ("bytes of a payload", log::PAYLOAD_BYTES_MAX as u64),
        ("segments of an index", SEGMENTS_MAX.into()),
        ("bytes of parameters", PARAMS_BYTES_MAX.into()),
        ("bytes of a manifest", MANIFEST_BYTES_MAX),
        ("width of a shingle", SHINGLE_WIDTH_MAX.into()),
        ("within", WITHIN_MAX.into()),
        ("bands", BANDS_MAX.into()),
        ("minima", MINIMA_MAX.into()),
        ("bits of a feature", FEATURE_BITS_MAX.into()),
        ("hashes of a bottom sketch", BOTTOM_MAX.into()),
        ("hashes of a modular sketch", MODULAR_MAX as u64),
        ("documents of an IDF table", idf::IDF_DOCUMENTS_MAX),
        ("entries of an IDF table", idf::IDF_ENTRIES_MAX),
    ]
    .map(|(name, value)| vec![name.to_owned(), value.to_string()]);
    compare("## Limits", &["limit", "value", "what happens beyond it"], &limits);
}

/// Returns parameters whose encoding has every parameter name.
fn every_parameter() -> Params {
    let mut folded = Shingling::words(5, 0);
    folded.folding.invisible = true;
    folded.boilerplate = Some(0x1234);
    Params::builder()
        .shingling(folded)
        .simhash_weighted(3, SimhashWeights::Idf { table: 0x1234 })
        .minhash(20, 6)
        .feature_bits(8)
        .minhash_weights(MinhashWeights::Idf { table: 0x1234 })
        .weight_unit(WeightUnit::ONE)
        .bottom(100)
        .modulus(10)
        .sets()
        .suffixes()
        .marks()
        .priorities()
        .values()
        .expire_after(1)
        .near(Near::resembling(0.9).unwrap())
        .build()
        .unwrap()
}

#[test]
fn parameters_have_the_specified_names_order_and_values() {
    let specified = rows("### Parameters", &["name", "values", "meaning"]);
    let all = every_parameter();
    let mut names: Vec<&str> = all.fields().into_iter().map(|(name, _)| name).collect();
    // No parameters have both `codes` and sketches.
    let at = names.iter().position(|&name| name == "marks").unwrap();
    names.splice(at..at, ["codes", "codes-simhash", "codes-idf"]);
    assert_eq!(specified.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), names);
    // Parameters with fewer names must keep the specified order.
    let of_idf = Params::builder().simhash_weighted(9, SimhashWeights::Idf { table: 0x1234 });
    for min in [
        Params::builder().minhash(1, 1),
        Params::builder().codes(128, 9).marks(),
        of_idf.simhash_bits(128).marks(),
    ] {
        let min = min.build().unwrap();
        let mut rest = names.iter();
        assert!(min.fields().iter().all(|(name, _)| rest.any(|one| one == name)), "{:?}", min.fields());
    }

    let values = |name: &str| {
        let row = specified.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("no row {name}"));
        row[1].clone()
    };
    let listed = |names: &[&str]| names.join(", ");
    // Tokens that use a library's tables may have any Unicode version. Tokens that use the tables of this crate have a
    // fixed one.
    let tokens: Vec<String> = Tokens::ALL
        .iter()
        .map(|tokens| match tokens {
            Tokens::UnicodeWords | Tokens::Sentences => format!("{tokens}/U"),
            _ => format!("{tokens}/{}", tokens.unicode().unwrap()),
        })
        .collect();
    assert_eq!(values("tokens"), tokens.join(", "));
    assert_eq!(values("key"), listed(&["u64", "bytes"]));
    assert_eq!(values("normal-form"), "none, nfkc/U");
    if let Some(NormalForm::Nfkc(version)) = NormalForm::nfkc() {
        let mut composed = Shingling::words(5, 0);
        composed.normal_form = NormalForm::Nfkc(version);
        let params = Params::builder().shingling(composed).simhash(3).build().unwrap();
        assert!(params.encode().contains(&format!("\nnormal-form=nfkc/{version}\n")), "{}", params.encode());
    }
    assert_eq!(values("fold"), "invisible, marks/U, invisible+marks/U");
    assert_eq!(values("stop-words"), "words");
    let max = format!(
        "At most {} words and {} bytes, a separator for each word included",
        StopWords::WORDS_MAX,
        StopWords::BYTES_MAX
    );
    assert!(part("### Parameters").any(|line| line.contains(&max)), "{max}");
    assert_eq!(values("stemming"), listed(&Stemming::ALL.iter().map(|one| one.name()).collect::<Vec<_>>()));
    assert_eq!(values("width"), format!("1 to {SHINGLE_WIDTH_MAX}"));
    assert_eq!(Widths::union(&[2, 1]).unwrap().to_string(), "1+2");
    let hashes: Vec<&str> = ShingleHash::ALL.iter().map(|one| one.name()).collect();
    assert_eq!(values("shingle-hash"), listed(&hashes));
    assert_eq!(values("seed"), format!("0 to {}", u64::MAX));
    for weights in
        [SimhashWeights::Occurrences, SimhashWeights::Distinct, SimhashWeights::Idf { table: 0x1234 }]
    {
        let params = Params::builder().simhash_weighted(3, weights).build().unwrap();
        for (name, value) in params.fields() {
            match name {
                "simhash" => {
                    assert!(values(name).split(", ").any(|one| one == value), "{value}");
                }
                "idf" => assert_eq!(values(name), format!("{} hexadecimal digits", value.len())),
                "tables" | "codec" => assert_eq!(value, "auto"),
                _ => {}
            }
        }
    }
    assert_eq!(values("simhash"), listed(&["none", "occurrences", "distinct", "idf"]));
    assert_eq!(values("within"), format!("0 to {WITHIN_MAX}"));
    assert_eq!(values("tables"), listed(&["auto", "small", "fast", "the name of a design"]));
    let codecs: Vec<&str> = ["auto"].into_iter().chain(Complete::ALL.iter().map(|one| one.name())).collect();
    assert_eq!(values("codec"), format!("{}; the last four also followed by +2, +3 or +4", listed(&codecs)));
    for (name, partial) in
        [("planes", None), ("compact+2", Some(2)), ("manku+3", Some(3)), ("plain+4", Some(4))]
    {
        assert_eq!(name.parse::<Codecs>().unwrap().partial, partial);
    }
    assert!("planes+1".parse::<Codecs>().is_err() && "planes+5".parse::<Codecs>().is_err());
    let families: Vec<&str> = ["none"].into_iter().chain(Family::ALL.iter().map(|one| one.name())).collect();
    assert_eq!(values("minhash"), listed(&families));
    assert_eq!(values("minhash-weights"), listed(&["frequencies", "idf"]));
    assert_eq!(values("minhash-idf"), values("idf"));
    assert_eq!(values("minhash-unit"), format!("{} to {}", WeightUnit::MIN.units(), WeightUnit::MAX.units()));
    assert_eq!(values("bands"), format!("1 to {BANDS_MAX}"));
    assert_eq!(values("rows"), format!("1 to {MINIMA_MAX}"));
    assert_eq!(values("signature-bits"), SIGNATURE_BITS.map(|bits| bits.to_string()).join(", "));
    assert_eq!(values("feature-bits"), format!("1 to {}", FEATURE_BITS_MAX - 1));
    assert_eq!(values("bottom"), format!("0 to {BOTTOM_MAX}"));
    assert_eq!(values("modulus"), format!("0 to {}", u32::MAX));
    let is_kept = |name: &&str| values(name) == "kept" && all.encode().contains(&format!("\n{name}=kept\n"));
    assert!(["sets", "suffixes", "marks", "priorities", "values"].iter().all(is_kept));
    assert_eq!(values("expire-after"), format!("1 to {}", u64::MAX));
    assert_eq!(values("codes-simhash"), listed(&["occurrences", "distinct", "idf"]));
    assert_eq!(values("codes-idf"), values("idf"));
    assert_eq!(values("codes"), CODE_WIDTHS.map(|bits| bits.to_string()).join(", "));
    assert_eq!(values("near-within"), format!("none, 0 to {WITHIN_MAX}"));
}

#[test]
fn count_dependent_widths_change_at_the_specified_counts() {
    let table = rows("#### Prefix directory", &["rows", "bits"]);
    assert!(table.len() >= 4);
    for row in &table {
        assert_eq!(prefix_bits(number(&row[0]), 16), number::<u32>(&row[1]), "{row:?}");
    }
}

/// The sketching constants are private, so this test only compares the numbers in the specification with the source.
/// `golden_sketches.rs` tests their effect.
#[test]
fn sketching_constants_in_the_specification_equal_the_source() {
    let sources = [
        ("hash", include_str!("../../crates/sketch/src/hash.rs")),
        ("minhash", include_str!("../../crates/sketch/src/minhash/one_permutation.rs")),
        ("feature", include_str!("../../crates/sketch/src/feature.rs")),
        ("samples", include_str!("../../crates/sketch/src/samples.rs")),
        ("rabin", include_str!("../../crates/sketch/src/classic/rabin.rs")),
        ("rabin_karp", include_str!("../../crates/sketch/src/classic/rabin_karp.rs")),
        ("linear", include_str!("../../crates/sketch/src/classic/linear.rs")),
        ("multiply_shift", include_str!("../../crates/sketch/src/classic/multiply_shift.rs")),
        ("matrix", include_str!("../../crates/sketch/src/classic/matrix.rs")),
    ];
    let table = rows("### Constants of sketching", &["constant", "value", "source"]);
    let names: Vec<&str> = table.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        names,
        [
            "PI[0]",
            "PI[1]",
            "KEYS",
            "GROUPS",
            "LINEAR",
            "MULTIPLY_SHIFT",
            "MATRIX",
            "POLYNOMIALS",
            "BASES",
            "SAMPLES",
            "COUNT",
            "MIX[0]",
            "MIX[1]",
            "FILL[0]",
            "FILL[1]",
            "FILLED"
        ]
    );
    for row in &table {
        let (_, source) = sources.iter().find(|(name, _)| *name == row[2]).expect("a source that is known");
        let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let value = if row[0] == "FILLED" { "1 << 31".to_owned() } else { row[1].clone() };
        assert!(code.replace('_', "").contains(&value), "{} is not {} in the source", row[0], row[1]);
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn read(path: &Path) -> Vec<u8> {
    let file = RealVfs.open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// The records of the example in the specification's last section, in no particular order.
const RECORDS: [(&str, &str); 3] =
    [("tulip", "Ten tulips; nine tulips"), ("rose-2", "A ROSE is a rose."), ("rose-1", "a rose is a rose")];

fn three_records() -> Vec<u8> {
    let near = Near::resembling(0.8).unwrap().or_within(3);
    let builder = Params::builder().words(2).simhash(3).minhash(2, 2).bottom(2).modulus(3).near(near);
    let params = builder.tables("blocks-4".parse().unwrap(), "planes+2".parse().unwrap()).build().unwrap();
    let sketcher = Sketcher::new(&params).unwrap();
    let mut records = Records::new(&params);
    for (key, text) in RECORDS {
        let sketch = sketcher.sketch(text).unwrap();
        let mut signature = Vec::new();
        pack(sketch.signature(), 8, &mut signature);
        let fingerprint = sketch.fingerprint().unwrap().0;
        let (features, signature) = (sketch.features(), &signature[..]);
        let (bottom, modular) = (sketch.bottom(), sketch.modular());
        let kept = Kept { fingerprint, features, signature, bottom, modular };
        records.push(Key::from(key), Some(kept)).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000001.seg");
    build::build(&records, &RealVfs, dir.path()).unwrap().publish(&path).unwrap();
    read(&path)
}

/// After an intended change of the format, `TWINDEX_WRITE_GOLDEN=1` writes the file again. Then replace
/// `docs/format/three-records.txt` by the output of `tests/second/read_segment.py --dump`.
#[test]
fn three_record_file_equals_the_committed_file() {
    let path = golden("three-records.seg");
    let bytes = three_records();
    if std::env::var_os("TWINDEX_WRITE_GOLDEN").is_some_and(|value| value == "1") {
        let mut file = RealVfs.create_temporary(path.parent().unwrap()).unwrap();
        file.append(&bytes).unwrap();
        file.publish(&path, true).unwrap();
    }
    let committed = read(&path);
    if let Some(at) = (0..bytes.len().max(committed.len())).find(|&at| bytes.get(at) != committed.get(at)) {
        panic!(
            "byte {at}: built {:02x?}, committed {:02x?} ({} and {} bytes)",
            bytes.get(at),
            committed.get(at),
            bytes.len(),
            committed.len()
        );
    }
}

#[test]
fn worked_example_shows_bytes_of_the_three_record_file() {
    let bytes = read(&golden("three-records.seg"));
    let lines = part("### A worked example").skip_while(|line| *line != "```text").skip(1);
    let lines: Vec<_> = lines.take_while(|line| *line != "```").collect();
    for line in &lines {
        let (offset, rest) = line.trim_start().split_once("  ").expect("an offset");
        let hex = rest.split("   ").next().expect("bytes");
        let shown: Vec<u8> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert_eq!(bytes[number(offset)..][..shown.len()], shown, "{line}");
    }
    assert!(lines.len() > 10, "{lines:?}");
}

#[test]
fn annotated_dump_equals_the_three_record_file() {
    for (key, text) in RECORDS {
        let row = format!("| `{key}` | `{text}` |");
        assert!(part("## A file of three records").any(|line| line == row), "no row {row}");
    }
    let mut shown = Vec::new();
    for line in include_str!("../../docs/format/three-records.txt").lines() {
        let (offset, rest) =
            line.trim_start().split_once("  ").unwrap_or_else(|| panic!("no offset: {line}"));
        let (hex, meaning) = rest.split_once("  ").unwrap_or((rest, ""));
        assert!(!meaning.trim().is_empty(), "a line without a meaning: {line}");
        assert_eq!(number::<usize>(offset), shown.len(), "offset of `{line}`");
        if let Some((zero, count)) = hex.split_once(" x ") {
            assert_eq!(zero.trim(), "00", "{line}");
            shown.resize(shown.len() + number::<usize>(count.trim()), 0);
        } else {
            shown.extend(hex.split_whitespace().map(|byte| {
                assert_eq!(byte.len(), 2, "{line}");
                u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("no hexadecimal: {line}"))
            }));
        }
    }
    let expected = read(&golden("three-records.seg"));
    let hex = |bytes: &[u8]| {
        bytes.chunks(16).fold(String::new(), |mut text, row| {
            let _ = writeln!(text, "{row:02x?}");
            text
        })
    };
    assert_eq!(hex(&shown), hex(&expected), "left the dump, right the file");
}
