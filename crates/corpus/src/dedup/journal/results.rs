//! Finished result files, which a resumed run does not write again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};
use twindex::sys::{RealVfs, Vfs};
use xxhash_rust::xxh3::Xxh3Default;

use super::{Journal, RESULTS, names, refuse, remove_any};
use crate::remembered::damaged;

/// Names of the seals. Each seal is a sealed file with the sizes and hashes of a group of result files.
const SEALS: [&str; 2] = ["index", "kept"];
/// Read buffer size in bytes.
const BUFFER: usize = 1 << 20;

impl Journal<'_> {
    /// Writes a seal for files in the results folder, which must already be durable.
    pub(in super::super) fn seal_files(&self, seal: &str, files: &[String]) -> anyhow::Result<()> {
        let results = self.folder.join(RESULTS);
        RealVfs
            .sync_dir(&results)
            .with_context(|| format!("{}: cannot make it durable", results.display()))?;
        let lines = files.iter().map(|file| {
            let (bytes, hash) = hash_of(&results.join(file))?;
            Ok(format!("{hash:016x}\t{bytes}\t{file}\n"))
        });
        let lines: Vec<String> = lines.collect::<anyhow::Result<_>>()?;
        self.seal(seal, |out| lines.iter().try_for_each(|line| out.write_all(line.as_bytes())))
    }

    /// Writes a seal for all files in `folder`, a folder in the results folder.
    pub(in super::super) fn seal_folder(&self, seal: &str, folder: &str) -> anyhow::Result<()> {
        let mut files: Vec<String> = names(&self.folder.join(RESULTS).join(folder))?
            .iter()
            .map(|name| format!("{folder}/{}", name.display()))
            .collect();
        files.sort_unstable();
        self.seal_files(seal, &files)
    }

    /// Returns the names of the files under this seal; `None` if there is no such seal.
    pub(in super::super) fn files(&self, seal: &str) -> anyhow::Result<Option<Vec<String>>> {
        Ok(self.listed(seal)?.map(|listed| listed.into_iter().map(|(file, ..)| file).collect()))
    }

    /// Returns the files under this seal, each with its size and hash.
    fn listed(&self, seal: &str) -> anyhow::Result<Option<Vec<(String, u64, u64)>>> {
        let Some(mut content) = self.sealed(seal)? else { return Ok(None) };
        let mut text = String::new();
        let path = self.folder.join(seal);
        content.read_to_string(&mut text).with_context(|| format!("{}: cannot read", path.display()))?;
        let line = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let hash = u64::from_str_radix(fields.next()?, 16).ok()?;
            let bytes = fields.next()?.parse().ok()?;
            Some((fields.next()?.to_owned(), bytes, hash))
        };
        match text.lines().map(line).collect() {
            Some(listed) => Ok(Some(listed)),
            None => bail!("{}", damaged(&path.display().to_string())),
        }
    }

    /// Removes all files from the results folder that are under no seal.
    ///
    /// # Errors
    ///
    /// A file under a seal is damaged or missing.
    pub(super) fn clean(&self, results: &Path) -> anyhow::Result<()> {
        let mut whole: BTreeSet<OsString> = BTreeSet::new();
        for seal in SEALS {
            for (file, bytes, hash) in self.listed(seal)?.unwrap_or_default() {
                let path = results.join(&file);
                if hash_of(&path).ok() != Some((bytes, hash)) {
                    return Err(refuse(&format!(
                        "{}: damaged: expected the {bytes} bytes that the stopped run wrote, found others",
                        path.display()
                    )));
                }
                if let Some((folder, _)) = file.split_once('/') {
                    whole.insert(folder.into());
                }
                whole.insert(file.into());
            }
        }
        for name in names(results)? {
            let path = results.join(&name);
            if !whole.contains(&name) {
                remove_any(&path)?;
                continue;
            }
            if !path.is_dir() {
                continue;
            }
            for inner in names(&path)? {
                let mut file = name.clone();
                file.push("/");
                file.push(&inner);
                if !whole.contains(&file) {
                    remove_any(&path.join(inner))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the size and the hash of a file.
fn hash_of(path: &Path) -> anyhow::Result<(u64, u64)> {
    let read = || -> io::Result<_> {
        let (mut file, mut hash, mut buffer, mut bytes) =
            (File::open(path)?, Xxh3Default::new(), vec![0; BUFFER], 0);
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok((bytes, hash.digest()));
            }
            hash.update(&buffer[..count]);
            bytes += count as u64;
        }
    };
    read().with_context(|| format!("{}: cannot read", path.display()))
}
