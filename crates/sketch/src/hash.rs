//! The shingle hash `fast`: hashes tokens to 64 bits by folded multiplications, and combines them by a cyclic polynomial.
//! [`shingle`](super::shingle) defines the hash and explains the choice.

/// The first 128 bits of the fractional part of pi (nothing-up-my-sleeve numbers).
const PI: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// The first 64 bits of the fractional part of the golden ratio. The product of this constant and the number of tokens
/// is xored into a shingle hash, so that shingles with different numbers of tokens have different hashes.
pub(crate) const COUNT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of `x`: every bit of the result depends on every bit of `x`. The function is a bijection.
///
/// The shifts and multipliers are Stafford's variant 13 of the finalizer of `MurmurHash3`, as in Steele, Lea and Flood,
/// *Fast splittable pseudorandom number generators*, 2014. Only the low halves of products are used, which vector
/// instructions can compute.
#[inline(always)]
#[must_use]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash `fast`, with keys computed from a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fast {
    keys: [u64; 2],
}

impl Fast {
    pub(crate) fn new(seed: u64) -> Self {
        Self { keys: PI.map(|pi| mix(seed ^ pi)) }
    }

    /// Returns the hash of the shingle whose only token is `token`.
    #[inline]
    pub(crate) fn single(&self, token: &[u8]) -> u64 {
        mix(self.token(token) ^ COUNT)
    }

    #[inline]
    pub(crate) fn token(&self, token: &[u8]) -> u64 {
        let mut state = self.keys[0];
        let mut rest = token;
        while rest.len() > 16 {
            let Some((piece, tail)) = rest.split_first_chunk() else { break };
            state = self.step(state, halves(piece), 0);
            rest = tail;
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        self.step(state, halves(&last), token.len() as u64)
    }

    /// Returns the hash of the token `bytes[start..end]`. In `bytes`, at least 16 bytes must follow the token; their
    /// values do not matter.
    #[inline(always)]
    pub(crate) fn token_within(&self, bytes: &[u8], start: usize, end: usize) -> u64 {
        let length = end - start;
        if length > 16 {
            return self.token(&bytes[start..end]);
        }
        let piece: &[u8; 16] = bytes[start..].first_chunk().expect("16 bytes after each token");
        let (lo, hi) = halves(piece);
        let [keep_lo, keep_hi] = KEEP[length];
        self.step(self.keys[0], (lo & keep_lo, hi & keep_hi), length as u64)
    }

    #[inline(always)]
    fn step(&self, state: u64, (lo, hi): (u64, u64), length: u64) -> u64 {
        fold(state ^ lo, self.keys[1] ^ hi ^ length)
    }
}

/// Splits 16 bytes into two little-endian numbers of eight bytes each.
#[inline(always)]
fn halves(piece: &[u8; 16]) -> (u64, u64) {
    let (eights, _) = piece.as_chunks();
    (u64::from_le_bytes(eights[0]), u64::from_le_bytes(eights[1]))
}

/// `KEEP[n]` masks all but the first n bytes of a 16-byte piece. Each mask is two words, in the order of [`halves`].
static KEEP: [[u64; 2]; 17] = {
    let mut keep = [[u64::MAX; 2]; 17];
    let mut bytes = 0;
    while bytes < 16 {
        let whole: u128 = (1 << (8 * bytes)) - 1;
        keep[bytes] = [whole as u64, (whole >> 64) as u64];
        bytes += 1;
    }
    keep
};

/// Number of shingles that are computed together, so that the compiler can use vector instructions.
const LANES: usize = 16;

/// Replaces the token hashes at the front of `hashes` with the hashes of shingles of `width` tokens, and returns the number
/// of shingles. Fewer than `width` tokens make one shingle of all tokens.
///
/// Computes each shingle from its token hashes and not from the previous shingle, so that the CPU can compute several
/// shingles in parallel.
#[inline(always)]
pub(crate) fn join(hashes: &mut [u64], width: usize) -> usize {
    match width {
        // Common widths are constants here, so that the compiler unrolls the loop over the tokens.
        1 => join_width(hashes, 1),
        2 => join_width(hashes, 2),
        3 => join_width(hashes, 3),
        4 => join_width(hashes, 4),
        5 => join_width(hashes, 5),
        8 => join_width(hashes, 8),
        _ => join_width(hashes, width),
    }
}

#[inline(always)]
fn join_width(hashes: &mut [u64], width: usize) -> usize {
    if hashes.len() < width {
        if hashes.is_empty() {
            return 0;
        }
        hashes[0] = shingle(hashes);
        return 1;
    }
    let count = COUNT.wrapping_mul(width as u64);
    let shingles = hashes.len() - width + 1;
    let mut at = 0;
    while at + LANES <= shingles {
        // `hashes[at..at + LANES]` can be overwritten below, because later shingles do not use these token hashes.
        let mut joined = [count; LANES];
        for (i, turn) in (0..width).rev().enumerate() {
            let tokens: &[u64; LANES] = hashes[at + i..][..LANES].try_into().expect("as many as taken");
            for (joined, token) in joined.iter_mut().zip(tokens) {
                *joined ^= token.rotate_left(turn as u32);
            }
        }
        for (hash, joined) in hashes[at..at + LANES].iter_mut().zip(joined) {
            *hash = mix(joined);
        }
        at += LANES;
    }
    for at in at..shingles {
        hashes[at] = shingle(&hashes[at..at + width]);
    }
    shingles
}

/// Returns the hash of one shingle, computed from its token hashes by the definition in [`shingle`](super::shingle).
#[inline(always)]
fn shingle(tokens: &[u64]) -> u64 {
    let count = COUNT.wrapping_mul(tokens.len() as u64);
    mix(tokens.iter().fold(0, |joined: u64, token| joined.rotate_left(1) ^ token) ^ count)
}
