//! The implementation of [`vfs`](super::vfs) for the file system of the operating system.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::lock::FileLock;
use super::mmap;
use super::vfs::{
    AppendFile, Bytes, FileStamp, HeldLock, LockFailure, ReadFile, TEMPORARY_PREFIX, TemporaryFile, Vfs,
};
use super::watch::{self, Watch};

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealVfs;

#[allow(clippy::disallowed_methods, reason = "the real backend of the seam")]
impl Vfs for RealVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        Ok(Box::new(RealTemporaryFile(temporary(dir)?)))
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        // Opening a FIFO would block until a writer opens it, so check the file type first.
        // guard: a file is a regular file
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Box::new(File::open(path)?))
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<FileStamp>> {
        Ok(stamp_of(&fs::metadata(path)?))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if cfg!(unix) {
            File::open(dir)?.sync_all()
        } else {
            // On systems other than Unix, a directory cannot be opened as a file. There the journal of the file system
            // makes renames durable.
            Ok(())
        }
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    #[cfg(unix)]
    fn free_space(&self, dir: &Path) -> io::Result<Option<u64>> {
        let space = rustix::fs::statvfs(dir)?;
        Ok(Some(space.f_bavail.saturating_mul(space.f_frsize)))
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }

    fn watch(&self, dir: &Path) -> Box<dyn Watch> {
        watch::watch(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        Ok(Box::new(FileLock::acquire(path)?))
    }
}

#[allow(clippy::disallowed_methods, reason = "the real backend of the seam")]
pub(super) fn temporary(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    // By default, only the user can read temporary files. But an index should be as readable as the user's other files,
    // and nobody should write to its published files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444));
    builder.tempfile_in(dir)
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have no stamps")]
fn stamp_of(file: &fs::Metadata) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt;
    let modified = (file.mtime(), file.mtime_nsec());
    Some(FileStamp { file: (file.dev(), file.ino()), length: file.len(), modified })
}

/// Systems other than Unix do not report a number of a file that is stable.
#[cfg(not(unix))]
fn stamp_of(_file: &fs::Metadata) -> Option<FileStamp> {
    None
}

impl AppendFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data() // syncs the data and the length, but not the timestamps
    }
}

#[derive(Debug)]
struct RealTemporaryFile(tempfile::NamedTempFile);

impl TemporaryFile for RealTemporaryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.as_file_mut().write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.as_file().sync_all()
    }

    fn publish(self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        let published = if replace { self.0.persist(path) } else { self.0.persist_noclobber(path) };
        published.map(drop).map_err(|failure| failure.error)
    }
}

impl ReadFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        Ok(stamp_of(&self.metadata()?))
    }

    #[cfg(unix)]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => (buffer, offset) = (&mut buffer[count..], offset + count as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cfg(not(any(unix, windows)))]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        // Reading moves the position of the file, which all threads share, so only one thread may read at a time.
        static SEEKING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
        let _seeking = SEEKING.lock();
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        mmap::map(self, len)
    }

    #[cfg(target_os = "linux")]
    fn will_need(&self, offset: u64, length: u64) {
        mmap::will_need(self, offset, length);
    }
}
