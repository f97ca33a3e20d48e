//! The flow entries of one table, and the lookup of the winning entry.
//!
//! # Idea
//! Entries are rules of engines over [projections](crate::projection) of packet keys.
//! Each family of packets has its own engine. An entry that matches packets of several
//! families is a rule in each of their engines. If a new entry has a field that its
//! family's projection lacks, the family needs a wider projection, and all its rules must
//! move to an engine over this projection. Below [`TableSettings::rebuild_below`] rules,
//! the engine is rebuilt immediately. Otherwise the entry goes to a second engine with a
//! wider projection, and lookups use both engines. [`FlowTable::maintain`] then moves the
//! rules to the wider engine, a few in each call, until the narrow engine is empty.
//! [`FlowTable::rebuild`] does the same in one call: it builds one engine for all rules.
//!
//! Engines that adapt to their rules are re-optimised as the rules change
//! ([`classyard::reoptimise`]): a plan is computed from a snapshot of the engine, and
//! [`FlowTable::maintain`] installs it.
//!
//! ```text
//! entries:  { id → priority, match }
//! always:   [ rank ] …                 entries that match every packet, best first
//! IPv4:     [ projection, engine ] [ wider projection, engine ]
//! IPv6:     [ projection, engine ]
//! other:
//! ```
//!
//! A packet's winner depends on some bits of its key. An algorithm of
//! [`MegaflowBits`](crate::megaflow::MegaflowBits) finds these bits without the engines, so
//! they are the same with every engine. By default it uses a planned mask if there is one,
//! otherwise agreement trees.
//!
//! Entries that match every packet, such as the table-miss entry, are in no engine.
//! Lookups start with the best of them as the winner.
//!
//! # Cost
//! Adding and removing: one or two engine updates in each family, and below the limit a
//! rebuild if a field is new. Lookups: one projection and one lookup for each engine of
//! each family in the batch.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use classyard::reoptimise::{LookupPlan, Reoptimise, Snapshot};
use classyard::{
    ActionId, Classifier, KeySlice, Limits, NoProgress, Priority, RuleId, RuleSet, Scratch,
    Transaction, Winner,
};
use foldhash::HashSet;

use crate::bits::{match_bits, match_mask};
use crate::field::Field;
use crate::flow_match::{Family, FlowMatch};
use crate::key::{KEY_WORDS, PacketKey, Presence};
use crate::megaflow::MegaflowBits;
use crate::megaflow::agreement::{WantedBits, prefix_fields};
use crate::megaflow::cross_product::term_of;
use crate::megaflow::family_bits::FamilyBits;
use crate::megaflow::planned::{PlannedMasks, PlannedRules};
use crate::projection::{FieldSet, Projection};
use crate::table_settings::{TableError, TableSettings};

/// An entry. Its id identifies it.
#[derive(Clone, Debug)]
struct Entry {
    id: RuleId,
    priority: Priority,
    flow: Arc<FlowMatch>,
}

impl Entry {
    fn rank(&self) -> u64 {
        Winner::new(self.priority, self.id).rank()
    }
}

impl Borrow<RuleId> for Entry {
    fn borrow(&self) -> &RuleId {
        &self.id
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.id == other.id
    }
}

impl Eq for Entry {}

/// Entries by id, 17 bytes for each slot.
type Entries = HashSet<Entry>;

/// An engine over a projection.
struct ProjectedEngine {
    projection: Projection,
    classifier: Box<dyn Classifier>,
    rules: usize,
}

/// The engines of a family, and the bits of megaflows.
struct FamilyRules {
    /// Each engine has all fields of the engine before, and more.
    engines: Vec<ProjectedEngine>,
    bits: FamilyBits,
    /// Rules of the first engine that are to be moved to the last engine. May include rules
    /// that were removed after the list was made; does not include later additions.
    moving: Vec<RuleId>,
}

/// The state of a family's entries: it is different after each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    table: u64,
    changes: u64,
}

/// The maximum number of engines of a family.
const MAX_ENGINES: usize = 4;

