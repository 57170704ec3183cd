//! The file `wordless` in the folder of an index of fingerprints. A document without words has no fingerprint, and is near
//! only documents with the same text. So the file lists the hash of the text of each kept document without words.

use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Context;

use crate::results::layout::for_each_row;
use crate::rule::clusters::Clusters;
use crate::stored::corpus::Corpus;
use crate::stored::groups::salted;
use crate::work::file::write_file;
use crate::work::tsv;

/// The name of the file.
pub(crate) const WORDLESS: &str = "wordless";
const HEAD: &str = "key\tinside\thash";

/// The keys of kept documents without words, by the hash of text and `--inside` value.
pub(crate) type WordlessKeys = HashMap<u128, Box<[u8]>>;

/// Writes the file in the folder of a new index, if a kept document has no words.
pub(crate) fn write(index: &Path, corpus: &Corpus, clusters: &Clusters) -> anyhow::Result<()> {
    let Some((firsts, hashes)) = corpus.wordless.as_ref().filter(|(firsts, _)| !firsts.is_empty()) else {
        return Ok(());
    };
    write_file(&index.join(WORDLESS), |out| {
        writeln!(out, "{HEAD}")?;
        for (&first, hash) in firsts.iter().zip(&hashes[..]) {
            let group = corpus.grouped.group_of[first as usize];
            let kept = clusters.kept_of_group[group as usize];
            if kept < corpus.history {
                continue;
            }
            tsv::write_field(out, corpus.keys.get(kept))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.grouped.value_of(group))?;
            writeln!(out, "\t{hash:032x}")?;
        }
        Ok(())
    })
}

/// Reads the file in the folder of an index; empty if there is none.
pub(crate) fn read(index: &Path) -> anyhow::Result<WordlessKeys> {
    let path = index.join(WORDLESS);
    let mut keys = WordlessKeys::new();
    if path.is_file() {
        for_each_row(&path, Some(HEAD), &mut |line, fields| {
            let place = || format!("{}:{line}", path.display());
            let key = tsv::unescape(fields[0]).with_context(place)?;
            let inside = tsv::unescape(fields[1]).with_context(place)?;
            let hash =
                std::str::from_utf8(fields[2]).ok().and_then(|hash| u128::from_str_radix(hash, 16).ok());
            let hash = hash.with_context(|| format!("{}: expected 32 hexadecimal digits", place()))?;
            keys.insert(salted(hash, &inside), key.into());
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(keys)
}
