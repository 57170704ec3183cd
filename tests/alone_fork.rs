//! Tests a process that forks while it has a writer: only the process that opened the writer may use it, and that process
//! keeps the lock. Also tests that a commit fails if the lock was lost in another way.
//!
//! These tests are a separate program, because a forked child inherits the locks and open files of all concurrent tests.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "looks at the files of an index, and takes its lock")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use twindex::{Error, Fingerprint, Index, Params, Writer, WriterOptions};

fn created() -> (TempDir, PathBuf, Index) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let params = Params::builder().u64_keys().simhash(3).build().unwrap();
    let index = Index::create(&path, params).unwrap();
    (dir, path, index)
}

fn put(writer: &mut Writer, key: u64) {
    writer.put(key, Fingerprint(key)).unwrap();
}

fn keys(path: &Path) -> Vec<u64> {
    let snapshot = Index::open(path).unwrap().snapshot();
    (0..100).filter(|&key| snapshot.contains(key).unwrap()).collect()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[cfg(target_os = "linux")]
mod forked {
    use super::*;

    /// Runs `step` in a forked child, and returns the child's exit status: the return value of `step`, 99 after a panic,
    /// or 98 if the child does not exit within 20 seconds.
    fn in_child(step: impl FnOnce() -> i32) -> i32 {
        #[expect(
            unsafe_code,
            reason = "a fork is what is tested; the child only runs `step` and ends by _exit"
        )]
        // SAFETY: The child only runs `step`, which allocates and takes locks; glibc allows both after a fork. The child
        // runs no other thread or destructor of the parent.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork failed");
        if child == 0 {
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).unwrap_or(99);
            #[expect(unsafe_code, reason = "ends the child without the destructors of the test")]
            // SAFETY: Ends the child, so nothing of it is used afterwards.
            unsafe {
                libc::_exit(status)
            }
        }
        for _ in 0..2000 {
            let mut status = 0;
            #[expect(unsafe_code, reason = "waits for the child")]
            // SAFETY: `status` is valid for writes.
            let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
            if ended == child {
                return if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 97 };
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        #[expect(unsafe_code, reason = "ends a child that hangs")]
        // SAFETY: `child` is a child of this process that was not waited for, so its id is not reused.
        unsafe {
            libc::kill(child, libc::SIGKILL)
        };
        98
    }

    /// Returns 0 if the error names the other process, and 1 for any other result.
    fn refused<T>(result: twindex::Result<T>) -> i32 {
        match result {
            Err(Error::Invalid(why)) if why.contains("was opened by process") => 0,
            _ => 1,
        }
    }

    #[test]
    fn dropping_a_writer_in_a_fork_keeps_the_parents_lock() {
        let (_dir, path, index) = created();
        let mut writer = index.writer().unwrap();
        put(&mut writer, 1);
        writer.commit().unwrap();
        let mut writer = Some(writer);
        assert_eq!(
            in_child(|| {
                drop(writer.take());
                0
            }),
            0
        );
        let other = Index::open(&path).unwrap();
        assert!(matches!(other.writer(), Err(Error::Locked { .. })));
        let mut writer = writer.unwrap();
        for key in [2, 3] {
            put(&mut writer, key);
            writer.commit().unwrap();
        }
        drop(writer);
        assert_eq!(keys(&path), [1, 2, 3]);
        other.writer().unwrap();
    }

    /// The environment variable with the path of the index, set for the third process of the test below.
    const THIRD: &str = "TWINDEX_TEST_THIRD";

    /// Acknowledged commits were once lost in this scenario: a child drops its copy of a writer, and another process
    /// tries to write.
    #[test]
    fn writer_dropped_in_a_child_loses_no_acknowledged_commit() {
        if let Some(path) = std::env::var_os(THIRD) {
            let index = Index::open(path).unwrap();
            let status = match index.writer() {
                Err(Error::Locked { .. }) => 7,
                Err(_) => 1,
                Ok(mut writer) => {
                    (80..90).for_each(|key| put(&mut writer, key));
                    i32::from(writer.commit().is_err())
                }
            };
            std::process::exit(status);
        }
        let third = |path: &Path| {
            let name = "forked::writer_dropped_in_a_child_loses_no_acknowledged_commit";
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", name]).env(THIRD, path).status().unwrap().code()
        };
        let (_dir, path, index) = created();
        let mut writer = index.writer().unwrap();
        (0..10).for_each(|key| put(&mut writer, key));
        writer.commit().unwrap();
        (10..20).for_each(|key| put(&mut writer, key)); // put before the fork, committed after it
        let mut writer = Some(writer);
        assert_eq!(
            in_child(|| {
                drop(writer.take());
                0
            }),
            0
        );
        assert_eq!(third(&path), Some(7), "the lock is the parent's");
        let mut writer = writer.unwrap();
        writer.commit().unwrap();
        (20..30).for_each(|key| put(&mut writer, key));
        writer.commit().unwrap();
        assert_eq!(third(&path), Some(7));
        drop(writer);
        assert_eq!(third(&path), Some(0), "nobody has the lock");
        assert_eq!(keys(&path), (0..30).chain(80..90).collect::<Vec<u64>>());
        assert!(index.verify().problems.is_empty());
    }

    #[test]
    fn writer_opened_after_a_fork_continues_from_the_childs_commits() {
        let (_dir, path, index) = created();
        let status = in_child(|| {
            let mut writer = index.writer().unwrap();
            put(&mut writer, 1);
            writer.commit().unwrap();
            put(&mut writer, 50); // uncommitted, so lost when the child exits
            0
        });
        assert_eq!(status, 0);
        let mut writer = index.writer().unwrap();
        put(&mut writer, 2);
        writer.commit().unwrap();
        assert_eq!(keys(&path), [1, 2]);
    }

    #[test]
    fn child_program_of_a_writer_does_not_inherit_its_lock() {
        let (_dir, path, index) = created();
        let mut writer = index.writer().unwrap();
        put(&mut writer, 1);
        // `cat` is started by fork and exec. It waits for its input, which ends when `stdin` is dropped.
        let mut program =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        writer.commit().unwrap();
        drop(writer);
        let mut writer = Index::open(&path).unwrap().writer().unwrap();
        put(&mut writer, 2);
        writer.commit().unwrap();
        drop(program.stdin.take());
        assert!(program.wait().unwrap().success());
        put(&mut writer, 3);
        writer.commit().unwrap();
        assert_eq!(keys(&path), [1, 2, 3]);
    }

    #[test]
    fn child_that_exits_keeps_the_lock_of_the_parent() {
        let (_dir, path, index) = created();
        let mut writer = index.writer().unwrap();
        assert_eq!(in_child(|| 0), 0);
        assert!(matches!(Index::open(&path).unwrap().writer(), Err(Error::Locked { .. })));
        put(&mut writer, 1);
        writer.commit().unwrap();
        assert_eq!(keys(&path), [1]);
    }

    #[test]
    fn dropping_a_writer_in_a_fork_removes_no_batch_file() {
        let (_dir, path, index) = created();
        let mut writer = index.writer_with(WriterOptions::default().logged(false).memory(64)).unwrap();
        for key in 0..50 {
            put(&mut writer, key);
        }
        let before = names(&path);
        assert!(before.iter().any(|name| name.contains(".seg")), "{before:?}");
        let mut writer = Some(writer);
        assert_eq!(
            in_child(|| {
                drop(writer.take());
                0
            }),
            0
        );
        assert_eq!(names(&path), before);
        writer.unwrap().commit().unwrap();
        assert_eq!(keys(&path), (0..50).collect::<Vec<u64>>());
    }

    #[test]
    fn forked_child_cannot_flush_the_batch_of_its_parent() {
        for before in [0, 25, 60] {
            let (_dir, path, index) = created();
            let mut writer = index.writer_with(WriterOptions::default().memtable(10, 1 << 20)).unwrap();
            (0..before).for_each(|key| put(&mut writer, key));
            let refused = in_child(|| {
                let put = |key| writer.put(key, Fingerprint(key));
                (before..200).map(put).find(twindex::Result::is_err).map_or(1, refused)
            });
            assert_eq!(refused, 0, "{before}");
            (before..90).for_each(|key| put(&mut writer, key));
            writer.commit().unwrap();
            drop(writer);
            assert_eq!(keys(&path), (0..90).collect::<Vec<u64>>(), "{before}");
        }
    }

    #[test]
    fn writer_in_a_forked_child_refuses_every_change() {
        let (_dir, path, index) = created();
        let mut writer = index.writer().unwrap();
        put(&mut writer, 1);
        writer.commit().unwrap();
        let before = names(&path);
        let child = |step: &mut dyn FnMut(&mut Writer) -> i32, writer: &mut Writer| {
            assert_eq!(in_child(|| step(writer)), 0);
        };
        child(&mut |writer| refused(writer.put(2, Fingerprint(2))), &mut writer);
        child(&mut |writer| refused(writer.admit(2, Fingerprint(!0))), &mut writer);
        child(&mut |writer| refused(writer.delete(1)), &mut writer);
        child(&mut |writer| refused(writer.commit()), &mut writer);
        child(&mut |writer| refused(writer.commit_with(b"x")), &mut writer);
        child(&mut |writer| refused(writer.sync()), &mut writer);
        child(&mut |writer| refused(writer.flush()), &mut writer);
        child(&mut |writer| refused(writer.compact()), &mut writer);
        child(&mut |writer| refused(writer.merge_step()), &mut writer);
        child(&mut |writer| refused(writer.wait_for_merge()), &mut writer);
        child(&mut |writer| refused(writer.gc()), &mut writer);
        // Changes in the middle of a batch are refused, too.
        put(&mut writer, 2);
        child(&mut |writer| refused(writer.put(3, Fingerprint(3))), &mut writer);
        child(&mut |writer| refused(writer.admit(3, Fingerprint(3))), &mut writer);
        child(&mut |writer| refused(writer.delete(2)), &mut writer);
        child(&mut |writer| refused(writer.commit()), &mut writer);
        child(&mut |writer| refused(writer.flush()), &mut writer);
        child(&mut |writer| refused(writer.compact()), &mut writer);
        assert_eq!(names(&path), before);
        writer.commit().unwrap();
        assert_eq!(keys(&path), [1, 2]);
    }

    #[test]
    fn forked_child_can_query_and_later_open_its_own_writer() {
        let (_dir, path, index) = created();
        let mut writer = index.writer().unwrap();
        put(&mut writer, 1);
        writer.commit().unwrap();
        put(&mut writer, 2); // not committed
        let mut writer = Some(writer);
        let status = in_child(|| {
            drop(writer.take());
            let locked = matches!(index.writer(), Err(Error::Locked { .. }));
            let snapshot = index.snapshot();
            let answers = snapshot.contains(1).unwrap() && !snapshot.contains(2).unwrap();
            i32::from(!(locked && answers))
        });
        assert_eq!(status, 0);
        drop(writer);
        let status = in_child(|| {
            let mut writer = index.writer().unwrap();
            put(&mut writer, 3);
            writer.commit().unwrap();
            drop(writer);
            0
        });
        assert_eq!(status, 0);
        assert_eq!(keys(&path), [1, 3]);
    }
}

