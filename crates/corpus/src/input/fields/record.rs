//! The fields of a record from which a document is read, and how options name these fields.
//!
//! A name is first looked up as the exact name of a field. If the record has no such field, the name may be a path into
//! nested objects, `meta.url`, or a JSON pointer, `/meta/url` (RFC 6901). The key and the text may also be joined from
//! several fields, given as a list separated by commas: `shard,row`.

use std::borrow::Cow;

use crate::input::fields::attached::AttachedFields;
use crate::input::fields::fingerprint::FingerprintForm;
use crate::input::fields::names::{FieldPath, Selection, push_key};

/// The names of the fields from which documents are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) id: String,
    /// The name of the field with the text or the features.
    pub(crate) text: String,
    /// The parsed names of the key and text fields; `None` if both are plain field names.
    pub(crate) named: Option<Box<FieldSelections>>,
    pub(crate) ids: Ids,
    /// Whether the text field contains features instead of a text.
    pub(crate) features: bool,
    /// The format of fingerprints, if the text field contains a fingerprint instead of a text.
    pub(crate) fingerprint: Option<FingerprintForm>,
    /// The fields with the requested values, except key and text.
    pub(crate) attached: AttachedFields,
    /// Whether folder names contain some of the fields in `attached`. These fields are then not read from records.
    pub(crate) folders_have_attached: bool,
    /// Names that no field of a record may have, because output adds fields with these names.
    pub(crate) reserved: Vec<String>,
}

/// The source of document keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// The key field, which every record must have.
    #[default]
    Field,
    /// The key field. The key of a record without this field is its file and its number in the file, `FILE:ROW`.
    FieldOrLine,
    /// The file and the number of the record in the file, `FILE:ROW`. Key fields are ignored.
    Line,
}

/// The parsed names of the key and text fields.
#[derive(Clone, Debug)]
pub(crate) struct FieldSelections {
    pub(crate) id: Selection,
    pub(crate) text: Selection,
}

impl Fields {
    /// Returns an error if a field name is reserved.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), String> {
        if self.reserved.iter().any(|reserved| reserved == name) {
            return Err(name_conflict(name));
        }
        Ok(())
    }

    /// Parses the names of the key and text fields.
    pub(crate) fn new(id: &str, text: &str, ids: Ids, features: bool, attached: &AttachedFields) -> Self {
        let named = [id, text].iter().any(|name| name.contains([',', '.']) || name.starts_with('/'));
        let named =
            named.then(|| Box::new(FieldSelections { id: Selection::of(id), text: Selection::of(text) }));
        let (id, text) = (id.to_owned(), text.to_owned());
        let fields = Self { id, text, named, ids, features, attached: attached.clone(), ..Self::default() };
        if features { fields.with_single_text() } else { fields }
    }
}

/// Returns the error message for a field with a reserved name.
pub(crate) fn name_conflict(name: &str) -> String {
    format!("a field {name:?} is there already, and one of this name is to be added (--annotation-prefix)")
}

impl Fields {
    /// Returns whether values other than key and text are requested. They are in records or in folder names.
    pub(crate) fn has_attached(&self) -> bool {
        self.attached.any() || self.folders_have_attached
    }

    /// Sets the format of fingerprints. If `form` is given, the text field contains a fingerprint.
    pub(crate) fn with_fingerprint(mut self, form: Option<FingerprintForm>) -> Self {
        self.fingerprint = form;
        if form.is_some() { self.with_single_text() } else { self }
    }

    /// Treats the name of the text field as the name of one field, even if it contains commas.
    fn with_single_text(mut self) -> Self {
        if let Some(named) = &mut self.named {
            named.text.parts = vec![FieldPath::of(&self.text)];
        }
        self
    }

    /// Returns whether documents are texts, not features or fingerprints.
    pub(crate) fn has_text(&self) -> bool {
        !self.features && self.fingerprint.is_none()
    }

    pub(crate) fn text_option(&self) -> &'static str {
        match self.fingerprint {
            Some(_) => "--fingerprint-field",
            None if self.features => "--features-field",
            None => "--text-field",
        }
    }

    /// Returns the names of the fields whose values are joined to form the text.
    pub(crate) fn text_names(&self) -> Vec<&str> {
        match &self.named {
            Some(named) => named.text.parts.iter().map(|part| part.name.as_str()).collect(),
            None => vec![&self.text],
        }
    }

    /// Returns the key in a record header. `field` returns the value of the header field with a name.
    ///
    /// # Errors
    ///
    /// A key field is missing; the error is its name.
    pub(crate) fn key_in_header<'h>(
        &self,
        field: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<Cow<'h, [u8]>, String> {
        if let Some(key) = field(&self.id) {
            return Ok(Cow::Borrowed(key));
        }
        let parts = self.named.as_ref().map_or(&[][..], |named| &named.id.parts);
        let of = |part: &FieldPath| part.flat_names().find_map(&field).ok_or_else(|| part.name.clone());
        match parts {
            [] => Err(self.id.clone()),
            [only] => of(only).map(Cow::Borrowed),
            several => {
                let mut key = Vec::new();
                for (number, part) in several.iter().enumerate() {
                    push_key(&mut key, of(part)?, number);
                }
                Ok(Cow::Owned(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::fields::names::check_names;

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
    fn empty_and_too_many_names_are_refused() {
        let check = |names: &str, is_list| {
            check_names("--text-field", names, is_list).map_err(|error| error.to_string())
        };
        for names in ["a", "a,b", "a.b", "/a/b"] {
            assert_eq!(check(names, true), Ok(()), "{names}");
        }
        for names in ["", "a,", ",a", "a,,b", ","] {
            assert!(check(names, true).unwrap_err().starts_with("--text-field \""), "{names}");
        }
        assert_eq!(check("a,", false), Ok(()), "a comma is part of a single name");
        assert!(check("", false).unwrap_err().contains("expected the name of a field"));
        assert!(check(&"a,".repeat(64).replace(",,", ","), true).is_err());
        assert!(check(&vec!["a"; 65].join(","), true).unwrap_err().contains("65 fields"));
    }

    #[test]
    fn key_in_a_header_is_found_by_name_pointer_and_list() {
        let key = |id: &str| {
            let fields = Fields::new(id, "text", Ids::Field, false, &AttachedFields::default());
            let field = |name: &str| match name {
                "a" => Some(&b"1,2"[..]),
                "b" => Some(&b"3"[..]),
                _ => None,
            };
            fields.key_in_header(field).map(|key| String::from_utf8(key.into_owned()).unwrap())
        };
        assert_eq!((key("a"), key("/a")), (Ok("1,2".to_owned()), Ok("1,2".to_owned())));
        assert_eq!(key("a,/b"), Ok("1\\,2,3".to_owned()));
        assert_eq!((key("c"), key("a,c"), key("a.b")), (Err("c".into()), Err("c".into()), Err("a.b".into())));
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
