//! Fields that folder names contain, such as `date=2026-01-01/`. Hive, Spark and other systems store tables this way.
//!
//! Each record of a file has the fields of the file's folders. As in Spark, a folder's field takes precedence over a
//! record's field with the same name. In names and values, `%XX` encodes a byte that a path cannot contain, and
//! `__HIVE_DEFAULT_PARTITION__` encodes null.

use std::ffi::OsStr;
use std::path::{Component, Path};
use std::sync::Arc;

use crate::input::fields::attached::{AttachedFields, OwnAttached};
use crate::input::fields::deciding::{DecidingFields, DecidingNumber};
use crate::input::fields::keep::Keep;
use crate::input::fields::names::{FieldPath, Selection, push_key};
use crate::input::fields::number::FieldValue;
use crate::input::fields::record::{FieldSelections, Fields, Ids};
use crate::input::parser::Parser;
use crate::input::place::os_bytes;

/// The value that Hive writes for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The fields in the names of the folders above a file. A value of `None` means null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Partitions(Vec<(String, Option<Vec<u8>>)>);

impl Partitions {
    fn of(path: &Path) -> Self {
        let folders = path.parent().into_iter().flat_map(Path::components);
        let names = folders.filter_map(|folder| match folder {
            Component::Normal(name) => of_folder(name),
            _ => None,
        });
        Self(names.collect())
    }

    /// Returns the value of a field, which may be null; `None` if no folder has the field. If several folders have the
    /// field, returns the value of the innermost folder.
    fn get(&self, name: &str) -> Option<&Option<Vec<u8>>> {
        self.0.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Returns the value of the field whose path an option gives.
    fn find(&self, field: &FieldPath) -> Option<&Option<Vec<u8>>> {
        field.flat_names().find_map(|name| self.get(name))
    }
}

/// Returns the name and value of the field in a folder name; `None` if the folder name is not a field.
fn of_folder(name: &OsStr) -> Option<(String, Option<Vec<u8>>)> {
    let bytes = os_bytes(name);
    let at = memchr::memchr(b'=', &bytes).filter(|&at| at > 0)?;
    let name = String::from_utf8(unescaped(&bytes[..at])).ok()?;
    let value = &bytes[at + 1..];
    Some((name, (value != NULL.as_bytes()).then(|| unescaped(value))))
}

/// Decodes each `%XX` to the byte with this hexadecimal value. Copies other bytes.
pub(crate) fn unescaped(written: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            // Two hexadecimal digits encode a value below 256.
            all.push((16 * high + low) as u8);
            rest = &after[2..];
        } else {
            all.push(first);
            rest = after;
        }
    }
    all
}

/// The requested fields that are in the folder names of a file, and the parser for the fields that are in its records.
#[derive(Clone, Debug)]
pub(crate) struct Partitioned {
    /// The parser for the fields in the records.
    pub(crate) parser: Parser,
    /// The parts of the key in order: the value from a folder name, or `None` for a part that is in the record. The
    /// whole field is `None` if no part of the key is in a folder name.
    key: Option<Vec<Option<Vec<u8>>>>,
    /// The requested fields that are in folder names.
    attached: AttachedFields,
    values: PartitionValues,
}

/// The values of fields in folder names, except parts of the key.
#[derive(Clone, Debug, Default)]
struct PartitionValues {
    value: Option<Vec<u8>>,
    stamp: Option<Vec<u8>>,
    /// The value for each rule that determines the order of documents.
    numbers: Vec<Option<Vec<u8>>>,
    inside: Option<Vec<u8>>,
    url: Option<Vec<u8>>,
}

impl Partitioned {
    /// Separates the requested fields of this file into fields in folder names and fields in records. Returns `None` if
    /// no folder name has a requested field.
    pub(crate) fn of(parser: &Parser, path: &Path) -> Option<Self> {
        let partitions = Partitions::of(path);
        if partitions.0.is_empty() {
            return None;
        }
        let mut parser = parser.clone();
        let key = take_key(&mut parser.fields, &partitions);
        let (attached, values) = take_attached(&mut parser.fields.attached, &partitions);
        parser.fields.folders_have_attached = attached.any();
        (key.is_some() || attached.any()).then_some(Self { parser, key, attached, values })
    }

