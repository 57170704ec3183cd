//! Creating and opening an index.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use super::names;
use super::snapshot::Snapshot;
use super::state::State;
use super::writer::Writer;
use super::{commit, idf};
use crate::error::{Error, Result};
use crate::format::manifest::Manifest;
use crate::params::Params;
use crate::sketch::{Cutter, IdfTable, Sketcher};
use crate::sys::vfs::TEMPORARY_PREFIX;
use crate::sys::{Access, RealVfs, Vfs};

/// An open index: cheap to clone, shared by threads at will.
///
/// ```
/// use twindex::{Index, Params};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("pages.twx");
/// let index = Index::create(&path, Params::builder().words(2).simhash(3).minhash(20, 6).build()?)?;
/// let sketcher = index.sketcher()?;
/// let mut writer = index.writer()?;
/// writer.put("a", &sketcher.sketch("the quick brown fox jumps over the lazy dog")?)?;
/// writer.commit()?;
/// let hits = index.snapshot().near(&sketcher.sketch("The quick brown fox jumps over the lazy dog!")?).run()?.hits;
/// assert_eq!(hits[0].key.to_string(), "a");
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    /// How the bytes of segments come into memory.
    pub(super) access: Access,
    /// What the next snapshot sees; replaced as a whole by a commit.
    pub(super) published: RwLock<Arc<State>>,
    /// The IDF table, once it was asked for; parameters, and with them the table, never change.
    idf: OnceLock<Arc<IdfTable>>,
}

/// How to open an index; [`Index::options`] makes it, with the choices of [`Index::open`].
///
/// ```
/// use twindex::sys::Access;
/// use twindex::{Index, Params};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("pages.twx");
/// # Index::create(&path, Params::builder().words(2).simhash(3).build()?)?;
/// let index = Index::options().access(Access::Read).open(&path)?;
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct OpenOptions {
    access: Access,
}

impl OpenOptions {
    /// How the bytes of segments come into memory: [`Access::Map`] unless said otherwise. It holds for the segments
    /// that [`Index::refresh`] and [`Index::writer`] open later, too.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens an index; never creates one.
    ///
    /// # Errors
    /// As [`Index::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Index> {
        self.open_with(Arc::new(RealVfs), path.as_ref())
    }

    /// As [`open`](Self::open), on another file system.
    ///
    /// # Errors
    /// As [`Index::open`].
    pub fn open_with(self, vfs: Arc<dyn Vfs>, path: &Path) -> Result<Index> {
        let state = State::load(&*vfs, path, self.access, None)?;
        let shared = Shared {
            vfs,
            dir: path.to_owned(),
            access: self.access,
            published: RwLock::new(Arc::new(state)),
            idf: OnceLock::new(),
        };
        Ok(Index { shared: Arc::new(shared) })
    }
}

impl Index {
    /// Creates an empty index in a new directory, and opens it. All or nothing: the directory gets its name when
    /// it is complete.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] where anything stands at the path, [`Error::Io`]; [`Error::Invalid`] for parameters
    /// that weight shingles by an IDF table, see [`create_with_idf`](Self::create_with_idf), and for such that this
    /// build cannot cut text by, see [`Cutter::new`].
    pub fn create(path: impl AsRef<Path>, params: Params) -> Result<Self> {
        Self::create_with(Arc::new(RealVfs), path.as_ref(), params)
    }

