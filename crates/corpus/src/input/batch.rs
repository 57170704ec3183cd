//! Batches of records that were read from inputs and not yet parsed, and the parsing of these records.
//!
//! The reader only copies bytes and finds line ends. The expensive work, such as parsing JSON and HTML, is done on the
//! [`Chunk`]s of a batch, by any number of threads. Parsed values borrow from the record, so no memory is allocated
//! for each document.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use xxhash_rust::xxh3::Xxh3Default;

use crate::input::archives::http;
use crate::input::content::{Content, Ending, Form, FoundLine, Loss};
use crate::input::counts::{AttachedSeen, FieldsSeen, NoTexts};
use crate::input::fields::attached::OwnAttached;
use crate::input::fields::number::MissingField;
use crate::input::open::folder;
use crate::input::options::TextForm;
use crate::input::parser::{self, ParsedLine, Parser};
use crate::input::partition::{self, Partitioned};
use crate::input::place::{Place, Problem, os_bytes};
use crate::input::text::lossy::{self, ABSENT};
use crate::input::whole_files::{FileContent, PassedOver, UnreadFile, WholeFile};

/// Size in bytes of a batch that many threads share. It is small enough to stay in the cache until it is parsed.
pub const BATCH_BYTES: usize = if cfg!(fuzzing) { 2 << 10 } else { 2 << 20 };
/// Maximum number of records in a batch.
const BATCH_RECORDS: usize = if cfg!(fuzzing) { 24 } else { 16_384 };
/// Number of bytes added to the length of each record when a batch is split into chunks. It is the cost of a
/// record that does not depend on its length, so that chunks of many short records do not take longer than others.
const RECORD_BYTES: usize = 32;

/// Records of one or more inputs, in order.
#[derive(Debug, Default)]
pub struct Batch {
    /// The lines of all records, without line ends. In other formats, the bytes of a record; see [`Form`].
    bytes: Vec<u8>,
    records: Vec<RawRecord>,
    /// The names of the streams from which lines were read; records refer to them by index.
    names: Vec<Arc<Path>>,
    /// Total size of the records in bytes.
    size: usize,
    failure: Option<anyhow::Error>,
}

/// A record before it is parsed.
#[derive(Debug)]
enum RawRecord {
    /// A line: its byte range, its form, its number, and the index of its stream's name.
    Line {
        start: usize,
        end: usize,
        form: Form,
        number: u64,
        name: usize,
        /// The offset of the line in its file; `None` if the line cannot be read again from the file.
        offset: Option<u64>,
        ending: Ending,
        /// The key, if it is stored outside the line.
        key: Option<Box<[u8]>>,
    },
    Whole(Box<WholeFile>),
    /// A file that [`Batch::load`] reads.
    Unread(Box<UnreadFile>),
    Bad(Box<Problem>),
    PassedOver(Box<PassedOver>),
    /// A truncated web archive ends here. The message names the position.
    Cut(Box<str>),
}

impl From<FileContent> for RawRecord {
    fn from(content: FileContent) -> Self {
        match content {
            FileContent::Document(whole) => Self::Whole(Box::new(whole)),
            FileContent::Bad(problem) => Self::Bad(Box::new(problem)),
            FileContent::PassedOver(why) => Self::PassedOver(Box::new(why)),
        }
    }
}

impl RawRecord {
    fn size(&self) -> usize {
        RECORD_BYTES
            + match self {
                Self::Line { start, end, .. } => end - start,
                Self::Whole(whole) => whole.text.shown.len(),
                Self::Unread(file) => usize::try_from(file.bytes).unwrap_or(usize::MAX / 2),
                Self::Bad(_) | Self::PassedOver(_) | Self::Cut(_) => 0,
            }
    }
}

