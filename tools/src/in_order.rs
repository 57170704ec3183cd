//! Formats lines on all threads and writes them in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rayon::prelude::*;

/// Number of items in a piece. One thread formats the lines of a piece.
const PIECE: usize = 1 << 10;
/// Number of pieces per thread in a batch.
const PIECES: usize = 16;
/// If the lines of a piece exceed this size in bytes, its remaining items are formatted only after these lines are
/// written.
const TEXT: usize = 1 << 20;
/// Time that a waiting thread sleeps between two checks for work.
const PAUSE: Duration = Duration::from_micros(20);

/// Formats and writes the items that `feed` passes on, in order. On any thread, `make` appends the lines of an item to
/// a text, and updates the state of this text. `write` receives each text with its state, in order. Three steps run at
/// the same time: feeding a batch, formatting the previous batch, and writing the batch before it.
///
/// Memory: up to three batches of 16,384 items per thread, and the lines of one batch, up to 16 MiB per thread.
///
/// # Errors
///
/// The errors of `feed`, `make` and `write`. After an error of `make` or `write`, feeding ends soon.
pub(crate) fn in_order<T, S>(
    make: impl Fn(&T, &mut S, &mut Vec<u8>) -> anyhow::Result<()> + Sync,
    write: impl FnMut(S, &[u8]) -> anyhow::Result<()> + Send,
    feed: impl FnOnce(&mut dyn FnMut(T) -> anyhow::Result<()>) -> anyhow::Result<()>,
) -> anyhow::Result<()>
where
    T: Clone + Send + Sync,
    S: Default + Send,
{
    let most = PIECE * PIECES * rayon::current_num_threads();
    let work = Mutex::new(Handoff { write, made: Vec::new(), failure: None });
    let lock = || work.lock().unwrap_or_else(PoisonError::into_inner);
    let is_busy = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        // Waits until the previous task ends. Meanwhile, this thread runs other tasks of the thread pool.
        let wait = || {
            while is_busy.load(Ordering::Acquire) {
                if rayon::yield_now() != Some(rayon::Yield::Executed) {
                    std::thread::sleep(PAUSE);
                }
            }
            lock().failure.take().map_or(Ok(()), Err)
        };
        let hand_on = |items: Vec<T>| {
            wait()?;
            is_busy.store(true, Ordering::Relaxed);
            let (lock, make, free) = (&lock, &make, TurnGuard(&is_busy));
            scope.spawn(move |_| {
                let _free = free;
                let mut work = lock();
                if let Err(error) = work.go_on(&items, make) {
                    work.failure = Some(error);
                }
            });
            anyhow::Ok(())
        };
        let mut waiting = Vec::new();
        feed(&mut |item| {
            waiting.push(item);
            if waiting.len() < most { Ok(()) } else { hand_on(std::mem::take(&mut waiting)) }
        })?;
        hand_on(waiting)?;
        // The task of this empty batch writes the lines of the last batch.
        hand_on(Vec::new())?;
        wait()
    })
}

/// Marks the task as finished when it is dropped, even by a panic.
struct TurnGuard<'b>(&'b AtomicBool);

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Formats and writes batches while the next batch is fed.
struct Handoff<T, S, W> {
    write: W,
    /// Formatted lines that are not written yet.
    made: Vec<ItemLines<T, S>>,
    failure: Option<anyhow::Error>,
}

impl<T, S, W> Handoff<T, S, W>
where
    T: Clone + Send + Sync,
    S: Default + Send,
    W: FnMut(S, &[u8]) -> anyhow::Result<()> + Send,
{
    /// Formats the lines of these items, and writes the lines of the previous batch.
    fn go_on(
        &mut self,
        items: &[T],
        make: &(impl Fn(&T, &mut S, &mut Vec<u8>) -> anyhow::Result<()> + Sync),
    ) -> anyhow::Result<()> {
        let (write, mut before) = (&mut self.write, std::mem::take(&mut self.made));
        let (made, written) = rayon::join(
            || items.par_chunks(PIECE).map(|items| ItemLines::of(items, make)).collect::<anyhow::Result<_>>(),
            || {
                before.drain(..).try_for_each(|mut made| {
                    write(made.state, &made.text)?;
                    while !made.rest.is_empty() {
                        made = ItemLines::of(&made.rest, make)?;
                        write(std::mem::take(&mut made.state), &made.text)?;
                    }
                    anyhow::Ok(())
                })
            },
        );
        written?;
        self.made = made?;
        Ok(())
    }
}

/// The lines of consecutive items, and the items that are left.
struct ItemLines<T, S> {
    state: S,
    text: Vec<u8>,
    /// The items whose lines are not formatted yet.
    rest: Vec<T>,
}

impl<T: Clone, S: Default> ItemLines<T, S> {
    fn of(
        items: &[T],
        make: impl Fn(&T, &mut S, &mut Vec<u8>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let (mut state, mut text, mut done) = (S::default(), Vec::new(), 0);
        while let Some(item) = items.get(done).filter(|_| text.len() < TEXT) {
            make(item, &mut state, &mut text)?;
            done += 1;
        }
        Ok(Self { state, text, rest: items[done..].to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_the_item_order_for_any_thread_count() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for (count, width) in [(0, 8), (1, 8), (PIECE as u64, 8), (100_000, 8), (5_000, 3_000)] {
                let (mut all, mut sum) = (Vec::new(), 0);
                let done = pool.install(|| {
                    in_order(
                        |item: &u64, part: &mut u64, text: &mut Vec<u8>| {
                            *part += item;
                            text.extend_from_slice(&item.to_le_bytes());
                            text.resize(text.len() + width - 8, 0);
                            Ok(())
                        },
                        |part: u64, text: &[u8]| {
                            assert!(text.len() < TEXT + width);
                            all.extend_from_slice(text);
                            sum += part;
                            Ok(())
                        },
                        |push| (0..count).try_for_each(push),
                    )
                });
                done.unwrap();
                let found = all.chunks(width).map(|line| u64::from_le_bytes(line[..8].try_into().unwrap()));
                assert!(found.eq(0..count), "{threads} {count} {width}");
                assert_eq!(sum, count * count.saturating_sub(1) / 2);
            }
        }
    }

    #[test]
    fn panic_of_a_producer_reaches_the_waiting_thread() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let run = || {
                let make = |item: &u64, (): &mut (), _: &mut Vec<u8>| {
                    assert!(*item != 100, "item 100");
                    Ok(())
                };
                pool.install(|| in_order(make, |(), _| Ok(()), |push| (0..200_000).try_for_each(push)))
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err(), "{threads}");
        }
    }

    #[test]
    fn error_of_formatting_or_writing_is_returned() {
        let run = |bad: u64, space: usize| {
            let mut written = 0;
            in_order(
                |item: &u64, (): &mut (), text: &mut Vec<u8>| {
                    anyhow::ensure!(*item != bad, "{bad} is bad");
                    text.push(0);
                    Ok(())
                },
                |(), text: &[u8]| {
                    written += text.len();
                    anyhow::ensure!(written <= space, "no space");
                    Ok(())
                },
                |push| (0..200_000).try_for_each(push),
            )
        };
        assert!(run(u64::MAX, 200_000).is_ok());
        assert!(run(123_456, 200_000).unwrap_err().to_string().contains("is bad"));
        assert!(run(u64::MAX, 199_999).unwrap_err().to_string().contains("no space"));
    }
}
