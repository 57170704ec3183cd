//! Counts the documents and the removed documents of each source: a value of the `--inside` field, an input file, or a
//! folder in the keys.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::rule::clusters::Clusters;
use crate::settings::job::Dedup;
use crate::stored::corpus::Corpus;

/// Maximum number of sources and of pairs of sources that are counted. If there are more, nothing is shown.
const COUNTED_MAX: usize = 1 << 14;
/// Maximum number of sources, and of pairs of sources, that are shown.
const SHOWN: usize = 15;

/// The documents by source. Documents that were removed because of a history are not included.
pub(crate) struct Sources {
    /// The meaning of a source: `file`, `folder` or the name of the `--inside` field.
    pub(crate) of: String,
    /// The sources with the most removed documents.
    pub(crate) most: Vec<Source>,
    /// Number of sources that `most` leaves out.
    pub(crate) others: usize,
    /// The pairs of sources with the most removed documents: the sources of the removed and of the kept document, and
    /// the number of documents.
    pub(crate) pairs: Vec<(String, String, u64)>,
}

/// A source, with counts of its documents.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) documents: u64,
    pub(crate) removed: u64,
}

/// The ways to determine the source of a document.
#[derive(Clone, Copy)]
enum SourceKind {
    Inside,
    File,
    /// The next part of the key, up to a slash, after this number of bytes, which all keys share.
    Folder(usize),
}

impl Sources {
    /// Counts the documents by source; `None` if there is only one source, or too many.
    pub(crate) fn of(job: &Dedup, corpus: &Corpus, clusters: &Clusters) -> Option<Self> {
        let compared = || {
            let group = |document: u32| corpus.grouped.group_of[document as usize];
            corpus.documents().filter(move |&document| !clusters.is_of_history(group(document)))
        };
        let (kind, of) = match &job.scope.inside {
            Some(field) => (SourceKind::Inside, field.clone()),
            None if has_several_files(corpus, compared()) => (SourceKind::File, "file".to_owned()),
            None => (SourceKind::Folder(shared_folder(corpus, compared())?), "folder".to_owned()),
        };
        let mut names = KnownSources { known: HashMap::new(), names: Vec::new(), last: None };
        let mut counts: Vec<[u64; 2]> = Vec::new();
        let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
        for document in compared() {
            let source = names.of(corpus, kind, document)?;
            counts.resize(names.names.len(), [0; 2]);
            counts[source as usize][0] += 1;
            let kept = clusters.kept_of_group[corpus.grouped.group_of[document as usize] as usize];
            if kept != document {
                let of_kept = names.of(corpus, kind, kept)?;
                counts.resize(names.names.len(), [0; 2]);
                counts[source as usize][1] += 1;
                *pairs.entry((source, of_kept)).or_default() += 1;
                if pairs.len() > COUNTED_MAX {
                    return None;
                }
            }
        }
        let KnownSources { names, .. } = names;
        if names.len() < 2 {
            return None;
        }
        let name = |source: u32| String::from_utf8_lossy(&names[source as usize]).into_owned();
        let mut most: Vec<Source> = (0..)
            .zip(&counts)
            .map(|(source, &[documents, removed])| Source { name: name(source), documents, removed })
            .collect();
        most.sort_by(|a, b| {
            let order = |one: &Source| (Reverse(one.removed), Reverse(one.documents));
            order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
        });
        let others = most.len().saturating_sub(SHOWN);
        most.truncate(SHOWN);
        let mut pairs: Vec<(String, String, u64)> =
            pairs.into_iter().map(|((a, b), documents)| (name(a), name(b), documents)).collect();
        pairs.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
        pairs.truncate(SHOWN);
        Some(Self { of, most, others, pairs })
    }
}

/// Returns whether the documents are records of two files or more.
fn has_several_files(corpus: &Corpus, mut documents: impl Iterator<Item = u32>) -> bool {
    let first = documents.next().and_then(|document| corpus.file_of_record(document));
    let differs = |document| corpus.file_of_record(document).is_some_and(|file| Some(file) != first);
    first.is_some() && documents.any(differs)
}

/// Returns the length of the folder that all keys begin with; `None` if no key has a folder below it.
fn shared_folder(corpus: &Corpus, mut documents: impl Iterator<Item = u32>) -> Option<usize> {
    let first = corpus.keys.get(documents.next()?);
    let mut shared = first.len();
    for document in documents {
        let key = corpus.keys.get(document);
        shared = first[..shared].iter().zip(key).take_while(|(a, b)| a == b).count();
        if shared == 0 {
            break;
        }
    }
    Some(first[..shared].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1))
}

/// The names of sources, each with a number.
struct KnownSources {
    known: HashMap<Vec<u8>, u32>,
    names: Vec<Vec<u8>>,
    /// The source found last. Most documents have the source of the document before.
    last: Option<u32>,
}

impl KnownSources {
    /// Returns the number of the source of a document; `None` if there are too many sources.
    fn of(&mut self, corpus: &Corpus, kind: SourceKind, document: u32) -> Option<u32> {
        let name = match kind {
            SourceKind::Inside => corpus.grouped.value_of(corpus.grouped.group_of[document as usize]),
            SourceKind::File => {
                corpus.file_of_record(document).map_or(&b"-"[..], |file| file.as_os_str().as_encoded_bytes())
            }
            SourceKind::Folder(shared) => {
                let rest = corpus.keys.get(document).get(shared..).unwrap_or_default();
                rest.iter().position(|&byte| byte == b'/').map_or(&b"(no folder)"[..], |slash| &rest[..slash])
            }
        };
        if let Some(last) = self.last.filter(|&last| self.names[last as usize] == name) {
            return Some(last);
        }
        let next = self.names.len() as u32;
        let number = match self.known.get(name) {
            Some(&number) => number,
            None if self.names.len() >= COUNTED_MAX => return None,
            None => {
                self.known.insert(name.to_vec(), next);
                self.names.push(name.to_vec());
                next
            }
        };
        self.last = Some(number);
        Some(number)
    }
}
