//! Tests that code imports only from lower layers: between crates, between folders of the engine, and between files of a
//! folder.
//!
//! The test reads the sources as text, and finds `use` declarations and paths that begin with `crate::` or `super::`. It
//! ignores comments, string literals and test modules.

#![allow(clippy::disallowed_methods, reason = "the sources are not files of an index")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of this project, the lowest layer first. Crates of a layer do not import each other.
const CRATES: [&[&str]; 6] = [
    &["twindex-kernel"],
    &["twindex-sketch"],
    &["twindex"],
    &["twindex-join"],
    &["twindex-corpus"],
    &["twindex-tools", "twindex-python", "twindex-capi"],
];

/// The folders and files of `src/`, the lowest layer first. Folders and files of one layer do not import each other.
const LAYERS: [&[&str]; 9] = [
    &["error", "sync", "trace"],
    &["sys", "key", "design"],
    &["extsort"],
    &["params"],
    &["format"],
    &["idf", "planner"],
    &["segment"],
    &["store"],
    &["lib"],
];

/// The source folders of crates whose files are checked for circular imports.
const SOURCES: [&str; 8] = [
    "crates/kernel/src",
    "crates/sketch/src",
    "src",
    "crates/join/src",
    "crates/corpus/src",
    "crates/capi/src",
    "tools/src",
    "python/src",
];

/// The imports of each file: the imported file, and the path by which it is imported.
type Imports = BTreeMap<String, BTreeSet<(String, String)>>;

/// Removes comments, string literals and test modules.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("r#\"") {
            rest = rest.find("\"#").map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("'\"'") || rest.starts_with("'{'") || rest.starts_with("'}'") {
            rest = &rest[3..];
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = end.map_or("", |end| &rest[end + 2..]);
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    without_test_modules(&out)
}

/// Removes modules of the form `#[cfg(test)] mod name { ... }`.
fn without_test_modules(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = &after["#[cfg(test)]".len()..];
        let item = rest.trim_start();
        let end = item.find(['{', ';']).unwrap_or(item.len());
        if item.starts_with("mod ") && item[end..].starts_with('{') {
            let mut depth = 0;
            let closed = item[end..].find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth == 0
            });
            rest = closed.map_or("", |closed| &item[end + closed + 1..]);
        } else if item.starts_with("use ") || item.starts_with("mod ") {
            rest = &item[end..];
        }
    }
    out + rest
}

/// Returns all paths that begin with `crate::` or `super::`, with the braces of `use` declarations expanded.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            // Skips `crate` in `twindex_sketch::crate`. Also skips the second `super` in `super::super::x`, because the
            // first one has already found this path.
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                spread("", &code[at..], &mut found);
            }
        }
    }
    found
}

/// Adds the paths of one `use` tree to `found`; returns the tree's length in bytes.
fn spread(prefix: &str, text: &str, found: &mut Vec<String>) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    if !text[end..].starts_with('{') || !path.ends_with("::") {
        found.push(path.trim_end_matches("::").to_owned());
        return end;
    }
    let mut at = end + 1;
    loop {
        at += text[at..].len() - text[at..].trim_start_matches([' ', '\n', ',']).len();
        if at >= text.len() || text[at..].starts_with('}') {
            return (at + 1).min(text.len());
        }
        let taken = spread(&path, &text[at..], found);
        at += taken;
        // Skips the text after a name inside the braces: `as other`, `*`.
        at += text[at..].find([',', '}']).unwrap_or(text.len() - at);
    }
}

/// Returns the files by module path: `segment/open.rs` is `segment::open`, and `segment/mod.rs` is `segment`.
fn modules(files: &BTreeMap<String, String>) -> BTreeMap<Vec<String>, String> {
    let of = |name: &str| -> Vec<String> {
        let stem = name.trim_end_matches(".rs");
        let stem = stem.strip_suffix("/mod").unwrap_or(stem);
        match stem {
            "lib" | "main" => Vec::new(),
            stem => stem.split('/').map(str::to_owned).collect(),
        }
    };
    files.keys().map(|name| (of(name), name.clone())).collect()
}

