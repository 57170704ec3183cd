//! Replays inputs on which fuzzing of the readers once failed, with a stable compiler: each file in
//! `fuzz/regressions/inputs` is passed to the target `inputs`. The target also runs on its seeds and on random mutations
//! of them.

#![allow(clippy::disallowed_methods, reason = "reads inputs, not an index")]

#[path = "../support/fuzzing/mod.rs"]
mod fuzzing;

use std::fs;
use std::path::{Path, PathBuf};

use fuzzing::made::{HEAD, seeds};
use fuzzing::{inputs, inputs_of, is_of};

/// Returns the path of the directory with this name in `fuzz`.
fn of_fuzz(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

fn replay(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten();
    files
        .map(|file| {
            let path = file.unwrap().path();
            println!("{}", path.display());
            inputs(&fs::read(&path).unwrap());
            path.file_name().unwrap().to_str().unwrap().to_owned()
        })
        .collect()
}

/// Defines a test for each file, so that `scripts/guards` can check that each of them fails.
macro_rules! found {
    ($($name:ident)*) => {
        const FOUND: &[&str] = &[$(stringify!($name)),*];
        mod found {
            $(#[test]
            fn $name() {
                let file = stringify!($name).replace('_', "-");
                super::inputs(&std::fs::read(super::of_fuzz("regressions/inputs").join(file)).unwrap());
            })*
        }
    };
}

found! {
    error_for_a_line_with_one_long_string_is_short
    error_for_a_wrong_length_does_not_depend_on_read_sizes
    error_with_a_long_archive_url_is_short
    error_with_a_long_content_encoding_is_short
    error_with_an_archive_url_has_no_terminal_escapes
    escaped_carriage_return_is_kept
    mark_of_the_first_kept_row_is_kept
    page_compressed_twice_is_decompressed_once
}

#[test]
fn regressions_found_by_fuzzing_readers_pass() {
    let mut files = replay(&of_fuzz("regressions/inputs"));
    files.sort();
    let tests = FOUND.iter().map(|name| name.replace('_', "-"));
    assert!(files.into_iter().eq(tests), "each file has a test of its name");
}

/// `TWINDEX_FUZZ_CORPUS` is the directory of all corpora, as for the fuzz targets of the library.
#[test]
fn readers_pass_on_fuzz_corpora_of_the_environment() {
    let Some(root) = std::env::var_os("TWINDEX_FUZZ_CORPUS") else {
        println!("skipped: TWINDEX_FUZZ_CORPUS names no corpora");
        return;
    };
    let folder = Path::new(&root).join("inputs");
    assert!(!replay(&folder).is_empty(), "nothing in {}", folder.display());
}

#[test]
fn reader_invariants_hold_on_seeds_and_random_mutations() {
    let mut state = 11_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (number, seed) in seeds().iter().enumerate() {
        println!("seed {number}");
        inputs(seed);
        for _ in 0..12 {
            let mut changed = seed.clone();
            for _ in 0..=random(4) {
                let at = random(changed.len());
                match random(4) {
                    0 => changed[at] = random(256) as u8,
                    1 => changed[at] ^= 1 << random(8),
                    2 => changed.insert(at, b"\"\\,\n\r<{}[]:0\xff\x80\0-"[random(16)]),
                    _ => drop(changed.remove(at)),
                }
            }
            inputs(&changed);
        }
    }
}

/// `TWINDEX_FUZZ_SECONDS` is the duration, `TWINDEX_FUZZ_SEED` the seed of the random numbers, and `TWINDEX_FUZZ_READER`
/// the only reader to test. `scripts/fuzz` runs this test if `cargo-fuzz` is not installed. All seeds are used in turn,
/// so that every reader is tested.
#[test]
fn reader_invariants_hold_for_the_requested_time() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let Some(seconds) = number("TWINDEX_FUZZ_SECONDS") else {
        println!("skipped: TWINDEX_FUZZ_SECONDS says no time");
        return;
    };
    let begin = std::time::Instant::now();
    let mut state = number("TWINDEX_FUZZ_SEED").unwrap_or(1);
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let reader = std::env::var("TWINDEX_FUZZ_READER").ok();
    let mut seeds = seeds();
    seeds.retain(|seed| reader.as_ref().is_none_or(|reader| is_of(reader, seed)));
    assert!(!seeds.is_empty(), "there is no reader {reader:?}");
    let mut ran = 0_u64;
    while begin.elapsed().as_secs() < seconds {
        for seed in &seeds {
            let mut changed = seed.clone();
            for _ in 0..=random(6) {
                let at = random(changed.len());
                match random(6) {
                    0 => changed[at] = random(256) as u8,
                    1 => changed[at] ^= 1 << random(8),
                    2 => changed.insert(at, b"\"\\,\n\r<{}[]:0\xff\x80\0-"[random(16)]),
                    3 => {
                        // Inserts a part of another input, or of the same one.
                        let other = &seeds[random(seeds.len())];
                        let start = random(other.len());
                        let part = other[start..(start + random(64)).min(other.len())].to_vec();
                        changed.splice(at..at, part);
                    }
                    // Changes an option byte at the start.
                    4 => changed[random(HEAD)] = random(256) as u8,
                    _ if changed.len() > HEAD + 1 => drop(changed.remove(at)),
                    _ => {}
                }
            }
            let shown = changed.escape_ascii().to_string();
            let held = std::panic::catch_unwind(|| match &reader {
                Some(reader) => inputs_of(reader, &changed),
                None => inputs(&changed),
            });
            assert!(held.is_ok(), "input {ran}: {shown}");
            ran += 1;
        }
    }
    println!("{ran} inputs in {} seconds", begin.elapsed().as_secs());
}
