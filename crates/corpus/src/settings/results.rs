//! The settings of the results.

use std::path::PathBuf;

use crate::input::open::reader::Compression;
use crate::settings::declared::settings;
use crate::settings::value::choices;

settings! {
    /// What is written.
    Results, "Results" {
        /// Folder to create for the results
        out: PathBuf = PathBuf::new(), "OUT", short 'o';
        /// Replace OUT if `dedup` wrote all files in it
        ///
        /// Without --resume, also removes the journal of an interrupted run.
        force: bool = false, "";
        /// Keep a journal, so that the same command can continue a killed run
        ///
        /// The journal is the folder `.OUT.twindex-resume`. A continued run reuses the saved sketches and finished
        /// stages; its results are the same, byte for byte. --memory, --threads and --skip-bad may be changed. Standard
        /// input is refused.
        resume: bool = false, "";
        /// Write an index to OUT/index: of the kept documents, of all, or none
        ///
        /// `query` and `stream` need the index. `--against OUT` uses it instead of the kept texts, with the same result.
        index: IndexOf = IndexOf::None, "WHICH";
        /// Write additional files or fields: annotated, sizes or revisits; may be repeated
        ///
        /// `annotated` writes all documents to annotated.*, in the input formats, with the fields `cluster_id`,
        /// `cluster_size`, `kept`, `score` and `near_key`, the key of the near kept document. `sizes` adds
        /// `cluster_size` to each kept document. `revisits` writes revisits.warc, with a revisit record for each
        /// removed WARC page whose payload equals the payload of the kept page, byte for byte.
        also: Vec<Also> = Vec::new(), "WHAT";
        /// Prefix of the names of the fields that --also adds
        annotation_prefix: Option<String> = None, "PREFIX", rare true;
        /// Compress documents written as JSON Lines, CSV or TSV: gzip or zstd
        ///
        /// File names then end in .gz or .zst. [default: not compressed]
        compress: Option<Compression> = None, "HOW";
    }
}

/// Output in addition to the kept documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Also {
    /// All documents, with the decision about each.
    Annotated,
    /// A field with the size of the cluster in each kept document.
    Sizes,
    /// Revisit records for removed pages of WARC files.
    Revisits,
}

impl Results {
    /// Returns whether `what` is written in addition.
    #[must_use]
    pub fn adds(&self, what: Also) -> bool {
        self.also.contains(&what)
    }
}

choices! {
    Also {
        Also::Annotated => "annotated",
        Also::Sizes => "sizes",
        Also::Revisits => "revisits",
    }
}

/// Selects the documents that the index in the results folder contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOf {
    /// The kept documents.
    Kept,
    /// All documents that were read, except those near a document of a history.
    All,
    /// No documents: no index is written. The other results are the same.
    None,
}

choices! {
    IndexOf {
        IndexOf::Kept => "kept",
        IndexOf::All => "all",
        IndexOf::None => "none",
    }
}

choices! {
    Compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    }
}
