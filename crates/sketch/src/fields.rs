//! Represents parameters as lists of names and values, and writes them as text.

use std::fmt::Write as _;

/// The names and values of parameters, in the order of the lines of their text.
pub type Fields = Vec<(&'static str, String)>;

/// Formats each field as a line `name=value`.
#[must_use]
pub fn text_of(fields: &[(&'static str, String)]) -> String {
    fields.iter().fold(String::new(), |mut text, (name, value)| {
        writeln!(text, "{name}={value}").expect("writing to a String does not fail");
        text
    })
}
