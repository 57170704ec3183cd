//! The results folder and its files. The folder is written under a temporary name and then renamed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use twindex::sys::{RealVfs, Vfs};
use twindex_join::Sorter;

use super::Dedup;
use super::against::ComparedIndex;
use super::clusters::Clusters;
use super::corpus::Corpus;
use super::file::{write_file, write_hashed_file};
use super::groups::Grouped;
use super::hosts::{HostCounter, Hosts};
use super::keys::ByKey;
use super::layout::RUN;
use super::near::JoinLimits;
use super::score::{Score, ScoreKind};
use super::written::Written;
use crate::error::InvalidOptions;
use crate::hashed_file::{FileDigest, WrittenFile};
use crate::input::{Annotation, Compression, Documents, KeptBlock, KeptWriter};
use crate::output_path::{check_folder, is_inside};
use crate::tsv;
use crate::urls::URLS_HEAD;

/// The results folder, which is written under a temporary name and then renamed.
pub(super) struct OutputFolder<'a> {
    /// The path as the user specified it, for messages.
    given: &'a Path,
    /// The parent folder joined with the name. Has no `.` or `/` at the end, which the rename system call rejects.
    path: PathBuf,
    parent: PathBuf,
}

impl<'a> OutputFolder<'a> {
    pub(super) fn resolve(given: &'a Path) -> anyhow::Result<Self> {
        let Some(name) = given.file_name() else {
            let shown = given.display();
            let why =
                format!("--out {shown}: expected the name of a folder to make, for example {shown}/deduped");
            return Err(InvalidOptions::new(why.replace("//", "/")).into());
        };
        let parent = match given.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok(Self { given, path: parent.join(name), parent: parent.to_owned() })
    }

    /// Returns the final path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the parent folder.
    pub(super) fn parent(&self) -> &Path {
        &self.parent
    }

    /// Returns an error if the results folder holds a file that the run reads, or is inside a folder that it reads.
    /// Called before anything is read. A results folder that does not exist yet may be inside an input folder, because
    /// folders are listed before anything is created.
    pub(super) fn check_inputs(&self, job: &Dedup) -> anyhow::Result<()> {
        if let Some(history) = job.scope.against.iter().find(|history| is_inside(&self.path, history)) {
            return Err(InvalidOptions::new(format!(
                "--out {}: is inside the history {}; choose another folder",
                self.given.display(),
                history.display()
            ))
            .into());
        }
        Ok(check_folder(self.given, job.reading.inputs.iter().chain(&job.other_files()))?)
    }

    /// Returns an error if the results folder holds one of the files that were found in the input folders, through a
    /// link.
    pub(super) fn check_files(&self, documents: &Documents) -> anyhow::Result<()> {
        if self.path.symlink_metadata().is_err() {
            return Ok(());
        }
        Ok(check_folder(self.given, documents.named_files())?)
    }

    /// Returns an error if existing files would be overwritten. Called before any work is done.
    pub(super) fn check(&self, force: bool) -> anyhow::Result<()> {
        let shown = self.given.display();
        let Ok(metadata) = self.path.symlink_metadata() else { return Ok(()) };
        ensure!(
            !metadata.is_symlink(),
            "{shown}: is a symbolic link, which is not replaced; name the folder that it points to, or \
             another one"
        );
        ensure!(force, "{shown}: already exists; choose another folder, or --force to replace it");
        self.check_made_by_us(&self.path)
    }

    /// Returns an error if a folder contains files that no run of `dedup` wrote. The folder is OUT, or the earlier results
    /// that were just moved aside.
    fn check_made_by_us(&self, folder: &Path) -> anyhow::Result<()> {
        let shown = self.given.display();
        let found = || -> anyhow::Result<()> {
            if folder.symlink_metadata()?.is_dir() {
                if fs::read_dir(folder)?.next().is_none() {
                    return Ok(()); // nothing can be lost
                }
                if let Some(written) = Written::read(folder)? {
                    return written.check_all_ours(folder);
                }
                ensure!(
                    !folder.join(RUN).exists(),
                    "{RUN} in it is of an earlier version, which did not list the files of the run; remove the folder \
                     yourself, if all of it may go"
                );
            }
            bail!("not made by `twindex dedup` (there is no {RUN} in it that lists its files)")
        };
        found().map_err(|why| {
            anyhow::anyhow!("{shown}: {why:#}, so --force does not replace it; choose another folder")
        })
    }

