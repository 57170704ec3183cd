//! Finds the columns of a file with keys, texts and other values. These may be nested columns.

use std::collections::HashSet;

use crate::input::columns::column::ColumnType;
use crate::input::fields::names::{FieldPath, Selection};

/// A function that returns whether a column type is accepted.
pub(crate) type TypeTest = fn(ColumnType) -> bool;

/// A column of a file, or a group of columns.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) of_type: ColumnType,
    /// The columns in a struct or a list. Those in a list have no names for options.
    pub(crate) inner: Vec<Column>,
    /// The index of the column among the leaf columns of the file, or of the first leaf column in it.
    pub(crate) leaf: usize,
}

/// Returns an error if two columns have the same name, because programs differ in which of the two they read.
pub(crate) fn check_names(columns: &[Column]) -> Result<(), String> {
    let mut names = HashSet::new();
    for Column { name, inner, .. } in columns {
        if !names.insert(name) {
            return Err(format!("two columns have the name {name:?}; rename one of them"));
        }
        check_names(inner)?;
    }
    Ok(())
}

/// The columns of a file, in which columns are found by name.
#[derive(Clone, Copy)]
pub(crate) struct Table<'t>(pub(crate) &'t [Column]);

impl<'t> Table<'t> {
    fn column(self, name: &str) -> Option<&'t Column> {
        self.0.iter().find(|column| column.name == name)
    }

    /// Returns whether a top-level column has this name.
    pub(crate) fn has(self, name: &str) -> bool {
        self.column(name).is_some()
    }

    /// Returns the columns that a name selects, as indices among the leaf columns. The name may be a plain name, a
    /// path, or a list of names and paths.
    ///
    /// # Errors
    ///
    /// A column does not exist, or does not have an accepted type.
    pub(crate) fn select(
        self,
        name: &str,
        selection: Option<&Selection>,
        fits: TypeTest,
        expected: &str,
    ) -> Result<Vec<usize>, String> {
        let plain = FieldPath { name: name.to_owned(), path: vec![name.to_owned()] };
        let parts = match selection {
            Some(selection) if !self.has(name) => &selection.parts[..],
            _ => std::slice::from_ref(&plain),
        };
        parts.iter().map(|part| self.find(part, "--id-field and --text-field", fits, expected)).collect()
    }

    /// Returns the column with this name or path, as an index among the leaf columns.
    ///
    /// # Errors
    ///
    /// The column does not exist, or does not have an accepted type.
    pub(crate) fn named(
        self,
        name: &str,
        options: &str,
        fits: TypeTest,
        expected: &str,
    ) -> Result<usize, String> {
        self.find(&FieldPath::of(name), options, fits, expected)
    }

    fn find(self, part: &FieldPath, options: &str, fits: TypeTest, expected: &str) -> Result<usize, String> {
        let missing = || {
            format!(
                "no column {:?} among {}; see {options}",
                part.name,
                crate::input::place::listed(self.0.iter().map(|column| column.name.as_str()))
            )
        };
        let whole = std::slice::from_ref(&part.name);
        let path = if self.has(&part.name) { whole } else { &part.path[..] };
        let (first, rest) = path.split_first().ok_or_else(missing)?;
        let mut column = self.column(first).ok_or_else(missing)?;
        for name in rest {
            if !column.of_type.is_group() {
                return Err(missing());
            }
            column = Table(&column.inner).column(name).ok_or_else(missing)?;
        }
        if fits(column.of_type) {
            return Ok(column.leaf);
        }
        let of_type = column.of_type;
        Err(format!("the column {:?} holds {of_type}, where {expected} are expected", part.name))
    }
}
