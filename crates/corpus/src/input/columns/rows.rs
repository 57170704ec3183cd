//! Reads the rows of files that store values column by column: chooses the columns, and encodes each row as a line.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::input::columns::column::{ColumnType, ColumnValues, Value};
use crate::input::columns::file::{Stamp, guarded};
use crate::input::columns::table::{self, Column, Table, TypeTest};
use crate::input::fields::attached::{AttachedFields, HasField, OwnAttached};
use crate::input::fields::deciding::{DecidingNumber, DecidingValues};
use crate::input::fields::fingerprint::{self, FingerprintForm};
use crate::input::fields::keep::Keep;
use crate::input::fields::names::{push_key, push_text};
use crate::input::fields::number::{FieldNumber, FieldValue};
use crate::input::fields::record::{self, Ids};
use crate::input::open::reader;
use crate::input::place::{Place, Problem};

/// Number of bytes in an encoded row for the row number and the key length.
pub(crate) const HEAD_BYTES: usize = 12;
/// Number of bytes in an encoded row for the stamp and the value length.
const ATTACHED_BYTES: usize = 12;
/// Number of bytes in an encoded row for the lengths of the `--inside` value and of the URL, and for how many numbers
/// `--keep` compares.
const DECIDING_BYTES: usize = 9;
/// Number of bytes in an encoded row for a number that `--keep` compares, and for the flag whether it is a time.
const NUMBER_BYTES: usize = 17;

/// Decodes the rows of a file in batches.
pub(crate) trait RowBatches {
    type Column: ColumnValues;
    /// The name of the format for messages.
    const FORMAT: &'static str;

    /// Decodes the next batch. Returns the number of its rows; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// The file is damaged.
    fn next(&mut self) -> Result<Option<usize>, String>;

    /// Returns the columns of the current batch, in the order of [`Chosen::leaves`].
    fn columns(&self) -> &[Self::Column];

    /// Returns about how many bytes of the file come before row `row`.
    fn bytes_before(&self, row: u64) -> u64;
}

/// The rows of one file.
pub(crate) struct Rows<B> {
    path: Arc<Path>,
    pub(crate) batches: B,
    pub(crate) places: ColumnPlaces,
    fields: record::Fields,
    /// Number of rows in the current batch, and how many of them were returned.
    pub(crate) in_batch: usize,
    at: usize,
    /// Total number of rows returned so far.
    taken: u64,
    /// Size of the file in bytes.
    bytes: u64,
    /// The counter of bytes read from all files, for progress.
    consumed: Arc<AtomicU64>,
    /// Number of bytes of this file that were added to `consumed`.
    counted: u64,
    row_bytes_max: usize,
}

/// The columns with the key, the text and other values, as indices in [`RowBatches::columns`].
#[derive(Clone, Debug)]
pub(crate) struct ColumnPlaces {
    /// The columns of the key; empty if keys are created from row numbers.
    key: Vec<usize>,
    /// The columns whose texts are joined, in this order.
    pub(crate) text: Vec<usize>,
    value: Option<usize>,
    stamp: Option<usize>,
    /// The column of each rule that determines the order of documents.
    numbers: Vec<Option<usize>>,
    inside: Option<usize>,
    url: Option<usize>,
}

/// The number of a row, from 1, and the row encoded as a line, or the reason why the row is bad.
pub(crate) type NumberedRow = (u64, Result<Vec<u8>, String>);

impl<B: RowBatches> Rows<B> {
    /// Opens the file at `path`. `begin` finds the requested columns, and returns the batches that decode them, their places,
    /// and what is known of the file. Also returns the stamp of the file, with which kept rows are copied later.
    ///
    /// # Errors
    ///
    /// The file is not of this format, or a requested column is missing or has an unsupported type.
    pub(crate) fn open<C>(
        path: &Path,
        fields: &record::Fields,
        row_bytes_max: usize,
        consumed: &Arc<AtomicU64>,
        begin: impl FnOnce(fs::File, u64) -> Result<(B, ColumnPlaces, C), String>,
    ) -> Result<(Self, C, Stamp), Problem> {
        let file = fs::File::open(path).map_err(|error| reader::cannot(path, "open", &error))?;
        let stamp = Stamp::of(&file).map_err(|error| reader::cannot(path, "read the size", &error))?;
        let (path, bytes): (Arc<Path>, u64) = (Arc::from(path), stamp.bytes);
        let begun = guarded(|| begin(file, bytes));
        let (batches, places, columns) = begun.map_err(|reason| Problem {
            place: Place::file(Arc::clone(&path)),
            reason: format!("cannot read {}: {reason}", B::FORMAT),
        })?;
        let (fields, consumed) = (fields.clone(), Arc::clone(consumed));
        let (in_batch, at, taken, counted) = (0, 0, 0, 0);
        let rows = Self {
            path,
            batches,
            places,
            fields,
            in_batch,
            at,
            taken,
            bytes,
            consumed,
            counted,
            row_bytes_max,
        };
        Ok((rows, columns, stamp))
    }

