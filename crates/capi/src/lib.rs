//! The C interface of twindex. cbindgen generates `include/twindex.h` from this crate, and copies the doc comments of
//! exported items: they are the documentation for C programs. README.md states the rules on ownership, errors and
//! threads.
//!
//! Handles are received as `Option<&T>` and freed as `Option<Box<T>>`; Rust guarantees that these types are nullable
//! pointers. Only `border.rs` converts other pointers. Functions that could panic run in `border::call` or
//! `catch::ask`, which catch panics.

#![allow(
    unsafe_code,
    reason = "a C interface exports symbols and receives addresses; each block states what its caller promised"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the promises are the same everywhere and stand at the head of the header: addresses are valid or null"
)]
#![allow(
    unreachable_pub,
    reason = "what is exported to C is `pub`, which cbindgen goes by, and no Rust crate links this one"
)]

mod access;
mod batch;
mod border;
mod cancel;
mod catch;
mod copies;
mod documents;
mod error;
mod flags;
mod groups;
mod hits;
mod idf;
mod idf_counter;
mod index;
mod keys;
mod many;
mod metrics;
mod open;
mod packed;
mod parallel;
mod params;
mod query;
mod record;
mod salvage;
mod settings;
mod sketch;
mod snapshot;
mod verify;
mod writer;
mod writer_reads;
mod writer_work;

use std::ffi::c_char;

/// The version of this interface, incremented with each addition. A library with the same soname and an equal or higher
/// version has everything that a program compiled with this header needs.
pub const TWINDEX_ABI_VERSION: u32 = 3;

/// Returns the `TWINDEX_ABI_VERSION` of the loaded library.
// SAFETY: only this crate defines symbols with the prefix `twindex_`, so no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_abi_version() -> u32 {
    TWINDEX_ABI_VERSION
}

/// Returns the version of the loaded library, such as "0.1.0". The string must not be freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Checks at compile time that threads can share all handles.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<batch::Batch>();
    shared::<cancel::Cancel>();
    shared::<error::Error>();
    shared::<groups::Changes>();
    shared::<groups::Group>();
    shared::<groups::Groups>();
    shared::<hits::Hits>();
    shared::<idf::Idf>();
    shared::<idf_counter::IdfCounter>();
    shared::<index::Index>();
    shared::<keys::Keys>();
    shared::<params::Params>();
    shared::<record::Record>();
    shared::<salvage::Salvaged>();
    shared::<sketch::Sketch>();
    shared::<sketch::Sketcher>();
    shared::<sketch::Sketches>();
    shared::<snapshot::Snapshot>();
    shared::<verify::Findings>();
    shared::<writer::Writer>();
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    const SOURCES: [&str; 24] = [
        include_str!("lib.rs"),
        include_str!("batch.rs"),
        include_str!("cancel.rs"),
        include_str!("copies.rs"),
        include_str!("error.rs"),
        include_str!("groups.rs"),
        include_str!("hits.rs"),
        include_str!("idf.rs"),
        include_str!("idf_counter.rs"),
        include_str!("index.rs"),
        include_str!("keys.rs"),
        include_str!("many.rs"),
        include_str!("metrics.rs"),
        include_str!("open.rs"),
        include_str!("params.rs"),
        include_str!("query.rs"),
        include_str!("record.rs"),
        include_str!("salvage.rs"),
        include_str!("sketch.rs"),
        include_str!("snapshot.rs"),
        include_str!("verify.rs"),
        include_str!("writer.rs"),
        include_str!("writer_reads.rs"),
        include_str!("writer_work.rs"),
    ];

    /// Finds the functions in `text` whose names follow `before`. Returns their names and numbers of arguments.
    fn functions(text: &str, before: &str) -> BTreeMap<String, usize> {
        let found = text.match_indices(before).filter_map(|(at, _)| {
            let (name, rest) = text[at + before.len()..].split_once('(')?;
            let arguments = rest[..rest.find(')')?].split(',').filter(|argument| {
                let argument = argument.trim();
                !argument.is_empty() && argument != "void"
            });
            let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            is_name.then(|| (format!("twindex_{name}"), arguments.count()))
        });
        found.collect()
    }

    /// Detects functions that are missing in the header, also on machines without cbindgen.
    #[test]
    fn header_declares_every_function_with_its_number_of_arguments() {
        let rust: BTreeMap<_, _> =
            SOURCES.iter().flat_map(|text| functions(text, "extern \"C\" fn twindex_")).collect();
        let lines = include_str!("../include/twindex.h").lines();
        let code = lines.filter(|line| !line.trim_start().starts_with("//") && !line.starts_with('#'));
        let header = code.collect::<Vec<_>>().join("\n");
        let header =
            header.split_once("*/").expect("a comment at the head").1.replace("*twindex_", " twindex_");
        let declared = functions(&header, " twindex_");
        assert!(rust.len() > 60, "{}", rust.len());
        assert_eq!(rust, declared, "run scripts/capi header");
    }

    /// Checks that the linker map assigns a symbol version to the exported functions.
    #[test]
    fn symbols_have_a_version() {
        assert!(include_str!("../twindex.map").starts_with("TWINDEX_1 {"));
    }
}
