//! The list in `OUT/run.json` of the files that the run wrote to OUT. Because of it, `--force` replaces only files that
//! `dedup` wrote, and `--against` detects later changes of the kept documents or the index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use twindex::store::is_of_an_index;
use twindex::{Index, Snapshot};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::InvalidOptions;
use crate::input::kept::files::{is_name_of_kept, is_name_of_keys};
use crate::results::compared::INSIDE;
use crate::results::layout::{INDEX, RUN, TABLES_OF_REMOVED, is_ours, kept_files};
use crate::results::wordless::WORDLESS;
use crate::work::file::FileDigest;
use crate::work::numbers::count;

/// The files and the index that a run wrote to its results folder.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Written {
    /// The names of all files and folders in the results folder, in ascending order.
    names: Vec<String>,
    /// Number of kept documents.
    kept: u64,
    /// The files that a history is read from, in ascending order of their names: kept documents, their keys, and the
    /// tables of removed documents.
    kept_files: Vec<KeptFile>,
    /// The index; `None` if none was written.
    index: Option<WrittenIndex>,
}

/// A file of kept documents or of their keys, or a table of removed documents.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct KeptFile {
    name: String,
    bytes: u64,
    /// The xxh3-128 hash of all bytes, in hexadecimal.
    xxh3: String,
}

/// The state of the index when the run ended.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
struct WrittenIndex {
    documents: u64,
    /// The number of the last commit.
    generation: u64,
    /// A hash of the digests of all segments, in hexadecimal. It does not depend on the random UUID of the index, so
    /// that equal runs write equal files.
    segments: String,
}

impl WrittenIndex {
    fn of(snapshot: &Snapshot) -> Self {
        let digests: Vec<u8> =
            snapshot.entries().iter().flat_map(|segment| segment.digest.to_le_bytes()).collect();
        Self {
            documents: snapshot.documents(),
            generation: snapshot.generation(),
            segments: in_hexadecimal(xxh3_128(&digests)),
        }
    }
}

impl KeptFile {
    /// Describes a file. If a stopped run wrote it, `digests` lacks its digest, and the file is read.
    fn of(folder: &Path, name: String, digests: &Digests) -> anyhow::Result<Self> {
        let FileDigest { bytes, xxh3 } = match digests.get(&name) {
            Some(&digest) => digest,
            None => FileDigest::read(&folder.join(&name))
                .with_context(|| format!("{name}: cannot be read again"))?,
        };
        Ok(Self { name, bytes, xxh3: in_hexadecimal(xxh3) })
    }
}

/// Digests of files, by name.
pub(crate) type Digests = BTreeMap<String, FileDigest>;

fn in_hexadecimal(hash: u128) -> String {
    format!("{hash:032x}")
}

/// Whether the digests of the kept files are compared, in addition to their lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Compares digests of files that were modified after run.json was written. Other files are not read.
    Modified,
    /// Compares all digests, since the files are read anyway.
    All,
}

impl Written {
    /// Describes the results in `folder` before run.json is written. `kept` is the number of kept documents, and
    /// `digests` has the digests of the files that this process wrote. Scratch files are not listed.
    pub(crate) fn of(folder: &Path, kept: u64, digests: &Digests) -> anyhow::Result<Self> {
        let mut names = vec![RUN.to_owned()];
        for name in names_in(folder).with_context(|| format!("{}: cannot be listed", folder.display()))? {
            names.extend(name.into_string().ok().filter(|name| is_ours(name) || name == INDEX));
        }
        names.sort_unstable();
        names.dedup();
        let is_checked =
            |name: &str| is_name_of_kept(name) || is_name_of_keys(name) || TABLES_OF_REMOVED.contains(&name);
        let kept_files = names.iter().filter(|name| is_checked(name));
        let kept_files = kept_files
            .map(|name| KeptFile::of(folder, name.clone(), digests))
            .collect::<anyhow::Result<_>>()?;
        let has_index = names.iter().any(|name| name == INDEX);
        let index = has_index.then(|| Index::open(folder.join(INDEX))).transpose()?;
        Ok(Self { names, kept, kept_files, index: index.map(|index| WrittenIndex::of(&index.snapshot())) })
    }

