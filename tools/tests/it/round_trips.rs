//! Other programs write files, and other programs read the files of kept documents, and must find the same values, types
//! and metadata. Programs that are missing on the machine are listed by `tests/second/round_trips.py`.

use std::process::Command;

use crate::support::skip::{Missing, skip};

#[test]
fn other_readers_find_the_kept_rows() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/second/round_trips.py");
    let ran = Command::new("python3").arg(script).env("TWINDEX", env!("CARGO_BIN_EXE_twindex")).output();
    let Ok(output) = ran else {
        skip(Missing::Program("python3"));
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let missing: Vec<&str> =
        said.lines().filter(|line| line.starts_with("skipped: the Python module")).collect();
    if !missing.is_empty() {
        skip(Missing::Elsewhere(&missing.join(", ")));
    }
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("0 differences\n"), "{said}");
}
