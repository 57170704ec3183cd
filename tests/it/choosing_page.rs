//! `docs/choosing.md` is what `examples/choosing.rs` prints, so that its numbers are those of the code.

#[path = "../../examples/choosing.rs"]
mod choosing;

#[test]
fn the_page_on_choosing_is_the_one_printed_now() {
    let kept = include_str!("../../docs/choosing.md");
    for (kept, printed) in kept.lines().zip(choosing::page().lines()) {
        assert_eq!(kept, printed, "write it again: cargo run --example choosing > docs/choosing.md");
    }
    assert_eq!(kept, choosing::page());
}
