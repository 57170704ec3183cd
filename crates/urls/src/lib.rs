//! URLs of near-duplicate pages: hosts, registrable domains, and rules for the parts of a URL that do not change the
//! page.
//!
//! ```text
//! (URL, group of its page) --Learner::add--> candidates --Learner::finish--> Rules <--> a table of rules
//!                                                                              |
//!                                                          URL --normalise-----+--> normal form
//! ```
//!
//! ```
//! use twindex_urls::{Learner, Options};
//!
//! let mut learner = Learner::new(Options::default());
//! for session in ["fXyiE5bZS43a", "LcNLKgc7bMgq", "0aBcDeFgHi9x"] {
//!     learner.add(&format!("https://shop.example/S-{session}/"), 1); // three addresses of one page
//! }
//! learner.add("https://shop.example/about", 2);
//! let rules = learner.finish();
//! assert_eq!(rules.normalise("https://shop.example/S-Zz91kkQ2mmP0/"), "https://shop.example/S-*/");
//! ```
//!
//! [`Parts`] takes a URL apart. [`domain`] has registrable domains by the public suffix list. [`Learner`] takes URLs
//! with the group of near-duplicates of each page, and returns [`Rules`]: aliases of hosts, and templates such as
//! `https://shop.example/S-*/`, whose `*` is a part that changes between URLs of one page. [`Rules::normalise`] applies
//! them.
//!
//! A rule is given only where it was seen to hold: among all pages that were added, no two pages of different groups
//! get the same normal form. To find the smallest grammar of a set of URLs is NP-hard (Broder, "Algorithms for
//! duplicate documents"); this crate searches only for rules of one form, in time linear in the bytes of the URLs. In
//! the literature: Bar-Yossef, Keidar and Schonfeld, "Do not crawl in the DUST" (2007); Dasgupta, Kumar and Sasturkar,
//! "De-duping URLs via rewrite rules" (2008); Koppula et al., "Learning URL patterns for webpage de-duplication" (2010).

mod alias;
mod candidates;
mod domain;
mod learn;
mod page;
mod parts;
mod rule;
mod rules;
mod table;
mod tree;
mod value;

pub use alias::Alias;
pub use domain::domain;
pub use learn::{Learner, Options};
pub use parts::{MAX_BYTES, Parts};
pub use rule::Rule;
pub use rules::Rules;
pub use table::{BadRules, COLUMNS};
pub use value::{Charset, Kind, Shape};

/// The examples of the README run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
