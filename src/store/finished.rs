//! Finished files that become part of an index: checks of segments, and links.

use std::io::ErrorKind;
use std::path::Path;

use super::directory;
use crate::error::{Error, Result};
use crate::params::{ParamDifference, Params};
use crate::segment::Segment;
use crate::sys::Vfs;

/// Buffer size for copying a file that cannot be linked.
const COPIED: usize = 1 << 20;

/// Returns an error if the parameters of a segment differ. The error names the first parameter that differs.
pub(super) fn check_params(params: &Params, segment: &Segment) -> Result<()> {
    if let Some(ParamDifference { field, values: [index, given] }) =
        params.differences(segment.params()).into_iter().next()
    {
        let field = format!("{field} (of {})", segment.path().display());
        return Err(Error::ParamsMismatch { field, index, given });
    }
    if params.expire_after.is_some() {
        return Err(Error::Invalid(format!(
            "{}: its documents expire, and the time of an index of several such segments is not known: make an index \
             of each, and merge these",
            segment.path().display()
        )));
    }
    Ok(())
}

/// Links an immutable file, or copies it if it cannot be linked, for example to another file system.
pub(super) fn link_or_copy(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<()> {
    match vfs.hard_link(from, to) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::io("link", from, error)),
        Err(_) => {}
    }
    let file = vfs.open(from).map_err(|e| Error::io("open", from, e))?;
    let length = file.len().map_err(|e| Error::io("get the length of", from, e))?;
    let dir = directory::parent(to);
    let mut copy = vfs.create_temporary(dir).map_err(|e| Error::io("create a temporary file in", dir, e))?;
    let mut bytes = vec![0; COPIED];
    let mut at = 0;
    while at < length {
        let piece = &mut bytes[..(length - at).min(COPIED as u64) as usize];
        file.read_exact_at(piece, at).map_err(|e| Error::io("read", from, e))?;
        copy.append(piece).map_err(|e| Error::io("write", to, e))?;
        at += piece.len() as u64;
    }
    copy.sync().map_err(|e| Error::io("sync", to, e))?;
    copy.publish(to, false).map_err(|e| Error::io("publish", to, e))
}