#[test]
fn commit_is_refused_after_another_process_took_the_lock() {
    let (_dir, path, index) = created();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1);
    writer.commit().unwrap();
    // Writes a process number and a different token to the lock file, as another holder of the lock does.
    std::fs::write(path.join("LOCK"), format!("{}\n0123456789abcdef\n", std::process::id())).unwrap();
    put(&mut writer, 2);
    assert!(matches!(writer.commit(), Err(Error::Locked { .. })));
    drop(writer);
    assert_eq!(keys(&path), [1]);
}

/// Set for the child process of [`relative_path_still_works_after_the_current_directory_changed`].
const CHILD: &str = "TWINDEX_TEST_RELATIVE";

#[test]
fn relative_path_still_works_after_the_current_directory_changed() {
    if std::env::var_os(CHILD).is_some() {
        // Runs in a child process, because all threads of a process share the current directory.
        let index = Index::open("index").unwrap();
        let mut writer = index.writer().unwrap();
        std::env::set_current_dir("elsewhere").unwrap();
        put(&mut writer, 1);
        writer.commit().unwrap();
        drop(writer);
        let mut writer = index.writer().unwrap();
        put(&mut writer, 2);
        writer.commit().unwrap();
        return;
    }
    let (dir, path, _index) = created();
    std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "relative_path_still_works_after_the_current_directory_changed"])
        .env(CHILD, "1")
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(keys(&path), [1, 2]);
    assert!(names(&dir.path().join("elsewhere")).is_empty());
}

#[test]
fn error_names_the_directory_that_was_moved_or_removed() {
    let (dir, path, index) = created();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 1);
    let moved = dir.path().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    let error = writer.commit().unwrap_err();
    assert!(matches!(&error, Error::NotAnIndex { why, .. } if why.contains("moved or removed")), "{error:?}");
    drop(writer);
    let error = index.writer().unwrap_err();
    assert!(matches!(&error, Error::NotAnIndex { why, .. } if why.contains("moved or removed")), "{error:?}");
    let index = Index::open(&moved).unwrap();
    let mut writer = index.writer().unwrap();
    put(&mut writer, 2);
    writer.commit().unwrap();
    put(&mut writer, 3);
    std::fs::remove_dir_all(&moved).unwrap();
    let error = writer.commit().unwrap_err();
    assert!(matches!(&error, Error::NotAnIndex { .. }), "{error:?}");
}
