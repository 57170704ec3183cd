//! A row of the table of precision and recall.

use serde::Serialize;

/// The statistics for one threshold or radius.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(in crate::cmd::study) struct RecallRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd::study) k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cmd::study) threshold: Option<f64>,
    /// Fraction of the found pairs that are known; `None` if no pairs are found.
    pub(in crate::cmd::study) precision: Option<f64>,
    /// Fraction of the known pairs that are found; `None` if no pairs are known.
    pub(in crate::cmd::study) recall: Option<f64>,
    pub(in crate::cmd::study) f1: Option<f64>,
    pub(in crate::cmd::study) found: u64,
    pub(in crate::cmd::study) right: u64,
    #[serde(rename = "true")]
    pub(in crate::cmd::study) known: u64,
}

impl RecallRow {
    pub(in crate::cmd::study) fn of(found: u64, right: u64, known: u64) -> Self {
        let share = |of: u64| (of > 0).then(|| right as f64 / of as f64);
        // F1 is 2 P R / (P + R). This equivalent form is also defined if P or R is not.
        let f1 = (found + known > 0).then(|| 2.0 * right as f64 / (found + known) as f64);
        Self {
            k: None,
            threshold: None,
            precision: share(found),
            recall: share(known),
            f1,
            found,
            right,
            known,
        }
    }

    /// Returns the threshold or the radius of the row of the table.
    pub(in crate::cmd::study) fn at(&self) -> f64 {
        self.threshold.or(self.k.map(f64::from)).unwrap_or(0.0)
    }
}