    /// Returns the name of the file for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        &self.path
    }

    /// Returns the next row and its number, from 1; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read to its end.
    pub(crate) fn next(&mut self) -> Result<Option<NumberedRow>, Problem> {
        loop {
            if self.at < self.in_batch {
                let columns = self.batches.columns();
                let line = line(columns, &self.places, self.at, self.taken, self.row_bytes_max, &self.fields);
                self.at += 1;
                self.taken += 1;
                return Ok(Some((self.taken, line)));
            }
            let done = self.batches.bytes_before(self.taken);
            let more = guarded(|| self.batches.next()).map_err(|reason| Problem {
                place: Place::file(Arc::clone(&self.path)),
                reason: format!("cannot read {} on after {} rows: {reason}", B::FORMAT, self.taken),
            })?;
            let done = if more.is_some() { done } else { self.bytes };
            self.consumed.fetch_add(done.saturating_sub(self.counted), Ordering::Relaxed);
            self.counted = self.counted.max(done);
            let Some(rows) = more else { return Ok(None) };
            (self.in_batch, self.at) = (rows, 0);
        }
    }
}

/// The columns to decode.
pub(crate) struct Chosen {
    /// The leaf columns, each once, in file order.
    pub(crate) leaves: Vec<usize>,
    pub(crate) places: ColumnPlaces,
    /// The leaf columns of the text.
    pub(crate) text: Vec<usize>,
}

/// Finds the columns that `fields` names.
///
/// # Errors
///
/// A requested column is missing or has an unsupported type, or a name is repeated or reserved.
pub(crate) fn choose(columns: &[Column], fields: &record::Fields) -> Result<Chosen, String> {
    table::check_names(columns)?;
    columns.iter().try_for_each(|column| fields.check_name(&column.name))?;
    let numbers = "strings or whole numbers";
    let table = Table(columns);
    let mut key = match fields.ids {
        Ids::Line => Vec::new(),
        Ids::FieldOrLine if !table.has(&fields.id) => Vec::new(),
        Ids::Field | Ids::FieldOrLine => {
            let selection = fields.named.as_deref().map(|named| &named.id);
            let (fits, expected) = (ColumnType::is_key as TypeTest, "strings, numbers, times or UUIDs");
            table.select(&fields.id, selection, fits, expected)?
        }
    };
    let selection = fields.named.as_deref().map(|named| &named.text);
    let (fits, expected) = match fields.fingerprint {
        Some(_) => {
            (ColumnType::is_fingerprint as TypeTest, "strings, whole numbers or bytes of fixed length")
        }
        None => (ColumnType::is_text as TypeTest, "strings"),
    };
    let text = table.select(&fields.text, selection, fits, expected)?;
    let named = |name: Option<&str>, option: &str, expected: &str, fits: TypeTest| {
        name.map(|name| table.named(name, option, fits, expected)).transpose()
    };
    let AttachedFields { value, stamp, deciding } = &fields.attached;
    let value = named(value.as_deref(), "--value-field", numbers, ColumnType::is_text_or_number)?;
    let stamp =
        named(stamp.as_deref(), "--stamp-field", "whole numbers, times or strings", ColumnType::is_stamp)?;
    let values = "strings, whole numbers, times or booleans";
    let number = |rule: &Keep| {
        let (expected, fits) = match rule {
            Keep::Rank(..) => (values, ColumnType::is_value as TypeTest),
            _ => ("numbers, times or strings", ColumnType::is_number as TypeTest),
        };
        named(rule.field(), deciding.number_option(), expected, fits)
    };
    let numbers: Vec<_> = deciding.read().iter().map(number).collect::<Result<_, _>>()?;
    let inside = named(deciding.inside.as_deref(), "--inside", values, ColumnType::is_value)?;
    let url = named(deciding.url.as_deref(), "--url-field", "strings", ColumnType::is_text)?;
    let mut leaves = [&key[..], &text].concat();
    leaves.extend([value, stamp, inside, url].into_iter().chain(numbers.iter().copied()).flatten());
    leaves.sort_unstable();
    leaves.dedup();
    let place = |leaf: usize| leaves.partition_point(|&other| other < leaf);
    for leaf in &mut key {
        *leaf = place(*leaf);
    }
    let places = ColumnPlaces {
        key,
        text: text.iter().map(|&leaf| place(leaf)).collect(),
        value: value.map(place),
        stamp: stamp.map(place),
        numbers: numbers.into_iter().map(|number| number.map(place)).collect(),
        inside: inside.map(place),
        url: url.map(place),
    };
    Ok(Chosen { leaves, places, text })
}

