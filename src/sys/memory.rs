//! An in-memory file system for tests, so that they leave no files on the disk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::vfs::{
    AppendFile, Bytes, FileStamp, HeldLock, LockFailure, ReadFile, TEMPORARY_PREFIX, TemporaryFile, Vfs,
};

/// An in-memory file system. Clones share the files, as processes share a disk. It is meant for tests: data is not
/// durable, and each opened segment is a copy of all its bytes.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use twindex::{Fingerprint, Index, MemoryVfs, Params};
///
/// let disk = MemoryVfs::default();
/// let params = Params::builder().u64_keys().simhash(3).build()?;
/// let index = Index::create_with(Arc::new(disk.clone()), Path::new("/pages.twx"), params)?;
/// let mut writer = index.writer()?;
/// writer.put(1, Fingerprint(7))?;
/// writer.commit()?;
/// let again = Index::open_with(Arc::new(disk), Path::new("/pages.twx"))?;
/// assert_eq!(again.snapshot().documents(), 1);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryVfs {
    disk: Arc<MemoryDisk>,
}

#[derive(Debug, Default)]
struct MemoryDisk {
    /// The files and directories by absolute path. The root directory always exists and is not in the map.
    nodes: Mutex<BTreeMap<PathBuf, Node>>,
    /// The number in the name of the next temporary file.
    temporary: AtomicU64,
}

#[derive(Clone, Debug)]
enum Node {
    Dir,
    File(FileContent),
}

type FileContent = Arc<Mutex<Vec<u8>>>;

