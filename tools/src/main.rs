//! twindex, the command: one file a verb in `cmd`, a thin main here.

mod cmd;
mod input;
mod options;
mod progress;
mod report;
mod sketching;
mod tsv;

use std::process::ExitCode;

use clap::Parser;

/// Near-duplicates of documents, through an index on disk.
#[derive(Parser)]
#[command(name = "twindex", version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    verb: cmd::Verb,
}

/// 0: done. 1: something is wrong (damage found, input refused). 2: usage, from clap.
fn main() -> ExitCode {
    let command = Command::parse();
    match command.verb.run() {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS, // `| head` has seen enough
        Err(error) => {
            eprintln!("twindex: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
