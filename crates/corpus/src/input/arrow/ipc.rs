//! Reads the record batches of Arrow IPC files, in the file format and in the stream format.
//!
//! Batches are decoded by arrow-rs, which allocates memory for a stated length before it checks that the bytes exist. A
//! failed allocation aborts the process. So all lengths in a message are checked here before arrow-rs reads it.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{
    CompressionType, Message, MessageHeader, RecordBatch as BatchHeader, Schema as SchemaHeader,
    root_as_footer_with_opts, root_as_message_with_opts,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use flatbuffers::VerifierOptions;
use xxhash_rust::xxh3::Xxh3Default;

/// The first bytes of the file format, its last bytes, and the first bytes of the first version of Feather.
pub(crate) const MAGIC: &[u8] = b"ARROW1";
const FEATHER_1: &[u8] = b"FEA1";
/// The bytes before the length of a message; files from before Arrow 0.15 lack them.
pub(crate) const CONTINUATION: [u8; 4] = [0xff; 4];
/// Length in bytes of the magic number at the start of the file format, with its padding.
const START_BYTES: u64 = 8;
/// Length in bytes of the end of the file format: the length of the footer, and the magic number.
const TAIL_BYTES: u64 = 10;
/// Batches of up to this size in bytes are accepted with any record limit and compression ratio.
const BATCH_BYTES: u64 = 32 << 20;
/// The maximum ratio of decompressed to compressed size for batches above [`BATCH_BYTES`].
const GROWTH_MAX: u64 = 1032;

/// A message of a file.
enum Found {
    Batch(RecordBatch),
    /// A dictionary, or a message without content.
    Other,
    /// The end of a stream.
    End,
}

/// The record batches of a file, in order.
pub(crate) struct IpcFile {
    file: fs::File,
    bytes: u64,
    /// Maximum size in bytes of a batch, before and after decompression, and of all dictionaries.
    bytes_max: u64,
    pub(crate) schema: SchemaRef,
    /// The metadata in the footer of the file format.
    pub(crate) metadata: Vec<(String, String)>,
    /// The offsets of the batches not yet read; `None` in the stream format.
    blocks: Option<VecDeque<u64>>,
    /// The offset of the next message of a stream.
    at: u64,
    dictionaries: HashMap<i64, ArrayRef>,
    /// A hash of all dictionaries of the file format.
    pub(crate) dictionary_hash: u64,
    /// The compression of the last batch.
    pub(crate) compression: Option<CompressionType>,
}

impl IpcFile {
    /// Opens a file. A batch may have up to four times `record_bytes_max` bytes, or [`BATCH_BYTES`] if larger.
    ///
    /// # Errors
    ///
    /// The file is not an Arrow IPC file, or is damaged.
    pub(crate) fn open(file: fs::File, record_bytes_max: usize) -> Result<Self, String> {
        let bytes = file.metadata().map_err(|error| error.to_string())?.len();
        let mut ipc = Self {
            file,
            bytes,
            bytes_max: (record_bytes_max as u64).saturating_mul(4).max(BATCH_BYTES),
            schema: Arc::new(Schema::empty()),
            metadata: Vec::new(),
            blocks: None,
            at: 0,
            dictionaries: HashMap::new(),
            dictionary_hash: 0,
            compression: None,
        };
        let start = ipc.read("it", 0, bytes.min(START_BYTES))?;
        if start.starts_with(FEATHER_1) {
            return Err(
                "it is Feather of version 1: write it again, as `pyarrow.feather.write_feather` does"
                    .to_owned(),
            );
        }
        let read = if start.starts_with(MAGIC) { ipc.read_footer() } else { ipc.read_schema() };
        read.map(|()| ipc).map_err(|reason| format!("{reason} (is it a whole Arrow IPC file? copy it again)"))
    }

    /// Returns whether the file has the file format, and not the stream format.
    pub(crate) fn is_of_file_format(&self) -> bool {
        self.blocks.is_some()
    }

