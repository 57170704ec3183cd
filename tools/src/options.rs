//! Defines options that several verbs share.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::{Args, ValueEnum};
use twindex::sys::{Access, MemoryBudget};
use twindex_corpus::input::InputOptions;
use twindex_corpus::settings::{Fingerprints, Near, Reading, Resources, Rule, Scope, Value};
use twindex_corpus::sketching::SketchOptions;
use twindex_corpus::{RepeatedKeys, TextOptions};

use crate::differs::Repeated;
use crate::settings_args::{Options, Pick, pick};

/// An error in the options that the command-line parser cannot detect. The exit code is 2, as for errors of the parser.
pub(crate) use twindex_corpus::InvalidOptions as Usage;

/// How a resemblance is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyChoice {
    /// By exact counts of shingles in the texts
    Exact,
    /// By the signatures in the index; an estimate
    Signature,
}

impl VerifyChoice {
    /// Returns the value of `--verify`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Signature => "signature",
        }
    }
}

/// Options for what a verb prints.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Print JSON instead of text
    ///
    /// One object per line for each result, if there are results, and a last one with statistics.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress, summary or notes
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Options for the resources a verb may use.
pub(crate) type ResourceArgs = Options<Resources>;

impl ResourceArgs {
    /// Sets the number of threads of the whole process. Only the first call has an effect, so verbs that run as steps of
    /// another verb keep its setting.
    pub(crate) fn apply_threads(&self) -> anyhow::Result<()> {
        use_threads(self.threads)
    }
}

/// Sets the number of threads of the whole process; uses all cores if `threads` is `None`.
pub(crate) fn use_threads(threads: Option<u16>) -> anyhow::Result<()> {
    static IS_APPLIED: AtomicBool = AtomicBool::new(false);
    if IS_APPLIED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0).into())
        .use_current_thread() // the current thread is one of the threads
        .build_global()
        .context("cannot start threads")
}

/// Options of verbs that query an index.
#[derive(Args, Clone, Debug)]
pub(crate) struct AccessArgs {
    /// How the index is read: map, through memory maps; read, one page at a time, which is slower, but a failing disk or
    /// network gives an error instead of ending the process; load, which first reads the whole index into memory, for
    /// many queries of a large index; or plain-map, through memory maps without hints to the system, for comparison
    #[arg(long, value_enum, value_name = "HOW", default_value = "map")]
    access: AccessArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccessArg {
    Map,
    Read,
    Load,
    PlainMap,
}

impl AccessArgs {
    pub(crate) fn access(&self) -> Access {
        match self.access {
            AccessArg::Map => Access::Map,
            AccessArg::Read => Access::Read,
            AccessArg::Load => Access::Load,
            AccessArg::PlainMap => Access::PlainMap,
        }
    }
}

/// Parses the text form of a value.
pub(crate) fn parse_value<T: Value>(text: &str) -> Result<T, String> {
    T::parse(text.as_ref())
}

/// Options of verbs that read documents.
pub(crate) type InputArgs = Options<Reading>;

impl<P: Pick> Options<Reading, P> {
    /// Returns whether records are read as features, not as texts.
    pub(crate) fn reads_features(&self) -> bool {
        self.features_field.is_some()
    }

    pub(crate) fn options(&self) -> Result<InputOptions, Usage> {
        self.settings.options(&Fingerprints::default())
    }

    /// Returns the options of the readers, which may read fingerprints.
    pub(crate) fn options_with(&self, fingerprints: &FingerprintArgs) -> Result<InputOptions, Usage> {
        self.settings.options(fingerprints)
    }
}

/// Options of verbs that compare by distance: fingerprints that are read from records.
pub(crate) type FingerprintArgs = Options<Fingerprints>;

impl FingerprintArgs {
    /// Returns whether records are read as fingerprints, not as texts.
    pub(crate) fn are_read(&self) -> bool {
        self.fingerprint_field.is_some()
    }
}

/// Options for splitting texts into shingles. For a new index, a missing option has the default value in the help. For
/// an existing index, it has the value of the index.
pub(crate) type TextArgs = Options<TextOptions>;

pick!(KeepAlone: "keep");

/// The `--keep` option, which selects the document to keep.
pub(crate) type KeepArgs = Options<Rule, KeepAlone>;

/// Reads the value of `--near` in verbs with this option.
impl<P: Pick> Options<Rule, P> {
    /// Returns the resemblance of `--near J`.
    pub(crate) fn resemblance(&self) -> Option<f64> {
        match self.near {
            Some(Near::Resemblance(threshold)) => Some(threshold),
            _ => None,
        }
    }

    /// Returns the share of `--near containment:J`.
    pub(crate) fn containment(&self) -> Option<f64> {
        match self.near {
            Some(Near::Containment(share)) => Some(share),
            _ => None,
        }
    }

    /// Returns the distance of `--near within:K`.
    pub(crate) fn within(&self) -> Option<u16> {
        self.near.and_then(Near::within)
    }
}

/// The `--repeated-keys` option of verbs that use every document by default.
pub(crate) type RepeatedArgs = Options<Scope, Repeated>;

impl<P: Pick> Options<Scope, P> {
    /// Returns the options for sketching documents. If the set of seen keys exceeds `memory` bytes, it uses scratch
    /// files.
    pub(crate) fn wanted(&self, memory: usize) -> SketchOptions {
        let budget = self.are_given().then(|| MemoryBudget::new(&std::env::temp_dir(), memory));
        SketchOptions { repeated_keys: self.keys_or(RepeatedKeys::Any), budget, ..SketchOptions::default() }
    }

    /// Returns whether the user gave `--repeated-keys`.
    pub(crate) fn are_given(&self) -> bool {
        self.is_given("repeated_keys")
    }

    /// Returns the treatment of repeated keys: the given value, or `usual`, the default of the verb.
    pub(crate) fn keys_or(&self, usual: RepeatedKeys) -> RepeatedKeys {
        if self.are_given() { self.repeated_keys } else { usual }
    }
}

/// Parses a resemblance, which is above 0 and at most 1.
pub(crate) fn parse_resemblance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err("expected a resemblance above 0 and up to 1, for example 0.8".into()),
    }
}
