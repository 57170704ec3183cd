//! Builds an index from existing segments without copying them, and opens single segments for queries.
//!
//! A segment depends only on its records and parameters. So any machine can build it, even several times.
//! Only one process has to check the segments and to write the manifest that names them.

use std::path::Path;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::finished::{check_params, link_or_copy};
use super::history::History;
use super::index::Index;
use super::snapshot::Snapshot;
use super::state::State;
use super::{directory, idf, names};
use crate::error::{Error, Result};
use crate::extsort::Merge;
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::key::KeyBuf;
use crate::params::Params;
use crate::segment::Segment;
use crate::segment::keys::LiveKeys;
use crate::sys::{RealVfs, Vfs};
use twindex_sketch::IdfTable;

impl Index {
    /// Creates an index from finished segments, in the given order. The files are linked, or copied if the file system does
    /// not support links; the originals are kept. Creation is atomic: the directory gets its final name when it is complete
    /// and durable. Returns the number of documents.
    ///
    /// No key may be in two segments; this is checked in O(documents) time and O(segments) memory. Each segment must
    /// come from an index that was written in a single batch. Example: each worker builds the index of its shard of the
    /// documents.
    ///
    /// ```
    /// use std::path::PathBuf;
    /// use twindex::{Index, Params, WriterOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().words(2).simhash(3).build()?;
    /// let shard = |name: &str| -> twindex::Result<PathBuf> {
    ///     let index = Index::create(dir.path().join(name), params.clone())?;
    ///     // Each commit writes a segment.
    ///     let mut writer = index.writer_with(WriterOptions::default().logged(false))?;
    ///     writer.put(name, &index.sketcher()?.sketch("a rose is a rose is a rose")?)?;
    ///     writer.commit()?;
    ///     let snapshot = index.snapshot();
    ///     Ok(snapshot.segments().next().map(|(segment, _)| segment.path().to_owned()).unwrap_or_default())
    /// };
    /// let segments = [shard("a")?, shard("b")?];
    /// assert_eq!(Index::adopt(dir.path().join("all"), params.clone(), &segments)?, 2);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the path exists and is not an empty directory; [`Error::ParamsMismatch`] for a segment
    /// with other parameters, and [`Error::Invalid`] for a key in two segments (both errors name the file);
    /// [`Error::Invalid`] for parameters that need an IDF table (use [`adopt_with_idf`](Self::adopt_with_idf));
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn adopt<P: AsRef<Path>>(path: impl AsRef<Path>, params: Params, segments: &[P]) -> Result<u64> {
        Self::adopt_with(&RealVfs, path.as_ref(), params, segments)
    }

    /// Like [`adopt`](Self::adopt), for parameters that weight shingles by the IDF table `table`. The index stores a copy of
    /// the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the parameters name another table; otherwise the same as [`adopt`](Self::adopt).
    pub fn adopt_with_idf<P: AsRef<Path>>(
        path: impl AsRef<Path>,
        params: Params,
        segments: &[P],
        table: &IdfTable,
    ) -> Result<u64> {
        Self::adopt_from(&RealVfs, path.as_ref(), params, segments, Some(table))
    }

    /// Like [`adopt`](Self::adopt), but uses the file system `vfs`.
    ///
    /// # Errors
    /// Same as [`adopt`](Self::adopt).
    pub fn adopt_with<P: AsRef<Path>>(
        vfs: &dyn Vfs,
        path: &Path,
        params: Params,
        segments: &[P],
    ) -> Result<u64> {
        Self::adopt_from(vfs, path, params, segments, None)
    }

    fn adopt_from<P: AsRef<Path>>(
        vfs: &dyn Vfs,
        path: &Path,
        params: Params,
        segments: &[P],
        table: Option<&IdfTable>,
    ) -> Result<u64> {
        params.check()?;
        match (table, idf::named_by(&params)) {
            (Some(table), _) => table.check(&params.sketch())?,
            (None, Some(digest)) => {
                return Err(Error::Invalid(format!(
                    "these parameters need the idf table {digest:032x}: adopt the segments with it"
                )));
            }
            (None, None) => {}
        }
        directory::check_free(vfs, path)?;
        let opened: Vec<Segment> =
            segments.iter().map(|path| Segment::open(vfs, path.as_ref())).collect::<Result<_>>()?;
        for segment in &opened {
            check_params(&params, segment)?;
        }
        check_disjoint(&opened)?;
        let documents = opened.iter().map(Segment::documents).sum();
        directory::make(vfs, path, |dir| {
            if let Some(table) = table {
                idf::publish(vfs, dir, &names::idf(dir, table.digest()), table, false)?;
            }
            let mut entries = Vec::new();
            for (number, segment) in (1..).zip(opened.iter().filter(|segment| segment.documents() > 0)) {
                link_or_copy(vfs, segment.path(), &names::segment(dir, number))?;
                entries.push(SegmentEntry {
                    number,
                    length: segment.length(),
                    digest: segment.digest(),
                    salt: segment.salt(),
                    documents: segment.documents(),
                    deleted: RoaringBitmap::new(),
                });
            }
            let next_segment = entries.len() as u64 + 1;
            Ok(Manifest { next_segment, segments: entries, ..directory::new_manifest(path, params)? })
        })?;
        Ok(documents)
    }
}

/// Returns an error if a key is in two segments.
fn check_disjoint(segments: &[Segment]) -> Result<()> {
    let mut merge =
        Merge::new(segments.iter().map(|segment| LiveKeys::new(segment, None)), |a, b| a.0.cmp(&b.0));
    let mut last: Option<(KeyBuf, usize)> = None;
    while let Some((of, (key, _))) = merge.next()? {
        if let Some((known, other)) = &last
            && known == key
        {
            return Err(Error::Invalid(format!(
                "the key `{}` is in {} and in {}; give each document to one segment",
                key.to_string().escape_debug(),
                segments[*other].path().display(),
                segments[of].path().display()
            )));
        }
        last = Some((key.clone(), of));
    }
    segments.iter().try_for_each(Segment::check_map)
}

impl Snapshot {
    /// Returns a snapshot that contains only the [segment](Self::segments) at this position. Use such snapshots to
    /// distribute a join or a query among workers. Documents that are not in a segment on disk yet are in none of them.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no segment at this position.
    pub fn of_segment(&self, place: usize) -> Result<Self> {
        let state = self.state();
        let entries = &state.manifest.segments;
        let Some(entry) = entries.get(place) else {
            let count = entries.len();
            return Err(Error::Invalid(format!("segment {place}: this index has {count}, counted from 0")));
        };
        let mut manifest = Manifest::clone(&state.manifest);
        manifest.segments = vec![entry.clone()];
        let view = state.view.of_segment(place, &manifest);
        Ok(Self::new(Arc::new(State::new(Arc::new(manifest), view, History::default(), state.sketch_digest))))
    }
}
