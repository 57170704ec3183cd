//! Pieces of work on threads, with results in the order of the pieces.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;

/// Works on each of `pieces`, on as many threads as there are `states`, of which each has one to itself. Pieces are taken
/// in their order, and what they gave comes in it.
///
/// # Errors
/// That of the first piece, in their order, that has one; later ones may not have been begun.
///
/// # Panics
/// Without states; as `work` does.
pub(super) fn on_threads<S: Send, P: Sync, R: Send>(
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

/// Works on each of `items` on a thread of its own, by its number.
///
/// # Panics
/// As `work` does.
pub(super) fn on_each<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
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
    use crate::error::Error;

    #[test]
    fn results_come_in_the_order_of_the_pieces_and_the_first_error_counts() {
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
}
