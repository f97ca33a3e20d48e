//! Liveness of groups' buckets, updated when groups and ports change.
//!
//! # Idea
//! For each bucket, the module stores how many of its watched items are live: the port
//! and the group that the bucket watches. For each group, it stores the number of live
//! buckets. When a port or group becomes live or stops being live, the counts of the
//! buckets that watch it change. If a group's count becomes 0 or stops being 0, the
//! change spreads to the buckets that watch this group. An explicit work list replaces
//! recursion, so chains of watching groups may have any length.
//!
//! # Cost
//! A change visits the buckets that watch the changed port or group. Groups do not watch
//! each other in circles, so each bucket is visited at most twice: for its port and for
//! its group. Processing a packet does not use this module: see
//! [`Choice`](super::choice::Choice).

use std::collections::{BTreeSet, HashMap};

use super::ports::Ports;
use crate::action::{GroupId, PortNo};
use crate::group::Group;

/// A bucket, by its group and its number.
type BucketPlace = (GroupId, usize);

/// The liveness of all groups' buckets.
#[derive(Default)]
pub(super) struct Liveness {
    groups: HashMap<GroupId, WatchingGroup>,
    by_port: HashMap<PortNo, BTreeSet<BucketPlace>>,
    by_group: HashMap<GroupId, BTreeSet<BucketPlace>>,
    /// Groups with buckets whose liveness changed.
    changed: BTreeSet<GroupId>,
}

struct WatchingGroup {
    buckets: Vec<WatchingBucket>,
    live_buckets: usize,
}

struct WatchingBucket {
    port: Option<PortNo>,
    group: Option<GroupId>,
    /// The number of live items among `port` and `group`.
    live_watched: u8,
}

impl WatchingBucket {
    /// True if packets may go to the bucket: its port or group is live, or it watches
    /// nothing.
    fn is_live(&self) -> bool {
        self.live_watched > 0 || self.port.is_none() && self.group.is_none()
    }
}

impl Liveness {
    /// True if packets may go to a bucket.
    pub(super) fn is_live(&self, group: GroupId, number: usize) -> bool {
        let group = self.groups.get(&group);
        let bucket = group.and_then(|group| group.buckets.get(number));
        bucket.is_some_and(WatchingBucket::is_live)
    }

    fn is_live_group(&self, id: GroupId) -> bool {
        let group = self.groups.get(&id);
        group.is_some_and(|group| group.live_buckets > 0)
    }

    /// Returns the groups with buckets whose liveness changed, and clears the list.
    pub(super) fn take_changed(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.changed)
    }

    /// Adds or replaces a group.
    pub(in crate::pipeline) fn put(&mut self, group: &Group, ports: &Ports) {
        let was_live = self.is_live_group(group.id);
        self.unlink(group.id);
        let buckets = group.buckets.iter().map(|bucket| {
            let port = bucket.watch_port.is_some_and(|port| ports.is_live(port));
            let group = bucket.watch_group.is_some_and(|id| self.is_live_group(id));
            WatchingBucket {
                port: bucket.watch_port,
                group: bucket.watch_group,
                live_watched: u8::from(port) + u8::from(group),
            }
        });
        let buckets: Vec<WatchingBucket> = buckets.collect();
        for (number, bucket) in buckets.iter().enumerate() {
            let watcher = (group.id, number);
            if let Some(port) = bucket.port {
                self.by_port.entry(port).or_default().insert(watcher);
            }
            if let Some(watched) = bucket.group {
                self.by_group.entry(watched).or_default().insert(watcher);
            }
        }
        let live_buckets = buckets.iter().filter(|bucket| bucket.is_live()).count();
        let watching = WatchingGroup {
            buckets,
            live_buckets,
        };
        self.groups.insert(group.id, watching);
        self.changed.insert(group.id);
        self.group_is(group.id, was_live);
    }

    /// Removes a group.
    pub(in crate::pipeline) fn remove(&mut self, id: GroupId) {
        let was_live = self.is_live_group(id);
        self.unlink(id);
        self.changed.insert(id);
        self.group_is(id, was_live);
    }

    /// Updates the buckets that watch a port.
    pub(super) fn port_is(&mut self, port: PortNo, was_live: bool, is_live: bool) {
        if was_live != is_live
            && let Some(watching) = self.by_port.get(&port)
        {
            self.spread(watching.iter().copied().collect(), is_live);
        }
    }

    /// Updates the buckets that watch a group whose buckets changed.
    fn group_is(&mut self, id: GroupId, was_live: bool) {
        let is_live = self.is_live_group(id);
        if was_live != is_live
            && let Some(watching) = self.by_group.get(&id)
        {
            self.spread(watching.iter().copied().collect(), is_live);
        }
    }

    /// Updates buckets after an item that they watch became live or stopped being live.
    fn spread(&mut self, mut waiting: Vec<BucketPlace>, is_live: bool) {
        while let Some((id, number)) = waiting.pop() {
            let group = self.groups.get_mut(&id).expect("a group that watches");
            let bucket = &mut group.buckets[number];
            let before = bucket.is_live();
            match is_live {
                true => bucket.live_watched += 1,
                false => bucket.live_watched -= 1,
            }
            if bucket.is_live() == before {
                continue;
            }
            self.changed.insert(id);
            let was_live = group.live_buckets > 0;
            match is_live {
                true => group.live_buckets += 1,
                false => group.live_buckets -= 1,
            }
            if was_live != (group.live_buckets > 0)
                && let Some(watching) = self.by_group.get(&id)
            {
                waiting.extend(watching);
            }
        }
    }

    fn unlink(&mut self, id: GroupId) {
        let Some(old) = self.groups.remove(&id) else {
            return;
        };
        for (number, bucket) in old.buckets.iter().enumerate() {
            if let Some(port) = bucket.port {
                take(&mut self.by_port, &port, (id, number));
            }
            if let Some(group) = bucket.group {
                take(&mut self.by_group, &group, (id, number));
            }
        }
    }
}

fn take<K: std::hash::Hash + Eq>(
    watching: &mut HashMap<K, BTreeSet<BucketPlace>>,
    watched: &K,
    place: BucketPlace,
) {
    if let Some(places) = watching.get_mut(watched) {
        places.remove(&place);
        if places.is_empty() {
            watching.remove(watched);
        }
    }
}
