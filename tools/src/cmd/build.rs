//! `twindex build`: make an index, or add to one.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::{Error, Fingerprint, Index, Params, Writer};

use super::stats::Space;
use crate::input::{Counts, Documents};
use crate::options::{InputArgs, Output, Usage, Work};
use crate::progress::Progress;
use crate::report::{self, Stopwatch, count, counted};
use crate::sketching::for_each_sketched;

/// Options of `build`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex build pages.twx pages.jsonl\n  \
    twindex build pages.twx --method simhash --within 3 more.jsonl.zst\n  \
    twindex build hashes.twx --fingerprints hashes.u64\n\n\
    An index that is there is extended; a document whose key is there is replaced. Of a key that comes twice, \
    the last document counts.")]
pub(crate) struct Build {
    /// Directory of the index; made if it is not there
    index: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    /// Raw fingerprints instead of documents: little-endian 64-bit numbers, keys are positions
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    fingerprints: Option<PathBuf>,
    /// Keys of the raw fingerprints: little-endian 64-bit numbers
    #[arg(long, value_name = "FILE", requires = "fingerprints", conflicts_with = "inputs")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    params: ParamArgs,
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    output: Output,
}

/// What a new index keeps; for one that is there, the options given must agree with it.
#[derive(Args, Clone, Debug)]
struct ParamArgs {
    /// What to keep [default: both; simhash alone for raw fingerprints]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "METHODS")]
    method: Vec<Method>,
    /// Hamming radius that the tables are tuned for, 0 to 10 [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(0..=10))]
    within: Option<u8>,
    /// Words in a shingle, 1 to 16 [default: 5]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u8).range(1..=16))]
    words: Option<u8>,
    /// MinHash bands [default: 20]
    #[arg(long, value_name = "B")]
    bands: Option<u16>,
    /// Minima in a band [default: 6]
    #[arg(long, value_name = "R")]
    rows: Option<u16>,
    /// Bits kept of each minimum, to estimate resemblance: 0, 1, 2, 4, 8, 16 or 32 [default: 8]
    #[arg(long, value_name = "BITS")]
    signature_bits: Option<u8>,
    /// Another family of hash functions [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Simhash,
    Minhash,
}

impl ParamArgs {
    /// Parameters of a new index.
    fn params(&self, raw: bool) -> anyhow::Result<Params> {
        let wanted = |method| {
            if self.method.is_empty() {
                !raw || method == Method::Simhash
            } else {
                self.method.contains(&method)
            }
        };
        if self.within.is_some() && !wanted(Method::Simhash) {
            return Err(Usage::new("--within goes with --method simhash").into());
        }
        if (self.bands.is_some() || self.rows.is_some() || self.signature_bits.is_some())
            && !wanted(Method::Minhash)
        {
            return Err(Usage::new("--bands, --rows and --signature-bits go with --method minhash").into());
        }
        let mut builder = Params::builder().words(self.words.unwrap_or(5)).seed(self.seed.unwrap_or(0));
        if raw {
            builder = builder.u64_keys();
        }
        if wanted(Method::Simhash) {
            builder = builder.simhash(self.within.unwrap_or(3));
        }
        if wanted(Method::Minhash) {
            builder = builder.minhash(self.bands.unwrap_or(20), self.rows.unwrap_or(6));
            builder = builder.signature_bits(self.signature_bits.unwrap_or(8));
        }
        Ok(builder.build()?)
    }

