//! Permutation tables: which bits lead in which table, how each is coded, and what that costs.
//!
//! Most users choose by `auto`, `small` or `fast` and can skip this module.
//!
//! - [`design`]: the designs as data; which tables there are, and how a query probes them;
//! - [`order`]: the order of bits in a table's keys;
//! - [`masks`](masks::masks): the prefixes around a prefix;
//! - [`cost`]: what tables take in bytes, work and time, before they are built;
//! - [`recall`]: what designs find, exactly or in probability;
//! - [`scheme`]: a design together with codecs, how it is named, and how it is chosen.

pub mod cost;
pub mod design;
pub mod masks;
pub mod order;
pub mod recall;
pub mod scheme;

pub use design::{Design, Name, prefix_bits};
pub use masks::masks;
pub use order::{BitField, BitOrder};
pub use scheme::{CodecChoice, Codecs, Complete, DesignChoice, Scheme};
