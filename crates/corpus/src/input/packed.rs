//! Detects unsupported compressions and archive formats from the first bytes of a file.

/// Returns the name of the unsupported format that these first bytes indicate, and the command that unpacks it.
pub(super) fn packed(start: &[u8]) -> Option<(&'static str, &'static str)> {
    Some(match start {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => ("xz", "xz -dc"),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => ("bzip2", "bzip2 -dc"),
        [0x04, 0x22, 0x4d, 0x18, ..] => ("lz4", "lz4 -dc"),
        [b'P', b'K', 3, 4, ..] => ("zip", "unzip -p"),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => ("7z", "7z x -so"),
        _ => return None,
    })
}

/// Returns whether these are the first bytes of a tar archive.
pub(super) fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}
