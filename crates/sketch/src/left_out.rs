//! Removes text before shingling: spans that many documents share, such as a menu or a licence.

use std::fmt;

use crate::error::Result;

/// How much text was removed from a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of words in the removed spans.
    pub words: u64,
    /// Whether the text has words and every word is in a removed span.
    pub is_all: bool,
}

/// A list of spans to remove from texts, used by [`Sketcher::with_boilerplate`](crate::Sketcher::with_boilerplate).
/// Parameters contain the digest of the list ([`Shingling::boilerplate`](crate::params::Shingling::boilerplate)).
///
/// ```
/// use std::sync::Arc;
/// use twindex_sketch::params::{Shingling, SketchParams};
/// use twindex_sketch::{Error, LeavesOut, LeftOut, Sketcher};
///
/// /// Leaves out a footer.
/// #[derive(Debug)]
/// struct Footer;
/// impl LeavesOut for Footer {
///     fn digest(&self) -> u128 {
///         1
///     }
///     fn leave_out(&self, text: &str, rest: &mut String) -> Result<LeftOut, Error> {
///         rest.clear();
///         rest.push_str(text.strip_suffix("all rights reserved").unwrap_or(text));
///         Ok(LeftOut { words: if rest.len() < text.len() { 3 } else { 0 }, is_all: rest.is_empty() })
///     }
/// }
///
/// let plain = SketchParams::new(Shingling::words(1, 0)).with_minhash(20, 6);
/// let mut params = plain.clone();
/// params.shingling.boilerplate = Some(1);
/// assert!(Sketcher::new(params.clone()).is_err());
/// let sketcher = Sketcher::with_boilerplate(params, Arc::new(Footer))?;
/// let found = sketcher.sketch("a rose all rights reserved")?;
/// assert_eq!(found.features(), Sketcher::new(plain)?.sketch("a rose")?.features());
/// # Ok::<(), twindex_sketch::Error>(())
/// ```
pub trait LeavesOut: fmt::Debug + Send + Sync {
    /// Returns the digest that identifies the list. Lists that remove different spans must have different digests.
    fn digest(&self) -> u128;

    /// Replaces `rest` with the text without the spans of the list. If the text contains no such span, `rest` may be
    /// left unchanged. The result must depend on the text only: every thread must compute the same `rest`.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a text that is longer than the implementation supports.
    fn leave_out(&self, text: &str, rest: &mut String) -> Result<LeftOut>;
}
