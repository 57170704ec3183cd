//! Aliases: two spellings of a scheme, host or path that lead to the same page.

use std::borrow::Cow;

use crate::urls::parts::Parts;

/// A kind of alias: two spellings of a URL at which many hosts serve the same page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alias {
    /// The schemes `http` and `https`.
    Scheme,
    /// The host with and without a leading `www.`.
    Www,
    /// The path of a folder, with and without `index.html` or another usual name of the folder's page.
    Index,
    /// The path with and without a trailing `/`.
    Slash,
}

/// The usual file names of a folder's page.
const INDEXES: [&str; 11] = [
    "default.asp",
    "default.aspx",
    "default.htm",
    "default.html",
    "index.asp",
    "index.aspx",
    "index.htm",
    "index.html",
    "index.jsp",
    "index.php",
    "index.shtml",
];

impl Alias {
    /// All kinds of aliases.
    pub const ALL: [Self; 4] = [Self::Scheme, Self::Www, Self::Index, Self::Slash];

    /// Returns the name of the alias in a table of rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheme => "alias: scheme",
            Self::Www => "alias: www",
            Self::Index => "alias: index page",
            Self::Slash => "alias: slash",
        }
    }

    pub(crate) fn template(self, unit: &str) -> String {
        match self {
            Self::Scheme => format!("http(s)://{unit}/{{...}}"),
            Self::Www => format!("//(www.){unit}/{{...}}"),
            Self::Index => format!("//{unit}/{{...}}/(index.html)"),
            Self::Slash => format!("//{unit}/{{...}}(/)"),
        }
    }

    /// Changes `parts` to the spelling that normal forms use.
    ///
    /// ```
    /// use twindex_corpus::urls::{Alias, Parts};
    ///
    /// let mut parts = Parts::parse("http://www.example.org/a/index.html").unwrap();
    /// for alias in Alias::ALL {
    ///     alias.apply(&mut parts);
    /// }
    /// assert_eq!(parts.to_string(), "https://example.org/a");
    /// ```
    pub fn apply(self, parts: &mut Parts<'_>) {
        match self {
            Self::Scheme if parts.scheme == "http" && parts.port.is_none() => {
                parts.scheme = Cow::Borrowed("https");
            }
            Self::Www => {
                if let Some(host) = parts.host.strip_prefix("www.").filter(|host| host.contains('.')) {
                    parts.host = Cow::Owned(host.to_owned());
                }
            }
            Self::Index => {
                let last = parts.path.rfind('/').map_or(0, |at| at + 1);
                let name = parts.path[last..].to_ascii_lowercase();
                if parts.params.is_empty() && INDEXES.contains(&&*name) {
                    parts.path = &parts.path[..last];
                }
            }
            Self::Slash if parts.path.len() > 1 && parts.params.is_empty() => {
                parts.path = parts.path.strip_suffix('/').unwrap_or(parts.path);
                if parts.path.is_empty() {
                    parts.path = "/";
                }
            }
            Self::Scheme | Self::Slash => {}
        }
    }
}

/// Returns the *unit* of a URL: the host without `www.`, and the port unless it is the default. All aliases of a URL
/// have the same unit.
pub(crate) fn unit(parts: &Parts<'_>) -> String {
    let mut parts = parts.clone();
    Alias::Www.apply(&mut parts);
    parts.authority().into_owned()
}
