//! `twindex study`: compares scores and found pairs with exact resemblance, and learns which URLs are of one page.

mod args;
mod bands;
mod method;
mod truth;
mod urls;

use std::process::ExitCode;

pub(crate) use args::StudyArgs;

use crate::options::Usage;
use crate::refusals::{self, Refusal};

/// Rules that reject options in studies on which they have no effect.
const REFUSALS: &[Refusal<StudyArgs>] = &[
    Refusal {
        when: |study| study.method.is_none(),
        given: |study| {
            let words = refusals::first(&[("--words", study.words.is_some())]);
            words.or_else(|| study.input.first_given())
        },
        why: "goes with --method",
    },
    Refusal {
        when: |study| study.urls.apply.is_some(),
        given: |study| {
            let given = [("--out or --into", study.stage.is_file()), ("--near", study.rule.near.is_some())];
            refusals::first(&given)
        },
        why: "goes without --apply, which prints URLs on standard output",
    },
    Refusal {
        when: |study| study.truth.truth.is_some(),
        given: |study| refusals::first(&[("--out or --into", study.stage.is_file())]),
        why: "goes without --truth, whose figures are printed",
    },
    Refusal {
        when: |study| !study.urls.urls,
        given: |study| refusals::first(&[("--near within:K", study.rule.within().is_some())]),
        why: "goes with --urls: documents are compared by resemblance",
    },
];

impl StudyArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        refusals::check(REFUSALS, &self)?;
        match (self.method, &self.truth.truth, &self.urls.apply) {
            (Some(method), ..) => self.bands(method),
            (_, Some(truth), _) => self.found(truth, self.one_input()?),
            (_, _, Some(rules)) if self.input.inputs.is_empty() => self.apply_rules(rules),
            (_, _, Some(_)) => {
                Err(Usage::new("--apply reads URLs from standard input; name no INPUT").into())
            }
            _ => self.learn_rules(self.one_input()?),
        }
    }
}
