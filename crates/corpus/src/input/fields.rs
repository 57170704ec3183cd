//! The fields of a record with the key and the text of a document, and how they are named.
//!
//! A name is first tried as the exact name of a field. Otherwise it may be a path into objects, `meta.url`, or a JSON
//! pointer, `/meta/url` (RFC 6901), or a list of them separated by commas: `shard,row`.

use super::attached::AttachedFields;
use super::fingerprint::FingerprintForm;

/// The names of the fields from which documents are made.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) id: String,
    /// The field of the text, or of the features.
    pub(super) text: String,
    /// The selections, if names are paths, pointers or lists.
    pub(super) named: Option<Box<FieldSelections>>,
    pub(super) ids: Ids,
    /// Whether the text field holds features instead of a text.
    pub(super) features: bool,
    /// The format of fingerprints, if the text field holds a fingerprint instead.
    pub(super) fingerprint: Option<FingerprintForm>,
    /// The fields of other values.
    pub(super) attached: AttachedFields,
    /// Whether folder names have some of these fields, which are then not read from records.
    pub(super) folders_have_attached: bool,
    /// Names that no field may have, as fields of these names are added to the output.
    pub(super) reserved: Vec<String>,
}

/// The source of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// From the key field, which every record must have.
    #[default]
    Field,
    /// From the key field; for a record without one, its file and its number in it, `FILE:ROW`.
    FieldOrLine,
    /// The file and the number of the record in it, `FILE:ROW`, whatever fields the record has.
    Line,
}

/// The parsed names of the key and text fields.
#[derive(Clone, Debug)]
pub(super) struct FieldSelections {
    pub(super) id: Selection,
    pub(super) text: Selection,
}

/// One or more fields whose values are joined.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// The name as given: a field with exactly this name takes precedence.
    pub(super) whole: String,
    pub(super) parts: Vec<FieldPath>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPath {
    pub(super) name: String,
    /// The names of nested fields; only the name itself if it is not a path.
    pub(super) path: Vec<String>,
}

impl Fields {
    /// Refuses a field whose name is reserved.
    pub(super) fn check_name(&self, name: &str) -> Result<(), String> {
        if self.reserved.iter().any(|reserved| reserved == name) {
            return Err(name_conflict(name));
        }
        Ok(())
    }

    /// Creates the names of the key and text fields.
    pub(super) fn new(
        id: &str,
        text: &str,
        ids: Ids,
        features: bool,
        attached: &AttachedFields,
    ) -> Self {
        // Features are a single field, and keys made of line numbers are none.
        let named = [id, text].iter().any(|name| name.contains([',', '.']) || name.starts_with('/'));
        let named = named.then(|| Box::new(FieldSelections { id: Selection::of(id), text: Selection::of(text) }));
        let (id, text) = (id.to_owned(), text.to_owned());
        Self { id, text, named, ids, features, fingerprint: None, attached: attached.clone(), ..Self::default() }
    }
}

/// Returns the message about an existing field with a reserved name.
pub(super) fn name_conflict(name: &str) -> String {
    format!("a field {name:?} is there already, and one of this name is to be added (--annotation-prefix)")
}

impl Fields {
    /// Returns whether documents have values other than key and text, in records or in folder names.
    pub(super) fn has_attached(&self) -> bool {
        self.attached.any() || self.folders_have_attached
    }

    /// Returns these fields with a fingerprint in the text field, which is a single field even if its name has commas.
    pub(super) fn with_fingerprint(mut self, form: Option<FingerprintForm>) -> Self {
        self.fingerprint = form;
        if let (Some(named), true) = (&mut self.named, form.is_some()) {
            named.text.parts = vec![FieldPath::of(&self.text)];
        }
        self
    }
}

impl Selection {
    pub(super) fn of(names: &str) -> Self {
        Self { whole: names.to_owned(), parts: names.split(',').map(FieldPath::of).collect() }
    }
}

impl FieldPath {
    fn of(name: &str) -> Self {
        let path = match name.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect(),
            None => name.split('.').map(str::to_owned).collect(),
        };
        Self { name: name.to_owned(), path }
    }
}

/// Appends a part to a key of several fields: with commas between parts, and a backslash before commas inside a part, so
/// that different parts never give the same key.
pub(super) fn push_key(key: &mut Vec<u8>, part: &[u8], number: usize) {
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

/// Appends a part to a text of several fields, on a new line.
pub(super) fn push_text(text: &mut Vec<u8>, part: &[u8], number: usize) {
    if number > 0 {
        text.push(b'\n');
    }
    text.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_may_be_paths_pointers_and_lists() {
        let parts = |names: &str| -> Vec<Vec<String>> {
            Selection::of(names).parts.into_iter().map(|part| part.path).collect()
        };
        assert_eq!(parts("id"), [["id"]]);
        assert_eq!(parts("meta.url"), [["meta", "url"]]);
        assert_eq!(parts("/meta/a~1b~0c"), [["meta", "a/b~c"]]);
        assert_eq!(parts("shard,meta.row"), [vec!["shard"], vec!["meta", "row"]]);
    }

    #[test]
    fn different_parts_never_make_one_key() {
        let key = |parts: &[&str]| {
            let mut key = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                push_key(&mut key, part.as_bytes(), number);
            }
            String::from_utf8(key).unwrap()
        };
        assert_eq!(key(&["a", "7"]), "a,7");
        assert_eq!(key(&["a,b", "c\\"]), "a\\,b,c\\\\");
        assert_ne!(key(&["a,b", "c"]), key(&["a", "b,c"]));
        assert_ne!(key(&["a\\", "b"]), key(&["a", "\\b"]));
    }
}
