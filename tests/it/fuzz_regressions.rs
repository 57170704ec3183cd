//! Replays inputs on which fuzzing once failed, with a stable compiler: each file in `fuzz/regressions/<target>/` is
//! passed to its target. Each target also runs on its fuzzing seeds and on random mutations of them.

#![allow(clippy::disallowed_methods, reason = "reads inputs, not an index")]

use std::path::Path;

use crate::support::Random;
use crate::support::fuzzing::{TARGETS, seeds};
use crate::support::skip::{Missing, skip};

/// Targets of a higher crate, which replays their regressions itself: `crates/corpus/tests/it/fuzz_regressions.rs`.
const TARGETS_OF_THE_TOOL: [&str; 1] = ["inputs"];

#[test]
fn inputs_that_once_failed_now_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    for (name, target) in TARGETS {
        let Ok(files) = std::fs::read_dir(root.join(name)) else { continue };
        for file in files {
            let path = file.unwrap().path();
            println!("{}", path.display());
            target(&std::fs::read(&path).unwrap());
        }
    }
}

/// `TWINDEX_FUZZ_CORPUS` names the directory of all corpora. `scripts/fuzz coverage` measures the line coverage of this
/// test.
#[test]
fn corpora_named_in_the_environment_pass() {
    let Some(root) = std::env::var_os("TWINDEX_FUZZ_CORPUS") else {
        skip(Missing::Elsewhere("TWINDEX_FUZZ_CORPUS names no corpora"));
        return;
    };
    let mut replayed = 0;
    for (name, target) in TARGETS {
        let begin = replayed;
        for file in std::fs::read_dir(Path::new(&root).join(name)).into_iter().flatten() {
            target(&std::fs::read(file.unwrap().path()).unwrap());
            replayed += 1;
        }
        println!("{name}: {} inputs", replayed - begin);
    }
    assert!(replayed > 0, "nothing in {}", Path::new(&root).display());
}

#[test]
fn every_target_passes_on_its_seeds_and_mutated_seeds() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name}");
        let mut random = Random(11);
        // An input of `many` takes as long as a hundred inputs of other targets, so only some run here.
        // `scripts/fuzz coverage` replays all of them.
        let (step, changes) = if name == "many" { (6, 1) } else { (1, 24) };
        for seed in seeds.iter().step_by(step) {
            target(seed);
            for _ in 0..changes {
                let mut changed = seed.clone();
                changed.extend((0..random.below(16)).map(|_| random.next() as u8));
                if !changed.is_empty() {
                    let at = random.below(changed.len());
                    changed[at] = random.next() as u8;
                }
                target(&changed);
            }
        }
    }
}

#[test]
fn every_directory_of_regressions_belongs_to_a_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    for entry in std::fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let name = entry.file_name();
            let mut targets = TARGETS.iter().map(|(target, _)| *target).chain(TARGETS_OF_THE_TOOL);
            assert!(targets.any(|target| name == target), "{name:?}");
        }
    }
}