/// The flow entries of a table.
///
/// ```
/// use std::sync::Arc;
///
/// use classyard::{EngineSpec, Priority, RuleId, Winner};
/// use classyard_datapath::{
///     Field, FlowMatch, FlowTable, MatchField, Packet, TableBuffers, TableSettings,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = TableSettings::new(EngineSpec::parse("forest")?)?;
/// let mut table = FlowTable::new(settings);
/// let flow = FlowMatch::new([MatchField::exact(Field::InPort, 1)])?;
/// table.add(RuleId::new(7)?, Priority(5), Arc::new(flow))?;
/// let packets = [1, 2].map(|port| Packet::new(&[0; 60], port));
/// let mut winners = [Winner::MISS; 2];
/// let mut buffers = TableBuffers::default();
/// table.classify(|packet_index| packets[packet_index].key(), &mut winners, &mut buffers);
/// assert_eq!(winners[0].rule(), Some(RuleId::new(7)?));
/// assert!(winners[1].is_miss());
/// # Ok(())
/// # }
/// ```
pub struct FlowTable {
    settings: TableSettings,
    /// Distinguishes tables that had the same id in a pipeline one after the other.
    number: u64,
    entries: Entries,
    /// Entries that match every packet, by rank.
    always: BTreeMap<u64, Winner>,
    families: [FamilyRules; Family::ALL.len()],
    /// True if new entries stay out of the engines until the table is rebuilt.
    is_filling: bool,
}

/// Buffers for lookups: one per thread, usable with any table.
#[derive(Default)]
pub struct TableBuffers {
    /// The packets of each family, by their positions in the batch.
    packet_indices: [Vec<usize>; Family::ALL.len()],
    words: Vec<u64>,
    winners: Vec<Winner>,
    scratch: Scratch,
}

impl FlowTable {
    /// Returns an empty table.
    #[must_use]
    pub fn new(settings: TableSettings) -> FlowTable {
        FlowTable::numbered(settings, 0)
    }

    /// Returns an empty table with a number that no other table of its pipeline has had.
    pub(crate) fn numbered(settings: TableSettings, number: u64) -> FlowTable {
        FlowTable {
            number,
            entries: Entries::default(),
            always: BTreeMap::new(),
            families: Family::ALL.map(|_| FamilyRules::new(settings.megaflow_bits)),
            settings,
            is_filling: false,
        }
    }

    /// Keeps further entries out of the engines, so lookups do not find them, until
    /// [`rebuild`](Self::rebuild) builds the engines once over all entries. This takes much
    /// less time than many insertions. Entries that match every packet are in no engine and
    /// are found.
    pub(crate) fn begin_filling(&mut self) {
        self.is_filling = true;
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if the table has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the priority and match of an entry.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<(Priority, &Arc<FlowMatch>)> {
        let entry = self.entries.get(&id)?;
        Some((entry.priority, &entry.flow))
    }

    /// Adds an entry. At equal priority the lower id wins.
    ///
    /// # Errors
    /// [`TableError`]; the table is unchanged.
    pub fn add(
        &mut self,
        id: RuleId,
        priority: Priority,
        flow: Arc<FlowMatch>,
    ) -> Result<(), TableError> {
        if self.entries.contains(&id) {
            return Err(TableError::Known(id));
        }
        let entry = Entry { id, priority, flow };
        if entry.flow.matches_all() {
            let winner = Winner::new(priority, id);
            self.always.insert(winner.rank(), winner);
            self.note_change();
            self.entries.insert(entry);
            return Ok(());
        }
        if self.is_filling {
            self.list(entry);
            return Ok(());
        }
        for (done, family) in entry.flow.families().enumerate() {
            let rules = &mut self.families[family as usize];
            if let Err(error) = rules.add(&entry, family, &self.entries, &self.settings) {
                for family in entry.flow.families().take(done) {
                    self.families[family as usize].remove(id);
                }
                return Err(error);
            }
        }
        self.list(entry);
        Ok(())
    }

    /// Notes a change of the entries that match every packet.
    fn note_change(&mut self) {
        for rules in &mut self.families {
            rules.bits.note_change();
        }
    }

    /// Adds an entry to the list of entries and to the bits of megaflows, but to no engine.
    fn list(&mut self, entry: Entry) {
        let rank = entry.rank();
        let required = match_bits(&entry.flow);
        for family in entry.flow.families() {
            let rules = &mut self.families[family as usize];
            rules.bits.insert(&required, rank);
        }
        self.entries.insert(entry);
    }

    /// Removes an entry. Returns true if it existed.
    pub fn remove(&mut self, id: RuleId) -> bool {
        let Some(entry) = self.entries.take(&id) else {
            return false;
        };
        if entry.flow.matches_all() {
            self.always.remove(&entry.rank());
            self.note_change();
            return true;
        }
        let rank = entry.rank();
        let required = match_bits(&entry.flow);
        for family in entry.flow.families() {
            let rules = &mut self.families[family as usize];
            rules.remove(id);
            rules.bits.remove(&required, rank);
        }
        true
    }

    /// True if some family has several engines, which makes lookups slower.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.families.iter().any(|rules| rules.engines.len() > 1)
    }

