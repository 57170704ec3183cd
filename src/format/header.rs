//! The header: 64 bytes at offset 0 of every file of an index, with the kind of the file, its version and its features.
//!
//! ```text
//!  0  magic 89 54 57 58 0D 0A 1A 0A          8   version    10 role      11 fingerprint bits
//! 12  incompatible features   16 read-only-compatible features   20 compatible features
//! 24  salt (16 bytes)         40 parameters' digest (16 bytes)   56 reserved   60 checksum of 0..60
//! ```

use zerocopy::little_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::bands;
use super::checksum::checksum;
use super::fields;
use super::wire::Fault;
use crate::params::{Family, MinhashParams, MinhashWeights, Params, Shingling, Threshold, Tokens};

pub use crate::error::Refusal;

/// The first bytes of every file. The first byte never begins a text, and a transfer in text mode would change the
/// newlines. In between is the name `TWX`.
pub const MAGIC: [u8; 8] = *b"\x89TWX\r\n\x1a\n";
/// The advice in the error for a file of a newer version.
const USE_NEWER: &str = "use a newer version";
/// Number of bits in a fingerprint.
pub const FINGERPRINT_BITS: u8 = 64;

/// Incompatible feature of manifests: the manifest contains a list of logs.
pub const FEATURE_LOG: u32 = 1;
/// Incompatible feature of segments, manifests and logs: documents have values ([`Params::values`] is set).
pub const FEATURE_VALUES: u32 = 2;
/// Incompatible feature of segments, manifests and logs: documents have stamps ([`Params::expire_after`] is set).
pub const FEATURE_STAMPS: u32 = 4;

/// Incompatible feature of manifests: the manifest states the length of the active log, to which batches are appended.
pub const FEATURE_GROWN: u32 = 8;
/// Incompatible feature of segments: band entries are packed [bit by bit](super::bands::CODEC_PACKED).
pub const FEATURE_PACKED: u32 = 16;

/// Incompatible feature of segments, manifests, logs and files of sketches: fewer than [32](super::bands::KEY_BITS)
/// bits of each feature of a document are stored (parameter `feature-bits`).
pub const FEATURE_NARROW: u32 = 32;

/// Incompatible feature of every file except `CURRENT`: the parameters specify [tokens or folding](text_of) that the
/// first readers of version 3 of the format do not know.
pub const FEATURE_TEXT: u32 = 64;

/// Incompatible feature of segments, manifests, logs and files of sketches: the parameters specify a [near
/// relation](Params::near) other than the default, by a line `threshold` or `near-within`.
pub const FEATURE_NEAR: u32 = 128;

/// Incompatible feature of segments, manifests and logs: documents can have [fields] (a set, a mark or a priority). In
/// files of sketches: documents have sets.
pub const FEATURE_FIELDS: u32 = 256;

/// Incompatible feature of segments, manifests and logs: documents can have [priorities](super::fields). Since a
/// priority is a field, [`FEATURE_FIELDS`] is set too.
pub const FEATURE_PRIORITIES: u32 = 512;

/// Incompatible feature of segments, manifests, logs and files of sketches: minima depend on
/// [weights](twindex_sketch::params::MinhashWeights) of shingles, or are computed from [darts](twindex_sketch::darts).
pub const FEATURE_WEIGHTS: u32 = 1024;

/// Incompatible feature of every file except `CURRENT`: the spans of a list of boilerplate are removed from texts
/// ([`Shingling::boilerplate`](twindex_sketch::params::Shingling::boilerplate)).
pub const FEATURE_BOILERPLATE: u32 = 2048;

/// Incompatible feature of segments, manifests and logs: the section [`Suffixes`](super::contents::Kind::Suffixes)
/// indexes the elements outside of prefixes.
pub const FEATURE_SUFFIXES: u32 = 4096;

/// Incompatible feature of segments, manifests and logs: each document has a fingerprint of any width ([`Params::codes`]
/// is set). Since such a fingerprint is a field, [`FEATURE_FIELDS`] is set too.
pub const FEATURE_CODES: u32 = 8192;

