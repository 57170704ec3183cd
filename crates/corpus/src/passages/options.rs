//! The options of a job that finds repeated passages.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use twindex::Params;
use twindex::sketch::Cutter;
use twindex::sys::DurableFile;

use crate::error::InvalidOptions;
use crate::input::documents::Documents;
use crate::input::kept::annotate::{AnnotatedFields, AnnotationOptions};
use crate::input::open::reader::Compression;
use crate::input::options::{InputOptions, TextForm};
use crate::passages::find::finder::{Shape, WIDTH_MAX};
use crate::passages::find::hashed::{Exact, Hasher};
use crate::passages::index::folder::PassageIndex;
use crate::passages::out::SETTINGS;
use crate::rule::repeated::RepeatedKeys;
use crate::settings::rule::KeepOrder;
use crate::settings::text::TextOptions;

/// The unit of passages. A repeated passage always consists of whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Runs of words.
    #[default]
    Words,
    /// Lines of the text.
    Line,
    /// Paragraphs: runs of lines that have words or symbols.
    Paragraph,
    /// Sentences by UAX #29, which also end at line ends.
    Sentence,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Line => "line",
            Self::Paragraph => "paragraph",
            Self::Sentence => "sentence",
        }
    }
}

/// A job that finds repeated passages: its inputs, the definition of passages, and its outputs. [`new`](Self::new) sets
/// the defaults.
///
/// ```
/// # fn main() -> twindex_corpus::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let (pages, out) = (dir.path().join("pages.jsonl"), dir.path().join("passages"));
/// # let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
/// # std::fs::write(&pages, [line("a", "x all rights are reserved y"), line("b", "All rights are reserved!")].concat())?;
/// use twindex_corpus::Passages;
///
/// let mut passages = Passages::new([pages], &out);
/// passages.min_words = Some(4);
/// let report = passages.run()?;
/// assert_eq!((report.spans, report.repeated_bytes), (1, 23));
/// let spans = std::fs::read_to_string(out.join("spans.tsv"))?;
/// assert_eq!(spans, "key\tstart\tend\tfirst_key\tfirst_start\twords\nb\t0\t23\ta\t2\t4\n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub struct Passages {
    /// Files and folders of documents. They are read two or three times.
    pub inputs: Vec<PathBuf>,
    /// Options for reading the inputs.
    pub input: InputOptions,
    /// How documents with a key that occurred before are treated. Default: [`RepeatedKeys::Number`].
    pub repeated_keys: RepeatedKeys,
    /// The results folder; the run creates it.
    pub out: PathBuf,
    /// Whether results of an earlier run in `out` are replaced.
    pub force: bool,
    /// The smallest number of words in a passage, 1 to 65,535. Default: 50, or 1 if a unit other than words is set.
    pub min_words: Option<usize>,
    /// The unit of passages. Default: runs of words.
    pub unit: Unit,
    /// Whether passages are compared by tokens, the default, or by bytes.
    pub exact: Exact,
    /// Whether a passage may repeat an earlier passage of the same document.
    pub within: bool,
    /// The order of documents. Of equal passages, the one in the first document of this order is kept. Default: the
    /// input order. Documents of [`against`](Self::against) always come first.
    pub keep: KeepOrder,
    /// Whether documents are written without their repeated passages.
    pub cut: bool,
    /// Whether documents are written with the positions of their repeated passages in a field `repeated_spans`.
    pub mark: bool,
    /// The prefix of the name of the field `repeated_spans`.
    pub annotation_prefix: String,
    /// The compression of the written JSON Lines and tables. Other files are not affected. Default: none.
    pub compression: Option<Compression>,
    /// The path of an HTML page with examples of long repeated passages, each next to the passage that it repeats.
    pub html: Option<PathBuf>,
    /// A passage index of earlier documents. All of them precede the documents of the inputs.
    pub against: Option<PathBuf>,
    /// Whether only passages of [`against`](Self::against) count: passages that the documents of the inputs share among
    /// themselves are not listed, cut or marked.
    pub only_against: bool,
    /// A passage index to which the unchanged input texts are added after the results are written. It is created if it
    /// does not exist. It may be the same as [`against`](Self::against).
    pub index: Option<PathBuf>,
    /// Options for splitting texts into words. The shingle width and the shingle hash are not used.
    pub text: TextOptions,
    /// Memory budget in bytes. Data that exceeds it is written to scratch files.
    pub memory: usize,
}

