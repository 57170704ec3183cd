//! Lines that are made on all threads and written in their order.

use rayon::prelude::*;

/// Items whose lines are made in one go.
const PIECE: usize = 1 << 10;
/// Pieces for each thread that wait to be made together.
const PIECES: usize = 16;
/// Bytes of a piece's lines after which the rest of it waits until these are written.
const TEXT: usize = 1 << 20;

/// Takes items in order: `make` adds the lines of one to a text, on any thread, and what is counted of them to a state
/// of that text; `write` gets each text in turn, while the next ones are made.
///
/// Memory: 16,384 items for each thread, twice, and their lines, of which no more than 16 MiB for each thread wait.
pub(crate) struct InOrder<T, S, M, W> {
    make: M,
    write: W,
    waiting: Vec<T>,
    most: usize,
    made: Vec<Made<T, S>>,
}

/// The lines of some items.
struct Made<T, S> {
    state: S,
    text: Vec<u8>,
    /// Those of which there is none yet.
    rest: Vec<T>,
}

impl<T: Clone, S: Default> Made<T, S> {
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

impl<T, S, M, W> InOrder<T, S, M, W>
where
    T: Clone + Send + Sync,
    S: Default + Send,
    M: Fn(&T, &mut S, &mut Vec<u8>) -> anyhow::Result<()> + Sync,
    W: FnMut(S, &[u8]) -> anyhow::Result<()> + Send,
{
    pub(crate) fn new(make: M, write: W) -> Self {
        let most = PIECE * PIECES * rayon::current_num_threads();
        Self { make, write, waiting: Vec::new(), most, made: Vec::new() }
    }

    /// Adds an item.
    ///
    /// # Errors
    ///
    /// What `make` and `write` return, of items that were added before, too.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> anyhow::Result<()> {
        self.waiting.push(item);
        if self.waiting.len() < self.most { Ok(()) } else { self.hand_on() }
    }

    fn hand_on(&mut self) -> anyhow::Result<()> {
        let Self { make, write, waiting, made, .. } = self;
        let make = &*make;
        let mut before = std::mem::take(made);
        let (next, written) = rayon::join(
            || {
                waiting
                    .par_chunks(PIECE)
                    .map(|items| Made::of(items, make))
                    .collect::<anyhow::Result<Vec<_>>>()
            },
            || {
                before.drain(..).try_for_each(|mut made| {
                    write(made.state, &made.text)?;
                    while !made.rest.is_empty() {
                        made = Made::of(&made.rest, make)?;
                        write(std::mem::take(&mut made.state), &made.text)?;
                    }
                    anyhow::Ok(())
                })
            },
        );
        written?;
        *made = next?;
        waiting.clear();
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.hand_on()?;
        self.hand_on()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_the_order_of_the_items_whatever_the_threads() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for (count, width) in [(0, 8), (1, 8), (PIECE as u64, 8), (100_000, 8), (5_000, 3_000)] {
                let (mut all, mut sum) = (Vec::new(), 0);
                pool.install(|| {
                    let mut lines = InOrder::new(
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
                    );
                    (0..count).try_for_each(|item| lines.push(item)).unwrap();
                    lines.finish().unwrap();
                });
                let found = all.chunks(width).map(|line| u64::from_le_bytes(line[..8].try_into().unwrap()));
                assert!(found.eq(0..count), "{threads} {count} {width}");
                assert_eq!(sum, count * count.saturating_sub(1) / 2);
            }
        }
    }

    #[test]
    fn what_cannot_be_made_and_what_cannot_be_written_end_it() {
        let run = |bad: u64, room: usize| {
            let mut written = 0;
            let mut lines = InOrder::new(
                |item: &u64, (): &mut (), text: &mut Vec<u8>| {
                    anyhow::ensure!(*item != bad, "{bad} is bad");
                    text.push(0);
                    Ok(())
                },
                |(), text: &[u8]| {
                    written += text.len();
                    anyhow::ensure!(written <= room, "no room");
                    Ok(())
                },
            );
            (0..200_000).try_for_each(|item| lines.push(item)).and_then(|()| lines.finish())
        };
        assert!(run(u64::MAX, 200_000).is_ok());
        assert!(run(123_456, 200_000).unwrap_err().to_string().contains("is bad"));
        assert!(run(u64::MAX, 199_999).unwrap_err().to_string().contains("no room"));
    }
}