impl Batch {
    /// Empties the batch. Frees its memory beyond `4 * bytes` bytes.
    pub(crate) fn clear(&mut self, bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(4 * bytes);
        self.records.clear();
        self.names.clear();
        self.size = 0;
        self.failure = None;
    }

    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        self.size >= bytes || self.records.len() >= BATCH_RECORDS
    }

    /// Returns whether all inputs were read to their end: the batch has neither records nor an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.records.is_empty() && self.failure.is_none()
    }

    /// Returns the total size of the records in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.size
    }

    /// Returns whether the batch has records.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Takes the error that stopped reading after the records of this batch, if any.
    pub fn take_failure(&mut self) -> Option<anyhow::Error> {
        self.failure.take()
    }

    pub(crate) fn fail(&mut self, failure: anyhow::Error) {
        self.failure = Some(failure);
    }

    pub(crate) fn push_line(
        &mut self,
        form: Form,
        FoundLine { line, offset, ending }: FoundLine<'_>,
        number: u64,
        name: Arc<Path>,
        key: Option<Vec<u8>>,
    ) {
        if !self.names.last().is_some_and(|last| Arc::ptr_eq(last, &name)) {
            self.names.push(name);
        }
        let (start, name) = (self.bytes.len(), self.names.len() - 1);
        self.bytes.extend_from_slice(line);
        let key = key.map(Vec::into_boxed_slice);
        self.push(RawRecord::Line { start, end: self.bytes.len(), form, number, name, offset, ending, key });
    }

    pub(crate) fn push_unread(&mut self, file: UnreadFile) {
        self.push(RawRecord::Unread(Box::new(file)));
    }

    pub(crate) fn push_file(&mut self, content: FileContent) {
        self.push(content.into());
    }

    /// Adds the message about a truncated web archive, at the position after its last record.
    pub(crate) fn push_cut(&mut self, cut: String) {
        self.push(RawRecord::Cut(cut.into_boxed_str()));
    }

    pub(crate) fn push_bad(&mut self, bad: Problem) {
        self.push(RawRecord::Bad(Box::new(bad)));
    }

    fn push(&mut self, record: RawRecord) {
        self.size += record.size();
        self.records.push(record);
    }

    /// Reads the files that were added to the batch without their content. If a file that the user named cannot be
    /// read, the batch ends before that file, and the error becomes the failure of the batch.
    pub(crate) fn load(&mut self, parser: &Parser) {
        for at in 0..self.records.len() {
            // `size` is not updated: it counts the file with the size that was listed.
            let RawRecord::Unread(file) = &mut self.records[at] else { continue };
            match std::mem::take(&mut **file).read(parser) {
                Ok(content) => self.records[at] = content.into(),
                Err(problem) => {
                    self.records.truncate(at);
                    self.failure = Some(problem.into());
                    return;
                }
            }
        }
    }

    /// Returns a hash of the content, which identifies the batch when the inputs are read again.
    pub(crate) fn digest(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(&self.bytes);
        for record in &self.records {
            match record {
                RawRecord::Line { start, end, form, number, name: _, offset, ending, key } => {
                    let (offset, is_there) = (offset.unwrap_or(0), u64::from(offset.is_some()));
                    let [kind, of_kind] = form.numbers().map(u64::from);
                    let how = kind | (*ending as u64) << 8;
                    for part in [*start as u64, *end as u64, *number, offset, is_there, how, of_kind] {
                        hash.update(&part.to_le_bytes());
                    }
                    hash.update(key.as_deref().unwrap_or_default());
                }
                RawRecord::Whole(whole) => {
                    hash.update(&(whole.key.len() as u64).to_le_bytes());
                    hash.update(&whole.key);
                    hash.update(whole.text.shown.as_bytes());
                    hash.update(whole.text.lossy.as_deref().unwrap_or_default());
                }
                RawRecord::Bad(bad) => hash.update(bad.to_string().as_bytes()),
                RawRecord::PassedOver(_) | RawRecord::Unread(_) => {}
                RawRecord::Cut(cut) => hash.update(cut.as_bytes()),
            }
        }
        hash.digest()
    }

    /// Returns the whole batch as one chunk.
    #[must_use]
    pub fn whole(&self) -> Chunk<'_> {
        Chunk { batch: self, records: &self.records }
    }

    /// Splits the batch into chunks of about `bytes` bytes, each with at least one record.
    #[must_use]
    pub fn chunks(&self, bytes: usize) -> Vec<Chunk<'_>> {
        let mut chunks = Vec::new();
        let (mut start, mut size) = (0, 0);
        for (at, record) in self.records.iter().enumerate() {
            size += record.size();
            if size >= bytes || at + 1 == self.records.len() {
                chunks.push(Chunk { batch: self, records: &self.records[start..=at] });
                (start, size) = (at + 1, 0);
            }
        }
        chunks
    }
}

