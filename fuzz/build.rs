//! `cargo fuzz` sets the configuration of fuzzing; `write_seeds` and a plain check are built without it, and need the
//! same parts.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rustc-cfg=fuzzing");
}
