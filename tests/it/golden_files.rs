//! Tests that files written once can always be read. `tests/golden/index-v3` has committed indexes of format 3: `texts`,
//! `living`, `grown`, and one for each of [`SCHEMES`], which together use every codec and every kind of design. Each must
//! open and give the same query results, and indexing its documents again must reproduce its segments byte for byte.
//! Older segments with bands lack the feature `packed`, so they are compared with the files of
//! `tests/golden/index-v3-packed` instead. `tests/golden/index-v3-narrow` has an index with fewer than 32 bits per
//! feature, `index-v3-near` one that stores its near relation, and `index-v3-fields` three that store sets and marks.
//! `sets.sketches` is a file of sketches with sets.
//!
//! This test wrote the files with `TWINDEX_WRITE_GOLDEN=1`, which creates missing files and never replaces one. The
//! batches below are the complete history of the indexes. A change of the format adds a new directory. A directory is
//! kept forever once its format version has been declared final.
//!
//! `tests/second/read_segment.py`, written only from `format-spec.md`, reads the same segments and must find the same content.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use twindex::design::{CodecChoice, Complete, DesignChoice};
use twindex::format::attached::Attached;
use twindex::format::bands::{CODEC_BYTES, CODEC_PACKED};
use twindex::format::contents::Kind;
use twindex::format::fields::{self, Fields};
use twindex::format::header::{
    FEATURE_BOILERPLATE, FEATURE_CODES, FEATURE_FIELDS, FEATURE_GROWN, FEATURE_LOG, FEATURE_NARROW,
    FEATURE_NEAR, FEATURE_PACKED, FEATURE_PARTS, FEATURE_PRIORITIES, FEATURE_SIMHASHES, FEATURE_STAMPS,
    FEATURE_SUFFIXES, FEATURE_TEXT, FEATURE_VALUES, FEATURE_WEIGHTS, Refusal,
};
use twindex::format::hot;
use twindex::format::manifest::Manifest;
use twindex::format::sketches::{Decoder, Encoded, Encoder};
use twindex::format::table::Codec;
use twindex::params::{Near, ParamsBuilder};
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment, build as segment_of};
use twindex::sketch::{Nearness, Resemblance};
use twindex::sys::{RealVfs, Vfs};
use twindex::{Admitted, Code, Document, Error, Index, Key, KeyBuf, Params, Snapshot, Writer, WriterOptions};

use crate::support::skip::{Missing, skip};

/// The batches, in order. The second replaces one document of the first and deletes another. One text has no tokens, two
/// differ only in case, and `fox-2` is near `fox-1`.
const BATCHES: [&[(&str, Option<&str>)]; 2] = [
    &[
        (
            "fox-1",
            Some("The quick brown fox jumps over the lazy dog while the farmer sleeps in the warm barn"),
        ),
        (
            "fox-2",
            Some("The quick brown fox jumps over the lazy cat while the farmer sleeps in the warm barn"),
        ),
        (
            "fox-3",
            Some("THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG WHILE THE FARMER SLEEPS IN THE WARM BARN"),
        ),
        ("empty", Some(" -- ")),
        ("rain", Some("Rain fell on the hills all night and the river rose to the lower meadow by dawn")),
        ("word", Some("word")),
        ("zug", Some("Der Zug nach Łódź fährt um 7 Uhr, 東京 ist weiter")),
        ("old", Some("This document will be replaced by the second batch and must not be found again")),
        ("gone", Some("This document will be deleted by the second batch and must not be found again")),
    ],
    &[
        ("old", Some("The new text of the old document speaks of ships that sail to the northern islands")),
        ("gone", None),
        ("fox-4", Some("A quick brown fox jumps over the lazy dog while the farmer sleeps in the warm barn")),
        ("ship", Some("The new text of the old document speaks of ships that sail to the southern islands")),
    ],
];

fn params() -> Params {
    let builder = Params::builder().words(2).simhash(3).minhash(8, 2).signature_bits(4);
    let (design, codec) = choices("blocks-4", "planes+2");
    builder.tables(design, codec).bottom(5).modulus(4).near(either()).build().unwrap()
}

/// Returns the near relation that parameters without its lines have. It was the default when the files were made.
fn either() -> Near {
    Near::resembling(0.8).unwrap().or_within(3)
}

/// The design, the codec and the number of documents of each index that [`committed_as`] names. With `auto`, the cost model
/// of this version chooses the design and the codecs; if only the cost model changes, only the index for `auto` must be
/// regenerated.
const SCHEMES: [(&str, &str, u64); 8] = [
    ("auto", "auto", 100),
    ("blocks-3", "planes+3", 200),
    ("choose-5-2", "compact+4", 100),
    // The bit stream of the codec `compact` is longer than 4096 bits, so that the table stores a rank sample for it.
    ("expansion", "compact", 3200),
    ("nested-4-4", "plain+2", 100),
    ("random-3-12-7", "manku", 400),
    ("reversed-20", "plain", 100),
    ("prefix-30", "planes", 100),
];

fn choices(design: &str, codec: &str) -> (DesignChoice, CodecChoice) {
    (design.parse().unwrap(), codec.parse().unwrap())
}

fn params_of(design: &str, codec: &str) -> Params {
    let (design, codec) = choices(design, codec);
    Params::builder().u64_keys().words(1).simhash(1).tables(design, codec).build().unwrap()
}

