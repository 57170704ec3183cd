//! `--keep`: which documents come first.

use twindex_corpus::Keep;

/// Which documents come first, and the field that says so.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) keep: Keep,
    pub(crate) field: Option<String>,
}

/// The choices of `--keep` that go by no field.
const KEEPS: [(&str, Keep); 4] = [
    ("first", Keep::First),
    ("longest", Keep::Longest),
    ("smallest-key", Keep::SmallestKey),
    ("key-hash", Keep::KeyHash),
];

pub(crate) fn parse_keep(text: &str) -> Result<Kept, String> {
    if let Some(&(_, keep)) = KEEPS.iter().find(|(name, _)| *name == text) {
        return Ok(Kept { keep, field: None });
    }
    for (prefix, keep) in [("max:", Keep::Max), ("min:", Keep::Min)] {
        if let Some(field) = text.strip_prefix(prefix).filter(|field| !field.is_empty()) {
            return Ok(Kept { keep, field: Some(field.to_owned()) });
        }
    }
    Err("expected first, longest, smallest-key, key-hash, max:FIELD or min:FIELD".to_owned())
}
