//! Groups of near documents and their leaders.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use twindex::{Decision, Key, KeyBuf, LeaderChange, Resources};

use crate::border::{self, Result, Slot, given, key, show_empty, show_key, start_of};
use crate::cancel::{self, Cancel};
use crate::error::{Code, Error};
use crate::snapshot::Snapshot;

/// A number of queries that is enough to decide the group of almost any document.
pub const TWINDEX_GROUP_QUERIES: u64 = 10_000;
const _: () = assert!(TWINDEX_GROUP_QUERIES == twindex::GROUP_QUESTIONS);

/// Documents are near if the exact distance of their fingerprints is small enough.
pub const TWINDEX_GROUPS_BY_DISTANCE: u32 = 0;
/// Documents are near if the exact resemblance of their sets is high enough.
pub const TWINDEX_GROUPS_COUNTED: u32 = 1;
/// Documents are near if the resemblance that their signatures estimate is high enough.
pub const TWINDEX_GROUPS_ESTIMATED: u32 = 2;

/// The group of a document. Must be freed with `twindex_group_free`.
#[derive(Debug)]
pub struct Group {
    leader: KeyBuf,
    size: u64,
    members: Vec<KeyBuf>,
    queries: u64,
}

impl Group {
    pub(crate) fn of_leader(found: twindex::Leader) -> Self {
        Self { leader: found.key, size: 0, members: Vec::new(), queries: found.questions }
    }

    pub(crate) fn of_membership(found: twindex::Membership) -> Self {
        Self { leader: found.leader, size: found.size, members: Vec::new(), queries: found.questions }
    }

    pub(crate) fn of_members(found: twindex::Group) -> Self {
        let size = found.members.len() as u64;
        Self { leader: found.leader, size, members: found.members, queries: found.questions }
    }
}

/// Stores the result of a query about groups: nothing if there is no such document. Returns an error if it is
/// undecided.
pub(crate) fn give<T>(
    slot: Slot<'_, *mut Group>,
    found: Option<Decision<T>>,
    group: impl FnOnce(T) -> Group,
) -> Result<()> {
    match found {
        None => Ok(()),
        Some(Decision::Decided(found)) => {
            slot.give(group(found));
            Ok(())
        }
        Some(Decision::Undecided) => Err(Error::new(
            Code::Undecided,
            "the limit on queries was too low to decide the group of this document: use a higher one",
        )),
    }
}

/// Calls `find` with a snapshot and a key that a C caller passed.
///
/// # Safety
/// `key_bytes` is null, or points to `key_len` bytes that are not written to until the call returns.
unsafe fn query<T>(
    (snapshot, key_bytes, key_len): (Option<&Snapshot>, *const u8, usize),
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    find: impl FnOnce(&twindex::Snapshot, Key<'_>) -> twindex::Result<Option<Decision<T>>>,
    shown: impl FnOnce(T) -> Group,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(group, "group")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller guarantees the same.
        let bytes = unsafe { border::bytes(key_bytes, key_len, "key") }?;
        give(slot, find(snapshot, key(snapshot.params(), bytes)?)?, shown)
    })
}

/// Sets `group` to the leader of a document, without size and members. If there is no such document, sets `group` to
/// null and returns `TWINDEX_CODE_OK`. Returns `TWINDEX_CODE_UNDECIDED` if it takes more than `max_queries` queries for
/// near documents: `TWINDEX_GROUP_QUERIES` suits most uses. The caller must free the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_leader(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    max_queries: u64,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    let find = |snapshot: &twindex::Snapshot, key: Key<'_>| snapshot.leader(key, max_queries);
    // SAFETY: the caller passes `key_len` bytes, or null and 0.
    unsafe { query((snapshot, key_bytes, key_len), group, error, find, Group::of_leader) }
}

/// As `twindex_snapshot_leader`, with the size of the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_membership(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    max_queries: u64,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    let find = |snapshot: &twindex::Snapshot, key: Key<'_>| snapshot.membership(key, max_queries);
    // SAFETY: the caller passes `key_len` bytes, or null and 0.
    unsafe { query((snapshot, key_bytes, key_len), group, error, find, Group::of_membership) }
}

