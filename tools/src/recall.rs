//! Prints notes on the recall of an index's bands.

use std::path::Path;

use twindex::Params;
use twindex::planner::Banding;

use crate::report;

/// An expected recall of this value or more gets no note.
const UNREMARKABLE: f64 = 0.99;

/// Prints a note if the expected recall is low. This occurs if the bands are made for a higher resemblance than
/// requested. `asked` is the request in words, for the note.
pub(crate) fn note(path: &Path, params: &Params, resembling: f64, asked: &str) {
    let Some(minhash) = params.minhash else { return };
    let kept = Banding { bands: minhash.bands, rows: minhash.rows };
    let recall = kept.recall(resembling);
    if recall >= UNREMARKABLE {
        return;
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let better = Banding::for_threshold(resembling);
    let share = percent(better.recall(resembling));
    let Banding { bands, rows } = better;
    report::note(&format!(
        "{}: its {} bands of {} minima find {} of the documents {asked}; an index built with --bands {bands} --rows {rows} \
         finds {share}",
        path.display(),
        kept.bands,
        kept.rows,
        percent(recall)
    ));
}
