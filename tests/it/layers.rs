//! Tests that code imports only from lower layers: between crates, between folders of the engine, and between files of a
//! folder.
//!
//! The test reads the sources as text, and finds `use` declarations, paths that begin with `crate::`, `super::` or `self::`,
//! and paths that begin with the name of a submodule. It ignores comments, string literals and test modules.
//!
//! Files named `mod.rs`, `lib.rs` or `main.rs` are files like any other if they declare an item that another file imports. An
//! item that such a file only re-exports belongs to the file that declares it.

#![allow(clippy::disallowed_methods, reason = "the sources are not files of an index")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of this project, the lowest layer first. Crates of a layer do not import each other.
const CRATES: [&[&str]; 6] = [
    &["twindex-kernel", "twindex-domain"],
    &["twindex-sketch"],
    &["twindex"],
    &["twindex-join"],
    &["twindex-corpus"],
    &["twindex-tools", "twindex-python", "twindex-capi"],
];

/// The folders and files of `src/`, the lowest layer first. Folders and files of one layer do not import each other.
const LAYERS: [&[&str]; 10] = [
    &["error", "sync", "trace"],
    &["cancel"],
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
const SOURCES: [&str; 9] = [
    "crates/kernel/src",
    "crates/sketch/src",
    "src",
    "crates/join/src",
    "crates/domain/src",
    "crates/corpus/src",
    "crates/capi/src",
    "tools/src",
    "python/src",
];

/// The folders whose files may import each other, and why.
const CIRCLES: [(&str, &str); 1] = [(
    "crates/kernel/src",
    "a level has an operation for each loop, and each loop is compiled for every level",
)];

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
    without_inline_modules(&without_test_modules(&out))
}

