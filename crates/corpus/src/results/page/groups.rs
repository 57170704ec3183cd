//! The sizes of the groups of near documents in an index.

use std::collections::BTreeMap;

use serde::Serialize;
use twindex::{GroupRule, Resources, Snapshot};

use crate::results::page::chart::{Chart, Scale};
use crate::work::numbers::count;

/// Number of groups of near documents by size ([`Snapshot::groups`]).
#[derive(Clone, Debug, Serialize)]
pub struct GroupSizes {
    groups: u64,
    /// Number of documents in the largest group.
    largest: u32,
    /// Whether groups are based on estimated resemblance.
    is_estimate: bool,
    /// Number of groups of each size.
    sizes: BTreeMap<u32, u64>,
}

impl GroupSizes {
    /// Finds all groups of the index.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::groups`].
    pub fn of(snapshot: &Snapshot, resources: &Resources<'_>) -> twindex::Result<Self> {
        let all = twindex_join::living_groups(snapshot, resources)?;
        let sizes = all.sizes();
        let largest = sizes.last_key_value().map_or(0, |(size, _)| *size);
        Ok(Self { groups: all.count(), largest, is_estimate: all.rule() == GroupRule::Estimated, sizes })
    }

    /// Returns the total number of groups, followed by the number in each class of sizes: 1, 2, 3 to 4, 5 to 8, and so
    /// on.
    #[must_use]
    pub fn classes(&self) -> Vec<(String, u64)> {
        let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
        for (size, groups) in &self.sizes {
            *classes.entry(size.next_power_of_two()).or_default() += groups;
        }
        let name = |max: u32| match max / 2 + 1 {
            min if min >= max => format!("of {max}"),
            min => format!("of {min} to {max}"),
        };
        let of_classes = classes.into_iter().map(|(max, groups)| (name(max), groups));
        let all = if self.is_estimate { "groups, by estimates" } else { "groups" };
        std::iter::once((all.to_owned(), self.groups)).chain(of_classes).collect()
    }

    /// Returns the section of the report about groups.
    pub(crate) fn html(&self) -> String {
        let estimated = if self.is_estimate { ", by estimates of resemblance" } else { "" };
        let mut page = format!(
            "<h2 id=\"groups\">Groups</h2>\n<p>{} groups{estimated}: each has a document that leads it and is near all \
             others of it. The largest has {} documents.</p>\n",
            count(self.groups),
            count(self.largest.into())
        );
        if self.groups > 0 {
            let max = self.sizes.values().copied().max().unwrap_or(1);
            let mut chart = Chart::new(Scale::log_to(self.largest.into()), Scale::log_to(max as f64));
            chart.dots("a", self.sizes.iter().map(|(&size, &groups)| (f64::from(size), groups as f64)));
            page.push_str(&chart.figure(
                "documents of a group",
                "groups",
                "How many groups there are of each size, both in powers of ten; a group of one is a document alone.",
            ));
        }
        page
    }
}