    /// Rebuilds the engine of every family, with a projection of only the fields that its
    /// entries match.
    ///
    /// # Errors
    /// [`TableError`]; lookups return the same winners as before.
    pub fn rebuild(&mut self) -> Result<(), TableError> {
        // Sorted, so that consecutive ids are neighbours in memory.
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        let mut members: [Vec<&Entry>; Family::ALL.len()] = Default::default();
        for entry in entries {
            if !entry.flow.matches_all() {
                for family in entry.flow.families() {
                    members[family as usize].push(entry);
                }
            }
        }
        for (family, members) in Family::ALL.into_iter().zip(members) {
            if !members.is_empty() {
                let rules = &mut self.families[family as usize];
                rules.engines = vec![ProjectedEngine::build(
                    members.into_iter(),
                    family,
                    &self.settings,
                )?];
                rules.moving.clear();
            }
        }
        self.is_filling = false;
        Ok(())
    }

    /// Returns the family's engine with the most rules, if it can be re-optimised.
    fn main_engine(&self, family: Family) -> Option<&dyn Reoptimise> {
        let engines = self.families[family as usize].engines.iter();
        let engine = engines.max_by_key(|engine| engine.rules)?;
        engine.classifier.dynamic()?.reoptimise()
    }

    /// Returns a family whose engine should be re-optimised, since its lookups cost much
    /// more than after the last optimisation.
    #[must_use]
    pub fn drifted(&self) -> Option<Family> {
        let mut families = Family::ALL.into_iter();
        families.find(|&family| {
            let engine = self.main_engine(family);
            engine.is_some_and(|engine| engine.drift().is_due())
        })
    }

    /// Copies the next part of a family's engine to a snapshot for a plan. Returns true if
    /// the snapshot is complete, and `None` if the engine cannot be re-optimised.
    pub fn look(&self, family: Family, snapshot: &mut Snapshot) -> Option<bool> {
        Some(self.main_engine(family)?.look(snapshot))
    }

    /// Begins to install a plan in the engine of the family for which it was computed.
    /// Returns true if installing has begun, and false if the engine was replaced.
    pub fn install(&mut self, family: Family, plan: &LookupPlan) -> bool {
        let engines = &mut self.families[family as usize].engines;
        let fitting = engines.iter_mut().find(|engine| {
            let schema = engine.projection.schema();
            plan.fits(engine.classifier.engine(), schema)
        });
        let engine = fitting.and_then(|engine| engine.classifier.as_dynamic()?.reoptimise_mut());
        engine.is_some_and(|engine| engine.install(plan))
    }

