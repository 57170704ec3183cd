//! Tables of options that have no effect in some runs of a verb, where they are refused.

use crate::options::Usage;

/// Options that have no effect in runs of one kind.
pub(crate) struct Refusal<A> {
    /// Whether the run is of this kind.
    pub(crate) when: fn(&A) -> bool,
    /// Returns the first of these options that was given.
    pub(crate) given: fn(&A) -> Option<String>,
    /// Why it has no effect, after its name.
    pub(crate) why: &'static str,
}

/// Returns an error if an option was given that has no effect in this run.
pub(crate) fn check<A>(table: &[Refusal<A>], args: &A) -> Result<(), Usage> {
    let found = table.iter().filter(|one| (one.when)(args)).find_map(|one| Some((one, (one.given)(args)?)));
    found.map_or(Ok(()), |(one, option)| Err(Usage::new(format!("{option} {}", one.why))))
}

/// Returns the first option of a list that was given.
pub(crate) fn first(options: &[(&str, bool)]) -> Option<String> {
    options.iter().find(|(_, given)| *given).map(|(option, _)| (*option).to_owned())
}