/// Consecutive records of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'b> {
    batch: &'b Batch,
    records: &'b [RawRecord],
}

/// Counts of a chunk's documents, which [`Documents::account`](crate::input::documents::Documents::account) adds up.
#[derive(Debug, Default)]
pub struct ChunkTotals {
    pub(crate) documents: u64,
    pub(crate) text_bytes: u64,
    pub(crate) replaced: u64,
    pub(crate) first_replaced: Option<String>,
    pub(crate) skipped_lossy: u64,
    pub(crate) no_texts: NoTexts,
    pub(crate) cut_archives: u64,
    pub(crate) first_cut: Option<String>,
    pub(crate) unseen_pages: u64,
    /// Number of documents without a fingerprint or features, and the position of the first one.
    pub(crate) contentless: u64,
    pub(crate) first_contentless: Option<String>,
    /// Number of texts of fields that are compared with their markup.
    pub(crate) marked_up: u64,
    pub(crate) detected: u64,
    /// Number of archive records that are not documents.
    pub(crate) no_documents: u64,
    /// Number of revisit records in archives: the payload of each is in an earlier record.
    pub(crate) revisits: u64,
    /// Number of documents whose keys were created from their positions.
    pub(crate) keyed_by_line: u64,
    /// Number of documents that lack some of the text fields, and the position of the first one.
    pub(crate) partial_texts: u64,
    pub(crate) first_partial: Option<String>,
    pub(crate) fields: FieldsSeen,
    pub(crate) bad: Vec<Problem>,
}

/// Working memory that is reused for all records.
#[derive(Debug, Default)]
pub struct Buffers {
    lines: parser::ParseBuffers,
    /// The text of an HTML page.
    text: String,
    /// The original bytes of a document whose text lost information, for comparison.
    identity: Vec<u8>,
    /// A key that was created from a position or from folder names.
    key: Vec<u8>,
    /// The fields that are derived from the folder names of files.
    partitions: partition::Cache,
    /// The parser for records whose keys are stored outside the line.
    keyed: Option<Parser>,
}

/// A document.
#[derive(Debug)]
pub struct Record<'r> {
    /// The key: 1 to 65,535 bytes. It is UTF-8, unless it is the path of a file that is not.
    pub key: &'r [u8],
    /// Whether the record's [line](Self::line) itself contains `key`. Other keys are created, or stored elsewhere.
    pub is_own: bool,
    /// The content to sketch.
    pub content: Content<'r>,
    from: RecordSource<'r>,
    /// The fields that are derived from the folders of the record's file; `None` if they are not used.
    partitioned: Option<&'r Partitioned>,
    /// Receives which fields [`attached`](Self::attached) found; the caller counts them.
    seen: &'r Cell<RecordSeen>,
}

/// The result of reading the fields of a record, except key and text.
#[derive(Clone, Copy, Debug)]
enum RecordSeen {
    /// The fields were not read.
    Unread,
    Read(AttachedSeen),
    /// A field that every document needs is missing.
    Missing,
}

/// The source of a record: a line, or a whole file.
#[derive(Debug)]
enum RecordSource<'r> {
    /// A line, as it was read.
    Line {
        form: Form,
        line: &'r [u8],
        number: u64,
        name: &'r Arc<Path>,
        offset: Option<u64>,
        ending: Ending,
    },
    Whole(&'r WholeFile),
}

