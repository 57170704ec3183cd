//! A disk in memory that records all operations, and computes the states that a crash can leave.
//!
//! Every file and directory is an inode. The journal records each write, each change of a name and each sync, in order. A
//! crash after the first `i` events keeps everything that was synced. Which unsynced events it keeps depends on the
//! variant:
//!
//! - *ordered*: changes of names are kept in order, up to some point. Of the unsynced bytes of a file, a crash keeps all,
//!   none, the first half, or only the length, with zeros as content. Journaling file systems behave like this.
//! - *weak*: a crash keeps any subset of the unsynced changes of names, and any subset of the unsynced sectors of each
//!   file. A file system that gives only the minimal guarantees may behave like this.
//!
//! If there are few subsets, the model tries all of them; otherwise a generator with a fixed seed draws some. A sync can
//! be omitted ([`ModelVfs::without_sync`]): it reports success but makes nothing durable. A write or a change of a name
//! can be done wrongly, although it is reported and synced as done ([`Misdone`]).

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::slice::SliceIndex;
use std::sync::{Arc, Mutex, OnceLock};

use twindex::sys::lock::{HeldLock, LockFailure};
use twindex::sys::vfs::{AppendFile, Bytes, FileStamp, ReadFile, TEMPORARY_PREFIX, TemporaryFile, Vfs};

use super::random::Random;

/// Number of bytes that are written atomically.
const SECTOR: usize = 512;
/// Maximum number of elements for which all subsets are tried. For more elements, some subsets are drawn.
const EXHAUSTIVE: usize = 6;
/// Number of subsets that are drawn if there are more than `EXHAUSTIVE` elements.
const DRAWN: usize = 24;
/// Maximum number of crash states after one event of the journal.
const STATES_OF_A_POINT: usize = 160;

/// Returns the factor by which `TWINDEX_CRASHES` multiplies the number of tested states; 1 by default.
pub fn thoroughness() -> usize {
    static TIMES: OnceLock<usize> = OnceLock::new();
    *TIMES.get_or_init(|| {
        let given = std::env::var("TWINDEX_CRASHES").ok();
        given.map_or(1, |given| given.parse().expect("TWINDEX_CRASHES is a number"))
    })
}

type Inode = usize;
type DirectoryEntries = BTreeMap<OsString, Inode>;
/// Writes to a file, in order: the offset and the bytes of each.
type Writes = Vec<(usize, Arc<Vec<u8>>)>;

#[derive(Clone, Debug)]
enum Node {
    File(Arc<Vec<u8>>),
    Dir(DirectoryEntries),
}

/// The content of a disk. Inode 0 is the root directory.
#[derive(Clone, Debug)]
pub struct Disk {
    nodes: Vec<Node>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { nodes: vec![Node::Dir(DirectoryEntries::new())] }
    }
}