/// Returns the text of a document. Every seventh text has no tokens, and every fifth is similar to the previous one.
fn numbered(number: u64) -> String {
    if number % 7 == 6 {
        String::new()
    } else {
        format!("text number {}", number - u64::from(number % 5 == 4))
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

/// Returns the sorted names of the files in a directory, without the lock file, which contains a process number.
fn names(dir: &Path) -> Vec<String> {
    let names = RealVfs.list(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> = names.into_iter().map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "LOCK");
    names.sort();
    names
}

fn build(path: &Path) {
    let index = Index::create(path, params()).unwrap();
    let sketcher = index.sketcher().unwrap();
    for batch in BATCHES {
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        for &(key, text) in batch {
            match text {
                Some(text) => writer.put(key, &sketcher.sketch(text).unwrap()).unwrap(),
                None => writer.delete(key).unwrap(),
            }
        }
        writer.commit().unwrap();
    }
}

/// Builds an index with values and stamps whose writer was not closed. Its segment has one deleted and one expired
/// document, and its log has two batches, one of them with a payload.
fn build_living(path: &Path) {
    let params = Params::builder().words(1).simhash(3).minhash(2, 2).values().expire_after(60).near(either());
    let index = Index::create(path, params.build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    let put = |writer: &mut twindex::Writer, key: &str, stamp: u64| {
        let value = format!("value of {key} at {stamp}");
        let sketch = sketcher.sketch(&numbered(stamp)).unwrap();
        let document = Document::from(&sketch).with_value(value.as_bytes()).with_stamp(stamp);
        writer.put(key, document).unwrap();
    };
    for (key, stamp) in [("a", 1000), ("b", 1030), ("c", 1050), ("d", 1051)] {
        put(&mut writer, key, stamp);
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.delete("d").unwrap();
    put(&mut writer, "c", 1055);
    put(&mut writer, "e", 1060);
    writer.commit().unwrap();
    put(&mut writer, "f", 1061);
    writer.commit_with(b"as far as f").unwrap();
}

/// Builds an index whose manifest records the length of its active log. That log has one batch within the recorded length
/// and one after it. The previous log was removed when its batch was flushed to the segment.
fn build_grown(path: &Path) {
    let params = Params::builder().u64_keys().words(1).simhash(3).minhash(2, 2).near(either());
    let index = Index::create(path, params.build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..4 {
        writer.put(number, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.delete(1).unwrap();
    writer.put(4, &sketcher.sketch(&numbered(4)).unwrap()).unwrap();
    writer.commit().unwrap();
    writer.put(5, &sketcher.sketch(&numbered(5)).unwrap()).unwrap();
    writer.delete(2).unwrap();
    writer.commit_with(b"five").unwrap();
}

/// Builds an index with eight bits per feature: a segment with one deleted document, and a log.
fn build_narrow(path: &Path) {
    let params = Params::builder().u64_keys().words(1).minhash(8, 2).signature_bits(2).feature_bits(8);
    let index = Index::create(path, params.build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..40 {
        writer.put(number, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.delete(1).unwrap();
    for number in 40..45 {
        writer.put(number, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
}

/// Builds an index of the same documents that stores its near relation; it has a segment and a log.
fn build_near(path: &Path) {
    let params = Params::builder().u64_keys().words(1).simhash(3).minhash(8, 2).signature_bits(2);
    let near = Near::resembling(0.95).unwrap().or_within(1);
    let index = Index::create(path, params.near(near).build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..40 {
        writer.put(number, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.put(40, &sketcher.sketch(&numbered(40)).unwrap()).unwrap();
    writer.commit().unwrap();
}

/// Returns a text. All texts share twelve words. Each text with an odd number is near the previous one, and every ninth
/// has no tokens. One text is so long that its set is encoded with a bitmap of high bytes.
fn crowd(number: u64) -> String {
    if number % 9 == 8 {
        return "!".repeat(number as usize);
    }
    let more = if number == 5 { 40 } else { 0 };
    let own = (0..6 + more).map(|word| {
        let family = if word == 0 { number } else { number / 2 };
        format!("w{word}of{family}")
    });
    let common = "the of and to in a is that it was for on".split(' ').map(str::to_owned);
    common.chain(own).collect::<Vec<_>>().join(" ")
}

fn params_with_sets() -> twindex::params::ParamsBuilder {
    Params::builder().words(1).minhash(4, 2).signature_bits(1).sets()
}

/// Builds an index with sets and marks. Its segment has one deleted document, and too few documents for common tags. Its
/// log adds one marked and one unmarked document.
fn build_sets(path: &Path) {
    build_crowd(path, params_with_sets());
}

/// Builds the index of [`build_sets`] with suffixes.
fn build_suffixes(path: &Path) {
    build_crowd(path, params_with_sets().suffixes());
}

fn build_crowd(path: &Path, builder: ParamsBuilder) {
    let index = Index::create(path, builder.marks().build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..12 {
        writer.admit(format!("page {number}").as_str(), &sketcher.sketch(&crowd(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.delete("page 3").unwrap();
    for number in 12..14 {
        writer.admit(format!("page {number}").as_str(), &sketcher.sketch(&crowd(number)).unwrap()).unwrap();
    }
    writer.commit_with(b"fourteen").unwrap();
}

/// Builds a segment with enough similar documents to have common tags, which the specification defines under "Common tags".
fn build_common(path: &Path) {
    let index = Index::create(path, params_with_sets().u64_keys().marks().build().unwrap()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for number in 0..46 {
        writer.admit(number * 1000, &sketcher.sketch(&crowd(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
}

/// Builds an index with marks but without sets; it has a segment and a log.
fn build_marks(path: &Path) {
    let index =
        Index::create(path, Params::builder().u64_keys().words(1).simhash(3).marks().build().unwrap())
            .unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer().unwrap();
    for number in 0..20 {
        writer.admit(number, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    for number in 20..25 {
        writer.admit(number, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
}

/// Returns a code near those of the same fifth of the numbers.
fn code_of(number: u64) -> Code {
    let mut words = [(number / 5).wrapping_mul(0x9E37_79B9_7F4A_7C15); 3];
    words[number as usize % 3] ^= 1 << (number % 5);
    Code::of_words(&words).unwrap()
}

/// Builds an index of fingerprints of 192 bits with marks and priorities; it has a segment and a log.
fn build_codes(path: &Path) {
    let params = Params::builder().u64_keys().codes(192, 9).marks().priorities().build().unwrap();
    let index = Index::create(path, params).unwrap();
    let mut writer = index.writer().unwrap();
    let admit = |writer: &mut Writer, numbers: std::ops::Range<u64>| {
        for number in numbers {
            writer.admit(number, Document::from(code_of(number)).with_priority(number * number)).unwrap();
        }
        writer.commit().unwrap();
    };
    admit(&mut writer, 0..20);
    writer.flush().unwrap();
    admit(&mut writer, 20..25);
}

/// Builds an index of fingerprints of 192 bits whose segment has seven parts. A writer makes parts only for many documents.
fn build_parts(path: &Path) {
    let params = Params::builder().u64_keys().codes(192, 9).build().unwrap();
    let (mut records, mut encoded) = (Records::new(&params), Vec::new());
    for number in 0..40 {
        fields::encode(&params, false, code_of(number).words(), None, &mut encoded);
        let attached = Attached { fields: Fields::of(&encoded), ..Attached::default() };
        records.push_with(Key::U64(number), None, attached).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let segment = dir.path().join("parts.seg");
    segment_of::build_with_parts(&records, &RealVfs, dir.path(), 7).unwrap().publish(&segment).unwrap();
    Index::adopt(path, params, &[segment]).unwrap();
}

/// Builds an index of simhashes of 192 bits of texts; some have no words. It has a segment and a log.
fn build_simhashes(path: &Path) {
    let params = Params::builder().u64_keys().words(2).simhash(20).simhash_bits(192).build().unwrap();
    let index = Index::create(path, params).unwrap();
    let (sketcher, mut writer) = (index.sketcher().unwrap(), index.writer().unwrap());
    let put = |writer: &mut Writer, numbers: std::ops::Range<u64>| {
        for number in numbers {
            writer.put(number, &sketcher.sketch(&crowd(number)).unwrap()).unwrap();
        }
        writer.commit().unwrap();
    };
    put(&mut writer, 0..20);
    writer.flush().unwrap();
    put(&mut writer, 20..25);
}

/// Returns a file of sketches with the sets of these texts. Its parameters include marks, but a file of sketches stores
/// none.
fn sketches_with_sets() -> Vec<u8> {
    let params = params_with_sets().marks().build().unwrap();
    let sketcher = twindex::Sketcher::new(&params).unwrap();
    let (mut file, mut records, mut set) = (Vec::new(), Encoded::new(&params), Vec::new());
    let mut encoder = Encoder::new(&params, &mut file);
    for number in 0..20 {
        let sketch = sketcher.sketch(&crowd(number)).unwrap();
        let mut signature = Vec::new();
        twindex::sketch::pack(sketch.signature(), 1, &mut signature);
        let row = Kept { features: sketch.features(), signature: &signature, ..Kept::default() };
        fields::encode(&params, false, sketch.set(), None, &mut set);
        let key = format!("page {number}");
        records
            .push_with(key.as_str().into(), (!sketch.is_empty()).then_some(row), Fields::of(&set))
            .unwrap();
    }
    encoder.append(&records, &mut file);
    encoder.finish(&mut file);
    file
}

fn build_numbered(path: &Path, design: &str, codec: &str, documents: u64) {
    let index = Index::create(path, params_of(design, codec)).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for number in 0..documents {
        writer.put(number * 1000, &sketcher.sketch(&numbered(number)).unwrap()).unwrap();
    }
    writer.commit().unwrap();
}

/// Returns the path of a committed index: `texts`, or the name of a design. If the environment variable is set and the
/// index is missing, builds it and copies it into the source tree.
fn committed_as(name: &str) -> PathBuf {
    static ONCE: Once = Once::new();
    let dir = golden("index-v3");
    ONCE.call_once(|| {
        write_on_request(&packed(), build);
        write_on_request(&narrow(), build_narrow);
        write_on_request(&near(), build_near);
        for (name, build, ..) in WITH_FIELDS {
            write_on_request(&with_fields(name), build);
        }
        write_on_request(&with_fields("codes"), build_codes);
        write_on_request(&with_fields("parts"), build_parts);
        write_on_request(&with_fields("simhashes"), build_simhashes);
        let sketches = golden("sets.sketches");
        if is_requested() && !RealVfs.exists(&sketches).unwrap() {
            let mut file = RealVfs.create_temporary(sketches.parent().unwrap()).unwrap();
            file.append(&sketches_with_sets()).unwrap();
            file.publish(&sketches, false).unwrap();
        }
        write_on_request(&dir.join("texts"), build);
        write_on_request(&dir.join("living"), build_living);
        write_on_request(&dir.join("grown"), build_grown);
        for (design, codec, documents) in SCHEMES {
            write_on_request(&dir.join(design), |path| build_numbered(path, design, codec, documents));
        }
    });
    dir.join(name)
}

fn committed() -> PathBuf {
    committed_as("texts")
}

/// Returns the path of the index `texts` with the feature `packed`.
fn packed() -> PathBuf {
    golden("index-v3-packed").join("texts")
}

/// Returns the path of an index with the feature `narrow`.
fn narrow() -> PathBuf {
    golden("index-v3-narrow").join("bytes")
}

/// Returns the path of an index with the feature `near`.
fn near() -> PathBuf {
    golden("index-v3-near").join("stored")
}

/// An index with the feature `fields`: its name, its builder, a function from a document's number to its text, the number
/// of live documents, and the features of its segment.
type FieldsCase = (&'static str, fn(&Path), fn(u64) -> String, u64, u32);
const WITH_FIELDS: [FieldsCase; 4] = [
    ("sets", build_sets, crowd, 13, FEATURE_PACKED | FEATURE_FIELDS),
    ("common", build_common, crowd, 46, FEATURE_PACKED | FEATURE_FIELDS),
    ("marks", build_marks, numbered, 25, FEATURE_FIELDS),
    ("suffixes", build_suffixes, crowd, 13, FEATURE_PACKED | FEATURE_FIELDS | FEATURE_SUFFIXES),
];

fn with_fields(name: &str) -> PathBuf {
    golden("index-v3-fields").join(name)
}

fn is_requested() -> bool {
    std::env::var_os("TWINDEX_WRITE_GOLDEN").is_some_and(|value| value == "1")
}

fn write_on_request(dir: &Path, build: impl FnOnce(&Path)) {
    if !is_requested() || RealVfs.exists(dir).unwrap() {
        return;
    }
    let built = tempfile::tempdir().unwrap();
    let built = built.path().join("index");
    build(&built);
    for dir in [dir.parent().unwrap(), dir] {
        if !RealVfs.exists(dir).unwrap() {
            RealVfs.create_dir(dir).unwrap();
        }
    }
    for name in names(&built) {
        let mut file = RealVfs.create_temporary(dir).unwrap();
        file.append(&read(&built.join(&name))).unwrap();
        file.publish(&dir.join(&name), false).unwrap();
    }
}

fn text(key: &str) -> &'static str {
    let all = BATCHES.iter().flat_map(|batch| batch.iter());
    all.rev().find(|(name, _)| *name == key).and_then(|(_, text)| *text).unwrap()
}

#[test]
fn format_3_index_gives_the_recorded_answers() {
    for (path, features) in [(committed(), 0), (packed(), FEATURE_PACKED)] {
        assert_eq!(read(&path.join("000001.seg"))[12..16], features.to_le_bytes());
        check_recorded_answers(&Index::open(path).unwrap_or_else(|error| panic!("{error}")).snapshot());
    }
}

fn check_recorded_answers(snapshot: &Snapshot) {
    assert_eq!(snapshot.params(), &params());
    assert_eq!((snapshot.generation(), snapshot.documents()), (3, 10));
    let segments: Vec<(u64, u64)> =
        snapshot.entries().iter().map(|e| (e.documents, e.deleted.len())).collect();
    assert_eq!(segments, [(9, 2), (3, 0)]);
    for (segment, _) in snapshot.segments() {
        let problems = segment.verify(|_| ());
        assert!(problems.is_empty(), "{problems:?}");
    }

    let sketcher = twindex::Sketcher::new(&params()).unwrap();
    for batch in BATCHES {
        for (key, _) in batch {
            let record = snapshot.get(*key).unwrap();
            if *key == "gone" {
                assert!(record.is_none());
                continue;
            }
            let record = record.unwrap_or_else(|| panic!("{key} is missing"));
            let sketch = sketcher.sketch(text(key)).unwrap();
            assert_eq!(record.fingerprint, sketch.fingerprint(), "{key}");
            assert_eq!((record.bottom, record.modular), (sketch.bottom().into(), sketch.modular().into()));
        }
    }
    assert!(snapshot.get("fox-5").unwrap().is_none());

    let near = |query: &str| {
        let hits = snapshot.near(&sketcher.sketch(query).unwrap()).run().unwrap().hits;
        hits.into_iter().map(|hit| (hit.key.to_string(), hit.distance)).collect::<Vec<_>>()
    };
    let hit = |key: &str, distance| (key.to_owned(), Some(distance));
    assert_eq!(near(text("rain")), [hit("rain", 0)]);
    assert_eq!(near("word"), [hit("word", 0)]);
    assert_eq!(near("nothing of this is there"), []);
    assert_eq!(near(BATCHES[0][7].1.unwrap()), [], "the replaced text is found");
    assert_eq!(near(BATCHES[0][8].1.unwrap()), [], "the deleted text is found");
    let foxes = near(text("fox-1"));
    assert_eq!(foxes[..2], [hit("fox-1", 0), hit("fox-3", 0)], "{foxes:?}");
    assert_eq!(near(text("ship"))[0], hit("ship", 0));
}

#[test]
fn format_3_index_with_log_and_values_keeps_its_content() {
    let snapshot = Index::open(committed_as("living")).unwrap_or_else(|error| panic!("{error}")).snapshot();
    assert_eq!((snapshot.now(), snapshot.payload()), (Some(1061), Some(&b"as far as f"[..])));
    assert_eq!((snapshot.entries().len(), snapshot.logged_documents()), (1, 3));
    let sketcher = twindex::Sketcher::new(snapshot.params()).unwrap();
    let mut keys = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf().to_string());
            Ok(())
        })
        .unwrap();
    // At time 1060 the first document has expired, and the fourth is deleted.
    assert_eq!(keys, ["b", "c", "e", "f"]);
    for (key, stamp) in [("b", 1030), ("c", 1055), ("e", 1060), ("f", 1061)] {
        let record = snapshot.get(key).unwrap().unwrap();
        assert_eq!(record.stamp, Some(stamp), "{key}");
        assert_eq!(record.value, Some(format!("value of {key} at {stamp}").into_bytes()));
        let sketch = sketcher.sketch(&numbered(stamp)).unwrap();
        assert_eq!(record.fingerprint, sketch.fingerprint(), "{key}");
        let near = snapshot.near(&sketch).run().unwrap().hits;
        assert!(near.iter().any(|hit| hit.key.to_string() == key && hit.distance == Some(0)), "{key}");
    }
    let problems = twindex::store::verify::verify(&RealVfs, &committed_as("living"), |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn format_3_index_with_log_length_detects_a_truncated_log() {
    let committed = committed_as("grown");
    let names = names(&committed);
    assert_eq!(names, ["000001.seg", "CURRENT", "LOG-000002", "MANIFEST-000003", "MANIFEST-000004"]);
    let manifest_bytes = read(&committed.join("MANIFEST-000004"));
    assert_eq!(manifest_bytes[12..16], (FEATURE_LOG | FEATURE_GROWN).to_le_bytes());
    let manifest = Manifest::decode(&manifest_bytes).unwrap();
    assert_eq!(manifest.encode(), manifest_bytes, "what is written has changed");
    let log = manifest.logged.unwrap().logs[0];
    let length = read(&committed.join("LOG-000002")).len() as u64;
    assert!(log.grows && log.length > 88 && log.length < length, "{log:?} of {length} bytes");

    let check = |snapshot: &Snapshot, expected: &[u64]| {
        let mut keys = Vec::new();
        let take = |key: twindex::Key<'_>| {
            keys.push(key.to_buf());
            Ok(())
        };
        snapshot.for_each_key(take).unwrap();
        assert_eq!(keys, expected.iter().map(|&key| KeyBuf::U64(key)).collect::<Vec<_>>());
        let sketcher = twindex::Sketcher::new(snapshot.params()).unwrap();
        for &key in expected {
            let sketch = sketcher.sketch(&numbered(key)).unwrap();
            assert_eq!(snapshot.get(key).unwrap().unwrap().fingerprint, sketch.fingerprint(), "{key}");
            let near = snapshot.near(&sketch).run().unwrap().hits;
            assert!(near.iter().any(|hit| hit.key == KeyBuf::U64(key)), "{key}");
        }
    };
    let snapshot = Index::open(&committed).unwrap_or_else(|error| panic!("{error}")).snapshot();
    assert_eq!((snapshot.entries().len(), snapshot.payload()), (1, Some(&b"five"[..])));
    check(&snapshot, &[0, 3, 4, 5]);
    let problems = twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");

    // After the recorded length, the log may be torn as after a crash. A log shorter than that has lost data.
    check(&open_with_log_of(&committed, log.length).unwrap(), &[0, 2, 3, 4]);
    for length in [log.length - 1, 89, 88, 0] {
        let error = open_with_log_of(&committed, length).map(drop).expect_err("a log that was cut");
        assert!(error.is_corruption() && error.to_string().contains("LOG-000002"), "{length}: {error}");
    }
}

/// Opens a copy of the index `committed` whose log is truncated to `length` bytes.
fn open_with_log_of(committed: &Path, length: u64) -> twindex::Result<Snapshot> {
    let dir = tempfile::tempdir().unwrap();
    for name in names(committed) {
        let mut bytes = read(&committed.join(&name));
        if name.starts_with("LOG") {
            bytes.truncate(length as usize);
        }
        let mut copy = RealVfs.create_temporary(dir.path()).unwrap();
        copy.append(&bytes).unwrap();
        copy.publish(&dir.path().join(name), false).unwrap();
    }
    Index::open(dir.path()).map(|index| index.snapshot())
}

#[test]
fn format_3_log_of_unknown_length_without_its_first_batch_is_damaged() {
    let committed = committed_as("living");
    let manifest = Manifest::decode(&read(&committed.join("MANIFEST-000004"))).unwrap();
    let log = manifest.logged.unwrap().logs[0];
    assert!(log.grows && log.length == 0, "{log:?}");
    // The first batch ends at 240, the second at 352.
    for (length, documents) in [(351, 3), (240, 3)] {
        assert_eq!(open_with_log_of(&committed, length).unwrap().documents(), documents, "{length}");
    }
    // The manifest contains the deletes of the first batch. Without this batch, the index would be in a state that never
    // existed.
    for length in [239, 89, 88] {
        let error =
            open_with_log_of(&committed, length).map(drop).expect_err("a log without its first batch");
        let expected =
            "damaged: log at offset 88: expected a batch from commit 4 on, found the end of the log";
        assert!(error.is_corruption() && error.to_string().contains(expected), "{length}: {error}");
    }
}

#[test]
fn unknown_manifest_feature_is_refused_and_its_number_reported() {
    // The next feature bit is unknown to this reader, as `grown` was to older readers.
    let bytes = read(&committed_as("grown").join("MANIFEST-000004"));
    let of_sketches =
        FEATURE_NARROW | FEATURE_TEXT | FEATURE_NEAR | FEATURE_FIELDS | FEATURE_WEIGHTS | FEATURE_BOILERPLATE;
    let known = FEATURE_LOG | FEATURE_GROWN | FEATURE_VALUES | FEATURE_STAMPS | FEATURE_PRIORITIES;
    let known = known | FEATURE_SUFFIXES | FEATURE_CODES | FEATURE_SIMHASHES | of_sketches;
    for unknown in [FEATURE_PACKED, FEATURE_CODES << 1, 1 << 31] {
        let mut changed = bytes.clone();
        let features = FEATURE_LOG | FEATURE_GROWN | unknown;
        changed[12..16].copy_from_slice(&features.to_le_bytes());
        seal_header(&mut changed);
        let refused = Manifest::decode(&changed).unwrap_err();
        let Refusal::Unsupported(field, found, supported) = refused else { panic!("not by name") };
        assert_eq!((field, found), ("incompatible feature set", format!("{features:#x}")));
        assert_eq!(supported, format!("{known:#x}; use a newer version"));
    }
    // Clearing a known feature bit is detected, because without the feature the log length is invalid.
    let mut changed = bytes;
    changed[12..16].copy_from_slice(&FEATURE_LOG.to_le_bytes());
    seal_header(&mut changed);
    let (body, salt) = (changed.len() - 4, u128::from_le_bytes(changed[24..40].try_into().unwrap()));
    let sum = twindex::format::checksum::checksum(salt, 0, &changed[..body]);
    changed[body..].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(Manifest::decode(&changed), Err(Refusal::Damaged(_))));
}

#[test]
fn format_3_index_with_eight_bit_features_is_rebuilt_exactly() {
    committed();
    let committed = narrow();
    let names = names(&committed);
    assert_eq!(names, ["000001.seg", "CURRENT", "LOG-000002", "MANIFEST-000003", "MANIFEST-000004"]);
    // Readers that do not know the feature must refuse each of these files.
    let features = |name: &str| u32::from_le_bytes(read(&committed.join(name))[12..16].try_into().unwrap());
    assert_eq!(features("000001.seg"), FEATURE_PACKED | FEATURE_NARROW);
    assert_eq!(features("LOG-000002"), FEATURE_NARROW);
    assert_eq!(features("MANIFEST-000004"), FEATURE_LOG | FEATURE_GROWN | FEATURE_NARROW);
    // A feature bit that was cleared or set is detected.
    let mut log = read(&committed.join("LOG-000002"));
    let manifest = Manifest::decode(&read(&committed.join("MANIFEST-000004"))).unwrap();
    let decode =
        |log: &[u8]| twindex::format::log::decode_head(&log[..88], manifest.uuid, &manifest.params, 2);
    decode(&log).unwrap();
    log[12] = 0;
    seal_header(&mut log);
    assert!(matches!(decode(&log), Err(Refusal::Damaged(_))));

    let snapshot = Index::open(&committed).unwrap_or_else(|error| panic!("{error}")).snapshot();
    assert_eq!(snapshot.params().minhash.unwrap().feature_bits, 8);
    assert_eq!((snapshot.documents(), snapshot.logged_documents(), snapshot.entries().len()), (44, 5, 1));
    let sketcher = twindex::Sketcher::new(snapshot.params()).unwrap();
    for number in (0..45).filter(|&number| number != 1 && number % 7 != 6) {
        let sketch = sketcher.sketch(&numbered(number)).unwrap();
        let hits = snapshot.resembling(&sketch, 0.0).sharing(8).run().unwrap().hits;
        assert!(hits.iter().any(|hit| hit.key == KeyBuf::U64(number)), "{number}");
    }
    let problems = twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");

    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("index");
    build_narrow(&built);
    assert!(read(&built.join("000001.seg")) == read(&committed.join("000001.seg")), "another segment");
}

#[test]
fn format_3_index_with_near_relation_is_rebuilt_exactly() {
    committed();
    let committed = near();
    let features = |name: &str| u32::from_le_bytes(read(&committed.join(name))[12..16].try_into().unwrap());
    assert_eq!(features("000001.seg"), FEATURE_PACKED | FEATURE_NEAR);
    assert_eq!(features("LOG-000002"), FEATURE_NEAR);
    assert_eq!(features("MANIFEST-000004"), FEATURE_LOG | FEATURE_GROWN | FEATURE_NEAR);
    let snapshot = Index::open(&committed).unwrap_or_else(|error| panic!("{error}")).snapshot();
    assert_eq!(snapshot.params().near(), Near::resembling(0.95).unwrap().or_within(1));
    assert!(snapshot.params().encode().ends_with("\nmodulus=0\nthreshold=0.95\nnear-within=1\n"));
    assert_eq!((snapshot.documents(), snapshot.logged_documents()), (41, 1));
    let problems = twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems;
    assert!(problems.is_empty(), "{problems:?}");

    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("index");
    build_near(&built);
    assert!(read(&built.join("000001.seg")) == read(&committed.join("000001.seg")), "another segment");
}

#[test]
fn format_3_indexes_with_sets_and_marks_are_rebuilt_exactly() {
    committed();
    let dir = tempfile::tempdir().unwrap();
    for (name, build, text, documents, features) in WITH_FIELDS {
        let committed = with_fields(name);
        let snapshot = Index::open(&committed).unwrap_or_else(|error| panic!("{error}")).snapshot();
        assert_eq!(snapshot.documents(), documents, "{name}");
        assert_eq!(read(&committed.join("000001.seg"))[12..16], features.to_le_bytes(), "{name}");
        let problems = twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems;
        assert!(problems.is_empty(), "{name}: {problems:?}");

        let sketcher = twindex::Sketcher::new(snapshot.params()).unwrap();
        let (segment, _) = snapshot.segments().next().unwrap();
        let (mut marked, mut common) = (0, 0);
        for ordinal in 0..segment.documents() as u32 {
            let sketch = sketcher.sketch(&text(number_of(&segment.key(ordinal).unwrap()))).unwrap();
            let mut set = Vec::new();
            segment.set(ordinal, &mut set).unwrap();
            assert_eq!(set, sketch.set(), "{name} {ordinal}");
            marked += u32::from(segment.fields(ordinal).unwrap().is_marked());
        }
        segment
            .for_each_common_tag(|_, class| {
                assert!(class >= 6, "{class}");
                common += 1;
                Ok(())
            })
            .unwrap();
        assert!(marked > 2 && u64::from(marked) < segment.documents() / 2, "{name}: {marked} marks");
        assert_eq!(common, if name == "common" { 12 } else { 0 }, "{name}");

        let built = dir.path().join(name);
        build(&built);
        assert_eq!(names(&built), names(&committed), "{name}");
        assert_eq!(names(&built).iter().filter(|name| name.starts_with('0')).count(), 1, "one segment");
        let [built, committed] = [&built, &committed].map(|index| read(&index.join("000001.seg")));
        assert!(built == committed, "{name}: another segment");
    }
}

#[test]
fn format_3_index_with_codes_is_rebuilt_exactly() {
    committed();
    let committed = with_fields("codes");
    let features = |name: &str| u32::from_le_bytes(read(&committed.join(name))[12..16].try_into().unwrap());
    let expected = FEATURE_FIELDS | FEATURE_CODES | FEATURE_NEAR | FEATURE_PRIORITIES;
    assert_eq!([features("000001.seg"), features("LOG-000002")], [expected; 2]);
    let snapshot = Index::open(&committed).unwrap_or_else(|error| panic!("{error}")).snapshot();
    for number in 0..25 {
        let record = snapshot.get(number).unwrap().unwrap();
        assert_eq!((record.code, record.is_duplicate), (Some(code_of(number)), number % 5 > 0), "{number}");
        let hits = snapshot.within(code_of(number), 9).run().unwrap().hits;
        assert_eq!(hits.len(), 5, "{number}");
    }
    assert!(twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("codes");
    build_codes(&built);
    assert_eq!(names(&built), names(&committed));
    assert!(read(&built.join("000001.seg")) == read(&committed.join("000001.seg")), "another segment");
}

#[test]
fn format_3_index_with_parts_is_rebuilt_exactly() {
    committed();
    let committed = with_fields("parts");
    let segment = read(&committed.join("000001.seg"));
    let features = u32::from_le_bytes(segment[12..16].try_into().unwrap());
    assert_eq!(features, FEATURE_FIELDS | FEATURE_CODES | FEATURE_NEAR | FEATURE_PARTS);
    let snapshot = Index::open(&committed).unwrap_or_else(|error| panic!("{error}")).snapshot();
    for number in 0..40 {
        assert_eq!(snapshot.within(code_of(number), 9).run().unwrap().hits.len(), 5, "{number}");
    }
    assert!(twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("parts");
    build_parts(&built);
    assert!(read(&built.join("000001.seg")) == segment, "another segment");
}

#[test]
fn format_3_index_with_long_simhashes_is_rebuilt_exactly() {
    committed();
    let committed = with_fields("simhashes");
    let features = |name: &str| u32::from_le_bytes(read(&committed.join(name))[12..16].try_into().unwrap());
    let expected = FEATURE_FIELDS | FEATURE_CODES | FEATURE_NEAR | FEATURE_SIMHASHES;
    assert_eq!([features("000001.seg"), features("LOG-000002")], [expected; 2]);
    let index = Index::open(&committed).unwrap_or_else(|error| panic!("{error}"));
    let (snapshot, sketcher) = (index.snapshot(), index.sketcher().unwrap());
    for number in 0..25 {
        let code = sketcher.sketch(&crowd(number)).unwrap().code();
        assert_eq!(code.is_none(), number % 9 == 8);
        assert_eq!(snapshot.get(number).unwrap().unwrap().code, code, "{number}");
        let hits = code.map(|code| snapshot.within(code, 0).run().unwrap().hits);
        assert!(hits.is_none_or(|hits| hits.iter().any(|hit| hit.key == KeyBuf::U64(number))), "{number}");
    }
    assert!(twindex::store::verify::verify(&RealVfs, &committed, |_| ()).problems.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("simhashes");
    build_simhashes(&built);
    assert!(read(&built.join("000001.seg")) == read(&committed.join("000001.seg")), "another segment");
}

/// Returns the number in a key of the indexes with fields.
fn number_of(key: &KeyBuf) -> u64 {
    match key {
        KeyBuf::U64(key) if key % 1000 == 0 => key / 1000,
        KeyBuf::U64(key) => *key,
        KeyBuf::Bytes(key) => {
            std::str::from_utf8(key).unwrap().strip_prefix("page ").unwrap().parse().unwrap()
        }
    }
}

#[test]
fn format_3_index_with_sets_computes_exact_resemblance() {
    committed();
    let committed = with_fields("sets");
    let features = |name: &str| u32::from_le_bytes(read(&committed.join(name))[12..16].try_into().unwrap());
    assert_eq!(features("LOG-000002"), FEATURE_FIELDS);
    assert_eq!(features("MANIFEST-000004"), FEATURE_LOG | FEATURE_GROWN | FEATURE_FIELDS);
    // A feature bit that was cleared is detected.
    let manifest = Manifest::decode(&read(&committed.join("MANIFEST-000004"))).unwrap();
    let mut log = read(&committed.join("LOG-000002"));
    let decode =
        |log: &[u8]| twindex::format::log::decode_head(&log[..88], manifest.uuid, &manifest.params, 2);
    decode(&log).unwrap();
    log[13] = 0;
    seal_header(&mut log);
    assert!(matches!(decode(&log), Err(Refusal::Damaged(_))));

    for name in ["sets", "common"] {
        let snapshot = Index::open(with_fields(name)).unwrap_or_else(|error| panic!("{error}")).snapshot();
        let sketcher = twindex::Sketcher::new(snapshot.params()).unwrap();
        let mut numbers = Vec::new();
        snapshot
            .for_each_key(|key| {
                numbers.push(number_of(&key.to_buf()));
                Ok(())
            })
            .unwrap();
        let sets: Vec<Vec<u64>> =
            numbers.iter().map(|&number| sketcher.sketch(&crowd(number)).unwrap().set().to_vec()).collect();
        let near = Nearness::Resemblance(0.8);
        for &number in &numbers {
            let sketch = sketcher.sketch(&crowd(number)).unwrap();
            let others = numbers.iter().zip(&sets);
            let mut expected: Vec<(u64, usize)> =
                others.filter_map(|(&other, set)| Some((other, near.shared(sketch.set(), set)?))).collect();
            let mut found = Vec::new();
            for hit in snapshot.near(&sketch).run().unwrap().hits {
                let Some(Resemblance::Exact { intersection, .. }) = hit.resemblance else {
                    panic!("{hit:?}")
                };
                found.push((number_of(&hit.key), intersection));
            }
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{name} {number}");
        }
    }
    // New documents are not compared with marked ones: page 13 is marked, page 12 is not.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let copied = Index::open(&committed).unwrap().copy_to(&copy);
    copied.unwrap();
    let index = Index::open(&copy).unwrap();
    let sketch = index.sketcher().unwrap().sketch(&crowd(13)).unwrap();
    let admitted = index.writer().unwrap().admit("another", &sketch).unwrap();
    let Admitted::Duplicate(hit) = admitted else { panic!("{admitted:?}") };
    assert_eq!(hit.key.to_string(), "page 12");
}

#[test]
fn sketch_file_with_sets_round_trips_byte_for_byte() {
    committed();
    let file = read(&golden("sets.sketches"));
    assert!(file == sketches_with_sets(), "another file");
    assert_eq!(file[12..16], FEATURE_FIELDS.to_le_bytes());
    let (mut decoder, mut rest, mut found) = (Decoder::new(), &file[..], 0);
    let sketcher = twindex::Sketcher::new(&params_with_sets().build().unwrap()).unwrap();
    while decoder.wants() > 0 {
        let (part, later) = rest.split_at(decoder.wants());
        let mut rows = decoder.feed(part).unwrap();
        while let Some((key, row, fields)) = rows.next_with_set().unwrap() {
            let sketch = sketcher.sketch(&crowd(number_of(&key.to_buf()))).unwrap();
            assert_eq!(row.map(|row| row.features), (!sketch.is_empty()).then_some(sketch.features()));
            let mut set = Vec::new();
            fields.set_into(&mut set).unwrap();
            assert_eq!(set, sketch.set());
            found += 1;
        }
        rest = later;
    }
    assert_eq!((found, rest), (20, &[][..]));
}

#[test]
fn format_3_segments_are_rebuilt_exactly() {
    committed();
    let committed = packed();
    let dir = tempfile::tempdir().unwrap();
    let built = dir.path().join("index");
    build(&built);
    let expected = ["000001.seg", "000002.seg", "CURRENT", "MANIFEST-000002", "MANIFEST-000003"];
    assert_eq!(names(&committed), expected);
    assert_eq!(names(&built), expected);
    for name in &expected[..2] {
        let (built, committed) = (read(&built.join(name)), read(&committed.join(name)));
        let differs = (0..built.len().max(committed.len())).find(|&at| built.get(at) != committed.get(at));
        assert_eq!(differs, None, "{name}: the first byte that differs");
    }
    for (design, codec, documents) in SCHEMES {
        let built = dir.path().join(design);
        build_numbered(&built, design, codec, documents);
        let [built, committed] = [built, committed_as(design)].map(|index| read(&index.join("000001.seg")));
        let differs = (0..built.len().max(committed.len())).find(|&at| built.get(at) != committed.get(at));
        assert_eq!(differs, None, "{design} {codec}: the first byte that differs");
    }
}

#[test]
fn format_3_segments_of_every_codec_open_and_answer_queries() {
    for (design, codec, documents) in SCHEMES {
        let snapshot = Index::open(committed_as(design)).unwrap_or_else(|error| panic!("{error}")).snapshot();
        assert_eq!(snapshot.params(), &params_of(design, codec));
        let sketcher = twindex::Sketcher::new(snapshot.params()).unwrap();
        for (segment, _) in snapshot.segments() {
            assert!(segment.verify(|_| ()).is_empty(), "{design}");
            let scheme = segment.scheme().unwrap();
            if design != "auto" {
                assert_eq!(scheme.design.to_string(), design);
                // A design with one table has no other tables, so it has no partial ones.
                let codecs = scheme.codecs.to_string();
                assert!(
                    codecs == codec || scheme.design.tables() == 1 && codec.starts_with(&codecs),
                    "{codecs}"
                );
            }
        }
        for number in 0..documents {
            let sketch = sketcher.sketch(&numbered(number)).unwrap();
            let hits = snapshot.near(&sketch).run().unwrap().hits;
            let found =
                hits.iter().any(|hit| hit.key == KeyBuf::U64(number * 1000) && hit.distance == Some(0));
            assert_eq!(found, number % 7 != 6, "{design}: document {number}");
        }
    }
}

/// Returns the output of `tests/second/read_segment.py` for a segment.
fn described(path: &Path) -> twindex::Result<String> {
    let segment = Segment::open(&RealVfs, path)?;
    let mut out = String::new();
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a String does not fail");
    line(format!("length {}", segment.length()));
    line(format!("salt {:032x}", segment.salt()));
    line(format!("params-digest {:032x}", segment.params().digest()));
    line(format!("digest {:032x}", segment.digest()));
    line(format!("documents {}", segment.documents()));
    line(format!("distinct {}", segment.distinct_fingerprints()));
    for (name, value) in segment.params().fields() {
        line(format!("param {name}={value}"));
    }
    for section in segment.sections() {
        line(format!(
            "section {} {} codec {} offset {} length {} rows {}",
            section.kind.name(),
            section.index,
            section.codec,
            section.offset,
            section.length,
            section.rows
        ));
    }
    if let Some(scheme) = segment.scheme() {
        line(format!("design {}", scheme.design));
    }
    for ordinal in 0..segment.documents() as u32 {
        let key = match segment.key(ordinal)? {
            KeyBuf::U64(key) => key.to_string(),
            KeyBuf::Bytes(key) => hex(&key),
        };
        assert_eq!(segment.find(segment.key(ordinal)?.as_key())?, Some(ordinal));
        let rank = segment.rank(ordinal)?.map_or("-".to_owned(), |rank| rank.to_string());
        let kept = segment.params().minhash.is_some_and(|minhash| minhash.signature_bits > 0);
        let signature = if kept { hex(segment.signature(ordinal)?) } else { "-".to_owned() };
        line(format!("document {ordinal} key {key} rank {rank} signature {signature}"));
        let (mut bottom, mut modular) = (Vec::new(), Vec::new());
        segment.bottom(ordinal, &mut bottom)?;
        segment.modular(ordinal, &mut modular)?;
        for (name, hashes) in [("bottom", bottom), ("modular", modular)] {
            let shown: Vec<String> = hashes.iter().map(|hash| format!(" {hash:012x}")).collect();
            if !shown.is_empty() {
                line(format!("{name} {ordinal}:{}", shown.concat()));
            }
        }
        if !segment.value(ordinal)?.is_empty() {
            line(format!("value {ordinal}: {}", hex(segment.value(ordinal)?)));
        }
        if let Some(stamp) = segment.stamp(ordinal)? {
            line(format!("stamp {ordinal}: {stamp}"));
        }
        if segment.fields(ordinal)?.is_marked() {
            line(format!("mark {ordinal}"));
        }
        let fields = segment.fields(ordinal).unwrap();
        if let Some(priority) = fields.priority() {
            line(format!("priority {ordinal}: {priority}"));
        }
        if let Some(codes) = segment.params().codes {
            line(format!("code {ordinal}: {}", hex(fields.code(codes).unwrap())));
        }
        if segment.params().sets {
            let mut set = Vec::new();
            segment.set(ordinal, &mut set)?;
            let shown: Vec<String> = set.iter().map(|hash| format!(" {hash:016x}")).collect();
            line(format!("set {ordinal}:{}", shown.concat()));
        }
    }
    segment.for_each_fingerprint(|rank, fingerprint| {
        let mut documents = String::new();
        segment.postings(rank, |ordinal| {
            write!(documents, " {ordinal}").expect("writing to a String does not fail");
        })?;
        line(format!("fingerprint {rank} {fingerprint:016x} documents{documents}"));
        Ok(())
    })?;
    for band in 0..segment.params().minhash.map_or(0, |minhash| minhash.bands) {
        segment.for_each_band_entry(usize::from(band), |key, ordinal| {
            line(format!("band {} key {key:08x} document {ordinal}", band + 1));
            Ok(())
        })?;
    }
    segment.for_each_common_tag(|tag, class| {
        line(format!("common {tag:08x} class {class}"));
        Ok(())
    })?;
    segment.for_each_prefix_entry(|key, ordinal| {
        line(format!("prefix {key:08x} document {ordinal}"));
        Ok(())
    })?;
    segment.for_each_suffix_entry(|tag, ordinal| {
        line(format!("suffix {tag:08x} document {ordinal}"));
        Ok(())
    })?;
    parts_of(&segment)?.into_iter().for_each(line);
    Ok(out)
}

/// Describes the entries of the parts of codes.
fn parts_of(segment: &Segment) -> twindex::Result<Vec<String>> {
    let mut lines = Vec::new();
    for part in 0..segment.part_count() {
        segment.for_each_part_entry(part, |key, ordinal| {
            lines.push(format!("part {} key {key:08x} document {ordinal}", part + 1));
            Ok(())
        })?;
    }
    Ok(lines)
}

/// The inverse of `SPREAD` modulo 2^32; see "Common tags" in the specification.
const INVERSE_OF_SPREAD: u64 = 0x0E8B_2F51;

/// Adds elements to this set such that the number of elements with a tag is at or just below the limit for common tags.
/// The tag of an element is its upper 32 bits.
fn with_tags_near_common(set: &[u64], number: u64) -> Vec<u64> {
    let mut set = set.to_vec();
    let mut add = |tag: u64, low: u64| set.push(tag << 32 | low);
    // Each of these four tags occurs in a quarter of the documents, so that common tags belong to several classes.
    add(number % 4 * 2, 1);
    // Twenty documents have these three tags. The first one shares a counter with the second in the first table of counts,
    // and with the third in the second table, so only the first is counted as common.
    if (20..40).contains(&number) {
        let collides = 0x4000_0000;
        add(collides, 0);
        add(collides + 1, 0);
        add((collides + INVERSE_OF_SPREAD) % (1 << 32), 0);
    }
    // Sixteen documents below 20 use this function, so 32 elements have the first tag and 31 the second.
    if number < 20 {
        add(0x6000_0000, 0);
        add(0x6000_0000, 1);
        add(0x6100_0000, 0);
    }
    if number < 19 {
        add(0x6100_0000, 1);
    }
    set.sort_unstable();
    set
}

/// Builds segments unlike the committed ones: with numeric keys, with few or many documents, with only one method, and
/// without documents.
fn shapes(dir: &Path) -> Vec<PathBuf> {
    let fingerprints = Params::builder().u64_keys().simhash(3).build().unwrap();
    let features = Params::builder().words(1).minhash(40, 2).signature_bits(0).build().unwrap();
    let bits =
        Params::builder().u64_keys().words(1).simhash(0).minhash(3, 1).signature_bits(1).build().unwrap();
    let long = Params::builder().words(1).minhash(2, 1).bottom(3).modulus(1).build().unwrap();
    let samples = Params::builder().u64_keys().words(1).simhash(3).modulus(2).build().unwrap();
    let attached =
        Params::builder().words(1).simhash(3).minhash(2, 2).values().expire_after(60).build().unwrap();
    let values = Params::builder().words(1).simhash(3).values().build().unwrap();
    let stamps = Params::builder().u64_keys().words(1).minhash(2, 1).expire_after(1).build().unwrap();
    let bytes = Params::builder().words(1).minhash(8, 2).signature_bits(0).feature_bits(8).build().unwrap();
    let three =
        Params::builder().u64_keys().words(1).simhash(3).minhash(2, 1).feature_bits(3).build().unwrap();
    let sets = Params::builder().words(1).minhash(2, 2).signature_bits(0).sets();
    let strict = Near::resembling(0.95).unwrap();
    let whole =
        Params::builder().u64_keys().words(1).simhash(3).minhash(2, 1).sets().marks().values().near(strict);
    let (sets, whole) = (sets.build().unwrap(), whole.build().unwrap());
    let marks = Params::builder().words(2).simhash(3).marks().expire_after(9).build().unwrap();
    let mut paths = Vec::new();
    for (name, params, documents) in [
        ("none", &fingerprints, 0_u64),
        ("one", &features, 1),
        ("hundred", &features, 100),
        ("thousand", &fingerprints, 1000),
        ("odd", &bits, 17),
        ("samples", &long, 200),
        ("multiples", &samples, 30),
        ("no-samples", &samples, 0),
        ("attached", &attached, 120),
        ("nothing-attached", &attached, 0),
        ("values", &values, 20),
        ("one-stamp", &stamps, 1),
        ("bytes", &bytes, 300),
        ("three-bits", &three, 150),
        ("no-bytes", &bytes, 0),
        ("sets", &sets, 60),
        ("no-sets", &sets, 0),
        ("one-set", &sets, 1),
        ("too-few-sets", &whole, 31),
        ("enough-sets", &whole, 32),
        ("many-sets", &whole, 400),
        ("marks", &marks, 40),
        ("no-marks", &marks, 0),
    ] {
        let mut records = Records::new(params);
        let sketcher = twindex::Sketcher::new(params).unwrap();
        for number in 0..documents {
            let text = numbered(number);
            let sketch = sketcher.sketch(&text).unwrap();
            let mut signature = Vec::new();
            if let Some(minhash) = params.minhash {
                twindex::sketch::pack(sketch.signature(), minhash.signature_bits, &mut signature);
            }
            let kept = Kept {
                fingerprint: sketch.fingerprint().map_or(0, |fingerprint| fingerprint.0),
                features: sketch.features(),
                signature: &signature,
                bottom: sketch.bottom(),
                modular: sketch.modular(),
            };
            let bytes = format!("https://example.org/{}", number * number);
            let key = match params.key {
                twindex::params::KeyKind::U64 => {
                    Key::U64(if documents > 100 { number } else { number * 1000 })
                }
                twindex::params::KeyKind::Bytes => Key::from(bytes.as_str()),
            };
            let value = vec![number as u8; (number * number % 300) as usize];
            // One set is large enough for two high bytes and one for a single high byte. One has extreme values, and one
            // is empty.
            let set: Vec<u64> = match number {
                11 => (0..9000).map(|hash| hash * (u64::MAX / 9000)).collect(),
                12 => (0..99).map(|hash| hash << 57 | hash).collect(),
                13 => vec![0, 1, u64::MAX - 1, u64::MAX],
                14 => Vec::new(),
                _ => with_tags_near_common(sketch.set(), number),
            };
            let mut encoded = Vec::new();
            fields::encode(params, params.marks && number % 3 == 1, &set, None, &mut encoded);
            let attached = Attached {
                fields: Fields::of(&encoded),
                value: if params.values { &value } else { &[] },
                stamp: params.expire_after.map(|_| 1_700_000_000 + number * 7919 % 1000),
            };
            records.push_with(key, (!sketch.is_empty()).then_some(kept), attached).unwrap();
        }
        paths.push(write(&records, dir, name));
    }
    paths
}

fn write(records: &Records, dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(format!("{name}.seg"));
    segment_of::build(records, &RealVfs, dir).unwrap().publish(&path).unwrap();
    path
}

/// Builds segments of every design with every codec: empty, with few fingerprints, with random and with clustered ones.
/// Also builds one with hot buckets.
fn schemes(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut segment = |design: &str, codec: &str, fingerprints: &mut dyn Iterator<Item = u64>| {
        let params = params_of(design, codec);
        let mut records = Records::new(&params);
        for (number, fingerprint) in (0_u64..).zip(fingerprints) {
            let kept = Kept { fingerprint, features: &[], signature: &[], bottom: &[], modular: &[] };
            records.push(Key::U64(number), Some(kept)).unwrap();
        }
        paths.push(write(&records, dir, &format!("{}-{design}-{codec}", paths.len())));
    };
    let random = |number: u64| {
        let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    };
    let codecs =
        ["planes", "planes+2", "planes+3", "compact", "compact+4", "manku", "manku+2", "plain", "plain+3"];
    for (place, codec) in codecs.into_iter().enumerate() {
        for design in
            ["blocks-1", "blocks-7", "choose-4-2", "nested-3-2", "expansion", "prefix-9", "reversed-33"]
        {
            let rows = [0, 1, 15, 40][(place + design.len()) % 4];
            segment(design, codec, &mut (0..rows).map(random));
        }
        segment("random-3-18-18446744073709551615", codec, &mut (0..300).map(random));
        segment("choose-5-3", codec, &mut (0..200).map(|number| random(number / 50) ^ (number % 50) << 9));
    }
    segment("blocks-2", "compact", &mut (0..2500).map(random));
    segment("blocks-2", "manku", &mut (0..1500).map(|number| random(number % 3) ^ number));
    segment(
        "blocks-4",
        "planes+2",
        &mut (0..9000).map(|n| if n % 2 == 0 { random(n) } else { random(n) >> 11 }),
    );
    paths
}

#[test]
fn python_reader_finds_the_same_content_in_segments() {
    let index = committed();
    let dir = tempfile::tempdir().unwrap();
    let mut paths = [shapes(dir.path()), schemes(dir.path())].concat();
    paths.extend([golden("three-records.seg"), index.join("000001.seg"), index.join("000002.seg")]);
    paths.extend(["000001.seg", "000002.seg"].map(|name| packed().join(name)));
    paths.push(narrow().join("000001.seg"));
    paths.push(near().join("000001.seg"));
    paths.extend(WITH_FIELDS.map(|(name, ..)| with_fields(name).join("000001.seg")));
    paths.extend(["codes", "parts"].map(|name| with_fields(name).join("000001.seg")));
    paths.extend(SCHEMES.map(|(design, ..)| committed_as(design).join("000001.seg")));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second/read_segment.py");
    let Ok(output) = Command::new("python3").arg(&script).args(&paths).output() else {
        return skip(Missing::Program("python3"));
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs = String::from_utf8(output.stdout).unwrap();
    let (mut theirs, mut sections) = (theirs.lines(), BTreeSet::new());
    for path in &paths {
        let segment = Segment::open(&RealVfs, path).unwrap();
        sections.extend(segment.sections().iter().map(|section| (section.kind, section.codec)));
        for line in described(path).unwrap().lines() {
            assert_eq!(theirs.next(), Some(line), "{}: the second reader's line, and ours", path.display());
        }
    }
    assert_eq!(theirs.next(), None);
    // Every codec of tables and bands was read, and so were hot buckets.
    let tables = Complete::ALL.map(Codec::Complete).into_iter().chain((2..=4).map(Codec::Partial));
    let expected = tables.map(|codec| (codec.kind(), codec.number())).chain([(Kind::Hot, hot::CODEC)]);
    let expected = expected.chain([CODEC_BYTES, CODEC_PACKED].map(|codec| (Kind::Band, codec)));
    let of_sets = [Kind::Common, Kind::Prefixes, Kind::Suffixes, Kind::Part].map(|kind| (kind, CODEC_PACKED));
    let expected = expected.chain(of_sets).chain([(Kind::Fields, fields::CODEC)]);
    assert!(expected.into_iter().all(|one| sections.contains(&one)), "{sections:?}");
}

#[test]
fn python_reader_refuses_flipped_bits_of_a_small_file() {
    // Checksums and the file's identity cover every byte, including gaps. To save time, only a sample of the bits is
    // flipped.
    let bytes = read(&golden("three-records.seg"));
    let dir = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second/read_segment.py");
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let path = dir.path().join(format!("{at}.seg"));
        let mut file = RealVfs.create_temporary(dir.path()).unwrap();
        file.append(&damaged).unwrap();
        file.publish(&path, false).unwrap();
        let Ok(output) = Command::new("python3").arg(&script).arg(&path).output() else {
            return skip(Missing::Program("python3"));
        };
        assert_eq!(output.status.code(), Some(1), "byte {at}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("damaged"), "byte {at}");
        assert!(
            Segment::from_bytes(damaged, &path).is_err_and(|e| e.is_corruption()) || verify_finds(&path),
            "byte {at}"
        );
    }
}

fn verify_finds(path: &Path) -> bool {
    !Segment::open(&RealVfs, path).unwrap().verify(|_| ()).is_empty()
}

/// Returns the error that the table of `docs/format/damage.md` specifies for damage of this kind to this part.
fn specified_error(part: &str, damage: &str) -> String {
    let table = include_str!("../../docs/format/damage.md");
    let start = format!("| {part} | {damage} | ");
    let row = table.lines().find_map(|line| line.strip_prefix(&start));
    let row = row.unwrap_or_else(|| panic!("no row `{start}` in the damage table"));
    row.split(" | ").next().expect("a cell").to_owned()
}

/// Applies `change` to a file of an index.
fn damage(dir: &Path, name: &str, change: &dyn Fn(&mut Vec<u8>)) {
    let mut bytes = read(&dir.join(name));
    change(&mut bytes);
    let mut file = RealVfs.create_temporary(dir).unwrap();
    file.append(&bytes).unwrap();
    file.publish(&dir.join(name), true).unwrap();
}

/// The version is checked before everything else, in whichever file of the index.
#[test]
fn files_of_versions_before_format_1_0_are_refused_by_their_number() {
    for version in [1, 2] {
        for name in ["CURRENT", "MANIFEST-000003", "000001.seg"] {
            let dir = tempfile::tempdir().unwrap();
            let index = dir.path().join("index");
            build(&index);
            damage(&index, name, &|bytes| {
                bytes[8] = version;
                seal_header(bytes);
            });
            let error = Index::open(&index).expect_err(name);
            assert!(matches!(error, Error::Unsupported { .. }), "{name}: {error}");
            let said = format!(
                "{name}: format version is {version}, this version of twindex reads 3; \
                 no release wrote version {version}: build the index again"
            );
            assert!(error.to_string().ends_with(&said), "{name}: {error}");
        }
    }
}

fn flip(at: usize) -> impl Fn(&mut Vec<u8>) {
    move |bytes| bytes[at] ^= 0x10
}

/// Returns a function that changes the header field at `at` and updates the header's checksum.
fn renew(at: usize) -> impl Fn(&mut Vec<u8>) {
    move |bytes| {
        bytes[at] += 1;
        seal_header(bytes);
    }
}

fn seal_header(bytes: &mut [u8]) {
    let salt = u128::from_le_bytes(bytes[24..40].try_into().unwrap());
    let sum = twindex::format::checksum::checksum(salt, 0, &bytes[..60]);
    bytes[60..64].copy_from_slice(&sum.to_le_bytes());
}

/// A case of damage: the names of the part and of the damage in the specification, the file, and the change.
type Case<'a> = (&'a str, &'a str, &'a str, Box<dyn Fn(&mut Vec<u8>) + 'a>);

#[test]
fn damage_is_reported_with_the_specified_errors() {
    let other = tempfile::tempdir().unwrap();
    let other = other.path().join("other");
    build(&other);
    let put = |dir: &Path, name: &str| {
        let bytes = read(&dir.join(name));
        move |out: &mut Vec<u8>| out.clone_from(&bytes)
    };
    let (current, manifest, segment) = ("CURRENT", "MANIFEST-000003", "000001.seg");
    let length = read(&committed().join(segment)).len();
    let footer = length - 64;
    let contents = read(&committed().join(segment))[footer + 16..footer + 24].try_into().unwrap();
    let contents = u64::from_le_bytes(contents) as usize;
    let all = "`CURRENT`, manifest, segment";
    let newer = "another version, unknown feature";
    let cases: Vec<Case<'_>> = vec![
        ("`CURRENT`", "cut, extra bytes", current, Box::new(|bytes| bytes.truncate(95))),
        ("`CURRENT`", "cut, extra bytes", current, Box::new(|bytes| bytes.truncate(0))),
        ("`CURRENT`", "cut, extra bytes", current, Box::new(|bytes| bytes.push(0))),
        ("`CURRENT`", "flipped", current, Box::new(flip(2))),
        ("`CURRENT`", "flipped", current, Box::new(flip(70))),
        ("`CURRENT`", "swapped with another index's", current, Box::new(put(&other, current))),
        (all, newer, current, Box::new(renew(8))),
        (all, newer, manifest, Box::new(renew(14))),
        (all, newer, segment, Box::new(renew(8))),
        (all, newer, segment, Box::new(renew(12))),
        ("manifest", "cut, extra bytes, flipped", manifest, Box::new(|bytes| bytes.truncate(100))),
        ("manifest", "cut, extra bytes, flipped", manifest, Box::new(|bytes| bytes.push(0))),
        ("manifest", "cut, extra bytes, flipped", manifest, Box::new(flip(90))),
        (
            "manifest",
            "swapped with another generation's or index's",
            manifest,
            Box::new(put(&committed(), "MANIFEST-000002")),
        ),
        (
            "manifest",
            "swapped with another generation's or index's",
            manifest,
            Box::new(put(&other, manifest)),
        ),
        ("segment", "cut", segment, Box::new(|bytes| bytes.truncate(100))),
        ("segment", "cut", segment, Box::new(|bytes| bytes.truncate(1000))),
        ("segment", "extra bytes", segment, Box::new(|bytes| bytes.push(0))),
        ("segment", "swapped with another sound segment", segment, Box::new(put(&committed(), "000002.seg"))),
        ("header", "flipped", segment, Box::new(flip(0))),
        ("header", "flipped", segment, Box::new(flip(30))),
        ("footer", "flipped", segment, Box::new(move |bytes| bytes[footer] ^= 1)),
        ("footer", "flipped", segment, Box::new(move |bytes| bytes[footer + 40] ^= 1)),
        ("table of contents", "flipped, entries swapped", segment, Box::new(flip(contents + 8))),
        ("checksums", "flipped, entries swapped", segment, Box::new(flip(contents - 64))),
        ("params", "flipped", segment, Box::new(flip(70))),
    ];
    for (part, what, name, change) in &cases {
        let dir = tempfile::tempdir().unwrap();
        for file in names(&committed()) {
            let mut copy = RealVfs.create_temporary(dir.path()).unwrap();
            copy.append(&read(&committed().join(&file))).unwrap();
            copy.publish(&dir.path().join(&file), false).unwrap();
        }
        damage(dir.path(), name, change);
        check_error(dir.path(), part, what);
    }

    for (part, what, gone) in [
        ("`CURRENT`", "missing, manifests or segments there", &[current][..]),
        (
            "`CURRENT`",
            "missing, nothing else there",
            &[current, manifest, "MANIFEST-000002", segment, "000002.seg"],
        ),
        ("manifest", "missing", &[manifest]),
        ("segment", "missing", &[segment]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index");
        build(&index);
        for name in gone {
            RealVfs.unlink(&index.join(name)).unwrap();
        }
        check_error(&index, part, what);
    }
    check_error(Path::new("/no/such/directory"), "directory", "missing");
}

fn check_error(dir: &Path, part: &str, what: &str) {
    let specified = specified_error(part, what);
    let error = Index::open(dir).expect_err(&format!("{part}, {what}: opened"));
    // The specification describes an error as "`Corrupt`, SECTION or SECTION: PROBLEM".
    let named = |name: &str| {
        specified.split([',', ':']).flat_map(|words| words.split(" or ")).any(|word| word.trim() == name)
    };
    let said = match &error {
        Error::Corrupt { section, .. } => named("`Corrupt`") && named(section),
        Error::NotAnIndex { .. } => named("`NotAnIndex`"),
        Error::Unsupported { .. } => named("`Unsupported`"),
        _ => false,
    };
    assert!(said, "{part}, {what}: specified {specified}, got {error}");
}
