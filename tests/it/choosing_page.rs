//! `docs/choosing.md` is what `examples/choosing.rs` prints, so that its numbers are those of the code.

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
