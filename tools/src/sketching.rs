//! Documents to sketches, on all cores, in the order of the input.

use rayon::prelude::*;
use twindex::sketch::{Scratch, Sketch, Sketcher};
use xxhash_rust::xxh3::xxh3_128;

use crate::input::{Document, Documents};
use crate::progress::Progress;

/// Text bytes handed to the cores together; more keep more documents in memory, fewer leave cores waiting.
const BATCH_BYTES: usize = 8 << 20;
/// Documents handed to the cores together.
const BATCH_DOCUMENTS: usize = 16_384;

/// A document and what was made of its text.
pub(crate) struct Sketched {
    pub(crate) document: Document,
    pub(crate) sketch: Sketch,
    /// The distinct shingles, sorted, where they were asked for.
    pub(crate) shingles: Vec<u64>,
    /// xxh3-128 of the text.
    pub(crate) content: u128,
}

/// Reads all documents and hands each, sketched, to `each`, in the order of the input.
pub(crate) fn for_each_sketched(
    documents: &mut Documents,
    sketcher: &Sketcher,
    with_shingles: bool,
    progress: &Progress,
    mut each: impl FnMut(Sketched) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES && batch.len() < BATCH_DOCUMENTS {
            let Some(document) = documents.next_document()? else { break };
            bytes += document.text.len();
            batch.push(document);
        }
        if batch.is_empty() {
            return Ok(());
        }
        progress.set(documents.bytes_read());
        let sketched: Vec<Sketched> = batch
            .into_par_iter()
            .map_init(Scratch::default, |scratch, document| {
                let mut sketch = Sketch::default();
                sketcher.sketch_into(&document.text, scratch, &mut sketch);
                let mut shingles = Vec::new();
                if with_shingles {
                    shingles.extend_from_slice(scratch.shingles());
                    shingles.sort_unstable();
                    shingles.dedup();
                }
                let content = xxh3_128(document.text.as_bytes());
                Sketched { document, sketch, shingles, content }
            })
            .collect();
        for one in sketched {
            each(one)?;
        }
    }
}
