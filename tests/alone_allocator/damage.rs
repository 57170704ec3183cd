//! Tests that damaged files are detected: no damaged segment or index gives a wrong answer without an error.
//!
//! Most engines that we examined silently gave different answers from some copy of their files with a flipped bit or a
//! truncated end, and some crashed. These tests do the same to our files, exhaustively if the files are small: they flip
//! every bit, truncate to every length, and swap pages and files. If a damaged file opens, all queries run on it. Each
//! must return the answer of the undamaged file or a typed error.
//!
//! The second half damages content *below* the checksums: it flips a bit and then updates all checksums. The answers may
//! then be wrong, but no query may panic, read out of bounds, or use excessive memory or time, and `verify` must report
//! each flipped bit.
//!
//! By default, only one bit of each byte is flipped in larger files; `scripts/damage` flips all bits
//! (`TWINDEX_DAMAGE=all`).

#![allow(clippy::disallowed_methods, reason = "damages files without the index's knowledge")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use twindex::format::checksum::PAGE;
use twindex::format::contents::Kind;
use twindex::format::header::HEADER_BYTES;
use twindex::segment::records::Kept;
use twindex::segment::{Records, Segment};
use twindex::{Document, Error, Fingerprint, Index, Key, Params, Result, Sketch, WriterOptions};

use crate::allocations::LARGEST;
use crate::support::memory::MemoryVfs;
use crate::support::near;
use crate::support::{
    Compared, Random, Sample, Seals, SegmentQueries, bytes_of, compare, place, records, samples,
};

/// Maximum size in bytes of a single allocation while a file of `file_length` bytes is opened and queried.
fn largest_allocation(file_length: usize) -> usize {
    (1 << 20) + 16 * file_length
}
/// Time limit of a case: far above the time of any case, and far below that of a loop over an invalid count.
const LONGEST: Duration = Duration::from_secs(10);

/// The allowed outcomes for a damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    RefusedAtOpen,
    /// Some queries return an error; all others return the answers of the undamaged file.
    RefusedWhenAsked,
    /// All answers are correct; only `verify` reports the damage.
    OnlyVerifyNotices,
    /// The file opens, because its checksums were updated after the damage; `verify` reports the damage.
    LieReported,
    /// The answers of the undamaged file.
    Same,
}

type Counts = BTreeMap<Outcome, usize>;

/// Runs all cases on all cores, measures the time and the largest allocation of each, and counts the outcomes. Panics
/// with the first disallowed outcomes.
fn run(
    name: &str,
    cases: usize,
    length: usize,
    case: impl Fn(usize) -> std::result::Result<Outcome, String> + Sync,
) -> Counts {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Counts::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= cases {
                        break;
                    }
                    let watched = || {
                        LARGEST.set(0);
                        let begin = Instant::now();
                        let outcome = catch_unwind(AssertUnwindSafe(|| case(number)))
                            .unwrap_or_else(|_| Err("a panic".into()));
                        (outcome, begin.elapsed(), LARGEST.get())
                    };
                    let (mut outcome, mut took, mut largest) = watched();
                    if took > LONGEST {
                        // Other load on the machine may have slowed this case, so it runs a second time.
                        (outcome, took, largest) = watched();
                    }
                    if outcome.is_ok() && (took > LONGEST || largest > largest_allocation(length)) {
                        outcome = Err(format!("took {took:?} and {largest} bytes at once"));
                    }
                    let (counts, problems) = &mut *results.lock().unwrap();
                    match outcome {
                        Ok(outcome) => *counts.entry(outcome).or_default() += 1,
                        Err(problem) => problems.push((number, problem)),
                    }
                }
            });
        }
    });
    let (counts, mut problems) = results.into_inner().unwrap();
    problems.sort();
    println!("{name}: {cases} cases: {counts:?}");
    assert!(
        problems.is_empty(),
        "{name}: {} of {cases} cases: {:#?}",
        problems.len(),
        &problems[..problems.len().min(12)]
    );
    counts
}

fn add(total: &mut Counts, counts: Counts) {
    for (outcome, count) in counts {
        *total.entry(outcome).or_default() += count;
    }
}

/// Maximum length in bytes of a file whose bits are all flipped in every run.
const SMALL: usize = 4_000;