/// Encodes a row as a line: the row number, the length of the key, and the key. If other values are requested, they
/// follow: the stamp, the length of the value, the value, the length of the `--inside` value, that value, the length of
/// the URL, the URL, how many numbers `--keep` compares, and each of them with the flag whether it is a time. The text
/// is last.
fn to_line(row: u64, key: &[u8], attached: Option<&OwnAttached>, text: &[u8]) -> Vec<u8> {
    let value_bytes = attached.map_or(0, |attached| {
        let deciding = &attached.deciding;
        let of_numbers = deciding.numbers.len() * NUMBER_BYTES;
        let of_deciding = DECIDING_BYTES + deciding.inside.len() + deciding.url.len() + of_numbers;
        ATTACHED_BYTES + attached.value.len() + of_deciding
    });
    let mut line = Vec::with_capacity(HEAD_BYTES + key.len() + value_bytes + text.len());
    line.extend_from_slice(&row.to_le_bytes());
    line.extend_from_slice(&(key.len() as u32).to_le_bytes());
    line.extend_from_slice(key);
    if let Some(OwnAttached { value, stamp, deciding, has: _ }) = attached {
        line.extend_from_slice(&stamp.unwrap_or(0).to_le_bytes());
        line.extend_from_slice(&(value.len() as u32).to_le_bytes());
        line.extend_from_slice(value);
        line.extend_from_slice(&(deciding.inside.len() as u32).to_le_bytes());
        line.extend_from_slice(&deciding.inside);
        line.extend_from_slice(&(deciding.url.len() as u32).to_le_bytes());
        line.extend_from_slice(&deciding.url);
        line.push(deciding.numbers.len() as u8); // at most as many as there are rules
        for DecidingNumber { number, is_time } in &deciding.numbers {
            line.extend_from_slice(&number.to_bytes());
            line.push((*is_time).into());
        }
    }
    line.extend_from_slice(text);
    line
}

/// Returns the row number in a line, from 0; `None` if the line is too short.
pub(crate) fn row(line: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*line.first_chunk()?))
}

/// The parts of a line that [`to_line`] encoded.
pub(crate) struct LineParts<'l> {
    /// The key; `None` if it is created from the row number.
    pub(crate) key: Option<&'l [u8]>,
    pub(crate) text: &'l [u8],
    value: &'l [u8],
    stamp: Option<u64>,
    inside: &'l [u8],
    url: &'l [u8],
    /// The encoded numbers that `--keep` compares.
    numbers: &'l [u8],
}

impl LineParts<'_> {
    pub(crate) fn attached(&self) -> OwnAttached {
        let (inside, url) = (self.inside.to_vec(), self.url.to_vec());
        let number = |[bytes @ .., is_time]: &[u8; NUMBER_BYTES]| DecidingNumber {
            number: FieldNumber::from_bytes(*bytes),
            is_time: *is_time != 0,
        };
        let numbers = self.numbers.as_chunks().0.iter().map(number).collect();
        let deciding = DecidingValues { numbers, inside, url };
        // Every row has the named columns, because a file that lacks one is refused when it is opened.
        let has = HasField { value: true, url: true };
        OwnAttached { value: self.value.to_vec(), stamp: self.stamp, deciding, has }
    }
}

/// Splits a line into its parts; `None` if the line is too short. `fields` must be those with which it was encoded.
pub(crate) fn parts<'l>(line: &'l [u8], fields: &record::Fields) -> Option<LineParts<'l>> {
    let key_bytes = u32::from_le_bytes(*line.get(8..)?.first_chunk()?);
    let (key, rest) = line.get(HEAD_BYTES..)?.split_at_checked(key_bytes as usize)?;
    // An empty key means that the key was not read from a column, because such a key is never empty.
    let key = Some(key).filter(|key| !key.is_empty());
    if !fields.has_attached() {
        let none = &[][..];
        return Some(LineParts {
            key,
            text: rest,
            value: none,
            stamp: None,
            inside: none,
            url: none,
            numbers: none,
        });
    }
    let stamp = u64::from_le_bytes(*rest.first_chunk()?);
    let value_bytes = u32::from_le_bytes(*rest.get(8..)?.first_chunk()?);
    let (value, rest) = rest.get(ATTACHED_BYTES..)?.split_at_checked(value_bytes as usize)?;
    let length = |rest: &[u8]| Some(u32::from_le_bytes(*rest.first_chunk()?) as usize);
    let (inside, rest) = rest.get(4..)?.split_at_checked(length(rest)?)?;
    let (url, rest) = rest.get(4..)?.split_at_checked(length(rest)?)?;
    let (&numbers, rest) = rest.split_first()?;
    let (numbers, text) = rest.split_at_checked(usize::from(numbers) * NUMBER_BYTES)?;
    let stamp = fields.attached.stamp.is_some().then_some(stamp);
    Some(LineParts { key, text, value, stamp, inside, url, numbers })
}