/// Incompatible feature of segments: the sections [`Part`](super::contents::Kind::Part) index the codes.
pub const FEATURE_PARTS: u32 = 16384;

/// Incompatible feature of segments, manifests and logs: the codes are simhashes
/// ([`CodeParams::votes`](crate::params::CodeParams::votes) is set).
pub const FEATURE_SIMHASHES: u32 = 32768;

/// Returns the incompatible features that the parameters require in segments, manifests and logs.
#[must_use]
pub fn features_of(params: &Params) -> u32 {
    let values = if params.values { FEATURE_VALUES } else { 0 };
    let stamps = if params.expire_after.is_some() { FEATURE_STAMPS } else { 0 };
    let fields = if fields::are_kept(params) { FEATURE_FIELDS } else { 0 };
    let priorities = if params.priorities { FEATURE_PRIORITIES } else { 0 };
    let suffixes = if params.suffixes { FEATURE_SUFFIXES } else { 0 };
    let codes = match params.codes.map(|codes| codes.votes) {
        None => 0,
        Some(None) => FEATURE_CODES,
        Some(Some(_)) => FEATURE_CODES | FEATURE_SIMHASHES,
    };
    values | stamps | fields | priorities | suffixes | codes | features_of_sketches(params)
}

/// Returns the incompatible features that the tokens, the folding and the removal of boilerplate require; 0 for rules
/// that the first readers of version 3 of the format know.
#[must_use]
pub fn text_of(shingling: &Shingling) -> u32 {
    let keeps_symbols = matches!(shingling.tokens, Tokens::WordsSymbols | Tokens::Raw);
    let text = if keeps_symbols || !shingling.folding.is_empty() { FEATURE_TEXT } else { 0 };
    text | if shingling.boilerplate.is_some() { FEATURE_BOILERPLATE } else { 0 }
}

fn narrow_of(params: &Params) -> u32 {
    if bands::bits_of(params) == bands::KEY_BITS { 0 } else { FEATURE_NARROW }
}

fn near_of(params: &Params) -> u32 {
    let distance = params.simhash.is_some_and(|simhash| simhash.near != Some(simhash.within.into()));
    if distance || params.codes.is_some() || params.threshold != Some(Threshold::USUAL) {
        FEATURE_NEAR
    } else {
        0
    }
}

fn weights_of(params: &Params) -> u32 {
    let is_weighted = |minhash: MinhashParams| {
        minhash.weights != MinhashWeights::Distinct || minhash.family == Family::Darts
    };
    if params.minhash.is_some_and(is_weighted) { FEATURE_WEIGHTS } else { 0 }
}

/// Returns the incompatible features of a file of sketches with these parameters. Such a file stores no values, stamps,
/// marks or priorities, so these features are omitted.
#[must_use]
pub fn features_of_sketches(params: &Params) -> u32 {
    let sets = if params.sets { FEATURE_FIELDS } else { 0 };
    narrow_of(params) | text_of(&params.shingling) | near_of(params) | weights_of(params) | sets
}

/// Returns the incompatible features of a new segment with these parameters, which indexes its codes by parts or does not.
#[must_use]
pub fn features_of_segment(params: &Params, has_parts: bool) -> u32 {
    let packed = if params.minhash.is_some() { FEATURE_PACKED } else { 0 };
    features_of(params) | packed | if has_parts { FEATURE_PARTS } else { 0 }
}

/// The kind of a file. The numbers are part of the format and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// A segment: `<n>.seg`.
    Segment = 1,
    /// A manifest: `MANIFEST-<generation>`.
    Manifest = 2,
    /// The file `CURRENT`.
    Current = 3,
    /// A log: `LOG-<n>`.
    Log = 4,
    /// A table of document frequencies: `IDF-<digest>`.
    Idf = 5,
    /// A file of sketches.
    Sketches = 6,
}

impl Role {
    /// All roles that files of the current version can have.
    pub const ALL: [Self; 6] =
        [Self::Segment, Self::Manifest, Self::Current, Self::Log, Self::Idf, Self::Sketches];

