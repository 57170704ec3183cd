//! The `--shard` option, of verbs that can do a part of their work.

use clap::Args;
use twindex::KeyBuf;
use twindex_corpus::shard::Shard;

/// The `--shard` option, of verbs that can do a part of their work.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShardArgs {
    /// Process only part I of N, from 1: of documents, by a hash of their keys; of pairs, by that of the first document.
    /// The parts together have the same lines as the whole, each line once
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
}

impl ShardArgs {
    /// Returns whether a document with this key is in the selected part.
    pub(crate) fn has(self, key: &KeyBuf) -> bool {
        self.shard.is_none_or(|shard| shard.has(key.as_key()))
    }
}
