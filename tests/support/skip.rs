//! Skips tests that cannot run here. With one variable set, a skip becomes a failure.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

/// A missing requirement of a test.
#[derive(Clone, Copy, Debug)]
pub enum Missing<'a> {
    /// A program that `.ci/run` lists, which is installed on the machines of CI.
    Program(&'a str),
    /// Anything that cannot be installed with a package: a permission, a file system, files outside of the repository,
    /// a variable that enables the test.
    Elsewhere(&'a str),
}

/// Prints a notice that the test is skipped. The test must return after the call.
///
/// # Panics
/// If `TWINDEX_REQUIRE_ALL` is 1 and a program is missing.
#[track_caller]
pub fn skip(missing: Missing<'_>) {
    let notice = notice(missing, std::env::var_os("TWINDEX_REQUIRE_ALL").is_some_and(|value| value == "1"));
    match notice {
        Ok(notice) => println!("{notice}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// Returns the notice for a skipped test, or an error if all programs are required and one is missing.
///
/// # Errors
/// The message of the failure.
pub fn notice(missing: Missing<'_>, require_all: bool) -> Result<String, String> {
    match missing {
        Missing::Program(name) if require_all => {
            Err(format!("{name} is missing or cannot be run, and TWINDEX_REQUIRE_ALL is 1"))
        }
        Missing::Program(name) => Ok(format!("skipped: {name} is missing or cannot be run")),
        Missing::Elsewhere(what) => Ok(format!("skipped: {what}")),
    }
}