/// Rewrites the paths in modules of the form `mod name { ... }` so that they begin at the module of the file: there, one
/// `super` leads to the file itself.
fn without_inline_modules(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("mod ") {
        let open = rest[at..].find(['{', ';']).map(|open| at + open);
        let is_word = rest[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let Some(open) = open.filter(|&open| is_word && rest[open..].starts_with('{')) else {
            out.push_str(&rest[..at + 4]);
            rest = &rest[at + 4..];
            continue;
        };
        let mut depth = 0;
        let closed = rest[open..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let end = closed.map_or(rest.len(), |closed| open + closed);
        out.push_str(&rest[..=open]);
        let inside = without_inline_modules(&rest[open + 1..end]);
        let mut inside = inside.as_str();
        while let Some(at) = inside.find("super::") {
            out.push_str(&inside[..at]);
            inside = &inside[at + "super::".len()..];
            if inside.starts_with("super::") {
                out.push_str("super::");
                inside = &inside["super::".len()..];
            } else {
                out.push_str("self::");
            }
        }
        out.push_str(inside);
        rest = &rest[end..];
    }
    out + rest
}

/// Removes modules of the form `#[cfg(test)] mod name { ... }`.
fn without_test_modules(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = &after["#[cfg(test)]".len()..];
        let mut item = rest.trim_start();
        while item.starts_with("#[") {
            item = item.find("]\n").map_or("", |end| item[end + 1..].trim_start());
        }
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

/// Returns all paths that begin with one of `starts`, such as `super::`.
fn paths(code: &str, starts: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for start in starts {
        for (at, _) in code.match_indices(start.as_str()) {
            let before = code[..at].chars().next_back();
            // Skips `crate` in `twindex_sketch::crate`. Also skips the second `super` in `super::super::x`, because the
            // first one has already found this path.
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                let end = at + code[at..].find(|c: char| !is_of_path(c)).unwrap_or(code.len() - at);
                found.push(code[at..end].trim_end_matches(':').to_owned());
            }
        }
    }
    found
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

/// A name that a `use` declaration brings into scope. The path of a glob import ends in `*`.
struct Use {
    path: String,
    name: String,
    is_public: bool,
}

/// Returns the names that `use` declarations bring into scope, and the code without these declarations.
fn uses(code: &str) -> (Vec<Use>, String) {
    let (mut found, mut body, mut rest) = (Vec::new(), String::new(), code);
    while let Some(at) = rest.find("use ") {
        let (before, declaration) = rest.split_at(at);
        let line = &before[before.rfind(['\n', ';', '}', '{']).map_or(0, |end| end + 1)..];
        let visibility = line.trim();
        if !(visibility.is_empty() || visibility.starts_with("pub") && !visibility.contains(' ')) {
            body.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        body.push_str(&before[..before.len() - line.len()]);
        let end = declaration.find(';').unwrap_or(declaration.len());
        let mut names = Vec::new();
        spread("", declaration["use ".len()..end].trim(), &mut names);
        let is_public = !visibility.is_empty();
        found.extend(names.into_iter().map(|(path, name)| Use { path, name, is_public }));
        rest = &declaration[end..];
    }
    (found, body + rest)
}

/// Adds the paths and names of one `use` tree to `found`; returns the tree's length in bytes.
fn spread(prefix: &str, text: &str, found: &mut Vec<(String, String)>) -> usize {
    let end = text.find(|c: char| !is_of_path(c) && c != '*').unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    if !text[end..].starts_with('{') || !path.ends_with("::") {
        let path = path.trim_end_matches("::self").to_owned();
        let after = &text[end..];
        let end_of_name = after.find([',', '}', '\n']).unwrap_or(after.len());
        let (name, taken) = match after[..end_of_name].trim().strip_prefix("as ") {
            Some(name) => (name.trim().to_owned(), end + end_of_name),
            None => (path.rsplit("::").next().unwrap_or("").to_owned(), end),
        };
        found.push((path, name));
        return taken;
    }
    let mut at = end + 1;
    loop {
        at += text[at..].len() - text[at..].trim_start_matches([' ', '\n', ',']).len();
        if at >= text.len() || text[at..].starts_with('}') {
            return (at + 1).min(text.len());
        }
        at += spread(&path, &text[at..], found);
        // Skips to the next name inside the braces.
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

/// The sources of a crate. File names are relative to its source folder.
struct Sources {
    /// The files by module path.
    modules: BTreeMap<Vec<String>, String>,
    /// The `use` declarations of each file, and its other code.
    parsed: BTreeMap<String, (Vec<Use>, String)>,
}

impl Sources {
    fn of(files: &BTreeMap<String, String>) -> Self {
        let parsed = files.iter().map(|(name, text)| (name.clone(), uses(&code(text)))).collect();
        Self { modules: modules(files), parsed }
    }

    /// Returns the paths that a file imports, absolute and as they are written. A `pub use` of a hub is no import unless
    /// the hub itself uses the name.
    fn paths_of(&self, module: &[String], name: &str) -> Vec<(Vec<String>, String)> {
        let (uses, body) = &self.parsed[name];
        let children = self.modules.keys().filter(|other| {
            !other.is_empty() && other.len() == module.len() + 1 && other.starts_with(module)
        });
        let children: Vec<String> = children.map(|other| other[module.len()].clone()).collect();
        let mut starts: Vec<String> = ["crate::", "super::", "self::"].map(str::to_owned).into();
        starts.extend(children.iter().map(|child| format!("{child}::")));
        let mut found = paths(body, &starts);
        for used in uses {
            let is_whole = self.modules.contains_key(&absolute(module, &used.path));
            // For a module, finds the names that the file uses of it.
            if is_whole && is_hub(&self.file_of(&absolute(module, &used.path)).0) {
                let names = paths(body, &[format!("{}::", used.name)]);
                found.extend(names.iter().map(|path| used.path.clone() + &path[used.name.len()..]));
            } else if !(used.is_public && is_hub(name)) || has_word(body, &used.name) {
                found.push(used.path.clone());
            }
        }
        found.retain(|path| {
            let first = path.split("::").next().unwrap_or(path);
            ["crate", "super", "self"].contains(&first) || children.iter().any(|child| child == first)
        });
        found.into_iter().map(|path| (absolute(module, &path), path)).collect()
    }

    /// Returns the file with the longest prefix of this path, and the rest of the path.
    fn file_of(&self, path: &[String]) -> (String, Vec<String>) {
        let mut length = path.len();
        while length > 0 && !self.modules.contains_key(&path[..length]) {
            length -= 1;
        }
        let file = self.modules.get(&path[..length]).cloned().unwrap_or_default();
        (file, path[length..].to_vec())
    }

    /// Returns the file that declares the item of this path; `None` if the path names only a module.
    fn declaring(&self, path: &[String], depth: usize) -> Option<String> {
        let (file, rest) = self.file_of(path);
        if !is_hub(&file) {
            return Some(file);
        }
        let name = rest.first()?;
        let (uses, body) = &self.parsed[&file];
        if name == "*" || depth == 0 || declares(body, name) {
            return Some(file);
        }
        let module = &path[..path.len() - rest.len()];
        let used = uses.iter().find(|used| used.name == *name)?;
        self.declaring(&absolute(module, &used.path), depth - 1)
    }

    /// Returns the imports between files, as they are written: an item belongs to the module in its path.
    fn imports(&self) -> Imports {
        self.all_imports(|path| Some(self.file_of(path).0))
    }

    /// Returns the imports between files: an item belongs to the file that declares it.
    fn resolved_imports(&self) -> Imports {
        self.all_imports(|path| self.declaring(path, 8))
    }

    fn all_imports(&self, file_of: impl Fn(&[String]) -> Option<String>) -> Imports {
        let mut found = Imports::new();
        for (module, name) in &self.modules {
            for (path, written) in self.paths_of(module, name) {
                if let Some(target) = file_of(&path).filter(|target| target != name && !target.is_empty()) {
                    found.entry(name.clone()).or_default().insert((target, written));
                }
            }
        }
        found
    }
}

/// Returns whether a file usually only declares modules.
fn is_hub(name: &str) -> bool {
    name.ends_with("mod.rs") || name == "lib.rs" || name == "main.rs"
}

/// Returns the path from the root of the crate of a path that is written in `module`.
fn absolute(module: &[String], path: &str) -> Vec<String> {
    let mut at = module.to_vec();
    for part in path.split("::") {
        match part {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            part => at.push(part.to_owned()),
        }
    }
    at
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|other| other == word)
}

/// Returns whether the code declares this item outside of braces.
fn declares(code: &str, name: &str) -> bool {
    let mut depth = 0;
    let outside: String = code
        .chars()
        .filter(|&c| {
            depth += i32::from(c == '{');
            let is_outside = depth == 0;
            depth -= i32::from(c == '}');
            is_outside || c == '}'
        })
        .collect();
    let words: Vec<&str> =
        outside.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let kinds = ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules"];
    words.windows(2).any(|pair| kinds.contains(&pair[0]) && pair[1] == name)
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

/// Returns the sets of files that import each other directly or indirectly.
fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let reach = |from: &str| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(name) = todo.pop() {
            for (to, _) in imports.get(&name).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    todo.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|name| (name, reach(name))).collect();
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
    let wrong = upward(&Sources::of(&read_tree(&root().join("src"))).imports());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_have_no_circular_imports() {
    let mut wrong = Vec::new();
    for sources in SOURCES {
        let imports = Sources::of(&read_tree(&root().join(sources))).resolved_imports();
        let is_known = |circle: &BTreeSet<String>| {
            let all_in =
                |folder: &str| circle.iter().all(|file| format!("{sources}/{file}").starts_with(folder));
            CIRCLES.iter().any(|(folder, _)| all_in(folder))
        };
        wrong.extend(
            circles(&imports)
                .iter()
                .filter(|circle| !is_known(circle))
                .map(|circle| format!("{sources}: {}", described(circle, &imports))),
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
    let sources = Sources::of(&files);
    let wrong = upward(&sources.imports());
    assert_eq!(
        wrong,
        [
            "format/manifest.rs imports crate::segment::open::Segment from segment/open.rs, which is not below it"
        ]
    );
    let imports = sources.resolved_imports();
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

#[test]
fn item_of_a_module_belongs_to_the_file_that_declares_it() {
    let circles_of = |texts: &[(&str, &str)]| circles(&Sources::of(&tree(texts)).resolved_imports());
    let parent = "mod child;\nuse self::child::Child;\npub struct Parent(Child);";
    let child = ("a/child.rs", "use super::Parent;\npub struct Child;");
    let found = circles_of(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), child]);
    assert_eq!(found, [["a/child.rs", "a/mod.rs"].map(str::to_owned).into()]);
    // A file that only re-exports an item has no part in the circle of the files that declare items.
    let parent = "mod child;\nmod other;\npub use child::Child;\npub use other::{Other as Parent};";
    let other = ("a/other.rs", "pub struct Other;");
    assert!(circles_of(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), child, other]).is_empty());
    let other = ("a/other.rs", "use super::Child;\npub struct Other(Child);");
    let found = circles_of(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), child, other]);
    assert_eq!(found, [["a/child.rs", "a/other.rs"].map(str::to_owned).into()]);
    // In a module inside a file, `super` is the file. Names in test modules are not imports.
    let child = (
        "a/child.rs",
        "pub struct Child;\nmod x86 { use super::Child; }\n#[cfg(test)]\n#[allow(x)]\nmod tests { use crate::a::Parent; }",
    );
    assert!(circles_of(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), child, other]).is_empty());
}

fn one_file_importing_error(name: &str) -> Imports {
    Sources::of(&tree(&[(name, "use crate::error::Error;"), ("error.rs", ""), ("lib.rs", "")])).imports()
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
