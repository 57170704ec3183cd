//! Designs of permutation tables: the leading bits of each table, and the names of designs and codecs.
//!
//! Most users choose `auto`, `small` or `fast` and can skip this module. The [`planner`](crate::planner) predicts the
//! costs and the recall of a design, and chooses a design.
//!
//! - [`tables`]: the table designs, and how a query probes their tables;
//! - [`order`]: the order of the bits in a table's keys;
//! - [`masks`](masks::masks): all bit differences within a radius;
//! - [`scheme`]: a design with its codecs, and their names.

pub mod masks;
pub mod order;
pub mod scheme;
pub mod tables;

pub use masks::masks;
pub use order::{BitField, BitOrder};
pub use scheme::{CodecChoice, Codecs, Complete, DesignChoice, Scheme};
pub use tables::{BLOCKS_MAX, Design, DesignName, POINTER_BITS, TABLES_MAX, Table, WITHIN_MAX, prefix_bits};
