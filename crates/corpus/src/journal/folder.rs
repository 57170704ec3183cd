//! The folder of a journal: its lock, its sealed files, and the finished result files in it. A sealed file is written
//! once and ends with a hash of its content.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use twindex::sys::lock::FileLock;
use twindex::sys::vfs::LockFailure;
use twindex::sys::{RealVfs, Vfs};
use xxhash_rust::xxh3::Xxh3Default;

use crate::journal::cache::damaged;
use crate::journal::files::{
    INPUTS, LOCK, MANIFEST, PUBLISHED, RESULTS, SETS, UNFINISHED, check_ours, last, missing, name_file,
    names, refuse, remove, remove_any, unnamed_file,
};
use crate::journal::manifest::JobDescription;
use crate::work::observer::Observer;

/// Suffix that follows the name of OUT in the name of the journal folder.
const SUFFIX: &str = ".twindex-resume";
/// Suffix added to the name of a journal folder while it is removed, after its run has ended.
const ENDED: &str = "-ended";

/// The journal of a run.
pub(crate) struct Journal<'o> {
    pub(crate) folder: PathBuf,
    /// The random id of the run.
    pub(crate) run: u128,
    pub(crate) observer: &'o dyn Observer,
    /// Target size of a part file in bytes.
    pub(crate) part_bytes: u64,
    /// Lock on the journal folder, which the system also releases if the process is killed.
    _lock: FileLock,
}

/// Returns the path of the journal folder of a run that writes to `out`.
pub(crate) fn folder_of(out: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(out.file_name().unwrap_or_default());
    name.push(SUFFIX);
    out.with_file_name(name)
}

/// Returns the name of a journal folder while it is being removed.
fn ended(folder: &Path) -> PathBuf {
    let mut path = folder.as_os_str().to_owned();
    path.push(ENDED);
    path.into()
}

/// Removes the remains of a journal whose run had ended, but was killed before all files of the journal were removed.
fn remove_ended(folder: &Path) -> anyhow::Result<()> {
    let ended = ended(folder);
    if ended.symlink_metadata().is_err() {
        return Ok(());
    }
    check_ours(&ended)?;
    match fs::remove_dir_all(&ended) {
        // `NotFound` is no error: another process may be removing the same journal.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: cannot be removed", ended.display()))
        }
        _ => Ok(()),
    }
}

/// Returns an error if a stopped run has left a journal, because that run could be continued. With `force`, removes the
/// journal instead.
pub(crate) fn check_none(out: &Path, force: bool) -> anyhow::Result<()> {
    let folder = folder_of(out);
    remove_ended(&folder)?;
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    ensure!(
        force,
        "{}: a run was stopped and left its work in {}; --resume continues it, --force removes it and starts over",
        out.display(),
        folder.display()
    );
    let _lock = lock(&folder)?;
    check_ours(&folder)?;
    remove(&folder)
}

/// Locks the journal folder, which must exist.
fn lock(folder: &Path) -> anyhow::Result<FileLock> {
    FileLock::acquire(&folder.join(LOCK)).map_err(|failure| match failure {
        LockFailure::Held(Some(process)) => {
            anyhow::anyhow!("{}: the process {process} works on it; wait for it, or end it", folder.display())
        }
        LockFailure::Held(None) => {
            anyhow::anyhow!("{}: another process works on it; wait for it, or end it", folder.display())
        }
        LockFailure::Io(error) => {
            anyhow::Error::new(error).context(format!("{}: cannot lock it", folder.display()))
        }
    })
}

