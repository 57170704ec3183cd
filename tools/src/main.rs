//! The `twindex` program. Its code is in the library, because cargo compiles a library while its dependencies are still
//! being optimized.

use std::process::ExitCode;

fn main() -> ExitCode {
    twindex_tools::main()
}
