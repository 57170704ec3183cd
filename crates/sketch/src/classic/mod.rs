//! Hash functions from the literature that parameters can select by name. No default uses them.
//!
//! | system | chosen by | default in its place |
//! |---|---|---|
//! | [`rabin`]: Rabin's fingerprints over GF(2) | `shingle-hash=rabin` | `fast`, in [`shingle`](crate::shingle) |
//! | [`rabin_karp`]: the rolling hash of Rabin and Karp | `shingle-hash=rabin-karp` | `fast` |
//! | [`linear`], [`multiply_shift`], [`matrix`]: a hash function for each minimum | `minhash=` and the name | `one-permutation-filled`, in [`minhash`](crate::minhash) |
//!
//! [`rolling`] computes shingle hashes with the functions of the first two rows, for [`Shingler`](crate::Shingler).
//! [`MinHasher`](crate::MinHasher) uses the families of the third row.
//!
//! They are for users who need a proven bound on collisions, who need features to match with exactly the probability J^s, or
//! who compare results with a paper. Existing indexes depend on them, so their constants never change.

pub(crate) mod linear;
pub(crate) mod matrix;
pub(crate) mod multiply_shift;
pub mod rabin;
pub mod rabin_karp;
pub(crate) mod rolling;