impl<'o> Journal<'o> {
    /// Creates the journal of a run that writes to `out`, or opens the journal of a stopped run. Reports to `observer`
    /// whether the run starts or continues.
    ///
    /// # Errors
    ///
    /// Another process uses the journal, the stopped run had other options or inputs (the message names the first
    /// difference), a file of the journal is damaged, or an I/O operation fails.
    pub(crate) fn open(
        out: &Path,
        asked: &JobDescription<'_>,
        memory: usize,
        observer: &'o dyn Observer,
    ) -> anyhow::Result<Self> {
        let folder = folder_of(out);
        remove_ended(&folder)?;
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("{}: cannot create", folder.display()));
            }
            _ => {}
        }
        let lock = lock(&folder)?;
        check_ours(&folder)?;
        for name in names(&folder)? {
            if name.to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
                remove_any(&folder.join(name))?;
            }
        }
        let part_bytes = (memory as u64 / 4).clamp(PART_LEAST, PART_MOST);
        let journal = |run| Self { folder: folder.clone(), run, observer, part_bytes, _lock: lock };
        if !folder.join(MANIFEST).exists() {
            // A run that was stopped before it wrote the manifest leaves at most the list of inputs.
            if names(&folder)?.iter().any(|name| *name != *LOCK && *name != *INPUTS) {
                return Err(missing(&folder, MANIFEST));
            }
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
            RealVfs
                .sync_dir(parent.unwrap_or(Path::new(".")))
                .with_context(|| format!("{}: cannot make its name durable", folder.display()))?;
            asked.write_inputs(&folder)?;
            let run = asked.write_manifest(&folder)?;
            observer.note(&format!(
                "nothing to continue in {}: the run starts with the first input",
                folder.display()
            ));
            return Ok(journal(run));
        }
        let journal = journal(asked.check(&folder)?);
        let parts = last(&folder, "reading")?;
        let done = if journal.has("decided") {
            "after the decision which documents stay".to_owned()
        } else {
            format!("after {parts} parts of the reading")
        };
        observer.note(&format!("continuing {done}, from {}", folder.display()));
        Ok(journal)
    }

    /// Returns the results folder, after removing all files from it that no seal lists.
    pub(crate) fn results(&self) -> anyhow::Result<PathBuf> {
        let results = self.folder.join(RESULTS);
        if results.is_dir() {
            self.clean(&results)?;
            return Ok(results);
        }
        // If the results folder is missing, it was renamed to OUT or lost. The seals describe files in that folder, so
        // they are removed.
        for name in ["index", "kept"] {
            if self.has(name) {
                remove_any(&self.folder.join(name))?;
            }
        }
        let made = || {
            fs::create_dir(&results)?;
            RealVfs.sync_dir(&self.folder)
        };
        made().with_context(|| format!("{}: cannot create", results.display()))?;
        Ok(results)
    }

    /// Returns whether `out` is the results folder of this run, that is, whether the run was killed after the rename.
    pub(crate) fn is_published(&self, out: &Path) -> anyhow::Result<bool> {
        let Some(mut content) = self.sealed(PUBLISHED)? else { return Ok(false) };
        let mut known = String::new();
        content
            .read_to_string(&mut known)
            .with_context(|| format!("{}: cannot read", self.folder.join(PUBLISHED).display()))?;
        Ok(identity(out).is_some_and(|found| found == known))
    }

    /// Records the identity of the results folder in the file [`PUBLISHED`], before the folder is renamed.
    pub(crate) fn publish(&self, results: &Path) -> anyhow::Result<()> {
        let known = identity(results).unwrap_or_default();
        self.seal(PUBLISHED, |out| out.write_all(known.as_bytes()))
    }

    /// Removes the journal after the results were renamed. Renames the journal first, so that a kill during the removal
    /// does not leave an incomplete journal.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let ended = ended(&self.folder);
        // Some systems cannot rename a folder that contains an open file, here the lock.
        let is_renamed = fs::rename(&self.folder, &ended).is_ok();
        remove(if is_renamed { &ended } else { &self.folder })
    }

    /// Returns the path of the scratch file of sets.
    pub(crate) fn sets(&self) -> PathBuf {
        self.folder.join(SETS)
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    fn name(&self, file: &fs::File, name: &str) -> anyhow::Result<()> {
        name_file(&self.folder, file, name)
    }
}

