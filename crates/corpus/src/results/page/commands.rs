//! Commands that a page shows, quoted for a shell.

use std::path::Path;

use crate::work::tsv;

/// Maximum length of a key in a command, in bytes.
const KEY_MAX: usize = 300;

/// Returns a word as a shell needs it: in single quotes, if it has other characters than those of most paths.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,#".contains(c);
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the command that explains the decision on a document; `None` if its key is too long for a command or cannot
/// be typed.
pub(crate) fn why(out: &Path, key: &[u8]) -> Option<String> {
    let written = tsv::escape(key);
    let escaped = if *written == *key { "" } else { " --escaped" };
    let written = std::str::from_utf8(&written).ok()?;
    if written.len() > KEY_MAX || written.chars().any(char::is_control) {
        return None;
    }
    let out = out.to_string_lossy();
    let end = if written.starts_with('-') || out.starts_with('-') { " --" } else { "" };
    Some(format!("twindex why{escaped}{end} {} {}", quoted(&out), quoted(written)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_quoted_for_a_shell_and_escaped_as_in_the_tables() {
        let why = |key: &[u8]| why(Path::new("my out"), key);
        let said = |rest: &str| Some(format!("twindex why{rest}"));
        assert_eq!(why(b"a/b.md@1#2"), said(" 'my out' a/b.md@1#2"));
        assert_eq!(why(b"it's; rm -rf $HOME `x`"), said(r" 'my out' 'it'\''s; rm -rf $HOME `x`'"));
        assert_eq!(why(b"a\tb\xff"), said(r" --escaped 'my out' 'a\tb\xff'"));
        assert_eq!(why(b"--json"), said(" -- 'my out' --json"));
        assert_eq!(why(b"a\x1b[31m"), None);
        assert_eq!(why(&[b'a'; KEY_MAX + 1]), None);
    }
}
