//! The results of `dedup` must be durable before they get their final name. When the folder is renamed to OUT, all files
//! in it and its directory entries are synced, and the rename itself is synced at the end. The tests check the system
//! calls with strace, if it is available.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Bench, corpus, jsonl};

const CALLS: &str = "trace=openat,write,writev,pwrite64,copy_file_range,ftruncate,fsync,fdatasync,rename,renameat,\
                     renameat2,linkat,mkdir,mkdirat";

/// Files that were written, and folders whose entries changed, since they were last synced.
#[derive(Debug, Default)]
struct Unsynced {
    root: PathBuf,
    paths: BTreeSet<PathBuf>,
    /// The new paths of renamed folders.
    folders: Vec<PathBuf>,
}

impl Unsynced {
    /// Returns an absolute path, as strace prints it for descriptors.
    fn whole(&self, path: &str) -> PathBuf {
        self.root.join(path).components().collect()
    }

    fn name(&mut self, path: &Path) {
        self.paths.extend(path.parent().map(Path::to_owned));
    }

    /// Processes one line of strace output, with the paths of descriptors.
    fn take(&mut self, line: &str) {
        let Some((call, arguments)) = line.split_once(' ').and_then(|(_, rest)| rest.trim().split_once('('))
        else {
            return;
        };
        if line.contains(" resumed>") || line.contains(" = -1 ") {
            return;
        }
        let quoted: Vec<PathBuf> =
            arguments.split('"').skip(1).step_by(2).map(|path| self.whole(path)).collect();
        let descriptor = || {
            let (_, path) = arguments.split_once('<')?;
            let (path, suffix) = path.split_once('>')?;
            (!suffix.starts_with("(deleted)")).then(|| PathBuf::from(path))
        };
        match call {
            "openat" if arguments.contains("O_CREAT") => self.name(&quoted[0]),
            "mkdir" | "mkdirat" => self.name(&quoted[0]),
            "fsync" | "fdatasync" => {
                self.paths.remove(&descriptor().unwrap());
            }
            "rename" | "renameat" | "renameat2" | "linkat" => {
                let [from, to] = &quoted[..] else { panic!("{line}") };
                // The content of the lock file is not needed after a crash.
                let left: Vec<_> = self
                    .paths
                    .iter()
                    .filter(|path| path.starts_with(from) && !path.ends_with("LOCK"))
                    .collect();
                assert!(left.is_empty(), "{line}: not synced before: {left:?}");
                if to.is_dir() {
                    self.folders.push(to.clone());
                }
                self.name(from);
                self.name(to);
            }
            "write" | "writev" | "pwrite64" | "copy_file_range" | "ftruncate" => {
                self.paths.extend(descriptor().filter(|path| path.starts_with(&self.root)));
            }
            _ => {}
        }
    }
}

#[test]
fn results_of_dedup_are_synced_before_their_rename_and_the_rename_is_synced() {
    let bench = Bench::new();
    bench.write("pages.jsonl", jsonl(&corpus(3, 400)));
    for run in ["dedup pages.jsonl -o out -q", "dedup pages.jsonl -o out -q --force"] {
        let command = bench.command(run);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-qq", "-o", "trace", "-e", CALLS]).arg(command.get_program());
        strace.args(command.get_args()).current_dir(bench.root());
        if crate::support::strace(&mut strace).is_none() {
            return;
        }
        let root = fs::canonicalize(bench.root()).unwrap();
        let mut unsynced = Unsynced { root: root.clone(), ..Unsynced::default() };
        for line in bench.read("trace").lines() {
            unsynced.take(line);
        }
        let out = root.join("out");
        assert!(unsynced.folders.contains(&out), "{run}: {:?}", unsynced.folders);
        let left: Vec<_> =
            unsynced.paths.iter().filter(|path| **path == root || path.starts_with(&out)).collect();
        assert!(left.is_empty(), "{run}: not synced in the end: {left:?}");
    }
}