    /// Reads the record in a results folder; `None` if there is no run.json, or an earlier version wrote it.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct OnlyWritten {
            #[serde(default)]
            written: Option<Written>,
        }
        let path = folder.join(RUN);
        let json = match fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("{}: cannot be read", path.display())),
        };
        let run: OnlyWritten = serde_json::from_slice(&json)
            .with_context(|| format!("{}: not as `dedup` writes it", path.display()))?;
        Ok(run.written)
    }

    /// Returns an error unless the kept files and the index in `folder` are unchanged since the run wrote them.
    pub(crate) fn check(&self, folder: &Path, check: Check) -> anyhow::Result<()> {
        let shown = folder.display();
        let found = kept_files(folder)?.unwrap_or_default();
        let name_of = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let written = |name: &str| self.kept_files.iter().any(|file| file.name == name);
        if let Some(other) = found.iter().filter_map(name_of).find(|name| !written(name)) {
            return Err(parted(folder, &found, &format!("{other} was added")));
        }
        let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
        let made: Option<SystemTime> = modified(&folder.join(RUN));
        for file in &self.kept_files {
            let path = folder.join(&file.name);
            let differs = match path.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some("is gone".to_owned()),
                Err(error) => {
                    return Err(error).with_context(|| format!("{}: cannot be read", path.display()));
                }
                Ok(metadata) if metadata.len() != file.bytes => Some(format!(
                    "has {} bytes, of {} that the run wrote",
                    count(metadata.len()),
                    count(file.bytes)
                )),
                Ok(_) if check == Check::Modified && modified(&path) <= made => None,
                Ok(_) => {
                    let found = FileDigest::read(&path);
                    let found = found.with_context(|| format!("{}: cannot be read", path.display()))?;
                    (in_hexadecimal(found.xxh3) != file.xxh3)
                        .then(|| "has other bytes than the run wrote".to_owned())
                }
            };
            if let Some(differs) = differs {
                return Err(parted(folder, &found, &format!("{} {differs}", file.name)));
            }
        }
        let path = folder.join(INDEX);
        let index = match (&self.index, path.is_dir()) {
            (None, false) => return Ok(()),
            (None, true) => return Err(parted(folder, &found, "its index was added")),
            (Some(_), false) => return Err(parted(folder, &found, "its index is gone")),
            (Some(index), true) => index,
        };
        let now =
            WrittenIndex::of(&Index::open(&path).with_context(|| format!("--against {shown}"))?.snapshot());
        if now != *index {
            let why = format!(
                "its index was changed (commit {} with {} documents; the run wrote commit {} with {})",
                now.generation,
                count(now.documents),
                index.generation,
                count(index.documents)
            );
            return Err(parted(folder, &found, &why));
        }
        Ok(())
    }

    /// Returns an error that names a file or folder in `folder` that the run did not write, if there is one.
    pub(crate) fn check_all_ours(&self, folder: &Path) -> anyhow::Result<()> {
        const NOT_OURS: &str = "was not made by `twindex dedup`";
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let is_written =
                name.to_str().is_some_and(|name| self.names.iter().any(|written| written == name));
            if is_written && kind.is_dir() && name == INDEX {
                for entry in fs::read_dir(entry.path())? {
                    let entry = entry?;
                    let name = entry.file_name();
                    if !(entry.file_type()?.is_file()
                        && (is_of_an_index(&name) || name == INSIDE || name == WORDLESS))
                    {
                        bail!("`{INDEX}/{}` in it {NOT_OURS}", name.display());
                    }
                }
            } else if !(is_written && kind.is_file() && name != INDEX) {
                bail!("`{}` in it {NOT_OURS}", name.display());
            }
        }
        Ok(())
    }
}

fn names_in(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns the error for a results folder that was changed after its run. It advises to name the kept files or the
/// index instead of the folder.
fn parted(folder: &Path, kept: &[PathBuf], why: &str) -> anyhow::Error {
    let mut named: Vec<String> = kept.iter().map(|kept| format!("--against {}", kept.display())).collect();
    let index = folder.join(INDEX);
    if index.is_dir() {
        named.insert(0, format!("--against {}", index.display()));
    }
    let advice = if named.is_empty() { "run again to make them".to_owned() } else { named.join(" or ") };
    InvalidOptions::new(format!(
        "--against {}: {why}, so its files are no longer one history; name the part that counts: \
         {advice}",
        folder.display()
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::input::open::reader::Compression;
    use crate::settings::job::Dedup;

    #[test]
    fn digests_of_written_files_are_those_of_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::File::create_new(&path).unwrap().write_all(text.as_bytes()).unwrap();
            path
        };
        let rows = |from: u32| (from..from + 40).map(|row| format!("k{},text {row} of all\n", row % 30));
        let table = |from: u32| "id,text\n".to_owned() + &rows(from).collect::<String>();
        let lines = |from: u32| -> String {
            let line = |row: u32| format!("{{\"id\":\"k{}\",\"text\":\"text {row} of all\"}}\n", row % 30);
            (from..from + 40).map(line).collect()
        };
        // Each file of kept documents is closed and opened again, and so is each file of keys.
        let inputs = [
            write("a.jsonl", &lines(0)),
            write("b.csv", &table(30)),
            write("c.jsonl", &lines(70)),
            write("d.csv", &table(110)),
        ];
        for compress in [None, Some(Compression::Gzip), Some(Compression::Zstd)] {
            let mut job = Dedup::new(&inputs, folder.path().join(format!("{compress:?}")));
            job.results.compress = compress;
            assert_eq!(job.run().unwrap().kept_files.len(), 2);
            let mut later = Dedup::new(&inputs, folder.path().join(format!("{compress:?} later")));
            later.scope.against = vec![job.results.out.clone()];
            later.run().unwrap();
            for (out, tables) in [(job.results.out, 1), (later.results.out, 2)] {
                let written = Written::read(&out).unwrap().unwrap();
                let read = Written::of(&out, written.kept, &Digests::new()).unwrap();
                assert_eq!(written, read, "{compress:?}");
                let keys = written.kept_files.iter().filter(|file| is_name_of_keys(&file.name)).count();
                assert_eq!(written.kept_files.len() - keys, 2 + tables, "{written:?}");
                assert_eq!(keys, 2 * usize::from(tables == 1), "{written:?}");
            }
        }
    }
}
