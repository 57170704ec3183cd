//! Sets the configuration `fuzzing`. `cargo fuzz` sets it as well, but `write_seeds` and a plain `cargo check` need the
//! same parts of the library.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rustc-cfg=fuzzing");
}
