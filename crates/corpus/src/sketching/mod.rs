//! Converts texts to sets and sketches, on all cores.

pub(crate) mod chunks;
pub mod contents;
pub(crate) mod documents;
pub mod idf;
pub(crate) mod known_texts;
pub(crate) mod sets;
pub mod sharing;
pub mod texts;

pub use chunks::{Job, for_each_chunk};
pub use documents::{
    DocumentLine, DocumentScratch, DocumentSink, SketchOptions, Sketched, Sketching, WholeDocument,
    for_each_looked_up, for_each_looked_up_streaming, for_each_shingled, for_each_sketched, line_hash,
    refused,
};
pub use sets::{SetMaker, SetWork};
