//! Standard output and standard error. On a terminal, control characters of keys, texts and file names are shown as
//! escapes such as `\u001b`, so that they do not control the terminal. Pipes and files get the bytes as they are.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anyhow::Context;

/// Returns standard output.
pub(crate) fn stdout() -> Shown<io::Stdout> {
    let out = io::stdout();
    Shown { is_terminal: out.is_terminal(), out, before_c1: false }
}

/// Returns standard output for a table without a header line: a terminal first gets the names of its columns.
pub(crate) fn stdout_of_table(names: &str) -> anyhow::Result<Shown<io::Stdout>> {
    let out = stdout();
    let shown = if names.is_empty() { Ok(out) } else { out.with_head(names) };
    shown.context("cannot write to standard output")
}

/// Prints a message to standard error, after the name of the command. Ignores errors, because standard error may be
/// closed and the results are still valid.
pub(crate) fn warn(message: &str) {
    let mut err = io::stderr();
    let message: Cow<'_, str> = if err.is_terminal() {
        String::from_utf8(escaped(message.as_bytes(), &mut false, b"\t")).map_or(message.into(), Into::into)
    } else {
        message.into()
    };
    let _ = writeln!(err, "twindex: {message}");
}

/// A writer that escapes control characters if it writes to a terminal.
pub(crate) struct Shown<W> {
    out: W,
    is_terminal: bool,
    /// Whether the last byte was the first one of a control character from U+0080 to U+009F. It is not written yet.
    before_c1: bool,
}

impl<W: Write> Shown<W> {
    /// Writes the names of the columns of a table, for people. Programs get the table without them.
    pub(crate) fn with_head(self, names: &str) -> io::Result<Self> {
        let mut shown = self;
        if shown.is_terminal {
            writeln!(shown, "{names}")?;
        }
        Ok(shown)
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        self.out.write_all(&escaped(bytes, &mut self.before_c1, b"\t\n"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The first byte of the characters from U+0080 to U+00BF in UTF-8.
const BEFORE_C1: u8 = 0xc2;

fn escaped(bytes: &[u8], before_c1: &mut bool, plain: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        let is_c1 = std::mem::take(before_c1) && {
            let is_c1 = matches!(byte, 0x80..=0x9f);
            made.extend((!is_c1).then_some(BEFORE_C1));
            is_c1
        };
        if byte == BEFORE_C1 {
            *before_c1 = true;
        } else if is_c1 || byte.is_ascii_control() && !plain.contains(&byte) {
            made.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            made.push(byte);
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_gets_escapes_and_the_names_of_columns() {
        let text = "a\u{1b}[31m\tb\u{9b}c\u{7f}\r\n\u{a0}\u{e9}\u{2028}".as_bytes();
        let shown = "a\\u001b[31m\tb\\u009bc\\u007f\\u000d\n\u{a0}\u{e9}\u{2028}".as_bytes();
        for piece in [1, 2, text.len()] {
            for (is_terminal, wanted) in [(false, text), (true, shown)] {
                let mut out = Shown { out: Vec::new(), is_terminal, before_c1: false };
                out = out.with_head("a\tb").unwrap();
                let wanted = if is_terminal { [b"a\tb\n", wanted].concat() } else { wanted.to_vec() };
                text.chunks(piece).for_each(|piece| out.write_all(piece).unwrap());
                assert_eq!(out.out, wanted, "{piece}");
            }
        }
    }
}
