//! What goes for a document of an index.

use twindex::{KeyBuf, Resemblance};

/// A document that is dropped, and why.
pub(super) struct Dropped {
    pub(super) other: KeyBuf,
    pub(super) near: HowNear,
}

pub(super) enum HowNear {
    Resemblance(Resemblance),
    Distance(u32),
}

impl Dropped {
    /// How near it is, in these columns.
    pub(super) fn columns(&self) -> String {
        match self.near {
            HowNear::Resemblance(resemblance) => {
                format!("{:.6}\t{:.6}", resemblance.value(), resemblance.standard_error())
            }
            HowNear::Distance(distance) => distance.to_string(),
        }
    }
}
