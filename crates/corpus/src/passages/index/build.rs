//! Builds a part in bounded memory: writes the data of documents to scratch files, and sorts postings externally.

use std::path::{Path, PathBuf};

use twindex::extsort::Sorter;
use twindex::sys::vfs::TemporaryFile;
use twindex::sys::{RealVfs, Spill, Vfs};
use twindex::{Error, Result};

use crate::passages::find::finder::{FinderScratch, Shape};
use crate::passages::find::hashed::Hashed;
use crate::passages::index::format::{
    BLOCK, FINGERPRINT_BITS, HEADER_BYTES, IndexSection, POSTINGS, PartEntry, PartHeader, SECTIONS, checksum,
    put, zigzag,
};

/// The data that an index stores about a document. Extracts of several documents can be computed in parallel.
#[derive(Clone, Debug, Default)]
pub struct Extract {
    hashes: Vec<u8>,
    places: Vec<u8>,
    selected: Vec<(u64, u32)>,
}

impl Extract {
    /// Computes the extract of a document.
    #[must_use]
    pub fn of(hashed: &Hashed, work: &mut FinderScratch) -> Self {
        let mut extract = Self::default();
        let mut end = 0_i64;
        for unit in 0..hashed.len() {
            extract.hashes.extend_from_slice(&work.unit_hash(hashed, unit).to_le_bytes());
            let place = hashed.place(unit, 1);
            put(zigzag(i64::from(place.start) - end), &mut extract.places);
            put(u64::from(place.end - place.start), &mut extract.places);
            end = place.end.into();
        }
        work.for_each_selected(hashed, |at, fingerprint| extract.selected.push((fingerprint, at as u32)));
        extract
    }
}

/// Builds one part from extracts.
#[derive(Debug)]
pub struct Builder {
    folder: PathBuf,
    shape: Shape,
    seed: u64,
    documents: u64,
    units: u64,
    spills: [Spill; 6],
    postings: Sorter<u128>,
}

/// The sections that are written to scratch files, in file order.
const SPILLED: [IndexSection; 6] = [
    IndexSection::Keys,
    IndexSection::KeyEnds,
    IndexSection::UnitEnds,
    IndexSection::Hashes,
    IndexSection::PlaceEnds,
    IndexSection::Places,
];

impl Builder {
    /// Creates an empty builder. It sorts in up to `memory` bytes, and writes scratch files in `folder`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a scratch file cannot be created.
    pub fn new(folder: &Path, memory: usize, shape: Shape, seed: u64) -> Result<Self> {
        let spill =
            || Spill::create(folder).map_err(|error| Error::io("create a scratch file in", folder, error));
        Ok(Self {
            folder: folder.to_owned(),
            shape,
            seed,
            documents: 0,
            units: 0,
            spills: [spill()?, spill()?, spill()?, spill()?, spill()?, spill()?],
            postings: Sorter::new(folder, memory),
        })
    }

    /// Adds the next document.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from a scratch file; [`Error::Limit`] for more than 2^32 - 1 documents.
    pub fn push(&mut self, key: &[u8], extract: &Extract) -> Result<()> {
        let document = self.push_bytes(key, &extract.hashes, &extract.places)?;
        extract.selected.iter().try_for_each(|&(fingerprint, at)| {
            self.push_posting(fingerprint >> (64 - FINGERPRINT_BITS), document, at)
        })
    }

    /// Adds a posting. `stored` are the upper [`FINGERPRINT_BITS`] bits of the fingerprint, `at` is the position.
    pub(crate) fn push_posting(&mut self, stored: u64, document: u32, at: u32) -> Result<()> {
        self.postings.push(u128::from(stored) << 64 | u128::from(document) << 32 | u128::from(at))
    }

    /// Adds the next document without its postings, and returns its number.
    pub(crate) fn push_bytes(&mut self, key: &[u8], hashes: &[u8], places: &[u8]) -> Result<u32> {
        let Some(document) = u32::try_from(self.documents).ok().filter(|&number| number < u32::MAX) else {
            let limit = u64::from(u32::MAX);
            return Err(Error::Limit { what: "documents of a part", limit, found: self.documents + 1 });
        };
        self.documents += 1;
        self.units += (hashes.len() / 4) as u64;
        let units = self.units;
        let mut append = |number: usize, bytes: &[u8]| {
            let spill = &mut self.spills[number];
            spill.append(bytes).map_err(|error| Error::io("write a scratch file in", &self.folder, error))?;
            Ok::<u64, Error>(spill.len())
        };
        let keys = append(0, key)?;
        append(1, &keys.to_le_bytes())?;
        append(2, &units.to_le_bytes())?;
        append(3, hashes)?;
        let places = append(5, places)?;
        append(4, &places.to_le_bytes())?;
        Ok(document)
    }

