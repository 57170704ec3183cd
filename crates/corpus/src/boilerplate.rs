//! Spans that many documents share, and that do not count: lists of them, made, found and used.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use twindex::params::{Shingling, Tokens};
use twindex::sketch::cut::PlacedUnits;
use twindex::sketch::{Cutter, LeavesOut};
use twindex::sys::{DurableFile, Room};
use twindex::{Index, Sketcher};
use twindex_passages::boilerplate::{Builder, Shared};
use twindex_passages::{Boilerplate, Exact, Hashed, Hasher, Shape, WIDTH_MAX, Work};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::InvalidOptions;
use crate::input::{Content, Documents, Parser, Record};
use crate::observer::Observer;
use crate::repeated::{Fate, RepeatedKeys};
use crate::sketching::{Job, Wanted, check_memory, for_each_chunk, seen_keys};

/// The name of a list in a folder of results, and in the folder of an index.
pub const BOILERPLATE: &str = "boilerplate";
/// Words of a span, unless it is said: twice a usual shingle, so that a shared span has complete shingles.
pub const BOILERPLATE_WORDS: u32 = 10;

/// Opens a list.
///
/// # Errors
///
/// Those of [`Boilerplate::open`], with what is expected.
pub fn open(path: &Path) -> anyhow::Result<Arc<Boilerplate>> {
    let list = Boilerplate::open(path).with_context(|| {
        format!("{}: expected a list of spans, as `dedup --without-boilerplate` makes it", path.display())
    })?;
    Ok(Arc::new(list))
}

/// The list in a folder of results.
pub(crate) fn of_results(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(BOILERPLATE)).filter(|path| path.is_file())
}

/// The list in the folder of an index, or beside it, as results have it.
pub(crate) fn of_index(folder: &Path) -> Option<PathBuf> {
    of_results(folder).or_else(|| of_results(&folder.join("..")))
}

/// The sketcher of an index at this path: where it leaves spans out of texts, with their list, which is `given`, or found.
///
/// # Errors
///
/// The list is needed and neither given nor found, is another one, or is given to an index that counts all words; those of
/// [`Index::sketcher`].
pub fn sketcher(index: &Index, given: Option<&Path>) -> anyhow::Result<Sketcher> {
    let params = index.params();
    let shown = index.path().display();
    let Some(digest) = params.shingling.boilerplate else {
        if let Some(given) = given {
            return Err(InvalidOptions::new(format!(
                "--boilerplate {}: the index {shown} was made of all words; leave it out",
                given.display()
            ))
            .into());
        }
        return Ok(index.sketcher()?);
    };
    let Some(path) = given.map(Path::to_owned).or_else(|| of_index(index.path())) else {
        return Err(InvalidOptions::new(format!(
            "{shown}: made without the spans of a list ({digest:032x}), which is not in its folder, nor beside it: name it \
             with --boilerplate FILE; `dedup` writes it as OUT/{BOILERPLATE}"
        ))
        .into());
    };
    let list = open(&path)?;
    Sketcher::with_boilerplate(&params, list)
        .with_context(|| format!("{}: not the list of {shown}", path.display()))
}

/// Writes a copy of a list, durably.
///
/// # Errors
///
/// The system's.
pub fn copy(list: &Boilerplate, folder: &Path) -> anyhow::Result<()> {
    let write = || {
        let mut file = DurableFile::create_new(&folder.join(BOILERPLATE))?;
        file.write_all(list.bytes())?;
        file.finish()
    };
    write().with_context(|| format!("{BOILERPLATE}: cannot write"))
}

/// Which spans are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Words of a span.
    pub(crate) words: u32,
    /// More documents than this have it.
    pub(crate) more_than: u32,
    pub(crate) repeated_keys: RepeatedKeys,
    pub(crate) memory: usize,
}

/// What a reading saw, by which two of them are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    records: u64,
    /// The sum of hashes of texts.
    texts: u64,
}

impl Seen {
    fn add(&mut self, more: Self) {
        self.records += more.records;
        self.texts = self.texts.wrapping_add(more.texts);
    }
}

/// Working memory of a thread.
struct Working<'c> {
    cutter: &'c Cutter,
    hasher: Hasher,
    placed: PlacedUnits,
    hashed: Hashed,
    work: Work,
}

impl Working<'_> {
    /// Cuts and hashes the text of a record; says what was seen.
    fn take(&mut self, parser: &Parser, record: &Record<'_>, memory: usize) -> anyhow::Result<Seen> {
        record.attached(parser)?; // as then, so that the same records are bad
        check_memory(record, 0, Some(memory), true)?;
        // Of a text that does not say all that was there nothing counts.
        let text = if let Content::Text(text) = record.content { text } else { "" };
        let Self { cutter, hasher, placed, hashed, .. } = self;
        hashed.clear(Exact::Tokens);
        cutter.for_each_placed(text, placed, |place, word| hashed.push_token(hasher, text, place, word));
        Ok(Seen { records: 1, texts: xxh3_64(text.as_bytes()) })
    }
}

