//! Finds columns of tables by the field names of the command: a name, a path into structs (`meta.url`), a JSON pointer
//! (`/meta/url`), or, for texts and keys, a list of these (`title,text`).

use std::cell::OnceCell;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::LargeBinaryBuilder;
use arrow_schema::{DataType, Fields};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3_arrow::input::AnyArray;
use twindex_corpus::{FieldNumber, FieldPath, FieldSelection};

use crate::arrays::{FieldArrays, descend, has_own_rows, is_arrow, is_missing};
use crate::columns::{Column, in_containers, opened};
use crate::error::{Failure, Result};
use crate::numbers::{field_numbers, numbers_of_arrays};

/// A table: an Arrow table of any library, or an object whose columns are found by name.
pub(crate) struct Table<'py> {
    /// The name of the argument, for errors.
    name: &'static str,
    object: Bound<'py, PyAny>,
    /// The fields and the struct arrays of an Arrow table.
    arrow: Option<(Fields, Vec<ArrayRef>)>,
}

/// A container that is given as an argument. Its columns are looked for when one is first requested.
pub(crate) struct LazyTable<'py> {
    name: &'static str,
    object: Bound<'py, PyAny>,
    table: OnceCell<Table<'py>>,
}

impl<'py> LazyTable<'py> {
    pub(crate) fn new(name: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self { name, object: opened(name, object)?, table: OnceCell::new() })
    }

    /// Returns whether the container has columns with names.
    pub(crate) fn is_table(&self) -> PyResult<bool> {
        in_containers(self.object.py(), "is_table", (&self.object,))?.is_truthy()
    }

    /// Returns the table. For errors, `argument` is the argument that names the column `field`.
    ///
    /// # Errors
    ///
    /// The object is not a table.
    pub(crate) fn get(&self, argument: &str, field: &str) -> Result<&Table<'py>> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let object = in_containers(self.object.py(), "columns", (&self.object,))?;
        let table = Table::of(self.name, object, (argument, field))?;
        Ok(self.table.get_or_init(|| table))
    }

    /// Returns the texts in a field or in a list of fields, or without `field`, in the only column. `argument` names
    /// the field, for errors.
    pub(crate) fn texts(&self, (argument, field): (&str, Option<&str>), is_features: bool) -> Result<Column> {
        match field {
            // All rows of `against` may lack the field, because they may be older than the field.
            Some(field) => self.get(argument, field)?.texts(argument, field, self.name == "against"),
            None if is_features => Column::of_opened(self.name, &self.object),
            None => {
                let only = in_containers(self.object.py(), "text_column", (self.name, &self.object))?;
                Column::of_opened(self.name, &only)
            }
        }
    }

    /// Returns the values of an argument: the column that it names, or the values that it holds.
    pub(crate) fn values(&self, argument: &'static str, given: &Bound<'_, PyAny>) -> Result<Column> {
        let Ok(field) = given.extract::<String>() else { return Column::of(argument, given) };
        if let "host" | "domain" = &*field {
            let why = "is a part of a URL, and texts have none: give a value for each text";
            return Err(Failure::invalid(format!(
                "{argument}: {field} {why}, or field:{field} for a column"
            )));
        }
        let field = field.strip_prefix("field:").unwrap_or(&field);
        self.get(argument, field)?.values(argument, field)
    }
}

/// A field of a table.
enum Found<'py> {
    Arrays(FieldArrays),
    Values(Bound<'py, PyAny>),
}

impl Found<'_> {
    /// Returns the field as a column. `name` is used in errors.
    fn column(self, name: &'static str) -> Result<Column> {
        match self {
            Self::Values(values) => Column::of(name, &values),
            Self::Arrays(arrays) => Column::of_arrays(name, arrays),
        }
    }
}

impl<'py> Table<'py> {
    /// Opens a table. `name` is the argument that holds it; `argument` is the argument that names the column `field`.
    ///
    /// # Errors
    ///
    /// The object is not a table.
    pub(crate) fn of(
        name: &'static str,
        object: Bound<'py, PyAny>,
        (argument, field): (&str, &str),
    ) -> Result<Self> {
        let no_table = |found: &str| {
            let instead = match argument {
                "keep" => "give numbers instead",
                "inside" | "against_inside" => "give a value for each text instead",
                _ => "leave it out",
            };
            Failure::invalid(format!(
                "{argument}: {name} is a {found} and no table, so that there is no column {field}; {instead}"
            ))
        };
        // Columns of these tables are read one by one: a frame may have columns that Arrow cannot hold or import, and
        // importing slices of structs in structs panics in `arrow-data`.
        let is_frame = is_of(&object, "pandas")? || is_of(&object, "polars")?;
        let is_by_column = is_frame || is_of(&object, "pyarrow")? && object.hasattr("column_names")?;
        if is_arrow(&object)? && !is_by_column && !has_own_rows(&object) {
            let chunked = object.extract::<AnyArray>()?.into_chunked_array().map_err(PyErr::from)?;
            let DataType::Struct(fields) = chunked.data_type() else { return Err(no_table("column")) };
            let fields = fields.clone();
            return Ok(Self { name, object, arrow: Some((fields, chunked.into_inner().0)) });
        }
        if object.is_instance_of::<PyList>()
            || object.is_instance_of::<PyTuple>()
            || !object.hasattr("__getitem__")?
        {
            return Err(no_table(&object.get_type().name()?.to_string()));
        }
        Ok(Self { name, object, arrow: None })
    }

