//! Patterns of file names and paths: `*`, `?`, `**`, `[ab]`, `{a,b}` and backslashes, with the meaning that they have
//! in ripgrep and in `.gitignore`.
//!
//! A pattern is compiled to a list of steps, and a text is matched against all steps that are possible at a time, so
//! that no pattern takes more than the length of the text times its own.

use std::iter::Peekable;
use std::str::Chars;

/// Maximum nesting depth of alternatives.
const DEPTH_MAX: u32 = 32;

/// A compiled pattern. The pattern fits if the end of the steps can be reached.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    /// One character, then the next step.
    Char(char),
    /// One character other than `/`, then the next step.
    AnyInName,
    /// Any character, then the next step.
    Any,
    /// One character other than `/` that is in one of the ranges, or in none of them.
    Class { is_negated: bool, ranges: Vec<(char, char)> },
    /// No character, then one of these steps.
    Either(usize, usize),
}

/// The next character of a pattern.
type Pattern<'p> = Peekable<Chars<'p>>;

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The pattern is invalid.
    pub(super) fn new(pattern: &str) -> Result<Self, &'static str> {
        let mut glob = Self { steps: Vec::new() };
        let mut rest = pattern.chars().peekable();
        glob.sequence(&mut rest, 0, true)?;
        match rest.next() {
            None => Ok(glob),
            Some(_) => Err("a } without its {"),
        }
    }

    /// Compiles a pattern up to its end, or up to the `,` or `}` that ends an alternative. `starts_name` is whether a name
    /// of a folder or a file starts here.
    fn sequence(&mut self, rest: &mut Pattern<'_>, depth: u32, mut starts_name: bool) -> Result<(), &'static str> {
        while let Some(&next) = rest.peek() {
            let is_end = next == '}' || next == ',' && depth > 0;
            if is_end {
                break;
            }
            rest.next();
            let started_name = std::mem::replace(&mut starts_name, next == '/');
            match next {
                '?' => self.steps.push(Step::AnyInName),
                '*' if started_name && rest.peek() == Some(&'*') => {
                    rest.next();
                    starts_name = self.folders(rest, depth);
                }
                '*' => self.repeat(Step::AnyInName),
                '[' => self.class(rest)?,
                '{' => self.alternatives(rest, depth + 1, started_name)?,
                '\\' => self.steps.push(Step::Char(rest.next().ok_or("a \\ at the end")?)),
                other => self.steps.push(Step::Char(other)),
            }
        }
        Ok(())
    }

    /// Compiles `**` at the start of a name: any folders if a `/` follows, anything at the end, otherwise as `*`. Returns
    /// whether a name starts after it.
    fn folders(&mut self, rest: &mut Pattern<'_>, depth: u32) -> bool {
        match rest.peek() {
            Some('/') => {
                rest.next();
                // None of it, or anything that ends with a slash.
                let at = self.steps.len();
                self.steps.push(Step::Either(at + 1, at + 5));
                self.repeat(Step::Any);
                self.steps.push(Step::Char('/'));
                true
            }
            Some(other) if depth == 0 || !",}".contains(*other) => {
                self.repeat(Step::AnyInName);
                false
            }
            _ => {
                self.steps.push(Step::Any);
                self.repeat(Step::Any);
                false
            }
        }
    }

    /// Compiles any number of a step.
    fn repeat(&mut self, step: Step) {
        let at = self.steps.len();
        self.steps.push(Step::Either(at + 1, at + 3));
        self.steps.push(step);
        self.steps.push(Step::Either(at, at));
    }

    /// Compiles a class, after its `[`.
    fn class(&mut self, rest: &mut Pattern<'_>) -> Result<(), &'static str> {
        const UNCLOSED: &str = "a [ without its ]";
        let is_negated = rest.next_if(|&next| next == '!' || next == '^').is_some();
        let mut ranges = Vec::new();
        loop {
            let low = rest.next().ok_or(UNCLOSED)?;
            // A ] is a character if it is the first one.
            if low == ']' && !ranges.is_empty() {
                break;
            }
            let mut high = low;
            let mut after = rest.clone();
            if after.next() == Some('-') && after.peek().is_some_and(|&next| next != ']') {
                rest.next();
                high = rest.next().ok_or(UNCLOSED)?;
            }
            if low > high {
                return Err("a range in [] whose end is before its start");
            }
            ranges.push((low, high));
        }
        self.steps.push(Step::Class { is_negated, ranges });
        Ok(())
    }

    /// Compiles alternatives, after their `{`.
    fn alternatives(&mut self, rest: &mut Pattern<'_>, depth: u32, starts_name: bool) -> Result<(), &'static str> {
        if depth > DEPTH_MAX {
            return Err("more than 32 { in each other");
        }
        let mut ends = Vec::new();
        loop {
            // Either this alternative or the ones after it.
            let start = self.steps.len();
            self.steps.push(Step::Either(start + 1, start + 1));
            self.sequence(rest, depth, starts_name)?;
            ends.push(self.steps.len());
            self.steps.push(Step::Either(0, 0));
            match rest.next() {
                Some(',') => self.steps[start] = Step::Either(start + 1, self.steps.len()),
                Some(_) => break,
                None => return Err("a { without its }"),
            }
        }
        let end = self.steps.len();
        for at in ends {
            self.steps[at] = Step::Either(end, end);
        }
        Ok(())
    }

    /// Returns whether the whole text fits the pattern.
    pub(super) fn fits(&self, text: &str) -> bool {
        let mut now = Reached::new(&self.steps);
        now.add(0);
        for char in text.chars() {
            let mut next = Reached::new(&self.steps);
            for &at in &now.steps {
                let takes = match self.steps.get(at) {
                    Some(Step::Char(wanted)) => *wanted == char,
                    Some(Step::AnyInName) => char != '/',
                    Some(Step::Any) => true,
                    Some(Step::Class { is_negated, ranges }) => {
                        let is_in = ranges.iter().any(|(low, high)| (low..=high).contains(&&char));
                        char != '/' && is_in != *is_negated
                    }
                    Some(Step::Either(..)) | None => false,
                };
                if takes {
                    next.add(at + 1);
                }
            }
            now = next;
        }
        now.steps.contains(&self.steps.len())
    }
}

/// The steps of a pattern that can be reached with the text so far.
struct Reached<'g> {
    all: &'g [Step],
    steps: Vec<usize>,
    has: Vec<bool>,
}

impl<'g> Reached<'g> {
    fn new(all: &'g [Step]) -> Self {
        Self { all, steps: Vec::new(), has: vec![false; all.len() + 1] }
    }

    /// Adds a step, and those that it leads to without a character.
    fn add(&mut self, step: usize) {
        let mut open = vec![step];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut self.has[at], true) {
                continue;
            }
            self.steps.push(at);
            if let Some(&Step::Either(one, other)) = self.all.get(at) {
                open.extend([other, one]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use globset::GlobBuilder;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_patterns_are_errors() {
        let why = |pattern: &str| Glob::new(pattern).unwrap_err();
        assert_eq!(why("[ab"), "a [ without its ]");
        assert_eq!(why("[z-a]"), "a range in [] whose end is before its start");
        assert_eq!(why("{a,b"), "a { without its }");
        assert_eq!(why("a}"), "a } without its {");
        assert_eq!(why("a\\"), "a \\ at the end");
        assert_eq!(why(&"{".repeat(40)), "more than 32 { in each other");
    }

    #[test]
    fn patterns_with_many_stars_are_matched_in_time() {
        let glob = Glob::new(&"*a".repeat(40)).unwrap();
        assert!(!glob.fits(&"a".repeat(200).replace("aa", "ab")[..60]));
        assert!(glob.fits(&"a".repeat(200)));
        let glob = Glob::new(&"{a,b}".repeat(100)).unwrap();
        assert!(glob.fits(&"ab".repeat(50)) && !glob.fits(&"a".repeat(99)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// The crate `globset` is the matcher of ripgrep.
        #[test]
        fn patterns_fit_what_they_fit_in_ripgrep(
            pattern in "([ab/]|\\*|\\?|\\*\\*/|/\\*\\*|\\[[!]?[ab]-?b?\\]|\\{[ab]{0,2}\\*?[ab]?(,[a/b?]{0,2}){0,2}\\}){0,6}",
            texts in prop::collection::vec("[ab]{1,2}(/[ab]{1,3}){0,3}", 30),
        ) {
            // The crate takes a final `**/` as `**`; ours fits no name of a file.
            prop_assume!(!pattern.ends_with("**/"));
            let theirs = GlobBuilder::new(&pattern).literal_separator(true).empty_alternates(true).build();
            let ours = Glob::new(&pattern);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?}: {:?} {:?}", pattern, ours, theirs);
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                let theirs = theirs.compile_matcher();
                for text in &texts {
                    prop_assert_eq!(ours.fits(text), theirs.is_match(text), "{:?} {:?}", pattern, text);
                }
            }
        }
    }
}
