//! Writes the output of a stage, that is, of a command that does a part of a job. A file appears under its final name
//! only when it is complete and durable, even if its writer is killed at any time. A stage that is run again, or twice
//! at the same time, gives the same result.
//!
//! A file is written under a temporary name in its final folder, synced, and renamed. In a folder of results, the final
//! name is derived from the content, so that a second run writes the same file under the same name. A temporary file is
//! locked while it is written. Temporary files without a lock belong to writers that have ended; the next writer
//! removes them.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use twindex::sys::{RealVfs, Vfs};
use twindex_corpus::output_path;
use xxhash_rust::xxh3::Xxh3Default;

use crate::interrupt::RemovedOnSignal;
use crate::json_lines::{JsonColumns, JsonLines};
use crate::options::{Output, Usage};
use crate::report;
use crate::terminal::{self, Shown};

/// Prefix of the names of temporary files, which no pattern such as `*.pairs` matches.
const PREFIX: &str = ".twindex-stage-";
/// Size of the write buffer in bytes.
const BUFFER: usize = 1 << 20;
/// Number of bytes at the beginning of a file that are read to identify its kind.
const HEAD: u64 = 256;

/// Options for where a stage writes its result.
#[derive(Args, Clone, Debug)]
pub(crate) struct StageArgs {
    /// Write to this file instead of standard output; it appears only when it is complete
    #[arg(long, short, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Write to a file in this folder that is named by its content, and print its name; the same content gives the same
    /// file
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    into: Option<PathBuf>,
    /// Replace OUT if this verb wrote it
    #[arg(long, requires = "out")]
    force: bool,
}

/// The kind of result that a verb writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultKind {
    /// The name of the kind in messages, with an article.
    pub(crate) noun: &'static str,
    /// The suffix, without the dot, of files named by content.
    pub(crate) suffix: &'static str,
    /// The first bytes of files of this kind. `--force` replaces no other files.
    pub(crate) magic: &'static [u8],
}

impl StageArgs {
    /// Returns whether the output is a file.
    pub(crate) fn is_file(&self) -> bool {
        self.into.is_some() || self.named().is_some()
    }

    /// Returns whether the file is named by its content.
    pub(crate) fn is_by_content(&self) -> bool {
        self.into.is_some()
    }

    /// Returns the file that the output is written to, if it has a given name.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.out.as_deref().filter(|out| out.as_os_str() != "-")
    }

    /// Returns an error if the output cannot be written, or would replace a file that the run reads. Checks this before
    /// any work is done. `reads` are all files and folders that the run reads.
    pub(crate) fn check<P: AsRef<Path>>(
        &self,
        what: ResultKind,
        reads: impl IntoIterator<Item = P>,
    ) -> anyhow::Result<()> {
        match (self.named(), &self.into) {
            (Some(out), _) => output_path::check_file(out, reads)?,
            (None, Some(dir)) => output_path::check_file(&dir.join(PREFIX), reads)?,
            (None, None) => {}
        }
        self.check_kind(what)
    }

    /// Returns an error if the output cannot be written.
    fn check_kind(&self, what: ResultKind) -> anyhow::Result<()> {
        if let Some(dir) = &self.into {
            let is_there = dir.symlink_metadata().is_ok();
            ensure!(!is_there || dir.is_dir(), "--into {}: is not a folder", dir.display());
        }
        match self.named() {
            Some(out) => check_out(out, what, self.force),
            None => Ok(()),
        }
    }

    /// Creates the output for a table with these columns. With `--json` and without a file, the table is written to
    /// standard output as one JSON object per line. `head` is the table's header line, if it has one.
    ///
    /// # Errors
    ///
    /// The errors of [`create`](Self::create).
    pub(crate) fn create_table(
        &self,
        what: ResultKind,
        names: &str,
        (has_head, has_numbers_as_keys): (bool, bool),
        output: &Output,
    ) -> anyhow::Result<StageFile> {
        if self.is_file() || (!output.json && has_head) {
            return self.create(what);
        }
        if !output.json {
            self.check_kind(what)?;
            return StageFile::stdout(names);
        }
        let columns = JsonColumns::of(names, has_numbers_as_keys);
        Ok(StageFile::json(columns, has_head.then_some(names)))
    }

    /// Creates the output.
    ///
    /// # Errors
    ///
    /// The errors of [`check`](Self::check), and errors of the file system.
    pub(crate) fn create(&self, what: ResultKind) -> anyhow::Result<StageFile> {
        self.check_kind(what)?;
        match (&self.into, self.named()) {
            (Some(dir), _) => StageFile::by_content(dir, what),
            (None, Some(out)) => StageFile::named(out, self.force),
            (None, None) => StageFile::stdout(""),
        }
    }
}