    /// As [`create`](Self::create), on another file system.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(vfs: Arc<dyn Vfs>, path: &Path, params: Params) -> Result<Self> {
        Self::create_from(vfs, path, params, None)
    }

    /// As [`create`](Self::create), for parameters that weight shingles by this table, which goes into the index.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a table other than the parameters name, or whose documents were cut in another way;
    /// otherwise as [`create`](Self::create).
    pub fn create_with_idf(path: impl AsRef<Path>, params: Params, table: &IdfTable) -> Result<Self> {
        Self::create_from(Arc::new(RealVfs), path.as_ref(), params, Some(table))
    }

    /// Creates an index on any file system, with its IDF table if the parameters name one.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`create_with_idf`](Self::create_with_idf).
    pub fn create_from(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        params: Params,
        table: Option<&IdfTable>,
    ) -> Result<Self> {
        params.check()?;
        Cutter::new(&params.shingling)?;
        match table {
            Some(table) => table.check(&params)?,
            None => {
                if let Some(digest) = idf::named_by(&params) {
                    return Err(Error::Invalid(format!(
                        "these parameters (simhash=idf) need the idf table {digest:032x}: create the index with it"
                    )));
                }
            }
        }
        if vfs.exists(path).map_err(|e| Error::io("look at", path, e))? {
            return Err(Error::AlreadyExists { path: path.to_owned() });
        }
        let mut uuid = [0; 16];
        getrandom::fill(&mut uuid).map_err(|e| Error::io("get random bytes for", path, e.into()))?;
        let uuid = u128::from_le_bytes(uuid);
        let manifest = Manifest {
            uuid,
            read_only_compatible: 0,
            generation: 1,
            next_segment: 1,
            params,
            segments: Vec::new(),
        };

        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let temporary = parent.join(format!("{TEMPORARY_PREFIX}{uuid:032x}"));
        let made = vfs.create_dir(&temporary).map_err(|e| Error::io("create a directory in", parent, e));
        let written = made
            .and_then(|()| match table {
                Some(table) => {
                    let path = names::idf(&temporary, table.digest());
                    idf::publish(&*vfs, &temporary, &path, table, false)
                }
                None => Ok(()),
            })
            .and_then(|()| commit::write_manifest(&*vfs, &temporary, &manifest))
            .and_then(|current| commit::point(&*vfs, &temporary, &current, &mut false));
        let named = written.and_then(|()| {
            // On some systems a rename replaces an empty directory that came there meanwhile; nothing is lost.
            vfs.rename_dir(&temporary, path).map_err(|e| Error::io("create", path, e))
        });
        if let Err(error) = named {
            for name in vfs.list(&temporary).unwrap_or_default() {
                let _ = vfs.unlink(&temporary.join(name));
            }
            let _ = vfs.remove_dir(&temporary);
            return Err(error);
        }
        commit::sync_dir(&*vfs, parent)?;
        Self::open_with(vfs, path)
    }

    /// Opens an index; never creates one.
    ///
    /// Reads `CURRENT`, the manifest and the head, contents and checksums of each segment; maps the rest. For other
    /// ways to read it, see [`options`](Self::options).
    ///
    /// # Errors
    /// [`Error::NotAnIndex`], [`Error::Unsupported`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// As [`open`](Self::open), on another file system.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(vfs: Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        Self::options().open_with(vfs, path)
    }

    /// The choices there are when an index is opened.
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// How the bytes of its segments come into memory.
    #[must_use]
    pub fn access(&self) -> Access {
        self.shared.access
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.dir
    }

    /// What the index keeps and how it is made; fixed at creation.
    #[must_use]
    pub fn params(&self) -> Params {
        self.shared.published.read().manifest.params.clone()
    }

    /// A sketcher with the index's parameters, and its IDF table where they name one.
    ///
    /// # Errors
    /// As [`Sketcher::new`] and [`idf`](Self::idf); the index can be read and queried by sketches all the same.
    pub fn sketcher(&self) -> Result<Sketcher> {
        let params = self.params();
        match self.idf()? {
            Some(table) => Sketcher::with_idf(&params, table),
            None => Sketcher::new(&params),
        }
    }

    /// The table by which shingles are weighted; none unless the parameters say so. It is read and checked when it
    /// is first asked for: opening and querying by sketches do not need it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where it is missing or damaged, [`Error::Io`].
    pub fn idf(&self) -> Result<Option<Arc<IdfTable>>> {
        if let Some(table) = self.shared.idf.get() {
            return Ok(Some(Arc::clone(table)));
        }
        let table = idf::of_index(&*self.shared.vfs, &self.shared.dir, &self.params())?;
        Ok(table.map(|table| Arc::clone(self.shared.idf.get_or_init(|| table))))
    }

    /// The index as it is now. Later commits do not change it; it holds its files open as long as it lives.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.shared.published.read()))
    }

    /// Takes in what other processes have committed. Returns true if there was anything.
    ///
    /// # Errors
    /// As [`open`](Self::open); the index stays as it was.
    pub fn refresh(&self) -> Result<bool> {
        let known = Arc::clone(&self.shared.published.read());
        let state = State::load(&*self.shared.vfs, &self.shared.dir, self.shared.access, Some(&known))?;
        if state.manifest.uuid != known.manifest.uuid {
            let why = "another index has taken its place; open it anew".into();
            return Err(Error::NotAnIndex { path: self.shared.dir.clone(), why });
        }
        let mut published = self.shared.published.write();
        if state.manifest.generation <= published.manifest.generation {
            return Ok(false);
        }
        *published = Arc::new(state);
        Ok(true)
    }

    /// Becomes the one writer of the index, and removes what a crashed one left behind.
    ///
    /// # Errors
    /// [`Error::Locked`] where there is a writer, in this process or another; otherwise as [`open`](Self::open).
    pub fn writer(&self) -> Result<Writer> {
        Writer::new(self, &names::lock(&self.shared.dir))
    }

    /// Merges all segments to one: [`Writer::compact`] by a writer of its own. Returns the generation.
    ///
    /// # Errors
    /// As [`writer`](Self::writer) and [`Writer::compact`].
    pub fn compact(&self) -> Result<u64> {
        self.writer()?.compact()
    }
}