    /// Refuses options that contradict an index that is there.
    fn check(&self, path: &Path, index: &Params) -> anyhow::Result<()> {
        let fields = index.fields();
        for (option, field, given) in [
            ("within", "within", self.within.map(u64::from)),
            ("words", "width", self.words.map(u64::from)),
            ("bands", "bands", self.bands.map(u64::from)),
            ("rows", "rows", self.rows.map(u64::from)),
            ("signature-bits", "signature-bits", self.signature_bits.map(u64::from)),
            ("seed", "seed", self.seed),
        ] {
            let kept = fields.iter().find(|(name, _)| *name == field).map_or("none", |(_, kept)| kept);
            if let Some(given) = given {
                ensure!(
                    kept == given.to_string(),
                    "{}: {option} is {kept} in this index, --{option} {given} was given; leave it out, or make \
                     another index",
                    path.display()
                );
            }
        }
        for (method, name, kept) in [
            (Method::Simhash, "simhash", index.simhash.is_some()),
            (Method::Minhash, "minhash", index.minhash.is_some()),
        ] {
            let says = |kept| if kept { "kept" } else { "not kept" };
            ensure!(
                self.method.is_empty() || self.method.contains(&method) == kept,
                "{}: {name} is {} in this index, and {} by the --method given; leave it out, or make another index",
                path.display(),
                says(kept),
                says(!kept)
            );
        }
        Ok(())
    }
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    /// What was read, but for `documents`, which are those of the index.
    #[serde(flatten)]
    counts: Counts,
    /// Documents or fingerprints read; of those with the same key the last one is in the index.
    added: u64,
    /// Those that took the place of another with their key, in the index or among those read.
    replaced: u64,
    distinct_fingerprints: u64,
    bytes_on_disk: u64,
    bytes_per_fingerprint: f64,
    cpu_seconds: f64,
    seconds: f64,
    peak_rss_bytes: u64,
}

impl Build {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply()?;
        let watch = Stopwatch::start();
        if self.input.inputs.is_empty() && self.fingerprints.is_none() {
            return Err(Usage::new("nothing to index: name INPUT files, or --fingerprints FILE").into());
        }
        // What cannot be read is refused before anything is written.
        let mut documents = match self.fingerprints {
            Some(_) => None,
            None => Some(Documents::open(&self.input.inputs, &self.input.options())?),
        };
        let raw = self.fingerprints.as_deref().map(RawColumn::open).transpose()?;
        let ids = self.ids.as_deref().map(RawColumn::open).transpose()?;
        if let (Some(raw), Some(ids)) = (&raw, &ids) {
            ensure!(
                raw.rows == ids.rows,
                "{} has {} keys for the {} fingerprints of {}",
                ids.path.display(),
                ids.rows,
                raw.rows,
                raw.path.display()
            );
        }

        let (index, created) = match Index::open(&self.index) {
            Ok(index) => {
                self.params.check(&self.index, &index.params())?;
                (index, false)
            }
            Err(Error::NotAnIndex { .. }) if !self.index.exists() => {
                let params = self.params.params(raw.is_some())?;
                self.params.check(&self.index, &params)?;
                (Index::create(&self.index, params)?, true)
            }
            Err(error) => return Err(error.into()),
        };
        let (mut writer, created) = match take_writer(&index, created) {
            Ok(taken) => taken,
            Err(error) => {
                // Whoever locks an index that was made a moment ago has found it, and uses it.
                if created && !matches!(error, Error::Locked { .. }) {
                    let _ = std::fs::remove_dir_all(&self.index);
                }
                return Err(error.into());
            }
        };
        writer.set_memory(self.work.memory / 2);
        let before = index.snapshot().documents();
        let raw_rows = raw.as_ref().map_or(0, |raw| raw.rows);
        let filled = match (&mut documents, raw) {
            (Some(documents), _) => add_documents(&mut writer, &index, documents, self.output.quiet),
            (None, Some(raw)) => add_raw(&mut writer, raw, ids, self.output.quiet),
            (None, None) => Ok(()),
        };
        if let Err(error) = filled.and_then(|()| Ok(writer.commit()?)) {
            if created {
                // The directory came into being with this run, and is as it was: not there. The writer still
                // holds the lock, so that it is nobody else's.
                let _ = std::fs::remove_dir_all(&self.index);
            }
            return Err(error);
        }
        drop(writer);

