//! Creates the results folder under a temporary name, and then renames it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use twindex::sys::{RealVfs, Vfs};

use crate::error::InvalidOptions;
use crate::input::documents::Documents;
use crate::results::layout::RUN;
use crate::results::written::Written;
use crate::settings::job::Dedup;
use crate::work::output_path::{check_folder, is_inside};
use crate::work::own_folder::{EARLIER, OwnFolder};

/// The results folder, which is written under a temporary name and then renamed.
pub(crate) struct OutputFolder<'a> {
    /// The path as the user specified it, for messages.
    given: &'a Path,
    /// The parent folder joined with the name. A trailing `.` or `/` is removed, because the rename system call rejects
    /// it.
    path: PathBuf,
    parent: PathBuf,
}

impl<'a> OutputFolder<'a> {
    pub(crate) fn resolve(given: &'a Path) -> anyhow::Result<Self> {
        let Some(name) = given.file_name() else {
            let shown = given.display();
            let why =
                format!("--out {shown}: expected the name of a folder to make, for example {shown}/deduped");
            return Err(InvalidOptions::new(why.replace("//", "/")).into());
        };
        let parent = match given.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok(Self { given, path: parent.join(name), parent: parent.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// Returns an error if the results folder contains a file that the run reads, or is inside a history or an index. A
    /// new results folder may be inside an input folder, because input folders are listed before it is created.
    pub(crate) fn check_inputs(&self, job: &Dedup) -> anyhow::Result<()> {
        if let Some(history) = job.scope.against.iter().find(|history| is_inside(&self.path, history)) {
            return Err(InvalidOptions::new(format!(
                "--out {}: is inside the history {}; choose another folder",
                self.given.display(),
                history.display()
            ))
            .into());
        }
        Ok(check_folder(self.given, job.reading.inputs.iter().chain(&job.other_files()))?)
    }

    /// Returns an error if a file found in an input folder is a link into the results folder.
    pub(crate) fn check_files(&self, documents: &Documents) -> anyhow::Result<()> {
        if self.path.symlink_metadata().is_err() {
            return Ok(());
        }
        Ok(check_folder(self.given, documents.named_files())?)
    }

    /// Returns an error if existing files would be overwritten. Called before any work is done.
    pub(crate) fn check(&self, force: bool) -> anyhow::Result<()> {
        let shown = self.given.display();
        let Ok(metadata) = self.path.symlink_metadata() else { return Ok(()) };
        ensure!(
            !metadata.is_symlink(),
            "{shown}: is a symbolic link, which is not replaced; name the folder that it points to, or \
             another one"
        );
        ensure!(force, "{shown}: already exists; choose another folder, or --force to replace it");
        self.check_made_by_us(&self.path)
    }

    /// Returns an error if a folder contains files that no run of `dedup` wrote. The folder is OUT, or the earlier results
    /// that were just moved aside.
    fn check_made_by_us(&self, folder: &Path) -> anyhow::Result<()> {
        let shown = self.given.display();
        let found = || -> anyhow::Result<()> {
            if folder.symlink_metadata()?.is_dir() {
                if fs::read_dir(folder)?.next().is_none() {
                    return Ok(()); // an empty folder may be replaced
                }
                if let Some(written) = Written::read(folder)? {
                    return written.check_all_ours(folder);
                }
                ensure!(
                    !folder.join(RUN).exists(),
                    "{RUN} in it is of an earlier version, which did not list the files of the run; remove the folder \
                     yourself, if all of it may go"
                );
            }
            bail!("not made by `twindex dedup` (there is no {RUN} in it that lists its files)")
        };
        found().map_err(|why| {
            anyhow::anyhow!("{shown}: {why:#}, so --force does not replace it; choose another folder")
        })
    }

    pub(crate) fn make_parents(&self) -> anyhow::Result<MadeFolders> {
        let mut made = MadeFolders(Vec::new());
        let above: Vec<&Path> =
            self.parent.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
        for folder in above.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.0.push(folder.to_owned()),
                // If the folder exists, the error is ignored: it may be "read-only file system" instead of "exists".
                Err(_) if folder.is_dir() => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("{}: cannot create", folder.display()));
                }
            }
        }
        Ok(made)
    }

    /// Moves earlier results into `aside`, and returns their path there; `None` if there are none. If files were added
    /// to the earlier results since they were checked, moves them back and returns an error.
    fn set_aside(&self, aside: &Path) -> anyhow::Result<Option<PathBuf>> {
        if self.path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let earlier = aside.join(EARLIER);
        fs::rename(&self.path, &earlier)
            .with_context(|| format!("{}: cannot move the earlier results aside", self.given.display()))?;
        if let Err(foreign) = self.check_made_by_us(&earlier) {
            fs::rename(&earlier, &self.path).with_context(|| {
                format!("{foreign}; it is at {} and cannot be moved back", earlier.display())
            })?;
            return Err(foreign);
        }
        Ok(Some(earlier))
    }

    /// Renames the results to their final name. Earlier results are moved aside first, and moved back if the rename
    /// fails.
    pub(crate) fn put_in_place(&self, folder: &Path, force: bool) -> anyhow::Result<()> {
        let shown = self.given.display();
        self.check(force)?; // files may have been created since the first check
        RealVfs.sync_dir(folder).with_context(|| format!("{shown}: cannot make the results durable"))?;
        let aside = OwnFolder::make(&self.parent)?;
        let earlier = match self.set_aside(aside.path()) {
            Ok(earlier) => earlier,
            Err(error) => {
                if aside.path().join(EARLIER).symlink_metadata().is_ok() {
                    let _ = aside.keep(); // keeps earlier results that could not be moved back
                }
                return Err(error);
            }
        };
        if let Err(error) = fs::rename(folder, &self.path) {
            if earlier.is_some_and(|earlier| fs::rename(earlier, &self.path).is_err()) {
                let kept = aside.keep().join(EARLIER);
                bail!("{shown}: cannot be replaced: {error}; the earlier results are at {}", kept.display());
            }
            return Err(error).with_context(|| format!("{shown}: cannot give the results their name"));
        }
        // Syncs the rename before drop of `aside` removes the earlier results, so that after a power failure either the
        // old or the new results exist.
        RealVfs.sync_dir(&self.parent).with_context(|| {
            format!("{shown}: the results are there, but may not outlast a power failure; sync the disk")
        })
    }
}