/// As `twindex_snapshot_leader`, with the size and the members of the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_group(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    max_queries: u64,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    let find = |snapshot: &twindex::Snapshot, key: Key<'_>| snapshot.group(key, max_queries);
    // SAFETY: the caller passes `key_len` bytes, or null and 0.
    unsafe { query((snapshot, key_bytes, key_len), group, error, find, Group::of_members) }
}

/// Sets `rule` to how the index decides which stored documents are near: one of `TWINDEX_GROUPS_...`. Returns
/// `TWINDEX_CODE_INVALID` if it cannot.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_group_rule(
    snapshot: Option<&Snapshot>,
    rule: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(rule, 0, "rule")?;
        slot.put(match given(snapshot, "snapshot")?.inner.group_rule()? {
            twindex::GroupRule::Distance => TWINDEX_GROUPS_BY_DISTANCE,
            twindex::GroupRule::Counted => TWINDEX_GROUPS_COUNTED,
            twindex::GroupRule::Estimated => TWINDEX_GROUPS_ESTIMATED,
            other => return Err(Error::new(Code::Other, format!("{other:?} has no number yet"))),
        });
        Ok(())
    })
}

/// Returns the key of the leader, and sets `len` to its length. The key is valid until the group is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_group_leader(
    group: Option<&Group>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match group {
        Some(group) => show_key(&group.leader, len),
        None => show_empty(len),
    }
}

/// Returns the number of documents in the group; 0 if it was not asked for.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_group_size(group: Option<&Group>) -> u64 {
    group.map_or(0, |group| group.size)
}

/// Returns the key of member `at`, counted from 0 in the order of keys, and sets `len` to its length. Returns null if
/// there is no such member, or if members were not asked for. The key is valid until the group is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_group_member(
    group: Option<&Group>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match group.and_then(|group| group.members.get(at)) {
        Some(member) => show_key(member, len),
        None => show_empty(len),
    }
}

/// Returns the number of queries for near documents that decided the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_group_queries(group: Option<&Group>) -> u64 {
    group.map_or(0, |group| group.queries)
}

/// Frees a group. `group` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_group_free(group: Option<Box<Group>>) {
    border::free(group);
}

/// The documents whose leader differs between two snapshots. Must be freed with `twindex_changes_free`.
#[derive(Debug)]
pub struct Changes {
    changes: Vec<LeaderChange>,
}

/// Finds the documents whose leader differs between `since`, an earlier snapshot, and `snapshot`. The caller must free
/// the changes.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_changed_leaders(
    snapshot: Option<&Snapshot>,
    since: Option<&Snapshot>,
    changes: Option<&mut MaybeUninit<*mut Changes>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(changes, "changes")?;
        let (snapshot, since) = (given(snapshot, "snapshot")?, given(since, "since")?);
        slot.give(Changes { changes: snapshot.inner.changed_leaders(&since.inner)? });
        Ok(())
    })
}

/// Returns the number of documents whose leader changed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_changes_len(changes: Option<&Changes>) -> usize {
    changes.map_or(0, |changes| changes.changes.len())
}

fn show_changed(
    changes: Option<&Changes>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
    of: impl FnOnce(&LeaderChange) -> Option<&KeyBuf>,
) -> *const u8 {
    match changes.and_then(|changes| changes.changes.get(at)).and_then(of) {
        Some(key) => show_key(key, len),
        None => show_empty(len),
    }
}

/// Returns the key of document `at`, counted from 0 in the order of keys, and sets `len` to its length. Returns null if
/// there is no such document. The key is valid until the changes are freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_changes_key(
    changes: Option<&Changes>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    show_changed(changes, at, len, |change| Some(&change.key))
}

/// Returns the key of the leader of document `at` before, and sets `len` to its length. Returns null if the document
/// did not exist. The key is valid until the changes are freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_changes_before(
    changes: Option<&Changes>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    show_changed(changes, at, len, |change| change.before.as_ref())
}

/// As `twindex_changes_before`, for the leader after the changes; null if the document no longer exists.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_changes_after(
    changes: Option<&Changes>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    show_changed(changes, at, len, |change| change.after.as_ref())
}

/// Frees changes. `changes` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_changes_free(changes: Option<Box<Changes>>) {
    border::free(changes);
}

