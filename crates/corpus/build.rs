//! Writes the lists of stop words of the crate `stop-words` as one string per language. Arrays of strings would take a
//! megabyte of the binary, and the loader would have to relocate the address of each word.
#![allow(clippy::disallowed_methods, reason = "a build script is no part of the engine")]

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut lists = String::from("[\n");
    for code in stop_words::available_languages() {
        let words = stop_words::lookup(code).unwrap_or_default();
        assert!(words.iter().all(|word| !word.contains('\n')), "a stop word of {code} has a line end");
        writeln!(lists, "    ({code:?}, \"{}\"),", words.join("\n").escape_default())
            .expect("strings take all text");
    }
    lists.push_str("]\n");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(folder.join("stop_words.rs"), lists).expect("cargo's folder can be written to");
}