impl Record<'_> {
    /// Sets `place` to the position of the record.
    pub fn write_place(&self, place: &mut Place) {
        match &self.from {
            RecordSource::Line { form, number, name, .. } => place.replace(name, *number, form.unit()),
            RecordSource::Whole(whole) => place.clone_from(&whole.place),
        }
    }

    /// Returns the position of the record: its file, and its line or offset.
    #[must_use]
    pub fn place(&self) -> Place {
        match &self.from {
            RecordSource::Line { form, number, name, .. } => {
                Place::of(Arc::clone(name), *number, form.unit())
            }
            RecordSource::Whole(whole) => whole.place.clone(),
        }
    }

    /// Returns an error that makes the record a bad record, like one that cannot be parsed. The closure passed to
    /// `Chunk::read` returns it.
    pub fn bad(&self, reason: &impl std::fmt::Display) -> anyhow::Error {
        crate::input::place::bad_at(&self.place(), reason)
    }

    /// Returns the values of the fields that the options name, except key and text.
    ///
    /// # Errors
    ///
    /// The stamp is missing or invalid. The record is then a [bad](Self::bad) record.
    pub fn attached(&self, parser: &Parser) -> anyhow::Result<OwnAttached> {
        match &self.from {
            RecordSource::Line { form, line, .. } => {
                let of_record = self.partitioned.map_or(parser, |partitioned| &partitioned.parser);
                let own = parser::attached(*form, line, of_record).and_then(|own| {
                    let mut own =
                        self.partitioned.map_or(Ok(own.clone()), |folders| folders.attached(own))?;
                    let deciding = &parser.fields.attached.deciding;
                    let link = deciding.reads_links().then(|| parser::link(*form, line, of_record));
                    deciding.take_url(self.key, link.transpose()?.flatten().as_deref(), &mut own.deciding)?;
                    let [numbers, times] = deciding.kinds(&own.deciding);
                    self.seen.set(RecordSeen::Read(AttachedSeen { has: own.has, numbers, times }));
                    Ok(own)
                });
                own.map_err(|error| {
                    if !error.is::<MissingField>() {
                        return self.bad(&format!("{error:#}"));
                    }
                    self.seen.set(RecordSeen::Missing);
                    self.bad(&format!("{error}; {}", parser::fields_here(*form, line, parser)))
                })
            }
            // Text files have no fields. Options that need fields were refused before the first document was read.
            RecordSource::Whole(_) => Ok(OwnAttached::default()),
        }
    }

    /// Returns the file and the offset from which the record's [`line`](Self::line) can be read again; `None` if that
    /// is impossible.
    #[must_use]
    pub fn origin(&self) -> Option<(&Arc<Path>, u64)> {
        match &self.from {
            RecordSource::Line { name, offset, .. } => offset.map(|offset| (*name, offset)),
            RecordSource::Whole(_) => None,
        }
    }

    /// Returns the form of the record's [`line`](Self::line).
    #[must_use]
    pub fn form(&self) -> Form {
        match &self.from {
            RecordSource::Line { form, .. } => *form,
            RecordSource::Whole(whole) if whole.html => Form::Html,
            RecordSource::Whole(_) => Form::Json,
        }
    }

    /// Returns the line ending that followed the record's [`line`](Self::line) in its file.
    #[must_use]
    pub fn ending(&self) -> Ending {
        match &self.from {
            RecordSource::Line { ending, .. } => *ending,
            RecordSource::Whole(_) => Ending::default(),
        }
    }

    /// Returns the bytes that represent the record in a file of its [`form`](Self::form), without a line end. They are
    /// the unchanged line or, for a text file, a JSON object with key and text. In the object, invalid bytes of the key
    /// are replaced, and invalid bytes of the text are encoded as lone surrogates.
    ///
    /// # Errors
    ///
    /// None: writing to memory does not fail.
    pub fn line(&self, parser: &Parser) -> anyhow::Result<Cow<'_, [u8]>> {
        Ok(match &self.from {
            RecordSource::Line { line, .. } => Cow::Borrowed(line),
            RecordSource::Whole(whole) => Cow::Owned(folder::line(&whole.key, &whole.text, &parser.fields)?),
        })
    }
}

fn read_whole<'w>(whole: &'w WholeFile, buffers: &'w mut Buffers) -> Result<(Content<'w>, Loss), String> {
    let folder::FileText { shown, lossy, .. } = &whole.text;
    let lost = lossy.as_ref().map(|bytes| (Loss::Bytes, http::identity(lossy::LOSSY, &lossy::mark(bytes))));
    let (text, opaque) = if whole.html {
        let (text, opaque) = http::shown_of_page(shown, lost)?;
        buffers.text = text;
        (buffers.text.as_str(), opaque)
    } else {
        (shown.as_str(), lost)
    };
    Ok(match opaque {
        None => (Content::Text(text), Loss::None),
        Some((loss, identity)) => {
            buffers.identity = identity;
            (Content::Opaque { text, identity: &buffers.identity }, loss)
        }
    })
}