/// All groups of a snapshot. Must be freed with `twindex_groups_free`.
#[derive(Debug)]
pub struct Groups {
    inner: twindex::Groups,
    /// Sizes of groups, ascending, each with the number of groups of this size.
    sizes: Vec<(u32, u64)>,
    params: twindex::Params,
}

/// Computes all groups of a snapshot. Data beyond `memory` bytes is stored in scratch files in the directory
/// `scratch_dir`. `threads` may be 0 for all cores. `cancel`, which may be null, ends the work early with
/// `TWINDEX_CODE_CANCELLED`. The caller must free the groups.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_groups(
    snapshot: Option<&Snapshot>,
    scratch_dir: *const c_char,
    memory: usize,
    threads: usize,
    cancel: Option<&Cancel>,
    groups: Option<&mut MaybeUninit<*mut Groups>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(groups, "groups")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes a string, or null.
        let dir = unsafe { border::path(scratch_dir) }?;
        let cancel = cancel::of(cancel);
        let usual = Resources::in_dir(&dir);
        let threads = if threads == 0 { usual.threads } else { threads };
        let inner = snapshot.groups(&Resources { memory, threads, cancel: Some(&cancel), ..usual })?;
        let sizes = inner.sizes().into_iter().collect();
        slot.give(Groups { inner, sizes, params: snapshot.params().clone() });
        Ok(())
    })
}

/// Returns the number of groups, including groups of one document; 0 if `groups` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_groups_count(groups: Option<&Groups>) -> u64 {
    groups.map_or(0, |groups| groups.inner.count())
}

/// Returns the number of queries for near documents that were made.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_groups_queries(groups: Option<&Groups>) -> u64 {
    groups.map_or(0, |groups| groups.inner.questions())
}

/// Sets `size` and `count`, which may be null, to the size of groups `at`, counted from 0 with the smallest first, and
/// the number of groups of this size. Returns false if there is no such size.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_groups_size(
    groups: Option<&Groups>,
    at: usize,
    size: Option<&mut MaybeUninit<u32>>,
    count: Option<&mut MaybeUninit<u64>>,
) -> bool {
    let found = groups.and_then(|groups| groups.sizes.get(at).copied());
    let (of_size, number) = found.unwrap_or_default();
    if let Some(size) = size {
        size.write(of_size);
    }
    if let Some(count) = count {
        count.write(number);
    }
    found.is_some()
}

/// Sets `group` to the leader and the size of the group of a document; to null if there is no such document. The caller
/// must free the group.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_groups_leader(
    groups: Option<&Groups>,
    key_bytes: *const u8,
    key_len: usize,
    group: Option<&mut MaybeUninit<*mut Group>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(group, "group")?;
        let groups = given(groups, "groups")?;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let bytes = unsafe { border::bytes(key_bytes, key_len, "key") }?;
        if let Some((leader, size)) = groups.inner.leader(key(&groups.params, bytes)?)? {
            slot.give(Group { leader, size: size.into(), members: Vec::new(), queries: 0 });
        }
        Ok(())
    })
}

/// Called with `data`, the key of a document, the key of its leader, and the size of its group. Keys are valid until it
/// returns. If it returns 0, no more documents follow.
pub type GroupVisitor = Option<
    extern "C" fn(
        data: *mut c_void,
        key: *const u8,
        key_len: usize,
        leader: *const u8,
        leader_len: usize,
        size: u32,
    ) -> i32,
>;

/// Calls `each` for each document whose group has at least `min_size` documents, in the order of keys, on the calling
/// thread.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_groups_for_each(
    groups: Option<&Groups>,
    min_size: u32,
    each: GroupVisitor,
    data: *mut c_void,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let each = each.ok_or_else(|| Error::invalid("each is null"))?;
        let mut was_ended = false;
        let done = given(groups, "groups")?.inner.for_each(min_size, |key, leader, size| {
            // They live until `each` has returned.
            let (key, leader) = (key.to_buf(), leader.to_buf());
            let ((key, key_len), (leader, leader_len)) = (start_of(&key), start_of(&leader));
            was_ended = each(data, key, key_len, leader, leader_len, size) == 0;
            if was_ended { Err(twindex::Error::Cancelled) } else { Ok(()) }
        });
        if was_ended {
            return Ok(());
        }
        Ok(done?)
    })
}

/// Frees groups. `groups` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_groups_free(groups: Option<Box<Groups>>) {
    border::free(groups);
}