    /// Returns the texts in a field or in a list of fields, which are joined by line feeds. A row without any of the
    /// fields has no text; otherwise, a field that the row lacks is empty. If `is_history` is true, no row needs to
    /// have a field of the list.
    pub(crate) fn texts(&self, argument: &str, names: &str, is_history: bool) -> Result<Column> {
        let parts = match self.parts((argument, names), self.name)? {
            (Some(one), _) => return Ok(one),
            (None, parts) => parts,
        };
        let len = parts.first().map_or(0, |(_, column)| column.len());
        let mut texts = LargeBinaryBuilder::new();
        let (mut text, mut has) = (Vec::new(), vec![false; parts.len()]);
        for row in 0..len {
            text.clear();
            let mut is_text = false;
            for (number, (_, column)) in parts.iter().enumerate() {
                let part = column.bytes(row)?;
                has[number] |= part.is_some();
                is_text |= part.is_some();
                FieldSelection::push_text(&mut text, part.unwrap_or_default(), number);
            }
            texts.append_option(is_text.then_some(&text));
        }
        let absent = parts.iter().zip(has).find(|(_, has)| !has).filter(|_| len > 0 && !is_history);
        if let Some(((name, _), _)) = absent {
            return Err(Failure::invalid(format!(
                "{argument}: no column {name} in {}: no row has a value",
                self.name
            )));
        }
        Column::of_arrays(self.name, vec![(Arc::new(texts.finish()), None)])
    }

    /// Returns the keys in a field or in a list of fields.
    pub(crate) fn keys(&self, argument: &'static str, names: &str) -> Result<Column> {
        let parts = match self.parts((argument, names), argument)? {
            (Some(one), _) => return Ok(one),
            (None, parts) => parts,
        };
        let mut keys = LargeBinaryBuilder::new();
        let mut key = Vec::new();
        for row in 0..parts.first().map_or(0, |(_, column)| column.len()) {
            key.clear();
            for (number, (name, column)) in parts.iter().enumerate() {
                let part = column.shown(row)?;
                let part =
                    part.ok_or_else(|| column.refused(row, &format!("expected a key, found no {name}")))?;
                FieldSelection::push_key(&mut key, &part, number);
            }
            keys.append_value(&key);
        }
        Column::of_arrays(argument, vec![(Arc::new(keys.finish()), None)])
    }

    /// Returns the values in a single field.
    pub(crate) fn values(&self, argument: &'static str, name: &str) -> Result<Column> {
        self.find(argument, &FieldPath::of(name))?.column(argument)
    }

    /// Returns the numbers in a single field.
    pub(crate) fn numbers(&self, argument: &'static str, name: &str) -> Result<Vec<FieldNumber>> {
        match self.find(argument, &FieldPath::of(name))? {
            Found::Arrays(arrays) => numbers_of_arrays(argument, &arrays),
            Found::Values(values) => field_numbers(argument, &values),
        }
    }

    /// Returns the column if `names` is a single field, or the name and the column of each field of a list.
    #[allow(clippy::type_complexity, reason = "one caller each")]
    fn parts(
        &self,
        (argument, names): (&str, &str),
        name: &'static str,
    ) -> Result<(Option<Column>, Vec<(String, Column)>)> {
        let selection = FieldSelection::parse(argument, names)?;
        if let Some(whole) = self.exact(&selection.whole) {
            return Ok((Some(whole.column(name)?), Vec::new()));
        }
        let mut parts = Vec::new();
        for part in &selection.parts {
            parts.push((part.name.clone(), self.find(argument, part)?.column(name)?));
        }
        match <[_; 1]>::try_from(parts) {
            Ok([(_, one)]) => Ok((Some(one), Vec::new())),
            Err(parts) => Ok((None, parts)),
        }
    }