    /// Returns the key of a record; `own` is the part that the record contains. Returns `None` if no part of the key is
    /// in folder names. Null is an empty part, and an empty key is an error.
    pub(crate) fn key(&self, own: Option<&[u8]>) -> Option<Result<Vec<u8>, String>> {
        let order = self.key.as_ref()?;
        let of_record = order.iter().filter(|part| part.is_none()).count();
        let mut own = match (own, of_record) {
            (None, _) | (_, 0) => Vec::new(),
            (Some(own), 1) => vec![own.to_vec()],
            (Some(own), _) => parts(own),
        }
        .into_iter();
        let mut key = Vec::new();
        for (number, part) in order.iter().enumerate() {
            let part = match part {
                Some(value) => value.clone(),
                None => match own.next() {
                    Some(part) => part,
                    None => return Some(Err("a part of its key is missing".to_owned())),
                },
            };
            if order.len() == 1 {
                key = part;
            } else {
                push_key(&mut key, &part, number);
            }
        }
        Some(
            crate::input::place::check_key(&key)
                .map(|()| key)
                .map_err(|reason| format!("by its folders, {reason}")),
        )
    }

    /// Returns the requested values of a record, except key and text: those in folder names and those in the record,
    /// `own`. Folder names take precedence.
    ///
    /// # Errors
    ///
    /// A folder name has an invalid number or stamp.
    pub(crate) fn attached(&self, own: OwnAttached) -> anyhow::Result<OwnAttached> {
        let PartitionValues { value, stamp, numbers, inside, url } = &self.values;
        let stamp = stamp.as_deref().map(FieldValue::of_bytes);
        let numbers: Vec<_> =
            numbers.iter().map(|value| value.as_deref().map(FieldValue::of_bytes)).collect();
        let taken = self.attached.take(value.clone(), stamp)?;
        let of_folders = &self.attached.deciding;
        let deciding = of_folders.of_text(&numbers, inside.as_deref(), url.as_deref())?;
        let mut all = own;
        if self.attached.value.is_some() {
            (all.value, all.has.value) = (taken.value, true);
        }
        if self.attached.stamp.is_some() {
            all.stamp = taken.stamp;
        }
        all.deciding.numbers.resize(of_folders.read().len(), DecidingNumber::default());
        for ((own, name), number) in
            all.deciding.numbers.iter_mut().zip(of_folders.names()).zip(deciding.numbers)
        {
            if name.is_some() {
                *own = number;
            }
        }
        if of_folders.inside.is_some() {
            all.deciding.inside = deciding.inside;
        }
        if of_folders.url.is_some() {
            (all.deciding.url, all.has.url) = (deciding.url, true);
        }
        Ok(all)
    }
}

/// Splits a key that was joined from several parts.
fn parts(key: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut bytes = key.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, all.last_mut()) {
            (b',', _) => all.push(Vec::new()),
            (b'\\', Some(last)) => last.extend(bytes.next()),
            (byte, Some(last)) => last.push(byte),
            (_, None) => {}
        }
    }
    all
}

/// Removes the parts of the key that are in folder names from the fields that records must have. Returns all parts of
/// the key in order; see [`Partitioned::key`].
fn take_key(fields: &mut Fields, partitions: &Partitions) -> Option<Vec<Option<Vec<u8>>>> {
    // If no option names the key field, the key is read only from records.
    if fields.ids != Ids::Field {
        return None;
    }
    let all = match &fields.named {
        Some(named) if partitions.get(&named.id.whole).is_none() => named.id.parts.clone(),
        _ => vec![FieldPath { name: fields.id.clone(), path: vec![fields.id.clone()] }],
    };
    // Null is an empty part. A key with null as its only part is empty, which is an error.
    let said = |part: &FieldPath| partitions.find(part).map(|value| value.clone().unwrap_or_default());
    let order: Vec<Option<Vec<u8>>> = all.iter().map(said).collect();
    if order.iter().all(Option::is_none) {
        return None;
    }
    let rest: Vec<FieldPath> = all.into_iter().filter(|part| said(part).is_none()).collect();
    if rest.is_empty() {
        fields.ids = Ids::Line;
        return Some(order);
    }
    let names: Vec<&str> = rest.iter().map(|part| part.name.as_str()).collect();
    let whole = names.join(",");
    let text = Selection::of(&fields.text);
    let text = fields.named.take().map_or(text, |named| named.text);
    fields.id.clone_from(&whole);
    fields.named = Some(Box::new(FieldSelections { id: Selection { whole, parts: rest }, text }));
    Some(order)
}

