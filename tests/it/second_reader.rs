//! Tests that `tests/second/read_index.py`, which was written only from `format-spec.md`, finds the same content as the
//! library in indexes, IDF tables and files of sketches, and refuses damaged files.

#![allow(
    clippy::disallowed_methods,
    reason = "damages the files of an index directly, and starts another program"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use twindex::IdfBuilder;
use twindex::idf::to_bytes;
use twindex::params::{Family, MinhashWeights, Near, Shingling, Tokens, WeightUnit};
use twindex::sketch::{Buffers, IdfTable, Shingler, Sketcher, pack};
use twindex::store::OnConflict;
use twindex::{Admitted, Document, Index, Key, KeyBuf, Params, Sketch, Snapshot, Writer};

use twindex::format::fields::{self, Fields};
use twindex::format::sketches::{Encoded, Encoder, Row};

use crate::support::skip::{Missing, skip};

fn script(paths: &[&Path]) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second/read_index.py");
    let output = Command::new("python3").arg(&script).args(paths).output();
    if output.is_err() {
        skip(Missing::Program("python3"));
    }
    output.ok()
}

pub(crate) fn read(path: &Path) -> Option<String> {
    let output = script(&[path])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    if text.is_empty() { "-".into() } else { text }
}

fn hashes(values: &[u64]) -> String {
    let shown: Vec<String> = values.iter().map(|value| format!("{value:012x}")).collect();
    if shown.is_empty() { "-".into() } else { shown.join(" ") }
}

fn shown_key(key: Key<'_>) -> String {
    match key {
        Key::U64(key) => key.to_string(),
        Key::Bytes(key) => hex(key),
    }
}

fn or_none<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

/// For each key, whether the last document put was marked as a duplicate, and its set.
pub(crate) type LastPut = BTreeMap<KeyBuf, (bool, Vec<u64>)>;

fn shown_set(set: &[u64]) -> String {
    let shown: Vec<String> = set.iter().map(|hash| format!("{hash:016x}")).collect();
    format!(", set {}", if shown.is_empty() { "-".into() } else { shown.join(" ") })
}

/// Returns the expected output of the script for an index. `came` has the marks and sets, which a snapshot does not
/// return.
pub(crate) fn described(snapshot: &Snapshot, came: &LastPut) -> String {
    let mut text = format!("commit {}\nnow {}\n", snapshot.generation(), or_none(snapshot.now()));
    writeln!(text, "payload {}", snapshot.payload().map_or("-".into(), hex)).unwrap();
    let mut keys: Vec<KeyBuf> = Vec::new();
    snapshot
        .for_each_key(|key| {
            keys.push(key.to_buf());
            Ok(())
        })
        .unwrap();
    for key in keys {
        let record = snapshot.get(key.as_key()).unwrap().unwrap();
        // For a document without a sketch, the library returns a signature of zeros, because the section stores one.
        let sketched = record.fingerprint.is_some() || record.signature.iter().any(|&byte| byte > 0);
        let fingerprint = record.fingerprint.map(|fingerprint| format!("{:016x}", fingerprint.0));
        let (marked, set) = &came[&key];
        let mut of_fields = String::new();
        if snapshot.params().marks {
            write!(of_fields, ", mark {}", u8::from(*marked)).unwrap();
        }
        if snapshot.params().priorities {
            write!(of_fields, ", priority {}", or_none(record.priority)).unwrap();
        }
        if let Some(code) = record.code {
            write!(of_fields, ", code {code}").unwrap();
        }
        if snapshot.params().sets {
            of_fields += &shown_set(set);
        }
        writeln!(
            text,
            "key {}, fingerprint {}, signature {}, bottom {}, modular {}, value {}, stamp {}{of_fields}",
            shown_key(key.as_key()),
            or_none(fingerprint),
            hex(if sketched { &record.signature } else { &[] }),
            hashes(&record.bottom),
            hashes(&record.modular),
            hex(record.value.as_deref().unwrap_or_default()),
            or_none(record.stamp)
        )
        .unwrap();
    }
    text
}