/// The rules by which documents are split into units and hashed.
pub(crate) struct CutSettings {
    pub(crate) cutter: Cutter,
    pub(crate) hasher: Hasher,
    pub(crate) shape: Shape,
    pub(crate) unit: Unit,
    pub(crate) exact: Exact,
    settings: serde_json::Value,
    /// The parameters for splitting texts into words, encoded as an index stores them.
    pub(crate) cutting: String,
    pub(crate) seed: u64,
}

impl CutSettings {
    /// Returns an error if the settings of a passage index differ from these settings.
    pub(crate) fn check(&self, index: &PassageIndex, path: &Path) -> anyhow::Result<()> {
        let made = Params::decode(index.settings()?);
        let checked = made.and_then(|made| made.check_same_sketch(&Params::decode(&self.cutting)?));
        checked
            .and_then(|()| index.check(self.shape, self.seed, &self.cutting))
            .with_context(|| path.display().to_string())
    }

    /// Writes the settings of the job to a file in `folder`.
    pub(crate) fn write_settings(&self, folder: &Path) -> anyhow::Result<()> {
        let mut file = DurableFile::create_new(&folder.join(SETTINGS))?;
        let mut text = serde_json::to_vec_pretty(&self.settings)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.finish().context("cannot make it durable")
    }

    /// Returns the settings with which a passage index was built.
    pub(crate) fn of_index(index: &PassageIndex) -> anyhow::Result<Self> {
        let cutting = index.settings()?.to_owned();
        let shingling = Params::decode(&cutting).context("the settings of the index")?.shingling;
        let cutter = Cutter::new(&shingling)?;
        cutter.check_placed()?;
        Ok(Self {
            cutter,
            hasher: Hasher::new(index.seed()),
            shape: index.shape(),
            unit: Unit::Words,
            exact: Exact::Tokens,
            settings: serde_json::Value::Null,
            cutting,
            seed: index.seed(),
        })
    }
}

/// Default minimum length of a passage in words.
const MIN_WORDS: usize = 50;

impl Passages {
    /// Creates a job with the defaults: finds runs of at least 50 words that an earlier document contains.
    pub fn new<P: Into<PathBuf>>(inputs: impl IntoIterator<Item = P>, out: impl Into<PathBuf>) -> Self {
        Self {
            inputs: inputs.into_iter().map(Into::into).collect(),
            input: InputOptions::default(),
            repeated_keys: RepeatedKeys::Number,
            out: out.into(),
            force: false,
            min_words: None,
            unit: Unit::Words,
            exact: Exact::Tokens,
            within: false,
            keep: KeepOrder::default(),
            cut: false,
            mark: false,
            annotation_prefix: String::new(),
            compression: None,
            html: None,
            against: None,
            only_against: false,
            index: None,
            text: TextOptions::default(),
            memory: crate::settings::resources::MEMORY,
        }
    }