/// Removes the fields other than key and text that are in folder names from the fields to read from records. Returns
/// the removed fields and their values.
fn take_attached(fields: &mut AttachedFields, partitions: &Partitions) -> (AttachedFields, PartitionValues) {
    let take = |field: &mut Option<String>| -> (Option<String>, Option<Vec<u8>>) {
        match field.as_deref().and_then(|name| partitions.find(&FieldPath::of(name))) {
            Some(value) => (field.take(), value.clone()),
            None => (None, None),
        }
    };
    let (own_value, value) = take(&mut fields.value);
    let (own_stamp, stamp) = take(&mut fields.stamp);
    let deciding = &mut fields.deciding;
    let (mut own_keep, mut numbers) = (Vec::new(), Vec::new());
    for rule in &mut deciding.keep {
        let (taken, value) = take(&mut rule.field().map(str::to_owned));
        // A rule whose value is in the other of the two is replaced by one that compares no field.
        own_keep.push(if taken.is_some() { std::mem::replace(rule, Keep::First) } else { Keep::First });
        numbers.push(value);
    }
    let (own_inside, inside) = take(&mut deciding.inside);
    let (own_url, url) = take(&mut deciding.url);
    let deciding = DecidingFields {
        keep: own_keep,
        inside: own_inside,
        url: own_url,
        inside_url: None,
        ..deciding.clone()
    };
    let attached = AttachedFields { value: own_value, stamp: own_stamp, deciding };
    (attached, PartitionValues { value, stamp, numbers, inside, url })
}

/// The result of [`Partitioned::of`] for the file that was used last.
#[derive(Debug, Default)]
pub(crate) struct Cache(Option<(Arc<Path>, Option<Partitioned>)>);

impl Cache {
    /// Same as [`Partitioned::of`], but computes the result only if the file differs from the last one.
    pub(crate) fn of(&mut self, parser: &Parser, path: &Arc<Path>) -> Option<&Partitioned> {
        let is_known = matches!(&self.0, Some((known, _)) if Arc::ptr_eq(known, path));
        if !is_known {
            self.0 = Some((Arc::clone(path), Partitioned::of(parser, path)));
        }
        self.0.as_ref().and_then(|(_, partitioned)| partitioned.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::options::InputOptions;

    fn parser(id: &str, number: Option<&str>) -> Parser {
        let mut options =
            InputOptions { id_field: id.to_owned(), ids: Ids::Field, ..InputOptions::default() };
        options.attached.deciding.keep = number.map(|name| Keep::Max(name.to_owned())).into_iter().collect();
        Parser::new(&options)
    }

    #[test]
    fn partition_values_are_decoded_and_null_is_not_a_value() {
        let path = "in/date=2026-01-01/a%2Fb=x%3dy%/c=__HIVE_DEFAULT_PARTITION__/=z/date=2/f=g.jsonl";
        let partitions = Partitions::of(Path::new(path));
        assert_eq!(partitions.get("date"), Some(&Some(b"2".to_vec())));
        assert_eq!(partitions.get("a/b"), Some(&Some(b"x=y%".to_vec())));
        assert_eq!(partitions.get("c"), Some(&None));
        assert_eq!((partitions.get("f"), partitions.get("")), (None, None));
    }

    #[test]
    fn partition_values_are_parts_of_composed_keys() {
        let path = Path::new("in/day=1,5/n=__HIVE_DEFAULT_PARTITION__/x.jsonl");
        for (names, own, key) in [
            ("day,row", Some("7"), Ok("1\\,5,7")),
            ("row,day", Some("a,b"), Ok("a\\,b,1\\,5")),
            ("shard,day,row", Some("a\\,b,7"), Ok("a\\,b,1\\,5,7")),
            ("day", None, Ok("1,5")),
            ("n", None, Err("by its folders, the key is empty")),
            ("n,row", Some("7"), Ok(",7")),
        ] {
            let partitioned = Partitioned::of(&parser(names, None), path).unwrap();
            let found = partitioned.key(own.map(str::as_bytes)).unwrap();
            let found = found.map(|key| String::from_utf8(key).unwrap());
            assert_eq!(found, key.map(str::to_owned).map_err(str::to_owned), "{names}");
        }
        assert!(Partitioned::of(&parser("row", None), path).is_none());
    }

    #[test]
    fn partition_numbers_are_priorities_and_invalid_ones_are_errors() {
        let of = |path: &str| {
            let partitioned = Partitioned::of(&parser("row", Some("v")), Path::new(path)).unwrap();
            assert!(!partitioned.parser.fields.attached.deciding.reads_numbers());
            assert!(partitioned.key(Some(b"7")).is_none());
            let own = partitioned.attached(OwnAttached::default()).map_err(|error| error.to_string())?;
            Ok::<_, String>(own.deciding.numbers[0].number.to_string())
        };
        assert_eq!(of("v=12/x.csv"), Ok("12".to_owned()));
        assert_eq!(of("v=2026-01-03/x.csv"), Ok("1767398400".to_owned()));
        assert!(of("v=new/x.csv").unwrap_err().contains("field \"v\": expected a"));
        assert!(of("v=__HIVE_DEFAULT_PARTITION__/x.csv").unwrap_err().contains("no field \"v\""));
    }
}
