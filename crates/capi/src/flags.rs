//! Flags of queries.

use crate::border::Result;
use crate::error::Error;

/// Returns all documents that share a band as hits, without comparing their resemblance with the threshold.
pub const TWINDEX_QUERY_UNVERIFIED: u32 = 1;
/// Estimates resemblances, even if the index stores sets.
pub const TWINDEX_QUERY_ESTIMATED: u32 = 2;
/// Excludes marked duplicates near which a live unmarked document is.
pub const TWINDEX_QUERY_UNMARKED: u32 = 4;
/// Ends the search at the first hit, which need not be the nearest.
pub const TWINDEX_QUERY_ANY: u32 = 8;

/// Returns an error for flags that this version does not know.
pub(crate) fn check_flags(flags: u32) -> Result<()> {
    let known =
        TWINDEX_QUERY_UNVERIFIED | TWINDEX_QUERY_ESTIMATED | TWINDEX_QUERY_UNMARKED | TWINDEX_QUERY_ANY;
    if flags & !known != 0 {
        return Err(Error::invalid(format!("flags are {flags:#x}, this version knows {known:#x}")));
    }
    Ok(())
}

/// Sets the options that are flags, except `TWINDEX_QUERY_ANY`, which is about how a query is run.
pub(crate) fn with_flags(mut query: twindex::Query, flags: u32) -> twindex::Query {
    if flags & TWINDEX_QUERY_UNVERIFIED != 0 {
        query = query.unverified();
    }
    if flags & TWINDEX_QUERY_ESTIMATED != 0 {
        query = query.estimated();
    }
    if flags & TWINDEX_QUERY_UNMARKED != 0 {
        query = query.unmarked();
    }
    query
}
