//! The results folder. It is written under a temporary name and then renamed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;
use twindex::sys::{RealVfs, Vfs};

use crate::error::InvalidOptions;
use crate::input::counts::Counts;
use crate::input::kept::files::{is_name_of_kept, is_name_of_keys, is_name_of_marked};
use crate::work::observer::Observer;
use crate::work::output_path::check_folder;
use crate::work::own_folder::{self, EARLIER, OwnFolder};
use crate::work::watch::Stages;

/// File name of the table of repeated passages.
pub(crate) const SPANS: &str = "spans.tsv";
/// File name of the table of classes of equal passages.
pub(crate) const CLASSES: &str = "classes.tsv";
/// File name of the settings.
pub(crate) const SETTINGS: &str = "passages.json";

/// The results folder, which is written under a temporary name and then renamed.
pub(crate) struct PassageOutput<'a> {
    given: &'a Path,
    path: PathBuf,
    parent: PathBuf,
}

impl<'a> PassageOutput<'a> {
    pub(crate) fn resolve(given: &'a Path) -> anyhow::Result<Self> {
        let Some(name) = given.file_name() else {
            let why = format!("--out {}: expected the name of a folder to make", given.display());
            return Err(InvalidOptions::new(why).into());
        };
        let parent = given.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { given, path: parent.join(name), parent: parent.to_owned() })
    }

    /// Checks, before any work is done, that the results can be written. Fails if files would be replaced without
    /// `force`, or if the results folder contains a file or folder of `reads`, which the run reads.
    pub(crate) fn check(&self, reads: &[PathBuf], force: bool) -> anyhow::Result<()> {
        let shown = self.given.display();
        check_folder(self.given, reads)?;
        let Ok(metadata) = self.path.symlink_metadata() else { return Ok(()) };
        ensure!(metadata.is_dir(), "{shown}: is no folder, and is not replaced; choose another place");
        ensure!(force, "{shown}: already exists; choose another folder, or --force to replace it");
        self.check_ours(&self.path)
    }

    /// Returns an error if a folder contains files that `passages` did not write.
    fn check_ours(&self, folder: &Path) -> anyhow::Result<()> {
        let shown = self.given.display();
        for entry in fs::read_dir(folder).with_context(|| format!("{shown}: cannot be listed"))? {
            let entry = entry?;
            let name = entry.file_name();
            let is_ours = name.to_str().is_some_and(|name| {
                [SPANS, CLASSES, SETTINGS].contains(&name)
                    || is_name_of_kept(name)
                    || is_name_of_marked(name)
                    || is_name_of_keys(name)
            });
            ensure!(
                is_ours && entry.file_type()?.is_file(),
                "{shown}: `{}` in it was not made by `twindex passages`, so --force does not replace it; choose another \
                 folder",
                name.display()
            );
        }
        Ok(())
    }

    /// Creates the parent folders, and a temporary folder next to the final one.
    pub(crate) fn folder(&self, observer: &dyn Observer) -> anyhow::Result<OwnFolder> {
        let parent = &self.parent;
        fs::create_dir_all(parent).with_context(|| format!("{}: cannot create", parent.display()))?;
        own_folder::sweep(parent, observer);
        OwnFolder::make(parent)
    }

    /// Renames the results to their final name. Earlier results are moved aside first, and moved back if the rename
    /// fails.
    pub(crate) fn put(&self, folder: OwnFolder, force: bool) -> anyhow::Result<()> {
        let shown = self.given.display();
        self.check(&[], force)?; // the folder may have changed since the first check
        RealVfs
            .sync_dir(folder.path())
            .with_context(|| format!("{shown}: cannot make the results durable"))?;
        let aside = OwnFolder::make(&self.parent)?;
        let earlier = aside.path().join(EARLIER);
        let is_replaced = self.path.symlink_metadata().is_ok();
        if is_replaced {
            fs::rename(&self.path, &earlier)
                .with_context(|| format!("{shown}: cannot move the earlier results aside"))?;
        }
        let done = if is_replaced { self.check_ours(&earlier) } else { Ok(()) };
        let done = done.and_then(|()| Ok(fs::rename(folder.path(), &self.path)?));
        if let Err(error) = done {
            if is_replaced && fs::rename(&earlier, &self.path).is_err() {
                let kept = aside.keep().join(EARLIER);
                return Err(error.context(format!("{shown}: the earlier results are at {}", kept.display())));
            }
            return Err(error.context(format!("{shown}: cannot give the results their name")));
        }
        let _ = folder.keep(); // the folder was renamed, so drop must not remove it
        RealVfs.sync_dir(&self.parent).with_context(|| {
            format!("{shown}: the results are there, but may not outlast a power failure; sync the disk")
        })
    }
}

/// The counts and times of a run.
#[derive(Clone, Debug, Serialize)]
pub struct PassageReport {
    /// Counts of the inputs.
    #[serde(flatten)]
    pub input: Counts,
    /// Number of repeated passages. Each has a line in spans.tsv.
    pub spans: u64,
    /// Number of these passages whose source is in the index of [`against`](crate::Passages::against); `None` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans_of_history: Option<u64>,
    /// Number of passages that are not listed because their source is not in that index; `None` if all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans_left: Option<u64>,
    /// Number of documents with a repeated passage.
    pub repeated_documents: u64,
    /// Number of classes of equal passages. Each is a source and the spans that repeat all of it.
    pub classes: u64,
    /// Number of words of the inputs that occur more than once, in a span or in the source of one; of lines, paragraphs and
    /// sentences, the number of these. Two equal documents are counted whole, each.
    pub duplicated: u64,
    /// Number of words of the inputs, or of lines, paragraphs or sentences.
    pub units: u64,
    /// Number of bytes of texts that are inside at least one repeated passage.
    pub repeated_bytes: u64,
    /// Number of documents whose tokens are all covered by overlapping or adjacent repeated passages.
    pub repeated_whole: u64,
    /// Names of the files of documents without repeated passages; empty if they were not written.
    pub kept_files: Vec<String>,
    /// Names of the files of documents with the positions of repeated passages; empty if they were not written.
    pub marked_files: Vec<String>,
    /// Number of parts in the index after the documents were added; `None` without an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_parts: Option<u64>,
    /// Number of parts of the index that were merged into one, including the part with the new documents; `None` if
    /// no parts were merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_parts: Option<u64>,
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// CPU seconds of each stage.
    pub stages: Stages,
    /// Peak resident memory of the process in bytes.
    pub peak_rss_bytes: u64,
}
