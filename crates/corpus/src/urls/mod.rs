//! Learns rules from the URLs of near-duplicate pages: which hosts are aliases of each other, and which parts of a URL can
//! be ignored because they do not change the page.
//!
//! ```text
//! (URL, group of its page) --Learner::add--> candidates --Learner::finish--> Rules <--> a table of rules
//!                                                                              |
//!                                                          URL --normalise-----+--> normal form
//! ```
//!
//! ```
//! use twindex_corpus::urls::{Learner, Options};
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
//! [`Parts`] splits a URL. [`Learner`] takes URLs, each with the group of near-duplicates that its page belongs to, and
//! returns [`Rules`]. A rule is an alias of a host, or a template such as `https://shop.example/S-*/`, where `*`
//! replaces a part that does not change the page. [`Rules::normalise`] applies the rules to a URL.
//!
//! A rule is returned only if it never maps two added pages of different groups to the same normal form. Finding the
//! smallest grammar of a set of URLs is NP-hard (Broder, "Algorithms for duplicate documents"). This module therefore
//! searches only for rules of one form, in time linear in the bytes of the URLs. Literature: Bar-Yossef, Keidar and
//! Schonfeld, "Do not crawl in the DUST" (2007); Dasgupta, Kumar and Sasturkar, "De-duping URLs via rewrite rules"
//! (2008); Koppula et al., "Learning URL patterns for webpage de-duplication" (2010).

pub(crate) mod alias;
pub(crate) mod candidates;
pub(crate) mod hosts;
pub(crate) mod learn;
pub(crate) mod learned;
pub(crate) mod page;
pub(crate) mod parts;
pub(crate) mod rule;
pub(crate) mod rules;
pub(crate) mod tree;
pub(crate) mod value;

pub use alias::Alias;
pub use hosts::{Host, HostCounter, Hosts, Mirror};
pub use learn::{Learner, Options};
pub use learned::{Learned, URLS, URLS_HEAD, count_hosts, learn};
pub use parts::{MAX_BYTES, Parts};
pub use rule::Rule;
pub use rules::{BadRules, COLUMNS, Rules};
pub use value::{Charset, Kind, Shape};