    /// Returns the rules by which documents are split into units and hashed.
    pub(crate) fn how(&self) -> anyhow::Result<CutSettings> {
        let refuse = |why: String| -> anyhow::Result<CutSettings> { Err(InvalidOptions::new(why).into()) };
        if self.input.features {
            return refuse("--features-field: passages are parts of texts, and features have none".into());
        }
        for (given, option) in
            [(self.text.words.is_some(), "words"), (self.text.shingle_hash.is_some(), "shingle-hash")]
        {
            if given {
                return refuse(format!("--{option} goes with shingles; passages have --min-words"));
            }
        }
        AnnotationOptions::check_prefix(&self.annotation_prefix)?;
        if self.cut && self.input.text_form == TextForm::Html {
            return refuse(
                "--cut removes words from fields as they are; leave out --text-form html, or use --mark"
                    .into(),
            );
        }
        if self.compression.is_some() && !self.cut && !self.mark {
            return refuse("--compress goes with --cut or --mark, which write documents".into());
        }
        if !self.annotation_prefix.is_empty() && !self.mark {
            return refuse("--annotation-prefix goes with --mark".into());
        }
        if self.only_against && self.against.is_none() {
            return refuse("--only-against goes with --against, whose passages alone then count".into());
        }
        let min_words = self.min_words.unwrap_or(if self.unit == Unit::Words { MIN_WORDS } else { 1 });
        if !(1..=WIDTH_MAX).contains(&min_words) {
            return refuse(format!("--min-words {min_words}: expected 1 to {WIDTH_MAX}"));
        }
        let shingling = self.text.shingling()?;
        let cutter = Cutter::new(&shingling)?;
        if let Err(error) = cutter.check_placed() {
            return refuse(format!("--{error}"));
        }
        let shape = match self.unit {
            Unit::Words => Shape::words(min_words),
            _ => Shape::units(min_words as u32),
        };
        for (given, option) in [(self.against.is_some(), "against"), (self.index.is_some(), "index")] {
            if given && (self.unit != Unit::Words || self.exact != Exact::Tokens) {
                return refuse(format!(
                    "--{option}: an index has runs of words by their tokens, not units or bytes"
                ));
            }
        }
        let cutting = Params::builder().shingling(shingling.clone()).minhash(1, 1).build()?.encode();
        let exact = if self.exact == Exact::Bytes { "bytes" } else { "tokens" };
        let settings = json!({
            "min_words": min_words,
            "unit": self.unit.name(),
            "exact": exact,
            "within": self.within,
            "keep": self.keep.to_string(),
            "cut": self.cut,
            "mark": self.mark,
            "against": self.against,
            "only_against": self.only_against,
            "index": self.index,
            "tokens": shingling.tokens.to_string(),
            "seed": shingling.seed,
        });
        let (hasher, seed) = (Hasher::new(shingling.seed), shingling.seed);
        Ok(CutSettings { cutter, hasher, shape, unit: self.unit, exact: self.exact, settings, cutting, seed })
    }

    /// Returns the options for writing the field `repeated_spans`; `None` if the job does not write it.
    pub(crate) fn marked(&self) -> Option<AnnotationOptions> {
        self.mark.then(|| AnnotationOptions {
            prefix: self.annotation_prefix.clone(),
            notes: AnnotatedFields::Spans,
        })
    }

    /// Returns the options for reading the inputs, including the number that determines the order of documents.
    pub(crate) fn input_options(&self) -> InputOptions {
        let mut options = self.input.clone();
        options.attached.deciding.keep = self.keep.rules().to_vec();
        if let Some(noted) = self.marked() {
            options.reserved = noted.names();
        }
        options
    }

    /// Opens the inputs. Fails if an input can be read only once, such as standard input.
    pub(crate) fn open(&self) -> anyhow::Result<Documents> {
        let documents = Documents::open(&self.inputs, &self.input_options())?;
        documents.kinds().check_compression(self.compression.is_some(), true)?;
        if documents.total_bytes().is_none() {
            return Err(InvalidOptions::new(
                "passages reads its inputs twice or more, and standard input or a pipe can be read only once; write it \
                 to a file",
            )
            .into());
        }
        Ok(documents)
    }

    /// Returns the size of the filter in bytes: enough for the fingerprints selected from inputs of `total` bytes, but
    /// at most a quarter of the memory budget, and at least 64 KiB. `total` is the size of the files, so for compressed
    /// inputs the filter is smaller than ideal.
    pub(crate) fn filter_bytes(&self, total: Option<u64>) -> usize {
        let upper = self.memory / 4;
        let wanted = total.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(upper);
        wanted.clamp(1 << 16, upper.max(1 << 16))
    }
}
