//! Compares the public functions and fields of the engine with `crates/capi/front.txt`, which names their counterparts
//! in C and Java, and these with the header and the Java sources. A new function of the front without a row fails here.

#![allow(clippy::disallowed_methods, reason = "reads sources")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Adds the texts of all sources of a folder, by path.
fn read_sources(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.insert(path, text);
        }
    }
}

/// Returns the name at the start of `text`.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// Returns the name after the first of these prefixes that `line` has.
fn after<'t>(line: &'t str, prefixes: &[&str]) -> Option<&'t str> {
    prefixes.iter().find_map(|prefix| line.strip_prefix(prefix)).map(name).filter(|name| !name.is_empty())
}

/// Returns the names that `lib.rs` exports, except those of the crate `twindex-sketch`, which has a front of its own.
fn exported(lib: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in lib.split("\npub use ").skip(1) {
        let statement = statement.split(';').next().unwrap();
        if statement.starts_with("sketch::") || statement.ends_with(" as sketch") {
            continue;
        }
        let list = statement.rsplit(['{', ':']).next().unwrap().trim_end_matches('}');
        names.extend(list.split(',').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()));
    }
    names
}

/// Returns the public functions and fields of these types, and the public functions of these names, in the sources.
fn front(lib: &str, sources: &BTreeMap<PathBuf, String>) -> BTreeSet<String> {
    let functions = exported(lib);
    let mut types = functions.clone();
    // Public modules, whose types are all public.
    let is_module = |path: &Path, module: &str| path.to_string_lossy().contains(&format!("src/{module}"));
    for (path, text) in sources {
        if is_module(path, "params") || is_module(path, "idf.rs") {
            types.extend(
                text.lines().filter_map(|line| after(line, &["pub struct ", "pub enum "])).map(str::to_owned),
            );
        }
    }
    let mut front = BTreeSet::new();
    for (path, text) in sources {
        let mut current: Option<(&str, bool)> = None; // the type, and whether this is its declaration
        for line in text.lines() {
            if line == "mod tests {" {
                break;
            } else if let Some(of) = line.strip_prefix("impl") {
                let of = of.trim_start();
                let of = if of.starts_with('<') { of.split_once("> ").map_or("", |(_, of)| of) } else { of };
                current = (!line.contains(" for ")).then(|| (name(of), false));
            } else if let Some(of) = after(line, &["pub struct "]) {
                current = Some((of, true));
            } else if let Some(function) = after(line, &["pub fn "]) {
                if is_module(path, "idf.rs") {
                    front.insert(format!("idf::{function}"));
                } else if functions.contains(function) {
                    front.insert(function.to_owned());
                }
            } else if line.starts_with('}') {
                current = None;
            } else if let Some((of, is_declaration)) = current
                && types.contains(of)
            {
                if is_declaration
                    && let Some(field) = after(line, &["    pub "])
                    && line.contains(&format!("pub {field}:"))
                {
                    front.insert(format!("{of}.{field}"));
                } else if !is_declaration
                    && let Some(method) = after(line, &["    pub fn ", "    pub const fn "])
                {
                    front.insert(format!("{of}::{method}"));
                }
            }
        }
    }
    front
}

/// The texts in which the counterparts are declared.
struct Declared {
    header: String,
    settings: String,
    java: BTreeMap<String, String>,
}

impl Declared {
    /// Returns whether a counterpart in C exists.
    fn has_c(&self, counterpart: &str) -> bool {
        let word = |text: &str, word: &str| {
            text.match_indices(word).any(|(at, _)| {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
            })
        };
        match (counterpart.split_once('.'), counterpart.split_once(' ')) {
            (Some((structure, field)), _) => self.header.split("typedef struct {").skip(1).any(|text| {
                let (body, rest) = text.split_once("\n}").unwrap_or((text, ""));
                rest.trim_start().starts_with(&format!("{structure};")) && body.contains(&format!("{field};"))
            }),
            (None, Some((function, setting))) => {
                self.has_c(function) && self.settings.contains(&format!("(\"{setting}\", "))
            }
            (None, None) => word(&self.header, counterpart),
        }
    }

    /// Returns whether a counterpart in Java exists: a method or a component of a record, as `Class.member`.
    fn has_java(&self, counterpart: &str) -> bool {
        let Some((class, member)) = counterpart.split_once('.') else { return false };
        let Some(text) = self.java.get(class) else { return false };
        ["(", ",", ")"]
            .iter()
            .any(|end| [" ", "\n"].iter().any(|start| text.contains(&format!("{start}{member}{end}"))))
    }
}