    /// Returns the incompatible features that this version can read in a file of this role.
    #[must_use]
    pub fn incompatible_known(self) -> u32 {
        const BY_PARAMS: u32 =
            FEATURE_NARROW | FEATURE_TEXT | FEATURE_NEAR | FEATURE_WEIGHTS | FEATURE_BOILERPLATE;
        const OF_FIELDS: u32 =
            FEATURE_FIELDS | FEATURE_PRIORITIES | FEATURE_SUFFIXES | FEATURE_CODES | FEATURE_SIMHASHES;
        match self {
            Self::Manifest => {
                FEATURE_LOG | FEATURE_VALUES | FEATURE_STAMPS | FEATURE_GROWN | OF_FIELDS | BY_PARAMS
            }
            Self::Segment => {
                FEATURE_VALUES | FEATURE_STAMPS | FEATURE_PACKED | FEATURE_PARTS | OF_FIELDS | BY_PARAMS
            }
            Self::Log => FEATURE_VALUES | FEATURE_STAMPS | OF_FIELDS | BY_PARAMS,
            Self::Sketches => FEATURE_FIELDS | BY_PARAMS,
            Self::Idf => FEATURE_TEXT | FEATURE_BOILERPLATE,
            Self::Current => 0,
        }
    }
}

/// The header as stored in the file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// The magic: [`MAGIC`].
    pub magic: [u8; 8],
    /// The version of the format: [`super::VERSION`].
    pub version: U16,
    /// The kind of the file: the number of a [`Role`].
    pub role: u8,
    /// Number of bits in a fingerprint: [`FINGERPRINT_BITS`].
    pub fingerprint_bits: u8,
    /// Incompatible features: a reader that does not know all of them must not read the file.
    pub incompatible: U32,
    /// Read-only-compatible features: a writer that does not know all of them must not extend the file.
    pub read_only_compatible: U32,
    /// Compatible features, which readers and writers may ignore.
    pub compatible: U32,
    /// The salt of checksums, which identifies the file or its index. For a segment: the sum of the hashes of its
    /// records and the parameters' digest. For a manifest, `CURRENT` or a log: the UUID of the index. For a table
    /// of document frequencies: its digest. For a file of sketches: the parameters' digest.
    pub salt: U128,
    /// The digest of the parameters: [`crate::Params::digest`]. For a table of document frequencies: the digest of the
    /// text that specifies how documents are tokenized and shingled.
    pub params_digest: U128,
    /// Reserved; always zero.
    pub reserved: U32,
    /// The [`checksum`] of the preceding fields, computed with `salt` and offset 0.
    pub checksum: U32,
}

/// Length of a [`Header`] in bytes.
pub const HEADER_BYTES: usize = 64;
const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

impl Header {
    /// Creates a header of this version with no feature bits.
    #[must_use]
    pub fn new(role: Role, salt: u128, params_digest: u128) -> Self {
        let mut header = Self {
            magic: MAGIC,
            version: U16::new(super::VERSION),
            role: role as u8,
            fingerprint_bits: FINGERPRINT_BITS,
            incompatible: U32::ZERO,
            read_only_compatible: U32::ZERO,
            compatible: U32::ZERO,
            salt: U128::new(salt),
            params_digest: U128::new(params_digest),
            reserved: U32::ZERO,
            checksum: U32::ZERO,
        };
        header.checksum = U32::new(header.expected_checksum());
        header
    }

    /// Sets the feature bits, computes the checksum again, and returns the header.
    #[must_use]
    pub fn with_features(mut self, incompatible: u32, read_only_compatible: u32) -> Self {
        self.incompatible = U32::new(incompatible);
        self.read_only_compatible = U32::new(read_only_compatible);
        self.checksum = U32::new(self.expected_checksum());
        self
    }

