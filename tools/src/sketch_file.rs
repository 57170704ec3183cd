//! Reads files of sketches, which `twindex build --as sketches` writes for a later `build`.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use twindex::format::fields::Fields;
use twindex::format::header::{self, HEADER_BYTES, Header, Refusal, Role};
use twindex::format::sketches::{Decoder, Row, Rows};
use twindex::params::ParamDifference;
use twindex::sketch::IdfTable;
use twindex::{Error, Key, Params};
use twindex_corpus::text::ExistingParams;

use crate::options::Usage;
use crate::param_args::ParamArgs;

/// Size of the read buffer in bytes.
const BUFFER: usize = 256 << 10;

/// Returns whether `path` is a regular file that starts with the magic number of twindex files.
fn has_our_magic(path: &Path) -> bool {
    let regular = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut start = [0; header::MAGIC.len()];
    regular
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == header::MAGIC
}

/// Returns whether `path` has a complete header of a file of sketches.
pub(crate) fn is_sketch_file(path: &Path) -> bool {
    let mut start = [0; HEADER_BYTES];
    has_our_magic(path)
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && Header::read(&start, Role::Sketches).is_ok()
}

/// Returns the error text for a twindex file that does not hold sketches; `None` for any other file.
fn other_role(path: &Path) -> Option<&'static str> {
    let mut start = [0; HEADER_BYTES];
    File::open(path).ok()?.read_exact(&mut start).ok()?;
    let is = |role| Header::read(&start, role).is_ok();
    if is(Role::Idf) {
        return Some("an idf table, not documents; name it with --idf");
    }
    [Role::Segment, Role::Manifest, Role::Current]
        .into_iter()
        .any(is)
        .then_some("a file of an index, not documents")
}

/// Inputs that are files of sketches with the same parameters. Keeps only their paths, because there may be more files
/// than can be open at once.
pub(crate) struct SketchFiles {
    paths: Vec<PathBuf>,
    params: Params,
}

impl SketchFiles {
    /// Opens the inputs if they are files of sketches; `None` if they are documents.
    ///
    /// # Errors
    ///
    /// The inputs include both files of sketches and documents, the header of a file is damaged, or its parameters
    /// differ from those of the first file.
    pub(crate) fn among(inputs: &[PathBuf]) -> anyhow::Result<Option<Self>> {
        let (sketches, documents): (Vec<_>, Vec<_>) = inputs.iter().partition(|path| has_our_magic(path));
        let Some(first) = sketches.first() else { return Ok(None) };
        if let Some(other) = documents.first() {
            return Err(Usage::new(format!(
                "{} is a file of sketches and {} is none; add one kind after the other",
                first.display(),
                other.display()
            ))
            .into());
        }
        let params = SketchFile::open(first)?.params;
        for path in &inputs[1..] {
            let other = SketchFile::open(path)?;
            other.check_params(first, &params)?;
            let (near, theirs) = (params.near(), other.params.near());
            ensure!(
                near == theirs,
                "{}: made for documents near by {theirs}, and {} for those near by {near}",
                path.display(),
                first.display()
            );
        }
        Ok(Some(Self { paths: inputs.to_vec(), params }))
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// Returns an error if the index at `path` has other parameters than the files.
    pub(crate) fn check(&self, path: &Path, index: &Params) -> anyhow::Result<()> {
        SketchFile::open(&self.paths[0])?.check_params(path, index)
    }

    /// Returns an error if options for the content of an index contradict the parameters of the files.
    pub(crate) fn check_options(&self, given: &ParamArgs) -> anyhow::Result<()> {
        given.check(&ExistingParams::sketches(&self.paths[0], self.params()))
    }

    /// Returns the IDF table with which the sketches were made, which must be named by `--idf`; `None` if they were
    /// made without a table.
    pub(crate) fn table(&self, given: &ParamArgs) -> anyhow::Result<Option<IdfTable>> {
        given.table_of(&self.paths[0], self.params())
    }

    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// A file of sketches that is read sequentially.
pub(crate) struct SketchFile {
    path: PathBuf,
    length: u64,
    reader: BufReader<File>,
    decoder: Decoder,
    params: Params,
    part: Vec<u8>,
}

impl SketchFile {
    /// Opens a file and reads its parameters.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if let Some(other) = other_role(path) {
            bail!("{}: {other}", path.display());
        }
        let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
        let length =
            file.metadata().with_context(|| format!("{}: cannot read the size", path.display()))?.len();
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let (mut decoder, mut part) = (Decoder::new(), Vec::new());
        let params = loop {
            fill(&mut reader, &mut part, &decoder, path)?;
            decoder.feed(&part).map_err(|refusal| refused(path, refusal))?;
            if let Some(params) = decoder.params() {
                break params.clone();
            }
        };
        Ok(Self { path: path.to_owned(), length, reader, decoder, params, part })
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.decoder.offset()
    }

