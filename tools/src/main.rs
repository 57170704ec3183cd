//! The program. All of its code is in the library, which is compiled while the crates it needs are still being
//! optimized.

use std::process::ExitCode;

fn main() -> ExitCode {
    twindex_tools::main()
}
