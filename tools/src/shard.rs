//! The `--shard` option of verbs that can process one of N parts of their input.

use clap::Args;
use twindex::KeyBuf;
use twindex_corpus::shard::Shard;

/// The `--shard` option of verbs that can process one of N parts of their input.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShardArgs {
    /// Process only part I of N, from 1: documents are assigned to parts by a hash of their keys, pairs by the key of their
    /// first document. Together, the outputs of all parts have the same lines as the output of a run without parts
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
}

impl ShardArgs {
    /// Returns whether a document with this key is in the selected part.
    pub(crate) fn has(self, key: &KeyBuf) -> bool {
        self.shard.is_none_or(|shard| shard.has(key.as_key()))
    }
}
