//! Finds documents of a run by key, and reads them again from their files.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use twindex::params::Shingling;
use twindex::sys::MemoryBudget;

use crate::input::batch::Record;
use crate::input::content::Content;
use crate::input::documents::Documents;
use crate::input::fields::deciding::DecidingValues;
use crate::input::fields::features::Features;
use crate::input::fields::fingerprint::Code;
use crate::input::options::InputOptions;
use crate::input::parser::Parser;
use crate::results::run_file::RunInput;
use crate::rule::repeated::{EarlierKeys, KeyDecision, RepeatedKeys, SeenKeys, without_numbers};
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::work::observer::Observer;

/// A document that was read again.
pub(crate) struct DocumentRead {
    pub(crate) place: String,
    pub(crate) content: DocumentContent,
    /// The bytes that are compared for equality.
    pub(crate) identity: Vec<u8>,
    /// The values of the fields that affect which document is kept.
    pub(crate) deciding: DecidingValues,
}

pub(crate) enum DocumentContent {
    Text(String),
    Features(Features),
    Fingerprint(Code),
}

impl DocumentContent {
    pub(crate) fn lent(&self) -> Content<'_> {
        match self {
            Self::Text(text) => Content::Text(text),
            Self::Features(features) => Content::Features(features),
            Self::Fingerprint(fingerprint) => Content::Fingerprint(*fingerprint),
        }
    }

    /// Returns whether two documents are equal without normalization.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.lent().identity() == other.lent().identity()
    }

    /// Returns the features, each with its weight, sorted and without duplicates; `None` if the document has no
    /// features.
    pub(crate) fn features(&self) -> Option<Vec<String>> {
        let Self::Features(features) = self else { return None };
        let weights = features.weights().iter().map(|weight| format!("={weight}"));
        let mut items: Vec<String> = features
            .names()
            .zip(weights.chain(std::iter::repeat(String::new())))
            .map(|(name, weight)| format!("{}{weight}", String::from_utf8_lossy(name)))
            .collect();
        items.sort_unstable();
        items.dedup();
        Some(items)
    }
}

/// A document to find. It may have any of these keys.
pub(crate) struct KeysToFind {
    pub(crate) keys: Vec<Vec<u8>>,
}

/// Returns the sought keys without the numbers that the run may have added to repeated keys.
pub(crate) fn roots(sought: &[KeysToFind]) -> Vec<&[u8]> {
    sought.iter().flat_map(|one| one.keys.iter().map(|key| without_numbers(key))).collect()
}

/// The error that stops reading when all documents are found.
#[derive(Debug)]
struct AllFound;

impl Display for AllFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all documents that were sought are found")
    }
}

impl std::error::Error for AllFound {}

/// Returns `key` with the absolute path `path` in place of the input's path as the user gave it. Keys of text files,
/// and of records without a key of their own, begin with the input's path. Returns `None` for other keys.
pub(crate) fn alias(input: &RunInput, path: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let (given, path) = (input.given.as_os_str().as_encoded_bytes(), path.as_os_str().as_encoded_bytes());
    let root = without_numbers(key);
    let packed = given.strip_prefix(root).filter(|packed| {
        let is_packing =
            [&b""[..], b".gz", b".zst", b".zstd"].iter().any(|end| packed.eq_ignore_ascii_case(end));
        is_packing && path.ends_with(packed)
    });
    if let Some(packed) = packed {
        return Some([&path[..path.len() - packed.len()], &key[root.len()..]].concat());
    }
    // After the given path, the key of a row in a file continues with a colon, the key of a file in a folder with a
    // slash.
    let below = key.strip_prefix(given).filter(|below| matches!(below.first(), Some(b':' | b'/')));
    below.map(|below| [path, below].concat())
}

/// Adds the keys of the files `paths` that equal a sought key except for added numbers.
pub(crate) fn add_keys(
    earlier: &mut EarlierKeys,
    (history, paths): (usize, &[PathBuf]),
    options: &InputOptions,
    sought: &[KeysToFind],
) -> anyhow::Result<()> {
    let mut documents = Documents::open(paths, options)?;
    let roots = roots(sought);
    let job = Job {
        state: || (),
        begin: Vec::new,
        work: |(): &mut (), made: &mut Vec<Vec<u8>>, _: &Parser, record: Record<'_>| {
            if roots.contains(&without_numbers(record.key)) {
                made.push(record.key.to_vec());
            }
            Ok(())
        },
    };
    for_each_chunk(&mut documents, &(), &job, |made| {
        made.iter().try_for_each(|key| earlier.add(key, history, &MemoryBudget::unlimited()))
    })
}

/// Finds documents by their keys, and returns them in the order of `sought`. `earlier` has the keys of the histories of
/// the run, which count as earlier documents. Stops reading when all documents are found.
pub(crate) fn find(
    paths: &[PathBuf],
    options: &InputOptions,
    normalised: Option<&Shingling>,
    (repeated, earlier): (RepeatedKeys, Option<&EarlierKeys>),
    sought: &[KeysToFind],
    observer: &dyn Observer,
) -> anyhow::Result<Vec<Option<DocumentRead>>> {
    let mut documents = Documents::open_part(paths, options)?;
    if let Some(shingling) = normalised {
        documents.compare_normalised(shingling)?;
    }
    let progress = observer.begin("reading", documents.total_bytes());
    let mut found: Vec<Option<DocumentRead>> = sought.iter().map(|_| None).collect();
    // The run may have added a number to a repeated key, so keys are compared without added numbers.
    let roots = roots(sought);
    let job = Job {
        state: || (),
        begin: Vec::new,
        work: |(): &mut (), made: &mut Vec<(Vec<u8>, DocumentRead)>, parser: &Parser, record: Record<'_>| {
            if !roots.contains(&without_numbers(record.key)) {
                return Ok(());
            }
            let content = match record.content {
                Content::Text(text) => DocumentContent::Text(text.to_owned()),
                Content::Features(features) => DocumentContent::Features(features.clone()),
                Content::Fingerprint(fingerprint) => DocumentContent::Fingerprint(fingerprint),
                // Such documents are not compared.
                Content::Opaque { .. } if parser.fields.has_text() => DocumentContent::Text(String::new()),
                Content::Opaque { .. } => DocumentContent::Features(Features::default()),
            };
            let identity = parser.identity(record.content).into_owned();
            let deciding = record.attached(parser)?.deciding().clone();
            let place = record.place().to_string();
            made.push((record.key.to_vec(), DocumentRead { place, content, identity, deciding }));
            Ok(())
        },
    };
    let is_last = repeated == RepeatedKeys::Last;
    // `Last` selects the last document with a key. Other treatments that add no numbers select the first.
    let repeated = if is_last { RepeatedKeys::Any } else { repeated.or_first() };
    let mut keys = SeenKeys::new(repeated, &MemoryBudget::unlimited())?;
    let read = for_each_chunk(&mut documents, &*progress, &job, |made| {
        for (mut key, one) in made {
            let is_earlier = earlier.map(|earlier| earlier.find(&key)).transpose()?.flatten().is_some();
            if keys.next_after(&mut key, is_earlier, earlier)? == KeyDecision::PassedOver {
                continue;
            }
            let number = sought.iter().position(|sought| sought.keys.contains(&key));
            if let Some(found) = number.map(|number| &mut found[number])
                && (is_last || found.is_none())
            {
                *found = Some(one);
            }
        }
        if !is_last && found.iter().all(Option::is_some) { Err(AllFound.into()) } else { Ok(()) }
    });
    match read {
        Err(error) if !error.is::<AllFound>() => Err(error),
        _ => Ok(found),
    }
}
