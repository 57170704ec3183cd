//! Reads the documents of all inputs, in order.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{anyhow, bail};
use twindex::params::Shingling;
use twindex::sketch::Cutter;

use crate::error::InvalidOptions;
use crate::input::batch::{Batch, Buffers, ChunkTotals};
use crate::input::content::Content;
use crate::input::counts::{BAD_KEPT, Counts, Forms};
use crate::input::fields::attached::OwnAttached;
use crate::input::fields::record::Ids;
use crate::input::headers::Headers;
use crate::input::inputs::{Inputs, Source};
use crate::input::open::folder::{self, Patterns};
use crate::input::open::kind::{self, Kind, is_named_as_text, is_part, kind_of_folder};
use crate::input::open::reader::{self, Origin};
use crate::input::options::{InputFormat, InputKinds, InputOptions};
use crate::input::parquet::delta;
use crate::input::parser::Parser;
use crate::input::part_counts::PartCounts;
use crate::input::place::{Place, Problem, for_people, not_utf8, os_bytes};
use crate::input::records::Records;
use crate::input::text::charset::{self, Charset};
use crate::work::numbers::counted;

/// The names of the files beside Arrow files by which Hugging Face describes a dataset. They contain no documents.
const DATASET_FILES: [&str; 3] = ["dataset_dict.json", "dataset_info.json", "state.json"];
/// Bytes of records that are read ahead to learn the width of fingerprints.
const AHEAD_BYTES: usize = 1 << 16;

/// The documents of all inputs, in order.
pub struct Documents {
    parser: Parser,
    skip_bad: u64,
    /// The inputs; none while other threads have [taken](Self::take_inputs) them to read.
    inputs: Inputs,
    counts: Counts,
    /// The counts of the inputs that are read at the same time as those in `counts`.
    part_counts: PartCounts,
    /// Number of bad records so far, in all parts.
    skipped: u64,
    consumed: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    /// The patterns that select files in folders.
    patterns: Patterns,
    kinds: InputKinds,
    /// The files that will be read, without links, if there is more than one input.
    seen: HashSet<PathBuf>,
    /// The inputs and options as given by the caller, for opening the inputs again.
    asked: (Vec<PathBuf>, InputOptions),
}

impl Documents {
    /// Opens the inputs. Checks the names of all inputs without reading documents, so that a wrong name is reported
    /// before anything is written.
    ///
    /// Folders are listed here, which takes about a hundred bytes of memory per file. Files that are added to a folder
    /// later are not read.
    ///
    /// # Errors
    ///
    /// An input does not exist, or cannot be opened, read or listed. The name of an input indicates a compression that
    /// its content does not have. A folder has no files of the required format, `-` is given twice, or key and text are
    /// the same field. The message names the input. [`InvalidOptions`] if an option has no effect on these inputs.
    pub fn open(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        let documents = Self::open_part(paths, options)?;
        documents.kinds.check(options)?;
        Ok(documents)
    }

    /// Like [`Documents::open`], for some of the inputs of a command. An option that has no effect on these inputs is
    /// accepted.
    ///
    /// # Errors
    ///
    /// The errors of [`Documents::open`], except the error for an option without effect.
    pub fn open_part(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        Self::open_with(paths, options, &mut || {
            if is_stdin_closed() { Box::new(ClosedStdin) } else { Box::new(std::io::stdin()) }
        })
    }

