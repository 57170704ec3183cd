//! URLs of near-duplicate pages: rules for them, and duplicates by host.

pub(crate) mod hosts;
pub(crate) mod learned;

pub use hosts::{Host, HostCounter, Hosts, Mirror};
pub use learned::{Learned, URLS, URLS_HEAD, count_hosts, learn};
