//! A list of spans that many documents share; removes these spans from texts.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use twindex::params::Shingling;
use twindex::sketch::cut::PlacedUnits;
use twindex::sketch::{Cutter, LeavesOut, LeftOut};
use twindex::sys::vfs::Bytes;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Error, Result};

use crate::passages::boilerplate::format::{
    HEADER_BYTES, ListFault, ListHeader, ListTotals, SPAN_BYTES, span_from_bytes,
};
use crate::passages::find::hashed::{Exact, Hashed, Hasher};

/// The filter has at least this number of bits per span, but at most this number of bits in total. Its size in bits is
/// rounded up to a power of two.
const FILTER_BITS: (u64, u64) = (8, 1 << 26);
/// Working memory is reused for later texts only if its text had at most this number of bytes.
const KEPT_TEXT: usize = 1 << 20;

/// A list of spans that can be removed from texts ([`LeavesOut`]). [`open`](Self::open) maps the file into memory. A
/// Bloom filter of at least 8 bits per span, but at most 8 MiB, rejects most runs that are not spans before they are
/// looked up.
pub struct Boilerplate {
    path: PathBuf,
    bytes: Bytes,
    digest: u128,
    counted: ListTotals,
    shingling: Shingling,
    spans: Range<usize>,
    cutter: Cutter,
    hasher: Hasher,
    /// The result of [`Hasher::powers`] for the number of words in a span.
    powers: [u64; 2],
    /// A Bloom filter with one hash function: each span sets the bit that the upper bits of its fingerprint select.
    filter: Vec<u64>,
    /// Working memory that no thread is using.
    idle: Mutex<Vec<(PlacedUnits, Hashed)>>,
}

impl fmt::Debug for Boilerplate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Boilerplate")
            .field("path", &self.path)
            .field("digest", &self.digest)
            .field("counted", &self.counted)
            .finish_non_exhaustive()
    }
}

