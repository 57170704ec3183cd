//! Skips tests that cannot run on this machine. If `TWINDEX_REQUIRE_ALL` is 1, a missing program is a failure instead.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

/// A missing requirement of a test.
#[derive(Clone, Copy, Debug)]
pub enum Missing<'a> {
    /// A program listed in `.ci/run`, and therefore installed on CI machines.
    Program(&'a str),
    /// A requirement that no package provides: a permission, a file system, files outside of the repository, or a
    /// variable that enables the test.
    Elsewhere(&'a str),
}

/// Prints a notice that the current test is skipped. The test must return after this call.
///
/// # Panics
/// If `TWINDEX_REQUIRE_ALL` is 1 and `missing` is a program.
#[track_caller]
pub fn skip(missing: Missing<'_>) {
    let notice = notice(missing, std::env::var_os("TWINDEX_REQUIRE_ALL").is_some_and(|value| value == "1"));
    match notice {
        Ok(notice) => println!("{notice}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// Returns the notice for a skipped test.
///
/// # Errors
/// The message of the failure, if `require_all` is set and `missing` is a program.
pub fn notice(missing: Missing<'_>, require_all: bool) -> Result<String, String> {
    match missing {
        Missing::Program(name) if require_all => {
            Err(format!("{name} is missing or cannot be run, and TWINDEX_REQUIRE_ALL is 1"))
        }
        Missing::Program(name) => Ok(format!("skipped: {name} is missing or cannot be run")),
        Missing::Elsewhere(what) => Ok(format!("skipped: {what}")),
    }
}
