//! A page of HTML about what an index holds, for a person.

mod chart;
mod figures;
mod groups;
mod hosts;
mod html;
mod space;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use twindex::Snapshot;
use twindex_join::Effort;

pub use figures::{Clustered, Figures, KEYS_SHOWN};
pub use groups::GroupSizes;
pub use html::html;
pub use space::Space;

/// How the documents are verified.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Resemblance, estimated, from which on documents make a cluster.
    pub threshold: f64,
    /// Only neighbours are compared in buckets of more than this many different members.
    pub max_bucket: usize,
}

/// Where the clusters on a page are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clusters {
    /// They are made of what is near by signatures.
    BySignatures,
    /// They are [added](Figures::with_clusters).
    Added,
}

/// Everything that the page shows of an index, with the clusters that signatures make or without clusters.
/// What is over the memory of `effort` goes to scratch files.
///
/// # Errors
///
/// The index is damaged, or scratch files cannot be written.
pub fn look(
    snapshot: &Snapshot,
    index: &Path,
    look: Look,
    effort: Effort<'_>,
    clusters: Clusters,
) -> anyhow::Result<Figures> {
    Figures::of(snapshot, index, look, effort, clusters == Clusters::BySignatures)
}

/// Writes the page as a whole: under a temporary name first.
pub fn write(path: &Path, figures: &Figures) -> anyhow::Result<()> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = || -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".twindex-report-").tempfile_in(folder)?;
        file.write_all(html(figures).as_bytes())?;
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
