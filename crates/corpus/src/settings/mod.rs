//! The settings of a job. Each is declared once: name, type, range, default and help.
//!
//! A struct of settings is declared by the macro `settings!`, which also makes its table, [`Settings::TABLE`]. From the
//! tables come the options of the command and their help, `run.json` and what a resumed run compares, the keywords of
//! Python and Spark, the options that a C program sets by name, and the tables of the documentation. A value has one
//! text form, which all of them read and write ([`Value`]).
//!
//! Names are those of the fields, such as `text_field`. Messages write them as the command does, `--text-field`;
//! [`in_words_of`] rewrites a message for another door.

pub(crate) mod declared;
pub(crate) mod doors;
pub(crate) mod job;
pub(crate) mod near;
pub(crate) mod reading;
pub(crate) mod resources;
pub(crate) mod results;
pub(crate) mod rule;
pub(crate) mod scope;
pub(crate) mod stop_lists;
pub mod text;
pub(crate) mod value;

pub use declared::{
    AnySettings, Setting, Settings, Texts, in_words_of, read_json, set, spelled, to_json, unknown,
};
pub use doors::{DIFFERS, Difference, Door};
pub use near::{Near, THRESHOLD, THRESHOLD_MIN};
pub use reading::{Fingerprints, Reading};
pub use resources::{MEMORY, MEMORY_MIN, Resources};
pub use results::{Also, IndexOf, Results};
pub use rule::{BoilerplateSpans, Keep, Rule, Weights};
pub use scope::Scope;
pub use value::{Choice, Kind, Value};
