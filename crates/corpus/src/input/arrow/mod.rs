//! Arrow IPC files, in the file format and in the stream format: reads the requested columns, and copies kept rows.

pub(crate) mod columns;
pub(crate) mod ipc;
pub(crate) mod kept;