    /// Returns the kinds of inputs. Does not open standard input or pipes.
    ///
    /// # Errors
    ///
    /// The errors of [`Documents::open`], except the error for an option without effect.
    pub fn kinds_of(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<InputKinds> {
        let is_file = |path: &Path| path.is_file() || path.is_dir();
        let (files, streams): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.iter().cloned().partition(|path| !is_stdin(path) && is_file(path));
        let mut documents = Self::empty(options)?;
        for path in &files {
            documents.add(path, options.format)?;
        }
        for path in &streams {
            documents.add_stream(path, path, Box::new(std::io::empty()), options.format);
        }
        Ok(documents.kinds)
    }

    /// Returns an error if an option has no effect on any of these inputs, which are then opened in parts.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`] if an option has no effect, and the errors of [`Documents::open`].
    pub fn check_options(paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<()> {
        if InputKinds::some_depend_on_kinds(options) {
            Self::kinds_of(paths, options)?.check(options)?;
        }
        Ok(())
    }

    /// Returns the kinds of the inputs.
    #[must_use]
    pub fn kinds(&self) -> InputKinds {
        self.kinds
    }

    /// Like [`Documents::open`], for documents that are parsed and written together with those of `self`. Both share
    /// the headers of tables and the normalization of texts.
    ///
    /// # Errors
    ///
    /// The errors of [`Documents::open`].
    pub fn open_second(&self, paths: &[PathBuf], options: &InputOptions) -> anyhow::Result<Self> {
        let mut documents = Self::open_part(paths, options)?;
        documents.parser.headers = self.parser.headers.clone();
        documents.parser.normaliser.clone_from(&self.parser.normaliser);
        Ok(documents)
    }

    /// Like [`Documents::open`], but obtains standard input from the function `stdin`.
    pub fn open_with(
        paths: &[PathBuf],
        options: &InputOptions,
        stdin: &mut dyn FnMut() -> Box<dyn Read + Send>,
    ) -> anyhow::Result<Self> {
        options.check_names()?;
        if options.id_field == options.text_field {
            let what = match options.fingerprint {
                Some(_) => "fingerprint",
                None if options.features => "features",
                None => "text",
            };
            bail!("the id and the {what} are both to be read from the field {:?}", options.id_field);
        }
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            bail!("`-`, standard input, is named twice; it can be read only once");
        }
        let mut documents = Self::empty(options)?;
        documents.asked.0 = paths.to_vec();
        for path in paths {
            if is_stdin(path) {
                documents.add_stream(path, Place::STDIN.as_ref(), stdin(), options.format);
            } else {
                documents.add(path, options.format)?;
            }
        }
        if options.features
            && let Some(source) = documents
                .inputs
                .sources
                .iter()
                .find(|source| !matches!(source, Source::Records(_, Kind::Jsonl)))
        {
            bail!(
                "{}: no JSONL, which --features-field {} asks for (--format jsonl takes any file so)",
                source.name().display(),
                options.text_field
            );
        }
        let has_columns = |source: &Source| {
            matches!(
                source,
                Source::Records(_, Kind::Jsonl | Kind::Csv | Kind::Tsv | Kind::Parquet | Kind::Arrow)
            )
        };
        if options.fingerprint.is_some()
            && let Some(source) = documents.inputs.sources.iter().find(|source| !has_columns(source))
        {
            bail!(
                "{}: no JSONL, CSV, TSV, Parquet or Arrow, whose fields --fingerprint-field {} asks for (--format takes any file as \
                 one of these)",
                source.name().display(),
                options.text_field
            );
        }
        if options.encoding.is_some_and(Charset::is_utf16)
            && let Some(source) = documents
                .inputs
                .sources
                .iter()
                .find(|source| matches!(source, Source::Records(_, Kind::Jsonl | Kind::Csv | Kind::Tsv)))
        {
            bail!("{}: {}", source.name().display(), not_utf8("UTF-16"));
        }
        // A field name that occurs in no record is reported after reading, because other inputs of the command may have
        // the field.
        documents.counts.named.value.clone_from(&options.attached.value);
        if options.attached.any()
            && let Some(source) =
                documents.inputs.sources.iter().find(|source| !matches!(source, Source::Records(..)))
        {
            let asked = options.attached.options();
            let ask = if asked.len() == 1 { "asks" } else { "ask" };
            bail!(
                "{}: text files have no fields, which {} {ask} for; JSONL, CSV, TSV, Parquet and Arrow files have, and the records \
                 of web archives",
                source.name().display(),
                asked.join(" and ")
            );
        }
        // guard: inputs come in the order in which they are named
        documents.inputs.sources.reverse();
        Ok(documents)
    }

    /// Creates documents without inputs.
    fn empty(options: &InputOptions) -> Result<Self, InvalidOptions> {
        let consumed = Arc::default();
        Ok(Self {
            parser: Parser::new(options),
            // guard: no bad record less than allowed is skipped
            // without it: options.skip_bad -> options.skip_bad.saturating_sub(1)
            skip_bad: options.skip_bad,
            inputs: Inputs::new(options.streaming, &consumed),
            counts: Counts::default(),
            part_counts: PartCounts::default(),
            skipped: 0,
            consumed,
            total_bytes: Some(0),
            patterns: Patterns::new(&options.globs).map_err(InvalidOptions::new)?,
            kinds: InputKinds::default(),
            seen: HashSet::new(),
            asked: (Vec::new(), options.clone()),
        })
    }

    /// Returns whether all keys are created from files and line numbers, which makes them unique.
    pub(crate) fn are_keyed_by_line(&self) -> bool {
        let is_of_records = |source: &Source| matches!(source, Source::Records(..));
        self.parser.fields.ids == Ids::Line && self.inputs.sources.iter().all(is_of_records)
    }

    /// Opens the same inputs again.
    ///
    /// # Errors
    ///
    /// One of the inputs is a pipe, or one of the errors of [`Documents::open`] occurs.
    pub fn again(&self) -> anyhow::Result<Self> {
        let (paths, options) = &self.asked;
        if let Some(source) = self.inputs.sources.iter().find(|source| source.is_stream()) {
            bail!(
                "{}: can be read only once, and the last of a repeated key is known at the end; write it to a file",
                source.name().display()
            );
        }
        Self::open_part(paths, options)
    }

    /// Returns the files that will be read, except pipes.
    pub(crate) fn named_files(&self) -> Vec<PathBuf> {
        let mut named = Vec::new();
        for source in &self.inputs.sources {
            match source {
                Source::Records(Origin::File(path), _) | Source::Whole(Origin::File(path), ..) => {
                    named.push(path.clone());
                }
                Source::Folder { root, files } => {
                    named.extend(files.as_slice().iter().map(|file| root.join(&file.below)));
                }
                Source::Records(Origin::Stream { .. }, _) | Source::Whole(Origin::Stream { .. }, ..) => {}
            }
        }
        named
    }

    /// Passes each file that will be read to `each`, in order.
    ///
    /// # Errors
    ///
    /// One of the inputs is a pipe, which cannot be read again, or `each` fails.
    pub(crate) fn for_each_file(
        &self,
        mut each: impl FnMut(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for source in self.inputs.sources.iter().rev() {
            match source {
                Source::Records(Origin::File(path), _) | Source::Whole(Origin::File(path), ..) => each(path)?,
                Source::Folder { root, files } => {
                    files.as_slice().iter().try_for_each(|file| each(&root.join(&file.below)))?;
                }
                Source::Records(Origin::Stream { name, .. }, _)
                | Source::Whole(Origin::Stream { name, .. }, ..) => {
                    return Err(InvalidOptions::new(format!(
                        "{}: can be read only once, and --resume reads the inputs again; write it to a file",
                        name.display()
                    ))
                    .into());
                }
            }
        }
        Ok(())
    }

    /// Adds the file or folder at `path`.
    fn add(&mut self, path: &Path, format: InputFormat) -> anyhow::Result<()> {
        let metadata = fs::metadata(path).map_err(|error| {
            let advice = match path.to_str() {
                Some(name) if name.contains("://") => {
                    "a URL, where a file is needed: download it, or pipe it in as `-`"
                }
                Some(name) if name.contains(['*', '?']) => {
                    "no file has this name; name the folder, and the pattern by --glob"
                }
                _ => return reader::cannot(path, "read", &error),
            };
            reader::of_file(path, advice.into())
        })?;
        if metadata.is_dir() {
            return self.add_folder(path, format);
        }
        let resolved = || fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if metadata.is_file() && self.is_seen(path, resolved) {
            return Ok(());
        }
        if !metadata.is_file() {
            let file = fs::File::open(path).map_err(|error| reader::cannot(path, "open", &error))?;
            self.add_stream(path, path, Box::new(file), format);
            return Ok(());
        }
        let kind = match format {
            InputFormat::Auto => match Kind::of_name(path) {
                None if !is_named_as_text(path) => self.by_content(path)?,
                named => named,
            },
            InputFormat::Records(kind) => Some(kind),
            InputFormat::Text => None,
        };
        let plain = Kind::of_name(&reader::without_compression(path)).filter(|kind| kind.is_of_columns());
        if let (None, InputFormat::Auto, Some(plain)) = (kind, format, plain) {
            bail!(
                "{}: {} is read in parts, so not out of a packed file; unpack it (its columns are packed inside)",
                path.display(),
                plain.title()
            );
        }
        self.check_file(path, kind)?;
        self.add_total(Some(metadata.len()));
        let origin = Origin::File(path.to_owned());
        self.kinds.add(kind);
        self.inputs.sources.push(if let Some(kind) = kind {
            Source::Records(origin, kind)
        } else {
            let key = os_bytes(reader::without_compression(path).as_os_str());
            Source::Whole(origin, key, metadata.len())
        });
        Ok(())
    }

    /// Returns whether an earlier input has the file with this resolved path. Such a file is counted, and read only once.
    fn is_seen(&mut self, given: &Path, resolved: impl FnOnce() -> PathBuf) -> bool {
        if self.asked.0.len() < 2 {
            return false;
        }
        let resolved = resolved();
        let is_seen = self.seen.contains(&resolved);
        if is_seen {
            self.counts.named_twice += 1;
            self.counts.first_named_twice.get_or_insert_with(|| given.display().to_string());
        } else {
            self.seen.insert(resolved);
        }
        is_seen
    }

    /// Detects the format of a file whose name indicates none from its content; the summary reports the format.
    fn by_content(&mut self, path: &Path) -> Result<Option<Kind>, Problem> {
        let plain = Kind::of_name(&reader::without_compression(path));
        let kind = if plain.is_some_and(Kind::is_of_columns) { None } else { kind::kind(path)? };
        if let Some(kind) = kind {
            self.count_by_content(path, kind);
        } else {
            let counts = &mut self.counts;
            counts.files_as_one_text += 1;
            counts.first_as_one_text.get_or_insert_with(|| path.display().to_string());
        }
        Ok(kind)
    }

    /// Returns an error if a file cannot be read, is not in the format that its name indicates, or lacks a named
    /// column. Called before documents are read.
    fn check_file(&self, path: &Path, kind: Option<Kind>) -> Result<(), Problem> {
        let Some(kind @ (Kind::Csv | Kind::Tsv | Kind::Parquet | Kind::Arrow)) = kind else {
            let may_break = matches!(kind, Some(Kind::Wet | Kind::Warc | Kind::Arc));
            return reader::check_file(path, may_break);
        };
        // These headers are discarded: headers are read again and numbered when the files are read in order.
        let parser = Parser { headers: Headers::default(), ..self.parser.clone() };
        let origin = Origin::File(path.to_owned());
        Records::open(origin, kind, &parser, parser.record_bytes_max, &Arc::default()).map(drop)
    }

    /// Adds a stream that can be opened only once. Its format is JSON Lines unless another one is set.
    fn add_stream(&mut self, path: &Path, name: &Path, reader: Box<dyn Read + Send>, format: InputFormat) {
        self.add_total(None);
        let origin = Origin::Stream { name: Arc::from(name), reader };
        let kind = match format {
            InputFormat::Auto => Some(Kind::Jsonl),
            InputFormat::Records(kind) => Some(kind),
            InputFormat::Text => None,
        };
        self.kinds.add(kind);
        self.inputs.sources.push(match kind {
            Some(kind) => Source::Records(origin, kind),
            None => Source::Whole(origin, os_bytes(path.as_os_str()), 0),
        });
    }

    /// Adds the files in a folder: as records if all have one format, otherwise as one document each.
    fn add_folder(&mut self, root: &Path, format: InputFormat) -> anyhow::Result<()> {
        let kind = match format {
            InputFormat::Records(kind) => Some(kind),
            InputFormat::Auto | InputFormat::Text => None,
        };
        let is_wanted = |path: &Path| {
            kind.is_none() || Kind::of_name(path) == kind || Kind::of_name(path).is_none() && is_part(path)
        };
        let mut listing = folder::list(root, &self.patterns, is_wanted);
        if let Some((table, format)) = &listing.unread_table {
            bail!(
                "{}: {format}: which of its files are current is in its metadata, which twindex does not read; export it as \
                 Parquet, or name its files",
                table.display()
            );
        }
        let (stale, first_stale) = delta::keep_current(root, &mut listing)?;
        self.counts.stale += stale;
        if let Some(first) = first_stale {
            self.counts.first_stale.get_or_insert_with(|| first.display().to_string());
        }
        if format == InputFormat::Auto {
            return self.add_folder_by_names(root, listing);
        }
        if kind.is_some() {
            listing.hide_underscored(root, &self.patterns);
        }
        self.add_listing(root, listing, kind)
    }

    /// Adds the listed files of a folder. If all have one format, they are read as records. Files with names of parts
    /// (`part-0000`) indicate no format, so it is detected from their content, and the summary reports them.
    fn add_folder_by_names(&mut self, root: &Path, mut listing: folder::Listing) -> anyhow::Result<()> {
        if listing.files.iter().any(|file| Kind::of_name(&file.below) == Some(Kind::Arrow)) {
            let (counts, bytes) = (&mut self.counts, &mut listing.bytes);
            listing.files.retain(|file| {
                let is_other = !DATASET_FILES.iter().any(|name| file.below.ends_with(name));
                if !is_other {
                    *bytes -= file.bytes;
                    counts.dataset_files += 1;
                    let shown = root.join(&file.below).display().to_string();
                    counts.first_dataset_file.get_or_insert(shown);
                }
                is_other
            });
        }
        let kind = kind_of_folder(root, &listing)?;
        if let Some(kind) = kind {
            listing.hide_underscored(root, &self.patterns);
            for part in listing.files.iter().filter(|file| Kind::of_name(&file.below).is_none()) {
                self.count_by_content(&root.join(&part.below), kind);
            }
        }
        self.add_listing(root, listing, kind)
    }

    /// Counts a file whose format was detected from its content.
    fn count_by_content(&mut self, path: &Path, kind: Kind) {
        let counts = &mut self.counts;
        counts.kinds_by_content += 1;
        let name = kind.suffixes()[0];
        counts.first_by_content.get_or_insert_with(|| format!("{} as {name}", path.display()));
    }

    /// Adds the listed files of a folder: as records of format `kind` or, if `kind` is `None`, as one document each.
    pub(crate) fn add_listing(
        &mut self,
        root: &Path,
        mut listing: folder::Listing,
        kind: Option<Kind>,
    ) -> anyhow::Result<()> {
        for bad in &listing.unreadable {
            self.skip(bad)?;
        }
        let hidden = match listing.hidden {
            0 => String::new(),
            hidden => format!(
                "; {} left out, whose names begin with . or _ (--glob)",
                counted(hidden, "entry of it")
            ),
        };
        let fits = if self.patterns.are_given() { " as --glob wants it" } else { "" };
        if kind.is_none() && listing.files.is_empty() && listing.unreadable.is_empty() {
            bail!("{}: no file{fits} below it{hidden}", root.display());
        }
        if let Some(kind) = kind
            && listing.files.is_empty()
        {
            let names: Vec<String> = kind.suffixes().iter().map(|suffix| format!(".{suffix}")).collect();
            let names = match names.split_last() {
                Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
                _ => names.concat(),
            };
            let compressed = if kind.is_of_columns() { "" } else { ", also compressed," };
            bail!("{}: no file named {names}{compressed}{fits} below it{hidden}", root.display());
        }
        // A link below the folder is a file of its own.
        let resolved = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        listing.files.retain(|file| {
            let is_seen = self.is_seen(&root.join(&file.below), || resolved.join(&file.below));
            listing.bytes -= if is_seen { file.bytes } else { 0 };
            !is_seen
        });
        self.counts.ignored += listing.ignored;
        self.counts.hidden += listing.hidden;
        if let Some(first) = listing.first_hidden {
            self.counts.first_hidden.get_or_insert_with(|| first.display().to_string());
        }
        self.add_total(Some(listing.bytes));
        self.kinds.add_folder();
        if !listing.files.is_empty() {
            self.kinds.add(kind);
        }
        let Some(kind) = kind else {
            self.inputs
                .sources
                .push(Source::Folder { root: root.to_owned(), files: listing.files.into_iter() });
            return Ok(());
        };
        for file in &listing.files {
            let path = root.join(&file.below);
            self.check_file(&path, Some(kind))?;
            self.inputs.sources.push(Source::Records(Origin::File(path), kind));
        }
        Ok(())
    }

    /// Adds the size of an input to the total size, which is unknown if any size is unknown.
    fn add_total(&mut self, bytes: Option<u64>) {
        self.total_bytes = self.total_bytes.zip(bytes).map(|(total, bytes)| total + bytes);
    }

    /// Replaces the content of `batch` with the next records, about `bytes` bytes. After the last record, the batch is
    /// empty. If an error ended the reading, [`Batch::take_failure`] returns the error, and later batches are empty.
    pub fn next_batch(&mut self, batch: &mut Batch, bytes: usize) {
        self.inputs.next_batch(&self.parser, batch, bytes);
        batch.load(&self.parser);
    }

    /// Returns the number of bits of the first fingerprint; `None` if the first records have none. The records are read
    /// ahead, and are part of the next batch.
    pub fn fingerprint_bits(&mut self) -> Option<usize> {
        let (mut batch, mut bits) = (Batch::default(), None);
        self.next_batch(&mut batch, AHEAD_BYTES);
        // An error is reported when the batch is processed.
        let _ = batch.whole().read(&self.parser, &mut Buffers::default(), |record| {
            if let Content::Fingerprint(code) = record.content {
                bits = bits.or(Some(code.bits()));
            }
            Ok(())
        });
        self.inputs.ahead = Some(batch);
        bits
    }

    /// Takes the inputs out of `self`, so that other threads can read them.
    pub(crate) fn take_inputs(&mut self) -> Inputs {
        self.inputs.take()
    }

    /// Returns whether all inputs can be read again.
    pub(crate) fn are_files(&self) -> bool {
        self.inputs.sources.iter().all(|source| !source.is_stream())
    }

    /// Begins or continues to count the documents of a part of the inputs. Parts are numbered from 0, in input order.
    pub(crate) fn begin_part(&mut self, part: u32) {
        self.part_counts.begin(part, &mut self.counts);
    }

    /// Ends a part. After the end of all parts, the counts are those of all inputs.
    ///
    /// # Errors
    ///
    /// A field has several types.
    pub(crate) fn end_part(&mut self, part: u32) -> anyhow::Result<()> {
        self.part_counts.end(part, &mut self.counts);
        self.counts.named.seen.check_types(&self.parser.fields)
    }

    /// Makes the parser treat texts as identical if they are equal after the normalization and folding of `shingling`.
    /// A text that is empty after folding is identical only to texts with the same bytes. The tokenizer of `shingling`
    /// has no effect.
    ///
    /// # Errors
    ///
    /// This build does not support the normal form.
    pub fn compare_normalised(&mut self, shingling: &Shingling) -> anyhow::Result<()> {
        let cutter = Cutter::new(shingling)?;
        self.parser.normaliser = cutter.normalises().then(|| Arc::new(cutter));
        Ok(())
    }

    /// Returns the parser of records. Each thread that parses uses a clone.
    #[must_use]
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// Adds the counts of a chunk. Must be called in the order of the input.
    ///
    /// # Errors
    ///
    /// There is one bad record more than [`InputOptions::skip_bad`]; the message names the position of this record.
    pub fn account(&mut self, seen: ChunkTotals) -> anyhow::Result<()> {
        let ChunkTotals { documents, text_bytes, no_documents, revisits, keyed_by_line, bad, .. } = seen;
        let counts = &mut self.counts;
        counts.first_replaced = counts.first_replaced.take().or(seen.first_replaced);
        counts.skipped_lossy += seen.skipped_lossy;
        counts.no_texts.add(&seen.no_texts);
        counts.cut_archives += seen.cut_archives;
        counts.first_cut = counts.first_cut.take().or(seen.first_cut);
        counts.unseen_pages += seen.unseen_pages;
        counts.contentless += seen.contentless;
        counts.first_contentless = counts.first_contentless.take().or(seen.first_contentless);
        counts.marked_up += seen.marked_up;
        counts.detected_encodings += seen.detected;
        if seen.detected > 0 {
            counts.encoding_detector = Some(charset::DETECTOR);
        }
        self.counts.documents += documents;
        self.counts.no_documents += no_documents;
        self.counts.revisits += revisits;
        self.counts.keyed_by_line += keyed_by_line;
        self.counts.text_bytes += text_bytes;
        self.counts.replaced_utf8 += seen.replaced;
        self.counts.partial_texts += seen.partial_texts;
        self.counts.first_partial = self.counts.first_partial.take().or(seen.first_partial);
        self.counts.named.seen.add(&seen.fields);
        self.counts.named.seen.check_types(&self.parser.fields)?;
        bad.iter().try_for_each(|bad| self.skip(bad))
    }

    /// Checks the counts. Must be called after the counts of all chunks were added.
    ///
    /// # Errors
    ///
    /// The errors of [`Counts::check`].
    pub(crate) fn check_counts(&self) -> anyhow::Result<()> {
        if self.asked.1.is_part { Ok(()) } else { self.counts.check_for(&self.parser.fields) }
    }

    /// Adds the counts of texts by normal form.
    pub fn account_forms(&mut self, forms: Forms) {
        self.counts.forms.add(forms);
    }

    /// If `error` is the error of a record, counts its document as a bad record. The document, whose text has
    /// `text_bytes` bytes, must have been counted as returned; this count is reversed. Must be called in the order of
    /// the input.
    ///
    /// # Errors
    ///
    /// There is one bad record more than [`InputOptions::skip_bad`]; the message names its position. An `error` that is
    /// not the error of a record is returned unchanged.
    pub fn refuse(&mut self, error: anyhow::Error, text_bytes: u64) -> anyhow::Result<()> {
        let bad = error.downcast::<Problem>()?;
        self.counts.documents -= 1;
        self.counts.text_bytes -= text_bytes;
        self.skip(&bad)
    }

    /// Counts a document whose key is repeated. If the document is used, `numbered` is its new key, to which a number
    /// was added. If `numbered` is `None`, the document is skipped.
    pub fn repeated(&mut self, place: &Place, key: &[u8], numbered: Option<&[u8]>, text_bytes: u64) {
        let counts = &mut self.counts;
        let shown = |key: &[u8]| String::from_utf8_lossy(key).escape_debug().to_string();
        let what = if let Some(numbered) = numbered {
            counts.numbered_keys += 1;
            format!("`{}` is `{}`", shown(key), shown(numbered))
        } else {
            counts.repeated_keys += 1;
            counts.documents -= 1;
            counts.text_bytes -= text_bytes;
            format!("`{}`", shown(key))
        };
        counts.first_repeated.get_or_insert_with(|| format!("{place}: {}", for_people(&what)));
    }

    /// Counts whether a document has the value field.
    pub fn count_attached(&mut self, attached: &OwnAttached) {
        let named = &mut self.counts.named;
        if named.value.is_some() {
            named.checked += 1;
            named.valued += u64::from(!attached.value.is_empty());
        }
    }

    /// Returns the counts of the documents read and skipped so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the number of bytes read from the inputs, before decompression.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Returns the value that [`Documents::bytes_read`] has at the end, unless a file changes; `None` if standard input
    /// or a pipe is among the inputs.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Counts a bad record. Returns an error if no further bad record is allowed.
    fn skip(&mut self, bad: &Problem) -> anyhow::Result<()> {
        // guard: no bad record more than allowed is skipped
        // without it: self.skip_bad -> self.skip_bad.saturating_add(1)
        if self.skipped == self.skip_bad {
            return Err(match self.skip_bad {
                0 => anyhow!("{bad}; --skip-bad N passes over up to N bad records"),
                allowed => {
                    anyhow!("{bad}; as many bad records as --skip-bad {allowed} allows came before it")
                }
            });
        }
        self.skipped += 1;
        self.counts.skipped_bad += 1;
        if self.counts.first_bad.len() < BAD_KEPT {
            self.counts.first_bad.push(bad.to_string());
        }
        Ok(())
    }
}

/// Returns whether the process was started without standard input. The standard library then opens the null device in its
/// place, for reading and writing, as nobody opens it for input.
#[cfg(unix)]
fn is_stdin_closed() -> bool {
    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};
    let (stdin, null) = (std::io::stdin(), stat("/dev/null"));
    let is_null = fstat(&stdin).is_ok_and(|own| {
        FileType::from_raw_mode(own.st_mode) == FileType::CharacterDevice
            && null.is_ok_and(|null| null.st_rdev == own.st_rdev)
    });
    is_null && fcntl_getfl(&stdin).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

#[cfg(not(unix))]
fn is_stdin_closed() -> bool {
    false
}

/// Standard input of a process that was started without it.
struct ClosedStdin;

impl Read for ClosedStdin {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("standard input is closed; name a file, or pipe the documents in"))
    }
}

/// Returns whether `path` is `-`, which means standard input.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
