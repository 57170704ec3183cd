//! Writes the tables of a results folder.

use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::path::Path;

use twindex::sys::threads::{cut, in_order};
use twindex_join::Sorter;

use crate::input::kept::annotate::AnnotationOptions;
use crate::input::open::reader::Compression;
use crate::results::documents::write_annotated;
use crate::results::layout::DECIDED;
use crate::results::written::Digests;
use crate::rule::against::ComparedIndex;
use crate::rule::clusters::{Clusters, for_each_removed};
use crate::rule::near::{JoinLimits, NearGroups};
use crate::rule::score::{Score, ScoreKind};
use crate::stored::corpus::Corpus;
use crate::stored::keys::ByKey;
use crate::urls::hosts::{HostCounter, Hosts};
use crate::urls::learned::{URLS, URLS_HEAD};
use crate::work::file::{FileDigest, write_file, write_hashed_file};
use crate::work::tsv;

/// Writes the tables of results and, if requested, the annotated documents. Returns the number of pairs, the names of
/// the files of annotated documents, and the digests of the tables of removed documents.
pub(crate) fn write_tables(
    corpus: &Corpus,
    by_key: Option<ByKey>,
    (near, clusters, noted): (&NearGroups, &Clusters, Option<(&AnnotationOptions, Option<Compression>)>),
    (against, has_history): (&[ComparedIndex], bool),
    limits: &JoinLimits<'_>,
) -> anyhow::Result<(u64, Vec<String>, Digests)> {
    let by_key = match by_key {
        Some(by_key) => by_key,
        None => corpus.by_key(limits.memory)?,
    };
    let listed = (near.kind, clusters);
    let named = |name: &str| (name.to_owned(), limits.folder.join(name));
    let mut digests = Digests::new();
    let (name, path) = named("pairs.tsv");
    let (pairs, digest) = write_pairs(corpus, &by_key, listed, limits, &path)?;
    digests.insert(name, digest);
    write_clusters(corpus, &by_key, clusters, &limits.folder.join("clusters.tsv"))?;
    if corpus.has_urls() {
        write_urls(corpus, &by_key, clusters, &limits.folder.join(URLS))?;
    }
    let (name, path) = named("against.tsv");
    if let Some(against) = against.first() {
        digests.insert(name, write_dropped(corpus, against, limits.memory, &path)?);
    } else if has_history {
        let digest = write_covered_by_history(corpus, &by_key, clusters, near.kind, &path)?;
        digests.insert(name, digest);
    }
    let annotated =
        noted.map(|noted| write_annotated(corpus, &by_key, clusters, noted, limits.folder)).transpose()?;
    let annotated = annotated.into_iter().flatten().map(|file| file.name).collect();
    Ok((pairs, annotated, digests))
}

/// Writes each removed document with its kept document, sorted by key. Returns the number of pairs and the digest of
/// the file. If the pairs exceed the memory in `limits`, they are sorted in a scratch file.
pub(crate) fn write_pairs(
    corpus: &Corpus,
    by_key: &ByKey,
    (kind, clusters): (ScoreKind, &Clusters),
    limits: &JoinLimits<'_>,
    path: &Path,
) -> anyhow::Result<(u64, FileDigest)> {
    // Pairs are sorted by the ranks of their keys.
    let mut sorter: Sorter<u128> = Sorter::new(limits.folder, limits.memory);
    let mut push = |a: u32, b: u32, score: u64| {
        let (a, b) = (by_key.place(a), by_key.place(b));
        sorter.push(u128::from(a) << 96 | u128::from(b) << 64 | u128::from(score))
    };
    for_each_removed(&corpus.grouped, clusters, corpus.history, &mut push)?;
    let pairs = sorter.finish()?;
    let mut written = 0;
    let mut failure = None;
    let digest = write_hashed_file(path, |out| {
        let has_rule = corpus.values.are_several();
        let rule = if has_rule { format!("\t{DECIDED}") } else { String::new() };
        writeln!(out, "document\tkept\t{}{rule}", kind.columns())?;
        let all = pairs.for_each(|pair| {
            let document = |at: u32| by_key.documents[at as usize];
            let (removed, kept) = (document((pair >> 96) as u32), document((pair >> 64) as u32));
            written += 1;
            tsv::write_field(out, corpus.keys.get(removed))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.keys.get(kept))?;
            out.write_all(b"\t")?;
            kind.unpack(pair as u64).write(kind, out)?;
            if has_rule {
                out.write_all(b"\t")?;
                tsv::write_field(
                    out,
                    corpus.decided(kind == ScoreKind::Containment, removed, kept).as_bytes(),
                )?;
            }
            out.write_all(b"\n").map_err(Stop::Write)
        });
        match all {
            Ok(()) => Ok(()),
            Err(Stop::Write(error)) => Err(error),
            Err(Stop::Read(error)) => {
                failure = Some(error);
                Err(io::Error::other("the pairs cannot be read back"))
            }
        }
    })
    .map_err(|error| failure.map_or(error, anyhow::Error::from))?;
    Ok((written, digest))
}

/// The error that stopped writing the pairs.
enum Stop {
    Read(twindex::Error),
    Write(io::Error),
}