/// Returns an error if `out` exists. With `force`, accepts an existing file of the kind `what`.
pub(crate) fn check_out(out: &Path, what: ResultKind, force: bool) -> anyhow::Result<()> {
    let shown = out.display();
    if out.file_name().is_none() {
        return Err(Usage::new(format!("{shown}: expected the name of a file to make")).into());
    }
    let Ok(metadata) = out.symlink_metadata() else { return Ok(()) };
    ensure!(force, "{shown}: already exists; choose another name, or --force to replace it");
    let mut head = Vec::new();
    let begins = metadata.is_file()
        && File::open(out).is_ok_and(|file| file.take(HEAD).read_to_end(&mut head).is_ok())
        && head.starts_with(what.magic);
    ensure!(begins, "{shown}: is not {}, so --force does not replace it; choose another name", what.noun);
    Ok(())
}

/// The final name of a file: given by the user, or derived from the content.
enum StageName {
    Given { out: PathBuf, force: bool },
    ByContent { dir: PathBuf, what: ResultKind },
}

impl StageName {
    /// Returns the part of the path that does not depend on the content.
    fn shown(&self) -> &Path {
        match self {
            Self::Given { out, .. } => out,
            Self::ByContent { dir, .. } => dir,
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::ByContent { dir, .. } => dir,
            Self::Given { out, .. } => match out.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            },
        }
    }
}

/// A result while it is written.
pub(crate) struct StageFile {
    writer: StageWriter,
    bytes: u64,
}

enum StageWriter {
    Stdout(BufWriter<Shown<Stdout>>),
    /// Standard output, as JSON lines.
    Json(Box<JsonLines<BufWriter<Shown<Stdout>>>>),
    File(Box<UnnamedFile>),
}

/// A file that still has a temporary name.
struct UnnamedFile {
    name: StageName,
    file: BufWriter<tempfile::NamedTempFile>,
    hash: Xxh3Default,
    /// Removes the file if a signal ends the process.
    _half_done: RemovedOnSignal,
}

/// A completely written result.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// The path of the file; `None` for standard output.
    pub(crate) path: Option<PathBuf>,
    pub(crate) bytes: u64,
    /// Whether the file is named by its content.
    pub(crate) by_content: bool,
}

impl WrittenFile {
    /// Prints a summary to standard output: the path and the size. For a file named by its content, prints only its
    /// name, for the next stage. Prints nothing if the result went to standard output.
    pub(crate) fn print_summary(&self, holds: &str, output: &Output) -> anyhow::Result<()> {
        let Some(path) = self.path.as_ref().filter(|_| !output.json) else { return Ok(()) };
        let shown = path.display();
        match () {
            () if self.by_content => report::print_lines(&[shown.to_string()]),
            () if output.quiet => Ok(()),
            () => report::print_lines(&[format!("{shown}: {holds}, {}", report::bytes(self.bytes))]),
        }
    }
}

impl StageFile {
    /// Creates a file that will have the path `out`. With `force`, it replaces an existing file.
    pub(crate) fn named(out: &Path, force: bool) -> anyhow::Result<Self> {
        Self::at(StageName::Given { out: out.to_owned(), force })
    }

    /// Creates a file in a folder, and the folder if it does not exist.
    pub(crate) fn by_content(dir: &Path, what: ResultKind) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("--into {}: cannot create it", dir.display()))?;
        Self::at(StageName::ByContent { dir: dir.to_owned(), what })
    }

    /// Returns a writer to standard output. On a terminal, the names of the columns come first, if there are any.
    pub(crate) fn stdout(names: &str) -> anyhow::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER, terminal::stdout_of_table(names)?);
        Ok(Self { writer: StageWriter::Stdout(out), bytes: 0 })
    }

    /// Returns a writer that converts a table to JSON on standard output.
    pub(crate) fn json(columns: JsonColumns, head: Option<&str>) -> Self {
        let out = BufWriter::with_capacity(BUFFER, terminal::stdout());
        Self { writer: StageWriter::Json(Box::new(JsonLines::new(out, columns, head))), bytes: 0 }
    }

    fn at(name: StageName) -> anyhow::Result<Self> {
        let folder = name.folder();
        sweep(folder);
        let file = temporary(folder).with_context(|| {
            format!("{}: cannot create a file in {}", name.shown().display(), folder.display())
        })?;
        let half_done = RemovedOnSignal::new(file.path());
        let file = BufWriter::with_capacity(BUFFER, file);
        let hash = Xxh3Default::new();
        let unnamed = UnnamedFile { name, file, hash, _half_done: half_done };
        Ok(Self { writer: StageWriter::File(Box::new(unnamed)), bytes: 0 })
    }

    /// Syncs the file and renames it to its final name.
    pub(crate) fn finish(self) -> anyhow::Result<WrittenFile> {
        twindex_corpus::lost::check()?;
        let bytes = self.bytes;
        let unnamed = match self.writer {
            StageWriter::Stdout(mut out) => {
                out.flush().context("cannot write to standard output")?;
                return Ok(WrittenFile { path: None, bytes, by_content: false });
            }
            StageWriter::Json(mut out) => {
                out.flush().context("cannot write to standard output")?;
                return Ok(WrittenFile { path: None, bytes, by_content: false });
            }
            StageWriter::File(unnamed) => *unnamed,
        };
        let UnnamedFile { name, file, hash, _half_done } = unnamed;
        let folder = name.folder().to_owned();
        let shown = name.shown().to_owned();
        let in_folder = || format!("{}: cannot write", shown.display());
        let file = file.into_inner().map_err(io::IntoInnerError::into_error).with_context(in_folder)?;
        file.as_file().sync_all().with_context(in_folder)?;
        let (path, force) = match &name {
            StageName::Given { out, force } => (out.clone(), *force),
            // An existing file with this name has the same content, so it may be replaced.
            StageName::ByContent { dir, what } => {
                (dir.join(format!("{:032x}.{}", hash.digest128(), what.suffix)), true)
            }
        };
        let shown = path.display();
        let named = if force { file.persist(&path) } else { file.persist_noclobber(&path) };
        match named {
            Ok(_) => {}
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{shown}: came into being meanwhile; choose another name, or --force to replace it")
            }
            Err(failed) => {
                return Err(failed.error).with_context(|| format!("{shown}: cannot give it its name"));
            }
        }
        RealVfs.sync_dir(&folder).with_context(|| format!("{shown}: cannot make its name durable"))?;
        let by_content = matches!(name, StageName::ByContent { .. });
        Ok(WrittenFile { path: Some(path), bytes, by_content })
    }
}

