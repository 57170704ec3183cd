//! Writes the inputs that fuzzing starts from to the directory given: one directory for each target.

#![allow(clippy::disallowed_methods, reason = "writes inputs, not an index")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(std::env::args_os().nth(1).expect("usage: write_seeds DIRECTORY"));
    for (target, _) in support::fuzzing::TARGETS {
        let dir = root.join(target);
        std::fs::create_dir_all(&dir)?;
        for (number, seed) in support::fuzzing::seeds(target).iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
