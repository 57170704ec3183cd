//! Finds the columns of a Parquet file with keys, texts and other values. These may be nested columns.

use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::input::fields::names::{FieldPath, Selection};
use crate::input::parquet::decoded::ColumnType;

/// A function that returns whether a column type is accepted.
pub(crate) type TypeTest = fn(ColumnType) -> bool;

/// The columns of a Parquet file, in which columns are found by name.
#[derive(Clone, Copy)]
pub(crate) struct Table<'t>(pub(crate) &'t SchemaDescriptor);

impl<'t> Table<'t> {
    fn columns(self) -> &'t [TypePtr] {
        self.0.root_schema().get_fields()
    }

    fn column(self, name: &str) -> Option<&'t Type> {
        self.columns().iter().find(|column| column.name() == name).map(AsRef::as_ref)
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
                crate::input::place::listed(self.columns().iter().map(|column| column.name()))
            )
        };
        let whole = std::slice::from_ref(&part.name);
        let path = if self.has(&part.name) { whole } else { &part.path[..] };
        let (first, rest) = path.split_first().ok_or_else(missing)?;
        let mut column = self.column(first).ok_or_else(missing)?;
        for name in rest {
            if !ColumnType::of(column).is_group() {
                return Err(missing());
            }
            column = column.get_fields().iter().find(|field| field.name() == name).ok_or_else(missing)?;
        }
        let of_type = ColumnType::of(column);
        let leaf = self.0.columns().iter().position(|leaf| leaf.path().parts() == path);
        leaf.filter(|_| fits(of_type)).ok_or_else(|| {
            format!("the column {:?} holds {of_type}, where {expected} are expected", part.name)
        })
    }
}
