//! Waits for changes of the files in a directory.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// Interval at which a caller checks for a change where the system does not report changes.
const INTERVAL: Duration = Duration::from_millis(50);
/// The longest wait where the system reports changes. It does not report those that another machine makes in a network
/// file system.
#[cfg(target_os = "linux")]
const LONGEST: Duration = Duration::from_secs(1);

/// A watch of a directory. Changes after its creation are noticed.
pub trait Watch: Debug + Send {
    /// Waits until a file in the directory may have changed, at most `timeout`. Can return without a change.
    fn wait(&mut self, timeout: Duration) -> io::Result<()>;
}

/// Notices nothing: each wait ends after 50 ms, so that the caller checks for changes itself.
#[derive(Debug)]
pub struct Interval;

impl Watch for Interval {
    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        std::thread::sleep(timeout.min(INTERVAL));
        Ok(())
    }
}

/// Watches a directory of the operating system. Where its changes are not reported, or no further watch can be created
/// (Linux allows a user 128 at a time), the result is an [`Interval`].
pub(super) fn watch(dir: &std::path::Path) -> Box<dyn Watch> {
    #[cfg(target_os = "linux")]
    if let Ok(watch) = Inotify::new(dir) {
        return Box::new(watch);
    }
    let _ = dir;
    Box::new(Interval)
}

/// A watch by inotify(7).
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Inotify {
    events: rustix::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Inotify {
    fn new(dir: &std::path::Path) -> io::Result<Self> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // A log is appended to; other files get their names when they are complete.
        let changes =
            WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        add_watch(&events, dir, changes | WatchFlags::ONLYDIR)?;
        Ok(Self { events })
    }
}

#[cfg(target_os = "linux")]
impl Watch for Inotify {
    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let timeout = Timespec::try_from(timeout.min(LONGEST)).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.events, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Discards the events that have arrived. If there are more than fit, the next wait returns at once.
        let mut events = [0; 4096];
        match rustix::io::read(&self.events, &mut events) {
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::disallowed_methods, reason = "the files are not those of an index")]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::time::Instant;

    use super::*;

    #[test]
    fn append_and_rename_end_the_wait_and_a_read_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (log, new) = (dir.path().join("log"), dir.path().join("new"));
        fs::write(&log, "1").unwrap();
        let mut watch = Inotify::new(dir.path()).unwrap();
        let mut waits = |timeout: Duration| {
            let start = Instant::now();
            watch.wait(timeout).unwrap();
            start.elapsed()
        };
        let short = Duration::from_millis(50);
        let before = fs::read(&log).unwrap();
        assert!(waits(short) >= short && before == b"1");
        fs::File::options().append(true).open(&log).unwrap().write_all(b"2").unwrap();
        assert!(waits(LONGEST) < LONGEST);
        assert!(waits(short) >= short, "one change ends one wait");
        fs::write(&new, "3").unwrap();
        waits(short);
        fs::rename(&new, &log).unwrap();
        assert!(waits(LONGEST) < LONGEST);
        assert!(Inotify::new(&log).is_err(), "not a directory");
        let mut interval = watch_of(&log);
        interval.wait(Duration::ZERO).unwrap();
    }

    fn watch_of(path: &std::path::Path) -> Box<dyn Watch> {
        super::watch(path)
    }
}
