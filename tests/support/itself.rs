//! Starts the current test program as a child process.

use std::process::Command;

/// Returns a command that runs this test program, in the emulator that `TWINDEX_RUNNER` names, if that is set.
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