impl Write for StageFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = match &mut self.writer {
            StageWriter::Stdout(out) => out.write(bytes)?,
            StageWriter::Json(out) => out.write(bytes)?,
            StageWriter::File(unnamed) => {
                let count = unnamed.file.write(bytes).map_err(|error| {
                    let shown = unnamed.name.shown().display();
                    io::Error::new(error.kind(), format!("{shown}: cannot write: {error}"))
                })?;
                unnamed.hash.update(&bytes[..count]);
                count
            }
        };
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            StageWriter::Stdout(out) => out.flush(),
            StageWriter::Json(out) => out.flush(),
            StageWriter::File(unnamed) => unnamed.file.flush(),
        }
    }
}

/// Creates a locked file with a temporary name.
fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444));
    loop {
        let file = builder.tempfile_in(folder)?;
        // Another process may have locked the file to remove it before this process could lock it. Then tries another
        // name. On systems without file locks, `sweep` removes no files.
        let is_seen = matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !is_seen && file.path().exists() {
            return Ok(file);
        }
    }
}

/// Removes temporary files that are not locked, because their writers have ended.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        // Keeps the lock until the file is removed, so that a writer that has just created the file cannot lock it in
        // the meantime.
        if is_ours
            && is_file
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHAT: ResultKind = ResultKind { noun: "a test", suffix: "test", magic: b"# test" };

    fn args(out: Option<PathBuf>, into: Option<PathBuf>, force: bool) -> StageArgs {
        StageArgs { out, into, force }
    }

    #[test]
    fn files_named_by_content_are_identical_from_every_worker() {
        let folder = tempfile::tempdir().unwrap();
        let into = args(None, Some(folder.path().join("made")), false);
        let mut two = [into.create(WHAT).unwrap(), into.create(WHAT).unwrap()];
        for file in &mut two {
            file.write_all(b"# test of two at once").unwrap();
        }
        let written = two.map(|file| file.finish().unwrap());
        assert_eq!(written[0].path, written[1].path);
        let path = written[0].path.as_deref().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"# test of two at once");
        assert_eq!(fs::read_dir(folder.path().join("made")).unwrap().count(), 1);
    }

    #[test]
    fn temporary_files_are_removed_only_after_their_writer_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let into = args(None, Some(folder.path().to_owned()), false);
        let dead = folder.path().join(format!("{PREFIX}dead"));
        fs::write(&dead, "half").unwrap();
        let living = into.create(WHAT).unwrap();
        assert!(!dead.exists());
        let mut other = into.create(WHAT).unwrap();
        other.write_all(b"# test").unwrap();
        other.finish().unwrap();
        living.finish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "an empty one and the other");
    }

    #[test]
    fn only_results_of_the_same_verb_are_replaced_and_only_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let write = |force: bool, content: &[u8]| {
            let mut file = args(Some(out.clone()), None, force).create(WHAT)?;
            file.write_all(content)?;
            file.finish()
        };
        write(false, b"# test 1").unwrap();
        assert!(write(false, b"# test 2").unwrap_err().to_string().contains("--force"));
        write(true, b"# test 3").unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"# test 3");
        fs::remove_file(&out).unwrap();
        fs::write(&out, "mine").unwrap();
        assert!(write(true, b"# test 4").unwrap_err().to_string().contains("is not a test"));
        assert_eq!(fs::read(&out).unwrap(), b"mine");
    }
}
