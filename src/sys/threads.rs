//! Processes pieces of work on several threads, and returns the results in the order of the pieces.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Splits items into consecutive pieces. A piece ends when it has `items_most` items or when its total weight reaches
/// `weight_most`.
pub fn cut(
    items: Range<usize>,
    (items_most, weight_most): (usize, u64),
    weight: impl Fn(usize) -> u64,
) -> impl Iterator<Item = Range<usize>> {
    let Range { start: mut next, end } = items;
    std::iter::from_fn(move || {
        let (start, mut weighs) = (next, 0);
        while next < end && next - start < items_most && weighs < weight_most {
            weighs += weight(next);
            next += 1;
        }
        (start < next).then_some(start..next)
    })
}

/// Processes each of `pieces` on as many threads as there are `states`. Each thread uses one of the states. Pieces are
/// started in order, and results are returned in the same order.
///
/// # Errors
/// The error of the first piece, in order, that failed. Later pieces may not have been started.
///
/// # Panics
/// If there are no states, or if `work` panics.
pub fn on_threads<S: Send, P: Sync, R: Send>(
    states: &mut [S],
    pieces: &[P],
    work: impl Fn(&mut S, &P) -> crate::error::Result<R> + Sync,
) -> crate::error::Result<Vec<R>> {
    let mut all = Vec::with_capacity(pieces.len());
    let _ = in_order(states, pieces, usize::MAX, work, |result| {
        all.push(result);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(all)
}

/// Like [`on_threads`], but passes each result to `take`, in order, as soon as all earlier results were taken. One thread
/// at a time takes results, while the others work. To bound the number of waiting results, piece n is taken from the
/// iterator only after the result of piece n - `ahead` * threads was taken. Ends early if `take` returns a break.
///
/// # Errors
/// The error of the first piece, in order, that failed or for which `take` failed.
///
/// # Panics
/// Same as [`on_threads`].
pub fn in_order<S: Send, P, R: Send, E: Send>(
    states: &mut [S],
    pieces: impl IntoIterator<Item = P, IntoIter: Send>,
    ahead: usize,
    work: impl Fn(&mut S, P) -> Result<R, E> + Sync,
    mut take: impl FnMut(R) -> Result<ControlFlow<()>, E> + Send,
) -> Result<ControlFlow<()>, E> {
    let pieces = pieces.into_iter();
    let threads = states.len().min(pieces.size_hint().1.unwrap_or(usize::MAX));
    let (mine, others) = states.split_first_mut().expect("a state for each thread");
    if threads < 2 {
        for piece in pieces {
            if take(work(mine, piece)?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        return Ok(ControlFlow::Continue(()));
    }
    let (max, waiting) = (ahead.max(1).saturating_mul(threads), BTreeMap::new());
    let turn = OrderedTurn { pieces, started: 0, taken: 0, waiting, take: Some(take), end: None };
    let (turn, moved) = (Mutex::new(turn), Condvar::new());
    let on_one = |state: &mut S| {
        let _ends = EndsOnPanic { turn: &turn, moved: &moved };
        loop {
            let mut held = turn.lock();
            moved.wait_while(&mut held, |turn| turn.end.is_none() && turn.started - turn.taken >= max);
            let Some(piece) = held.pieces.next().filter(|_| held.end.is_none()) else { return };
            let number = held.started;
            held.started += 1;
            drop(held);
            let result = work(state, piece);
            OrderedTurn::put(&turn, &moved, number, result);
        }
    };
    std::thread::scope(|scope| {
        for state in others.iter_mut().take(threads - 1) {
            scope.spawn(|| on_one(state));
        }
        on_one(mine);
    });
    turn.into_inner().end.unwrap_or(Ok(ControlFlow::Continue(())))
}

/// Hands out pieces, and passes results to `take` in the order of their pieces.
struct OrderedTurn<I, R, T, E> {
    pieces: I,
    started: usize,
    taken: usize,
    /// Results that wait until the results of all earlier pieces are taken.
    waiting: BTreeMap<usize, Result<R, E>>,
    /// `None` while a thread takes a result.
    take: Option<T>,
    /// The reason to stop taking results, if any.
    end: Option<Result<ControlFlow<()>, E>>,
}

impl<I, R, T: FnMut(R) -> Result<ControlFlow<()>, E>, E> OrderedTurn<I, R, T, E> {
    /// Adds a result. Then takes all results whose turn it is, unless another thread does.
    fn put(turn: &Mutex<Self>, moved: &Condvar, number: usize, result: Result<R, E>) {
        let mut held = turn.lock();
        held.waiting.insert(number, result);
        while held.end.is_none()
            && let Some(mut take) = held.take.take()
        {
            let taken = held.taken;
            let Some(result) = held.waiting.remove(&taken) else {
                held.take = Some(take);
                return;
            };
            let end = MutexGuard::unlocked(&mut held, || result.and_then(&mut take));
            held.taken += 1;
            held.take = Some(take);
            if !matches!(end, Ok(ControlFlow::Continue(()))) {
                held.end = Some(end);
            }
            moved.notify_all();
        }
    }
}

/// Ends the work if a thread panics, so that no other thread waits for a result forever.
struct EndsOnPanic<'t, I, R, T, E> {
    turn: &'t Mutex<OrderedTurn<I, R, T, E>>,
    moved: &'t Condvar,
}

impl<I, R, T, E> Drop for EndsOnPanic<'_, I, R, T, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.turn.lock().end = Some(Ok(ControlFlow::Break(())));
            self.moved.notify_all();
        }
    }
}

