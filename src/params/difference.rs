//! The differences between the parameters of two indexes, in words.

use super::{FEATURE_BITS_MAX, Params};
use crate::error::Error;

/// Number of differences that [`ParamDifference::first_in_words`] lists.
const SHOWN: usize = 3;

/// A parameter that differs between two indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamDifference {
    /// The name of the parameter, as encoded by [`Params::encode`]; `near` if only the near relation differs.
    pub field: &'static str,
    /// The values in the first and in the second index. If the encoding omits the parameter, this is its default value.
    pub values: [String; 2],
}

impl ParamDifference {
    /// Returns a sentence that describes the difference. `names` are the names of the two indexes.
    #[must_use]
    pub fn in_words(&self, names: [&str; 2]) -> String {
        let [first, second] = names;
        let [mine, theirs] = &self.values;
        let kept = match self.field {
            "sets" => Some("sets are"),
            "suffixes" => Some("suffixes of sets are"),
            "marks" => Some("marks of duplicates are"),
            "codes" => Some("codes are"),
            "priorities" => Some("priorities are"),
            "values" => Some("values are"),
            "simhash" => Some("simhash is"),
            "minhash" => Some("minhash is"),
            _ => None,
        };
        let is_kept = |value: &str| value != "none" && value != "not kept";
        match kept {
            Some(are) if is_kept(mine) != is_kept(theirs) => {
                let not = |value: &str| if is_kept(value) { "" } else { "not " };
                format!("{are} {}kept in {first}, and {}kept in {second}", not(mine), not(theirs))
            }
            _ if self.field == "near" => {
                format!("documents are near by {mine} in {first}, and by {theirs} in {second}")
            }
            _ => format!("{} is {mine} in {first}, and {theirs} in {second}", self.field),
        }
    }

    /// Returns the difference that `error` reports; `None` if `error` is not [`Error::ParamsMismatch`]. `error` must
    /// come from the comparison of `params` with `other`.
    #[must_use]
    pub fn of_error(error: &Error, params: &Params, other: &Params) -> Option<Self> {
        let Error::ParamsMismatch { field, .. } = error else { return None };
        params.differences(other).into_iter().find(|one| one.field == field)
    }

    /// Describes the first three of the differences `all` in words, and states how many others there are. `names` are
    /// the names of the two indexes.
    #[must_use]
    pub fn first_in_words(all: &[Self], names: [&str; 2]) -> String {
        let mut words: Vec<String> = all.iter().take(SHOWN).map(|one| one.in_words(names)).collect();
        match all.len().saturating_sub(SHOWN) {
            0 => {}
            1 => words.push("1 more parameter differs".to_owned()),
            more => words.push(format!("{more} more parameters differ")),
        }
        words.join("; ")
    }
}

impl Params {
    /// Returns the parameters whose values differ between `self` and `other`, in the order of the encoding. If only one
    /// of the indexes stores fingerprints, omits the parameters of fingerprints; likewise for minima.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<ParamDifference> {
        let mut left_out = vec!["threshold", "near-within"];
        if self.simhash.is_some() != other.simhash.is_some() {
            left_out.extend(["idf", "within", "tables", "codec"]);
        }
        if self.minhash.is_some() != other.minhash.is_some() {
            left_out.extend(["bands", "rows", "signature-bits", "feature-bits"]);
            left_out.extend(["minhash-weights", "minhash-idf", "minhash-unit"]);
        }
        if self.codes.is_some() != other.codes.is_some() {
            left_out.extend(["codes-simhash", "codes-idf"]);
        }
        let (mine, theirs) = (self.fields(), other.fields());
        let mut names: Vec<&'static str> = mine.iter().map(|(name, _)| *name).collect();
        for (name, _) in &theirs {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let value = |fields: &[(&'static str, String)], name| {
            let value = fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone());
            value.unwrap_or_else(|| absent(name))
        };
        let mut differences: Vec<ParamDifference> = names
            .into_iter()
            .filter(|name| !left_out.contains(name))
            .map(|field| ParamDifference { field, values: [value(&mine, field), value(&theirs, field)] })
            .filter(|difference| difference.values[0] != difference.values[1])
            .collect();
        let near = [self.near(), other.near()];
        // The near relation often differs only because another parameter does, such as minima. So list it only if it is
        // the only difference.
        if differences.is_empty() && near[0] != near[1] {
            let values = near.map(|near| near.to_string());
            differences.push(ParamDifference { field: "near", values });
        }
        differences
    }
}

/// Returns the text to display for a parameter that the encoding omits.
fn absent(name: &str) -> String {
    match name {
        "feature-bits" => FEATURE_BITS_MAX.to_string(),
        "sets" | "suffixes" | "marks" | "priorities" | "values" => "not kept".to_owned(),
        "minhash-weights" => "distinct".to_owned(),
        _ => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Near, Shingling};

    fn both() -> crate::params::ParamsBuilder {
        Params::builder().words(5).simhash(3).minhash(20, 6)
    }

    fn says(mine: &Params, theirs: &Params) -> String {
        ParamDifference::first_in_words(&mine.differences(theirs), ["A", "B"])
    }

    #[test]
    fn each_parameter_that_differs_is_named_with_both_values() {
        let usual = both().build().unwrap();
        let mut folded = Shingling::words(5, 0);
        folded.folding.invisible = true;
        let mut expiring = usual.clone();
        expiring.expire_after = Some(60);
        let mut with_priorities = usual.clone();
        with_priorities.priorities = true;
        for (other, words) in [
            (both().words(4).build().unwrap(), "width is 5 in A, and 4 in B"),
            (both().sets().build().unwrap(), "sets are not kept in A, and kept in B"),
            (both().values().build().unwrap(), "values are not kept in A, and kept in B"),
            (with_priorities, "priorities are not kept in A, and kept in B"),
            (expiring, "expire-after is none in A, and 60 in B"),
            (both().feature_bits(8).build().unwrap(), "feature-bits is 32 in A, and 8 in B"),
            (both().shingling(folded).build().unwrap(), "fold is none in A, and invisible in B"),
            (
                Params::builder().words(5).simhash(3).build().unwrap(),
                "minhash is kept in A, and not kept in B",
            ),
            (
                Params::builder().words(5).minhash(20, 6).build().unwrap(),
                "simhash is kept in A, and not kept in B",
            ),
            (
                both().near(Near::resembling(0.9).unwrap().or_within(3)).build().unwrap(),
                "documents are near by a resemblance of 0.8 or more in A, and by a resemblance of 0.9 or more, or \
                 fingerprints at most 3 bits apart in B",
            ),
            (
                both().words(4).seed(1).minhash(10, 6).sets().marks().build().unwrap(),
                "width is 5 in A, and 4 in B; seed is 0 in A, and 1 in B; bands is 20 in A, and 10 in B; 2 more parameters \
                 differ",
            ),
        ] {
            assert_eq!(says(&usual, &other), words);
            assert!(!says(&other, &usual).is_empty() && usual != other, "{words}");
        }
        assert_eq!(usual.differences(&usual), []);
    }
}