/// Minimum size of a part file in bytes.
const PART_LEAST: u64 = 256 << 10;
/// Maximum size of a part file in bytes. A killed run loses at most two parts: one being written, one being synced.
const PART_MOST: u64 = 256 << 20;

/// Returns the device and inode numbers of a folder, which a rename does not change. Returns `None` if the folder does
/// not exist or the system has no inode numbers.
#[cfg(unix)]
fn identity(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    folder.symlink_metadata().ok().map(|metadata| format!("{} {}", metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<String> {
    None
}

/// Names of the seals. Each seal is a sealed file with the sizes and hashes of a group of result files.
const SEALS: [&str; 2] = ["index", "kept"];
/// Buffer size for hashing, in bytes.
const HASHED_AT_ONCE: usize = 1 << 20;

impl Journal<'_> {
    /// Writes a seal for files of the results folder. The contents of the files must already be synced.
    pub(crate) fn seal_files(&self, seal: &str, files: &[String]) -> anyhow::Result<()> {
        let results = self.folder.join(RESULTS);
        RealVfs
            .sync_dir(&results)
            .with_context(|| format!("{}: cannot make it durable", results.display()))?;
        let lines = files.iter().map(|file| {
            let (bytes, hash) = hash_of(&results.join(file))?;
            Ok(format!("{hash:016x}\t{bytes}\t{file}\n"))
        });
        let lines: Vec<String> = lines.collect::<anyhow::Result<_>>()?;
        self.seal(seal, |out| lines.iter().try_for_each(|line| out.write_all(line.as_bytes())))
    }

    /// Writes a seal for all files in `folder`, a subfolder of the results folder.
    pub(crate) fn seal_folder(&self, seal: &str, folder: &str) -> anyhow::Result<()> {
        let mut files: Vec<String> = names(&self.folder.join(RESULTS).join(folder))?
            .iter()
            .map(|name| format!("{folder}/{}", name.display()))
            .collect();
        files.sort_unstable();
        self.seal_files(seal, &files)
    }

    /// Returns the names of the files that a seal lists; `None` if the seal does not exist.
    pub(crate) fn files(&self, seal: &str) -> anyhow::Result<Option<Vec<String>>> {
        Ok(self.listed(seal)?.map(|listed| listed.into_iter().map(|(file, ..)| file).collect()))
    }

    /// Returns the files that a seal lists, each with its size and hash; `None` if the seal does not exist.
    fn listed(&self, seal: &str) -> anyhow::Result<Option<Vec<(String, u64, u64)>>> {
        let Some(mut content) = self.sealed(seal)? else { return Ok(None) };
        let mut text = String::new();
        let path = self.folder.join(seal);
        content.read_to_string(&mut text).with_context(|| format!("{}: cannot read", path.display()))?;
        let line = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let hash = u64::from_str_radix(fields.next()?, 16).ok()?;
            let bytes = fields.next()?.parse().ok()?;
            Some((fields.next()?.to_owned(), bytes, hash))
        };
        match text.lines().map(line).collect() {
            Some(listed) => Ok(Some(listed)),
            None => bail!("{}", damaged(&path.display().to_string())),
        }
    }

    /// Removes all files from the results folder that no seal lists.
    ///
    /// # Errors
    ///
    /// A file that a seal lists is damaged or missing.
    pub(crate) fn clean(&self, results: &Path) -> anyhow::Result<()> {
        let mut whole: BTreeSet<OsString> = BTreeSet::new();
        for seal in SEALS {
            for (file, bytes, hash) in self.listed(seal)?.unwrap_or_default() {
                let path = results.join(&file);
                if hash_of(&path).ok() != Some((bytes, hash)) {
                    return Err(refuse(&format!(
                        "{}: damaged: expected the {bytes} bytes that the stopped run wrote, found others",
                        path.display()
                    )));
                }
                if let Some((folder, _)) = file.split_once('/') {
                    whole.insert(folder.into());
                }
                whole.insert(file.into());
            }
        }
        for name in names(results)? {
            let path = results.join(&name);
            if !whole.contains(&name) {
                remove_any(&path)?;
                continue;
            }
            if !path.is_dir() {
                continue;
            }
            for inner in names(&path)? {
                let mut file = name.clone();
                file.push("/");
                file.push(&inner);
                if !whole.contains(&file) {
                    remove_any(&path.join(inner))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the size and the hash of a file.
fn hash_of(path: &Path) -> anyhow::Result<(u64, u64)> {
    let read = || -> io::Result<_> {
        let (mut file, mut hash, mut buffer, mut bytes) =
            (File::open(path)?, Xxh3Default::new(), vec![0; HASHED_AT_ONCE], 0);
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok((bytes, hash.digest()));
            }
            hash.update(&buffer[..count]);
            bytes += count as u64;
        }
    };
    read().with_context(|| format!("{}: cannot read", path.display()))
}

/// The first bytes of each sealed file. The id of the run follows.
const MAGIC: &[u8; 16] = b"twindex sealed 1";
/// Number of bytes before the content of a sealed file: the magic number and the id of the run.
const HEAD: u64 = 32;
/// Length in bytes of the hash after the content.
const HASH: u64 = 8;
/// Buffer size for reading and writing, in bytes.
const BUFFER: usize = 256 << 10;

/// Writes a file and computes the hash of its bytes.
pub(crate) struct SealedWriter {
    out: BufWriter<File>,
    hash: Xxh3Default,
}

impl Write for SealedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads the content of a sealed file whose hash was verified.
pub(crate) type SealedReader = io::Take<BufReader<File>>;

impl Journal<'_> {
    /// Writes a sealed file and syncs it.
    pub(crate) fn seal(
        &self,
        name: &str,
        write: impl FnOnce(&mut SealedWriter) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let file = unnamed_file(&self.folder, name)?;
        let written = || {
            let mut writing =
                SealedWriter { out: BufWriter::with_capacity(BUFFER, file), hash: Xxh3Default::new() };
            writing.write_all(MAGIC)?;
            writing.write_all(&self.run.to_le_bytes())?;
            write(&mut writing)?;
            let SealedWriter { mut out, hash } = writing;
            out.write_all(&hash.digest().to_le_bytes())?;
            out.into_inner().map_err(io::IntoInnerError::into_error)
        };
        let file =
            written().with_context(|| format!("{}: cannot write", self.folder.join(name).display()))?;
        self.name(&file, name)?;
        self.observer.sealed(name);
        Ok(())
    }

    /// Returns the content of a sealed file; `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// The file is damaged.
    pub(crate) fn sealed(&self, name: &str) -> anyhow::Result<Option<SealedReader>> {
        let path = self.folder.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let content =
            open_sealed(&path, self.run).with_context(|| format!("{}: cannot read", path.display()))?;
        match content {
            Some(content) => Ok(Some(content)),
            None => anyhow::bail!("{}", damaged(&path.display().to_string())),
        }
    }
}

/// Returns the content of a sealed file; `None` if the file is damaged or was not written by the run `run`.
fn open_sealed(path: &Path, run: u128) -> io::Result<Option<SealedReader>> {
    let file = File::open(path)?;
    let Some(length) = file.metadata()?.len().checked_sub(HEAD + HASH) else { return Ok(None) };
    let mut content = BufReader::with_capacity(BUFFER, file).take(HEAD + length);
    let (mut hash, mut buffer, mut head) = (Xxh3Default::new(), vec![0; BUFFER], Vec::new());
    loop {
        let count = content.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        head.extend(buffer[..count].iter().take(HEAD as usize - head.len()));
    }
    let mut expected = [0; HASH as usize];
    content.into_inner().read_exact(&mut expected)?;
    if hash.digest().to_le_bytes() != expected || head[..16] != *MAGIC || head[16..] != run.to_le_bytes() {
        return Ok(None);
    }
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    file.read_exact(&mut head)?;
    Ok(Some(file.take(length)))
}
