//! Names of fields: a name, a path into nested fields, or a list of these.

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

impl Selection {
    pub(super) fn of(names: &str) -> Self {
        Self { whole: names.to_owned(), parts: names.split(',').map(FieldPath::of).collect() }
    }
}

impl FieldPath {
    pub(super) fn of(name: &str) -> Self {
        let path = match name.strip_prefix('/') {
            Some(pointer) => {
                pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
            }
            None => name.split('.').map(str::to_owned).collect(),
        };
        Self { name: name.to_owned(), path }
    }

    /// Returns the names that the field can have in a format without nested fields: its exact name, then the name in a
    /// pointer of one step, `/url`.
    pub(super) fn flat_names(&self) -> impl Iterator<Item = &str> {
        let pointed = match &self.path[..] {
            [only] if *only != self.name => Some(only.as_str()),
            _ => None,
        };
        std::iter::once(self.name.as_str()).chain(pointed)
    }
}