impl From<twindex::Error> for Stop {
    fn from(error: twindex::Error) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Writes contained.tsv: the documents of a history that later documents contain, each with the containing document and
/// the contained share.
pub(crate) fn write_contained(
    corpus: &Corpus,
    contained: &[(u32, u32, Score)],
    path: &Path,
) -> anyhow::Result<()> {
    write_file(path, |out| {
        writeln!(out, "key\tin\t{}", ScoreKind::Containment.columns())?;
        for &(document, inside, score) in contained {
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.keys.get(inside))?;
            out.write_all(b"\t")?;
            score.write(ScoreKind::Containment, out)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Writes against.tsv if the history was read as texts: the documents that were removed because of a document of the
/// history, sorted by key, each with that document and the score.
pub(crate) fn write_covered_by_history(
    corpus: &Corpus,
    by_key: &ByKey,
    clusters: &Clusters,
    kind: ScoreKind,
    path: &Path,
) -> anyhow::Result<FileDigest> {
    write_hashed_file(path, |out| {
        writeln!(out, "key\tother\t{}", kind.columns())?;
        write_rows(out, (corpus, by_key, clusters), |document, out| {
            let group = corpus.grouped.group_of[document as usize];
            let kept = clusters.kept_of_group[group as usize];
            if kept >= corpus.history {
                return Ok(());
            }
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.keys.get(kept))?;
            out.write_all(b"\t")?;
            clusters.score(&corpus.grouped, group).write(kind, out)?;
            out.write_all(b"\n")
        })
    })
}

/// Number of rows that one thread formats at a time, and the size in bytes of keys and URLs after which there are fewer.
const ROWS: (usize, u64) = (1 << 12, 256 << 10);

/// Writes the rows of documents in the order of keys. `row` appends the row of a document, on any thread.
fn write_rows(
    out: &mut (impl Write + Send),
    (corpus, by_key, clusters): (&Corpus, &ByKey, &Clusters),
    row: impl Fn(u32, &mut Vec<u8>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let documents = &by_key.documents;
    let weight = |at: usize| {
        let kept = clusters.kept_of_group[corpus.grouped.group_of[documents[at] as usize] as usize];
        let keys = [documents[at], kept].map(|document| corpus.keys.get(document).len());
        (keys[0] + keys[1] + corpus.url(documents[at]).len()) as u64
    };
    let format = |(): &mut (), piece: Range<usize>| {
        let mut rows = Vec::new();
        documents[piece].iter().try_for_each(|&document| row(document, &mut rows))?;
        io::Result::Ok(rows)
    };
    let write = |rows: Vec<u8>| out.write_all(&rows).map(ControlFlow::Continue);
    let threads = rayon::current_num_threads();
    in_order(&mut vec![(); threads], cut(0..documents.len(), ROWS, weight), 2, format, write).map(drop)
}

pub(crate) fn write_clusters(
    corpus: &Corpus,
    by_key: &ByKey,
    clusters: &Clusters,
    path: &Path,
) -> anyhow::Result<()> {
    let grouped = &corpus.grouped;
    let numbers = clusters.numbers(corpus, by_key)?;
    write_file(path, |out| {
        writeln!(out, "key\tcluster\tkept\tscore")?;
        write_rows(out, (corpus, by_key, clusters), |document, out| {
            let group = grouped.group_of[document as usize];
            let kept = clusters.kept_of_group[group as usize];
            if kept < corpus.history {
                return Ok(());
            }
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            out.write_all(itoa::Buffer::new().format(numbers[kept as usize]).as_bytes())?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.keys.get(kept))?;
            match clusters.score(grouped, group) {
                // The most frequent case: most clusters have one document.
                Score::Resemblance { intersection, union } if intersection == union => {
                    out.write_all(b"\t1.000000\n")
                }
                score => {
                    out.write_all(b"\t")?;
                    score.write_short(out)?;
                    out.write_all(b"\n")
                }
            }
        })
    })
}

/// Writes the URLs of documents, if a field has them, except documents near one of a history.
pub(crate) fn write_urls(
    corpus: &Corpus,
    by_key: &ByKey,
    clusters: &Clusters,
    path: &Path,
) -> anyhow::Result<()> {
    write_file(path, |out| {
        writeln!(out, "{URLS_HEAD}")?;
        write_rows(out, (corpus, by_key, clusters), |document, out| {
            let group = corpus.grouped.group_of[document as usize];
            if clusters.is_of_history(group) || corpus.url(document).is_empty() {
                return Ok(());
            }
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.url(document))?;
            out.write_all(b"\n")
        })
    })
}

/// Counts near documents by host, except documents near one of a history, and writes the tables of hosts; `None` if no
/// document has a URL.
pub(crate) fn write_hosts(
    corpus: &Corpus,
    clusters: &Clusters,
    limits: &JoinLimits<'_>,
) -> anyhow::Result<Option<Hosts>> {
    let grouped = &corpus.grouped;
    let mut counter = HostCounter::new(&grouped.budget, limits.memory)?;
    for document in corpus.documents() {
        let kept = clusters.kept_of_group[grouped.group_of[document as usize] as usize];
        if kept >= corpus.history {
            counter.add(corpus.url(document), kept)?;
        }
    }
    if counter.is_empty() { Ok(None) } else { counter.finish(Some(limits.folder)).map(Some) }
}

/// Writes against.tsv if the history was an index: the documents that were removed because of a document of the index,
/// sorted by key, each with that document and the score.
pub(crate) fn write_dropped(
    corpus: &Corpus,
    against: &ComparedIndex,
    memory: usize,
    path: &Path,
) -> anyhow::Result<FileDigest> {
    let sorted = corpus.dropped.sorted(memory)?;
    write_hashed_file(path, |out| {
        writeln!(out, "key\tother\t{}", against.kind().columns())?;
        sorted.iter().try_for_each(|&number| corpus.dropped.write(number, out))
    })
}
