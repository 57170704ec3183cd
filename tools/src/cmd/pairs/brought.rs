//! Finds near pairs of fingerprints that are fields of input records. Builds a scratch index with the keys of the
//! records.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use twindex::sys::{MemoryBudget, RealVfs};
use twindex::{Index, Params, WriterOptions};
use twindex_corpus::RepeatedKeys;
use twindex_corpus::contents;
use twindex_corpus::input::Documents;
use twindex_corpus::sketching::{SketchOptions, for_each_sketched, refused};
use twindex_corpus::text::TextOptions;

use super::args::{PairsArgs, SearchReport};
use super::near;
use crate::progress::Progress;
use crate::report::{self, Stopwatch};

/// Finds near pairs among the records of one file, or across the records of two files.
pub(super) fn find(args: &PairsArgs, path: &Path) -> anyhow::Result<ExitCode> {
    let within = args.within().unwrap_or_default();
    let watch = Stopwatch::start();
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let shingling = contents::shingling(&TextOptions::default(), true, None)?;
    // The parser of `--near within:K` accepts only radii that an index supports, so the cast is lossless.
    let params = Params::builder().shingling(shingling).simhash(within as u8).build()?;
    let left = index_of(args, path, &params, &scratch.path().join("left"))?;
    let right = args.with.as_deref();
    let right = right.map(|path| index_of(args, path, &params, &scratch.path().join("right"))).transpose()?;
    let right = right.as_ref().map(Index::snapshot);
    let found = near::find(args, &left.snapshot(), right.as_ref(), within)?;
    args.report(found, Some(within), SearchReport::default(), watch)
}

/// Creates an index at `made` with the fingerprints of the file at `path`.
fn index_of(args: &PairsArgs, path: &Path, params: &Params, made: &Path) -> anyhow::Result<Index> {
    let options = args.text_options()?;
    let mut documents = Documents::open(&[path.to_owned()], &options)?;
    let index = Index::create_from(Arc::new(RealVfs), made, params.clone(), None)?;
    let options = WriterOptions::default().memory(args.work.memory / 2);
    let mut writer = index.writer_with(options.threads(rayon::current_num_threads()))?;
    let progress = Progress::bytes(documents.total_bytes(), "reading", args.output.quiet || args.prints());
    let budget = MemoryBudget::new(&std::env::temp_dir(), args.work.memory / 4);
    // A pair would be ambiguous if two rows had the same key, so that is an error.
    let wanted = SketchOptions {
        repeated_keys: RepeatedKeys::Error,
        budget: Some(budget),
        ..SketchOptions::default()
    };
    for_each_sketched(&mut documents, &index.sketcher()?, &wanted, &progress, |one| {
        let put = writer.put(one.key.as_slice(), &one.sketch);
        put.map_err(|error| refused(&one.place, "cannot add the fingerprint", error))?;
        Ok(())
    })?;
    writer.commit()?;
    drop(writer);
    if !args.output.quiet {
        // Notes go to standard error after reading, so that they do not interrupt the pairs on standard output.
        documents.counts().remarks().iter().for_each(|remark| report::note(remark));
    }
    Ok(index)
}
