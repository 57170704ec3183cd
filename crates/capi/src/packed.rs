//! Many byte strings, one after the other.

use crate::border::{self, Result};
use crate::error::Error;

/// Byte strings in packed form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    offsets: &'a [u64],
}

impl<'a> Packed<'a> {
    /// Converts `count` byte strings that a C caller passed.
    ///
    /// # Safety
    /// `offsets` is null or points to `count + 1` numbers, `bytes` is null or points to as many bytes as the
    /// last of them. Neither is written to while the result is in use.
    pub(crate) unsafe fn read(
        bytes: *const u8,
        offsets: *const u64,
        count: usize,
        name: &str,
    ) -> Result<Self> {
        if count == 0 {
            return Ok(Self { bytes: &[], offsets: &[] });
        }
        let numbers = count.checked_add(1).ok_or_else(|| Error::invalid(format!("{name}: too many")))?;
        // SAFETY: the caller guarantees `count + 1` numbers, or null.
        let offsets = unsafe { border::values(offsets, numbers, &format!("the offsets of {name}")) }?;
        if !offsets.is_sorted() {
            return Err(Error::invalid(format!("the offsets of {name} decrease")));
        }
        let end = offsets.last().copied().unwrap_or(0);
        let end = usize::try_from(end).map_err(|_| {
            Error::invalid(format!("the offsets of {name} end at {end}, more than memory can have"))
        })?;
        // SAFETY: the caller guarantees as many bytes as the last offset says, or null.
        let bytes = unsafe { border::bytes(bytes, end, name) }?;
        Ok(Self { bytes, offsets })
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns string `at`; an empty one if there is none. All offsets are at most the length of the bytes.
    pub(crate) fn get(&self, at: usize) -> &'a [u8] {
        match self.offsets.get(at..at + 2) {
            Some(&[from, to]) => &self.bytes[from as usize..to as usize],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_decrease_or_leave_memory_are_refused() {
        let read = |offsets: &[u64]| {
            // SAFETY: two strings have three offsets, and "abc" has as many bytes as the last of those that are
            // accepted.
            unsafe { Packed::read(b"abc".as_ptr(), offsets.as_ptr(), 2, "x") }
                .map(|all| [all.get(0), all.get(1)])
        };
        assert_eq!(read(&[0, 1, 3]).unwrap(), [&b"a"[..], b"bc"]);
        assert_eq!(read(&[1, 1, 2]).unwrap(), [&b""[..], b"b"]);
        assert!(read(&[0, 2, 1]).is_err());
        assert!(read(&[0, 1, u64::MAX]).is_err());
    }
}
