//! The option of verbs that do a part of their work.

use clap::Args;
use twindex::KeyBuf;
use twindex_corpus::shard::Shard;

/// The option of verbs that do a part of their work.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShardArgs {
    /// Only part I of N, from 1: of the documents, by a hash of their keys; of pairs, by that of the first document.
    /// All parts together are what there is without this option, each line once
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
}

impl ShardArgs {
    /// Returns whether a document with this key is in the selected part.
    pub(crate) fn has(self, key: &KeyBuf) -> bool {
        self.shard.is_none_or(|shard| shard.has(key.as_key()))
    }
}