    /// True if [`maintain`](Self::maintain) has work to do.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let engines = self.families.iter().flat_map(|rules| &rules.engines);
        let mut engines = engines.filter_map(|engine| engine.classifier.dynamic()?.reoptimise());
        self.is_split() || engines.any(Reoptimise::is_installing)
    }

    /// Moves up to `steps` entries from the narrowest to the widest engine of families
    /// that have several, and drops engines that become empty. Also makes `steps` steps
    /// of installing plans in each engine. Lookup results do not change. Returns the
    /// number of steps that moving took.
    pub fn maintain(&mut self, steps: usize) -> usize {
        for engine in self
            .families
            .iter_mut()
            .flat_map(|rules| &mut rules.engines)
        {
            let engine = engine.classifier.as_dynamic();
            if let Some(engine) = engine.and_then(|engine| engine.reoptimise_mut()) {
                engine.step(steps);
            }
        }
        let mut steps_left = steps;
        for family in Family::ALL {
            let rules = &mut self.families[family as usize];
            while steps_left > 0 && rules.engines.len() > 1 {
                steps_left -= rules.move_some(steps_left, family, &self.entries);
            }
        }
        steps - steps_left
    }

    /// Returns the number of tables in all engines. A lookup may probe all tables of the
    /// packet's family.
    #[must_use]
    pub fn engine_tables(&self) -> usize {
        let engines = self.families.iter().flat_map(|rules| &rules.engines);
        engines.map(|engine| engine.classifier.stats().tables).sum()
    }

    /// Bytes held by engines, and by the structures that find the bits of megaflows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let engines = self.families.iter().flat_map(|rules| &rules.engines);
        let engines: usize = engines
            .map(|engine| engine.classifier.stats().bytes())
            .sum();
        let bits = self.families.iter().map(|rules| rules.bits.bytes());
        engines + bits.sum::<usize>()
    }

    /// Returns the best entry that matches every packet.
    fn best_always(&self) -> Winner {
        let best = self.always.values().next();
        best.copied().unwrap_or(Winner::MISS)
    }

    /// Looks up the winning entry of each packet. `key` returns the key at a position of
    /// the batch.
    #[inline]
    pub fn classify<'k>(
        &self,
        key: impl Fn(usize) -> &'k PacketKey,
        winners: &mut [Winner],
        buffers: &mut TableBuffers,
    ) {
        winners.fill(self.best_always());
        if self.families.iter().all(|rules| rules.engines.is_empty()) {
            return;
        }
        let mut family_packets = std::mem::take(&mut buffers.packet_indices);
        family_packets.iter_mut().for_each(Vec::clear);
        for packet_index in 0..winners.len() {
            family_packets[Family::of(key(packet_index)) as usize].push(packet_index);
        }
        for (rules, packet_indices) in self.families.iter().zip(&family_packets) {
            if rules.engines.is_empty() || packet_indices.is_empty() {
                continue;
            }
            buffers.winners.clear();
            let begin = packet_indices
                .iter()
                .map(|&packet_index| winners[packet_index]);
            buffers.winners.extend(begin);
            for engine in &rules.engines {
                engine.improve(
                    packet_indices.iter().map(|&packet_index| key(packet_index)),
                    buffers,
                );
            }
            for (&packet_index, &winner) in packet_indices.iter().zip(&buffers.winners) {
                winners[packet_index] = winner;
            }
        }
        buffers.packet_indices = family_packets;
    }

    /// Prefetches the matches of entries, for [`add_bits`](Self::add_bits).
    pub(crate) fn fetch_entries(&self, ids: impl Iterator<Item = RuleId>) {
        let entries = ids.filter_map(|id| self.entries.get(&id));
        let presences = entries.map(|entry| entry.flow.presence());
        std::hint::black_box(presences.fold(Presence::NONE, Presence::and));
    }

    /// Looks up the winning entry of a packet. Adds to `mask` the bits of the packet's
    /// key on which the result depends: every packet with the same values of these bits
    /// has the same winner. Uses bits that `mask` has already where they suffice.
    pub fn classify_masked(
        &self,
        key: &PacketKey,
        mask: &mut [u64; KEY_WORDS],
        buffers: &mut TableBuffers,
    ) -> Winner {
        let mut winners = [Winner::MISS];
        self.classify(|_| key, &mut winners, buffers);
        let [winner] = winners;
        self.add_bits(key, winner, mask);
        winner
    }

    /// Adds to `mask` the bits of a packet's key on which its winner depends, as
    /// [`classify_masked`](Self::classify_masked) does. `winner` is the result of a lookup
    /// of the packet. The bits are:
    /// - the EtherType, which chooses the family;
    /// - the bits that the winner matches;
    /// - for each better entry of the family, a bit in which the packet differs from it
    ///   ([`FamilyBits::exclude_better`]). `mask` may have such a bit already.
    ///
    /// If a bit of an address or port is added, the bits before it in the field are added
    /// too, except with planned masks and with heuristics
    /// ([`MegaflowBits`](crate::megaflow::MegaflowBits)). Adds no bits if no family has an
    /// engine: then all packets have the same winner.
    pub(crate) fn add_bits(&self, key: &PacketKey, winner: Winner, mask: &mut [u64; KEY_WORDS]) {
        if self.families.iter().all(|rules| rules.engines.is_empty()) {
            return;
        }
        PacketKey::place(Field::EthType).set_bits(mask, u128::MAX);
        let family = Family::of(key);
        let mut wanted = WantedBits::new(mask, prefix_fields(family == Family::Ipv6));
        if let Some(entry) = winner.rule().and_then(|id| self.entries.get(&id)) {
            let matched = match_mask(&entry.flow);
            for (word, &bits) in matched.iter().enumerate().filter(|(_, bits)| **bits != 0) {
                wanted.add(word, bits);
            }
        }
        let rules = &self.families[family as usize];
        let (packet, rank) = (key.words(), winner.rank());
        // Called by algorithms other than `Auto` only, once for each change of the table.
        let entries = || {
            let entries = self.entries.iter();
            let entries = entries.filter(|entry| is_in(&entry.flow, family));
            let ranked = entries.map(|entry| (entry.rank(), term_of(&entry.flow)));
            ranked.collect()
        };
        rules
            .bits
            .exclude_better(packet, rank, &mut wanted, entries);
    }

    /// Returns a family without planned masks for which masks can be planned, and its rules.
    pub(crate) fn unplanned(&self) -> Option<(Family, Generation, PlannedRules)> {
        let always = self.best_always().rank();
        Family::ALL.into_iter().find_map(|family| {
            let planned_rules = self.families[family as usize].bits.unplanned(always)?;
            Some((family, self.generation(family), planned_rules))
        })
    }

    fn generation(&self, family: Family) -> Generation {
        Generation {
            table: self.number,
            changes: self.families[family as usize].bits.changes(),
        }
    }

    /// Uses masks that were planned for a generation of a family's entries, unless the
    /// entries have changed since.
    pub(crate) fn use_masks(
        &mut self,
        family: Family,
        generation: Generation,
        masks: &Arc<PlannedMasks>,
    ) {
        if self.generation(family) == generation {
            self.families[family as usize].bits.use_masks(masks);
        }
    }
}

