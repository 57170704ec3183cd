//! Looks up near documents on any thread, before the writer admits a document.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;
use zerocopy::IntoBytes;

use super::options::{Relation, WriterOptions};
use crate::error::Result;
use crate::format::prefixes::Marks;
use crate::segment::Segment;
use crate::segment::records::Kept;
use crate::store::document::Document;
use crate::store::part::IndexPart;
use crate::store::query::{FoundDocument, Omitted};
use crate::store::snapshot::Snapshot;

/// The number of documents that a lookup finds in each segment at least, if there are as many: the document itself, one
/// beyond the limit, and the nearest.
const ENOUGH: usize = 3;

/// The documents of segments near a document, for [`Writer::admit_ahead`](super::Writer::admit_ahead).
///
/// Segments do not change, apart from documents being deleted. So what was found in one stays true as long as none of it
/// is deleted.
#[derive(Debug, Default)]
pub struct Lookahead {
    /// The hash of the document's content, and the rule by which documents were compared; `None` if nothing was looked up.
    of: Option<(u128, Relation)>,
    segments: Vec<(Arc<Segment>, FoundAhead)>,
}

/// What was found in a segment.
#[derive(Debug)]
struct FoundAhead {
    unmarked: Vec<FoundDocument>,
    /// Whether a marked document may be near. Not known if unmarked ones are.
    has_marked: bool,
}

impl Lookahead {
    /// Looks up the documents near `document` in the segments of a snapshot, by the rule of a writer with these options.
    ///
    /// # Errors
    /// Same as [`Writer::admit`](super::Writer::admit).
    pub fn new<'d>(
        snapshot: &Snapshot,
        document: impl Into<Document<'d>>,
        options: WriterOptions,
    ) -> Result<Self> {
        let (document, params, state) = (document.into(), snapshot.params(), snapshot.shared_state());
        let (mut packed, mut fields, mut set) = (Vec::new(), Vec::new(), Vec::new());
        let kept = document.kept(params, state.sketch_digest, &mut packed)?;
        document.fields_into(params, &mut fields, &mut set)?;
        if kept.is_none() && set.is_empty() {
            return Ok(Self::default());
        }
        let mut query = options.query(Arc::clone(&state), kept, &set).marks(Marks::Unmarked);
        query.check()?;
        let view = &state.view;
        let parts = || {
            let parts = view.segments.iter().zip(&view.deleted);
            parts.map(|(segment, deleted)| (segment, IndexPart::Segment { segment, deleted }))
        };
        let mut segments = Vec::with_capacity(view.segments.len());
        for (segment, part) in parts() {
            let mut omitted = Omitted { asks_for_marked: true, ..Omitted::default() };
            let unmarked = query.find_nearest_in(&part, (ENOUGH, None), &mut omitted)?;
            part.check_map()?;
            let has_marked = omitted.may_be_marked;
            segments.push((Arc::clone(segment), FoundAhead { unmarked, has_marked }));
        }
        let is_new = segments.iter().all(|(_, found)| found.unmarked.is_empty());
        let query = query.marks(Marks::Marked);
        for ((_, part), (_, found)) in
            parts().zip(&mut segments).filter(|(_, (_, found))| is_new && found.has_marked)
        {
            let marked = query.find_nearest_in(&part, (1, None), &mut Omitted::default())?;
            part.check_map()?;
            found.has_marked = !marked.is_empty();
        }
        Ok(Self { of: Some((content(kept, &set), options.near_by(params))), segments })
    }

    /// Returns whether this is a lookup of a document with this content by this rule.
    pub(super) fn is_of(&self, kept: Option<Kept<'_>>, set: &[u64], relation: Relation) -> bool {
        self.of.is_some_and(|of| of == (content(kept, set), relation))
    }

    /// Returns the documents that a query for unmarked documents would find in a part; `None` if they are not known.
    pub(super) fn find(&self, part: &IndexPart<'_>, omitted: &mut Omitted) -> Option<Vec<FoundDocument>> {
        let IndexPart::Segment { deleted, .. } = part else { return None };
        let found = self.in_part(part)?;
        if found.unmarked.iter().any(|found| deleted.contains(found.ordinal)) {
            return None;
        }
        omitted.may_be_marked |= found.has_marked;
        Some(found.unmarked.clone())
    }

    /// Returns whether a part is known to have no marked document that is near.
    pub(super) fn has_none(&self, part: &IndexPart<'_>) -> bool {
        self.in_part(part).is_some_and(|found| found.unmarked.is_empty() && !found.has_marked)
    }

    fn in_part(&self, part: &IndexPart<'_>) -> Option<&FoundAhead> {
        let IndexPart::Segment { segment, .. } = part else { return None };
        let of = |known: &Arc<Segment>| std::ptr::eq(&raw const **known, *segment);
        self.segments.iter().find(|(known, _)| of(known)).map(|(_, found)| found)
    }
}

/// Returns a hash of the data that decides which documents are near.
fn content(kept: Option<Kept<'_>>, set: &[u64]) -> u128 {
    let mut hash = Xxh3::new();
    if let Some(Kept { fingerprint, features, signature, .. }) = kept {
        hash.update(&fingerprint.to_le_bytes());
        hash.update(features.as_bytes());
        hash.update(signature);
    }
    hash.update(set.as_bytes());
    hash.digest128()
}