/// Returns the imports between these files. Their names are relative to the source folder of the crate.
fn imports(files: &BTreeMap<String, String>) -> Imports {
    let modules = modules(files);
    let mut found = Imports::new();
    for (module, name) in &modules {
        for path in paths(&code(&files[name])) {
            let mut at: Vec<String> = module.clone();
            let mut parts: Vec<&str> = path.split("::").collect();
            if parts[0] == "crate" {
                at.clear();
                parts.remove(0);
            }
            while parts.first() == Some(&"super") {
                at.pop();
                parts.remove(0);
            }
            at.extend(parts.iter().map(|part| (*part).to_owned()));
            // Finds the longest prefix that is the module path of a file.
            while !at.is_empty() && !modules.contains_key(&at) {
                at.pop();
            }
            if let Some(target) = modules.get(&at)
                && target != name
            {
                found.entry(name.clone()).or_default().insert((target.clone(), path));
            }
        }
    }
    found
}

/// Returns the layer of an engine file, determined by its folder or, outside of folders, by its name.
fn layer(name: &str) -> Result<usize, String> {
    let top = name.split('/').next().unwrap_or(name).trim_end_matches(".rs");
    let layer = LAYERS.iter().position(|layer| layer.contains(&top));
    layer.ok_or_else(|| format!("src/{name}: `{top}` has no layer yet; add it to the table of this test"))
}

/// Returns the imports between folders of the engine that do not go to a lower layer.
fn upward(imports: &Imports) -> Vec<String> {
    let top = |name: &str| name.split('/').next().unwrap_or(name).trim_end_matches(".rs").to_owned();
    let mut wrong = Vec::new();
    for (from, targets) in imports {
        for (to, path) in targets {
            if top(from) == top(to) {
                continue;
            }
            if to == "lib.rs" {
                // A name re-exported by the crate root can come from any layer.
                wrong.push(format!("{from} imports {path} through lib.rs; name the file that has it"));
                continue;
            }
            match (layer(from), layer(to)) {
                (Ok(mine), Ok(theirs)) if theirs < mine => {}
                (Ok(_), Ok(_)) => {
                    wrong.push(format!("{from} imports {path} from {to}, which is not below it"));
                }
                (Err(why), _) | (_, Err(why)) => wrong.push(why),
            }
        }
    }
    wrong
}