/// True if an entry is a rule of a family's engines.
fn is_in(flow: &FlowMatch, family: Family) -> bool {
    !flow.matches_all() && flow.families().any(|other| other == family)
}

impl FamilyRules {
    fn new(algorithm: MegaflowBits) -> FamilyRules {
        FamilyRules {
            engines: Vec::new(),
            moving: Vec::new(),
            bits: FamilyBits::new(algorithm),
        }
    }

    fn add(
        &mut self,
        entry: &Entry,
        family: Family,
        entries: &Entries,
        settings: &TableSettings,
    ) -> Result<(), TableError> {
        // The widest engine, so that the other engines become empty.
        let mut engines = self.engines.iter_mut().rev();
        if let Some(engine) = engines.find(|engine| engine.projection.covers(&entry.flow)) {
            return engine.insert(entry);
        }
        let new = std::iter::once(entry);
        let rules: usize = self.engines.iter().map(|engine| engine.rules).sum();
        if rules < settings.rebuild_below || self.engines.is_empty() {
            let members = entries.iter();
            let members = members.filter(|entry| is_in(&entry.flow, family));
            self.engines = vec![ProjectedEngine::build(
                members.chain(new),
                family,
                settings,
            )?];
            return Ok(());
        }
        let last = self.engines.last().expect("there is one");
        let fields = last.projection.fields();
        let built = if self.engines.len() < MAX_ENGINES && last.rules >= settings.rebuild_below {
            // Includes the fields of the previous engine, since its rules will move here.
            ProjectedEngine::over(fields, new.clone(), family, settings)
                .map(|engine| (engine, false))
        } else {
            // Replaces the last engine by a wider one.
            let members = entries.iter().filter(|entry| last.has(entry.id));
            let members = members.chain(new.clone());
            ProjectedEngine::over(fields, members, family, settings).map(|engine| (engine, true))
        };
        match built {
            Ok((engine, replaces)) => {
                if replaces {
                    self.engines.pop();
                }
                self.engines.push(engine);
                Ok(())
            }
            // Fields that no entry uses any more may make the projection too wide.
            Err(TableError::Wide(_)) => {
                let members = entries.iter();
                let members = members.filter(|entry| is_in(&entry.flow, family));
                self.engines = vec![ProjectedEngine::build(
                    members.chain(new),
                    family,
                    settings,
                )?];
                self.moving.clear();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Moves up to `steps` rules from the first engine to the last. Returns the number of
    /// steps, at least one.
    fn move_some(&mut self, steps: usize, family: Family, entries: &Entries) -> usize {
        let [first, .., last] = &mut self.engines[..] else {
            return 1;
        };
        if self.moving.is_empty() {
            let members = entries.iter().filter(|entry| is_in(&entry.flow, family));
            let members = members.filter(|entry| first.has(entry.id));
            self.moving.extend(members.map(|entry| entry.id));
        }
        let first_moved = self.moving.len().saturating_sub(steps);
        let mut moved = 0;
        for id in self.moving.drain(first_moved..) {
            moved += 1;
            if first.has(id) {
                let entry = entries.get(&id).expect("an entry of the engine");
                last.insert(entry).expect("the last engine is wide enough");
                first.remove(id);
            }
        }
        self.drop_empty();
        moved.max(1)
    }

    fn drop_empty(&mut self) {
        let first = self.engines.first().map(|engine| engine.rules);
        if first == Some(0) {
            self.moving.clear();
        }
        self.engines.retain(|engine| engine.rules > 0);
    }

    fn remove(&mut self, id: RuleId) {
        if let Some(engine) = self.engines.iter_mut().find(|engine| engine.has(id)) {
            engine.remove(id);
        }
        self.drop_empty();
    }
}

impl ProjectedEngine {
    /// Builds an engine over the fields of some entries.
    fn build<'e>(
        entries: impl Iterator<Item = &'e Entry>,
        family: Family,
        settings: &TableSettings,
    ) -> Result<ProjectedEngine, TableError> {
        ProjectedEngine::over(FieldSet::NONE, entries, family, settings)
    }

    /// Builds an engine over `fields` and the fields of some entries.
    fn over<'e>(
        fields: FieldSet,
        entries: impl Iterator<Item = &'e Entry>,
        family: Family,
        settings: &TableSettings,
    ) -> Result<ProjectedEngine, TableError> {
        let entries: Vec<&Entry> = entries.collect();
        let fields = entries.iter().fold(fields, |fields, entry| {
            fields.and(FieldSet::of(&entry.flow, family))
        });
        let projection = Projection::new(fields, family)?;
        let mut rules = RuleSet::new(projection.schema());
        for entry in &entries {
            let rule = projection.rule(entry.id, entry.priority, ActionId(0), &entry.flow);
            let rule = rule.expect("the match was checked");
            rules.push(rule.view()).expect("ids are distinct");
        }
        let limits = Limits::default();
        let classifier = settings.engine.build(&rules, &limits, &mut NoProgress)?;
        Ok(ProjectedEngine {
            projection,
            classifier,
            rules: entries.len(),
        })
    }

    fn has(&self, id: RuleId) -> bool {
        self.classifier
            .dynamic()
            .is_some_and(|engine| engine.contains(id))
    }

    fn insert(&mut self, entry: &Entry) -> Result<(), TableError> {
        let rule = self
            .projection
            .rule(entry.id, entry.priority, ActionId(0), &entry.flow);
        let rule = rule.expect("the match was checked");
        let engine = self
            .classifier
            .as_dynamic()
            .expect("an engine with updates");
        engine
            .apply(Transaction::new().insert(rule.view()))
            .map_err(TableError::Update)?;
        self.rules += 1;
        Ok(())
    }

    fn remove(&mut self, id: RuleId) {
        let engine = self
            .classifier
            .as_dynamic()
            .expect("an engine with updates");
        let removed = engine.apply(Transaction::new().remove(id));
        removed.expect("the rule is there");
        self.rules -= 1;
    }

    /// Replaces each winner in `buffers` by the best rule of this engine that matches its
    /// packet, if that rule is better.
    fn improve<'k>(
        &self,
        packets: impl Iterator<Item = &'k PacketKey>,
        buffers: &mut TableBuffers,
    ) {
        let width = self.projection.schema().key_words();
        let TableBuffers {
            words,
            winners,
            scratch,
            ..
        } = buffers;
        // All words are overwritten.
        words.resize(winners.len() * width, 0);
        for (key, words) in packets.zip(words.chunks_exact_mut(width)) {
            self.projection.project(key, words);
        }
        let keys = KeySlice::new(words, width);
        self.classifier.improve_batch(keys, winners, scratch);
    }
}
