//! Determines the registrable domain of a host by the public suffix list.
//!
//! The list is generated code, which would be compiled into each crate that calls it and was a quarter of the code of
//! `twindex-corpus`. This crate compiles it once, without optimization.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the registrable domain of a host by the public suffix list, including the private section of the list:
/// `example.co.uk` for `a.b.example.co.uk`, and `me.github.io` for `me.github.io`. For an IP address, a public suffix, or a
/// name without a dot, returns the host itself. `host` must be in lower case. A trailing dot is removed.
///
/// ```
/// use twindex_domain::domain;
///
/// assert_eq!(domain("www.shop.example.co.uk"), "example.co.uk");
/// assert_eq!(domain("me.github.io"), "me.github.io");
/// assert_eq!(domain("192.0.2.1"), "192.0.2.1");
/// assert_eq!(domain("localhost"), "localhost");
/// ```
#[must_use]
pub fn domain(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if address.parse::<Ipv4Addr>().is_ok() || address.parse::<Ipv6Addr>().is_ok() {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}
