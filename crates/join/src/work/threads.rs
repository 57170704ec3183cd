//! Processes pieces of work on several threads, and returns the results in the order of the pieces.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use twindex::error::Result;

/// Splits items into consecutive pieces. A piece ends when it has `items_most` items or when its total weight reaches
/// `weight_most`.
pub(crate) fn cut(
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
pub(crate) fn on_threads<S: Send, P: Sync, R: Send>(
    states: &mut [S],
    pieces: &[P],
    work: impl Fn(&mut S, &P) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (mine, others) = states.split_first_mut().expect("a state for each thread");
    if others.is_empty() || pieces.len() < 2 {
        return pieces.iter().map(|piece| work(mine, piece)).collect();
    }
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(pieces.len()));
    let on_one = |state: &mut S| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(number) else { return };
            let result = work(state, piece);
            if result.is_err() {
                next.store(pieces.len(), Ordering::Relaxed);
            }
            made.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for state in others.iter_mut().take(pieces.len() - 1) {
            scope.spawn(|| on_one(state));
        }
        on_one(mine);
    });
    let mut made = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    made.sort_unstable_by_key(|&(number, _)| number);
    made.into_iter().map(|(_, result)| result).collect()
}

/// Like [`on_threads`], but passes each result to `take`, in order, as soon as all earlier results were taken. To bound
/// the number of waiting results, piece n starts only after the result of piece n - `ahead` * threads was taken. Ends
/// early if `take` returns a break.
///
/// # Errors
/// The error of the first piece, in order, that failed or for which `take` failed.
///
/// # Panics
/// Same as [`on_threads`].
pub(crate) fn in_order<S: Send, P: Sync, R: Send>(
    states: &mut [S],
    pieces: &[P],
    ahead: usize,
    work: impl Fn(&mut S, &P) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<ControlFlow<()>> + Send,
) -> Result<ControlFlow<()>> {
    let (mine, others) = states.split_first_mut().expect("a state for each thread");
    if others.is_empty() || pieces.len() < 2 {
        for piece in pieces {
            if take(work(mine, piece)?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        return Ok(ControlFlow::Continue(()));
    }
    let max = ahead.max(1) * (others.len() + 1);
    let next = AtomicUsize::new(0);
    let turn = parking_lot::Mutex::new(OrderedTurn { taken: 0, waiting: BTreeMap::new(), take, end: None });
    let moved = parking_lot::Condvar::new();
    let on_one = |state: &mut S| {
        let _ends = EndsOnPanic { turn: &turn, moved: &moved };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(number) else { return };
            moved.wait_while(&mut turn.lock(), |turn| turn.end.is_none() && number >= turn.taken + max);
            if turn.lock().end.is_some() {
                return;
            }
            let result = work(state, piece);
            turn.lock().put(number, result);
            moved.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for state in others.iter_mut().take(pieces.len() - 1) {
            scope.spawn(|| on_one(state));
        }
        on_one(mine);
    });
    turn.into_inner().end.unwrap_or(Ok(ControlFlow::Continue(())))
}

/// Passes results to `take` in the order of their pieces.
struct OrderedTurn<R, T> {
    taken: usize,
    /// Results that wait until the results of all earlier pieces are taken.
    waiting: BTreeMap<usize, Result<R>>,
    take: T,
    /// The reason to stop taking results, if any.
    end: Option<Result<ControlFlow<()>>>,
}

impl<R, T: FnMut(R) -> Result<ControlFlow<()>>> OrderedTurn<R, T> {
    fn put(&mut self, number: usize, result: Result<R>) {
        self.waiting.insert(number, result);
        while self.end.is_none()
            && let Some(result) = self.waiting.remove(&self.taken)
        {
            self.taken += 1;
            match result.and_then(&mut self.take) {
                Ok(ControlFlow::Continue(())) => {}
                end => self.end = Some(end),
            }
        }
    }
}

/// Ends the work if a thread panics, so that no other thread waits for a result forever.
struct EndsOnPanic<'t, R, T> {
    turn: &'t parking_lot::Mutex<OrderedTurn<R, T>>,
    moved: &'t parking_lot::Condvar,
}

impl<R, T> Drop for EndsOnPanic<'_, R, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.turn.lock().end = Some(Ok(ControlFlow::Break(())));
            self.moved.notify_all();
        }
    }
}

/// Calls `work` for each of `items`, each on its own thread, with the index of the item.
///
/// # Panics
/// If `work` panics.
pub(crate) fn on_each<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
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
    use super::*;
    use twindex::error::Error;

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
            Ok(())
        };
        let ended = std::panic::catch_unwind(|| {
            in_order(&mut [(); 3], &pieces, 1, work, |()| Ok(ControlFlow::Continue(())))
        });
        assert!(ended.is_err());
    }
}