fn text(i: u64) -> String {
    if i % 19 == 4 { String::new() } else { format!("page {} of {} by {}", i % 23, i % 7, i % 41) }
}

fn table() -> IdfTable {
    table_of(&Shingling::words(1, 0))
}

fn table_of(shingling: &Shingling) -> IdfTable {
    let plain = Shingler::new(shingling).unwrap();
    let mut builder = IdfBuilder::new(shingling).min_df(2);
    for i in 0..60 {
        let (mut buffers, mut shingles) = (Buffers::default(), Vec::new());
        plain.distinct(&text(i), &mut buffers, &mut shingles);
        builder.add(&shingles).unwrap();
    }
    builder.finish().unwrap()
}

/// Returns shingling options that set a feature bit in the files of an index.
fn raw() -> Shingling {
    let mut raw = Shingling::words(3, 0).with_tokens(Tokens::Raw).unwrap();
    raw.folding.invisible = true;
    raw
}

/// Makes commits that put, replace, delete and expire documents, with occasional flushes.
fn fill(
    index: &Index,
    writer: &mut Writer,
    sketcher: &Sketcher,
    range: std::ops::Range<u64>,
    came: &mut LastPut,
) {
    let marks = index.params().marks;
    let expires = index.params().expire_after.is_some();
    writer.set_options(writer.options().background_merges(false)).unwrap();
    for i in range {
        let value = vec![i as u8; i as usize % 5];
        // If marks are stored, every second document is a duplicate of the previous one.
        let sketch = sketcher.sketch(&text(if marks { i / 2 * 2 } else { i })).unwrap();
        let mut document = Document::from(&sketch);
        if let Some(codes) = index.params().codes.filter(|codes| codes.votes.is_none()) {
            let word = (i / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 1 << (i % 2);
            document = twindex::Code::of_words(&vec![word; usize::from(codes.bits) / 64]).unwrap().into();
        }
        if expires {
            document = document.with_value(&value).with_stamp(1000 + i);
        }
        if index.params().priorities && i % 3 > 0 {
            document = document.with_priority(u64::MAX - i * i);
        }
        // A document with an existing key is not a duplicate, so with marks there are twice as many keys.
        let key = format!("key {}", i % if marks { 180 } else { 90 });
        let mut is_marked = false;
        if marks {
            is_marked = matches!(
                writer.admit(key.as_str(), document).unwrap(),
                Admitted::Duplicate(_) | Admitted::Known { .. }
            );
        } else {
            writer.put(key.as_str(), document).unwrap();
        }
        came.insert(Key::from(key.as_str()).to_buf(), (is_marked, sketch.set().to_vec()));
        if i % 13 == 5 {
            writer.delete(format!("key {}", i * 7 % 90).as_str()).unwrap();
        }
        if i % 20 == 19 {
            writer.commit_with(format!("up to {i}").as_bytes()).unwrap();
        }
        if i % 70 == 69 {
            writer.commit().unwrap();
            writer.flush().unwrap();
        }
    }
    writer.commit().unwrap();
}

#[test]
fn python_reader_finds_the_same_content_in_indexes() {
    let dir = tempfile::tempdir().unwrap();
    let table = table();
    let idf =
        Params::builder().words(1).simhash_weighted(3, table.weights()).minhash(3, 2).bottom(3).modulus(5);
    let strict = Near::resembling(0.95).unwrap();
    let all = [
        idf.values().expire_after(70).build().unwrap(),
        Params::builder().words(2).simhash(3).build().unwrap(),
        Params::builder().words(1).minhash(4, 3).signature_bits(1).build().unwrap(),
        Params::builder().words(1).simhash(3).minhash(4, 3).feature_bits(5).build().unwrap(),
        Params::builder().shingling(raw()).simhash(3).minhash(4, 3).build().unwrap(),
        Params::builder().words(1).simhash(3).minhash(4, 3).near(strict).build().unwrap(),
        Params::builder()
            .words(1)
            .simhash(3)
            .minhash(4, 3)
            .near(strict)
            .sets()
            .suffixes()
            .marks()
            .priorities()
            .build()
            .unwrap(),
        Params::builder()
            .words(1)
            .simhash(3)
            .minhash(4, 3)
            .minhash_weights(MinhashWeights::Frequencies)
            .sets()
            .build()
            .unwrap(),
        Params::builder().words(1).minhash(4, 3).family(Family::Darts).bottom(9).build().unwrap(),
        Params::builder()
            .words(1)
            .minhash(4, 3)
            .minhash_weights(MinhashWeights::Idf { table: table.digest() })
            .weight_unit(WeightUnit::ONE)
            .sets()
            .modulus(3)
            .build()
            .unwrap(),
        Params::builder().words(1).simhash(3).marks().values().expire_after(70).build().unwrap(),
        Params::builder().words(1).simhash(3).priorities().values().expire_after(70).build().unwrap(),
        Params::builder().codes(64, 3).build().unwrap(),
        Params::builder().words(1).simhash(20).simhash_bits(192).marks().build().unwrap(),
        Params::builder().codes(256, 31).marks().priorities().values().expire_after(70).build().unwrap(),
    ];
    for (number, params) in all.into_iter().enumerate() {
        let path = dir.path().join(format!("{number}"));
        let index = match params.sketch().idf_table().unwrap() {
            Some(_) => Index::create_with_idf(&path, params, &table).unwrap(),
            None => Index::create(&path, params).unwrap(),
        };
        let mut came = LastPut::new();
        let check = |path: &Path, index: &Index, came: &LastPut, what: &str| {
            let Some(theirs) = read(path) else { return };
            let ours = described(&index.snapshot(), came);
            assert!(index.snapshot().documents() > 30, "{what}");
            for (theirs, ours) in theirs.lines().zip(ours.lines()) {
                assert_eq!(theirs, ours, "{number}, {what}: the second reader's line, and ours");
            }
            assert_eq!(theirs, ours, "{number}, {what}");
        };
        let sketcher = index.sketcher().unwrap();
        let mut writer = index.writer().unwrap();
        fill(&index, &mut writer, &sketcher, 0..200, &mut came);
        check(&path, &index, &came, "a log that grows");
        drop(writer);
        let mut writer = index.writer().unwrap();
        fill(&index, &mut writer, &sketcher, 200..230, &mut came);
        drop(writer);
        check(&path, &index, &came, "two logs");
        let copy = dir.path().join(format!("copy {number}"));
        index.copy_to(&copy).unwrap();
        check(&copy, &Index::open(&copy).unwrap(), &came, "a copy");
        let merged = dir.path().join(format!("merged {number}"));
        Index::merge(&merged, &[Index::open(&copy).unwrap()], OnConflict::Refuse, 1 << 20).unwrap();
        check(&merged, &Index::open(&merged).unwrap(), &came, "shards");
        index.compact().unwrap();
        check(&path, &index, &came, "compacted");
        if index.params().marks {
            let marked = came.values().filter(|(is_marked, _)| *is_marked).count();
            assert!(marked > 20, "{number}: {marked} marks");
        }
    }
}

#[test]
fn python_reader_agrees_on_idf_tables_and_sketch_files() {
    let dir = tempfile::tempdir().unwrap();
    for shingling in [Shingling::words(1, 0), raw()] {
        let table = table_of(&shingling);
        let path = dir.path().join("table.idf");
        std::fs::write(&path, to_bytes(&table)).unwrap();
        let Some(theirs) = read(&path) else { return };
        let head = format!("digest {:032x}\ndocuments {}\n", table.digest(), table.documents());
        assert!(theirs.starts_with(&head) && table.len() > 10, "{theirs}");
        assert_eq!(theirs.lines().count(), 3 + table.len());
    }

    let builder = Params::builder().simhash(3).minhash(3, 2).bottom(3).modulus(5);
    let all = [
        builder.clone().words(1),
        builder.clone().shingling(raw()),
        // A file of sketches stores sets but no marks.
        builder.clone().words(2).sets().marks(),
        builder.words(1).marks(),
    ];
    for builder in all {
        sketches_are_found(dir.path(), &builder.build().unwrap());
    }
}

fn sketches_are_found(dir: &Path, params: &Params) {
    let sketcher = Sketcher::new(params).unwrap();
    let minhash = params.minhash.unwrap();
    let (mut file, mut ours) = (Vec::new(), format!("params-digest {:032x}\n", params.digest()));
    let mut encoder = Encoder::new(params, &mut file);
    let mut encoded = Vec::new();
    for i in 0..4000 {
        let (key, sketch): (String, Sketch) = (format!("key {i}"), sketcher.sketch(&text(i)).unwrap());
        let mut packed = Vec::new();
        pack(sketch.signature(), minhash.signature_bits, &mut packed);
        let row = (!sketch.is_empty()).then(|| Row {
            fingerprint: sketch.fingerprint().unwrap().0,
            features: sketch.features(),
            signature: &packed,
            bottom: sketch.bottom(),
            modular: sketch.modular(),
        });
        let mut records = Encoded::new(params);
        if params.sets {
            fields::encode(params, false, sketch.set(), None, &mut encoded);
        }
        records.push_with(key.as_str().into(), row, Fields::of(&encoded)).unwrap();
        encoder.append(&records, &mut file);
        let features: Vec<String> =
            row.iter().flat_map(|row| row.features).map(|feature| format!("{feature:016x}")).collect();
        let features = if features.is_empty() { "-".into() } else { features.join(" ") };
        writeln!(
            ours,
            "key {}, fingerprint {}, features {features}, signature {}, bottom {}, modular {}{}",
            hex(key.as_bytes()),
            or_none(row.map(|row| format!("{:016x}", row.fingerprint))),
            hex(row.map_or(&[], |row| row.signature)),
            hashes(row.map_or(&[], |row| row.bottom)),
            hashes(row.map_or(&[], |row| row.modular)),
            if params.sets { shown_set(sketch.set()) } else { String::new() }
        )
        .unwrap();
    }
    encoder.finish(&mut file);
    let path = dir.join("sketches");
    std::fs::write(&path, &file).unwrap();
    assert!(file.len() > 1 << 17, "more than one block");
    assert_eq!(read(&path).unwrap(), ours);
}

#[test]
fn python_reader_refuses_flipped_bits_of_every_index_file() {
    let table = table();
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).values().expire_after(70);
    flipped_bits_are_refused(params.build().unwrap(), &table);
    let params = Params::builder().words(1).simhash_weighted(3, table.weights()).minhash(2, 1).sets().marks();
    flipped_bits_are_refused(params.build().unwrap(), &table);
}

