//! Keys on the command line, for `get` and `delete`.

use std::path::Path;

use anyhow::Context;
use clap::Args;
use twindex::params::KeyKind;
use twindex::{KeyBuf, Params};

use twindex_corpus::tsv;

/// Keys, as arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyArgs {
    /// Keys of documents
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    /// Keys are written as `keys` prints them: \t, \n, \r, \\, \xNN
    #[arg(long)]
    escaped: bool,
}

impl KeyArgs {
    /// The keys, of the index's kind.
    ///
    /// # Errors
    ///
    /// A key that the index cannot hold, named.
    pub(crate) fn keys(&self, index: &Path, params: &Params) -> anyhow::Result<Vec<KeyBuf>> {
        self.keys.iter().map(|key| parse(key, self.escaped, index, params)).collect()
    }
}

/// The key that a text writes, of the index's kind; `escaped` as `keys` prints it.
///
/// # Errors
///
/// A key that the index cannot hold, named.
pub(crate) fn parse(text: &str, escaped: bool, index: &Path, params: &Params) -> anyhow::Result<KeyBuf> {
    let shown = || format!("{}: the key `{}`", index.display(), text.escape_debug());
    if params.key == KeyKind::U64 {
        let number: u64 = text
            .parse()
            .with_context(|| format!("{}: this index has keys from 0 to {}", shown(), u64::MAX))?;
        return Ok(KeyBuf::U64(number));
    }
    let bytes = if escaped {
        tsv::unescape(text.as_bytes()).with_context(shown)?.into_owned()
    } else {
        text.as_bytes().to_vec()
    };
    let key = KeyBuf::Bytes(bytes.into());
    key.as_key().check(params.key).with_context(shown)?;
    Ok(key)
}