/// The t-grams of the records of a chunk.
#[derive(Default)]
struct Collected {
    seen: Seen,
    grams: Vec<[u64; 2]>,
    /// The key of each, and where its t-grams end.
    records: Vec<(Vec<u8>, usize)>,
}

/// How texts are cut into the words of spans: as for shingles, where these are runs of words; without stop words and stems,
/// as spans are what is written.
fn words_of(shingling: &Shingling) -> anyhow::Result<Shingling> {
    let mut words = Shingling::words(1, shingling.seed);
    if matches!(shingling.tokens, Tokens::UnicodeWords | Tokens::WordsSymbols) {
        words = words.with_tokens(shingling.tokens)?;
    }
    (words.normal_form, words.folding) = (shingling.normal_form, shingling.folding);
    Ok(words)
}

/// Reads documents twice, and makes the list of the spans that many of them share in `folder`, where scratch files
/// go, too.
///
/// # Errors
///
/// Inputs that can be read only once, cannot be read, or change meanwhile; the system's.
pub(crate) fn count(
    documents: &Documents,
    shingling: &Shingling,
    asked: Asked,
    folder: &Path,
    observer: &dyn Observer,
) -> anyhow::Result<Arc<Boilerplate>> {
    let Asked { words, more_than, repeated_keys, memory } = asked;
    let Some(total) = documents.total_bytes() else {
        return Err(InvalidOptions::new(
            "--without-boilerplate reads its inputs three times, and standard input or a pipe can be read only once; \
             write it to a file, or name a list with --boilerplate",
        )
        .into());
    };
    debug_assert!((1..=WIDTH_MAX).contains(&(words as usize)));
    let shingling = words_of(shingling)?;
    let cutter = Cutter::new(&shingling)?;
    let (shape, hasher) = (Shape::words(words as usize), Hasher::new(shingling.seed));
    let state = || Working {
        cutter: &cutter,
        hasher,
        placed: PlacedUnits::default(),
        hashed: Hashed::default(),
        work: Work::new(shape, hasher),
    };
    // A text selects fewer fingerprints than half of its bytes, each with two counters; compressed inputs have more text.
    let most = memory / 4;
    let wanted = usize::try_from(total).unwrap_or(most);
    let shared = Shared::new(wanted.clamp(1 << 16, most.max(1 << 16)), more_than)?;

    let mut reading = documents.again()?;
    let progress = observer.begin("counting spans", reading.total_bytes());
    let job = Job {
        state,
        begin: Seen::default,
        work: |working: &mut Working<'_>, seen: &mut Seen, parser: &Parser, record: Record<'_>| {
            seen.add(working.take(parser, &record, memory)?);
            working.work.count_shared(&working.hashed, &shared);
            Ok(())
        },
    };
    let mut first = Seen::default();
    for_each_chunk(&mut reading, &*progress, &job, |seen| {
        first.add(seen);
        Ok(())
    })?;
    drop(progress);

    let mut reading = documents.again()?;
    let progress = observer.begin("collecting spans", reading.total_bytes());
    let repeated_keys = match repeated_keys {
        RepeatedKeys::Error => RepeatedKeys::Any, // the job that takes the documents says where the first one is
        other => other,
    };
    let room = Some(Room::new(folder, memory / 8));
    let mut keys = seen_keys(&reading, &Wanted { repeated_keys, room, ..Wanted::default() }, &*progress)?;
    let mut builder = Builder::new(folder, memory / 2);
    let job = Job {
        state,
        begin: Collected::default,
        work: |working: &mut Working<'_>, made: &mut Collected, parser: &Parser, record: Record<'_>| {
            made.seen.add(working.take(parser, &record, memory)?);
            working.work.append_shared(&working.hashed, &shared, &mut made.grams);
            made.records.push((record.key.to_vec(), made.grams.len()));
            Ok(())
        },
    };
    let mut second = Seen::default();
    for_each_chunk(&mut reading, &*progress, &job, |made| {
        second.add(made.seen);
        let mut start = 0;
        for (mut key, end) in made.records {
            if matches!(keys.next(&mut key)?, Fate::Taken | Fate::Numbered) {
                builder.push(&made.grams[start..end])?;
            }
            start = end;
        }
        Ok(())
    })?;
    drop(progress);
    if first != second {
        bail!("the inputs changed while they were read; run again when nothing writes to them");
    }
    drop(shared);
    let path = folder.join(BOILERPLATE);
    builder.finish(&path, (words, more_than), &shingling)?;
    open(&path)
}

/// Refuses a list that is not one of such spans.
pub(crate) fn check(list: &Boilerplate, words: Option<u32>, more_than: Option<u32>) -> Result<(), InvalidOptions> {
    let made = list.counted();
    for (option, given, made) in [
        ("without-boilerplate", more_than, made.more_than),
        ("boilerplate-words", words, made.words),
    ] {
        if let Some(given) = given.filter(|&given| given != made) {
            return Err(InvalidOptions::new(format!(
                "--{option} {given}: the list of spans {} was made with {made}; give the same, or leave it out",
                list.path().display()
            )));
        }
    }
    Ok(())
}

/// The digest of a list.
pub fn digest(list: &Boilerplate) -> u128 {
    LeavesOut::digest(list)
}
