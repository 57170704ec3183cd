//! The `twindex` command. Each verb is a module in `cmd`. This file parses the command line and reports errors.

mod attached_args;
mod boilerplate_args;
mod cmd;
mod differs;
mod feature_args;
mod in_order;
mod interrupt;
mod json_lines;
mod key_args;
mod options;
mod page_args;
mod pair_file;
mod param_args;
mod progress;
mod raw_column;
mod recall;
mod refusals;
mod report;
mod resume;
mod settings_args;
mod shard;
mod sketch_file;
mod stage;
mod terminal;
mod verifying;

use std::process::ExitCode;

use clap::{ArgAction, Parser};
use tracing::Level;

/// Find near-duplicate documents, using an index on disk
#[derive(Parser)]
#[command(name = "twindex", version, max_term_width = 100, help_template = cmd::help_template())]
struct Command {
    #[command(subcommand)]
    verb: cmd::Verb,
    /// Log progress to standard error; -vv logs more
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
}

/// Runs the command with the arguments of the process. Exit codes: 0 for success, 1 for errors (including damage found
/// and input refused), 2 for wrong usage, reported by clap.
#[must_use]
pub fn main() -> ExitCode {
    let command = Command::parse();
    listen(command.verbose);
    interrupt::watch();
    // The command owns its process, so it may install signal handlers. They turn read faults of mapped files, from a
    // truncated file or a failing disk, into normal errors. Without the handlers, a read fault ends the process.
    #[cfg(target_os = "linux")]
    let _ = twindex::sys::guard::install();
    let run = match twindex_kernel::Level::from_environment() {
        Ok(_) => command.verb.run(),
        Err(error) => Err(options::Usage::new(error).into()),
    };
    match run {
        Ok(code) => twindex_corpus::lost::check().map_or_else(|error| failed(&error), |()| code),
        // A reader of standard output that closes the pipe, as in `| head`, causes no failure.
        Err(error) if is_broken_pipe(&error) => {
            twindex_corpus::lost::check().map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
        }
        Err(error) => failed(&error),
    }
}

/// Prints an error, and returns its exit code.
fn failed(error: &anyhow::Error) -> ExitCode {
    terminal::warn(&format!("{}{}", message_of(error), remedy(error).unwrap_or_default()));
    if error.is::<options::Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Prints the log of the tool and the library to standard error. `verbose` is the number of `-v` options.
fn listen(verbose: u8) {
    let most = match verbose {
        0 => return,
        1 => Level::INFO,
        2 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let printed = tracing_subscriber::fmt()
        .with_max_level(most)
        .with_writer(std::io::stderr)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(verbose > 1)
        .with_ansi(false);
    printed.init();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        kernel = twindex_kernel::Level::chosen().name(),
        "twindex"
    );
}

/// Returns the message of an error and its causes, without causes that the preceding message already contains.
fn message_of(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.ends_with(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

/// Returns advice to append to the message of a file system error: a full disk, no index, or a missing path.
fn remedy(error: &anyhow::Error) -> Option<String> {
    use std::io::ErrorKind;
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            return full.then(|| {
                "; what was there before is as it was: free some space, or name a place on another disk"
                    .to_owned()
            });
        }
        match cause.downcast_ref::<twindex::Error>()? {
            twindex::Error::NotAnIndex { path, .. } if path.join("index/CURRENT").is_file() => {
                Some(format!("; the index that `dedup` made is {}", path.join("index").display()))
            }
            twindex::Error::Io { op, path, source }
                if source.kind() == ErrorKind::NotFound && !path.exists() =>
            {
                // For the operations "create a directory in" and "sync the directory", the path is a folder.
                let is_folder = op.ends_with(" in") || op.ends_with(" directory");
                let first = if is_folder { "make that folder first, or " } else { "" };
                Some(format!("; {first}see whether its name is right"))
            }
            _ => None,
        }
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