/// Calls both functions, `beside` on a thread of its own if there are several threads.
///
/// # Panics
/// If a function panics.
pub fn both<A, B: Send>(
    threads: usize,
    here: impl FnOnce() -> A,
    beside: impl FnOnce() -> B + Send,
) -> (A, B) {
    if threads < 2 {
        return (here(), beside());
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(beside);
        let done = here();
        (done, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Calls `work` for each of `items` on up to `threads` threads. Items are taken from the iterator one by one, in order.
///
/// # Panics
/// If `work` panics.
pub fn share_out<T: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(T) + Sync,
) {
    let items = items.into_iter();
    let threads = threads.min(items.size_hint().1.unwrap_or(usize::MAX));
    if threads < 2 {
        return items.for_each(work);
    }
    let items = Mutex::new(items);
    let on_one = || {
        loop {
            let Some(item) = items.lock().next() else { return };
            work(item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(on_one);
        }
        on_one();
    });
}

/// Calls `work` for each of `items`, each on its own thread, with the index of the item.
///
/// # Panics
/// If `work` panics.
pub fn on_each<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let Some((first, others)) = items.split_first_mut() else { return };
    let work = &work;
    std::thread::scope(|scope| {
        for (number, item) in (1..).zip(others) {
            scope.spawn(move || work(number, item));
        }
        work(0, first);
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;

    #[test]
    fn results_are_in_piece_order_and_the_first_error_is_returned() {
        let pieces: Vec<u64> = (0..1000).collect();
        for threads in [1, 2, 7] {
            let mut sums = vec![0; threads];
            let doubled = on_threads(&mut sums, &pieces, |sum, &piece| {
                *sum += piece;
                Ok(2 * piece)
            });
            assert_eq!(doubled.unwrap(), pieces.iter().map(|piece| 2 * piece).collect::<Vec<_>>());
            assert_eq!(sums.iter().sum::<u64>(), 999 * 500);
            let failed = on_threads(&mut sums, &pieces, |_, &piece| {
                if piece >= 500 { Err(Error::Invalid(piece.to_string())) } else { Ok(()) }
            });
            assert!(failed.unwrap_err().to_string().contains("500"));
            assert!(on_threads(&mut sums, &[0; 0], |_, _| Ok(())).unwrap().is_empty());
        }
    }

    #[test]
    fn results_are_taken_in_order_and_pending_results_are_bounded() {
        let pieces: Vec<usize> = (0..1000).collect();
        for threads in [1, 2, 7] {
            for (last, bad) in [(usize::MAX, usize::MAX), (500, usize::MAX), (usize::MAX, 500), (500, 501)] {
                let (taken, mut all) = (AtomicUsize::new(0), Vec::new());
                let end = in_order(
                    &mut vec![(); threads],
                    &pieces,
                    3,
                    |(), &piece| {
                        assert!(piece < taken.load(Ordering::Relaxed) + 3 * threads, "{piece} of {threads}");
                        // Without the limit, the other threads would get far ahead while this one sleeps.
                        if piece % 250 == 0 {
                            std::thread::sleep(std::time::Duration::from_millis(10));
                        }
                        if piece == bad { Err(Error::Invalid(piece.to_string())) } else { Ok(2 * piece) }
                    },
                    |doubled| {
                        all.push(doubled);
                        taken.fetch_add(1, Ordering::Relaxed);
                        Ok(if doubled / 2 == last {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        })
                    },
                );
                let count = pieces.len().min(last.saturating_add(1)).min(bad);
                assert!(all.iter().copied().eq((0..count).map(|piece| 2 * piece)), "{threads} {last} {bad}");
                match end {
                    Ok(end) => assert_eq!(end.is_break(), last < pieces.len(), "{threads} {last} {bad}"),
                    Err(error) => assert!(last > bad && error.to_string().contains("500")),
                }
            }
        }
    }

    #[test]
    fn panic_of_one_thread_ends_the_other_threads() {
        let pieces: Vec<usize> = (0..1000).collect();
        let work = |(): &mut (), &piece: &usize| {
            assert!(piece != 100, "piece 100");
            Ok::<_, Error>(())
        };
        let ended = std::panic::catch_unwind(|| {
            in_order(&mut [(); 3], &pieces, 1, work, |()| Ok(ControlFlow::Continue(())))
        });
        assert!(ended.is_err());
    }
}
