//! Which of the fields that options name occur in the records, for the error about a field that no record has.

use anyhow::bail;

use super::fields::Fields;
use super::{HasField, Place, Problem};

/// The named fields that were found in records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldsSeen {
    /// Number of documents in records.
    documents: u64,
    /// Number of documents whose texts are in named fields, which those of web archives are not.
    texts: u64,
    /// Number of documents whose fields other than key and text were read.
    attached: u64,
    /// The text fields that some document has, as bits in the order of their names.
    text: u64,
    /// The optional fields that some document has.
    has: HasField,
    /// The first document that lacks a text field or an optional field: its position and the fields that it has.
    first_lacking: Option<String>,
    /// The first bad record that lacks a field that all documents need.
    first_missing: Option<String>,
    /// The positions of the first document with a number and of the first with a time in the field that decides which
    /// documents are kept.
    first_number: Option<String>,
    first_time: Option<String>,
}

/// The fields of a document other than key and text that were found.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttachedSeen {
    pub(super) has: HasField,
    /// Whether the field that decides which documents are kept has a time; `None` if no field does.
    pub(super) is_time: Option<bool>,
}

impl FieldsSeen {
    /// Adds a document that lacks the text fields with the bits `absent`; `None` if no field has its text. `place`
    /// returns its position, and `here` the fields that it has.
    pub(super) fn add_document(
        &mut self,
        fields: &Fields,
        absent: Option<u64>,
        attached: Option<AttachedSeen>,
        place: impl Fn() -> Place,
        here: impl FnOnce() -> String,
    ) {
        self.documents += 1;
        let mut is_lacking = false;
        if let Some(absent) = absent {
            self.texts += 1;
            self.text |= !absent;
            is_lacking = absent != 0;
        }
        if let Some(AttachedSeen { has, is_time }) = attached {
            self.attached += 1;
            self.has.value |= has.value;
            self.has.url |= has.url;
            is_lacking |= fields.attached.value.is_some() && !has.value;
            is_lacking |= fields.attached.deciding.url.is_some() && !has.url;
            let first = match is_time {
                Some(true) => Some(&mut self.first_time),
                Some(false) => Some(&mut self.first_number),
                None => None,
            };
            if let Some(first) = first {
                first.get_or_insert_with(|| place().to_string());
            }
        }
        if is_lacking && self.first_lacking.is_none() {
            self.first_lacking = Some(format!("{}: {}", place(), here()));
        }
    }

    /// Adds a bad record that lacks a field.
    pub(super) fn add_missing(&mut self, bad: &Problem) {
        self.first_missing.get_or_insert_with(|| bad.to_string());
    }

    /// Adds what was found in records that follow in the input.
    pub(super) fn add(&mut self, more: &Self) {
        self.documents += more.documents;
        self.texts += more.texts;
        self.attached += more.attached;
        self.text |= more.text;
        self.has.value |= more.has.value;
        self.has.url |= more.has.url;
        self.first_lacking = self.first_lacking.take().or_else(|| more.first_lacking.clone());
        self.first_missing = self.first_missing.take().or_else(|| more.first_missing.clone());
        self.first_number = self.first_number.take().or_else(|| more.first_number.clone());
        self.first_time = self.first_time.take().or_else(|| more.first_time.clone());
    }

    /// Returns an error if some documents have a number, and others a time, in the field that decides which documents
    /// are kept.
    pub(super) fn check_types(&self, fields: &Fields) -> anyhow::Result<()> {
        let deciding = &fields.attached.deciding;
        if let (Some(number), Some(time), Some(name)) =
            (&self.first_number, &self.first_time, &deciding.number)
        {
            let option = deciding.number_option();
            bail!(
                "field {name:?} ({option}): a number at {number}, and a time at {time}, which have no order; expected \
                 numbers or times alone"
            );
        }
        Ok(())
    }

    /// Returns an error if a named field occurs in no record. All records must have been read.
    pub(super) fn check_names(&self, fields: &Fields) -> anyhow::Result<()> {
        // Documents of a history may be older than a field.
        if fields.attached.deciding.is_history {
            return Ok(());
        }
        if self.documents == 0 {
            if let Some(missing) = &self.first_missing {
                bail!("no record has the named fields: {missing}");
            }
            return Ok(());
        }
        let mut absent: Vec<(&str, &str)> = Vec::new();
        let is_absent = |number: usize| self.texts > 0 && self.text >> number & 1 == 0;
        let names = fields.text_names().into_iter().enumerate();
        absent.extend(
            names.filter(|(number, _)| is_absent(*number)).map(|(_, name)| (name, fields.text_option())),
        );
        // If only some documents are used, such as those of a shard, the fields of the others are not read.
        if self.attached >= self.documents {
            let url = &fields.attached.deciding.url;
            absent.extend(
                fields
                    .attached
                    .value
                    .as_deref()
                    .filter(|_| !self.has.value)
                    .map(|name| (name, "--value-field")),
            );
            absent.extend(url.as_deref().filter(|_| !self.has.url).map(|name| (name, "--url-field")));
        }
        let Some((name, option)) = absent.first() else { return Ok(()) };
        let also: Vec<String> = absent[1..].iter().map(|(name, _)| format!(", nor {name:?}")).collect();
        let first = self.first_lacking.as_deref().unwrap_or_default();
        bail!("no record has a field {name:?}{} (see {option}); the first is {first}", also.concat())
    }
}