    /// Creates the parent folders of OUT.
    pub(super) fn make_parents(&self) -> anyhow::Result<MadeFolders> {
        let mut made = MadeFolders(Vec::new());
        let above: Vec<&Path> =
            self.parent.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
        for folder in above.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.0.push(folder.to_owned()),
                // The folder existed. Some systems report another error first, such as a read-only disk.
                Err(_) if folder.is_dir() => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("{}: cannot create", folder.display()));
                }
            }
        }
        Ok(made)
    }

    /// Moves earlier results into `aside`, and returns their path there; `None` if there are none. If files were added
    /// to the earlier results since they were checked, moves them back and returns an error.
    fn set_aside(&self, aside: &Path) -> anyhow::Result<Option<PathBuf>> {
        if self.path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let earlier = aside.join("earlier");
        fs::rename(&self.path, &earlier)
            .with_context(|| format!("{}: cannot move the earlier results aside", self.given.display()))?;
        if let Err(foreign) = self.check_made_by_us(&earlier) {
            fs::rename(&earlier, &self.path).with_context(|| {
                format!("{foreign}; it is at {} and cannot be moved back", earlier.display())
            })?;
            return Err(foreign);
        }
        Ok(Some(earlier))
    }

    /// Renames the results to their final name. Earlier results are moved aside first, and moved back if the rename
    /// fails.
    pub(super) fn put_in_place(&self, folder: &Path, force: bool) -> anyhow::Result<()> {
        let shown = self.given.display();
        self.check(force)?; // files may have been created since the first check
        RealVfs.sync_dir(folder).with_context(|| format!("{shown}: cannot make the results durable"))?;
        let aside = temporary_folder(&self.parent)?;
        let earlier = match self.set_aside(aside.path()) {
            Ok(earlier) => earlier,
            Err(error) => {
                if aside.path().join("earlier").symlink_metadata().is_ok() {
                    let _ = aside.keep(); // it contains what could not be moved back
                }
                return Err(error);
            }
        };
        if let Err(error) = fs::rename(folder, &self.path) {
            if earlier.is_some_and(|earlier| fs::rename(earlier, &self.path).is_err()) {
                let kept = aside.keep().join("earlier");
                bail!("{shown}: cannot be replaced: {error}; the earlier results are at {}", kept.display());
            }
            return Err(error).with_context(|| format!("{shown}: cannot give the results their name"));
        }
        // The earlier results may be removed only after this sync: after a power failure, either the old or the new
        // results exist.
        RealVfs.sync_dir(&self.parent).with_context(|| {
            format!("{shown}: the results are there, but may not outlast a power failure; sync the disk")
        })
    }
}

/// Folders that this run created. Drop removes the empty ones, so that a failed run leaves no folders.
pub(super) struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Syncs the directory entries of the folders.
    pub(super) fn sync(&self) -> anyhow::Result<()> {
        for made in &self.0 {
            let above = made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            RealVfs.sync_dir(above).with_context(|| format!("{}: cannot make it durable", made.display()))?;
        }
        Ok(())
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            let _ = fs::remove_dir(folder); // fails if the folder is not empty
        }
    }
}

/// Creates a folder that is removed when it is dropped. It is on the file system of the results, so that it can be
/// renamed.
pub(super) fn temporary_folder(parent: &Path) -> anyhow::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".twindex-dedup-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    builder.tempdir_in(parent).with_context(|| format!("{}: cannot create a folder in it", parent.display()))
}

/// Passes each removed document with its kept document and their packed score to `each`, except documents near one of
/// the first `history` documents.
pub(super) fn for_each_removed(
    grouped: &Grouped,
    clusters: &Clusters,
    history: u32,
    each: &mut impl FnMut(u32, u32, u64) -> twindex::Result<()>,
) -> twindex::Result<()> {
    for (document, &group) in (0..).zip(&grouped.group_of[..]) {
        let kept = clusters.kept_of_group[group as usize];
        if kept < history || kept == document {
            continue;
        }
        each(document, kept, clusters.score(grouped, group).pack())?;
    }
    Ok(())
}

