//! Adds the documents of finished segments to the batch.
use std::path::Path;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::Writer;
use crate::error::Result;
use crate::format::manifest::SegmentEntry;
use crate::key::Key;
use crate::segment::Segment;
use crate::store::finished::{check_params, link_or_copy};

impl Writer {
    /// Adds the documents of finished segments to the batch, as if each were [`put`](Self::put), one segment after the
    /// other. A document with a key that exists is replaced. The files are linked, or copied if the file system does not
    /// support links, so that nothing is built again; the originals are kept, and must not be changed. Returns the number
    /// of documents in the segments.
    ///
    /// Each segment must be that of an index that was written in a single batch, as for [`Index::adopt`]. All pages of the
    /// files are read and compared with their checksums, and each key is looked up in the segments of this index:
    /// O(documents x segments x log n). [`commit`](Self::commit) makes the documents visible with the rest of the batch.
    ///
    /// ```
    /// use twindex::{Fingerprint, Index, Params, WriterOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().u64_keys().simhash(3).build()?;
    /// let part = Index::create(dir.path().join("part"), params.clone())?; // usually on another machine
    /// let mut writer = part.writer_with(WriterOptions::default().logged(false))?;
    /// writer.put_fingerprints(&[1, 2], &[10, 20])?;
    /// writer.commit()?;
    /// let part = part.snapshot();
    /// let segments: Vec<_> = part.segments().map(|(segment, _)| segment.path()).collect();
    ///
    /// let index = Index::create(dir.path().join("index"), params)?;
    /// let mut writer = index.writer()?;
    /// writer.put(2, Fingerprint(2))?;
    /// writer.put(3, Fingerprint(3))?;
    /// assert_eq!(writer.ingest(&segments)?, 2);
    /// writer.commit()?;
    /// let snapshot = index.snapshot();
    /// assert_eq!((snapshot.documents(), snapshot.get(2)?.unwrap().fingerprint), (3, Some(Fingerprint(20))));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for a segment with other parameters, and [`Error::Corrupt`] for a damaged one; both name
    /// the file, and nothing is added. [`Error::Invalid`] if the documents of the index expire, because the segments do not
    /// store its time. [`Error::Limit`]; [`Error::Io`]. If a file cannot be linked, the writer is poisoned.
    ///
    /// [`Index::adopt`]: crate::Index::adopt
    /// [`Error::ParamsMismatch`]: crate::Error::ParamsMismatch
    /// [`Error::Corrupt`]: crate::Error::Corrupt
    /// [`Error::Invalid`]: crate::Error::Invalid
    /// [`Error::Limit`]: crate::Error::Limit
    /// [`Error::Io`]: crate::Error::Io
    pub fn ingest<P: AsRef<Path>>(&mut self, segments: &[P]) -> Result<u64> {
        self.check_process()?;
        self.check_sound()?;
        let (vfs, access) = (&*self.shared.vfs, self.shared.access);
        let open = |path: &P| {
            let segment = Segment::open_with(vfs, path.as_ref(), access)?;
            check_params(&self.params, &segment)?;
            // guard: a damaged segment is not ingested
            segment.check_pages()?;
            segment.check_map()?;
            Ok(segment)
        };
        let opened: Vec<Segment> = segments.iter().map(open).collect::<Result<_>>()?;
        self.smallest.clear(); // the documents can be nearer than those that earlier lookups found
        for segment in opened.iter().filter(|segment| segment.documents() > 0) {
            self.guarded(|writer| writer.ingest_one(segment))?;
        }
        Ok(opened.iter().map(Segment::documents).sum())
    }

    fn ingest_one(&mut self, segment: &Segment) -> Result<()> {
        // Collected documents precede those of the segment.
        self.flush_records()?;
        let mut done = Ok(());
        segment.for_each_key(|_, key| {
            if done.is_ok() {
                done = self.forget_everywhere(key);
            }
        })?;
        done?;
        segment.check_map()?;
        self.view.count();
        let entry = SegmentEntry {
            number: self.take_number()?,
            length: segment.length(),
            digest: segment.digest(),
            salt: segment.salt(),
            documents: segment.documents(),
            deleted: RoaringBitmap::new(),
        };
        let (vfs, from) = (Arc::clone(&self.shared.vfs), segment.path());
        self.add_file(entry, |path| link_or_copy(&*vfs, from, path))
    }

    /// Removes the document with this key from the batch, from the memtables and from all segments.
    fn forget_everywhere(&mut self, key: Key<'_>) -> Result<()> {
        let is_in_table = {
            let rows = self.view.table.read();
            rows.find(key, rows.len()).is_some_and(|row| rows.is_live(row, rows.len()))
        };
        if is_in_table {
            self.view.table.write().delete(key)?;
            self.batch.delete(key);
        }
        self.view.forget(key).map(drop)
    }
}
