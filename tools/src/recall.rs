//! Prints notes on the recall of an index's bands.

use std::path::Path;

use twindex::Params;
use twindex::planner::Banding;

use crate::report;

/// From this expected recall on, no note is printed.
const UNREMARKABLE: f64 = 0.99;

/// Prints a note on the expected recall if the bands are made for a higher resemblance than the requested one. Without the
/// note, users could believe that the answers are complete. `asked` is the text of the request.
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