    /// Sorts all postings and returns the complete part. The scratch folder may be removed afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] from a scratch file.
    pub fn finish(self) -> Result<BuiltPart> {
        let Self { folder, shape, seed, documents, units, spills, postings } = self;
        let sorted = postings.finish()?;
        let scratch = |op: &'static str| {
            let folder = &folder;
            move |error| Error::io(op, folder, error)
        };
        // Encodes the postings first, because the header contains the lengths of all sections.
        let create = || Spill::create(&folder).map_err(scratch("create a scratch file in"));
        let (mut postings, mut fence) = (create()?, create()?);
        let (mut count, mut bytes, mut last) = (0_u64, Vec::new(), None::<(u64, u32, u32)>);
        sorted.for_each(|posting: u128| {
            let (fingerprint, document, position) =
                ((posting >> 64) as u64, (posting >> 32) as u32, posting as u32);
            bytes.clear();
            if count.is_multiple_of(POSTINGS as u64) {
                let entry = [fingerprint.to_le_bytes(), postings.len().to_le_bytes()].concat();
                fence.append(&entry).map_err(scratch("write a scratch file in"))?;
                last = None;
            }
            count += 1;
            match last {
                Some((before, earlier, at)) if before == fingerprint => {
                    put(0, &mut bytes);
                    put((document - earlier).into(), &mut bytes);
                    put((if document == earlier { position - at } else { position }).into(), &mut bytes);
                }
                before => {
                    put(before.map_or(0, |(before, ..)| fingerprint - before), &mut bytes);
                    put(document.into(), &mut bytes);
                    put(position.into(), &mut bytes);
                }
            }
            last = Some((fingerprint, document, position));
            postings.append(&bytes).map_err(scratch("write a scratch file in"))?;
            Ok::<_, Error>(())
        })?;
        drop(sorted);
        Ok(BuiltPart { folder, shape, seed, documents, units, count, spills, postings, fence })
    }
}

/// A complete part that has not been added to an index yet.
#[derive(Debug)]
pub struct BuiltPart {
    /// The scratch folder, which error messages name.
    folder: PathBuf,
    shape: Shape,
    seed: u64,
    documents: u64,
    units: u64,
    /// Number of postings.
    count: u64,
    spills: [Spill; 6],
    postings: Spill,
    fence: Spill,
}

impl BuiltPart {
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Writes the part to `path`, which must not exist, and syncs the file. The caller syncs the folder.
    pub(crate) fn write(self, path: &Path, number: u64, settings: &str) -> Result<PartEntry> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let Self { folder, shape, seed, documents, units, count, spills, postings, fence } = self;
        let scratch = |op: &'static str| {
            let folder = &folder;
            move |error| Error::io(op, folder, error)
        };
        let mut header = PartHeader {
            widths: (shape.width() as u32, shape.fingerprint_width() as u32),
            seed,
            documents,
            units,
            postings: count,
            ends: [0; SECTIONS],
        };
        let mut end = HEADER_BYTES as u64 + settings.len() as u64;
        header.ends[IndexSection::Settings as usize] = end;
        let sections: Vec<(IndexSection, &Spill)> = SPILLED
            .into_iter()
            .zip(&spills)
            .chain([(IndexSection::Postings, &postings), (IndexSection::Fence, &fence)])
            .collect();
        for (section, spill) in &sections {
            end += spill.len();
            header.ends[*section as usize] = end;
        }
        header.ends[IndexSection::Checksums as usize] = end + 8 * end.div_ceil(BLOCK as u64);
        let file =
            RealVfs.create_temporary(dir).map_err(|error| Error::io("create a file in", dir, error))?;
        let mut out = ChecksummedFile { file, path, block: Vec::with_capacity(BLOCK), sums: Vec::new() };
        let head = header.to_bytes();
        out.append(&head)?;
        out.append(settings.as_bytes())?;
        let mut some = vec![0; 1 << 18];
        for (_, spill) in sections {
            let mut at = 0;
            while at < spill.len() {
                let length = (some.len() as u64).min(spill.len() - at) as usize;
                let read = spill.read_exact_at(&mut some[..length], at);
                read.map_err(scratch("read a scratch file in"))?;
                out.append(&some[..length])?;
                at += length as u64;
            }
        }
        out.finish()?;
        let sum = u64::from_le_bytes(*head.last_chunk().unwrap_or(&[0; 8]));
        Ok(PartEntry {
            number,
            bytes: header.ends[SECTIONS - 1],
            documents,
            header: sum,
            deletions: 0,
            deleted: 0,
        })
    }
}

/// A writer that computes an 8-byte checksum for each block of 16 KiB and appends the checksums to the file.
struct ChecksummedFile<'p> {
    file: Box<dyn TemporaryFile>,
    path: &'p Path,
    block: Vec<u8>,
    sums: Vec<u8>,
}

impl ChecksummedFile<'_> {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        self.sums.extend_from_slice(&checksum(&self.block).to_le_bytes());
        self.file.append(&self.block).map_err(|error| Error::io("write", self.path, error))?;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let path = self.path;
        self.file.append(&self.sums).map_err(|error| Error::io("write", path, error))?;
        self.file.sync().map_err(|error| Error::io("sync", path, error))?;
        self.file.publish(path, false).map_err(|error| Error::io("give its name to", path, error))
    }
}