        let snapshot = index.snapshot();
        let space = Space::of(&snapshot, index.path());
        let counts = documents.map_or_else(Counts::default, |documents| documents.counts().clone());
        let remarks = counts.remarks();
        let added = if raw_rows > 0 { raw_rows } else { counts.documents };
        let report = Report {
            added,
            replaced: (before + added).saturating_sub(snapshot.documents()),
            counts: Counts { documents: snapshot.documents(), ..counts },
            distinct_fingerprints: space.distinct,
            bytes_on_disk: space.on_disk,
            bytes_per_fingerprint: space.per_fingerprint(),
            cpu_seconds: watch.cpu_seconds(),
            seconds: watch.seconds(),
            peak_rss_bytes: report::peak_rss_bytes(),
        };
        if self.output.json {
            report::print_json(&report)?;
        } else if !self.output.quiet {
            let replaced = match report.replaced {
                0 => String::new(),
                replaced => format!("{} replaced, ", count(replaced)),
            };
            let mut lines = vec![format!(
                "{}: {}, {replaced}{} on disk, {:.1} s",
                self.index.display(),
                counted(report.counts.documents, "document"),
                report::bytes(report.bytes_on_disk),
                report.seconds
            )];
            for remark in remarks {
                lines.push(format!("  note: {remark}"));
            }
            report::print_lines(&lines)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Becomes the writer, and says whether the index is still nobody's but this run's, which `created` it:
/// before the lock was taken another process may have found it and committed.
fn take_writer(index: &Index, created: bool) -> twindex::Result<(Writer, bool)> {
    let writer = index.writer()?;
    let created = created && index.snapshot().generation() == 1;
    Ok((writer, created))
}

fn add_documents(
    writer: &mut Writer,
    index: &Index,
    documents: &mut Documents,
    quiet: bool,
) -> anyhow::Result<()> {
    let progress = Progress::bytes(documents.total_bytes(), "indexing", quiet);
    for_each_sketched(documents, &index.sketcher(), false, &progress, |one| {
        writer
            .put(one.document.key.as_slice(), &one.sketch)
            .with_context(|| format!("{}: cannot add the document", one.document.place))
    })
}

fn add_raw(
    writer: &mut Writer,
    fingerprints: RawColumn,
    ids: Option<RawColumn>,
    quiet: bool,
) -> anyhow::Result<()> {
    let progress = Progress::bytes(Some(fingerprints.rows * 8), "indexing", quiet);
    let mut ids = ids;
    let mut row = 0;
    fingerprints.for_each(|fingerprint| {
        let key = match &mut ids {
            None => row,
            Some(ids) => ids.next()?,
        };
        writer.put_fingerprint(key, Fingerprint(fingerprint))?;
        row += 1;
        if row % 65_536 == 0 {
            progress.set(row * 8);
        }
        Ok(())
    })
}

/// A file of little-endian 64-bit numbers.
pub(crate) struct RawColumn {
    pub(crate) path: PathBuf,
    /// Numbers in it.
    pub(crate) rows: u64,
    /// Those not read yet.
    rest: u64,
    reader: BufReader<File>,
}

impl RawColumn {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
        let metadata = file.metadata().with_context(|| format!("{}: cannot look at it", path.display()))?;
        ensure!(metadata.is_file(), "{}: not a regular file", path.display());
        let length = metadata.len();
        ensure!(
            length.is_multiple_of(8),
            "{}: {length} bytes are not a whole number of 64-bit fingerprints; {} bytes too many",
            path.display(),
            length % 8
        );
        let (rows, reader) = (length / 8, BufReader::with_capacity(1 << 20, file));
        Ok(Self { path: path.to_owned(), rows, rest: rows, reader })
    }

    pub(crate) fn next(&mut self) -> anyhow::Result<u64> {
        let mut number = [0; 8];
        self.reader
            .read_exact(&mut number)
            .with_context(|| format!("{}: cannot read", self.path.display()))?;
        self.rest = self.rest.saturating_sub(1);
        Ok(u64::from_le_bytes(number))
    }

    pub(crate) fn for_each(mut self, mut each: impl FnMut(u64) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for _ in 0..self.rows {
            each(self.next()?)?;
        }
        Ok(())
    }

    /// The next `most` numbers, fewer at the end of the file, none behind it.
    pub(crate) fn wave(&mut self, most: usize) -> anyhow::Result<Vec<u64>> {
        let count = self.rest.min(most as u64);
        (0..count).map(|_| self.next()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_another_committed_to_is_no_longer_of_this_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("i.twx");
        let index = Index::create(&path, Params::builder().simhash(3).build().unwrap()).unwrap();
        for (created, still) in [(true, true), (false, false)] {
            assert_eq!(take_writer(&index, created).unwrap().1, still);
        }
        let other = Index::open(&path).unwrap();
        let mut writer = other.writer().unwrap();
        writer.put("theirs", &other.sketcher().sketch("one two three four five six")).unwrap();
        writer.commit().unwrap();
        drop(writer);
        assert!(!take_writer(&index, true).unwrap().1);
    }
}
