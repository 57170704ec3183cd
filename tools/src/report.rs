//! Prints the output of verbs: JSON, lines of text, and notes.

use std::io::Write;

use anyhow::Context;
use serde::Serialize;
use twindex_corpus::input::Counts;

pub(crate) use twindex_corpus::numbers::{bytes, bytes_of, count, counted};
pub(crate) use twindex_corpus::watch::{Stages, Stopwatch, peak_rss_bytes};

use crate::options::Output;
use crate::terminal;

/// Prints a JSON document to standard output.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_lines(&[serde_json::to_string(value)?])
}

/// Returns the text of a predicted number of bytes.
pub(crate) fn bytes_of_mean(number: f64) -> String {
    #[allow(clippy::cast_sign_loss, reason = "a number of bytes")]
    bytes(number as u64)
}

/// Prints lines to standard output. If the reader has closed the pipe, returns an error, where `println!` would panic.
pub(crate) fn print_lines(lines: &[String]) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).context("cannot write to standard output")
}

/// Prints the result of a verb: JSON with `--json`, otherwise lines of text unless `--quiet` is given.
pub(crate) fn print(
    output: &Output,
    result: &impl Serialize,
    lines: impl FnOnce() -> Vec<String>,
) -> anyhow::Result<()> {
    if output.json {
        print_json(result)
    } else if output.quiet {
        Ok(())
    } else {
        print_lines(&lines())
    }
}

/// The time and memory that a verb needed: fields of its JSON.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Costs {
    /// CPU seconds of the process.
    pub(crate) cpu_seconds: f64,
    /// Wall-clock seconds.
    pub(crate) seconds: f64,
    /// Maximum resident memory of the process.
    pub(crate) peak_rss_bytes: u64,
}

impl Costs {
    /// Returns the costs since `watch` was started.
    pub(crate) fn since(watch: Stopwatch) -> Self {
        let (cpu_seconds, seconds) = (watch.cpu_seconds(), watch.seconds());
        Self { cpu_seconds, seconds, peak_rss_bytes: peak_rss_bytes() }
    }
}

/// Prints a note to standard error: information for the user that is not part of the result.
pub(crate) fn note(note: &str) {
    terminal::warn(&format!("note: {note}"));
}

/// Returns what a hit adds to the checksum. The sum over all hits does not depend on their order. The benchmark drivers
/// of other tools compute the same checksum, so that answers can be compared.
pub(crate) fn mix(query: u64, id: u64) -> u64 {
    let mut hash =
        query.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(id.wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash ^ (hash >> 32)
}

/// Returns a remark on documents with empty sketches; `None` if there are none, except those that the remarks of `counts`
/// are about.
pub(crate) fn empty_remark(empty: u64, counts: &Counts) -> Option<String> {
    let empty = empty.saturating_sub(counts.contentless);
    let are = if empty == 1 { "it is" } else { "they are" };
    (empty > 0).then(|| {
        format!(
            "{} without words or features: {are} near nothing but copies of the same bytes",
            counted(empty, "document")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_equals_the_checksum_of_the_benchmark_drivers() {
        assert_eq!(mix(0, 0), 0);
        assert_eq!(mix(1, 2), 0xB5B3_9F78_4142_F3FD); // computed independently in Python
    }
}
