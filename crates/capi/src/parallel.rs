//! Runs calls for many items on several threads.

use std::thread;

/// Calls `of` with the numbers of all items, on up to `threads` threads (0 for all cores), and returns the results in
/// order. With fewer than `least` items for each thread, starting the thread takes longer than it saves. A panic of
/// `of` is passed on.
pub(crate) fn in_parallel<T: Send>(
    count: usize,
    threads: usize,
    least: usize,
    of: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores() } else { threads };
    let threads = threads.min(count / least.max(1)).max(1);
    let part = count.div_ceil(threads);
    let of = &of;
    let run = |worker: usize| (worker * part..count.min((worker + 1) * part)).map(of).collect::<Vec<T>>();
    thread::scope(|scope| {
        // The calling thread does the first part. A thread that cannot be started is no error: the caller does its
        // part, too.
        let others: Vec<_> = (1..threads)
            .map(|worker| (worker, thread::Builder::new().spawn_scoped(scope, move || run(worker)).ok()))
            .collect();
        let mut all = run(0);
        for (worker, started) in others {
            all.extend(match started.map(thread::ScopedJoinHandle::join) {
                None => run(worker),
                Some(Ok(part)) => part,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
            });
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_are_in_order_for_any_number_of_threads() {
        for (count, threads) in [(0, 0), (1, 4), (17, 2), (100, 3), (1000, 0), (33, 100)] {
            assert_eq!(
                in_parallel(count, threads, 8, |i| i * i),
                (0..count).map(|i| i * i).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn panic_of_a_worker_reaches_the_caller() {
        let work = || in_parallel(100, 4, 8, |i| assert_ne!(i, 70, "seventy"));
        assert!(std::panic::catch_unwind(work).is_err());
    }
}
