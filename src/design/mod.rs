//! Designs of permutation tables as data: which bits lead which table, and the names of designs and codecs.
//!
//! Most users choose by `auto`, `small` or `fast` and can skip this module. The [`planner`](crate::planner) predicts what
//! a design costs and finds, and chooses one.
//!
//! - [`tables`]: the designs; which tables there are, and how a query probes them;
//! - [`order`]: the order of bits in a table's keys;
//! - [`masks`](masks::masks): the prefixes around a prefix;
//! - [`scheme`]: a design together with codecs, and their names.

pub mod masks;
pub mod order;
pub mod scheme;
pub mod tables;

pub use masks::masks;
pub use order::{BitField, BitOrder};
pub use scheme::{CodecChoice, Codecs, Complete, DesignChoice, Scheme};
pub use tables::{BLOCKS_MAX, Design, Name, POINTER_BITS, TABLES_MAX, Table, WITHIN_MAX, prefix_bits};