impl Disk {
    fn names(&self, dir: Inode) -> io::Result<&DirectoryEntries> {
        match &self.nodes[dir] {
            Node::Dir(names) => Ok(names),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn names_mut(&mut self, dir: Inode) -> &mut DirectoryEntries {
        match &mut self.nodes[dir] {
            Node::Dir(names) => names,
            Node::File(_) => unreachable!("only directories are asked"),
        }
    }

    fn find(&self, path: &Path) -> io::Result<Inode> {
        let mut inode = 0;
        for component in path.components() {
            if let Component::Normal(name) = component {
                inode = *self.names(inode)?.get(name).ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(inode)
    }

    /// Returns the parent directory and the file name of a path, which need not exist.
    fn place(&self, path: &Path) -> io::Result<(Inode, OsString)> {
        let dir = self.find(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        self.names(dir)?;
        Ok((dir, path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned()))
    }

    fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        let Node::File(content) = &mut self.nodes[inode] else { unreachable!("files are written") };
        let content = Arc::make_mut(content);
        content.resize(content.len().max(offset + bytes.len()), 0);
        content[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn redo(&mut self, event: &Event, misdone: Option<&Misdone>) {
        match (event, misdone) {
            (Event::Made(_, node), _) => self.nodes.push(node.clone()),
            (Event::Wrote { inode, offset, bytes }, None) => self.write(*inode, *offset, bytes),
            (Event::Wrote { inode, offset, bytes }, Some(Misdone { bytes: wrong, fate, .. })) => {
                let mut rest = bytes.to_vec();
                rest[wrong.clone()].fill(0);
                if matches!(fate, Fate::LostWithLength) {
                    rest.truncate(wrong.start);
                }
                self.write(*inode, *offset, &rest);
                if let Fate::Misdirected(inode, offset) = *fate {
                    self.write(inode, offset, &bytes[wrong.clone()]);
                }
            }
            (Event::Named { .. } | Event::Unnamed { .. }, None) => apply(self, std::slice::from_ref(event)),
            _ => {}
        }
    }

    /// Returns a copy that contains only files and directories with a name.
    fn named(&self) -> Self {
        fn copy(disk: &Disk, inode: Inode, copied: &mut BTreeMap<Inode, Inode>, to: &mut Disk) -> Inode {
            if let Some(&known) = copied.get(&inode) {
                return known;
            }
            let place = to.nodes.len();
            copied.insert(inode, place);
            to.nodes.push(disk.nodes[inode].clone());
            if let Node::Dir(names) = &disk.nodes[inode] {
                let copies = names.iter().map(|(name, &inode)| (name.clone(), copy(disk, inode, copied, to)));
                let copies = copies.collect();
                to.nodes[place] = Node::Dir(copies);
            }
            place
        }
        let mut named = Self { nodes: Vec::new() };
        copy(self, 0, &mut BTreeMap::new(), &mut named);
        named
    }

    /// Returns a hash of all named files and directories. States with the same hash are considered equal.
    fn identity(&self) -> u64 {
        fn add(disk: &Disk, inode: Inode, hasher: &mut DefaultHasher) {
            match &disk.nodes[inode] {
                Node::File(bytes) => (0, bytes).hash(hasher),
                Node::Dir(names) => {
                    (1, names.len()).hash(hasher);
                    for (name, &inode) in names {
                        // Ignores temporary names, because they are random.
                        if !name.to_string_lossy().starts_with(TEMPORARY_PREFIX) {
                            name.hash(hasher);
                        }
                        add(disk, inode, hasher);
                    }
                }
            }
        }
        let mut hasher = DefaultHasher::new();
        add(self, 0, &mut hasher);
        hasher.finish()
    }
}

/// An event of the journal.
#[derive(Clone, Debug)]
enum Event {
    Made(Inode, Node),
    Wrote {
        inode: Inode,
        offset: usize,
        bytes: Arc<Vec<u8>>,
    },
    Named {
        dir: Inode,
        name: OsString,
        inode: Inode,
        before: Option<OsString>,
    },
    Unnamed {
        dir: Inode,
        name: OsString,
    },
    SyncedFile(Inode),
    SyncedDir(Inode),
    /// From here on, every crash must keep the state with this number.
    Promised(u64),
}

/// What the disk does with bytes or with a change of a name that it reports as written and synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The bytes remain zeros, the name remains unchanged.
    Lost,
    /// Nor does the file get its new length.
    LostWithLength,
    /// The bytes land at this offset of this file, and remain zeros at their place.
    Misdirected(Inode, usize),
}

/// An event of the journal that the disk reports as done, but does wrongly.
#[derive(Clone, Debug)]
pub struct Misdone {
    pub event: usize,
    /// The bytes of the write that this concerns; empty for a change of a name.
    pub bytes: Range<usize>,
    pub fate: Fate,
}

/// A write or a change of a name.
#[derive(Clone, Debug)]
pub struct Change {
    /// The number of the event in the journal.
    pub event: usize,
    /// The name of the file, the last one that it got.
    pub file: String,
    /// The file, the offset and the number of bytes of a write; `None` for a change of a name.
    pub write: Option<(Inode, usize, usize)>,
    /// The number of times that the file was synced before.
    pub syncs: usize,
    /// The last number that was promised before.
    pub promised: u64,
}

#[derive(Debug, Default)]
struct Inner {
    disk: Disk,
    journal: Vec<Event>,
    syncs: usize,
    left_out: Option<usize>,
    /// The length of the journal at which the process is killed; `None` if it is not.
    killed_at: Option<usize>,
    misdone: Option<Misdone>,
    locks: HashSet<PathBuf>,
    temporaries: usize,
}

impl Inner {
    /// Returns an error if the process was killed; operations then fail before they change the disk.
    fn alive(&self) -> io::Result<()> {
        match self.killed_at {
            Some(at) if self.journal.len() >= at => Err(io::Error::other("the process was killed")),
            _ => Ok(()),
        }
    }

    fn make(&mut self, node: Node) -> Inode {
        self.disk.nodes.push(node.clone());
        let inode = self.disk.nodes.len() - 1;
        self.journal.push(Event::Made(inode, node));
        inode
    }

    /// Changes the disk, wrongly if this event is to be misdone.
    fn change(&mut self, event: Event) {
        let misdone = self.misdone.as_ref().filter(|misdone| misdone.event == self.journal.len());
        self.disk.redo(&event, misdone);
        self.journal.push(event);
    }

    fn name(&mut self, dir: Inode, name: OsString, inode: Inode, before: Option<OsString>) {
        self.change(Event::Named { dir, name, inode, before });
    }

    fn write(&mut self, inode: Inode, bytes: &[u8]) {
        let Node::File(content) = &self.disk.nodes[inode] else { unreachable!("files are written") };
        let offset = content.len();
        self.change(Event::Wrote { inode, offset, bytes: Arc::new(bytes.to_vec()) });
    }

    /// Records a sync, unless it is the one to omit.
    fn sync(&mut self, event: Event) {
        self.syncs += 1;
        if self.left_out != Some(self.syncs) {
            self.journal.push(event);
        }
    }
}

/// A [`Vfs`] of the modelled disk.
#[derive(Clone, Debug, Default)]
pub struct ModelVfs(Arc<Mutex<Inner>>);

/// What a crash does to unsynced events; see the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Ordered,
    Weak,
}

impl ModelVfs {
    /// Creates a disk on which all content is durable.
    pub fn of(disk: Disk) -> Self {
        Self(Arc::new(Mutex::new(Inner { disk, ..Inner::default() })))
    }

    /// Omits the sync with this number, counted from 1.
    pub fn without_sync(self, number: usize) -> Self {
        self.0.lock().unwrap().left_out = Some(number);
        self
    }

    /// Does an event wrongly. The process reads its effect at once, as if it were not in the page cache.
    pub fn misdoing(self, misdone: Misdone) -> Self {
        self.0.lock().unwrap().misdone = Some(misdone);
        self
    }

    /// Returns the disk after all events, one of them misdone. The processes so far have read what they wrote, as from
    /// the page cache.
    pub fn misdone(&self, misdone: &Misdone) -> Disk {
        let mut disk = Disk::default();
        for (number, event) in self.0.lock().unwrap().journal.iter().enumerate() {
            disk.redo(event, Some(misdone).filter(|misdone| misdone.event == number));
        }
        disk.named()
    }

    /// Returns the writes and the changes of names.
    pub fn changes(&self) -> Vec<Change> {
        let inner = self.0.lock().unwrap();
        let mut names: BTreeMap<Inode, String> = BTreeMap::new();
        for event in &inner.journal {
            if let Event::Named { name, inode, .. } = event {
                names.insert(*inode, name.to_string_lossy().into_owned());
            }
        }
        let (mut changes, mut promised) = (Vec::new(), 0);
        let mut syncs: BTreeMap<Inode, usize> = BTreeMap::new();
        for (event, what) in inner.journal.iter().enumerate() {
            let (inode, file, write) = match what {
                Event::Wrote { inode, offset, bytes } => {
                    (*inode, names[inode].clone(), Some((*inode, *offset, bytes.len())))
                }
                Event::Named { dir, name, .. } | Event::Unnamed { dir, name } => {
                    (*dir, name.to_string_lossy().into_owned(), None)
                }
                Event::SyncedFile(inode) => {
                    *syncs.entry(*inode).or_default() += 1;
                    continue;
                }
                Event::Promised(number) => {
                    promised = *number;
                    continue;
                }
                _ => continue,
            };
            let syncs = syncs.get(&inode).copied().unwrap_or(0);
            changes.push(Change { event, file, write, syncs, promised });
        }
        changes
    }

    /// Kills the process at this event: from then on, every operation that would change the disk fails. The next process
    /// finds all earlier changes, synced or not. `None` starts the next process.
    pub fn kill_at(&self, event: Option<usize>) {
        let mut inner = self.0.lock().unwrap();
        inner.killed_at = event;
        inner.locks.clear();
    }

    /// Returns the number of syncs so far, including an omitted one.
    pub fn syncs(&self) -> usize {
        self.0.lock().unwrap().syncs
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> usize {
        self.0.lock().unwrap().journal.len()
    }

    /// Records that every later crash must keep the state that the test calls `number`.
    pub fn promise(&self, number: u64) {
        self.0.lock().unwrap().journal.push(Event::Promised(number));
    }

    /// Returns the current content of the disk.
    pub fn disk(&self) -> Disk {
        self.0.lock().unwrap().disk.clone()
    }

    /// Draws a state that a crash after the first `events` events can leave. The journal begins when the disk equals
    /// `start`.
    pub fn crash(&self, start: &Disk, events: usize, variant: Variant, random: &mut Random) -> Disk {
        let mut durable = Durable::new(start.clone());
        for event in &self.0.lock().unwrap().journal[..events] {
            durable.add(event);
        }
        durable.any_state(variant, random).named()
    }

    /// Computes all distinct states that a crash can leave, if the disk was `start` when the journal began. Calls `each`
    /// with the last promised number, the number of events before the crash, and the disk, until `each` returns false.
    /// Returns the number of states.
    pub fn crashes(
        &self,
        start: &Disk,
        variant: Variant,
        mut each: impl FnMut(u64, usize, Disk) -> bool,
    ) -> usize {
        let journal = self.0.lock().unwrap().journal.clone();
        let mut seen: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut random = Random(variant as u64 + 1);
        let mut durable = Durable::new(start.clone());
        let mut promised = 0;
        for point in 0..=journal.len() {
            if point > 0 {
                match &journal[point - 1] {
                    Event::Promised(number) => promised = *number,
                    event => durable.add(event),
                }
            }
            for disk in durable.states(variant, &mut random) {
                if seen.insert((promised, disk.identity())) && !each(promised, point, disk) {
                    return seen.len();
                }
            }
        }
        seen.len()
    }
}

/// The part of the disk that every crash keeps, and the events that a crash may or may not keep.
struct Durable {
    disk: Disk,
    /// Changes of names since the last sync of their directory, in order.
    names: Vec<Event>,
    /// Writes since the last sync of their file.
    writes: BTreeMap<Inode, Writes>,
}

impl Durable {
    fn new(disk: Disk) -> Self {
        Self { disk, names: Vec::new(), writes: BTreeMap::new() }
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::Made(inode, node) => {
                assert_eq!(*inode, self.disk.nodes.len());
                self.disk.nodes.push(node.clone());
            }
            Event::Wrote { inode, offset, bytes } => {
                self.writes.entry(*inode).or_default().push((*offset, Arc::clone(bytes)));
            }
            Event::Named { .. } | Event::Unnamed { .. } => self.names.push(event.clone()),
            Event::SyncedFile(inode) => {
                if let Some(writes) = self.writes.remove(inode) {
                    let content = whole(&self.disk, *inode, &writes);
                    self.disk.nodes[*inode] = Node::File(Arc::new(content));
                }
            }
            Event::SyncedDir(dir) => {
                let (synced, rest) = std::mem::take(&mut self.names)
                    .into_iter()
                    .partition(|event| matches!(event, Event::Named { dir: of, .. } | Event::Unnamed { dir: of, .. } if of == dir));
                self.names = rest;
                apply(&mut self.disk, &synced);
            }
            Event::Promised(_) => {}
        }
    }

    /// Draws one of the possible states.
    fn any_state(&self, variant: Variant, random: &mut Random) -> Disk {
        let kept: Vec<Event> = match variant {
            Variant::Ordered => self.names[..random.below(self.names.len() + 1)].to_vec(),
            Variant::Weak => self.names.iter().filter(|_| random.next() & 1 == 1).cloned().collect(),
        };
        let mut disk = self.disk.clone();
        apply(&mut disk, &kept);
        let named = reachable(&disk);
        for (&inode, writes) in self.writes.iter().filter(|(inode, _)| named.contains(inode)) {
            let unsynced = Unsynced::new(&self.disk, inode, writes);
            let content = if variant == Variant::Weak && random.next() & 1 == 1 {
                let kept: Vec<bool> = (0..unsynced.sectors()).map(|_| random.next() & 1 == 1).collect();
                let [cut, whole] = unsynced.with_sectors(&kept);
                if random.next() & 1 == 1 { cut } else { whole }
            } else {
                unsynced.in_order()[random.below(4)].clone()
            };
            disk.nodes[inode] = Node::File(Arc::new(content));
        }
        disk
    }

    fn states(&self, variant: Variant, random: &mut Random) -> Vec<Disk> {
        let count = self.names.len();
        let mut choices: Vec<Vec<Event>> = (0..=count).map(|kept| self.names[..kept].to_vec()).collect();
        if variant == Variant::Weak {
            choices.extend(subsets(count, random).map(|kept| {
                kept.iter().zip(&self.names).filter(|(kept, _)| **kept).map(|(_, e)| e.clone()).collect()
            }));
        }
        let mut states = Vec::new();
        for names in choices {
            let mut disk = self.disk.clone();
            apply(&mut disk, &names);
            let named = reachable(&disk);
            let mut disks = vec![disk];
            for (&inode, writes) in self.writes.iter().filter(|(inode, _)| named.contains(inode)) {
                let contents = self.contents(inode, writes, variant, random);
                disks = disks
                    .iter()
                    .flat_map(|disk| {
                        contents.iter().map(|content| {
                            let mut disk = disk.clone();
                            disk.nodes[inode] = Node::File(Arc::clone(content));
                            disk
                        })
                    })
                    .take(STATES_OF_A_POINT * thoroughness())
                    .collect();
            }
            states.append(&mut disks);
        }
        states
    }

    /// Returns the possible contents, after a crash, of a file with unsynced writes.
    fn contents(
        &self,
        inode: Inode,
        writes: &[(usize, Arc<Vec<u8>>)],
        variant: Variant,
        random: &mut Random,
    ) -> Vec<Arc<Vec<u8>>> {
        let unsynced = Unsynced::new(&self.disk, inode, writes);
        let mut contents = unsynced.in_order().to_vec();
        if variant == Variant::Weak {
            for kept in subsets(unsynced.sectors(), random) {
                contents.extend(unsynced.with_sectors(&kept));
            }
        }
        contents.into_iter().map(Arc::new).collect()
    }
}

/// The contents of a file before and after its unsynced writes.
struct Unsynced<'a> {
    synced: &'a [u8],
    full: Vec<u8>,
    /// The synced bytes, and zeros up to the full length.
    zeros: Vec<u8>,
}

impl<'a> Unsynced<'a> {
    fn new(disk: &'a Disk, inode: Inode, writes: &[(usize, Arc<Vec<u8>>)]) -> Self {
        let Node::File(synced) = &disk.nodes[inode] else { unreachable!("files are written") };
        let full = whole(disk, inode, writes);
        let mut zeros = synced.to_vec();
        zeros.resize(full.len(), 0);
        Self { synced, full, zeros }
    }

    /// Returns four contents: only the synced bytes, zeros up to the full length, half of the unsynced bytes, and all
    /// bytes.
    fn in_order(&self) -> [Vec<u8>; 4] {
        let half = self.full[..usize::midpoint(self.synced.len(), self.full.len())].to_vec();
        [self.synced.to_vec(), self.zeros.clone(), half, self.full.clone()]
    }

    /// Returns the number of sectors with unsynced bytes.
    fn sectors(&self) -> usize {
        self.full.len().div_ceil(SECTOR) - self.synced.len() / SECTOR
    }

    /// Returns the contents in which only these unsynced sectors were written: one truncated after the last of them, and
    /// one of full length.
    fn with_sectors(&self, kept: &[bool]) -> [Vec<u8>; 2] {
        let (start, end) = (self.synced.len(), self.full.len());
        let first = start / SECTOR;
        let mut content = self.zeros.clone();
        let mut last = start;
        for (sector, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
            let from = ((first + sector) * SECTOR).max(start);
            let to = ((first + sector + 1) * SECTOR).min(end);
            content[from..to].copy_from_slice(&self.full[from..to]);
            last = to;
        }
        [content[..last].to_vec(), content]
    }
}

fn whole(disk: &Disk, inode: Inode, writes: &[(usize, Arc<Vec<u8>>)]) -> Vec<u8> {
    let Node::File(synced) = &disk.nodes[inode] else { unreachable!("files are written") };
    let mut content = synced.to_vec();
    for (offset, bytes) in writes {
        content.resize(content.len().max(offset + bytes.len()), 0);
        content[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    content
}

fn apply(disk: &mut Disk, changes: &[Event]) {
    for change in changes {
        match change {
            Event::Named { dir, name, inode, before } => {
                let names = disk.names_mut(*dir);
                if let Some(before) = before {
                    names.remove(before);
                }
                names.insert(name.clone(), *inode);
            }
            Event::Unnamed { dir, name } => {
                disk.names_mut(*dir).remove(name);
            }
            _ => unreachable!("a change of names"),
        }
    }
}

fn reachable(disk: &Disk) -> BTreeSet<Inode> {
    let (mut all, mut open) = (BTreeSet::new(), vec![0]);
    while let Some(inode) = open.pop() {
        if let (true, Node::Dir(names)) = (all.insert(inode), &disk.nodes[inode]) {
            open.extend(names.values());
        }
    }
    all
}

/// Returns subsets of `count` elements: all of them, or some if there are too many.
fn subsets(count: usize, random: &mut Random) -> impl Iterator<Item = Vec<bool>> + use<> {
    let sets: Vec<Vec<bool>> = if count <= EXHAUSTIVE {
        (0..1_usize << count).map(|bits| (0..count).map(|i| bits >> i & 1 == 1).collect()).collect()
    } else {
        (0..DRAWN * thoroughness()).map(|_| (0..count).map(|_| random.next() & 1 == 1).collect()).collect()
    };
    sets.into_iter()
}

impl Vfs for ModelVfs {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let (dir, name) = inner.disk.place(path)?;
        if inner.disk.names(dir)?.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = inner.make(Node::Dir(DirectoryEntries::new()));
        inner.name(dir, name, inode, None);
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.0.lock().unwrap().disk.find(path).is_ok())
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let dir = inner.disk.find(dir)?;
        inner.temporaries += 1;
        let name = OsString::from(format!("{TEMPORARY_PREFIX}{}", inner.temporaries));
        let inode = inner.make(Node::File(Arc::default()));
        inner.name(dir, name.clone(), inode, None);
        drop(inner);
        Ok(Box::new(ModelTemporary { vfs: self.clone(), dir, name: Some(name), inode }))
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let (dir, name) = inner.disk.place(path)?;
        if inner.disk.names(dir)?.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = inner.make(Node::File(Arc::default()));
        inner.name(dir, name, inode, None);
        drop(inner);
        Ok(Box::new(ModelLog { vfs: self.clone(), inode }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let inner = self.0.lock().unwrap();
        let inode = inner.disk.find(path)?;
        match &inner.disk.nodes[inode] {
            Node::File(_) => Ok(Box::new(ModelFile { vfs: self.clone(), inode })),
            Node::Dir(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<FileStamp>> {
        let inode = self.0.lock().unwrap().disk.find(path)?;
        ModelFile { vfs: self.clone(), inode }.stamp()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let dir = inner.disk.find(dir)?;
        inner.sync(Event::SyncedDir(dir));
        Ok(())
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let inode = inner.disk.find(from)?;
        let (dir, before) = inner.disk.place(from)?;
        let (to_dir, name) = inner.disk.place(to)?;
        assert_eq!(dir, to_dir, "the model renames inside one directory");
        inner.name(dir, name, inode, Some(before));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.unlink(path)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let (dir, name) = inner.disk.place(path)?;
        if !inner.disk.names(dir)?.contains_key(&name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        inner.change(Event::Unnamed { dir, name });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let inner = self.0.lock().unwrap();
        Ok(inner.disk.names(inner.disk.find(dir)?)?.keys().cloned().collect())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.alive()?;
        let inode = inner.disk.find(from)?;
        let (dir, name) = inner.disk.place(to)?;
        inner.name(dir, name, inode, None);
        Ok(())
    }

    fn scratch(&self, _: &Path) -> PathBuf {
        std::env::temp_dir()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        if !self.0.lock().unwrap().locks.insert(path.to_owned()) {
            return Err(LockFailure::Held(None));
        }
        Ok(Box::new(ModelLock { vfs: self.clone(), path: path.to_owned() }))
    }
}

#[derive(Debug)]
struct ModelLock {
    vfs: ModelVfs,
    path: PathBuf,
}

impl HeldLock for ModelLock {
    fn is_current(&self) -> bool {
        true
    }
}

impl Drop for ModelLock {
    fn drop(&mut self) {
        self.vfs.0.lock().unwrap().locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct ModelTemporary {
    vfs: ModelVfs,
    dir: Inode,
    name: Option<OsString>,
    inode: Inode,
}

impl TemporaryFile for ModelTemporary {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.vfs.0.lock().unwrap();
        inner.alive()?;
        inner.write(self.inode, bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.vfs.0.lock().unwrap();
        inner.alive()?;
        inner.sync(Event::SyncedFile(self.inode));
        Ok(())
    }

    fn publish(mut self: Box<Self>, path: &Path, replace: bool) -> io::Result<()> {
        let mut inner = self.vfs.0.lock().unwrap();
        inner.alive()?;
        let (dir, name) = inner.disk.place(path)?;
        assert_eq!(dir, self.dir, "the model renames inside one directory");
        if !replace && inner.disk.names(dir)?.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        inner.name(dir, name, self.inode, self.name.take());
        Ok(())
    }
}

impl Drop for ModelTemporary {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let mut inner = self.vfs.0.lock().unwrap();
            if inner.alive().is_ok()
                && inner.disk.names(self.dir).is_ok_and(|names| names.contains_key(OsStr::new(&name)))
            {
                inner.change(Event::Unnamed { dir: self.dir, name });
            }
        }
    }
}

#[derive(Debug)]
struct ModelFile {
    vfs: ModelVfs,
    inode: Inode,
}

impl ModelFile {
    /// Returns the current bytes in this range.
    fn bytes(&self, range: impl SliceIndex<[u8], Output = [u8]>) -> io::Result<Vec<u8>> {
        match &self.vfs.0.lock().unwrap().disk.nodes[self.inode] {
            Node::File(bytes) => {
                bytes.get(range).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
            Node::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }
}

impl ReadFile for ModelFile {
    fn len(&self) -> io::Result<u64> {
        match &self.vfs.0.lock().unwrap().disk.nodes[self.inode] {
            Node::File(bytes) => Ok(bytes.len() as u64),
            Node::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn stamp(&self) -> io::Result<Option<FileStamp>> {
        // Files are not changed in place, so the inode and the length identify the content.
        Ok(Some(FileStamp { file: (0, self.inode as u64), length: self.len()?, modified: (0, 0) }))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = offset as usize;
        buffer.copy_from_slice(&self.bytes(start..start + buffer.len())?);
        Ok(())
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        Ok(Bytes::Heap(self.bytes(..len)?))
    }
}

#[derive(Debug)]
struct ModelLog {
    vfs: ModelVfs,
    inode: Inode,
}

impl AppendFile for ModelLog {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.vfs.0.lock().unwrap();
        inner.alive()?;
        inner.write(self.inode, bytes);
        Ok(())
    }

    fn cut(&mut self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into()) // unsupported: no test makes an append fail here
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.vfs.0.lock().unwrap();
        inner.alive()?;
        inner.sync(Event::SyncedFile(self.inode));
        Ok(())
    }
}
