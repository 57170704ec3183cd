//! The fields of a record that make a document: which are named, and how.
//!
//! A name is first taken as the exact name of a field. Otherwise it may be a path into objects, `meta.url`, or a
//! JSON pointer, `/meta/url` (RFC 6901), and several of them are separated by commas: `shard,row`.

use super::attached::AttachedFields;
use super::fingerprint::FingerprintForm;

/// The names of the fields that make a document out of a record.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) id: String,
    /// The field of the text, or of the features.
    pub(super) text: String,
    /// The selections, if names are paths, pointers or lists.
    pub(super) named: Option<Box<FieldSelections>>,
    pub(super) ids: Ids,
    /// Whether the second field holds features instead of a text.
    pub(super) features: bool,
    /// Whether it holds a fingerprint instead, and how that is written.
    pub(super) fingerprint: Option<FingerprintForm>,
    /// The fields beside its text.
    pub(super) attached: AttachedFields,
    /// Whether folders say some of them, so that no record is looked into for these.
    pub(super) folders_have_attached: bool,
    /// Names that no field may have, as fields of these names are added.
    pub(super) reserved: Vec<String>,
}

/// The source of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// From the field of keys, which every record must have.
    #[default]
    Field,
    /// From the field of keys; of a record without one, its file and its number in it, `FILE:ROW`.
    FieldOrLine,
    /// The file and the number of the record in it, `FILE:ROW`, whatever fields it has.
    Line,
}

/// The names of keys and texts, taken apart.
#[derive(Clone, Debug)]
pub(super) struct FieldSelections {
    pub(super) id: Selection,
    pub(super) text: Selection,
}

/// One or more fields whose values make one.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// As it was given: a field of just this name comes before all else.
    pub(super) whole: String,
    pub(super) parts: Vec<FieldPath>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPath {
    pub(super) name: String,
    /// Names of fields one inside the other; the name alone, if it is no path.
    pub(super) path: Vec<String>,
}

impl Fields {
    /// Refuses a field that is to be added.
    pub(super) fn check_name(&self, name: &str) -> Result<(), String> {
        if self.reserved.iter().any(|reserved| reserved == name) {
            return Err(name_conflict(name));
        }
        Ok(())
    }

    /// Keys and texts by these names.
    pub(super) fn new(
        id: &str,
        text: &str,
        ids: Ids,
        features: bool,
        attached: &AttachedFields,
    ) -> Self {
        // Features are one field, and a record's keys by its line none.
        let named = [id, text].iter().any(|name| name.contains([',', '.']) || name.starts_with('/'));
        let named = named.then(|| Box::new(FieldSelections { id: Selection::of(id), text: Selection::of(text) }));
        let (id, text) = (id.to_owned(), text.to_owned());
        Self { id, text, named, ids, features, fingerprint: None, attached: attached.clone(), ..Self::default() }
    }
}

/// The message about a field that exists already.
pub(super) fn name_conflict(name: &str) -> String {
    format!("a field {name:?} is there already, and one of this name is to be added (--annotation-prefix)")
}

impl Fields {
    /// Whether a document has anything beside its text, wherever it is said.
    pub(super) fn has_attached(&self) -> bool {
        self.attached.any() || self.folders_have_attached
    }

    /// These fields, with a fingerprint in the second. It is one field, even if its name contains commas.
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

/// Appends a part to a key of several fields: a comma between parts, and a backslash before commas inside one, so that
/// different parts never make one key.
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

/// Appends a part of a text of several to it, a line of its own.
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
