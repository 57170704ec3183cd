//! `twindex completions`: prints a script that completes commands and options in a shell.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Options of `completions`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  twindex completions bash > ~/.local/share/bash-completion/completions/twindex\n  \
    twindex completions fish > ~/.config/fish/completions/twindex.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell to print the script for
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        generate(self.shell, &mut crate::Command::command(), "twindex", &mut script);
        io::stdout().lock().write_all(&script).context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }
}
