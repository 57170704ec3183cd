//! The kind of documents in an index: texts, or features and fingerprints that callers supply.

use std::path::Path;

use anyhow::ensure;
use twindex::Params;
use twindex::params::{KeyKind, Shingling, Tokens};
use twindex::sketch::IdfTable;

use crate::text::TextOptions;

/// Returns how the documents of a new index become shingles: as in its IDF table, as features, or by the options.
///
/// # Errors
///
/// Options for cutting texts together with features, which are not cut; a file of stop words that cannot be read.
pub fn shingling(
    text: &TextOptions,
    features: bool,
    table: Option<&IdfTable>,
) -> anyhow::Result<Shingling> {
    text.check_features(features)?;
    match table {
        Some(table) => Ok(table.shingling().clone()),
        None if features => text.shingling_like(&Shingling::words(1, 0).with_tokens(Tokens::Features)?),
        None => text.shingling(),
    }
}

/// Refuses texts if the index or other file at `path` has features, and features if it has texts.
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

/// Refuses fingerprints if the index at `path` has texts, or stores more than fingerprints. Fingerprints read as raw
/// numbers have numbers as keys.
pub fn check_fingerprints(path: &Path, params: &Params) -> anyhow::Result<()> {
    let path = path.display();
    let of_raw = params.key == KeyKind::U64;
    ensure!(
        of_raw || params.shingling.tokens == Tokens::Features,
        "{path}: made of texts, and --fingerprint-field reads fingerprints; make an index of those with `build \
         --fingerprint-field`"
    );
    let keeps_more = params.minhash.is_some() || params.bottom > 0 || params.modulus > 0 || params.sets;
    ensure!(
        params.simhash.is_some() && !keeps_more,
        "{path}: keeps more than simhash fingerprints, and --fingerprint-field brings nothing else; make an index of \
         those with `build --fingerprint-field`"
    );
    Ok(())
}