    /// Returns the column with exactly this name; `None` if there is none.
    fn exact(&self, name: &str) -> Option<Found<'py>> {
        let Some((fields, chunks)) = &self.arrow else {
            return self.object.get_item(name).and_then(arrow_backed).ok().map(Found::Values);
        };
        let at = fields.iter().position(|field| field.name() == name)?;
        Some(Found::Arrays(chunks.iter().map(|chunk| descend(chunk, &[at])).collect()))
    }

    /// Returns the field with this path, or the column whose name is exactly the path.
    fn find(&self, argument: &str, field: &FieldPath) -> Result<Found<'py>> {
        if let Some(found) = self.exact(&field.name) {
            return Ok(found);
        }
        let missing = |why: &str| {
            let names = self.column_names();
            let there =
                if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) };
            Failure::invalid(format!("{argument}: no column {} in {}{why}{there}", field.name, self.name))
        };
        if let Some((fields, chunks)) = &self.arrow {
            let places = places(fields, &field.path).ok_or_else(|| missing(""))?;
            return Ok(Found::Arrays(chunks.iter().map(|chunk| descend(chunk, &places)).collect()));
        }
        let (first, below) = field.path.split_first().ok_or_else(|| missing(""))?;
        let column = arrow_backed(self.object.get_item(first).map_err(|_| missing(""))?)?;
        if below.is_empty() {
            return Ok(Found::Values(column));
        }
        if is_of(&column, "pyarrow")? {
            let compute = column.py().import("pyarrow.compute")?;
            let inside = compute.call_method1("struct_field", (&column, PyList::new(column.py(), below)?));
            return inside.map(Found::Values).map_err(|_| missing(""));
        }
        if is_of(&column, "polars")? {
            let field =
                |column: Bound<'py, PyAny>, name| column.getattr("struct")?.call_method1("field", (name,));
            let inside = below.iter().try_fold(column, field).map_err(|_| missing(""))?;
            // Polars exports a buffer for a column of the null type, which `arrow-data` refuses.
            let is_null = inside.getattr("dtype")?.to_string() == "Null";
            let inside = if is_null { inside.call_method0("to_list")? } else { inside };
            return Ok(Found::Values(inside));
        }
        if is_arrow(&column)? {
            let chunked = column.extract::<AnyArray>()?.into_chunked_array().map_err(PyErr::from)?;
            let DataType::Struct(fields) = chunked.data_type() else { return Err(missing("")) };
            let places = places(fields, below).ok_or_else(|| missing(""))?;
            return Ok(Found::Arrays(chunked.chunks().iter().map(|chunk| descend(chunk, &places)).collect()));
        }
        let (values, mut has, mut rows) = (PyList::empty(column.py()), false, 0);
        for value in column.try_iter()? {
            let value = member(value?, below)?;
            has |= value.is_some();
            rows += 1;
            values.append(value)?;
        }
        if !has && rows > 0 {
            return Err(missing(": no row has it"));
        }
        Ok(Found::Values(values.into_any()))
    }

    fn column_names(&self) -> Vec<String> {
        if let Some((fields, _)) = &self.arrow {
            return fields.iter().map(|field| field.name().clone()).collect();
        }
        let names = ["column_names", "columns"].iter().find_map(|name| self.object.getattr(*name).ok());
        let names = names.unwrap_or_else(|| self.object.clone());
        let names = names.try_iter().map(|names| names.flatten().map(|name| name.to_string()).collect());
        names.unwrap_or_default()
    }
}

/// Returns whether the class of an object is defined in `package`.
fn is_of(object: &Bound<'_, PyAny>, package: &str) -> PyResult<bool> {
    let module = object.get_type().getattr("__module__")?.to_string();
    Ok(module.split('.').next() == Some(package))
}

/// Returns the Arrow array of a pandas column that is stored as one; any other column is returned unchanged.
fn arrow_backed(column: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if is_of(&column, "pandas")? && column.hasattr("array")? {
        let array = column.getattr("array")?;
        if array.get_type().name()?.to_string().starts_with("Arrow") {
            return array.call_method0("__arrow_array__");
        }
    }
    Ok(column)
}

/// Returns the index of each step of a path among the fields of its struct; `None` if a step is missing.
fn places(fields: &Fields, path: &[String]) -> Option<Vec<usize>> {
    let (mut fields, mut places) = (fields, Vec::new());
    for (depth, name) in path.iter().enumerate() {
        let at = fields.iter().position(|field| field.name() == name)?;
        places.push(at);
        if depth + 1 < path.len() {
            let DataType::Struct(inner) = fields[at].data_type() else { return None };
            fields = inner;
        }
    }
    Some(places)
}

/// Returns the value at a path in dicts; `None` if a step is missing.
fn member<'py>(value: Bound<'py, PyAny>, path: &[String]) -> Result<Option<Bound<'py, PyAny>>> {
    let mut value = value;
    for name in path {
        if is_missing(&value)? {
            return Ok(None);
        }
        let Ok(dict) = value.cast::<PyDict>() else { return Ok(None) };
        let Some(inside) = dict.get_item(name)? else { return Ok(None) };
        value = inside;
    }
    Ok(Some(value))
}
