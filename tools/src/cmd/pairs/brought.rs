//! Finds near pairs of fingerprints that are fields of input records. Builds a scratch index with the keys of the
//! records, or holds fingerprints that an index cannot find.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use twindex::design::WITHIN_MAX;
use twindex::sys::{MemoryBudget, RealVfs};
use twindex::{Index, Params, WriterOptions};
use twindex_corpus::contents;
use twindex_corpus::input::Documents;
use twindex_corpus::sketching::{SketchOptions, for_each_sketched, refused};
use twindex_corpus::text::TextOptions;
use twindex_corpus::{KeyedCodes, RepeatedKeys};

use super::args::{PairsArgs, SearchReport};
use super::{codes, near};
use crate::progress::Progress;
use crate::report::{self, Stopwatch};

/// Finds near pairs among the records of one file, or across the records of two files.
pub(super) fn find(args: &PairsArgs, path: &Path) -> anyhow::Result<ExitCode> {
    let within = args.within().unwrap_or_default();
    let watch = Stopwatch::start();
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let shingling = contents::shingling(&TextOptions::default(), true, None)?;
    let radius = within.min(WITHIN_MAX.into()) as u8;
    let params = Params::builder().shingling(shingling).simhash(radius).build()?;
    let left = FingerprintFile::read(args, path, &params, within, &scratch.path().join("left"))?;
    let right = args.with.as_deref();
    let right =
        right.map(|path| FingerprintFile::read(args, path, &params, within, &scratch.path().join("right")));
    let right = right.transpose()?;
    let bits = left.bits.or(right.as_ref().and_then(|right| right.bits)).unwrap_or(64);
    if let (Some(other), Some(found)) = (&args.with, right.as_ref().and_then(|right| right.bits)) {
        let (path, other) = (path.display(), other.display());
        ensure!(
            bits == found,
            "{other}: expected fingerprints of {bits} bits like those of {path}, found {found} bits"
        );
    }
    let found = if is_indexed(bits, within) {
        let right = right.as_ref().map(|right| right.index.snapshot());
        near::find(args, &left.index.snapshot(), right.as_ref(), within)?
    } else {
        codes::find(args, &left.codes, right.as_ref().map(|right| &right.codes), within, &params)?
    };
    args.report(found, Some(within), SearchReport::default(), watch)
}

/// Returns whether an index finds all near pairs of fingerprints of this number of bits.
fn is_indexed(bits: usize, within: u32) -> bool {
    bits == 64 && within <= WITHIN_MAX.into()
}

/// The fingerprints of a file.
struct FingerprintFile {
    /// Number of bits of a fingerprint; `None` if there is none.
    bits: Option<usize>,
    /// An index of the fingerprints, if it finds all near pairs.
    index: Index,
    /// All fingerprints, with the keys of their records, if the index does not.
    codes: KeyedCodes,
}

impl FingerprintFile {
    /// Reads the fingerprints of the file at `path`, and creates the index at `made`.
    fn read(
        args: &PairsArgs,
        path: &Path,
        params: &Params,
        within: u32,
        made: &Path,
    ) -> anyhow::Result<Self> {
        let options = args.text_options()?;
        let mut documents = Documents::open(&[path.to_owned()], &options)?;
        let index = Index::create_from(Arc::new(RealVfs), made, params.clone(), None)?;
        let options = WriterOptions::default().memory(args.work.memory / 2);
        let mut writer = index.writer_with(options.threads(rayon::current_num_threads()))?;
        let progress =
            Progress::bytes(documents.total_bytes(), "reading", args.output.quiet || args.prints());
        let budget = MemoryBudget::new(&std::env::temp_dir(), args.work.memory / 4);
        let (mut bits, mut codes) = (None, KeyedCodes::new(&budget));
        // A pair would be ambiguous if two rows had the same key, so that is an error.
        let wanted = SketchOptions {
            repeated_keys: RepeatedKeys::Error,
            budget: Some(budget),
            wide: true,
            ..SketchOptions::default()
        };
        for_each_sketched(&mut documents, &index.sketcher()?, &wanted, &progress, |one| {
            bits = bits.or(one.code.map(|code| code.bits()));
            match one.code {
                Some(code) if !is_indexed(code.bits(), within) => codes.push(&one.key, code)?,
                _ => {
                    let put = writer.put(one.key.as_slice(), &one.sketch);
                    put.map_err(|error| refused(&one.place, "cannot add the fingerprint", error))?;
                }
            }
            Ok(())
        })?;
        writer.commit()?;
        drop(writer);
        if !args.output.quiet {
            // Notes go to standard error after reading, so that they do not interrupt the pairs on standard output.
            documents.counts().remarks().iter().for_each(|remark| report::note(remark));
        }
        Ok(Self { bits, index, codes })
    }
}
