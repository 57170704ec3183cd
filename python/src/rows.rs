//! Sketches the rows of a column: texts, or sets and vectors of features.

use twindex::params::{Shingling, Tokens};
use twindex::sketch::Scratch;
use twindex_corpus::Features;

use crate::columns::Column;
use crate::error::{Failure, Result};

/// Buffers that each row reuses.
#[derive(Default)]
pub(crate) struct RowWork {
    pub(crate) scratch: Scratch,
    set: Vec<u64>,
    vector: Vec<(u64, i64)>,
}

/// Returns whether rows are not texts but sets or vectors of features.
pub(crate) fn takes_features(shingling: &Shingling) -> bool {
    shingling.tokens == Tokens::Features
}

/// Sketches the text or the features of a row.
pub(crate) fn sketch_row(
    sketcher: &twindex::Sketcher,
    documents: &Column,
    row: usize,
    work: &mut RowWork,
    sketch: &mut twindex::Sketch,
) -> Result<()> {
    let is_features = takes_features(&sketcher.params().shingling);
    let document = documents.needed(row, is_features)?;
    let RowWork { scratch, set, vector } = work;
    let made = if is_features {
        match Features::from_canonical(document) {
            Some(features) => features.sketch_into(sketcher, (set, vector), scratch, sketch),
            None => Err(twindex::Error::Invalid("features: damaged in memory".into())),
        }
    } else if let Ok(text) = str::from_utf8(document) {
        sketcher.sketch_into(text, scratch, sketch).map_err(Into::into)
    } else {
        sketcher.sketch_bytes(document).map(|made| *sketch = made).map_err(Into::into)
    };
    made.map_err(|error| Failure::Record(row, error))
}
