//! Writes the report about an index.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use twindex::Snapshot;
use twindex_join::JoinResources;

use crate::results::page::figures::{Figures, VerifyOptions};
use crate::results::page::html::{HEAD, html};
use crate::work::output_path::{self, begins_with};

/// Computes the figures about an index for a report, with clusters from signatures. Data that exceeds the memory of
/// `resources` is written to scratch files.
///
/// # Errors
///
/// The index is damaged, or scratch files cannot be written.
pub fn look(
    snapshot: &Snapshot,
    index: &Path,
    look: VerifyOptions,
    resources: JoinResources<'_>,
) -> anyhow::Result<Figures> {
    Figures::of(snapshot, index, look, resources)
}

/// Writes the report to a temporary file, and then renames it to `path`.
pub fn write(path: &Path, figures: &Figures) -> anyhow::Result<()> {
    write_whole(path, &html(figures))
}

/// Returns an error if a page cannot be written to `path`. The page may replace only a page of this program, and no
/// file that the run reads. Called before any work is done. `reads` are all files and folders that the run reads.
///
/// # Errors
///
/// The message has the reason.
pub fn check<P: AsRef<Path>>(path: &Path, reads: impl IntoIterator<Item = P>) -> anyhow::Result<()> {
    let shown = path.display();
    ensure!(!path.is_dir(), "{shown}: is a folder; give the page the name of a file");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(
        folder.is_dir(),
        "{shown}: there is no folder {} to write it in; make it first",
        folder.display()
    );
    output_path::check_file(path, reads)?;
    let is_replaced = path.symlink_metadata().is_ok();
    ensure!(
        !is_replaced || begins_with(path, HEAD.as_bytes()),
        "{shown}: is not a page of twindex, and is not replaced; give the page another name"
    );
    Ok(())
}

/// Writes a page to a temporary file, syncs it, and renames it to `path`.
pub(crate) fn write_whole(path: &Path, page: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = || -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".twindex-report-").tempfile_in(folder)?;
        file.write_all(page.as_bytes())?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(PermissionsExt::from_mode(0o644))?;
        }
        crate::work::lost::check()?;
        let _: File = file.persist(path)?;
        Ok(())
    };
    whole().with_context(|| format!("{shown}: cannot write"))
}
