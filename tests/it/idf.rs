//! Tests indexes whose fingerprints are weighted by an IDF table. The index contains the table, because sketching needs
//! it. Creation stores the table or fails as a whole, later operations keep the table, and a missing or damaged table is
//! an error only where the table is needed.

#![allow(clippy::disallowed_methods, reason = "reads and damages the files of an index directly")]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use twindex::IdfBuilder;
use twindex::format::header::{Header, Role};
use twindex::idf::to_bytes;
use twindex::params::Shingling;
use twindex::sketch::{IdfTable, Sketch, Sketcher};
use twindex::store::{idf, verify};
use twindex::sys::RealVfs;
use twindex::{Error, Index, Params, WriterOptions};
use zerocopy::IntoBytes;

const TEXTS: [&str; 4] = ["the rose is red", "the violet is blue", "the tulip", "roses, roses"];

fn table() -> IdfTable {
    let plain = Sketcher::new(&Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).min_df(1);
    for text in TEXTS {
        let (mut buffers, mut shingles) = (twindex::sketch::Buffers::default(), Vec::new());
        plain.shingler().distinct(text, &mut buffers, &mut shingles);
        builder.add(&shingles).unwrap();
    }
    builder.finish().unwrap()
}

fn params(table: &IdfTable) -> Params {
    Params::builder().words(1).simhash_weighted(3, table.weights()).build().unwrap()
}

/// Creates an index of the texts; returns its directory, its path, the path of its table, and the sketch of a text.
fn indexed() -> (TempDir, PathBuf, PathBuf, Sketch) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let table = table();
    let index = Index::create_with_idf(&path, params(&table), &table).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
    for text in TEXTS {
        writer.put(text, &sketcher.sketch(text).unwrap()).unwrap();
    }
    writer.commit().unwrap();
    let sketch = sketcher.sketch(TEXTS[0]).unwrap();
    let file = path.join(format!("IDF-{:032x}", table.digest()));
    (dir, path, file, sketch)
}

fn near(index: &Index, sketch: &Sketch) -> Vec<String> {
    let answers = index.snapshot().near(sketch).run().unwrap();
    answers.hits.iter().map(|hit| hit.key.to_string()).collect()
}

fn problems(path: &Path) -> Vec<String> {
    verify::verify(&RealVfs, path, |_| ()).problems.iter().map(ToString::to_string).collect()
}

#[test]
fn index_stores_its_idf_table_and_its_sketcher_uses_it() {
    let (_dir, path, file, sketch) = indexed();
    assert_eq!(fs::read(&file).unwrap(), to_bytes(&table()));
    for _ in 0..3 {
        let index = Index::open(&path).unwrap();
        assert_eq!(*index.idf().unwrap().unwrap(), table());
        let again = index.sketcher().unwrap().sketch(TEXTS[0]).unwrap();
        assert_eq!(again, sketch);
        assert_eq!(near(&index, &again), [TEXTS[0]]);
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        writer.delete(TEXTS[3]).unwrap();
        writer.commit().unwrap();
    }
    assert_eq!(problems(&path), [""; 0]);
    let found = verify::verify(&RealVfs, &path, |_| ());
    assert_eq!(found.notes, [""; 0]);
    assert!(found.bytes > to_bytes(&table()).len() as u64);
}

#[test]
fn index_without_its_table_answers_queries_but_cannot_sketch_texts() {
    let (_dir, path, file, sketch) = indexed();
    fs::remove_file(&file).unwrap();
    let index = Index::open(&path).unwrap();
    assert_eq!(near(&index, &sketch), [TEXTS[0]]);
    let error = index.sketcher().unwrap_err();
    assert!(error.is_corruption(), "{error}");
    assert!(error.to_string().contains("no such file"), "{error}");
    let found = problems(&path);
    assert!(found.len() == 1 && found[0].contains(file.to_str().unwrap()), "{found:?}");
    // Writing the table again repairs the index.
    idf::write(&RealVfs, &file, &table(), false).unwrap();
    assert_eq!(index.sketcher().unwrap().sketch(TEXTS[0]).unwrap(), sketch);
    assert_eq!(problems(&path), [""; 0]);
}

