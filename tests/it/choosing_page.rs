//! Tests that `docs/choosing.md` is the output of `examples/choosing.rs`, so that its numbers are computed by the code.

#[path = "../../examples/choosing.rs"]
mod choosing;

#[test]
fn choosing_page_is_up_to_date() {
    let kept = include_str!("../../docs/choosing.md");
    for (kept, printed) in kept.lines().zip(choosing::page().lines()) {
        assert_eq!(kept, printed, "write it again: cargo run --example choosing > docs/choosing.md");
    }
    assert_eq!(kept, choosing::page());
}