impl Boilerplate {
    /// Opens a list and verifies its contents.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the file is damaged or is not a list; [`Error::Invalid`] if this build does not support the
    /// list's text options; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let file = RealVfs.open(path).map_err(|error| Error::io("open", path, error))?;
        let length = file.len().map_err(|error| Error::io("read the length of", path, error))?;
        let mapped = usize::try_from(length)
            .map_err(|_| Error::Invalid(format!("{}: too large for the address space", path.display())))?;
        let bytes = file.map(mapped).map_err(|error| Error::io("map", path, error))?;
        Self::of(path, bytes)
    }

    /// Creates a list from the contents of a list file.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::of(Path::new("bytes of a list of spans"), Bytes::Heap(bytes))
    }

    fn of(path: &Path, bytes: Bytes) -> Result<Self> {
        let corrupt = |(offset, expected, found): ListFault| Error::Corrupt {
            path: path.to_owned(),
            section: "list of spans",
            offset,
            expected,
            found,
        };
        let (header, digest) = ListHeader::from_bytes(&bytes).map_err(corrupt)?;
        let (settings, spans) = header.places();
        let shingling = std::str::from_utf8(&bytes[settings])
            .ok()
            .and_then(|text| Shingling::decode(text).ok())
            .filter(|shingling| shingling.seed == header.seed && shingling.boilerplate.is_none());
        let Some(shingling) = shingling else {
            let expected = "how texts are cut, as parameters say it, with the seed of the header";
            return Err(corrupt((HEADER_BYTES as u64, expected.into(), "something else".into())));
        };
        let cutter = Cutter::new(&shingling)?;
        cutter.check_placed()?;
        let bits = (FILTER_BITS.0 * header.spans).clamp(64, FILTER_BITS.1).next_power_of_two();
        let mut filter = vec![0; (bits / 64) as usize];
        let mut last = None;
        for (number, span) in bytes[spans.clone()].chunks_exact(SPAN_BYTES).enumerate() {
            let span = span_from_bytes(span);
            if last.is_some_and(|last| last >= span) {
                let at = (spans.start + number * SPAN_BYTES) as u64;
                return Err(corrupt((at, "spans that ascend".into(), format!("{span:032x}"))));
            }
            last = Some(span);
            let bit = bit_of(&filter, crate::passages::find::hashed::mixed((span >> 64) as u64));
            filter[bit / 64] |= 1 << (bit % 64);
        }
        let hasher = Hasher::new(header.seed);
        let powers = hasher.powers(header.counted.words as usize);
        Ok(Self {
            path: path.to_owned(),
            bytes,
            digest,
            counted: header.counted,
            shingling,
            spans,
            cutter,
            hasher,
            powers,
            filter,
            idle: Mutex::default(),
        })
    }

    /// Returns the path of the list.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all bytes of the list.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the options with which the list was built, and the number of documents in which its spans were counted.
    #[must_use]
    pub fn counted(&self) -> ListTotals {
        self.counted
    }

    /// Returns the text options, which determine how texts are split into words.
    #[must_use]
    pub fn shingling(&self) -> &Shingling {
        &self.shingling
    }

    /// Returns the number of spans. Each span has a fixed number of words; a longer shared text consists of several
    /// overlapping spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len() / SPAN_BYTES
    }

    /// Returns whether the list has no spans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns whether the run of words that begins at unit `first` is a span of the list.
    fn has(&self, hashed: &Hashed, first: usize) -> bool {
        let words = self.counted.words as usize;
        let bit = bit_of(&self.filter, hashed.fingerprint(first, words, self.powers));
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return false;
        }
        let [a, b] = hashed.hash(first, words, self.powers);
        let wanted = u128::from(a) << 64 | u128::from(b);
        let spans = &self.bytes[self.spans.clone()];
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match span_from_bytes(&spans[middle * SPAN_BYTES..(middle + 1) * SPAN_BYTES]).cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return true,
            }
        }
        false
    }

    /// Passes the byte ranges of the spans in a text to `each`; overlapping spans are merged to one range. Returns the
    /// number of words removed.
    fn places(
        &self,
        text: &str,
        (placed, hashed): &mut (PlacedUnits, Hashed),
        each: &mut dyn FnMut(Range<usize>),
    ) -> LeftOut {
        hashed.clear(Exact::Tokens);
        self.cutter.for_each_placed(text, placed, |place, word| {
            hashed.push_token(&self.hasher, text, place, word);
        });
        let width = self.counted.words as usize;
        // `run`: units of the current run of overlapping spans. `words`: number of units in all earlier runs.
        let (mut run, mut words) = (0..0, 0);
        let mut end_run = |run: &Range<usize>| {
            if !run.is_empty() {
                let place = hashed.place(run.start, run.len());
                each(place.start as usize..place.end as usize);
            }
            run.len() as u64
        };
        for first in 0..(hashed.len() + 1).saturating_sub(width) {
            if !self.has(hashed, first) {
                continue;
            }
            if first > run.end {
                words += end_run(&run);
                run.start = first;
            }
            run.end = first + width;
        }
        words += end_run(&run);
        LeftOut { words, is_all: words > 0 && words == hashed.len() as u64 }
    }
}

/// Returns the index of the filter's bit for a fingerprint: its upper bits, as many as index all bits of the filter.
#[inline]
fn bit_of(filter: &[u64], fingerprint: u64) -> usize {
    let bits = 64 * filter.len() as u64;
    (fingerprint >> (64 - bits.trailing_zeros())) as usize
}

impl LeavesOut for Boilerplate {
    fn digest(&self) -> u128 {
        self.digest
    }

    /// Replaces the contents of `rest` by the pieces of the text that are outside spans, joined with line feeds.
    fn leave_out(
        &self,
        text: &str,
        rest: &mut String,
    ) -> std::result::Result<LeftOut, twindex::sketch::Error> {
        if u32::try_from(text.len()).is_err() {
            return Err(twindex::sketch::Error::Invalid(format!(
                "a text of {} bytes: spans are left out of texts of less than 4 GiB",
                text.len()
            )));
        }
        let lent = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut work = lent.unwrap_or_default();
        rest.clear();
        let mut end = 0;
        let mut add = |piece: &str| {
            if !rest.is_empty() && !piece.is_empty() {
                rest.push('\n');
            }
            rest.push_str(piece);
        };
        let left_out = self.places(text, &mut work, &mut |place| {
            // `end` may be above `place.start`: several words may come from one character and have the same byte range.
            add(text.get(end..place.start).unwrap_or_default());
            end = place.end;
        });
        if left_out.is_all {
            rest.clear();
        } else if left_out.words > 0 {
            add(text.get(end..).unwrap_or_default());
        }
        if text.len() <= KEPT_TEXT
            && let Ok(mut idle) = self.idle.lock()
        {
            idle.push(work);
        }
        Ok(left_out)
    }
}