/// Returns what is wrong with the table.
fn faults(table: &str, front: &BTreeSet<String>, declared: &Declared) -> (Vec<String>, [usize; 3]) {
    let (mut wrong, mut rows, mut counts) = (Vec::new(), BTreeSet::new(), [front.len(), 0, 0]);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [of, c, java] = columns[..] else {
            wrong.push(format!("{line}: expected three columns"));
            continue;
        };
        if !rows.insert(of.to_owned()) {
            wrong.push(format!("{of} has two rows"));
        }
        match c.strip_prefix("no: ") {
            Some(reason) if reason.len() < 10 => wrong.push(format!("{of}: {reason:?} is no reason")),
            Some(_) => {}
            None if declared.has_c(c) => counts[1] += 1,
            None => wrong.push(format!("{of}: {c} is not in twindex.h")),
        }
        if java != "-" {
            counts[2] += 1;
            if !declared.has_java(java) {
                wrong.push(format!("{of}: there is no {java} in the Java library"));
            }
        }
    }
    wrong.extend(front.difference(&rows).map(|of| format!("{of} is public, and has no row in front.txt")));
    wrong.extend(rows.difference(front).map(|of| format!("{of} has a row, and is not public")));
    (wrong, counts)
}

fn declared() -> Declared {
    let mut java = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates/capi/java/src/twindex")).unwrap() {
        let path = entry.unwrap().path();
        java.insert(
            path.file_stem().unwrap().to_string_lossy().into_owned(),
            fs::read_to_string(&path).unwrap(),
        );
    }
    Declared {
        header: read("crates/capi/include/twindex.h"),
        settings: read("crates/capi/src/settings.rs"),
        java,
    }
}

fn sources() -> BTreeMap<PathBuf, String> {
    let mut sources = BTreeMap::new();
    read_sources(&root().join("src"), &mut sources);
    sources
}

#[test]
fn every_public_function_has_a_counterpart_in_c_or_a_reason() {
    let front = front(&read("src/lib.rs"), &sources());
    let (wrong, [all, c, java]) = faults(&read("crates/capi/front.txt"), &front, &declared());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{all} public functions and fields, {c} with a counterpart in C, {java} in Java");
    assert!(c > 250 && java > 200, "{c} {java}");
}

#[test]
fn missing_and_wrong_rows_are_reported() {
    let lib = "mod a;\npub use a::{One, two};\npub use sketch::Sketch;\n";
    let text = "pub struct One {\n    /// x\n    pub field: u32,\n    hidden: u32,\n}\n\nimpl One {\n    pub fn new() {}\n    fn private() {}\n\
        }\n\nimpl Drop for One {\n    pub fn no() {}\n}\n\npub fn two() {}\npub fn three() {}\nmod tests {\nimpl One {\n    pub fn test() {}\n}\n";
    let found = front(lib, &[(PathBuf::from("src/a.rs"), text.to_owned())].into());
    assert_eq!(found, ["One.field", "One::new", "two"].map(str::to_owned).into());
    let declared = Declared {
        header: "typedef struct {\n    size_t struct_size;\n    uint32_t field;\n} twindex_one;\nvoid twindex_two(void);".to_owned(),
        settings: "(\"near\", \"J\")".to_owned(),
        java: [("One".to_owned(), "int field() {".to_owned())].into(),
    };
    let right = "# comment\nOne.field | twindex_one.field | One.field\nOne::new | no: an example of Rust | -\ntwo | twindex_two near | -";
    assert_eq!(faults(right, &found, &declared).0, Vec::<String>::new());
    for (row, instead, why) in [
        ("twindex_one.field", "twindex_one.fields", "One.field: twindex_one.fields is not in twindex.h"),
        ("twindex_two near", "twindex_tw", "two: twindex_tw is not in twindex.h"),
        ("twindex_two near", "twindex_two far", "two: twindex_two far is not in twindex.h"),
        ("One.field\nOne", "One.fields\nOne", "One.field: there is no One.fields in the Java library"),
        ("no: an example of Rust", "no: x", "One::new: \"x\" is no reason"),
        ("two | twindex_two near | -", "", "two is public, and has no row in front.txt"),
    ] {
        let wrong = faults(right.replace(row, instead).trim_end(), &found, &declared).0;
        assert!(wrong.contains(&why.to_owned()), "{wrong:?}");
    }
}
