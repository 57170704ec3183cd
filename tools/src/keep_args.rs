//! `--keep`: which document of a group is kept.

use twindex_corpus::Keep;

/// The order of documents by preference, and the field that determines it, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct KeepArgs {
    pub(crate) keep: Keep,
    pub(crate) field: Option<String>,
}

/// The choices of `--keep` that need no field.
const KEEPS: [(&str, Keep); 4] = [
    ("first", Keep::First),
    ("longest", Keep::Longest),
    ("smallest-key", Keep::SmallestKey),
    ("key-hash", Keep::KeyHash),
];

pub(crate) fn parse_keep(text: &str) -> Result<KeepArgs, String> {
    if let Some(&(_, keep)) = KEEPS.iter().find(|(name, _)| *name == text) {
        return Ok(KeepArgs { keep, field: None });
    }
    for (prefix, keep) in [("max:", Keep::Max), ("min:", Keep::Min)] {
        if let Some(field) = text.strip_prefix(prefix).filter(|field| !field.is_empty()) {
            return Ok(KeepArgs { keep, field: Some(field.to_owned()) });
        }
    }
    Err("expected first, longest, smallest-key, key-hash, max:FIELD or min:FIELD".to_owned())
}