    /// Returns the offset of the next message.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    fn read(&self, what: &str, at: u64, length: u64) -> Result<Buffer, String> {
        let left = self.bytes.saturating_sub(at);
        // guard: no more bytes of an Arrow file are read than it has
        if length > left {
            return Err(format!("{what} has {length} bytes, and the file {left} from offset {at} on"));
        }
        // guard: a batch of an Arrow file is not longer than its limit
        if length > self.bytes_max {
            return Err(format!(
                "{what} has {length} bytes, more than the limit of {} (--memory, or smaller batches)",
                self.bytes_max
            ));
        }
        // The alignment of a `MutableBuffer` suits all types, so that arrow-rs does not copy it.
        let mut buffer = MutableBuffer::from_len_zeroed(length as usize);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(&mut buffer))
            .map_err(|error| error.to_string())?;
        Ok(buffer.into())
    }

    /// Reads the metadata of the next message. Returns `None` at the end of the stream.
    fn message(&mut self) -> Result<Option<Buffer>, String> {
        if self.at == self.bytes {
            return Ok(None);
        }
        let mut word = self.read("a length", self.at, 4)?;
        self.at += 4;
        if *word == CONTINUATION {
            word = self.read("a length", self.at, 4)?;
            self.at += 4;
        }
        let length = word.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)).into();
        if length == 0 {
            return Ok(None);
        }
        let metadata = self.read("the metadata of a message", self.at, length)?;
        self.at += length;
        Ok(Some(metadata))
    }

    /// Reads the schema of a stream.
    fn read_schema(&mut self) -> Result<(), String> {
        let metadata = self.message()?.ok_or("it has no schema")?;
        let message = root_as_message_with_opts(&limits(&metadata), &metadata).map_err(|_| DAMAGED)?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| DAMAGED)?;
        self.at = self.at.saturating_add(body);
        self.schema = schema(message.header_as_schema().ok_or("it does not begin with a schema")?)?;
        Ok(())
    }

    /// Reads the schema, the offsets of the batches, and the dictionaries of the file format.
    fn read_footer(&mut self) -> Result<(), String> {
        let before = self.bytes.checked_sub(TAIL_BYTES).ok_or("it has no footer")?;
        let tail = self.read("its end", before, TAIL_BYTES)?;
        let (length, magic) = tail.split_at(4);
        if magic != MAGIC {
            return Err("it does not end as an Arrow file does".to_owned());
        }
        let length = length.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)).into();
        let start = before.checked_sub(length).ok_or_else(|| {
            format!("its end names a footer of {length} bytes, and the file has {}", self.bytes)
        })?;
        let footer = self.read("its footer", start, length)?;
        let footer =
            root_as_footer_with_opts(&limits(&footer), &footer).map_err(|_| "its footer is damaged")?;
        self.schema = schema(footer.schema().ok_or("its footer has no schema")?)?;
        for entry in footer.custom_metadata().into_iter().flatten() {
            if let (Some(key), Some(value)) = (entry.key(), entry.value()) {
                self.metadata.push((key.to_owned(), value.to_owned()));
            }
        }
        let offset = |offset: i64| u64::try_from(offset).map_err(|_| "its footer has an offset below 0");
        let mut hash = Xxh3Default::new();
        for block in footer.dictionaries().into_iter().flatten() {
            self.at = offset(block.offset())?;
            let from = self.at;
            let Found::Other = self.read_message(None)? else {
                return Err(format!("its footer has a dictionary at offset {from}, where there is none"));
            };
            hash.update(&self.read("a dictionary", from, self.at - from)?);
        }
        self.dictionary_hash = hash.digest();
        let blocks = footer.recordBatches().into_iter().flatten().map(|block| offset(block.offset()));
        self.blocks = Some(blocks.collect::<Result<_, _>>()?);
        Ok(())
    }

    /// Returns the next batch, with all columns or with those in `projection`; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// The file is damaged, or a batch is too large.
    pub(crate) fn next(&mut self, projection: Option<&[usize]>) -> Result<Option<RecordBatch>, String> {
        loop {
            if let Some(blocks) = &mut self.blocks {
                let Some(offset) = blocks.pop_front() else { return Ok(None) };
                self.at = offset;
            }
            let from = self.at;
            let read = self.read_message(projection);
            match read.map_err(|reason| format!("the message at offset {from}: {reason}"))? {
                Found::Batch(batch) => return Ok(Some(batch)),
                // guard: a batch that the footer of an Arrow file names is not passed over
                _ if self.is_of_file_format() => {
                    return Err(format!("its footer has a batch at offset {from}, where there is none"));
                }
                Found::Other => {}
                // guard: what follows the end of an Arrow stream is not passed over
                Found::End if self.at < self.bytes => {
                    return Err(format!(
                        "{} bytes follow its end: split the file if it has several streams",
                        self.bytes - self.at
                    ));
                }
                Found::End => return Ok(None),
            }
        }
    }

    fn read_message(&mut self, projection: Option<&[usize]>) -> Result<Found, String> {
        let Some(metadata) = self.message()? else { return Ok(Found::End) };
        let message = root_as_message_with_opts(&limits(&metadata), &metadata).map_err(|_| DAMAGED)?;
        let length = u64::try_from(message.bodyLength()).map_err(|_| DAMAGED)?;
        let body = self.read("the body of a message", self.at, length)?;
        self.at += length;
        let failed = |error: ArrowError| error.to_string();
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or(DAMAGED)?;
                check(batch, &body, self.bytes_max)?;
                self.compression = batch.compression().map(|compression| compression.codec());
                let (schema, version) = (Arc::clone(&self.schema), message.version());
                let batch = read_record_batch(&body, batch, schema, &self.dictionaries, projection, &version);
                batch.map(Found::Batch).map_err(failed)
            }
            MessageHeader::DictionaryBatch => {
                self.read_dictionary(&message, &body)?;
                Ok(Found::Other)
            }
            MessageHeader::NONE => Ok(Found::Other),
            other => Err(format!("expected a record batch or a dictionary, found {other:?}")),
        }
    }

    fn read_dictionary(&mut self, message: &Message<'_>, body: &Buffer) -> Result<(), String> {
        let batch = message.header_as_dictionary_batch().ok_or(DAMAGED)?;
        check(batch.data().ok_or(DAMAGED)?, body, self.bytes_max)?;
        read_dictionary(body, batch, &self.schema, &mut self.dictionaries, &message.version())
            .map_err(|error| error.to_string())?;
        let sizes = self.dictionaries.values().map(|values| values.to_data().get_slice_memory_size());
        let bytes: usize = sizes.sum::<Result<_, _>>().map_err(|error| error.to_string())?;
        // guard: the dictionaries of an Arrow file are not larger than their limit
        if bytes as u64 > self.bytes_max {
            return Err(format!(
                "its dictionaries have {bytes} bytes, more than the limit of {}",
                self.bytes_max
            ));
        }
        Ok(())
    }
}