fn flipped_bits_are_refused(params: Params, table: &IdfTable) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("i");
    let index = Index::create_with_idf(&path, params, table).unwrap();
    let sketcher = index.sketcher().unwrap();
    fill(&index, &mut index.writer().unwrap(), &sketcher, 0..90, &mut LastPut::new());
    index.gc().unwrap();
    drop(index);
    if script(&[&path]).is_none() {
        return;
    }
    // The log was closed, so it records the length up to which it was synced.
    let files: Vec<PathBuf> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_manifest = |file: &&PathBuf| file.to_str().unwrap().contains("MANIFEST");
    let newest = files.iter().filter(is_manifest).max().unwrap();
    let mut refused = 0;
    for file in &files {
        // The script reads neither the lock file nor the previous manifest.
        if file.ends_with("LOCK") || is_manifest(&file) && file != newest {
            continue;
        }
        let whole = std::fs::read(file).unwrap();
        // Excludes the mark at the end of the log: a damaged mark is treated as a torn end.
        let end = if file.to_str().unwrap().contains("LOG") { whole.len() - 32 } else { whole.len() };
        std::fs::remove_file(file).unwrap();
        for at in (0..end).step_by(end / 9 + 1) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(file, damaged).unwrap();
            let output = script(&[&path]).unwrap();
            assert!(!output.status.success(), "{} with a flipped bit at {at}", file.display());
            assert!(
                String::from_utf8_lossy(&output.stderr).contains("damaged"),
                "a reason, and no traceback"
            );
            refused += 1;
        }
        std::fs::write(file, whole).unwrap();
    }
    assert!(refused > 30, "{refused}");
    assert!(script(&[&path]).unwrap().status.success());
}
