//! Selects how verbs that query an index verify resemblance.

use std::path::Path;

use anyhow::bail;
use clap::ValueEnum;
use serde::Serialize;
use twindex::Params;
use twindex::params::Near;

use crate::options::Usage;

/// How a resemblance is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerifiedBy {
    /// By exact counts of shingles
    Exact,
    /// By the signatures in the index; an estimate
    Signature,
    /// Not at all: documents that share a band are near
    None,
}

/// Returns the method that verifies resemblance: exact counts, unless another method is requested. Returns `None` if
/// nearness does not depend on resemblance.
///
/// # Errors
///
/// The index does not store the required data. The error advises what to do.
pub(crate) fn counted(
    index: &Path,
    params: &Params,
    near: Near,
    asked: Option<VerifiedBy>,
) -> anyhow::Result<Option<VerifiedBy>> {
    let path = index.display();
    let Some(threshold) = near.threshold else {
        if asked.is_some() {
            let why = format!(
                "{path}: --verify is about resemblance, and here {near} are near, exactly; leave it out"
            );
            return Err(Usage::new(why).into());
        }
        return Ok(None);
    };
    let has_signatures = params.minhash.is_some_and(|minhash| minhash.signature_bits > 0);
    match asked {
        Some(VerifiedBy::None) => Ok(asked),
        Some(VerifiedBy::Signature) if has_signatures => Ok(asked),
        Some(VerifiedBy::Signature) => bail!(
            "{path}: this index keeps no signatures, by which a resemblance of {threshold} is estimated; take all that \
             shares a band with --verify none, or make another index"
        ),
        None | Some(VerifiedBy::Exact) => {
            let least = params.near().threshold.filter(|_| params.sets);
            match least {
                None => bail!(
                    "{path}: this index keeps no sets, by which a resemblance of {threshold} is counted; take estimates \
                     with --verify signature, or make another index with --sets kept"
                ),
                Some(least) if threshold < least => bail!(
                    "{path}: this index finds all documents that resemble by {least} or more, and {threshold} is asked \
                     for; take estimates with --verify signature, or make another index with --near {threshold}"
                ),
                Some(_) => Ok(Some(VerifiedBy::Exact)),
            }
        }
    }
}