#[test]
fn every_flipped_bit_and_truncation_of_the_table_is_reported() {
    let (_dir, path, file, sketch) = indexed();
    let sound = fs::read(&file).unwrap();
    let index = Index::open(&path).unwrap();
    let replace = |bytes: &[u8]| {
        fs::remove_file(&file).unwrap();
        fs::write(&file, bytes).unwrap();
    };
    let mut refused = 0;
    for bit in 0..sound.len() * 8 {
        let mut damaged = sound.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        replace(&damaged);
        let error = index.sketcher().expect_err("damage is reported");
        assert!(error.is_corruption(), "bit {bit}: {error}");
        if bit % 97 == 0 {
            assert_eq!(near(&Index::open(&path).unwrap(), &sketch), [TEXTS[0]]);
            assert_eq!(problems(&path), [error.to_string()], "bit {bit}");
        }
        refused += 1;
    }
    for length in 0..sound.len() {
        replace(&sound[..length]);
        assert!(index.sketcher().unwrap_err().is_corruption(), "length {length}");
    }
    replace(&[&sound[..], b"\0"].concat());
    assert!(index.sketcher().unwrap_err().is_corruption());
    replace(&sound);
    assert_eq!(index.sketcher().unwrap().sketch(TEXTS[0]).unwrap(), sketch);
    assert_eq!(refused, sound.len() * 8);
}

#[test]
fn replacement_by_another_valid_table_is_reported() {
    let (_dir, path, file, _) = indexed();
    let mut builder = IdfBuilder::new(&Shingling::words(1, 0));
    builder.add(&[1, 2, 3]).unwrap();
    fs::remove_file(&file).unwrap();
    idf::write(&RealVfs, &file, &builder.finish().unwrap(), false).unwrap();
    let error = Index::open(&path).unwrap().sketcher().unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("as in the parameters"), "{error}");
    assert_eq!(problems(&path), [error.to_string()]);
}

#[test]
fn newer_idf_table_is_unsupported_and_foreign_file_is_corrupt() {
    let (_dir, path, file, _) = indexed();
    let mut newer = Header::new(Role::Idf, 1, 2);
    newer.version.set(twindex::format::VERSION + 1);
    let sealed = twindex::format::checksum::checksum(1, 0, &newer.as_bytes()[..60]);
    newer.checksum.set(sealed);
    fs::remove_file(&file).unwrap();
    fs::write(&file, newer.as_bytes()).unwrap();
    let error = Index::open(&path).unwrap().sketcher().unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let error = idf::read(&RealVfs, &path.join("CURRENT")).unwrap_err().to_string();
    assert!(error.contains("role 5"), "{error}");
}

#[test]
fn writer_removes_unused_tables_but_keeps_unknown_files() {
    let (_dir, path, file, _) = indexed();
    let stray = path.join(format!("IDF-{:032x}", 7));
    let foreign = path.join("IDF-notes");
    fs::write(&stray, "").unwrap();
    fs::write(&foreign, "").unwrap();
    let notes = verify::verify(&RealVfs, &path, |_| ()).notes;
    assert!(notes.len() == 2 && notes[0].contains("not the table of this index"), "{notes:?}");
    drop(Index::open(&path).unwrap().writer().unwrap());
    assert_eq!((stray.exists(), foreign.exists(), file.exists()), (false, true, true));
}

#[test]
fn creation_of_an_index_with_a_table_is_atomic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let table = table();
    let refused = |done: twindex::Result<Index>, part: &str| {
        let error = done.unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    };
    refused(Index::create(&path, params(&table)), "create the index with it");
    let simhash = || Params::builder().words(1);
    refused(Index::create_with_idf(&path, simhash().simhash(3).build().unwrap(), &table), "simhash=idf");
    let weighted = |builder: twindex::params::ParamsBuilder| {
        builder.simhash_weighted(3, table.weights()).build().unwrap()
    };
    refused(Index::create_with_idf(&path, weighted(simhash().words(2)), &table), "width=2");
    refused(Index::create_with_idf(&path, weighted(simhash().seed(2)), &table), "seed=2");
    assert!(Index::create_with_idf(&path, params(&table), &table).is_ok());
}