/// Writes the pairs of documents in sorted order. Returns their number and the digest of the file. Uses `memory` bytes; data beyond that is
/// sorted in a scratch file.
pub(super) fn write_pairs(
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
        writeln!(out, "document\tkept\t{}", kind.columns())?;
        let all = pairs.for_each(|pair| {
            let key = |at: u32| corpus.keys.get(by_key.documents[at as usize]);
            written += 1;
            tsv::write_field(out, key((pair >> 96) as u32))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, key((pair >> 64) as u32))?;
            out.write_all(b"\t")?;
            kind.unpack(pair as u64).write(kind, out)?;
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

/// The reason why writing the pairs stopped early.
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

/// Writes the documents of a history that later documents contain, with the containing document and the contained
/// share.
pub(super) fn write_contained(
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

/// Writes the documents that were removed because of a document of a history, in sorted order, with that document and
/// the score.
pub(super) fn write_covered_by_history(
    corpus: &Corpus,
    by_key: &ByKey,
    clusters: &Clusters,
    kind: ScoreKind,
    path: &Path,
) -> anyhow::Result<FileDigest> {
    write_hashed_file(path, |out| {
        writeln!(out, "key\tother\t{}", kind.columns())?;
        for &document in &by_key.documents[..] {
            let group = corpus.grouped.group_of[document as usize];
            let kept = clusters.kept_of_group[group as usize];
            if kept >= corpus.history {
                continue;
            }
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.keys.get(kept))?;
            out.write_all(b"\t")?;
            clusters.score(&corpus.grouped, group).write(kind, out)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

pub(super) fn write_clusters(
    corpus: &Corpus,
    by_key: &ByKey,
    clusters: &Clusters,
    path: &Path,
) -> anyhow::Result<()> {
    let grouped = &corpus.grouped;
    let numbers = clusters.numbers(corpus, by_key)?;
    write_file(path, |out| {
        writeln!(out, "key\tcluster\tkept\tscore")?;
        let mut shown = itoa::Buffer::new();
        for &document in &by_key.documents[..] {
            let group = grouped.group_of[document as usize];
            let kept = clusters.kept_of_group[group as usize];
            if kept < corpus.history {
                continue;
            }
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            out.write_all(shown.format(numbers[kept as usize]).as_bytes())?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.keys.get(kept))?;
            match clusters.score(grouped, group) {
                // The most frequent case: most clusters have one document.
                Score::Resemblance { intersection, union } if intersection == union => {
                    out.write_all(b"\t1.000000\n")?;
                }
                score => {
                    out.write_all(b"\t")?;
                    score.write_short(out)?;
                    out.write_all(b"\n")?;
                }
            }
        }
        Ok(())
    })
}

/// Writes the URLs of documents, if a field has them.
pub(super) fn write_urls(corpus: &Corpus, by_key: &ByKey, path: &Path) -> anyhow::Result<()> {
    write_file(path, |out| {
        writeln!(out, "{URLS_HEAD}")?;
        for &document in by_key.documents.iter().filter(|&&document| !corpus.url(document).is_empty()) {
            tsv::write_field(out, corpus.keys.get(document))?;
            out.write_all(b"\t")?;
            tsv::write_field(out, corpus.url(document))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Counts near documents by host, and writes the tables of hosts; `None` if no document has a URL.
pub(super) fn write_hosts(
    corpus: &Corpus,
    clusters: &Clusters,
    limits: &JoinLimits<'_>,
) -> anyhow::Result<Option<Hosts>> {
    let grouped = &corpus.grouped;
    let mut counter = HostCounter::new(&grouped.budget, limits.memory)?;
    for document in corpus.documents() {
        let kept = clusters.kept_of_group[grouped.group_of[document as usize] as usize];
        counter.add(corpus.url(document), kept)?;
    }
    if counter.is_empty() { Ok(None) } else { counter.finish(Some(limits.folder)).map(Some) }
}

/// Writes the documents that were removed because of a document of another index, in sorted order, with that document.
pub(super) fn write_dropped(
    corpus: &Corpus,
    against: &ComparedIndex,
    memory: usize,
    path: &Path,
) -> anyhow::Result<FileDigest> {
    let sorted = corpus.dropped.sorted(memory)?;
    write_hashed_file(path, |out| {
        writeln!(out, "key\tother\t{}", against.columns())?;
        sorted.iter().try_for_each(|&number| corpus.dropped.write(number, out))
    })
}

/// Writes documents in input order, and returns the files. If `last`, no line is read afterwards, so the disk
/// space of the lines is freed during the pass.
pub(super) fn write_documents(
    corpus: &Corpus,
    (documents, last): (impl Iterator<Item = u32> + Send, bool),
    (folder, compression): (&Path, Option<Compression>),
    stem: &'static str,
    annotation: Option<Annotation<'_>>,
) -> anyhow::Result<Vec<WrittenFile>> {
    let kept = KeptWriter::new(folder, corpus.parser.headers().clone(), stem, annotation);
    let mut kept = kept.compressed(compression);
    let (mut documents, mut reading) = (documents, corpus.reading());
    // Reads the next block while the current one is written.
    let (mut block, mut next) = (KeptBlock::default(), KeptBlock::default());
    let mut fill =
        |block: &mut KeptBlock| corpus.fill(block, (&mut documents, last), &mut reading, annotation);
    fill(&mut block)?;
    while !block.is_empty() {
        let write = || kept.write(&block);
        let (written, filled) = rayon::join(write, || fill(&mut next));
        written.and(filled)?;
        std::mem::swap(&mut block, &mut next);
    }
    kept.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_results_are_restored_if_a_file_was_added_to_them() {
        let bench = tempfile::tempdir().unwrap();
        let (given, aside) = (bench.path().join("out"), bench.path().join("aside"));
        for folder in [&given.join("index"), &aside] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(given.join("pairs.tsv"), "").unwrap();
        let written =
            r#"{"written":{"names":["index","pairs.tsv","run.json"],"kept":0,"kept_files":[],"index":null}}"#;
        fs::write(given.join(RUN), written).unwrap();
        let out = OutputFolder::resolve(&given).unwrap();
        out.check(true).unwrap();
        fs::write(given.join("index/notes.txt"), "mine").unwrap();
        let message = out.set_aside(&aside).unwrap_err().to_string();
        assert!(message.contains("`index/notes.txt`") && message.contains("not made by"), "{message}");
        assert_eq!(fs::read(given.join("index/notes.txt")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&aside).unwrap().count(), 0);

        fs::remove_file(given.join("index/notes.txt")).unwrap();
        assert_eq!(out.set_aside(&aside).unwrap(), Some(aside.join("earlier")));
        assert_eq!(out.set_aside(&aside).unwrap(), None, "nothing is there any more");
    }
}