/// Locks a mutex even if a thread panicked while holding it. The data may then be partly updated.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryVfs {
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Node>> {
        locked(&self.disk.nodes)
    }

    fn path(path: &Path) -> PathBuf {
        Path::new("/").join(path)
    }

    fn is_dir(nodes: &BTreeMap<PathBuf, Node>, path: &Path) -> bool {
        path == Path::new("/") || matches!(nodes.get(path), Some(Node::Dir))
    }

    /// Adds a file or directory at an unused path. Its parent directory must exist.
    fn add(&self, path: &Path, node: Node) -> io::Result<()> {
        let (path, mut nodes) = (Self::path(path), self.nodes());
        match path.parent() {
            Some(parent) if Self::is_dir(&nodes, parent) => {}
            Some(parent) if nodes.contains_key(parent) => return Err(ErrorKind::NotADirectory.into()),
            _ => return Err(ErrorKind::NotFound.into()),
        }
        if nodes.contains_key(&path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        nodes.insert(path, node);
        Ok(())
    }

    fn file(&self, path: &Path) -> io::Result<FileContent> {
        match self.nodes().get(&Self::path(path)) {
            Some(Node::File(content)) => Ok(Arc::clone(content)),
            Some(Node::Dir) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

impl Vfs for MemoryVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.add(path, Node::Dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = Self::path(path);
        let nodes = self.nodes();
        Ok(Self::is_dir(&nodes, &path) || nodes.contains_key(&path))
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let number = self.disk.temporary.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{TEMPORARY_PREFIX}{number:016x}"));
        let content = FileContent::default();
        self.add(&path, Node::File(Arc::clone(&content)))?;
        Ok(Box::new(Temporary { vfs: self.clone(), path, content, published: false }))
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let content = FileContent::default();
        self.add(path, Node::File(Arc::clone(&content)))?;
        Ok(Box::new(OpenFile(content)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(OpenFile(self.file(path)?)))
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<FileStamp>> {
        Ok(Some(stamp_of(&self.file(path)?)))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.exists(dir)? { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (Self::path(from), Self::path(to));
        self.add(&to, Node::Dir)?;
        let mut nodes = self.nodes();
        let moved: Vec<PathBuf> = nodes.keys().filter(|path| path.starts_with(&from)).cloned().collect();
        if moved.is_empty() {
            nodes.remove(&to);
            return Err(ErrorKind::NotFound.into());
        }
        for path in moved {
            if let (Some(node), Ok(below)) = (nodes.remove(&path), path.strip_prefix(&from)) {
                let path = if below.as_os_str().is_empty() { to.clone() } else { to.join(below) };
                nodes.insert(path, node);
            }
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (path, mut nodes) = (Self::path(path), self.nodes());
        if nodes.keys().any(|other| other.parent() == Some(&path)) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        match nodes.remove(&path) {
            Some(Node::Dir) => Ok(()),
            Some(file) => {
                nodes.insert(path, file);
                Err(ErrorKind::NotADirectory.into())
            }
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        self.nodes().remove(&Self::path(path));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let (dir, nodes) = (Self::path(dir), self.nodes());
        if !Self::is_dir(&nodes, &dir) {
            let kind = if nodes.contains_key(&dir) { ErrorKind::NotADirectory } else { ErrorKind::NotFound };
            return Err(kind.into());
        }
        let below = nodes.keys().filter(|path| path.parent() == Some(&dir));
        Ok(below.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let content = self.file(from)?;
        self.add(to, Node::File(content))
    }

    /// Returns the temporary directory of the system, because scratch files must be on a real disk.
    fn scratch(&self, _dir: &Path) -> PathBuf {
        std::env::temp_dir()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        let content = match self.file(path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let content = FileContent::default();
                self.add(path, Node::File(Arc::clone(&content))).map_err(LockFailure::Io)?;
                content
            }
            Err(error) => return Err(LockFailure::Io(error)),
        };
        let mut holder = locked(&content);
        if !holder.is_empty() {
            return Err(LockFailure::Held(Some(std::process::id())));
        }
        holder.push(1);
        drop(holder);
        Ok(Box::new(MemoryLock { vfs: self.clone(), path: path.to_owned(), content }))
    }
}

/// A file that is being written. It is removed when dropped, unless it has been published.
#[derive(Debug)]
struct Temporary {
    vfs: MemoryVfs,
    path: PathBuf,
    content: FileContent,
    published: bool,
}

impl TemporaryFile for Temporary {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        locked(&self.content).extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn publish(mut self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        let (from, path) = (MemoryVfs::path(&self.path), MemoryVfs::path(path));
        let mut nodes = self.vfs.nodes();
        match nodes.get(&path) {
            Some(Node::File(_)) if !replace => return Err(ErrorKind::AlreadyExists.into()),
            Some(Node::Dir) => return Err(ErrorKind::IsADirectory.into()),
            _ => {}
        }
        let node = nodes.remove(&from).ok_or(ErrorKind::NotFound)?;
        nodes.insert(path, node);
        drop(nodes);
        self.published = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            self.vfs.nodes().remove(&MemoryVfs::path(&self.path));
        }
    }
}

/// An open file. It can be read even after its name is removed.
#[derive(Debug)]
struct OpenFile(FileContent);

impl AppendFile for OpenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        locked(&self.0).extend_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        locked(&self.0).truncate(length as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the stamp of a file. Its address is used as the number of the inode; the time of the last change is not recorded.
fn stamp_of(content: &FileContent) -> FileStamp {
    let address = Arc::as_ptr(content) as usize;
    FileStamp { file: (0, address as u64), length: locked(content).len() as u64, modified: (0, 0) }
}

impl ReadFile for OpenFile {
    fn len(&self) -> io::Result<u64> {
        Ok(locked(&self.0).len() as u64)
    }

    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        Ok(Some(stamp_of(&self.0)))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = locked(&self.0);
        let start = usize::try_from(offset).map_err(|_| ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len()).ok_or(ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes.get(start..end).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        let bytes = locked(&self.0);
        Ok(Bytes::Heap(bytes.get(..len).ok_or(ErrorKind::UnexpectedEof)?.to_vec()))
    }
}

/// A held lock. The lock file has one byte while the lock is held, otherwise it is empty.
#[derive(Debug)]
struct MemoryLock {
    vfs: MemoryVfs,
    path: PathBuf,
    content: FileContent,
}

impl HeldLock for MemoryLock {
    fn is_current(&self) -> bool {
        self.vfs.file(&self.path).is_ok_and(|content| Arc::ptr_eq(&content, &self.content))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        locked(&self.content).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_file_system_rejects_the_same_operations_as_a_disk() {
        let vfs = MemoryVfs::default();
        let kind = |done: io::Result<()>| done.unwrap_err().kind();
        let (dir, file) = (Path::new("/a"), Path::new("/a/file"));
        assert_eq!(kind(vfs.create_append(file).map(drop)), ErrorKind::NotFound);
        vfs.create_dir(dir).unwrap();
        assert_eq!(kind(vfs.create_dir(dir)), ErrorKind::AlreadyExists);
        let mut log = vfs.create_append(file).unwrap();
        assert_eq!(kind(vfs.create_append(file).map(drop)), ErrorKind::AlreadyExists);
        assert_eq!(kind(vfs.create_dir(&file.join("b"))), ErrorKind::NotADirectory);
        assert_eq!(kind(vfs.remove_dir(dir)), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind(vfs.list(file).map(drop)), ErrorKind::NotADirectory);
        assert_eq!(kind(vfs.open(dir).map(drop)), ErrorKind::IsADirectory);
        // A reader sees bytes that are appended to a log after it was opened, even after the name is removed.
        let reader = vfs.open(file).unwrap();
        log.append(b"abc").unwrap();
        vfs.unlink(file).unwrap();
        log.append(b"def").unwrap();
        let mut bytes = [0; 3];
        reader.read_exact_at(&mut bytes, 2).unwrap();
        assert_eq!((&bytes, reader.len().unwrap()), (b"cde", 6));
        assert_eq!(kind(reader.read_exact_at(&mut bytes, 4)), ErrorKind::UnexpectedEof);
        assert_eq!(kind(vfs.open(file).map(drop)), ErrorKind::NotFound);
        // A temporary file that is dropped without being published is removed.
        drop(vfs.create_temporary(dir).unwrap());
        let mut temporary = vfs.create_temporary(dir).unwrap();
        temporary.append(b"x").unwrap();
        temporary.publish(file, false).unwrap();
        assert_eq!(kind(vfs.create_temporary(dir).unwrap().publish(file, false)), ErrorKind::AlreadyExists);
        vfs.create_temporary(dir).unwrap().publish(file, true).unwrap();
        assert_eq!(vfs.list(dir).unwrap(), ["file"]);
        assert_eq!(vfs.open(file).unwrap().len().unwrap(), 0);
        // Renaming a directory moves its contents.
        assert_eq!(kind(vfs.rename_dir(Path::new("/none"), Path::new("/b"))), ErrorKind::NotFound);
        vfs.rename_dir(dir, Path::new("/b")).unwrap();
        assert!(vfs.exists(Path::new("/b/file")).unwrap() && !vfs.exists(dir).unwrap());
        let lock = vfs.lock(Path::new("/b/LOCK")).unwrap();
        assert!(matches!(vfs.lock(Path::new("/b/LOCK")), Err(LockFailure::Held(_))));
        assert!(lock.is_current());
        drop(lock);
        let lock = vfs.lock(Path::new("/b/LOCK")).unwrap();
        vfs.unlink(Path::new("/b/LOCK")).unwrap();
        assert!(!lock.is_current());
    }
}
