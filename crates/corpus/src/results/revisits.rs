//! Writes `OUT/revisits.warc`: a revisit record for each removed page of a web archive whose payload equals, byte for
//! byte, the payload of the kept page.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::input::archives::revisit::revisit;
use crate::input::content::Form;
use crate::results::layout::REVISITS;
use crate::rule::clusters::Clusters;
use crate::stored::corpus::Corpus;
use crate::work::file::write_file;

/// Counts of revisit records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Revisits {
    /// Number of records in revisits.warc.
    pub records: u64,
    /// Number of removed documents without a record: their payloads are only near, or they are not complete responses
    /// of a WARC file.
    pub left_out: u64,
}

/// Writes the revisit records of removed documents, in input order.
pub(crate) fn write_revisits(
    corpus: &Corpus,
    clusters: &Clusters,
    folder: &Path,
) -> anyhow::Result<Revisits> {
    let mut found = Revisits { records: 0, left_out: corpus.dropped.len() as u64 };
    let mut failure = None;
    let is_page = |document| corpus.form(document) == Form::Archive { texts: false };
    let of = |document: u32| -> anyhow::Result<Option<Vec<u8>>> {
        let kept = clusters.kept_of_group[corpus.grouped.group_of[document as usize] as usize];
        // A revisit record cannot refer to a document of the history, whose record is not in the inputs of this run.
        if kept < corpus.history || !is_page(document) || !is_page(kept) {
            return Ok(None);
        }
        Ok(revisit(&corpus.line(document)?, &corpus.line(kept)?))
    };
    let written = write_file(&folder.join(REVISITS), |out| {
        for document in corpus.documents().filter(|&document| !clusters.is_kept(&corpus.grouped, document)) {
            match of(document) {
                Ok(Some(record)) => {
                    out.write_all(&record)?;
                    found.records += 1;
                }
                Ok(None) => found.left_out += 1,
                Err(error) => {
                    failure = Some(error);
                    return Err(io::Error::other("a record cannot be read again"));
                }
            }
        }
        Ok(())
    });
    written.map_err(|error| failure.unwrap_or(error))?;
    Ok(found)
}
