//! Rejects options that have no effect in a run of a verb.

use crate::options::Usage;

/// A rule that rejects options in some runs of a verb.
pub(crate) struct Refusal<A> {
    /// Returns whether the rule applies to this run.
    pub(crate) when: fn(&A) -> bool,
    /// Returns the first given option that the rule rejects.
    pub(crate) given: fn(&A) -> Option<String>,
    /// The end of the error message, after the name of the option.
    pub(crate) why: &'static str,
}

/// Returns an error if a rule of the table rejects a given option.
pub(crate) fn check<A>(table: &[Refusal<A>], args: &A) -> Result<(), Usage> {
    let found = table.iter().filter(|one| (one.when)(args)).find_map(|one| Some((one, (one.given)(args)?)));
    found.map_or(Ok(()), |(one, option)| Err(Usage::new(format!("{option} {}", one.why))))
}

/// Returns the first option of a list that was given.
pub(crate) fn first(options: &[(&str, bool)]) -> Option<String> {
    options.iter().find(|(_, given)| *given).map(|(option, _)| (*option).to_owned())
}
