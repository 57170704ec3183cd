//! Tests that errors about a damaged segment name the section that was read and the offset.

use crate::support::{self, Sample, Seals, place};
use twindex::Error;
use twindex::format::contents::ENTRY_BYTES;
use twindex::segment::Segment;

fn sample(name: &str) -> Sample {
    support::samples().into_iter().find(|sample| sample.name == name).expect("a sample of this name")
}

/// Returns the section, the offset, and the expected and the found value of an error.
fn corrupt(error: Error) -> (&'static str, u64, String, String) {
    match error {
        Error::Corrupt { section, offset, expected, found, .. } => (section, offset, expected, found),
        other => panic!("{other:?}"),
    }
}

/// Opens the segment after changing a byte of its table of contents and updating the checksums. Returns the number of the
/// entry, and the expected and the found value of the error.
fn opened_with(name: &str, section: &str, index: u16, field: usize, value: u8) -> (u64, String, String) {
    let sound = sample(name).bytes;
    let seals = Seals::of(&sound);
    let segment = Segment::from_bytes(sound.clone(), place()).unwrap();
    let at =
        |found: &&twindex::format::contents::Section| (found.kind.name(), found.index) == (section, index);
    let entry = segment.sections().iter().position(|found| at(&found)).expect("such a section");
    let mut lying = sound;
    lying[seals.contents().start + entry * ENTRY_BYTES + field] = value;
    seals.reseal(&mut lying, true);
    let (section, offset, expected, found) = corrupt(Segment::from_bytes(lying, place()).unwrap_err());
    assert_eq!(section, "table of contents", "expected {expected}, found {found}");
    let within =
        offset.checked_sub(seals.contents().start as u64).expect("an offset in the table of contents");
    assert_eq!(within % ENTRY_BYTES as u64, 0);
    (within / ENTRY_BYTES as u64, expected, found)
}

const INDEX: usize = 2;
const CODEC: usize = 4;

#[test]
fn wrong_entry_is_reported_in_the_table_of_contents() {
    let tables = "24 in reversed-3 planes";
    // The sections are parameters, keys, ranks, design, and two tables.
    let (entry, expected, found) = opened_with(tables, "ranks", 0, CODEC, 7);
    assert_eq!((entry, expected.as_str()), (2, "section ranks 0, codec 1, 24 rows"));
    assert_eq!(found, "section ranks 0, codec 7, 24 rows");
    let (entry, expected, _) = opened_with(tables, "params", 0, CODEC, 7);
    assert_eq!((entry, expected.as_str()), (0, "the parameters as first section, codec 1"));
    let (entry, expected, found) = opened_with("forty of everything", "band", 1, INDEX, 0);
    assert_eq!(expected, format!("section band 1, codec 2"), "entry {entry}");
    assert!(found.starts_with("section band 0, codec 2"), "{found}");
}

#[test]
fn unknown_table_codec_or_number_is_reported_in_table_of_contents() {
    let tables = "24 in reversed-3 planes";
    for table in 1..=2 {
        let (entry, expected, found) = opened_with(tables, "table", table, CODEC, 99);
        assert_eq!(entry, 3 + u64::from(table), "expected {expected}, found {found}");
        assert!(expected.starts_with(&format!("table {table} by ")), "{expected}");
        assert!(found.starts_with(&format!("section table {table}, codec 99")), "{found}");
    }
    let (_, expected, found) = opened_with(tables, "table", 2, INDEX, 9);
    assert_eq!((expected.as_str(), found.as_str()), ("2 tables of the design reversed-3", "no table 2"));
}

#[test]
fn wrong_salt_is_reported_in_the_header() {
    let mut lying = sample("forty of everything").bytes;
    let seals = Seals::of(&lying);
    lying[24] ^= 1;
    seals.reseal(&mut lying, false);
    let mut problems = Segment::from_bytes(lying, place()).unwrap().verify(|_| ());
    assert_eq!(problems.len(), 1, "{problems:?}");
    let (section, offset, expected, _) = corrupt(problems.remove(0));
    assert_eq!((section, offset), ("header", 24), "{expected}");
}

#[test]
fn unknown_band_is_an_error_instead_of_an_empty_answer() {
    let segment = Segment::from_bytes(sample("twenty with minhash").bytes, place()).unwrap();
    let bands = segment.band_count();
    assert!(segment.same_feature(bands - 1, 0, |_| ()).is_ok());
    for band in [bands, usize::MAX] {
        for refused in [
            segment.same_feature(band, 0, |_| ()),
            segment.same_feature_bits(band, 0, 8, |_| ()),
            segment.for_each_bucket(band, |_, _| Ok(())),
            segment.for_each_band_entry(band, |_, _| Ok(())),
        ] {
            let Err(Error::Invalid(why)) = refused else { panic!("{refused:?}") };
            assert_eq!(why, format!("band {band}: expected one of the {bands} bands of the segment"));
        }
    }
    let without = Segment::from_bytes(sample("three fingerprints").bytes, place()).unwrap();
    assert!(matches!(without.same_feature(0, 0, |_| ()), Err(Error::Invalid(_))));
}

#[test]
fn stamp_of_a_missing_document_is_reported_as_damage() {
    let segment = Segment::from_bytes(sample("twenty with values and stamps").bytes, place()).unwrap();
    assert!(segment.stamp(19).unwrap().is_some());
    for ordinal in [20, u32::MAX] {
        let (section, _, expected, found) = corrupt(segment.stamp(ordinal).unwrap_err());
        assert_eq!((section, expected.as_str()), ("stamps", "an ordinal below 20"));
        assert_eq!(found, ordinal.to_string());
    }
}
