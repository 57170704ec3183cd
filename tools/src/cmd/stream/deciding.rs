//! Decides whether a document of a stream is a duplicate: with [`Writer::admit`], or, if `--inside` or `--near
//! containment:J` was given, with the library's [`Admitter`].

use std::path::Path;

use anyhow::{Context, bail};
use twindex::{Admitted, Document, Error, Index, Key, KeyBuf, Writer};
use twindex_corpus::sketching::{Sketched, refused};
use twindex_corpus::stream::{self, Admission, AdmitOptions, Admitter, NearDocument, Outcome as Step};

use crate::attached_args::AttachedArgs;

/// What the line of a document reports: the decision, and the documents that explain it.
pub(super) struct Outcome {
    pub(super) fate: StreamDecision,
    /// The nearest other document; `None` if no document is near.
    pub(super) near: Option<NearDocument>,
    /// Earlier documents that this one contains, each with the share that it contains.
    pub(super) contained: Vec<(KeyBuf, f64)>,
}

/// Whether a document is new, a duplicate, already known, or expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamDecision {
    New,
    Duplicate,
    Known,
    Expired,
}

impl From<Admitted> for Outcome {
    fn from(admitted: Admitted) -> Self {
        let (fate, near) = match admitted {
            Admitted::Duplicate(hit) => (StreamDecision::Duplicate, Some(hit)),
            Admitted::Known { near } => (StreamDecision::Known, Some(near)),
            Admitted::Updated => (StreamDecision::Known, None),
            Admitted::Expired => (StreamDecision::Expired, None),
            _ => (StreamDecision::New, None),
        };
        Self { fate, near: near.map(NearDocument::from), contained: Vec::new() }
    }
}

impl From<Admission> for Outcome {
    fn from(admission: Admission) -> Self {
        let Admission { outcome, near, contained } = admission;
        let fate = match outcome {
            Step::New => StreamDecision::New,
            Step::Duplicate => StreamDecision::Duplicate,
            Step::Known => StreamDecision::Known,
        };
        Self { fate, near, contained }
    }
}

/// Decides with an [`Admitter`] if `--inside` or `--near containment:J` was given; otherwise with [`Writer::admit`].
pub(super) struct StreamDecider<'a> {
    attached: &'a AttachedArgs,
    /// `None` if [`Writer::admit`] decides.
    own: Option<Admitter>,
}

/// The criteria from the command line.
#[derive(Clone, Copy)]
pub(super) struct StreamCriteria {
    pub(super) options: AdmitOptions,
    /// Whether the exact resemblance of sets is the only criterion.
    pub(super) counts_sets: bool,
    pub(super) groups: bool,
}

impl<'a> StreamDecider<'a> {
    /// Creates a decider for documents to be added to this index.
    ///
    /// # Errors
    ///
    /// The index does not store the required data, options contradict each other, or the documents of the index do not
    /// fit in the memory budget.
    pub(super) fn of(
        index: &Index,
        path: &Path,
        asked: StreamCriteria,
        attached: &'a AttachedArgs,
    ) -> anyhow::Result<Self> {
        let StreamCriteria { options, counts_sets, groups } = asked;
        if options.containment.is_none() && !options.inside {
            return Ok(Self { attached, own: None });
        }
        let option = if options.containment.is_some() { "--near containment:J" } else { "--inside" };
        let shown = path.display();
        if !counts_sets {
            bail!(
                "{shown}: {option} counts with sets of shingles alone: leave out --verify and --near within:K, give \
                 --near J, and take an index that keeps sets"
            );
        }
        if groups {
            bail!("--groups does not go with {option}: groups are by the resemblance that the index has");
        }
        let own =
            Admitter::new(index, options).map_err(|error| for_memory(index.snapshot().documents(), error));
        let own = own.with_context(|| format!("{shown}: {option}"))?;
        Ok(Self { attached, own: Some(own) })
    }

    /// Returns whether [`Writer::admit`] decides.
    pub(super) fn is_by_writer(&self) -> bool {
        self.own.is_none()
    }

    /// Returns the smallest contained share that makes a document a duplicate; `None` if containment is not measured.
    pub(super) fn containment(&self) -> Option<f64> {
        self.own.as_ref().and_then(Admitter::containment)
    }

    /// Returns the document with its value, stamp and priority.
    pub(super) fn document<'d>(&self, one: &'d Sketched) -> Document<'d> {
        self.attached.document(one)
    }

    /// Compares a document with the index and adds it. Returns `None` if the caller must use [`Writer::admit`] instead.
    pub(super) fn admit(&mut self, writer: &mut Writer, one: &Sketched) -> anyhow::Result<Option<Outcome>> {
        let document = self.document(one);
        let Some(own) = &mut self.own else { return Ok(None) };
        let value = &*one.attached.deciding().inside;
        let admitted = stream::Admitted { key: Key::Bytes(&one.key), document, set: one.sketch.set(), value };
        match own.admit(writer, admitted) {
            Ok(admission) => Ok(Some(admission.into())),
            Err(error) if is_for_memory(&error) => Err(for_memory(own.listed() as u64, error)),
            Err(error) => Err(refused(&one.place, "cannot admit the document", error)),
        }
    }
}

/// Returns whether the error reports an exceeded memory limit.
fn is_for_memory(error: &Error) -> bool {
    matches!(error, Error::Limit { what, .. } if what.starts_with("bytes of memory"))
}

/// Adds advice to the error if the index's `documents` documents do not fit in the memory budget.
fn for_memory(documents: u64, error: Error) -> anyhow::Error {
    if !is_for_memory(&error) {
        return error.into();
    }
    anyhow::Error::new(error).context(format!(
        "--near containment:J: the elements of {documents} documents fill the share of --memory that they have, and an index by \
         all elements is made for a run alone; give more --memory, or take files one at a time with `dedup --near containment:J \
         --against`"
    ))
}