    /// Checks that the incompatible features are the features that the parameters require, and no others.
    ///
    /// # Errors
    /// A [`Fault`] at the offset of the feature bits.
    pub fn check_features(&self, params: &Params) -> Result<(), Fault> {
        // `free` contains the features that the parameters do not determine. With bands, `FEATURE_PACKED` is one of
        // them: in older files it is absent, and band entries take whole bytes. With codes, `FEATURE_PARTS` is.
        let of_bands = if params.minhash.is_some() { FEATURE_PACKED } else { 0 };
        let of_codes = if params.codes.is_some() { FEATURE_PARTS } else { 0 };
        let free = FEATURE_LOG | FEATURE_GROWN | of_bands | of_codes;
        let (expected, found) = (features_of(params), self.incompatible.get() & !free);
        if expected == found {
            return Ok(());
        }
        let expected = format!("the incompatible features of its parameters, {expected:#x}");
        Err(Fault::new(12, expected, format!("{found:#x}")))
    }

    fn expected_checksum(&self) -> u32 {
        checksum(self.salt.get(), 0, &self.as_bytes()[..HEADER_BYTES - 4])
    }

    /// Reads the header of a file of any version, and checks only the magic and the checksum. The layout of the header
    /// is the same in all versions, so that a reader can distinguish damage from a file of another version.
    ///
    /// # Errors
    /// A [`Fault`] if the header is damaged.
    pub fn read_any(bytes: &[u8]) -> Result<Self, Fault> {
        let damaged = |offset, expected: &str, found: String| Err(Fault::new(offset, expected, found));
        let Ok((header, _)) = Self::read_from_prefix(bytes) else {
            return damaged(0, "a header of 64 bytes", format!("{} bytes", bytes.len()));
        };
        if header.magic != MAGIC {
            return damaged(0, "the magic of a twindex file", format!("{:02x?}", header.magic));
        }
        let expected = header.expected_checksum();
        // guard: a header is compared with its checksum
        if header.checksum.get() != expected {
            return damaged(
                60,
                &format!("checksum {expected:08x}"),
                format!("{:08x}", header.checksum.get()),
            );
        }
        Ok(header)
    }

    /// Reads and checks the header of a file, which must have the role `role`.
    ///
    /// The magic and the checksum are checked before the version and the features, so that a flipped bit is reported as
    /// damage and not as a newer version.
    ///
    /// # Errors
    /// A [`Refusal`] if the header is damaged or not supported by this version.
    pub fn read(bytes: &[u8], role: Role) -> Result<Self, Refusal> {
        let header = Self::read_any(bytes).map_err(Refusal::Damaged)?;
        let damaged = |offset, expected: &str, found: String| {
            Err(Refusal::Damaged(Fault::new(offset, expected, found)))
        };
        let unsupported =
            |field, found: String, supported: String| Err(Refusal::Unsupported(field, found, supported));
        // guard: another version is refused
        if header.version.get() != super::VERSION {
            let found = header.version.to_string();
            let advice = if header.version.get() < super::VERSION {
                format!("no release wrote version {found}: build the index again")
            } else {
                USE_NEWER.to_owned()
            };
            return unsupported("format version", found, format!("{}; {advice}", super::VERSION));
        }
        let known = role.incompatible_known();
        // guard: unknown features are refused
        if header.incompatible.get() & !known != 0 {
            let found = format!("{:#x}", header.incompatible.get());
            let supported = if known == 0 { "none".to_string() } else { format!("{known:#x}") };
            return unsupported("incompatible feature set", found, format!("{supported}; {USE_NEWER}"));
        }
        if header.fingerprint_bits != FINGERPRINT_BITS {
            return unsupported(
                "fingerprint width",
                header.fingerprint_bits.to_string(),
                format!("{FINGERPRINT_BITS}; {USE_NEWER}"),
            );
        }
        if header.role != role as u8 {
            return damaged(10, &format!("role {} ({role:?})", role as u8), header.role.to_string());
        }
        // guard: reserved fields of a header are zero
        if header.reserved.get() != 0 {
            return damaged(56, "zero", header.reserved.to_string());
        }
        Ok(header)
    }
}
