//! HTML pages for users: reports about an index, and texts side by side with the passages that they share.

mod chart;
mod compared;
mod figures;
mod groups;
mod hosts;
mod html;
mod space;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use twindex::Snapshot;
use twindex_join::JoinResources;

pub use compared::{PassagePage, Excerpt, ComparedPair, TextSide};
pub use figures::{ClusterFigures, Figures, KEYS_SHOWN};
pub use groups::GroupSizes;
pub use html::html;
pub use space::Space;

/// How the documents are verified.
#[derive(Clone, Copy, Debug)]
pub struct VerifyOptions {
    /// Smallest estimated resemblance of documents in a cluster.
    pub threshold: f64,
    /// In buckets with more distinct members than this, only neighbours are compared.
    pub max_bucket: usize,
}

/// The source of the clusters on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterSource {
    /// The clusters are computed from signatures.
    BySignatures,
    /// The clusters are [added](Figures::with_clusters).
    Added,
}

/// Computes all numbers that the page shows of an index, with the clusters by signatures or without clusters. Data beyond
/// the memory of `resources` goes to scratch files.
///
/// # Errors
///
/// The index is damaged, or scratch files cannot be written.
pub fn look(
    snapshot: &Snapshot,
    index: &Path,
    look: VerifyOptions,
    resources: JoinResources<'_>,
    clusters: ClusterSource,
) -> anyhow::Result<Figures> {
    Figures::of(snapshot, index, look, resources, clusters == ClusterSource::BySignatures)
}

/// Writes the page atomically: first under a temporary name.
pub fn write(path: &Path, figures: &Figures) -> anyhow::Result<()> {
    write_whole(path, &html(figures))
}

/// Refuses, before any work is done, a path where no page can be written, or that is one of the inputs.
///
/// # Errors
///
/// The error names the reason.
pub fn check(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
    let shown = path.display();
    ensure!(!path.is_dir(), "{shown}: is a folder; give the page the name of a file");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "{shown}: there is no folder {} to write it in; make it first", folder.display());
    let Ok(there) = fs::canonicalize(path) else { return Ok(()) };
    let is_input = |input: &&PathBuf| fs::canonicalize(input).is_ok_and(|input| input == there);
    ensure!(!inputs.iter().any(|input| is_input(&input)), "{shown}: is an input; give the page another name");
    Ok(())
}

/// Writes a page under a temporary name, syncs it, and renames it.
fn write_whole(path: &Path, page: &str) -> anyhow::Result<()> {
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
        crate::lost::check()?;
        let _: File = file.persist(path)?;
        Ok(())
    };
    whole().with_context(|| format!("{shown}: cannot write"))
}