/// Returns the bits to flip: all bits of a small file, and one bit of each byte of a larger one. With
/// `TWINDEX_DAMAGE=all`, returns all bits.
fn bits(bytes: &[u8]) -> Vec<usize> {
    let all = bytes.len() <= SMALL || std::env::var_os("TWINDEX_DAMAGE").is_some_and(|value| value == "all");
    if all {
        (0..bytes.len() * 8).collect()
    } else {
        (0..bytes.len()).map(|byte| byte * 8 + byte * 5 % 8).collect()
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    damaged[bit / 8] ^= 1 << (bit % 8);
    damaged
}

/// Checks that callers can recognise the error as damage.
fn typed(error: &Error) -> std::result::Result<(), String> {
    match error {
        Error::Corrupt { .. } | Error::Unsupported { .. } => Ok(()),
        other => Err(format!("not a typed error of damage: {other:?}")),
    }
}

/// An undamaged segment file, the queries to run on it, and their answers.
struct SoundFile {
    bytes: Vec<u8>,
    questions: SegmentQueries,
    answers: Vec<Result<Vec<u64>>>,
}

impl SoundFile {
    fn of(bytes: Vec<u8>, radii: &'static [u32]) -> Self {
        let segment = Segment::from_bytes(bytes.clone(), place()).unwrap();
        assert_eq!(segment.verify(|_| ()).len(), 0);
        let questions = SegmentQueries::of(&segment, radii);
        let answers = questions.ask(&segment);
        assert!(answers.iter().filter(|answer| answer.is_ok()).count() * 2 > answers.len());
        Self { bytes, questions, answers }
    }

    /// Keeps only the queries for every `step`-th document and fingerprint.
    fn every(mut self, step: usize) -> Self {
        self.questions.keep_every(step);
        self.answers = self.questions.ask(&Segment::from_bytes(self.bytes.clone(), place()).unwrap());
        self
    }

    /// Opens the damaged bytes and runs all queries. If they open, `verify` must report the damage.
    fn outcome(&self, damaged: Vec<u8>) -> std::result::Result<Outcome, String> {
        let segment = match Segment::from_bytes(damaged, place()) {
            Ok(segment) => segment,
            Err(error) => return typed(&error).map(|()| Outcome::RefusedAtOpen),
        };
        let found = self.questions.ask(&segment);
        for (found, sound) in found.iter().zip(&self.answers) {
            if let (Err(error), Ok(_)) = (found, sound) {
                typed(error)?;
            }
        }
        let compared = compare(&found, &self.answers);
        let problems = segment.verify(|_| ());
        for problem in &problems {
            typed(problem)?;
        }
        match compared {
            Compared::Different(place) => Err(format!("answer {place} differs")),
            _ if problems.is_empty() => Err("not noticed by verify".into()),
            Compared::Refused => Ok(Outcome::RefusedWhenAsked),
            Compared::Same => Ok(Outcome::OnlyVerifyNotices),
        }
    }
}

const RADII: &[u32] = &[0, 3, 7];

/// Returns a segment in which every section has several pages, so that damage to one page leaves the others usable.
fn several_pages() -> Vec<u8> {
    let params = Params::builder().words(2).simhash(3).minhash(2, 2).signature_bits(8).build().unwrap();
    bytes_of(&records(&params, 700))
}

#[test]
fn verify_detects_every_flipped_segment_bit_and_no_answer_changes() {
    let mut total = Counts::new();
    for Sample { name, bytes } in samples() {
        let sound = SoundFile::of(bytes, RADII);
        let bits = bits(&sound.bytes);
        add(
            &mut total,
            run(&name, bits.len(), sound.bytes.len(), |i| sound.outcome(flipped(&sound.bytes, bits[i]))),
        );
    }
    println!("all: {total:?}");
    assert!(total[&Outcome::RefusedAtOpen] > 10_000, "{total:?}");
}

#[test]
fn flipped_bit_is_detected_when_its_page_is_read() {
    let sound = SoundFile::of(several_pages(), &[3]);
    assert!(sound.bytes.len() as u64 > 3 * PAGE);
    let step = if std::env::var_os("TWINDEX_DAMAGE").is_some_and(|value| value == "all") { 1 } else { 211 };
    let cases = sound.bytes.len() * 8 / step;
    let counts = run("pages", cases, sound.bytes.len(), |i| sound.outcome(flipped(&sound.bytes, i * step)));
    assert!(counts[&Outcome::RefusedAtOpen] > 0 && counts[&Outcome::RefusedWhenAsked] > 0, "{counts:?}");
}

#[test]
fn opening_refuses_truncated_and_extended_segments() {
    let mut total = Counts::new();
    for Sample { name, bytes } in samples() {
        let length = bytes.len();
        let sound = SoundFile::of(bytes, &[3]);
        let counts = run(&name, length, length, |cut| sound.outcome(sound.bytes[..cut].to_vec()));
        assert_eq!(counts.get(&Outcome::RefusedAtOpen), Some(&length));
        add(&mut total, counts);
        let mut additions: Vec<Vec<u8>> = vec![sound.bytes.clone(), sound.bytes[length - 64..].to_vec()];
        additions.extend([1, 2, 63, 64, 65, 4096].map(|count| vec![0; count]));
        additions.extend([1, 64].map(|count| vec![0xA5; count]));
        let counts = run(&name, additions.len(), length * 2 + 4096, |i| {
            sound.outcome([&sound.bytes[..], &additions[i]].concat())
        });
        assert_eq!(counts.get(&Outcome::RefusedAtOpen), Some(&additions.len()));
        add(&mut total, counts);
        // Removes bytes from the start of the file. Only the footer, which is found from the end, can still be read.
        let counts = run(&name, length, length, |cut| sound.outcome(sound.bytes[cut + 1..].to_vec()));
        assert_eq!(counts.get(&Outcome::RefusedAtOpen), Some(&length));
    }
    println!("all: {total:?}");
}

#[test]
fn swapped_repeated_zeroed_and_foreign_pages_are_refused() {
    let params = Params::builder().words(2).simhash(3).minhash(2, 2).signature_bits(8).build().unwrap();
    let bytes = several_pages();
    let mut others = records(&params, 699);
    others.push("zzz".into(), None).unwrap();
    let other = bytes_of(&others);
    let sound = SoundFile::of(bytes, &[3]);
    let pages = sound.bytes.len() / PAGE as usize;
    let page = |number: usize| number * PAGE as usize..(number + 1) * PAGE as usize;
    let mut damaged: Vec<Vec<u8>> = Vec::new();
    for a in 0..pages {
        for b in 0..pages {
            if a != b {
                let mut swapped = sound.bytes.clone();
                swapped[page(a)].copy_from_slice(&sound.bytes[page(b)]);
                damaged.push(swapped.clone());
                swapped[page(b)].copy_from_slice(&sound.bytes[page(a)]);
                damaged.push(swapped);
            }
        }
        let mut zeroed = sound.bytes.clone();
        zeroed[page(a)].fill(0);
        damaged.push(zeroed);
        let mut taken = sound.bytes.clone();
        taken[page(a)].copy_from_slice(&other[page(a)]);
        damaged.push(taken);
    }
    let counts = run("pages", damaged.len(), sound.bytes.len(), |i| sound.outcome(damaged[i].clone()));
    assert!(!counts.contains_key(&Outcome::OnlyVerifyNotices), "{counts:?}");
    assert!(counts[&Outcome::RefusedAtOpen] > 0 && counts[&Outcome::RefusedWhenAsked] > 0, "{counts:?}");
}

#[test]
fn damage_with_valid_checksums_causes_no_panic_and_verify_reports_it() {
    let mut total = Counts::new();
    for Sample { name, bytes } in samples() {
        let seals = Seals::of(&bytes);
        let sound = SoundFile::of(bytes, RADII);
        let bits = bits(&sound.bytes);
        let counts = run(&name, bits.len(), sound.bytes.len(), |i| lie(&sound, seals, bits[i]));
        add(&mut total, counts);
    }
    println!("all: {total:?}");
    assert!(total[&Outcome::RefusedAtOpen] > 1000 && total[&Outcome::LieReported] > 1000, "{total:?}");
}

#[test]
fn verify_reports_damage_with_valid_checksums_in_any_page() {
    let bytes = several_pages();
    let seals = Seals::of(&bytes);
    let sound = SoundFile::of(bytes, &[3]);
    let step = if std::env::var_os("TWINDEX_DAMAGE").is_some_and(|value| value == "all") { 1 } else { 197 };
    let counts =
        run("pages", sound.bytes.len() * 8 / step, sound.bytes.len(), |i| lie(&sound, seals, i * step));
    assert!(counts[&Outcome::LieReported] > 100, "{counts:?}");
}

/// Designs and codecs of tables that take several pages; the segments contain only fingerprints.
const TABLES_OF_PAGES: [(&str, &str); 7] = [
    ("blocks-3", "planes"),
    ("blocks-3", "compact+2"),
    ("reversed-6", "compact"),
    ("reversed-6", "manku"),
    ("reversed-6", "plain"),
    ("choose-4-2", "manku+2"),
    ("blocks-2", "planes+4"),
];

#[test]
fn damage_in_multi_page_tables_is_detected_with_every_codec() {
    let step = if std::env::var_os("TWINDEX_DAMAGE").is_some_and(|value| value == "all") { 7 } else { 1499 };
    for (design, codecs) in TABLES_OF_PAGES {
        let bytes = bytes_of(&records(&near::params(design, codecs), 900));
        let seals = Seals::of(&bytes);
        let sound = SoundFile::of(bytes, &[2]).every(9);
        assert!(sound.bytes.len() as u64 > 3 * PAGE);
        let (name, cases) = (format!("{design} {codecs}"), sound.bytes.len() * 8 / step);
        let counts =
            run(&name, cases, sound.bytes.len(), |i| sound.outcome(flipped(&sound.bytes, i * step + i % 8)));
        assert!(counts[&Outcome::RefusedWhenAsked] > 10, "{counts:?}");
        let counts = run(&name, cases, sound.bytes.len(), |i| lie(&sound, seals, i * step + i % 8));
        assert!(counts[&Outcome::LieReported] > 10, "{counts:?}");
    }
}

#[test]
fn damage_in_a_table_with_a_hot_bucket_is_detected() {
    let step = if std::env::var_os("TWINDEX_DAMAGE").is_some_and(|value| value == "all") { 7 } else { 997 };
    for codecs in ["planes", "planes+3", "compact"] {
        let mut records = Records::new(&near::params("blocks-4", codecs));
        for (key, fingerprint) in (0..).zip(near::hot(9000)) {
            let kept = Kept { fingerprint, ..Kept::default() };
            records.push(Key::U64(key), Some(kept)).unwrap();
        }
        let bytes = bytes_of(&records);
        let seals = Seals::of(&bytes);
        let sound = SoundFile::of(bytes, &[3]).every(90);
        let segment = Segment::from_bytes(sound.bytes.clone(), place()).unwrap();
        let section = segment.sections().iter().find(|section| section.kind == Kind::Hot);
        let section = section.expect("a bucket of more than 4,096 fingerprints is hot");
        let bits = |i: usize| section.offset as usize * 8 + i * step + i % 8;
        let cases = (section.length as usize * 8 - 8) / step;
        let counts = run(codecs, cases, sound.bytes.len(), |i| sound.outcome(flipped(&sound.bytes, bits(i))));
        assert!(counts[&Outcome::RefusedWhenAsked] > 10, "{counts:?}");
        let counts = run(codecs, cases, sound.bytes.len(), |i| lie(&sound, seals, bits(i)));
        assert!(counts[&Outcome::LieReported] > 10, "{counts:?}");
    }
}

/// The bytes of the compatible features. Readers ignore unknown ones, so they are the only field that can change without
/// effect.
const COMPATIBLE_FEATURES: Range<usize> = 16..24;

/// Flips a bit, updates all checksums, and runs all queries and `verify`.
fn lie(sound: &SoundFile, seals: Seals, bit: usize) -> std::result::Result<Outcome, String> {
    let mut file = flipped(&sound.bytes, bit);
    seals.reseal(&mut file, false);
    if file == sound.bytes {
        return Ok(Outcome::Same); // the bit belongs to a checksum, so the update restored it
    }
    let segment = match Segment::from_bytes(file, place()) {
        Ok(segment) => segment,
        Err(error) => return typed(&error).map(|()| Outcome::RefusedAtOpen),
    };
    let found = sound.questions.ask(&segment);
    let problems = segment.verify(|_| ());
    for problem in &problems {
        typed(problem)?;
    }
    let same = compare(&found, &sound.answers) == Compared::Same;
    if COMPATIBLE_FEATURES.contains(&(bit / 8)) {
        return if same && problems.is_empty() { Ok(Outcome::Same) } else { Err("compatible".into()) };
    }
    let in_part = if bit / 8 < HEADER_BYTES {
        "header".to_owned()
    } else {
        let sections = segment.sections().iter().rev();
        sections.into_iter().find(|section| section.offset <= (bit / 8) as u64).map_or(String::new(), |s| {
            format!("{} {} + {}", s.kind.name(), s.index, bit as u64 / 8 - s.offset)
        })
    };
    if problems.is_empty() {
        return Err(format!("verify finds nothing; answers the same: {same}; bit {bit}, {in_part}"));
    }
    Ok(Outcome::LieReported)
}

/// The files of a small index with two segments and deleted documents, the sketches to query, and the answers.
struct SoundIndex {
    dir: tempfile::TempDir,
    files: MemoryVfs,
    sketches: Vec<Sketch>,
    answers: Vec<String>,
}

impl SoundIndex {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let params = Params::builder().words(1).simhash(3).minhash(2, 1).signature_bits(8).values();
        let index = Index::create(&path, params.expire_after(100).build().unwrap()).unwrap();
        let texts = ["red green blue", "red green blue", "one two three four", "", "red green bleu"];
        let sketches: Vec<Sketch> =
            texts.iter().map(|text| index.sketcher().unwrap().sketch(text).unwrap()).collect();
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        // The second commit makes one of these documents expire.
        for ((key, sketch), stamp) in ["a", "b", "c"].into_iter().zip(&sketches).zip([1050, 1000, 949]) {
            writer.put(key, Document::from(sketch).with_value(b"value").with_stamp(stamp)).unwrap();
        }
        writer.commit().unwrap();
        for (key, sketch) in ["b", "d", "e"].into_iter().zip(&sketches[2..]) {
            writer.put(key, Document::from(sketch).with_value(b"value").with_stamp(1049)).unwrap();
        }
        writer.commit().unwrap();
        drop(writer);
        let files = MemoryVfs::copy_of(&path);
        let mut sound = Self { dir, files, sketches, answers: Vec::new() };
        sound.answers = sound.ask(&index).into_iter().map(Result::unwrap).collect();
        sound
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    fn ask(&self, index: &Index) -> Vec<Result<String>> {
        let snapshot = index.snapshot();
        let mut all = vec![Ok(format!(
            "{} {:?} {} {:?} {:x}",
            snapshot.documents(),
            snapshot.now(),
            snapshot.generation(),
            snapshot.params(),
            snapshot.uuid()
        ))];
        for key in ["a", "b", "c", "d", "e", "f"] {
            all.push(snapshot.get(key).map(|record| format!("{record:?}")));
        }
        for sketch in &self.sketches {
            all.push(snapshot.near(sketch).run().map(|answers| format!("{answers:?}")));
            let fingerprint = sketch.fingerprint().unwrap_or(Fingerprint(7));
            for within in [0, 10] {
                all.push(snapshot.within(fingerprint, within).run().map(|answers| format!("{answers:?}")));
            }
        }
        all
    }

    /// Opens the index and runs all queries; any error must be typed.
    fn outcome(&self, files: MemoryVfs) -> std::result::Result<Outcome, String> {
        let index = match Index::open_with(Arc::new(files), &self.path()) {
            Ok(index) => index,
            Err(error) => return typed(&error).map(|()| Outcome::RefusedAtOpen),
        };
        let mut outcome = Outcome::Same;
        for (place, (found, sound)) in self.ask(&index).into_iter().zip(&self.answers).enumerate() {
            match found {
                Ok(found) if found == *sound => {}
                Ok(found) => return Err(format!("answer {place} is {found} instead of {sound}")),
                Err(error) => {
                    typed(&error)?;
                    outcome = Outcome::RefusedWhenAsked;
                }
            }
        }
        Ok(outcome)
    }
}

fn named(paths: &[PathBuf], name: &str) -> PathBuf {
    paths.iter().find(|path| path.ends_with(name)).unwrap_or_else(|| panic!("{name} in {paths:?}")).clone()
}

#[test]
fn no_flipped_bit_of_an_index_file_silently_changes_answers() {
    let sound = SoundIndex::new();
    let paths = sound.files.paths();
    assert_eq!(paths.len(), 6, "CURRENT, LOCK, two manifests, two segments: {paths:?}");
    for path in paths {
        let bytes = sound.files.get(&path);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bits = bits(&bytes);
        let counts = run(&name, bits.len(), bytes.len(), |i| {
            let files = sound.files.fork();
            files.set(&path, flipped(&bytes, bits[i]));
            sound.outcome(files)
        });
        let expected = match name.as_str() {
            // No reader opens the lock file or the manifest of an earlier generation.
            "LOCK" | "MANIFEST-000002" => Outcome::Same,
            _ => Outcome::RefusedAtOpen,
        };
        assert_eq!(counts.get(&expected), Some(&bits.len()), "{name}: {counts:?}");
    }
}

#[test]
fn truncating_any_file_of_an_index_is_an_error() {
    let sound = SoundIndex::new();
    for path in sound.files.paths() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "LOCK" || name == "MANIFEST-000002" {
            continue;
        }
        let bytes = sound.files.get(&path);
        let lengths: Vec<usize> = (0..bytes.len()).chain([bytes.len() + 1, bytes.len() + 64]).collect();
        let counts = run(&name, lengths.len(), bytes.len(), |i| {
            let files = sound.files.fork();
            let mut changed = bytes.clone();
            changed.resize(lengths[i], 0);
            files.set(&path, changed);
            sound.outcome(files)
        });
        assert_eq!(counts.get(&Outcome::RefusedAtOpen), Some(&lengths.len()), "{name}: {counts:?}");
    }
}

