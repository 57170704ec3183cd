//! HTML pages: about an index, about a run of `dedup` or one of its decisions, about pairs or groups, and about passages
//! that texts share.

pub(crate) mod chart;
pub(crate) mod commands;
pub(crate) mod compared;
pub(crate) mod differing;
pub(crate) mod figures;
pub(crate) mod found;
pub(crate) mod html;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scores;

pub use commands::quoted;
pub use compared::{ComparedPair, Excerpt, PassagePage, TextSide};
pub use differing::write_decision;
pub use figures::{ClusterFigures, Figures, GroupSizes, KEYS_SHOWN, Space, VerifyOptions};
pub use found::{FoundPage, LargestGroups, PairSample, PairScore};
pub use html::html;
pub use report::{check, look, write};
