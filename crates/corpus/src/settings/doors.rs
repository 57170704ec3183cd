//! The settings that functions of Python and Spark do not accept, or accept only with some values.

use Door::{PythonDedup, PythonIdf, PythonPassages, SparkDedup, SparkPassages};

use crate::error::InvalidOptions;
use crate::settings::declared::{Settings, spelled};
use crate::settings::rule::Rule;

/// A function of Python or Spark that accepts settings as keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `dedup` of Python.
    PythonDedup,
    /// `passages` of Python.
    PythonPassages,
    /// `IdfTable.of` of Python.
    PythonIdf,
    /// `dedup` and `groups` of Spark.
    SparkDedup,
    /// `passages` of Spark.
    SparkPassages,
}

/// A setting that some functions do not accept, or accept only with some values.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// The functions that do not accept the setting.
    pub doors: &'static [Door],
    /// The name of the setting.
    pub setting: &'static str,
    /// The form of the values that are not accepted, such as `within:K`; empty if no value is accepted.
    pub form: &'static str,
    /// The reason for the difference, and what to do instead.
    pub why: &'static str,
}

/// All differences between the settings of the command and those of the functions.
pub const DIFFERS: &[Difference] = &[
    Difference {
        doors: &[PythonDedup],
        setting: "near",
        form: "within:K",
        why: "texts in memory are compared by shingles; Index.pairs(within=K) compares simhashes",
    },
    Difference {
        doors: &[PythonDedup, SparkDedup],
        setting: "simhash_bits",
        form: "",
        why: "the rule compares shingles here; Params(simhash_bits=...) is for simhashes",
    },
    Difference {
        doors: &[SparkDedup],
        setting: "near",
        form: "within:K",
        why: "the rule compares shingles here; `build` and `pairs` with within=K compare simhashes",
    },
    Difference {
        doors: &[SparkDedup],
        setting: "near",
        form: "equal",
        why: "Spark finds equal texts by DataFrame.dropDuplicates",
    },
    Difference {
        doors: &[PythonDedup, SparkDedup],
        setting: "without_boilerplate",
        form: "@FILE",
        why: "a list is for files; give the number of texts that share a span",
    },
    Difference {
        doors: &[PythonDedup, PythonPassages],
        setting: "threads",
        form: "",
        why: "all calls of a process share its threads; call set_threads before the first one",
    },
    Difference {
        doors: &[SparkDedup],
        setting: "threads",
        form: "",
        why: "Spark runs tasks in parallel; set spark.executorEnv.TWINDEX_THREADS for more threads in each",
    },
    Difference {
        doors: &[SparkDedup],
        setting: "memory",
        form: "",
        why: "Spark stores the rows; set spark.executor.memory",
    },
    Difference {
        doors: &[SparkDedup],
        setting: "max_work",
        form: "",
        why: "Spark joins all candidates at once; a job that takes too long can be cancelled",
    },
    Difference {
        doors: &[PythonDedup, PythonPassages],
        setting: "id_field",
        form: "FILE:ROW",
        why: "texts in memory are in no file; name a column of keys",
    },
    Difference {
        doors: &[SparkDedup, SparkPassages],
        setting: "id_field",
        form: "FILE:ROW",
        why: "rows of a DataFrame have no order; name a column of keys",
    },
    Difference {
        doors: &[PythonPassages, SparkPassages],
        setting: "words",
        form: "",
        why: "a passage has no shingles; min_words is its length",
    },
    Difference {
        doors: &[PythonPassages, SparkPassages],
        setting: "shingle_hash",
        form: "",
        why: "a passage has no shingles",
    },
    Difference {
        doors: &[PythonDedup, PythonPassages, PythonIdf, SparkDedup, SparkPassages],
        setting: "text_form",
        form: "",
        why: "texts are compared as they are; take the visible text of HTML first, or use the command",
    },
    Difference {
        doors: &[SparkPassages],
        setting: "stop_words",
        form: "@FILE",
        why: "workers may not have the file; name a language",
    },
];

impl Difference {
    /// Returns whether a value, given as text, begins like the form.
    fn has_form(&self, text: &str) -> bool {
        text.starts_with(self.form.trim_end_matches(|c: char| c.is_ascii_uppercase()))
    }
}

impl Door {
    /// Returns the differences of this function for a setting.
    pub fn differences(self, setting: &str) -> impl Iterator<Item = &'static Difference> + use<'_> {
        let by_alias = Rule::TABLE.iter().find(|one| one.alias == Some(setting));
        let name = by_alias.map_or(setting, |one| one.name);
        DIFFERS.iter().filter(move |one| one.setting == name && one.doors.contains(&self))
    }

    /// Returns an error if this function does not accept this value of a setting.
    ///
    /// # Errors
    ///
    /// The message says why, and what to do instead.
    pub fn check(self, setting: &str, text: &str) -> Result<(), InvalidOptions> {
        match self.differences(setting).find(|one| one.has_form(text)) {
            None => Ok(()),
            Some(Difference { form: "", why, .. }) => {
                Err(InvalidOptions::new(format!("{}: not a setting here: {why}", spelled(setting))))
            }
            Some(Difference { why, .. }) => {
                Err(InvalidOptions::new(format!("{}: {text} is not taken here: {why}", spelled(setting))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::text::TextOptions;
    use crate::settings::{Reading, Resources};

    #[test]
    fn settings_that_a_door_does_not_take_are_refused_with_the_reason() {
        let refused = |door: Door, name, text| door.check(name, text).unwrap_err().to_string();
        assert_eq!(
            refused(PythonDedup, "near", "within:3"),
            "--near: within:3 is not taken here: texts in memory are compared by shingles; Index.pairs(within=K) compares \
             simhashes"
        );
        assert_eq!(
            refused(SparkPassages, "words", "3"),
            "--words: not a setting here: a passage has no shingles; min_words is its length"
        );
        assert!(
            refused(PythonDedup, "threshold", "within:3")
                .starts_with("--threshold: within:3 is not taken here")
        );
        assert!(refused(PythonDedup, "threads", "2").starts_with("--threads: not a setting here: all calls"));
        assert!(refused(PythonDedup, "text_form", "html").ends_with("or use the command"));
        PythonDedup.check("near", "0.9").unwrap();
        PythonDedup.check("near", "equal").unwrap();
        PythonPassages.check("near", "within:3").unwrap();
    }

    #[test]
    fn every_difference_names_a_setting() {
        let names = |of: &mut dyn Iterator<Item = &'static str>| of.collect::<Vec<_>>();
        let mut known = names(&mut Rule::TABLE.iter().map(|setting| setting.name));
        known.extend(names(&mut TextOptions::TABLE.iter().map(|setting| setting.name)));
        known.extend(names(&mut Resources::TABLE.iter().map(|setting| setting.name)));
        known.extend(names(&mut Reading::TABLE.iter().map(|setting| setting.name)));
        for one in DIFFERS {
            assert!(known.contains(&one.setting), "{}", one.setting);
        }
    }
}