const DAMAGED: &str = "its metadata is damaged";

/// Returns limits by which metadata of this length has no more parts than fit into it without sharing.
fn limits(metadata: &[u8]) -> VerifierOptions {
    VerifierOptions { max_tables: metadata.len() / 4, ..VerifierOptions::default() }
}

fn schema(header: SchemaHeader<'_>) -> Result<SchemaRef, String> {
    if !header.endianness().equals_to_target_endianness() {
        return Err("its numbers have another order of bytes than those of this machine".to_owned());
    }
    try_fb_to_schema(header).map(Arc::new).map_err(|error| error.to_string())
}

/// Returns an error if the buffers of a batch are not in its body, or are too large after decompression.
fn check(batch: BatchHeader<'_>, body: &[u8], bytes_max: u64) -> Result<(), String> {
    let (mut packed, mut unpacked) = (0_usize, 0_u64);
    for buffer in batch.buffers().into_iter().flatten() {
        let (offset, length) = (buffer.offset(), buffer.length());
        let within = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
        let within = within.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let Some(within) = within else {
            return Err(format!(
                "a buffer has {length} bytes at {offset} of its body, which has {} bytes",
                body.len()
            ));
        };
        packed = packed.saturating_add(within.len());
        if let (Some(_), Some(length)) = (batch.compression(), within.first_chunk()) {
            // The length -1 states that the buffer is not compressed.
            unpacked = unpacked.saturating_add(u64::try_from(i64::from_le_bytes(*length)).unwrap_or(0));
        }
    }
    // guard: the buffers of an Arrow file do not share bytes
    if packed > body.len() {
        return Err(format!("its buffers have {packed} bytes, and its body {}", body.len()));
    }
    let max = (packed as u64).saturating_mul(GROWTH_MAX).max(BATCH_BYTES).min(bytes_max);
    // guard: a batch of an Arrow file does not grow by more than it can
    if unpacked > max {
        return Err(format!(
            "a batch of {packed} bytes has {unpacked} by its metadata once decompressed, more than the limit of {max}"
        ));
    }
    Ok(())
}
