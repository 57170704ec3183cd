//! HTML pages: reports about an index, and pages that show texts side by side with the passages that they share.

pub(crate) mod chart;
pub(crate) mod compared;
pub(crate) mod figures;
pub(crate) mod groups;
pub(crate) mod hosts;
pub(crate) mod html;
pub(crate) mod report;
pub(crate) mod space;

pub use compared::{ComparedPair, Excerpt, PassagePage, TextSide};
pub use figures::{ClusterFigures, Figures, KEYS_SHOWN, VerifyOptions};
pub use groups::GroupSizes;
pub use html::html;
pub use report::{ClusterSource, check, look, write};
pub use space::Space;