#[test]
fn missing_file_is_an_error_that_names_the_file() {
    let sound = SoundIndex::new();
    for name in ["CURRENT", "MANIFEST-000003", "000001.seg", "000002.seg"] {
        let path = sound.path().join(name);
        let aside = sound.dir.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        let error = Index::open(sound.path()).unwrap_err();
        assert!(error.is_corruption(), "{name}: {error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{name}: {error}");
        std::fs::rename(&aside, &path).unwrap();
    }
    // A directory with a segment or a manifest but without CURRENT is damaged: it is neither an index nor an empty
    // directory.
    for left in ["MANIFEST-000003", "000001.seg"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(sound.path().join(left), dir.path().join(left)).unwrap();
        let error = Index::open(dir.path()).unwrap_err();
        assert!(error.is_corruption(), "only {left}: {error:?}");
    }
    let nothing = tempfile::tempdir().unwrap();
    assert!(matches!(Index::open(nothing.path()), Err(Error::NotAnIndex { .. })));
    assert!(matches!(Index::open(nothing.path().join("x")), Err(Error::NotAnIndex { .. })));
    assert!(matches!(Index::open(sound.path().join("CURRENT")), Err(Error::NotAnIndex { .. })));
    Index::open(sound.path()).unwrap();
}

#[test]
fn files_of_another_index_or_another_generation_are_refused() {
    let (mine, theirs) = (SoundIndex::new(), SoundIndex::new());
    let paths = mine.files.paths();
    // Segments depend only on their records, so two indexes with equal records have equal segments. Manifests differ.
    assert_eq!(
        mine.files.get(&mine.path().join("000001.seg")),
        theirs.files.get(&theirs.path().join("000001.seg"))
    );
    for name in ["CURRENT", "MANIFEST-000003"] {
        let files = mine.files.fork();
        files.set(&named(&paths, name), theirs.files.get(&theirs.path().join(name)));
        assert_eq!(mine.outcome(files), Ok(Outcome::RefusedAtOpen), "{name}");
    }
    for (to, from) in [
        ("MANIFEST-000003", "MANIFEST-000002"),
        ("MANIFEST-000003", "CURRENT"),
        ("MANIFEST-000003", "000001.seg"),
        ("CURRENT", "MANIFEST-000003"),
        ("CURRENT", "000001.seg"),
        ("000001.seg", "000002.seg"),
        ("000002.seg", "000001.seg"),
        ("000001.seg", "MANIFEST-000003"),
        ("000001.seg", "LOCK"),
    ] {
        let files = mine.files.fork();
        files.set(&named(&paths, to), mine.files.get(&named(&paths, from)));
        assert_eq!(mine.outcome(files), Ok(Outcome::RefusedAtOpen), "{from} as {to}");
    }
    let files = mine.files.fork();
    let (one, two) = (named(&paths, "000001.seg"), named(&paths, "000002.seg"));
    files.set(&one, mine.files.get(&two));
    files.set(&two, mine.files.get(&one));
    assert_eq!(mine.outcome(files), Ok(Outcome::RefusedAtOpen), "segments swapped");
}

