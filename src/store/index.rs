//! Creates, opens and configures an index.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::metrics::{MetricCounters, Metrics};
use super::names;
use super::shared::SharedIndex;
use super::snapshot::Snapshot;
use super::state::State;
use super::verify::{Findings, verify_with};
use super::writer::{Writer, WriterOptions};
use super::{directory, idf};
use crate::error::{Error, Result};
use crate::params::Params;
use crate::sync::{AtomicBool, Mutex, RwLock, pause};
use crate::sys::{Access, RealVfs, Vfs};
use crate::trace::span;
use twindex_sketch::{Cutter, IdfTable, Sketcher};

/// Interval at which a process that has the writer checks whether its writer has committed.
const LOOKED: Duration = Duration::from_millis(5);

/// A handle to an open index. Cheap to clone; can be shared by any number of threads.
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
    pub(super) shared: Arc<SharedIndex>,
}

/// Options for opening an index. [`Index::options`] returns the defaults, which [`Index::open`] uses.
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
#[derive(Default)]
#[must_use]
pub struct OpenOptions<'a> {
    access: Access,
    generation: Option<u64>,
    progress: Option<Box<dyn FnMut(u64, u64) + 'a>>,
}

impl std::fmt::Debug for OpenOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { access, generation, progress } = self;
        let fields = (access, generation, progress.is_some());
        f.debug_tuple("OpenOptions").field(&fields.0).field(&fields.1).field(&fields.2).finish()
    }
}

impl<'a> OpenOptions<'a> {
    /// Sets the method of reading segment files; the default is [`Access::Map`]. The setting also applies to segments that
    /// [`Index::refresh`] and [`Index::writer`] open later.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens the generation with this number, whose manifest is `MANIFEST-<number>`, instead of the one that `CURRENT`
    /// names. Use it to read the previous generation if the newest is damaged: opening never falls back to an older
    /// generation by itself. An index opened this way has no writer and is not refreshed; [`Index::copy_to`] makes an
    /// independent index from it.
    ///
    /// If the newest generation only moved documents between files, the files of the previous generation are kept until
    /// the next generation is published. Otherwise files may be missing; opening then fails with an error that names
    /// the first one.
    pub fn at_generation(mut self, generation: u64) -> Self {
        self.generation = Some(generation);
        self
    }

    /// Sets a callback that is called at most ten times a second if opening takes longer than a second. Its arguments are
    /// the number of log bytes read so far and the total number of log bytes. The time to open grows with the length of the
    /// logs, which are short unless a writer commits for a long time without making a segment.
    ///
    /// ```
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.twx");
    /// # Index::create(&path, Params::builder().words(2).simhash(3).build()?)?;
    /// let mut lines = Vec::new();
    /// let index = Index::options().progress(|read, all| lines.push(format!("{read} of {all} bytes"))).open(&path)?;
    /// assert!(lines.is_empty(), "it was opened in less than a second");
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn progress<'b>(self, progress: impl FnMut(u64, u64) + 'b) -> OpenOptions<'b>
    where
        'a: 'b,
    {
        OpenOptions { progress: Some(Box::new(progress)), ..self }
    }

    /// Opens an index; never creates one.
    ///
    /// # Errors
    /// Same as [`Index::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Index> {
        self.open_with(Arc::new(RealVfs), path.as_ref())
    }

    /// Like [`open`](Self::open), but uses the file system `vfs`.
    ///
    /// # Errors
    /// Same as [`Index::open`].
    pub fn open_with(mut self, vfs: Arc<dyn Vfs>, path: &Path) -> Result<Index> {
        // An empty path, or a relative one without a current directory, is used unchanged. Opening it then fails with
        // an error that states the reason.
        let dir = vfs.absolute(path).unwrap_or_else(|_| path.to_owned());
        let path = dir.as_path();
        span!("open", path = %path.display());
        let progress = self.progress.as_deref_mut();
        let progress = progress.map(|progress| progress as &mut dyn FnMut(u64, u64));
        let state = match self.generation {
            None => State::load_with_progress(&*vfs, path, self.access, progress)?,
            Some(generation) => State::load_at(&*vfs, path, self.access, generation, progress)?,
        };
        let shared = SharedIndex {
            vfs,
            dir,
            access: self.access,
            published: RwLock::new(Arc::new(state)),
            idf: OnceLock::new(),
            writing: AtomicBool::new(false),
            refreshing: Mutex::new(()),
            pinned: self.generation.is_some(),
            counters: MetricCounters::default(),
        };
        Ok(Index { shared: Arc::new(shared) })
    }
}

