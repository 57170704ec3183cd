//! `cargo fuzz` says that this is fuzzing; `write_seeds` and a plain check are built without it, and need the same parts.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rustc-cfg=fuzzing");
}