    fn check_params(&self, other: &Path, params: &Params) -> anyhow::Result<()> {
        if let Err(error) = params.check_same_sketch(&self.params) {
            let (mine, theirs) = (self.path.display().to_string(), other.display().to_string());
            let differs = ParamDifference::of_error(&error, &self.params, params);
            return Err(match differs {
                Some(differs) => {
                    anyhow!("{mine}: made with other parameters: {}", differs.in_words([&mine, &theirs]))
                }
                None => error.into(),
            });
        }
        ensure!(
            params.key == self.params.key,
            "{}: its keys are {}, those of {} are {}",
            self.path.display(),
            self.params.key,
            other.display(),
            params.key
        );
        Ok(())
    }

    /// Returns the records of the next block; `None` after the last one.
    ///
    /// # Errors
    ///
    /// The file is damaged or truncated, or has bytes after its end; the error names the offset.
    pub(crate) fn next_block(&mut self) -> anyhow::Result<Option<SketchBlock<'_>>> {
        loop {
            if self.decoder.wants() == 0 {
                let more = self.reader.read(&mut [0]).with_context(|| cannot_read(&self.path))?;
                if more > 0 {
                    let (expected, found) = ("the end of the file".into(), "more bytes".into());
                    return Err(corrupt(&self.path, self.decoder.offset(), expected, found).into());
                }
                return Ok(None);
            }
            fill(&mut self.reader, &mut self.part, &self.decoder, &self.path)?;
            if self.decoder.is_at_block() {
                break;
            }
            self.decoder.feed(&self.part).map_err(|refusal| refused(&self.path, refusal))?;
        }
        let rows = self.decoder.feed(&self.part).map_err(|refusal| refused(&self.path, refusal))?;
        Ok(Some(SketchBlock { path: &self.path, rows }))
    }
}

/// The records of a block.
pub(crate) struct SketchBlock<'f> {
    path: &'f Path,
    rows: Rows<'f>,
}

impl SketchBlock<'_> {
    /// Returns the next record: its key, its sketch if it has one, and its set if sets are stored. `None` after the last
    /// record.
    ///
    /// # Errors
    ///
    /// No error occurs for a block that the decoder has accepted.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<(Key<'_>, Option<Row<'_>>, Fields<'_>)>> {
        self.rows
            .next_with_set()
            .map_err(|fault| corrupt(self.path, fault.offset, fault.expected, fault.found).into())
    }
}

/// Replaces the content of `part` with the next bytes that the decoder needs.
fn fill(reader: &mut impl Read, part: &mut Vec<u8>, decoder: &Decoder, path: &Path) -> anyhow::Result<()> {
    part.resize(decoder.wants(), 0);
    match reader.read_exact(part) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            let expected = format!("{} bytes more", part.len());
            Err(corrupt(path, decoder.offset(), expected, "the end of the file".into()).into())
        }
        Err(error) => Err(error).with_context(|| cannot_read(path)),
    }
}

fn cannot_read(path: &Path) -> String {
    format!("{}: cannot read", path.display())
}

fn corrupt(path: &Path, offset: u64, expected: String, found: String) -> Error {
    Error::Corrupt { path: path.to_owned(), section: "sketches", offset, expected, found }
}

fn refused(path: &Path, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Damaged(fault) => corrupt(path, fault.offset, fault.expected, fault.found),
        Refusal::Unsupported(field, found, supported) => {
            Error::Unsupported { path: path.to_owned(), field, found, supported }
        }
    }
}