/// Folders that this run created. Drop removes the empty ones, so that a failed run leaves no folders.
pub(crate) struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Syncs the directory entries of the folders.
    pub(crate) fn sync(&self) -> anyhow::Result<()> {
        for made in &self.0 {
            let above = made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            RealVfs.sync_dir(above).with_context(|| format!("{}: cannot make it durable", made.display()))?;
        }
        Ok(())
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            let _ = fs::remove_dir(folder); // fails if the folder is not empty
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_results_are_restored_if_a_file_was_added_to_them() {
        let bench = tempfile::tempdir().unwrap();
        let (given, aside) = (bench.path().join("out"), bench.path().join("aside"));
        for folder in [&given.join("index"), &aside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(given.join("pairs.tsv"), "").unwrap();
        let written =
            r#"{"written":{"names":["index","pairs.tsv","run.json"],"kept":0,"kept_files":[],"index":null}}"#;
        fs::write(given.join(RUN), written).unwrap();
        let out = OutputFolder::resolve(&given).unwrap();
        out.check(true).unwrap();
        fs::write(given.join("index/notes.txt"), "mine").unwrap();
        let message = out.set_aside(&aside).unwrap_err().to_string();
        assert!(message.contains("`index/notes.txt`") && message.contains("not made by"), "{message}");
        assert_eq!(fs::read(given.join("index/notes.txt")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&aside).unwrap().count(), 0);

        fs::remove_file(given.join("index/notes.txt")).unwrap();
        assert_eq!(out.set_aside(&aside).unwrap(), Some(aside.join("earlier")));
        assert_eq!(out.set_aside(&aside).unwrap(), None, "nothing is there any more");
    }
}
