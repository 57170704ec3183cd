//! What an index is of: texts, or features that callers bring.

use std::path::Path;

use anyhow::ensure;
use twindex::params::{Shingling, Tokens};
use twindex::sketch::IdfTable;

use crate::text::TextOptions;

/// How the documents of a new index become shingles: as those of its idf table did, as features do, or as the
/// options say.
///
/// # Errors
///
/// Options of how texts are cut with features, which are not cut; a file of stop words that cannot be read.
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

/// Refuses texts where an index, or another file, at `path` is of features, and the other way round.
pub fn check(path: &Path, made: &Shingling, features: bool) -> anyhow::Result<()> {
    let kept = made.tokens == Tokens::Features;
    ensure!(
        !kept || features,
        "{}: made of features, and these are texts; --features-field NAME reads features",
        path.display()
    );
    ensure!(
        kept || !features,
        "{}: made of texts, and --features-field reads features; leave it out, or make another of features",
        path.display()
    );
    Ok(())
}
