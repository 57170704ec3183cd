//! Parses names of fields: a plain name, a path into nested fields, or a list of names and paths.

use crate::error::InvalidOptions;

/// The fields that an option names: one field, or several fields whose values are joined to one value.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The unparsed name, as the user gave it. If a record has a field with exactly this name, that field is used.
    pub whole: String,
    /// The fields whose values are joined.
    pub parts: Vec<FieldPath>,
}

/// A field, given by its name or its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// The unparsed name, as the user gave it. If a record has a field with exactly this name, that field is used.
    pub name: String,
    /// The names of the nested fields on the path; a single name if the field is not nested.
    pub path: Vec<String>,
}

impl Selection {
    pub(crate) fn of(names: &str) -> Self {
        Self { whole: names.to_owned(), parts: names.split(',').map(FieldPath::of).collect() }
    }

    /// Parses the value of an option that takes a list of fields.
    ///
    /// # Errors
    ///
    /// A name is empty, or the list has too many names. The message names `option`.
    pub fn parse(option: &str, names: &str) -> Result<Self, InvalidOptions> {
        check_names(option, names, true)?;
        Ok(Self::of(names))
    }

    /// Appends the value of field `number`, from 0, to a text. Each value except the first starts a new line.
    pub fn push_text(text: &mut Vec<u8>, part: &[u8], number: usize) {
        push_text(text, part, number);
    }

    /// Appends the value of field `number`, from 0, to a key. Values are separated by commas, and commas in values are
    /// escaped, so that different values never give the same key.
    pub fn push_key(key: &mut Vec<u8>, part: &[u8], number: usize) {
        push_key(key, part, number);
    }
}

impl FieldPath {
    /// Parses a plain name, a path such as `meta.url`, or a JSON pointer such as `/meta/url` (RFC 6901).
    #[must_use]
    pub fn of(name: &str) -> Self {
        let path = match name.strip_prefix('/') {
            Some(pointer) => {
                pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
            }
            None => name.split('.').map(str::to_owned).collect(),
        };
        Self { name: name.to_owned(), path }
    }

    /// Returns the names that the field can have in a format without nested fields: the unparsed name and, if that is a
    /// JSON pointer of one step, such as `/url`, the name in the pointer.
    pub(crate) fn flat_names(&self) -> impl Iterator<Item = &str> {
        let pointed = match &self.path[..] {
            [only] if *only != self.name => Some(only.as_str()),
            _ => None,
        };
        std::iter::once(self.name.as_str()).chain(pointed)
    }
}

/// Maximum number of fields in a list.
const LIST_MAX: usize = 64;

/// Returns an error if `names` is empty, or if it is a list with an empty name or more than [`LIST_MAX`] names.
pub(crate) fn check_names(option: &str, names: &str, is_list: bool) -> Result<(), InvalidOptions> {
    let wrong = |why: String| Err(InvalidOptions::new(format!("{option} {names:?}: {why}")));
    if names.is_empty() {
        return wrong("expected the name of a field, found none".to_owned());
    }
    if !is_list {
        return Ok(());
    }
    let parts = names.split(',').count();
    if parts > 1 && names.split(',').any(str::is_empty) {
        return wrong("a name in the list is empty; remove the comma, or write a name beside it".to_owned());
    }
    if parts > LIST_MAX {
        return wrong(format!("a list of {parts} fields; expected at most {LIST_MAX}"));
    }
    Ok(())
}

/// Appends a part to a key that consists of several fields. Parts are separated by commas, and commas inside a part are
/// escaped with a backslash, so that different parts never result in the same key.
pub(crate) fn push_key(key: &mut Vec<u8>, part: &[u8], number: usize) {
    if number > 0 {
        key.push(b',');
    }
    for &byte in part {
        if byte == b',' || byte == b'\\' {
            key.push(b'\\');
        }
        key.push(byte);
    }
}

/// Appends a part to a text that consists of several fields. Parts are separated by newlines.
pub(crate) fn push_text(text: &mut Vec<u8>, part: &[u8], number: usize) {
    if number > 0 {
        text.push(b'\n');
    }
    text.extend_from_slice(part);
}
