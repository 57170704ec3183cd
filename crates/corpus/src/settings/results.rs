//! What is written.

use std::path::PathBuf;

use crate::input::open::reader::Compression;
use crate::settings::declared::settings;
use crate::settings::value::choices;

settings! {
    /// What is written.
    Results, "Results" {
        /// Folder to create for the results
        out: PathBuf = PathBuf::new(), "OUT", short 'o';
        /// Replace OUT if an earlier run made all that lies in it
        ///
        /// Without --resume, also removes the journal of an interrupted run.
        force: bool = false, "";
        /// Keep a journal, so that the same command can continue a killed run
        ///
        /// The journal is the folder `.OUT.twindex-resume`. Documents are not sketched again, and finished stages are not
        /// repeated; results are the same, byte for byte. --memory, --threads and --skip-bad may differ.
        /// Standard input is refused.
        resume: bool = false, "";
        /// Write an index to OUT/index: of the kept documents, of all, or none
        ///
        /// `query` and `stream` need the index. `--against OUT` uses it instead of the kept texts, with the same result.
        index: IndexOf = IndexOf::None, "WHICH";
        /// What to write in addition: annotated, sizes or revisits; may be repeated
        ///
        /// `annotated`: all documents with the decision about each, in annotated.* as they are in the inputs. The fields,
        /// columns or header lines are `cluster_id`, `cluster_size`, `kept`, `score` and `near_key`, the key of the document
        /// that is kept in its place. `sizes`: `cluster_size` in each kept document. `revisits`: revisits.warc, with a
        /// record of WARC/1.1 for each page of a WARC file whose payload equals that of a kept page, byte for byte, by the
        /// profile identical-payload-digest.
        also: Vec<Also> = Vec::new(), "WHAT";
        /// Prefix of the names of added fields
        annotation_prefix: Option<String> = None, "PREFIX", rare true;
        /// Compress written JSON Lines, CSV and TSV: gzip or zstd
        ///
        /// File names then end in .gz or .zst. [default: not compressed]
        compress: Option<Compression> = None, "HOW";
    }
}

/// What is written in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Also {
    /// All documents, with the decision about each.
    Annotated,
    /// The size of its cluster, in each kept document.
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

/// The documents that the index of the results contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOf {
    /// The kept documents.
    Kept,
    /// All documents that were read, except documents near a document of a history.
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
