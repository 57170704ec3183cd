//! `twindex man`: writes the manual, one page for each verb.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};

/// Options of `man`.
#[derive(Args)]
#[command(after_help = "Example:\n  twindex man ~/.local/share/man/man1 && man twindex-dedup\n\n\
    Pages of the same names are replaced.")]
pub(crate) struct ManArgs {
    /// Folder for the pages, created if it does not exist
    dir: PathBuf,
}

impl ManArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let shown = self.dir.display();
        fs::create_dir_all(&self.dir).with_context(|| format!("{shown}: cannot create"))?;
        clap_mangen::generate_to(crate::Command::command(), &self.dir)
            .with_context(|| format!("{shown}: cannot write the pages"))?;
        Ok(ExitCode::SUCCESS)
    }
}
