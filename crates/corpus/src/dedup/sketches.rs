//! Stores the sketches of all documents in a scratch file until the kept documents are known.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use twindex::format::fields::{self, Fields};
use twindex::format::sketches::{Decoder, Encoded, Encoder, Row};
use twindex::sketch::pack;
use twindex::sys::Spill;
use twindex::{Document, Params, Sketch, Writer};

/// Buffer size for reading and writing, in bytes.
const BUFFER: usize = 256 << 10;

/// Whether a document is added to an index, and whether it is marked as a duplicate there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexMembership {
    Not,
    Kept,
    AsDuplicate,
}

/// Writes sketches in the format of sketch files. Only a document without words has a set, which is a hash.
pub(super) struct Sketches {
    folder: PathBuf,
    params: Params,
    records: Encoded,
    encoder: Encoder,
    /// Bytes that are not yet written to the scratch file.
    out: Vec<u8>,
    packed: Vec<u8>,
    set: Vec<u8>,
    spill: Spill,
}

/// The stored sketches of all documents.
pub(super) struct Sketched {
    folder: PathBuf,
    params: Params,
    spill: Spill,
}

impl Sketches {
    pub(super) fn new(folder: &Path, params: &Params) -> anyhow::Result<Self> {
        let mut out = Vec::new();
        let encoder = Encoder::new(params, &mut out);
        let spill = Spill::create(folder).with_context(|| cannot("create", folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            params: params.clone(),
            records: Encoded::new(params),
            encoder,
            out,
            packed: Vec::new(),
            set: Vec::new(),
            spill,
        })
    }

    /// Adds the next document.
    pub(super) fn push(&mut self, key: &[u8], sketch: &Sketch) -> anyhow::Result<()> {
        let bits = self.params.minhash.map_or(0, |minhash| minhash.signature_bits);
        self.packed.clear();
        pack(sketch.signature(), bits, &mut self.packed);
        let row = Row {
            fingerprint: sketch.fingerprint().map_or(0, |fingerprint| fingerprint.0),
            features: sketch.features(),
            signature: &self.packed,
            bottom: sketch.bottom(),
            modular: sketch.modular(),
        };
        if self.params.sets {
            fields::encode(&self.params, false, sketch.set(), &mut self.set);
        }
        self.records.push_with(key.into(), (!sketch.is_empty()).then_some(row), Fields::of(&self.set))?;
        self.encoder.append(&self.records, &mut self.out);
        self.records.clear();
        if self.out.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.spill.append(&self.out).with_context(|| cannot("write", &self.folder))?;
        self.out.clear();
        Ok(())
    }

    /// Writes the remaining bytes and returns the stored sketches.
    pub(super) fn finish(mut self) -> anyhow::Result<Sketched> {
        self.flush()?;
        let Self { folder, params, encoder, mut out, mut spill, .. } = self;
        encoder.finish(&mut out);
        spill.append(&out).with_context(|| cannot("write", &folder))?;
        Ok(Sketched { folder, params, spill })
    }
}

impl Sketched {
    /// Adds the wanted documents to an index with the parameters `kept`, and marks duplicates. Documents are identified
    /// by their index in the order of addition. If this is the `last` use, the disk space is freed while reading. If
    /// the index stores sets, `set_of` appends the set of a document with words; if it stores values, `value_of`
    /// returns the value.
    pub(super) fn put<'v>(
        &self,
        writer: &mut Writer,
        kept: &Params,
        last: bool,
        (mut wanted, value_of): (impl FnMut(u32) -> IndexMembership, impl Fn(u32) -> &'v [u8]),
        mut set_of: impl FnMut(u32, &mut Vec<u64>) -> twindex::Result<()>,
    ) -> anyhow::Result<()> {
        let mut read = Vec::new();
        let (mut decoder, mut at, mut part, mut number) = (Decoder::new(), 0, Vec::new(), 0);
        while decoder.wants() > 0 {
            part.resize(decoder.wants(), 0);
            self.spill.read_exact_at(&mut part, at).with_context(|| cannot("read", &self.folder))?;
            at += part.len() as u64;
            if last {
                self.spill.release(at);
            }
            let mut rows = decoder.feed(&part).map_err(|why| self.damaged(&why))?;
            while let Some((key, row, set)) = rows.next_with_set().map_err(|why| self.damaged(&why))? {
                let wanted = wanted(number);
                if wanted != IndexMembership::Not {
                    let has_words = row.is_some();
                    let mut document = Document::from_row(&self.params, row).with_encoded_set(set);
                    if has_words && kept.sets {
                        read.clear();
                        set_of(number, &mut read)?;
                        document = document.with_set(&read);
                    }
                    if kept.values {
                        document = document.with_value(value_of(number));
                    }
                    if wanted == IndexMembership::AsDuplicate && kept.marks {
                        document = document.as_duplicate();
                    }
                    let put = writer.put(key, document);
                    put.with_context(|| {
                        let key = key.to_buf().to_string();
                        format!("cannot index the document `{}`", key.escape_debug())
                    })?;
                }
                number += 1;
            }
        }
        Ok(())
    }

    /// Returns the error for a damaged scratch file. No other process writes to it.
    fn damaged(&self, why: &dyn Debug) -> anyhow::Error {
        anyhow!("{}: a scratch file of sketches is not as it was written: {why:?}", self.folder.display())
    }
}

fn cannot(what: &str, folder: &Path) -> String {
    format!("{}: cannot {what} a scratch file", folder.display())
}
