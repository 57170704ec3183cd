//! The settings that determine which documents are compared with each other.

use std::path::PathBuf;

use crate::rule::repeated::RepeatedKeys;
use crate::settings::declared::settings;
use crate::settings::value::choices;

settings! {
    /// Which documents are compared with which.
    Scope, "What is compared with what" {
        /// Earlier results, whose documents go first; may be repeated
        ///
        /// Documents near one of an earlier run are removed. PATH is the folder of results of an earlier run, or an index. The result is that of one run over all
        /// documents. If there is an index, it is queried, which costs about as much as processing the new documents. If
        /// there is none, or it cannot be used (a lower threshold than its own, other shingles, containment, equal,
        /// --max-work), the kept texts in the folder, or those of --texts, are read again, with the same result.
        against: Vec<PathBuf> = Vec::new(), "PATH";
        /// The texts of the documents in the index of --against
        ///
        /// Needed if the index alone is not enough; may be repeated.
        texts: Vec<PathBuf> = Vec::new(), "INPUT", rare true;
        /// Compare only documents with the same value in this field
        ///
        /// `host` and `domain` are the host and the registrable domain of the URL. Equal texts with different values
        /// are all kept. A document without the field is a bad record. `field:NAME` is a field with any name, even
        /// `host`.
        inside: Option<String> = None, "FIELD";
        /// Field that contains the URL, which determines host and domain
        ///
        /// [default: the key, if it is a URL]
        url_field: Option<String> = None, "FIELD";
        /// Treatment of repeated keys: number, first, last or error
        ///
        /// `number`: the second document with key K gets the key K#2, or the next free number. `first`: only the first
        /// document with a key is used; later ones are skipped and counted. `last`: only the last one is used; the
        /// inputs are read twice. `error`: the run ends with an error. Keys of --against count as used; keys of removed
        /// documents count only if --against names a folder of results. `number` and `first` take some 10 to 40 bytes
        /// of memory for each document.
        repeated_keys: RepeatedKeys = RepeatedKeys::Number, "HOW";
        /// Table of document frequencies, for --weights idf
        ///
        /// `twindex idf` writes this table. With --near within:K, the table weights the shingles of the simhash.
        idf: Option<PathBuf> = None, "FILE", rare true;
    }
}

choices! {
    RepeatedKeys {
        RepeatedKeys::Number => "number",
        RepeatedKeys::First => "first",
        RepeatedKeys::Last => "last",
        RepeatedKeys::Error => "error",
    }
}
