//! Names and values of parameters, as they are written.

use std::fmt::Write as _;

/// Names and values, in the order in which they are written.
pub type Fields = Vec<(&'static str, String)>;

/// A line for each field.
#[must_use]
pub fn text_of(fields: &[(&'static str, String)]) -> String {
    fields.iter().fold(String::new(), |mut text, (name, value)| {
        writeln!(text, "{name}={value}").expect("writing to a String does not fail");
        text
    })
}