#[test]
fn renamed_index_gives_the_same_answers() {
    let sound = SoundIndex::new();
    let moved = sound.dir.path().join("moved \u{fc}");
    std::fs::rename(sound.path(), &moved).unwrap();
    let index = Index::open(Path::new(&moved)).unwrap();
    let found: Vec<String> = sound.ask(&index).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, sound.answers);
}

#[test]
fn overlapping_buckets_are_refused_before_quadratic_work() {
    // In table 1, each bucket with an even number claims all rows. Each claim is within the table, so only their sum
    // shows the damage. The buckets with odd numbers end before they start, which would be detected as well, so no
    // fingerprint is in one of them.
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let mut records = Records::new(&params);
    let buckets = twindex::design::prefix_bits(3000, 16);
    let mut random = Random(5);
    let mut next = || random.next() & !(1 << (64 - buckets)) & !(0xFFFF << 32);
    for key in 0..3000 {
        let kept = Kept { fingerprint: next(), ..Kept::default() };
        records.push(Key::U64(key), Some(kept)).unwrap();
    }
    let sound = bytes_of(&records);
    let segment = Segment::from_bytes(sound.clone(), place()).unwrap();
    let table = segment.sections().iter().find(|section| section.kind == Kind::Table).unwrap();
    assert_eq!(table.rows, 3000);
    let mut lying = sound.clone();
    for entry in 0..=1_usize << buckets {
        let row = if entry % 2 == 0 { 0 } else { table.rows as u32 };
        let at = table.offset as usize + entry * 4;
        lying[at..at + 4].copy_from_slice(&row.to_le_bytes());
    }
    Seals::of(&sound).reseal(&mut lying, true);
    let lying = Segment::from_bytes(lying, place()).unwrap();
    assert!(!lying.verify(|_| ()).is_empty());
    for _ in 0..20 {
        let error = lying.within(next(), 3, |_| ()).unwrap_err();
        assert!(error.to_string().contains("buckets that overlap"), "{error}");
    }
}

