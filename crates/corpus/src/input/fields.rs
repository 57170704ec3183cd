//! The fields of a record from which the key and the text of a document are read, and how they are named.
//!
//! A name is first looked up as the exact name of a field. If there is no such field, the name may be a path into
//! nested objects, `meta.url`, a JSON pointer, `/meta/url` (RFC 6901), or a list of these separated by commas:
//! `shard,row`.

use super::attached::AttachedFields;
use super::fingerprint::FingerprintForm;

/// The names of the fields from which documents are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) id: String,
    /// The field of the text or of the features.
    pub(super) text: String,
    /// The parsed names of the key and text fields; `None` if both are plain field names.
    pub(super) named: Option<Box<FieldSelections>>,
    pub(super) ids: Ids,
    /// Whether the text field contains features instead of a text.
    pub(super) features: bool,
    /// The format of fingerprints, if the text field contains a fingerprint instead of a text.
    pub(super) fingerprint: Option<FingerprintForm>,
    /// The fields of the other values of a document.
    pub(super) attached: AttachedFields,
    /// Whether folder names contain some of the fields in `attached`. These fields are then not read from records.
    pub(super) folders_have_attached: bool,
    /// Names that no field of a record may have, because fields with these names are added to the output.
    pub(super) reserved: Vec<String>,
}

/// The source of document keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// The key field, which every record must have.
    #[default]
    Field,
    /// The key field. The key of a record without one is its file and its number in the file, `FILE:ROW`.
    FieldOrLine,
    /// The file and the number of the record in the file, `FILE:ROW`. Key fields are ignored.
    Line,
}

/// The parsed names of the key and text fields.
#[derive(Clone, Debug)]
pub(super) struct FieldSelections {
    pub(super) id: Selection,
    pub(super) text: Selection,
}

/// A field, or several fields whose values are joined.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// The name as specified by the user. A field with exactly this name takes precedence.
    pub(super) whole: String,
    pub(super) parts: Vec<FieldPath>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPath {
    pub(super) name: String,
    /// The names of the nested fields on the path; a single name if the field is not nested.
    pub(super) path: Vec<String>,
}

impl Fields {
    /// Returns an error if a field name is reserved.
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
        // Features are in a single field. Keys created from line numbers need no field.
        let named = [id, text].iter().any(|name| name.contains([',', '.']) || name.starts_with('/'));
        let named = named.then(|| Box::new(FieldSelections { id: Selection::of(id), text: Selection::of(text) }));
        let (id, text) = (id.to_owned(), text.to_owned());
        Self { id, text, named, ids, features, fingerprint: None, attached: attached.clone(), ..Self::default() }
    }
}

/// Returns the error message for a field with a reserved name.
pub(super) fn name_conflict(name: &str) -> String {
    format!("a field {name:?} is there already, and one of this name is to be added (--annotation-prefix)")
}

impl Fields {
    /// Returns whether documents have other values than key and text, read from records or from folder names.
    pub(super) fn has_attached(&self) -> bool {
        self.attached.any() || self.folders_have_attached
    }

    /// Returns these fields with a fingerprint in the text field. The text field is then a single field, even if its
    /// name contains commas.
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

/// Appends a part to a key that consists of several fields. Parts are separated by commas, and commas inside a part are
/// escaped with a backslash, so that different parts never result in the same key.
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

/// Appends a part on a new line to a text that consists of several fields.
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
    fn different_parts_never_give_the_same_key() {
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