/// Creates a key, `FILE:ROW`, from the file and number of a record whose own key is missing or ignored.
fn place_key(key: &mut Vec<u8>, name: &Path, number: u64) -> Result<(), String> {
    key.clear();
    let name = if name == Path::new(Place::STDIN) { Path::new("-") } else { name };
    key.extend_from_slice(&os_bytes(name.as_os_str()));
    key.push(b':');
    key.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    crate::input::place::check_key(key)
}

impl Chunk<'_> {
    /// Counts which named fields a document has. Bit `i` of `absent` is set if the document lacks text field `i`.
    fn add_fields(
        &self,
        seen: &mut ChunkTotals,
        raw: &RawRecord,
        parser: &Parser,
        absent: u64,
        attached: RecordSeen,
    ) {
        let RawRecord::Line { start, end, form, number, name, .. } = raw else { return };
        let place = || Place::of(Arc::clone(&self.batch.names[*name]), *number, form.unit());
        let here = || parser::fields_here(*form, &self.batch.bytes[*start..*end], parser);
        // A document without its only field has been counted as one without content.
        if absent != 0 && parser.fields.has_text() {
            seen.partial_texts += 1;
            seen.first_partial.get_or_insert_with(|| place().to_string());
        }
        let attached = match attached {
            RecordSeen::Read(attached) => Some(attached),
            RecordSeen::Unread | RecordSeen::Missing => None,
        };
        let absent = (!matches!(form, Form::Archive { .. } | Form::Arc)).then_some(absent);
        seen.fields.add_document(&parser.fields, absent, attached, place, here);
    }

    /// Passes each document of the chunk to `each`. Returns the counts, and the bad records with those for which `each`
    /// returned [`Record::bad`].
    ///
    /// # Errors
    ///
    /// The first error of `each` that is not [`Record::bad`]. It ends the reading.
    #[expect(clippy::too_many_lines, reason = "a branch for each result of parsing")]
    pub fn read(
        &self,
        parser: &Parser,
        buffers: &mut Buffers,
        mut each: impl FnMut(Record<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<ChunkTotals> {
        let mut seen = ChunkTotals::default();
        let own = Cell::new(RecordSeen::Unread);
        for raw in self.records {
            own.set(RecordSeen::Unread);
            let (record, loss, is_detected, absent) = match raw {
                RawRecord::Bad(bad) => {
                    seen.bad.push((**bad).clone());
                    continue;
                }
                RawRecord::PassedOver(why) => {
                    match &**why {
                        PassedOver::Lossy => seen.skipped_lossy += 1,
                        PassedOver::NoText(place, why) => seen.no_texts.add_file(place, *why),
                    }
                    continue;
                }
                RawRecord::Cut(cut) => {
                    seen.cut_archives += 1;
                    seen.first_cut.get_or_insert_with(|| cut.to_string());
                    continue;
                }
                RawRecord::Unread(file) => bail!("{}: was not read", file.path.display()),
                RawRecord::Whole(whole) => match read_whole(whole, buffers) {
                    Ok((content, loss)) => {
                        let from = RecordSource::Whole(whole);
                        let record = Record {
                            key: &whole.key,
                            is_own: true,
                            content,
                            from,
                            partitioned: None,
                            seen: &own,
                        };
                        (record, loss, whole.text.is_detected, None)
                    }
                    Err(reason) => {
                        seen.bad.push(Problem { place: whole.place.clone(), reason });
                        continue;
                    }
                },
                RawRecord::Line { start, end, form, number, name, offset, ending, key: other } => {
                    let (start, end, form, number, name) = (*start, *end, *form, *number, *name);
                    let (line, name) = (&self.batch.bytes[start..end], &self.batch.names[name]);
                    let problem =
                        |reason| Problem { place: Place::of(Arc::clone(name), number, form.unit()), reason };
                    let partitioned = buffers.partitions.of(parser, name);
                    let mut of_record = partitioned.map_or(parser, |partitioned| &partitioned.parser);
                    if other.is_some() {
                        of_record = buffers.keyed.get_or_insert_with(|| parser.of_other_keys());
                    }
                    match parser::understand(form, line, of_record, &mut buffers.lines) {
                        Ok(ParsedLine::Document { key, content, loss, is_detected, absent }) => {
                            let of_folders = partitioned.filter(|_| other.is_none());
                            let of_folders = of_folders.and_then(|folders| folders.key(key)).transpose();
                            let is_own = key.is_some() && other.is_none() && matches!(of_folders, Ok(None));
                            let key = match (other, key) {
                                _ if !matches!(of_folders, Ok(None)) => match of_folders {
                                    Ok(key) => {
                                        buffers.key = key.unwrap_or_default();
                                        buffers.key.as_slice()
                                    }
                                    Err(reason) => {
                                        seen.bad.push(problem(reason));
                                        continue;
                                    }
                                },
                                (Some(other), _) => other,
                                (None, Some(key)) => key,
                                (None, None) => match place_key(&mut buffers.key, name, number) {
                                    Ok(()) => {
                                        seen.keyed_by_line += 1;
                                        &buffers.key
                                    }
                                    Err(reason) => {
                                        seen.bad.push(problem(reason));
                                        continue;
                                    }
                                },
                            };
                            let content = if let Content::Opaque { identity: ABSENT, .. } = content {
                                buffers.identity = [ABSENT, key].concat();
                                Content::Opaque { text: "", identity: &buffers.identity }
                            } else {
                                content
                            };
                            let from = RecordSource::Line {
                                form,
                                line,
                                number,
                                name,
                                offset: *offset,
                                ending: *ending,
                            };
                            let record = Record { key, is_own, content, from, partitioned, seen: &own };
                            (record, loss, is_detected, Some(absent))
                        }
                        Ok(ParsedLine::NoDocument) => {
                            seen.no_documents += 1;
                            continue;
                        }
                        Ok(ParsedLine::Revisit) => {
                            seen.revisits += 1;
                            continue;
                        }
                        Ok(ParsedLine::Skipped) => {
                            seen.skipped_lossy += 1;
                            continue;
                        }
                        Ok(ParsedLine::MissingField(reason)) => {
                            let bad = problem(reason);
                            seen.fields.add_missing(&bad);
                            seen.bad.push(bad);
                            continue;
                        }
                        Err(reason) => {
                            seen.bad.push(problem(reason));
                            continue;
                        }
                    }
                }
            };
            let text_bytes = record.content.bytes() as u64;
            let is_field = matches!(
                raw,
                RawRecord::Line { form: Form::Json | Form::Element | Form::Row(_) | Form::Columns(_), .. }
            );
            let marked_up = match record.content {
                Content::Text(text) if is_field && parser.text_form == TextForm::Plain => http::is_page(text),
                _ => false,
            };
            let is_first = loss == Loss::Bytes && seen.first_replaced.is_none();
            let first = is_first.then(|| record.place().to_string());
            let is_absent =
                matches!(record.content, Content::Opaque { identity, .. } if identity.starts_with(ABSENT));
            let first_absent =
                (is_absent && seen.first_contentless.is_none()).then(|| record.place().to_string());
            match each(record) {
                Ok(()) => {
                    seen.documents += 1;
                    seen.text_bytes += text_bytes;
                    seen.replaced += u64::from(loss == Loss::Bytes);
                    seen.first_replaced = seen.first_replaced.take().or(first);
                    seen.unseen_pages += u64::from(loss == Loss::Unseen);
                    seen.contentless += u64::from(is_absent);
                    seen.first_contentless = seen.first_contentless.take().or(first_absent);
                    seen.detected += u64::from(is_detected);
                    seen.marked_up += u64::from(marked_up);
                    if let Some(absent) = absent {
                        self.add_fields(&mut seen, raw, parser, absent, own.get());
                    }
                }
                // An error from `Record::bad` is counted as a bad record. Any other error ends the reading.
                Err(error) => {
                    let bad = error.downcast::<Problem>()?;
                    if matches!(own.get(), RecordSeen::Missing) {
                        seen.fields.add_missing(&bad);
                    }
                    seen.bad.push(bad);
                }
            }
        }
        Ok(seen)
    }
}
