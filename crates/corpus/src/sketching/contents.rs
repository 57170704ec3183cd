//! Checks what kind of documents an index contains: texts, or features or fingerprints that the caller computed.

use std::path::Path;

use anyhow::ensure;
use twindex::Params;
use twindex::params::{KeyKind, Shingling, Tokens};
use twindex::sketch::IdfTable;

use crate::settings::text::TextOptions;

/// Returns the shingling of a new index. With an IDF table, it is the shingling of the table. Otherwise it is the
/// shingling for features, or the one that the options specify.
///
/// # Errors
///
/// An option for tokenizing is set although documents are features, or a file of stop words cannot be read.
pub fn shingling(text: &TextOptions, features: bool, table: Option<&IdfTable>) -> anyhow::Result<Shingling> {
    text.check_features(features)?;
    match table {
        Some(table) => Ok(table.shingling().clone()),
        None if features => text.shingling_like(&Shingling::words(1, 0).with_tokens(Tokens::Features)?),
        None => text.shingling(),
    }
}

/// Returns an error if the file at `path` was made from texts but the input has features, or the reverse.
pub fn check(path: &Path, made: &Shingling, features: bool) -> anyhow::Result<()> {
    let kept = made.tokens == Tokens::Features;
    ensure!(
        !kept || features,
        "{}: made of features or of fingerprints, and these are texts; --features-field NAME reads features, \
         --fingerprint-field NAME fingerprints",
        path.display()
    );
    ensure!(
        kept || !features,
        "{}: made of texts, and --features-field reads features; leave it out, or make another of features",
        path.display()
    );
    Ok(())
}

/// Returns an error unless the index at `path` stores only fingerprints that the caller computed. An index with numeric
/// keys may be from a raw binary file, so its kind of tokens is not checked.
pub fn check_fingerprints(path: &Path, params: &Params) -> anyhow::Result<()> {
    let path = path.display();
    let of_raw = params.key == KeyKind::U64;
    ensure!(
        of_raw || params.shingling.tokens == Tokens::Features,
        "{path}: made of texts, and --fingerprint-field reads fingerprints; make an index of those with `build \
         --fingerprint-field`"
    );
    if params.codes.is_some() {
        return Ok(());
    }
    let keeps_more = params.minhash.is_some() || params.bottom > 0 || params.modulus > 0 || params.sets;
    ensure!(
        params.simhash.is_some() && !keeps_more,
        "{path}: keeps more than simhash fingerprints, and --fingerprint-field brings nothing else; make an index of \
         those with `build --fingerprint-field`"
    );
    Ok(())
}
