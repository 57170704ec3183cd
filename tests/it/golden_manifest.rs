//! Tests the golden files as a whole. `tests/golden/MANIFEST.tsv` lists every file with its length, its xxh3-128 digest and
//! a description of its content. The tests check that the files of format 1.0 together have every role, every codec, every
//! preset, and every feature bit in each role that can have it. They also check that each index and segment of format 1.0
//! passes verification, and that the Python reader finds the same content.
//!
//! Golden files never change. With `TWINDEX_WRITE_GOLDEN=1`, lines for new files are added to the manifest, and
//! `format-1.0/all.sketches` is written if it is missing. The other files in `format-1.0` were written by the command:
//!
//! - `weighted`: an index with a segment and a log, with raw tokens, ignored boilerplate (its list of spans is the file
//!   `boilerplate`), an IDF table, weighted minima, features of 12 bits and values;
//! - `hot`: an index of 4200 fingerprints that agree in their first 14 bits, and 100 others, so that table 1 has a hot
//!   bucket;
//! - `presets`: an index of two documents for each preset;
//! - `passages`: an index of passages with a deleted document, which the tests of the command read.

#![allow(clippy::disallowed_methods, reason = "reads golden files, and writes new ones on request")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use twindex::format::fields::{self, Fields};
use twindex::format::header::{Header, Role};
use twindex::format::sketches::{Decoder, Encoded, Encoder, Row};
use twindex::params::{MinhashWeights, Near, Preset, Shingling, Tokens};
use twindex::segment::Segment;
use twindex::store::verify::verify;
use twindex::sys::RealVfs;
use twindex::{Index, KeyBuf, Params, Snapshot, open_idf};
use xxhash_rust::xxh3::xxh3_128;

use crate::{second_reader, spec_numbers};

const HEAD: &str = "path\tbytes\txxh3-128\tcovers\n";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn is_requested() -> bool {
    std::env::var_os("TWINDEX_WRITE_GOLDEN").is_some_and(|value| value == "1")
}

/// Returns the paths of all golden files, relative to `tests/golden`, with `/` as the separator.
fn names() -> Vec<String> {
    fn walk(dir: &Path, name: &str, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let own = path.file_name().unwrap().to_str().unwrap();
            let name = if name.is_empty() { own.to_owned() } else { format!("{name}/{own}") };
            if path.is_dir() {
                walk(&path, &name, names);
            } else if own != "LOCK" && name != "MANIFEST.tsv" {
                names.push(name);
            }
        }
    }
    let sketches = golden().join("format-1.0/all.sketches");
    if is_requested() && !sketches.exists() {
        std::fs::write(sketches, all_sketches()).unwrap();
    }
    let mut names_found = Vec::new();
    walk(&golden(), "", &mut names_found);
    names_found.sort();
    names_found
}

fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(golden().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns a file of sketches with every feature bit that such a file can have.
fn all_sketches() -> Vec<u8> {
    let mut shingling = Shingling::words(3, 1);
    shingling.tokens = Tokens::WordsSymbols;
    shingling.boilerplate = Some(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
    let params =
        Params::builder().shingling(shingling).minhash(3, 2).signature_bits(4).feature_bits(12).sets();
    let params = params.minhash_weights(MinhashWeights::Frequencies).near(Near::resembling(0.7).unwrap());
    let params = params.build().unwrap();
    let (mut file, mut records, mut set) = (Vec::new(), Encoded::new(&params), Vec::new());
    let mut encoder = Encoder::new(&params, &mut file);
    for number in 0..9_u64 {
        let features =
            [1, 2, 3].map(|band: u64| number.wrapping_mul(band).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let row = Row { features: &features, signature: &[number as u8, 0x12, 0x34], ..Row::default() };
        let hashes: Vec<u64> = (0..number).map(|hash| hash << 40 | number).collect();
        fields::encode(&params, false, &hashes, None, &mut set);
        let key = format!("page {number}");
        records.push_with(key.as_str().into(), (number != 4).then_some(row), Fields::of(&set)).unwrap();
    }
    encoder.append(&records, &mut file);
    encoder.finish(&mut file);
    file
}

/// Returns the names in the specification of the incompatible features whose bits are in `bits`.
fn features(bits: u32) -> Vec<String> {
    let all =
        spec_numbers::rows("#### Incompatible features", &["bit", "name", "files", "set if and only if"]);
    all.into_iter()
        .filter(|row| bits & row[0].parse::<u32>().unwrap() != 0)
        .map(|row| row[1].clone())
        .collect()
}

/// Returns the role and the header of a file; `None` if the file does not begin with a valid header.
fn header(bytes: &[u8]) -> Option<(Role, Header)> {
    let header = Header::read_any(bytes).ok()?;
    Role::ALL.into_iter().find(|role| *role as u8 == header.role).map(|role| (role, header))
}

fn segment(name: &str) -> Segment {
    Segment::open(&RealVfs, &golden().join(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Describes a file for the manifest: its version, role and features, and the sections of a segment with their codecs.
fn covers(name: &str, bytes: &[u8]) -> String {
    let Some((role, header)) = header(bytes) else {
        return match name.rsplit('/').next().unwrap() {
            "boilerplate" => "a list of spans".into(),
            _ if name.starts_with("format-1.0/passages/") => "an index of passages".into(),
            _ => "expected values of tests".into(),
        };
    };
    let version = header.version.get();
    let mut text = format!("version {version}, {}", format!("{role:?}").to_lowercase());
    if header.incompatible.get() != 0 {
        text.push_str(", features ");
        text.push_str(&features(header.incompatible.get()).join(" "));
    }
    if role == Role::Segment {
        let sections: BTreeSet<String> =
            segment(name).sections().iter().map(|s| format!("{} {}", s.kind.name(), s.codec)).collect();
        text.push_str(", sections ");
        text.push_str(&Vec::from_iter(sections).join(", "));
    }
    text
}

#[test]
fn manifest_lists_every_golden_file_with_its_digest() {
    let path = golden().join("MANIFEST.tsv");
    let listed = std::fs::read_to_string(&path).unwrap_or_else(|_| HEAD.to_owned());
    let mut lines: BTreeMap<&str, &str> = BTreeMap::new();
    assert!(listed.starts_with(HEAD));
    for line in listed[HEAD.len()..].lines() {
        assert!(lines.insert(line.split('\t').next().unwrap(), line).is_none(), "twice: {line}");
    }
    let names = names();
    let expected: Vec<String> = names
        .iter()
        .map(|name| {
            let bytes = bytes_of(name);
            format!("{name}\t{}\t{:032x}\t{}", bytes.len(), xxh3_128(&bytes), covers(name, &bytes))
        })
        .collect();
    if is_requested() {
        let all: Vec<String> = names
            .iter()
            .zip(&expected)
            .map(|(name, new)| lines.get(name.as_str()).map_or(new.clone(), |old| (*old).to_owned()))
            .collect();
        std::fs::write(&path, format!("{HEAD}{}\n", all.join("\n"))).unwrap();
        return;
    }
    for (name, expected) in names.iter().zip(&expected) {
        assert_eq!(lines.remove(name.as_str()), Some(expected.as_str()), "golden files never change: {name}");
    }
    assert!(lines.is_empty(), "listed, but not there: {lines:?}");
}

/// Returns the directories of the indexes.
fn indexes() -> Vec<PathBuf> {
    let names = names();
    let current = names.iter().filter(|name| name.ends_with("/CURRENT"));
    current.map(|name| golden().join(name).parent().unwrap().to_owned()).collect()
}

#[test]
fn golden_files_cover_every_role_codec_feature_and_preset() {
    let (mut roles, mut codecs, mut bits) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::<u8, u32>::new());
    let mut schemes = BTreeSet::new();
    for name in names() {
        let Some((role, header)) = header(&bytes_of(&name)) else { continue };
        roles.insert(role as u8);
        *bits.entry(role as u8).or_default() |= header.incompatible.get();
        if role == Role::Segment {
            let segment = segment(&name);
            codecs.extend(segment.sections().iter().map(|s| (s.kind.name().to_owned(), s.codec.to_string())));
            schemes.extend(segment.params().minhash.map(|m| (m.bands, m.rows, m.feature_bits)));
        }
    }
    assert_eq!(roles, Role::ALL.map(|role| role as u8).into());
    let specified = spec_numbers::rows("#### Codecs", &["section", "codec", "name"]);
    let missing: Vec<_> =
        specified.iter().filter(|row| !codecs.contains(&(row[0].clone(), row[1].clone()))).collect();
    assert!(missing.is_empty(), "no golden segment has {missing:?}");
    for role in Role::ALL {
        let missing = features(role.incompatible_known() & !bits[&(role as u8)]);
        assert!(missing.is_empty(), "no golden file of role {role:?} has {missing:?}");
    }
    for preset in Preset::ALL {
        let params = Params::builder().preset(preset).build().unwrap().minhash.unwrap();
        let scheme = (params.bands, params.rows, params.feature_bits);
        assert!(schemes.contains(&scheme), "no golden index of the preset {}", preset.name);
    }
}

#[test]
fn golden_files_of_format_1_0_open_and_verify() {
    let indexes = indexes();
    assert!(indexes.len() >= 27, "{}", indexes.len());
    for dir in &indexes {
        let problems = verify(&RealVfs, dir, |_| ()).problems;
        assert!(problems.is_empty(), "{}: {problems:?}", dir.display());
    }
    let (mut segments, mut tables, mut sketches) = (0, 0, 0);
    for name in names() {
        let bytes = bytes_of(&name);
        match header(&bytes) {
            Some((Role::Segment, _)) => {
                let problems = segment(&name).verify(|_| ());
                assert!(problems.is_empty(), "{name}: {problems:?}");
                segments += 1;
            }
            Some((Role::Idf, _)) => {
                let table = open_idf(golden().join(&name)).unwrap();
                assert!(name.ends_with(&format!("IDF-{:032x}", table.digest())), "{name}");
                tables += 1;
            }
            Some((Role::Sketches, _)) => {
                let (mut decoder, mut rest) = (Decoder::new(), &bytes[..]);
                while decoder.wants() > 0 {
                    let (part, later) = rest.split_at(decoder.wants());
                    let mut rows = decoder.feed(part).unwrap();
                    while rows.next_with_set().unwrap().is_some() {}
                    rest = later;
                }
                assert!(rest.is_empty(), "{name}");
                sketches += 1;
            }
            _ => {}
        }
    }
    assert!(segments >= 29 && tables >= 1 && sketches >= 2, "{segments} {tables} {sketches}");
    assert!(bytes_of("format-1.0/all.sketches") == all_sketches(), "another file of sketches is written");
}

/// Returns the mark and the set of each live document.
fn marks_and_sets(snapshot: &Snapshot) -> second_reader::LastPut {
    let mut all = BTreeMap::<KeyBuf, (bool, Vec<u64>)>::new();
    for (segment, deleted) in snapshot.segments() {
        for ordinal in (0..segment.documents() as u32).filter(|ordinal| !deleted.contains(*ordinal)) {
            let (mut set, mut marked) = (Vec::new(), false);
            if segment.params().sets {
                segment.set(ordinal, &mut set).unwrap();
            }
            if segment.params().marks {
                marked = segment.fields(ordinal).unwrap().is_marked();
            }
            all.insert(segment.key(ordinal).unwrap(), (marked, set));
        }
    }
    all
}

#[test]
fn python_reader_finds_the_same_content_in_every_golden_index() {
    for dir in indexes() {
        let snapshot = Index::open(&dir).unwrap().snapshot();
        let Some(found) = second_reader::read(&dir) else { return };
        let ours = second_reader::described(&snapshot, &marks_and_sets(&snapshot));
        assert_eq!(found, ours, "{}", dir.display());
    }
    for name in names() {
        if matches!(header(&bytes_of(&name)), Some((Role::Idf | Role::Sketches, _))) {
            let Some(found) = second_reader::read(&golden().join(&name)) else { return };
            assert!(found.lines().count() > 1, "{name}: {found}");
        }
    }
}
