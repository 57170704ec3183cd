//! `twindex build`: make an index, or add to one.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::{Error, Fingerprint, Index, Params, Writer};

use super::stats::Space;
use crate::input::Documents;
use crate::options::{Common, InputArgs};
use crate::progress::Progress;
use crate::report::{self, Stopwatch, counted};
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
    #[arg(long, value_name = "FILE", requires = "fingerprints")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    params: ParamArgs,
    #[command(flatten)]
    common: Common,
}

/// What a new index keeps; for one that is there, the options given must agree with it.
#[derive(Args, Clone, Debug)]
struct ParamArgs {
    /// What to keep [default: both; simhash alone for raw fingerprints]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "METHODS")]
    method: Vec<Method>,
    /// Hamming radius that the tables are tuned for, 0 to 10 [default: 3]
    #[arg(long, value_name = "K")]
    within: Option<u8>,
    /// Words in a shingle, 1 to 16 [default: 5]
    #[arg(long, value_name = "W")]
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
    fn params(&self, raw: bool) -> twindex::Result<Params> {
        let wanted = |method| {
            if self.method.is_empty() {
                !raw || method == Method::Simhash
            } else {
                self.method.contains(&method)
            }
        };
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
        builder.build()
    }

    /// Refuses options that contradict an index that is there.
    fn check(&self, index: &Params) -> twindex::Result<()> {
        let fields = index.fields();
        let mut given = vec![
            ("within", self.within.map(u64::from)),
            ("width", self.words.map(u64::from)),
            ("bands", self.bands.map(u64::from)),
            ("rows", self.rows.map(u64::from)),
            ("signature-bits", self.signature_bits.map(u64::from)),
            ("seed", self.seed),
        ];
        if !self.method.is_empty() {
            given.push(("simhash", None));
        }
        let mismatch = |field: &str, index: &str, given: String| {
            Err(Error::ParamsMismatch { field: field.to_string(), index: index.to_string(), given })
        };
        for (name, value) in given {
            let kept = fields.iter().find(|(field, _)| *field == name).map_or("none", |(_, kept)| kept);
            if let Some(value) = value
                && kept != value.to_string()
            {
                return mismatch(name, kept, value.to_string());
            }
        }
        for (method, name, kept) in [
            (Method::Simhash, "simhash", index.simhash.is_some()),
            (Method::Minhash, "minhash", index.minhash.is_some()),
        ] {
            if !self.method.is_empty() && self.method.contains(&method) != kept {
                let says = |kept| if kept { "kept" } else { "not kept" };
                return mismatch(name, says(kept), says(!kept).to_string());
            }
        }
        Ok(())
    }
}

/// Fields of `--json`.
#[derive(Serialize)]
struct Report {
    documents: u64,
    added: u64,
    distinct_fingerprints: u64,
    bytes_on_disk: u64,
    bytes_per_fingerprint: f64,
    cpu_seconds: f64,
    seconds: f64,
    peak_rss_bytes: u64,
    #[serde(flatten)]
    input: Option<crate::input::Counts>,
}

impl Build {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.common.apply()?;
        let watch = Stopwatch::start();
        if self.input.inputs.is_empty() && self.fingerprints.is_none() {
            bail!("nothing to index: name INPUT files, or --fingerprints FILE");
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
            Ok(index) => (index, false),
            Err(Error::NotAnIndex { .. }) if !self.index.exists() => {
                (Index::create(&self.index, self.params.params(raw.is_some())?)?, true)
            }
            Err(error) => return Err(error.into()),
        };
        let mut added = 0;
        let filled = (|| {
            self.params.check(&index.params())?;
            let mut writer = index.writer()?;
            writer.set_memory(self.common.memory / 2);
            match (&mut documents, raw) {
                (Some(documents), _) => add_documents(&mut writer, &index, documents, self.common.quiet)?,
                (None, Some(raw)) => add_raw(&mut writer, raw, ids, self.common.quiet)?,
                (None, None) => {}
            }
            writer.commit()?;
            added = documents.as_ref().map_or(0, |documents| documents.counts().documents);
            anyhow::Ok(())
        })();
        if let Err(error) = filled {
            if created {
                // The directory came into being with this run, and is as it was: not there.
                let _ = std::fs::remove_dir_all(&self.index);
            }
            return Err(error);
        }

        let snapshot = index.snapshot();
        let space = Space::of(&snapshot, index.path());
        if documents.is_none() {
            added = snapshot.documents();
        }
        let report = Report {
            documents: snapshot.documents(),
            added,
            distinct_fingerprints: space.distinct,
            bytes_on_disk: space.on_disk,
            bytes_per_fingerprint: space.per_fingerprint(),
            cpu_seconds: watch.cpu_seconds(),
            seconds: watch.seconds(),
            peak_rss_bytes: report::peak_rss_bytes(),
            input: documents.map(|documents| documents.counts().clone()),
        };
        if self.common.json {
            report::print_json(&report)?;
        } else if !self.common.quiet {
            println!(
                "{}: {}, {} on disk, {:.1} s",
                self.index.display(),
                counted(report.documents, "document"),
                report::bytes(report.bytes_on_disk),
                report.seconds
            );
        }
        Ok(ExitCode::SUCCESS)
    }
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
        Ok(Self { path: path.to_owned(), rows: length / 8, reader: BufReader::with_capacity(1 << 20, file) })
    }

    pub(crate) fn next(&mut self) -> anyhow::Result<u64> {
        let mut number = [0; 8];
        self.reader
            .read_exact(&mut number)
            .with_context(|| format!("{}: cannot read", self.path.display()))?;
        Ok(u64::from_le_bytes(number))
    }

    pub(crate) fn for_each(mut self, mut each: impl FnMut(u64) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for _ in 0..self.rows {
            each(self.next()?)?;
        }
        Ok(())
    }

    pub(crate) fn read_all(self) -> anyhow::Result<Vec<u64>> {
        let mut all = Vec::with_capacity(self.rows as usize);
        self.for_each(|number| {
            all.push(number);
            Ok(())
        })?;
        Ok(all)
    }
}