/// Returns the sets of files that import each other directly or indirectly. Imports from `mod.rs`, `lib.rs` and `main.rs`
/// are ignored, because these files only declare modules.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let hub = |name: &str| name.ends_with("mod.rs") || name == "lib.rs" || name == "main.rs";
    let reach = |from: &str| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(name) = todo.pop() {
            for (to, _) in imports.get(&name).into_iter().flatten() {
                if !hub(to) && seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().filter(|name| !hub(name)).map(|name| (name, reach(name))).collect();
    let mut found = BTreeSet::new();
    for (name, targets) in &reached {
        if targets.contains(*name) {
            let back = |other: &&String| reached.get(*other).is_some_and(|targets| targets.contains(*name));
            found.insert(targets.iter().filter(back).cloned().collect::<BTreeSet<String>>());
        }
    }
    found.into_iter().collect()
}

fn described(circle: &BTreeSet<String>, imports: &Imports) -> String {
    let mut text = format!("circle of {} files:", circle.len());
    for from in circle {
        for (to, path) in imports.get(from).into_iter().flatten().filter(|(to, _)| circle.contains(to)) {
            text.extend(["\n  ", from, " -> ", to, ": ", path]);
        }
    }
    text
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read_tree(dir: &Path) -> BTreeMap<String, String> {
    let (mut files, mut todo) = (BTreeMap::new(), vec![dir.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().replace('\\', "/");
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

fn tree(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn engine_folders_import_only_lower_layers() {
    let wrong = upward(&imports(&read_tree(&root().join("src"))));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_have_no_circular_imports() {
    let mut wrong = Vec::new();
    for sources in SOURCES {
        let imports = imports(&read_tree(&root().join(sources)));
        wrong.extend(
            circles(&imports).iter().map(|circle| format!("{sources}: {}", described(circle, &imports))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_depend_only_on_lower_crates() {
    let crates = ["kernel", "sketch", "join", "corpus", "capi"];
    let manifests = crates.map(|name| format!("crates/{name}/Cargo.toml"));
    let mut wrong = Vec::new();
    let others = ["Cargo.toml", "tools/Cargo.toml", "python/Cargo.toml"].map(str::to_owned);
    for manifest in manifests.into_iter().chain(others) {
        wrong.extend(crate_faults(&manifest, &fs::read_to_string(root().join(&manifest)).unwrap()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the dependencies in a manifest on crates of this project that are not in a lower layer.
fn crate_faults(manifest: &str, text: &str) -> Vec<String> {
    let layer = |name: &str| CRATES.iter().position(|layer| layer.contains(&name));
    let (mut section, mut name, mut wrong) = ("", "", Vec::new());
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.trim();
        } else if section == "[package]" && line.starts_with("name = ") {
            name = line["name = ".len()..].trim_matches('"');
        } else if section.ends_with("dependencies]")
            && !section.contains("dev-")
            && line.starts_with("twindex")
        {
            let on = line.split([' ', '=']).next().unwrap_or(line);
            if layer(on).is_none() || layer(on) >= layer(name) {
                wrong.push(format!("{manifest}: {name} depends on {on}, which is not below it"));
            }
        }
    }
    if layer(name).is_none() {
        wrong.push(format!("{manifest}: {name} has no layer yet; add it to the table of this test"));
    }
    wrong
}

#[test]
fn upward_and_circular_imports_are_reported_with_both_files() {
    let files = tree(&[
        ("lib.rs", "mod segment; mod format;"),
        ("format/mod.rs", "pub mod log;\npub mod manifest;"),
        ("format/log.rs", "use super::{manifest::Manifest, other};\n// use crate::store::Nothing;\n"),
        (
            "format/manifest.rs",
            "fn f() { super::log::head(\"crate::store::x\") }\nuse crate::segment::{open::Segment};",
        ),
        ("segment/mod.rs", "pub mod open;"),
        (
            "segment/open.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::store::Index; }\nuse crate::format::log::Log;",
        ),
        ("store/mod.rs", "use crate::segment::open::Segment;"),
    ]);
    let imports = imports(&files);
    let wrong = upward(&imports);
    assert_eq!(
        wrong,
        [
            "format/manifest.rs imports crate::segment::open::Segment from segment/open.rs, which is not below it"
        ]
    );
    let found = circles(&imports);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = described(&found[0], &imports);
    assert!(text.contains("format/log.rs -> format/manifest.rs: super::manifest::Manifest"), "{text}");
    assert!(text.contains("format/manifest.rs -> format/log.rs: super::log::head"), "{text}");
    assert!(
        upward(&one_file_importing_error("extra/mod.rs"))
            .iter()
            .any(|why| why.contains("`extra` has no layer yet"))
    );
}

fn one_file_importing_error(name: &str) -> Imports {
    imports(&tree(&[(name, "use crate::error::Error;"), ("error.rs", ""), ("lib.rs", "")]))
}

#[test]
fn dependency_on_a_higher_crate_is_reported() {
    let text = "[package]\nname = \"twindex-sketch\"\n[dependencies]\ntwindex = { path = \"../..\" }\n";
    assert_eq!(
        crate_faults("x/Cargo.toml", text),
        ["x/Cargo.toml: twindex-sketch depends on twindex, which is not below it"]
    );
    assert!(crate_faults("x/Cargo.toml", &text.replace("twindex = {", "twindex-kernel = {")).is_empty());
}

/// The files that may contain `unsafe`: only they may allow the lint `unsafe_code`.
const UNSAFE: [&str; 5] =
    ["crates/kernel/src/", "src/sys/mmap.rs", "src/sys/guard.rs", "src/sys/fork.rs", "crates/capi/src/"];

#[test]
fn only_listed_files_allow_unsafe_code() {
    let mut wrong = Vec::new();
    for sources in SOURCES {
        for (name, text) in read_tree(&root().join(sources)) {
            let path = format!("{sources}/{name}");
            if !UNSAFE.iter().any(|allowed| path.starts_with(allowed)) && lifts_unsafe(&text) {
                wrong.push(path);
            }
        }
    }
    assert!(wrong.is_empty(), "unsafe code is not allowed in {}", wrong.join(", "));
    assert!(lifts_unsafe("#[allow(unsafe_code, reason = \"x\")]\nfn f() {}"));
    assert!(!lifts_unsafe("// allow(unsafe_code)\nfn f() {}"));
}

/// Returns whether a source file allows `unsafe_code`. The workspace denies this lint, so `unsafe` does not compile
/// elsewhere.
fn lifts_unsafe(text: &str) -> bool {
    let code = code(text);
    ["allow(", "expect("].iter().any(|lift| {
        code.match_indices(lift).any(|(at, _)| {
            let list = &code[at + lift.len()..];
            list[..list.find(')').unwrap_or(list.len())].contains("unsafe_code")
        })
    })
}