impl Index {
    /// Creates an empty index in a new directory and opens it. Creation is atomic: the directory gets its final name
    /// only when it is complete.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the path exists and is not an empty directory; [`Error::Io`]; [`Error::Invalid`] for
    /// parameters that weight shingles by an IDF table (use [`create_with_idf`](Self::create_with_idf)), and for parameters
    /// whose shingling this build does not support (see [`Cutter::new`]).
    pub fn create(path: impl AsRef<Path>, params: Params) -> Result<Self> {
        Self::create_with(Arc::new(RealVfs), path.as_ref(), params)
    }

    /// Opens the index at this path, or creates it if the path does not exist or is an empty directory. Several processes
    /// may call this at the same time: one of them creates the index, and the others open it.
    ///
    /// ```
    /// use twindex::{Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("pages.twx");
    /// for _ in 0..2 {
    ///     let index = Index::open_or_create(&path, Params::builder().words(2).simhash(3).build()?)?;
    ///     assert_eq!(index.snapshot().documents(), 0);
    /// }
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] if an index with other parameters exists; the error names the first parameter that
    /// differs. Otherwise the same as [`create`](Self::create) and [`open`](Self::open).
    pub fn open_or_create(path: impl AsRef<Path>, params: Params) -> Result<Self> {
        Self::open_or_create_from(Arc::new(RealVfs), path.as_ref(), params, None)
    }

    /// Like [`open_or_create`](Self::open_or_create), but uses the file system `vfs`.
    ///
    /// # Errors
    /// Same as [`open_or_create`](Self::open_or_create).
    pub fn open_or_create_with(vfs: Arc<dyn Vfs>, path: &Path, params: Params) -> Result<Self> {
        Self::open_or_create_from(vfs, path, params, None)
    }

    /// Like [`open_or_create`](Self::open_or_create), for parameters that weight shingles by the IDF table `table`.
    ///
    /// # Errors
    /// Same as [`open_or_create`](Self::open_or_create) and [`create_with_idf`](Self::create_with_idf).
    pub fn open_or_create_with_idf(path: impl AsRef<Path>, params: Params, table: &IdfTable) -> Result<Self> {
        Self::open_or_create_from(Arc::new(RealVfs), path.as_ref(), params, Some(table))
    }

    #[allow(clippy::needless_pass_by_value, reason = "like the other functions that create an index")]
    fn open_or_create_from(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        params: Params,
        table: Option<&IdfTable>,
    ) -> Result<Self> {
        match Self::create_from(Arc::clone(&vfs), path, params.clone(), table) {
            Err(Error::AlreadyExists { .. }) => {}
            created => return created,
        }
        let index = Self::open_with(vfs, path)?;
        let known = index.params();
        if known == params {
            return Ok(index);
        }
        let (known, given) = (known.fields(), params.fields());
        let differs = (known.iter().find(|field| !given.contains(field)))
            .or(given.iter().find(|field| !known.contains(field)));
        let field = differs.map_or("", |(name, _)| name);
        let value = |fields: &[(&str, String)]| {
            let value = fields.iter().find(|(name, _)| *name == field);
            value.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
        };
        Err(Error::ParamsMismatch { field: field.to_owned(), index: value(&known), given: value(&given) })
    }

    /// Like [`create`](Self::create), but uses the file system `vfs`.
    ///
    /// # Errors
    /// Same as [`create`](Self::create).
    pub fn create_with(vfs: Arc<dyn Vfs>, path: &Path, params: Params) -> Result<Self> {
        Self::create_from(vfs, path, params, None)
    }

    /// Like [`create`](Self::create), for parameters that weight shingles by the IDF table `table`. The index stores a copy
    /// of the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters name another table, or if the table was computed with other shingling
    /// parameters; otherwise the same as [`create`](Self::create).
    pub fn create_with_idf(path: impl AsRef<Path>, params: Params, table: &IdfTable) -> Result<Self> {
        Self::create_from(Arc::new(RealVfs), path.as_ref(), params, Some(table))
    }

    /// Creates an index on the file system `vfs`. `table` is the IDF table that the parameters name; `None` if they name
    /// none.
    ///
    /// # Errors
    /// Same as [`create`](Self::create) and [`create_with_idf`](Self::create_with_idf).
    pub fn create_from(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        params: Params,
        table: Option<&IdfTable>,
    ) -> Result<Self> {
        params.check()?;
        Cutter::new(&params.shingling)?;
        match table {
            Some(table) => table.check(&params.sketch())?,
            None => {
                if let Some(digest) = idf::named_by(&params) {
                    return Err(Error::Invalid(format!(
                        "these parameters need the idf table {digest:032x}: create the index with it"
                    )));
                }
            }
        }
        directory::check_free(&*vfs, path)?;
        directory::make(&*vfs, path, |dir| {
            if let Some(table) = table {
                idf::publish(&*vfs, dir, &names::idf(dir, table.digest()), table, false)?;
            }
            directory::new_manifest(path, params)
        })?;
        Self::open_with(vfs, path)
    }

    /// Opens an index; never creates one.
    ///
    /// Reads `CURRENT` and the manifest, and of each segment the header, the table of contents and the checksums. The
    /// rest of a segment is mapped. To read segments without mapping them, see [`options`](Self::options).
    ///
    /// # Errors
    /// [`Error::NotAnIndex`], [`Error::Unsupported`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Like [`open`](Self::open), but uses the file system `vfs`.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn open_with(vfs: Arc<dyn Vfs>, path: &Path) -> Result<Self> {
        Self::options().open_with(vfs, path)
    }

    /// Returns the default options for opening an index.
    pub fn options() -> OpenOptions<'static> {
        OpenOptions::default()
    }

    /// Returns the method of reading segment files.
    #[must_use]
    pub fn access(&self) -> Access {
        self.shared.access
    }

    /// Returns the directory of the index.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.dir
    }

    /// Returns the parameters of the index. They determine its data and are fixed at creation.
    #[must_use]
    pub fn params(&self) -> Params {
        self.shared.published.read().manifest.params.clone()
    }

    /// Returns a sketcher with the parameters of the index. If the parameters name an IDF table, the sketcher uses the
    /// table that the index stores.
    ///
    /// # Errors
    /// Same as [`Sketcher::new`] and [`idf`](Self::idf). Even after an error the index can be read, and queried with
    /// existing sketches.
    pub fn sketcher(&self) -> Result<Sketcher> {
        let params = self.params();
        match self.idf()? {
            Some(table) => Ok(Sketcher::with_idf(&params, table)?),
            None => Ok(Sketcher::new(&params)?),
        }
    }

    /// Returns the IDF table that weights shingles; `None` if the parameters name no table. The first call reads and
    /// checks the table. Opening the index and querying it with sketches do not need the table.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the table is missing or damaged, [`Error::Io`].
    pub fn idf(&self) -> Result<Option<Arc<IdfTable>>> {
        if let Some(table) = self.shared.idf.get() {
            return Ok(Some(Arc::clone(table)));
        }
        let table = idf::of_index(&*self.shared.vfs, &self.shared.dir, &self.params())?;
        Ok(table.map(|table| Arc::clone(self.shared.idf.get_or_init(|| table))))
    }

    /// Returns a snapshot of the current state, which later commits do not change. The snapshot keeps its files open
    /// until it is dropped.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.shared.published.read()))
    }

    /// Makes commits of other processes visible to later snapshots. Returns whether there were new commits. If a copy of the
    /// same index was restored in the directory, later snapshots show the commits of this copy, and the result is true.
    ///
    /// # Errors
    /// Same as [`open`](Self::open); [`Error::NotAnIndex`] if another index has taken the place of this one. After an error
    /// the index is unchanged.
    pub fn refresh(&self) -> Result<bool> {
        self.shared.refresh()
    }

    /// Waits until the last commit is another one than `since`, as returned by
    /// [`Snapshot::generation`](Snapshot::generation), and makes it visible as [`refresh`](Self::refresh) does. Returns
    /// false if `timeout` has passed without one. A flush or a merge of segments also counts as a commit.
    ///
    /// The commit can be one of another process, or of another thread of this one. On Linux, the file system reports changes
    /// of the directory (inotify), and the directory is also checked once a second, because a network file system reports
    /// no changes of other machines. Other systems check the directory every 50 ms. If this process has the writer, its
    /// memory is checked every 5 ms, because a commit of [`Durability::None`](super::Durability::None) changes no file.
    ///
    /// ```
    /// use std::time::Duration;
    /// use twindex::{Fingerprint, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.twx");
    /// # Index::create(&path, Params::builder().simhash(3).build()?)?;
    /// let reader = Index::open(&path)?; // usually in another process
    /// let seen = reader.snapshot().generation();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         let mut writer = Index::open(&path)?.writer()?;
    ///         writer.put("a", Fingerprint(1))?;
    ///         writer.commit()
    ///     });
    ///     reader.wait(seen, Duration::from_secs(60))
    /// })?;
    /// assert_eq!(reader.snapshot().documents(), 1);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`refresh`](Self::refresh); [`Error::Invalid`] for an index opened
    /// [at a generation](OpenOptions::at_generation), which never changes; [`Error::Io`].
    pub fn wait(&self, since: u64, timeout: Duration) -> Result<bool> {
        let shared = &self.shared;
        if shared.pinned {
            let dir = shared.dir.display();
            return Err(Error::Invalid(format!(
                "{dir}: opened at a generation of choice, after which none comes"
            )));
        }
        let start = Instant::now();
        // Watches the directory before the first look at it, so that no later commit is missed.
        let mut watch = shared.vfs.watch(&shared.dir);
        loop {
            self.refresh()?;
            if self.snapshot().generation() != since {
                return Ok(true);
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            if shared.writing.load(Ordering::Acquire) {
                pause(left.min(LOOKED));
            } else {
                watch.wait(left).map_err(|e| Error::io("watch", &shared.dir, e))?;
            }
        }
    }

    /// Acquires the writer lock, removes the files that a crashed writer left, and returns a writer with the default
    /// options.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer exists, in this process or another one; otherwise the same as
    /// [`open`](Self::open).
    pub fn writer(&self) -> Result<Writer> {
        self.writer_with(WriterOptions::default())
    }

    /// Like [`writer`](Self::writer), with these options.
    ///
    /// # Errors
    /// Same as [`writer`](Self::writer); [`Error::Invalid`] if the index does not store the data that
    /// [`WriterOptions::near`] requires.
    pub fn writer_with(&self, options: WriterOptions) -> Result<Writer> {
        if self.shared.pinned {
            return Err(Error::Invalid(format!(
                "{}: opened at a generation of choice, which can be read only; copy it, and write to the copy",
                self.shared.dir.display()
            )));
        }
        Writer::new(&self.shared, options)
    }

    /// Returns statistics about the index, and about the work done through this handle and its clones. Reads the page
    /// bitmap of each segment, which takes a few microseconds.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let state = Arc::clone(&self.shared.published.read());
        self.shared.counters.of(&state)
    }

    /// Reads and checks every byte of all files of the newest generation, as [`verify_with`] does, with the access mode
    /// of this index. Takes as long as reading all files, and changes nothing. After a problem in one file, the other
    /// files are still checked.
    #[must_use]
    pub fn verify(&self) -> Findings {
        verify_with(&*self.shared.vfs, &self.shared.dir, self.shared.access, |_| {})
    }

    /// Opens a temporary writer and removes the files that the index does not need, as [`Writer::gc`] does. Returns the
    /// number of bytes removed.
    ///
    /// # Errors
    /// Same as [`writer`](Self::writer).
    pub fn gc(&self) -> Result<u64> {
        self.writer()?.gc()
    }

    /// Merges all segments into one by a temporary writer, as [`Writer::compact`] does. Returns the new generation.
    ///
    /// # Errors
    /// Same as [`writer`](Self::writer) and [`Writer::compact`].
    pub fn compact(&self) -> Result<u64> {
        self.writer()?.compact()
    }
}