/// Encodes a decoded row as a line.
fn line<C: ColumnValues>(
    columns: &[C],
    places: &ColumnPlaces,
    at: usize,
    row: u64,
    bytes_max: usize,
    fields: &record::Fields,
) -> Result<Vec<u8>, String> {
    // A null text is treated as an empty text.
    let part = |place: usize| columns[place].bytes(at).unwrap_or_default();
    let mut joined = Vec::new();
    let text = match &places.text[..] {
        &[place] if fields.fingerprint.is_some() => {
            joined = fingerprint_of(&columns[place], at, fields)?.into_bytes();
            &joined
        }
        &[place] => part(place),
        places => {
            for (number, &place) in places.iter().enumerate() {
                push_text(&mut joined, part(place), number);
            }
            &joined
        }
    };
    // guard: a long text of a column is refused
    if text.len() > bytes_max {
        return Err(format!("a text of more than {bytes_max} bytes"));
    }
    let part = |place: usize| -> Result<Vec<u8>, String> {
        let key = columns[place].key(at);
        key.ok_or_else(|| "its key is null (--id-field FILE:ROW takes the row instead)".to_owned())
    };
    let mut key = Vec::new();
    if let &[place] = &places.key[..] {
        key = part(place)?;
    } else {
        for (number, &place) in places.key.iter().enumerate() {
            push_key(&mut key, &part(place)?, number);
        }
    }
    if !places.key.is_empty() {
        // guard: keys of columns are checked before they are copied
        crate::input::place::check_key(&key)?;
    }
    if !fields.has_attached() {
        return Ok(to_line(row, &key, None, text));
    }
    let value = places.value.and_then(|place| columns[place].number_or_bytes(at));
    let stamp = match places.stamp {
        Some(place) => Some(columns[place].field_value(at).ok_or("its stamp is null")?),
        None => None,
    };
    let number = |(place, rule): (&Option<usize>, &Keep)| {
        let column = &columns[(*place)?];
        if let Keep::Rank(..) = rule {
            let value = column.value_bytes(at)?;
            return Some(FieldValue::Text(String::from_utf8_lossy(&value).into_owned().into()));
        }
        column.field_value(at)
    };
    let deciding = &fields.attached.deciding;
    let numbers: Vec<_> = places.numbers.iter().zip(&deciding.keep).map(number).collect();
    let inside = places.inside.and_then(|place| columns[place].value_bytes(at));
    let url = places.url.and_then(|place| columns[place].number_or_bytes(at));
    let attached = fields.attached.take(value, stamp).and_then(|own| {
        let deciding = deciding.of_text(&numbers, inside.as_deref(), url.as_deref())?;
        Ok(OwnAttached { deciding, ..own })
    });
    Ok(to_line(row, &key, Some(&attached.map_err(|error| error.to_string())?), text))
}

/// Returns the fingerprint in a row as `0x` and its hexadecimal digits; of null or an empty string, an empty string.
fn fingerprint_of(column: &impl ColumnValues, at: usize, fields: &record::Fields) -> Result<String, String> {
    let form = fields.fingerprint.unwrap_or_default();
    let found = match (column.of_type(), column.value(at)) {
        (_, None) => return Ok(String::new()),
        (of_type, Some(Value::Bytes(bytes)))
            if of_type.is_fixed_bytes() || (of_type.is_bytes() && form == FingerprintForm::Bytes) =>
        {
            FingerprintForm::of_bytes(bytes)
        }
        _ => match column.digits(at) {
            Some(digits) => form.parse_number(&digits),
            None => match column.bytes(at) {
                Some(written) if !written.is_empty() => form.parse(&String::from_utf8_lossy(written)),
                _ => return Ok(String::new()),
            },
        },
    };
    found.map(fingerprint::written).map_err(|why| format!("field {:?}: {why}", fields.text))
}
