//! Reads the texts of an index's documents again, to compute exact resemblance.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use twindex::sketch::{Sketch, pack};
use twindex::{Index, KeyBuf, Snapshot};
use twindex_join::ShingleSets;

use crate::input::documents::Documents;
use crate::input::options::InputOptions;
use crate::passages::boilerplate::count;
use crate::sketching::contents;
use crate::sketching::documents::{SketchOptions, for_each_shingled};
use crate::work::observer::Observer;

/// The shingle sets of documents. A set is found by the key of its document.
pub struct Texts {
    /// The shingle sets. `by_key` maps the key of a document to the index of its set.
    pub sets: ShingleSets,
    by_key: HashMap<Vec<u8>, u32>,
}

impl Texts {
    /// Creates an empty collection. Up to `memory` bytes of shingles are in memory, the rest in a scratch file in
    /// `folder`.
    #[must_use]
    pub fn new(folder: &Path, memory: usize) -> Self {
        Self { sets: ShingleSets::new(folder, memory), by_key: HashMap::new() }
    }

    /// Creates a collection from existing sets, without keys.
    #[must_use]
    pub fn of(sets: ShingleSets) -> Self {
        Self { sets, by_key: HashMap::new() }
    }

    /// Reads the texts of the documents of `index` that `wanted` selects. Options that have no effect on `inputs` are
    /// accepted, because they may be for other inputs of the command ([`Documents::check_options`]). If several
    /// documents have the same key, the last one is used, as in `build`.
    ///
    /// # Errors
    ///
    /// Inputs cannot be read, or the signature of a text differs from the one in the index.
    pub fn read(
        &mut self,
        inputs: &[PathBuf],
        options: &InputOptions,
        (path, index, snapshot): (&Path, &Index, &Snapshot),
        observer: &dyn Observer,
        mut wanted: impl FnMut(&[u8]) -> bool,
    ) -> anyhow::Result<()> {
        contents::check(path, &snapshot.params().shingling, options.features)?;
        let mut documents = Documents::open_part(inputs, options)?;
        let progress = observer.begin("reading texts", documents.total_bytes());
        let want = SketchOptions { shingles: true, ..SketchOptions::default() };
        let sketcher = count::sketcher(index, None)?;
        for_each_shingled(&mut documents, &sketcher, &want, &*progress, |one, shingles| {
            if !wanted(&one.key) {
                return Ok(());
            }
            check(path, snapshot, &one.key, &one.sketch).with_context(|| one.place.to_string())?;
            let number = self.sets.push(shingles)?;
            self.by_key.insert(one.key.clone(), number);
            Ok(())
        })?;
        Ok(())
    }

    /// Removes the keys and retains the sets. Another index with the same keys can be read afterwards.
    pub fn forget(&mut self) {
        self.by_key.clear();
    }

    /// Returns the index of a document's set.
    ///
    /// # Errors
    ///
    /// The text of the document was not read.
    pub fn number(&self, key: &KeyBuf) -> anyhow::Result<u32> {
        let name = key.to_string();
        match key.as_bytes().and_then(|key| self.by_key.get(key)) {
            Some(&number) => Ok(number),
            None => bail!("--texts has no document `{}`, which --verify exact needs", name.escape_debug()),
        }
    }
}

/// Returns an error if the signature of a text differs from the one in the index.
fn check(path: &Path, snapshot: &Snapshot, key: &[u8], sketch: &Sketch) -> anyhow::Result<()> {
    let bits = snapshot.params().minhash.map_or(0, |minhash| minhash.signature_bits);
    let Some(record) = snapshot.get(key)? else { return Ok(()) };
    let mut packed = Vec::new();
    pack(sketch.signature(), bits, &mut packed);
    // Documents without words are not compared, because their signatures have no meaning.
    if !sketch.is_empty() && packed != record.signature {
        bail!(
            "`{}` has another text in {}; give the texts that are in the index, or leave out --verify exact",
            String::from_utf8_lossy(key).escape_debug(),
            path.display()
        );
    }
    Ok(())
}