#[test]
fn overlapping_posting_lists_are_refused_before_quadratic_work() {
    // All fingerprints refer to the only long posting list.
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let mut records = Records::new(&params);
    for key in 0..2000_u64 {
        // Half of the documents share one fingerprint. Each of the others has a different fingerprint near it.
        let fingerprint = if key < 1000 { 0 } else { 1 << (key % 32) | 1 << (32 + key / 32 % 32) };
        let kept = Kept { fingerprint, ..Kept::default() };
        records.push(Key::U64(key), Some(kept)).unwrap();
    }
    let sound = bytes_of(&records);
    let segment = Segment::from_bytes(sound.clone(), place()).unwrap();
    let section = segment.sections().iter().find(|section| section.kind == Kind::Postings).unwrap();
    let mut lying = sound.clone();
    for rank in 0..section.rows as usize {
        let at = section.offset as usize + rank * 4;
        lying[at..at + 4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
    }
    Seals::of(&sound).reseal(&mut lying, true);
    let lying = Segment::from_bytes(lying, place()).unwrap();
    let mut handed = 0;
    let error = lying.documents_within(0, 3, |_, _| handed += 1).unwrap_err().to_string();
    assert!(error.contains("lists that overlap"), "{error}");
    assert!(handed <= 2 * lying.documents(), "{handed} documents of {}", lying.documents());
    assert!(!lying.verify(|_| ()).is_empty());
}
