//! Shows the progress of long reads on standard error: as a bar on a terminal, otherwise as lines at intervals, for log
//! files.

use std::any::Any;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

use crate::interrupt::RemovedOnSignal;
use crate::report;
use crate::terminal;

/// Minimum time between two progress lines.
const LINES_APART: Duration = Duration::from_secs(5);

/// A progress bar, progress lines at intervals, or nothing.
///
/// Dropping this value clears the bar, so that an error message does not overlap the bar.
pub(crate) struct Progress(ProgressDisplay);

enum ProgressDisplay {
    Nothing,
    Bar(ProgressBar),
    Lines(ProgressLines),
}

/// The state of progress lines in a log, used if standard error is not a terminal.
struct ProgressLines {
    what: String,
    total: Option<u64>,
    start: Instant,
    last: Mutex<Instant>,
}

impl ProgressLines {
    /// Returns the progress line for this position; `None` if too little time has passed since the last line.
    fn line(&self, position: u64, now: Instant) -> Option<String> {
        // If another thread is printing a line, this thread skips its own.
        let mut last = self.last.try_lock().ok()?;
        if now.saturating_duration_since(*last) < LINES_APART {
            return None;
        }
        *last = now;
        let seconds = now.saturating_duration_since(self.start).as_secs().max(1);
        let rate = position / seconds;
        let (what, done, fast) = (&self.what, HumanBytes(position), HumanBytes(rate));
        Some(match self.total {
            Some(total) if rate > 0 && total >= position => {
                let left = Duration::from_secs((total - position) / rate);
                let total = HumanBytes(total);
                format!("{what}: {done} of {total}, {fast}/s, {} left", HumanDuration(left))
            }
            _ => format!("{what}: {done}, {fast}/s"),
        })
    }
}

impl Progress {
    /// Shows the number of bytes read, after the word `what`, and out of `total` if it is known. Shows nothing if
    /// `quiet` is true.
    pub(crate) fn bytes(total: Option<u64>, what: &str, quiet: bool) -> Self {
        Self(if quiet {
            ProgressDisplay::Nothing
        } else if io::stderr().is_terminal() {
            ProgressDisplay::Bar(bar(total, what))
        } else {
            let start = Instant::now();
            ProgressDisplay::Lines(ProgressLines {
                what: what.to_owned(),
                total,
                start,
                last: Mutex::new(start),
            })
        })
    }

    /// Sets the position in bytes. Callers may call it for every document, because it is cheap.
    pub(crate) fn set(&self, position: u64) {
        match &self.0 {
            ProgressDisplay::Nothing => {}
            ProgressDisplay::Bar(bar) => bar.set_position(position),
            ProgressDisplay::Lines(lines) => {
                if let Some(line) = lines.line(position, Instant::now()) {
                    terminal::warn(&line);
                }
            }
        }
    }

    /// Clears the bar.
    pub(crate) fn finish(&self) {
        if let ProgressDisplay::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl twindex_corpus::Progress for Progress {
    fn set(&self, bytes: u64) {
        Self::set(self, bytes);
    }
}

/// The observer of the command: shows bars and notes on standard error, and registers unfinished folders for removal on
/// Ctrl-C.
pub(crate) struct Watching {
    /// Whether bars and notes are suppressed. Notes about missing results are always printed.
    pub(crate) quiet: bool,
}

impl twindex_corpus::Observer for Watching {
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn twindex_corpus::Progress + '_> {
        Box::new(Progress::bytes(total, what, self.quiet))
    }

    fn note(&self, note: &str) {
        if !self.quiet {
            report::note(note);
        }
    }

    fn missing(&self, what: &str) {
        report::note(what);
    }

    fn half_done(&self, folder: &Path) -> Box<dyn Any> {
        Box::new(RemovedOnSignal::new(folder))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Creates a bar that indicatif draws on standard error.
fn bar(total: Option<u64>, what: &str) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{msg} [{bar:30}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {msg} {binary_bytes}, {binary_bytes_per_sec}"),
    };
    let style =
        ProgressStyle::with_template(template).expect("the template is a constant that a test renders");
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(what.to_owned());
    // Keeps the bar moving between documents, so that the command does not seem to hang at a slow pipe or a large file.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_progress_prints_nothing() {
        let progress = Progress::bytes(Some(10), "reading", true);
        assert!(matches!(progress.0, ProgressDisplay::Nothing));
        progress.set(3);
        progress.finish();
        progress.finish();
    }

    #[test]
    fn both_progress_bar_templates_are_valid_and_show_the_position() {
        for total in [Some(10), None] {
            let progress = Progress(ProgressDisplay::Bar(bar(total, "reading")));
            let ProgressDisplay::Bar(bar) = &progress.0 else { unreachable!() };
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
            assert_eq!(bar.length(), total);
            progress.set(7);
            assert_eq!(bar.position(), 7);
            progress.finish();
            assert!(bar.is_finished());
        }
    }

    #[test]
    fn progress_line_every_few_seconds_shows_rate_and_time_left() {
        let start = Instant::now();
        let lines =
            |total| ProgressLines { what: "reading".to_owned(), total, start, last: Mutex::new(start) };
        let (known, unknown) = (lines(Some(100 << 20)), lines(None));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(known.line(1 << 20, at(4)), None);
        let line = known.line(10 << 20, at(5)).unwrap();
        assert_eq!(line, "reading: 10.00 MiB of 100.00 MiB, 2.00 MiB/s, 45 seconds left");
        assert_eq!(known.line(11 << 20, at(9)), None);
        assert!(known.line(100 << 20, at(10)).unwrap().ends_with("0 seconds left"));
        assert!(known.line(101 << 20, at(15)).is_some(), "a file that grew");
        assert_eq!(unknown.line(10 << 20, at(5)).unwrap(), "reading: 10.00 MiB, 2.00 MiB/s");
    }
}
