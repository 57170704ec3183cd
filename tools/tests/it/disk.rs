//! Tests full disks: the index must be unchanged, and the command must report the error. Uses small file systems in
//! memory, if the test may mount them.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::skip::{Missing, skip};
use crate::support::{Bench, corpus, gzip, jsonl, says};

/// A small file system, mounted at `disk` in the test's folder.
struct Disk<'a> {
    bench: &'a Bench,
}

impl<'a> Disk<'a> {
    /// Mounts a file system of `size`; `None`, with a notice, if mounting is not permitted.
    fn mount(bench: &'a Bench, size: &str) -> Option<Self> {
        let path = bench.path("disk");
        fs::create_dir(&path).unwrap();
        let disk = Self { bench };
        if disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &path) {
            return Some(disk);
        }
        std::mem::forget(disk);
        skip(Missing::Elsewhere("mounting a small file system needs root"));
        None
    }

    fn remount(&self, options: &str) {
        assert!(self.run("mount", &["-o", &format!("remount,{options}")], &self.bench.path("disk")));
    }

    fn run(&self, program: &str, arguments: &[&str], path: &Path) -> bool {
        let output = Command::new(program).args(arguments).arg(path).current_dir(self.bench.root()).output();
        output.is_ok_and(|output| output.status.success())
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        self.run("umount", &[], &self.bench.path("disk"));
    }
}

#[test]
fn full_disk_leaves_the_index_unchanged_and_usable() {
    let bench = Bench::new();
    let Some(disk) = Disk::mount(&bench, "256K") else { return };
    bench.write("few.jsonl", jsonl(&corpus(1, 100)));
    bench.write("many.jsonl", jsonl(&corpus(2, 4000)));
    bench.write("many.jsonl.gz", gzip(jsonl(&corpus(2, 4000)).as_bytes()));
    bench.ok("build disk/i.twx few.jsonl -q");
    let answers = bench.ok("query disk/i.twx few.jsonl");
    let before = bench.contents("disk");
    for line in [
        "build disk/i.twx many.jsonl",
        "build disk/i.twx many.jsonl --memory 400K",
        "build disk/new.twx many.jsonl",
        "dedup many.jsonl -o disk/out",
        "dedup many.jsonl -o disk/out --near equal",
        "dedup many.jsonl -o disk/out --memory 100K",
        "dedup many.jsonl.gz -o disk/out",
    ] {
        let message = bench.refused(line);
        says(&message, &["disk", "No space left on device"]);
        assert!(!message.contains(" in: "), "in what? {message}");
        assert!(bench.contents("disk") == before, "{line}: {:?}", bench.names("disk"));
    }
    assert_eq!(bench.json("verify disk/i.twx")["sound"], true);
    assert_eq!(bench.ok("query disk/i.twx few.jsonl"), answers);

    disk.remount("size=64M");
    bench.ok("build disk/i.twx many.jsonl -q");
    bench.ok("dedup many.jsonl -o disk/out -q");
    assert_eq!(bench.json("stats disk/i.twx")["documents"], 4000);
    assert_eq!(bench.json("verify disk/i.twx")["sound"], true);
}

#[test]
fn disk_without_free_inodes_is_an_error_and_changes_nothing() {
    let bench = Bench::new();
    let Some(_disk) = Disk::mount(&bench, "4M,nr_inodes=40") else { return };
    bench.write("few.jsonl", jsonl(&corpus(1, 50)));
    bench.ok("build disk/i.twx few.jsonl -q");
    let mut fillers = 0;
    while fs::write(bench.path("disk").join(format!("filler{fillers}")), "").is_ok() {
        fillers += 1;
    }
    let before = bench.contents("disk");
    for line in ["build disk/i.twx few.jsonl", "build disk/new.twx few.jsonl", "dedup few.jsonl -o disk/out"]
    {
        says(&bench.refused(line), &["No space left on device"]);
        assert!(bench.contents("disk") == before, "{line}: {:?}", bench.names("disk"));
    }
    bench.ok("query disk/i.twx few.jsonl --count");
}

#[test]
fn index_on_a_read_only_disk_is_read_but_not_written() {
    let bench = Bench::new();
    let Some(disk) = Disk::mount(&bench, "4M") else { return };
    bench.write("few.jsonl", jsonl(&corpus(1, 100)));
    bench.ok("build disk/i.twx few.jsonl -q");
    let answers = bench.ok("query disk/i.twx few.jsonl");
    // Removes the lock file, which a copy from a backup may lack.
    fs::remove_file(bench.path("disk/i.twx/LOCK")).unwrap();
    disk.remount("ro");
    assert_eq!(bench.ok("query disk/i.twx few.jsonl"), answers);
    bench.ok("pairs disk/i.twx");
    bench.ok("stats disk/i.twx");
    assert_eq!(bench.json("verify disk/i.twx")["sound"], true);
    says(&bench.refused("build disk/i.twx few.jsonl"), &["disk/i.twx", "Read-only file system"]);
    says(&bench.refused("dedup few.jsonl -o disk/out"), &["disk", "Read-only file system"]);
    disk.remount("rw");
}
