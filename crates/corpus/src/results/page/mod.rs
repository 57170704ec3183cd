//! HTML pages: about an index, about a run of `dedup`, and with texts side by side and the passages that they share.

pub(crate) mod chart;
pub(crate) mod compared;
pub(crate) mod figures;
pub(crate) mod html;
pub(crate) mod report;
pub(crate) mod run;

pub use compared::{ComparedPair, Excerpt, PassagePage, TextSide};
pub use figures::{ClusterFigures, Figures, GroupSizes, KEYS_SHOWN, Space, VerifyOptions};
pub use html::html;
pub use report::{check, look, write};
