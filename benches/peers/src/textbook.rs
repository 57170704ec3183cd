//! The textbook method for a radius of 3 bits: for each of the four blocks of 16 bits, a table of all fingerprints sorted by
//! that block, with the start of each bucket. Fingerprints within 3 bits agree in at least one block.

use crate::measure::Answers;
use crate::uniform::WITHIN;

/// A row: the fingerprint, rotated so that the block of its table is first, and its position.
type Row = (u64, u32);

/// The four tables.
pub struct Textbook {
    /// The starts of the buckets, and the rows, of each table.
    tables: Vec<(Vec<u32>, Vec<Row>)>,
}

/// Returns the bucket of a rotated fingerprint: its first 16 bits.
fn bucket(rotated: u64) -> usize {
    (rotated >> 48) as usize
}

/// Returns whether two fingerprints are near and `block` is the first block in which they agree. `differ` is the bitwise
/// difference of the fingerprints, rotated so that this block is first.
fn is_first(differ: u64, block: u32) -> bool {
    // A match that also agrees in an earlier block was already counted in the table of that block.
    differ.count_ones() <= WITHIN && !(0..block).any(|earlier| differ >> (16 * earlier) & 0xFFFF == 0)
}

impl Textbook {
    pub fn new(fingerprints: &[u64]) -> Self {
        let tables = (0..4)
            .map(|block| {
                let mut rows: Vec<Row> = (0..)
                    .zip(fingerprints)
                    .map(|(position, value)| (value.rotate_left(16 * block), position))
                    .collect();
                rows.sort_unstable();
                let mut starts = vec![0_u32; (1 << 16) + 1];
                for row in &rows {
                    starts[bucket(row.0) + 1] += 1;
                }
                for bucket in 0..1 << 16 {
                    starts[bucket + 1] += starts[bucket];
                }
                (starts, rows)
            })
            .collect();
        Self { tables }
    }

    /// Calls `hit` with the position of each fingerprint within 3 bits of the query, once for each.
    pub fn within(&self, query: u64, mut hit: impl FnMut(u32)) {
        for (block, (starts, rows)) in (0_u32..).zip(&self.tables) {
            let query = query.rotate_left(16 * block);
            let bucket = bucket(query);
            for &(row, position) in &rows[starts[bucket] as usize..starts[bucket + 1] as usize] {
                if is_first(row ^ query, block) {
                    hit(position);
                }
            }
        }
    }

    /// Finds all pairs of every `threads`-th bucket of each table, beginning with bucket number `thread`.
    pub fn pairs(&self, thread: usize, threads: usize) -> Answers {
        let mut found = Answers::default();
        for (block, (starts, rows)) in (0_u32..).zip(&self.tables) {
            for bucket in (thread..1 << 16).step_by(threads) {
                let rows = &rows[starts[bucket] as usize..starts[bucket + 1] as usize];
                for (at, &(a, of_a)) in rows.iter().enumerate() {
                    for &(b, of_b) in &rows[at + 1..] {
                        if is_first(a ^ b, block) {
                            found.add(of_a.into(), of_b.into());
                        }
                    }
                }
            }
        }
        found
    }
}
