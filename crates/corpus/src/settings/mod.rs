//! The settings of a job. Each is declared once: name, type, range, default and help.
//!
//! The macro `settings!` declares a struct of settings and its table, [`Settings::TABLE`]. The tables provide the
//! options of the command and their help, `run.json`, the settings that a resumed run compares, the keywords of Python
//! and Spark, the options that a C program sets by name, and the tables of the documentation. Each value has one text
//! form, which all interfaces read and write ([`Value`]).
//!
//! A setting has the name of its field, such as `text_field`. Messages name it by the command's option, `--text-field`.
//! [`in_words_of`] rewrites these names for another interface.

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
pub use rule::{BoilerplateSpans, Keep, KeepOrder, Rule, SimhashBits, Weights};
pub use scope::Scope;
pub use value::{Choice, Kind, Value};
