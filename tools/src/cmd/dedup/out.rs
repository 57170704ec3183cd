//! The folder of results: made beside its place, and put there whole; and the files in it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::Method;
use super::clusters::{Clusters, Pair, Score};
use super::corpus::Corpus;
use crate::tsv;

/// All that stands in OUT.
const OUTPUTS: [&str; 4] = ["pairs.tsv", "clusters.tsv", "kept.jsonl", "index"];

/// A folder that goes when it is dropped, on the file system of the results.
pub(super) fn temporary_folder(parent: &Path) -> anyhow::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".twindex-dedup-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    builder.tempdir_in(parent).with_context(|| format!("{}: cannot create a folder in it", parent.display()))
}

/// Refuses to overwrite, before any work is done.
pub(super) fn check(out: &Path, force: bool) -> anyhow::Result<()> {
    let shown = out.display();
    if out.symlink_metadata().is_err() {
        return Ok(());
    }
    ensure!(force, "{shown}: already exists; choose another folder, or --force to replace it");
    let refuse = |why: &str| {
        bail!("{shown}: {why}, so --force does not replace it; choose another folder");
    };
    let Ok(entries) = fs::read_dir(out) else { return refuse("not made by `twindex dedup`") };
    let names: Vec<_> =
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    if let Some(other) = names.iter().find(|name| OUTPUTS.iter().all(|ours| *name != ours)) {
        return refuse(&format!("`{}` in it was not made by `twindex dedup`", other.display()));
    }
    Ok(())
}

/// Gives the results their name. Earlier ones step aside first and come back if that fails.
pub(super) fn put_in_place(
    folder: tempfile::TempDir,
    out: &Path,
    parent: &Path,
    force: bool,
) -> anyhow::Result<()> {
    let shown = out.display();
    check(out, force)?; // something may have come there meanwhile
    let aside = temporary_folder(parent)?;
    let earlier = aside.path().join("earlier");
    let was_there = out.symlink_metadata().is_ok();
    if was_there {
        fs::rename(out, &earlier)
            .with_context(|| format!("{shown}: cannot move the earlier results aside"))?;
    }
    if let Err(error) = fs::rename(folder.path(), out) {
        if was_there && fs::rename(&earlier, out).is_err() {
            let kept = aside.keep().join("earlier");
            bail!("{shown}: cannot be replaced: {error}; the earlier results are at {}", kept.display());
        }
        return Err(error).with_context(|| format!("{shown}: cannot give the results their name"));
    }
    let _ = folder.keep(); // it is no longer at its temporary name
    Ok(())
}

/// Writes every pair of documents, sorted; returns how many.
pub(super) fn write_pairs(
    corpus: &Corpus,
    by_key: &[u32],
    pairs: &[Pair],
    max_bucket: usize,
    method: Method,
    path: &Path,
) -> anyhow::Result<u64> {
    let mut neighbours: Vec<Vec<(u32, Score)>> = vec![Vec::new(); corpus.groups.len()];
    for &(a, b, score) in pairs {
        neighbours[a as usize].push((b, score));
        neighbours[b as usize].push((a, score));
    }
    // A large group stands in pairs with its first document only.
    let representatives = |group: u32| {
        let group = &corpus.groups[group as usize];
        if group.is_starred(max_bucket) { &group.members[..1] } else { &group.members[..] }
    };
    let columns = if method == Method::Simhash { "distance" } else { "resemblance\tintersection\tunion" };
    let mut written = 0;
    write_file(path, |out| {
        writeln!(out, "a\tb\t{columns}")?;
        let mut partners: Vec<(u32, Score)> = Vec::new();
        for &document in by_key {
            let key = &corpus.keys[document as usize];
            let number = corpus.group_of[document as usize];
            let group = &corpus.groups[number as usize];
            let itself = if method == Method::Simhash { Score::Distance(0) } else { corpus.itself(number) };
            partners.clear();
            let starred = group.is_starred(max_bucket);
            let identical = if starred && document != group.members[0] {
                &group.members[..1]
            } else {
                &group.members[..]
            };
            partners.extend(identical.iter().map(|&other| (other, itself)));
            if !starred || document == group.members[0] {
                for &(other, score) in &neighbours[number as usize] {
                    partners.extend(representatives(other).iter().map(|&other| (other, score)));
                }
            }
            // Each pair is written by its smaller key.
            partners.retain(|&(other, _)| corpus.keys[other as usize] > *key);
            partners.sort_unstable_by(|a, b| corpus.keys[a.0 as usize].cmp(&corpus.keys[b.0 as usize]));
            for &(other, score) in &partners {
                tsv::write_field(out, key)?;
                out.write_all(b"\t")?;
                tsv::write_field(out, &corpus.keys[other as usize])?;
                writeln!(out, "\t{score}")?;
            }
            written += partners.len() as u64;
        }
        Ok(())
    })?;
    Ok(written)
}

pub(super) fn write_clusters(
    corpus: &Corpus,
    by_key: &[u32],
    clusters: &Clusters,
    path: &Path,
) -> anyhow::Result<()> {
    write_file(path, |out| {
        writeln!(out, "key\tcluster\tkept\tscore")?;
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        for &document in by_key {
            let group = corpus.group_of[document as usize] as usize;
            let kept = clusters.kept_of_group[group];
            let next = numbers.len() + 1;
            let number = *numbers.entry(kept).or_insert(next);
            tsv::write_field(out, &corpus.keys[document as usize])?;
            write!(out, "\t{number}\t")?;
            tsv::write_field(out, &corpus.keys[kept as usize])?;
            match clusters.scores[group] {
                Some(Score::Resemblance { union: 0, .. }) => writeln!(out, "\t1.000000")?,
                Some(Score::Resemblance { intersection, union }) => {
                    writeln!(out, "\t{:.6}", intersection as f64 / union as f64)?;
                }
                Some(Score::Distance(distance)) => writeln!(out, "\t{distance}")?,
                None => writeln!(out, "\t-")?, // farther than the radius, and so not measured
            }
        }
        Ok(())
    })
}

/// Writes the lines of the documents to keep, in the order of the input.
pub(super) fn write_kept(corpus: &Corpus, clusters: &Clusters, path: &Path) -> anyhow::Result<()> {
    write_file(path, |out| {
        for document in 0..corpus.keys.len() as u32 {
            if clusters.kept_of_group[corpus.group_of[document as usize] as usize] == document {
                out.write_all(&corpus.line(document).map_err(io::Error::other)?)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    })
}

/// Writes a file and makes it durable.
fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
    let whole = || {
        let mut out = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    };
    // The file has a temporary folder's name in its path, which tells the user nothing.
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    whole().with_context(|| format!("{name}: cannot write"))
}
