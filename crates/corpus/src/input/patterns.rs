//! Patterns that select the files of folders, by file name or by path relative to the folder.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns of the files that are read, and of the files that are ignored.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    /// Patterns of the files that are read; `None` to read all files.
    include: Option<Set>,
    exclude: Set,
}

/// A set of patterns.
#[derive(Clone, Debug, Default)]
struct Set {
    /// Patterns without a `/`, which match a file name in any folder.
    names: GlobSet,
    /// Patterns with a `/`, which match a path relative to the folder.
    paths: GlobSet,
}

impl Patterns {
    /// Compiles patterns. Files of one that begins with `!` are ignored, and only those of the others are read. `*` and `?` match within a name, `**` matches any folders, `[ab]` and `{a,b}` are
    /// alternatives.
    ///
    /// # Errors
    ///
    /// A pattern is invalid; the message names the option.
    pub(super) fn new(globs: &[String]) -> Result<Self, String> {
        let (exclude, include): (Vec<&str>, Vec<&str>) =
            globs.iter().map(String::as_str).partition(|glob| glob.starts_with('!'));
        let exclude: Vec<&str> = exclude.into_iter().map(|glob| &glob[1..]).collect();
        let include = if include.is_empty() { None } else { Some(Set::of(&include)?) };
        Ok(Self { include, exclude: Set::of(&exclude)? })
    }

    /// Returns whether a file is read, given its path relative to the folder.
    pub(super) fn want(&self, below: &Path) -> bool {
        self.include.as_ref().is_none_or(|include| include.fits(below)) && !self.exclude.fits(below)
    }

    /// Returns whether there is any pattern.
    pub(super) fn are_given(&self) -> bool {
        self.include.is_some() || !self.exclude.names.is_empty() || !self.exclude.paths.is_empty()
    }
}

impl Set {
    fn of(patterns: &[&str]) -> Result<Self, String> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let wrong = |error: globset::Error| format!("--glob: {error}");
        for pattern in patterns {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(wrong)?;
            if pattern.contains('/') {
                paths.add(glob)
            } else {
                names.add(glob)
            };
        }
        Ok(Self { names: names.build().map_err(wrong)?, paths: paths.build().map_err(wrong)? })
    }

    fn fits(&self, below: &Path) -> bool {
        below.file_name().is_some_and(|name| self.names.is_match(name)) || self.paths.is_match(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(globs: &[&str], paths: &[&'static str]) -> Vec<&'static str> {
        let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
        let patterns = Patterns::new(&globs).unwrap();
        paths.iter().copied().filter(|path| patterns.want(Path::new(path))).collect()
    }

    #[test]
    fn patterns_match_names_or_paths_below_the_folder() {
        let paths = ["a.jsonl", "en/a.jsonl", "en/b.txt", "en/old/c.jsonl", "de/a.jsonl"];
        assert_eq!(wanted(&[], &paths), paths);
        assert_eq!(wanted(&["*.jsonl"], &paths), ["a.jsonl", "en/a.jsonl", "en/old/c.jsonl", "de/a.jsonl"]);
        assert_eq!(wanted(&["en/*"], &paths), ["en/a.jsonl", "en/b.txt"]);
        assert_eq!(wanted(&["!*.txt", "{en,de}/**", "!**/old/**"], &paths), ["en/a.jsonl", "de/a.jsonl"]);
        assert_eq!(wanted(&["![ab].*"], &paths), ["en/old/c.jsonl"]);
        let bad = Patterns::new(&["![".to_owned()]).unwrap_err();
        assert!(bad.starts_with("--glob: "), "{bad}");
    }
}
