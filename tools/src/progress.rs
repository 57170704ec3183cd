//! How far a long read has come, for a person who watches: on a terminal only, on standard error only.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar, or nothing at all where nobody looks.
///
/// Dropping it takes the bar off the screen, so that an error message is not printed into its middle.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Shows how many bytes of `total` are done, after the words `what`; a spinner with the count alone where
    /// the total is not known. Draws nothing if `quiet`, or if standard error is no terminal.
    pub(crate) fn bytes(total: Option<u64>, what: &str, quiet: bool) -> Self {
        let watched = !quiet && io::stderr().is_terminal();
        Self { bar: watched.then(|| bar(total, what)) }
    }

    /// Moves to `position` bytes; cheap enough to be called for every document.
    pub(crate) fn set(&self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The bar itself, drawn by indicatif on standard error.
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
    // A wait between two documents (a pipe that pauses, a large file) must not look like a hang.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_progress_draws_nothing_and_takes_every_call() {
        let progress = Progress::bytes(Some(10), "reading", true);
        assert!(progress.bar.is_none());
        progress.set(3);
        progress.finish();
        progress.finish();
    }

    #[test]
    fn both_templates_are_valid_and_follow_the_position() {
        for total in [Some(10), None] {
            let progress = Progress { bar: Some(bar(total, "reading")) };
            let bar = progress.bar.as_ref().unwrap();
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
            assert_eq!(bar.length(), total);
            progress.set(7);
            assert_eq!(bar.position(), 7);
            progress.finish();
            assert!(bar.is_finished());
        }
    }
}
