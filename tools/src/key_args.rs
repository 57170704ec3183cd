//! Parses keys given on the command line, for `get` and `delete`.

use std::io::{self, BufRead, Read};
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;
use twindex::key::KEY_BYTES_MAX;
use twindex::params::KeyKind;
use twindex::{KeyBuf, Params};

use twindex_corpus::tsv;

/// Maximum length of a line of keys in bytes: the longest key with each byte written as `\xNN`, and the line ending.
const LINE_BYTES_MAX: u64 = 4 * KEY_BYTES_MAX as u64 + 2;

/// Keys given as arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyArgs {
    /// Keys of documents
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    /// Keys are escaped as `get` prints them: \t, \n, \r, \\, \xNN
    #[arg(long)]
    escaped: bool,
}

impl KeyArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Parses the keys as numbers or as bytes, according to the key type of the index.
    ///
    /// # Errors
    ///
    /// A key is not valid for the index; the error names the key.
    pub(crate) fn keys(&self, index: &Path, params: &Params) -> anyhow::Result<Vec<KeyBuf>> {
        self.keys.iter().map(|key| parse(key.as_bytes(), self.escaped, index, params)).collect()
    }

    /// Passes each key to `each`. If the single argument is `-`, reads keys from standard input, one per line.
    ///
    /// # Errors
    ///
    /// A key is not valid for the index (the error names the key and its line), or standard input cannot be read. Errors
    /// of `each` are returned.
    pub(crate) fn for_each_or_lines(
        &self,
        index: &Path,
        params: &Params,
        mut each: impl FnMut(KeyBuf) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.keys != ["-"] {
            return self.keys(index, params)?.into_iter().try_for_each(each);
        }
        let (mut input, mut line) = (io::stdin().lock(), Vec::new());
        for number in 1_u64.. {
            line.clear();
            let read = input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
            if read.context("cannot read standard input")? == 0 {
                break;
            }
            ensure!(
                line.len() as u64 <= LINE_BYTES_MAX,
                "<stdin>:{number}: more than {LINE_BYTES_MAX} bytes; expected a key a line"
            );
            let key = line.strip_suffix(b"\n").unwrap_or(&line);
            let key = key.strip_suffix(b"\r").unwrap_or(key);
            let key = parse(key, self.escaped, index, params).with_context(|| format!("<stdin>:{number}"))?;
            each(key)?;
        }
        Ok(())
    }
}

impl KeyArgs {
    /// Returns the keys as bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`keys`](Self::keys).
    pub(crate) fn byte_keys(&self, index: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
        let unescaped = |key: &String| {
            if !self.escaped {
                return Ok(key.as_bytes().to_vec());
            }
            let unescaped = tsv::unescape(key.as_bytes());
            let unescaped = unescaped.with_context(|| format!("{}: the key `{key}`", index.display()))?;
            Ok(unescaped.into_owned())
        };
        self.keys.iter().map(unescaped).collect()
    }
}

/// Parses a key according to the key type of the index. `escaped` is whether the key is escaped as in the output of
/// `get`.
///
/// # Errors
///
/// The key is not valid for the index; the error names the key.
pub(crate) fn parse(text: &[u8], escaped: bool, index: &Path, params: &Params) -> anyhow::Result<KeyBuf> {
    let shown = || format!("{}: the key `{}`", index.display(), String::from_utf8_lossy(text).escape_debug());
    if params.key == KeyKind::U64 {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let number: u64 =
            number.with_context(|| format!("{}: this index has keys from 0 to {}", shown(), u64::MAX))?;
        return Ok(KeyBuf::U64(number));
    }
    let bytes = if escaped { tsv::unescape(text).with_context(shown)?.into_owned() } else { text.to_vec() };
    let key = KeyBuf::Bytes(bytes.into());
    key.as_key().check(params.key).with_context(shown)?;
    Ok(key)
}
