//! Writes the seeds of fuzzing to a directory, with one subdirectory for each target.

#![allow(clippy::disallowed_methods, reason = "writes inputs, not an index")]

#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(feature = "inputs")]
#[path = "../crates/corpus/tests/support/fuzzing/mod.rs"]
mod inputs;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(std::env::args_os().nth(1).expect("usage: write_seeds DIRECTORY"));
    let seeds = support::fuzzing::TARGETS.map(|(target, _)| (target, support::fuzzing::seeds(target)));
    #[cfg(feature = "inputs")]
    let seeds = seeds.into_iter().chain([("inputs", inputs::made::seeds())]);
    for (target, seeds) in seeds {
        let dir = root.join(target);
        std::fs::create_dir_all(&dir)?;
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
