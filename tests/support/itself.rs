//! Starts this test program again.

use std::process::Command;

/// Returns a command that starts this program again, with the emulator that `TWINDEX_RUNNER` names, if it is set.
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
