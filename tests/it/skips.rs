//! Tests that a skipped test prints a notice, and that it fails instead if `TWINDEX_REQUIRE_ALL` is 1 and the missing
//! program can be installed.

use crate::support::skip::{Missing, notice};

#[test]
fn missing_program_fails_the_test_if_all_are_required() {
    let skipped = notice(Missing::Program("strace"), false);
    assert_eq!(skipped, Ok("skipped: strace is missing or cannot be run".to_owned()));
    let failure = notice(Missing::Program("strace"), true).unwrap_err();
    assert!(failure.contains("strace") && failure.contains("TWINDEX_REQUIRE_ALL"), "{failure}");
}

#[test]
fn requirement_that_cannot_be_installed_is_always_skipped() {
    for require_all in [false, true] {
        let skipped = notice(Missing::Elsewhere("mounting needs root"), require_all);
        assert_eq!(skipped, Ok("skipped: mounting needs root".to_owned()), "{require_all}");
    }
}
