//! HTML pages: reports about an index, and pages that show texts side by side with the passages that they share.

pub(crate) mod chart;
pub(crate) mod compared;
pub(crate) mod figures;
pub(crate) mod html;
pub(crate) mod report;

pub use compared::{ComparedPair, Excerpt, PassagePage, TextSide};
pub use figures::{ClusterFigures, Figures, GroupSizes, KEYS_SHOWN, Space, VerifyOptions};
pub use html::html;
pub use report::{ClusterSource, check, look, write};
