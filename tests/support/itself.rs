//! This test program, started once more.

use std::process::Command;

/// A command that starts this program again, by the emulator that runs it where `TWINDEX_RUNNER` names one.
pub fn itself() -> Command {
    let program = std::env::current_exe().unwrap();
    let runner = std::env::var("TWINDEX_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    match words.next() {
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    }
}
