//! A skipped test says so, and is a failure where `TWINDEX_REQUIRE_ALL` is 1 and an installable program is missing.

use crate::support::skip::{Missing, notice};

#[test]
fn missing_program_is_a_failure_where_all_are_required() {
    let skipped = notice(Missing::Program("strace"), false);
    assert_eq!(skipped, Ok("skipped: strace is missing or cannot be run".to_owned()));
    let failure = notice(Missing::Program("strace"), true).unwrap_err();
    assert!(failure.contains("strace") && failure.contains("TWINDEX_REQUIRE_ALL"), "{failure}");
}

#[test]
fn what_no_package_brings_is_skipped_even_where_all_is_required() {
    for require_all in [false, true] {
        let skipped = notice(Missing::Elsewhere("mounting needs root"), require_all);
        assert_eq!(skipped, Ok("skipped: mounting needs root".to_owned()), "{require_all}");
    }
}
