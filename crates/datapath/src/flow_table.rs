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
//! Entries that match every packet, such as the table-miss entry, are in no engine.
//! Lookups start with the best of them as the winner.
//!
//! # Cost
//! Adding and removing: one or two engine updates in each family, and below the limit a
//! rebuild if a field is new. Lookups: one projection and one lookup for each engine of
//! each family in the batch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use classyard::reoptimise::{LookupPlan, Reoptimise, Snapshot};
use classyard::{
    ActionId, BuildError, Classifier, EngineSpec, KeySlice, Limits, NoProgress, Priority, RuleId,
    RuleSet, Scratch, Transaction, UpdateError, Winner,
};

use crate::field::Field;
use crate::flow_match::{Family, FlowMatch};
use crate::key::{KEY_WORDS, PacketKey};
use crate::projection::{FieldSet, Projection, TooWide};

/// Settings of a flow table.
///
/// ```
/// use classyard::EngineSpec;
/// use classyard_datapath::TableSettings;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = TableSettings::new(EngineSpec::parse("tuplemerge")?)?.rebuild_below(100);
/// assert_eq!(settings.engine().to_string(), "tuplemerge");
/// // An engine without updates cannot follow a controller.
/// assert!(TableSettings::new(EngineSpec::parse("rfc")?).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TableSettings {
    engine: EngineSpec,
    rebuild_below: usize,
}

impl TableSettings {
    /// The default value of [`rebuild_below`](Self::rebuild_below), in rules.
    pub const USUAL_REBUILD_BELOW: usize = 256;

    /// Returns settings for tables that use this engine for each family of packets.
    ///
    /// # Errors
    /// [`BuildError`] if the engine takes no updates, or has an option that this host does
    /// not support.
    pub fn new(engine: EngineSpec) -> Result<TableSettings, BuildError> {
        if !engine.is_dynamic() {
            return Err(classyard::engine::takes_no_updates(&engine.to_string()));
        }
        engine.available()?;
        Ok(TableSettings {
            engine,
            rebuild_below: TableSettings::USUAL_REBUILD_BELOW,
        })
    }

    /// Sets the number of rules of a family below which its engine is rebuilt immediately
    /// when a new entry needs a wider projection.
    #[must_use]
    pub fn rebuild_below(self, rules: usize) -> TableSettings {
        TableSettings {
            rebuild_below: rules,
            ..self
        }
    }

    /// Returns the engine that each family uses.
    #[must_use]
    pub fn engine(&self) -> &EngineSpec {
        &self.engine
    }
}

/// The reason why an entry cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table already has an entry with this id.
    #[error("the table has an entry {0} already")]
    Known(RuleId),
    /// The table's entries have too many fields.
    #[error(transparent)]
    Wide(#[from] TooWide),
    /// The engine could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The engine refused the entry.
    #[error(transparent)]
    Update(UpdateError),
}

/// The priority and match of an entry.
#[derive(Clone, Debug)]
struct Entry {
    priority: Priority,
    flow: Arc<FlowMatch>,
}

type Entries = HashMap<RuleId, Entry>;

/// An engine over a projection.
struct Part {
    projection: Projection,
    engine: Box<dyn Classifier>,
    rules: usize,
}

/// The engines of a family.
#[derive(Default)]
struct FamilyRules {
    /// Each part has all fields of the part before, and more.
    parts: Vec<Part>,
    /// Rules of the first part that are to be moved to the last part. May include rules
    /// that were removed after the list was made; does not include later additions.
    moving: Vec<RuleId>,
}

/// The maximum number of parts of a family.
const MAX_PARTS: usize = 4;

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
/// table.classify(|place| packets[place].key(), &mut winners, &mut buffers);
/// assert_eq!(winners[0].rule(), Some(RuleId::new(7)?));
/// assert!(winners[1].is_miss());
/// # Ok(())
/// # }
/// ```
pub struct FlowTable {
    settings: TableSettings,
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
    places: [Vec<usize>; Family::ALL.len()],
    words: Vec<u64>,
    winners: Vec<Winner>,
    scratch: Scratch,
}

impl FlowTable {
    /// Returns an empty table.
    #[must_use]
    pub fn new(settings: TableSettings) -> FlowTable {
        FlowTable {
            settings,
            entries: Entries::default(),
            always: BTreeMap::new(),
            families: Default::default(),
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
        if self.entries.contains_key(&id) {
            return Err(TableError::Known(id));
        }
        let entry = Entry { priority, flow };
        if entry.flow.values().is_empty() {
            let winner = Winner::new(priority, id);
            self.always.insert(winner.rank(), winner);
            self.entries.insert(id, entry);
            return Ok(());
        }
        if self.is_filling {
            self.entries.insert(id, entry);
            return Ok(());
        }
        for (done, family) in entry.flow.families().enumerate() {
            let rules = &mut self.families[family as usize];
            if let Err(error) = rules.add(id, &entry, family, &self.entries, &self.settings) {
                for family in entry.flow.families().take(done) {
                    self.families[family as usize].remove(id);
                }
                return Err(error);
            }
        }
        self.entries.insert(id, entry);
        Ok(())
    }

    /// Removes an entry. Returns true if it existed.
    pub fn remove(&mut self, id: RuleId) -> bool {
        let Some(entry) = self.entries.remove(&id) else {
            return false;
        };
        if entry.flow.values().is_empty() {
            self.always.remove(&Winner::new(entry.priority, id).rank());
            return true;
        }
        for family in entry.flow.families() {
            self.families[family as usize].remove(id);
        }
        true
    }

    /// True if some family has several engines, which makes lookups slower.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.families.iter().any(|rules| rules.parts.len() > 1)
    }

    /// Rebuilds the engine of every family, with a projection of only the fields that its
    /// entries match.
    ///
    /// # Errors
    /// [`TableError`]; lookups return the same winners as before.
    pub fn rebuild(&mut self) -> Result<(), TableError> {
        // Sorted, so that consecutive ids are neighbours in memory.
        let mut entries: Vec<(&RuleId, &Entry)> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|&(id, _)| id);
        let mut members: [Vec<(&RuleId, &Entry)>; Family::ALL.len()] = Default::default();
        for (id, entry) in entries {
            if !entry.flow.values().is_empty() {
                for family in entry.flow.families() {
                    members[family as usize].push((id, entry));
                }
            }
        }
        for (family, members) in Family::ALL.into_iter().zip(members) {
            if !members.is_empty() {
                let rules = &mut self.families[family as usize];
                rules.parts = vec![Part::build(members.into_iter(), family, &self.settings)?];
                rules.moving.clear();
            }
        }
        self.is_filling = false;
        Ok(())
    }

    /// Returns the family's engine with the most rules, if it can be re-optimised.
    fn main_engine(&self, family: Family) -> Option<&dyn Reoptimise> {
        let parts = self.families[family as usize].parts.iter();
        let part = parts.max_by_key(|part| part.rules)?;
        part.engine.dynamic()?.reoptimise()
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
        let parts = &mut self.families[family as usize].parts;
        let fitting = parts.iter_mut().find(|part| {
            let schema = part.projection.schema();
            plan.fits(part.engine.engine(), schema)
        });
        let engine = fitting.and_then(|part| part.engine.as_dynamic()?.reoptimise_mut());
        engine.is_some_and(|engine| engine.install(plan))
    }

    /// True if [`maintain`](Self::maintain) has work to do.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let parts = self.families.iter().flat_map(|rules| &rules.parts);
        let mut engines = parts.filter_map(|part| part.engine.dynamic()?.reoptimise());
        self.is_split() || engines.any(Reoptimise::is_installing)
    }

    /// Moves up to `steps` entries from the narrowest to the widest engine of families
    /// that have several, and drops engines that become empty. Also makes `steps` steps
    /// of installing plans in each engine. Lookup results do not change. Returns the
    /// number of steps that moving took.
    pub fn maintain(&mut self, steps: usize) -> usize {
        for part in self.families.iter_mut().flat_map(|rules| &mut rules.parts) {
            let engine = part.engine.as_dynamic();
            if let Some(engine) = engine.and_then(|engine| engine.reoptimise_mut()) {
                engine.step(steps);
            }
        }
        let mut steps_left = steps;
        for family in Family::ALL {
            let rules = &mut self.families[family as usize];
            while steps_left > 0 && rules.parts.len() > 1 {
                steps_left -= rules.move_some(steps_left, family, &self.entries);
            }
        }
        steps - steps_left
    }

    /// Returns the number of tables in all engines. A lookup may probe all tables of the
    /// packet's family.
    #[must_use]
    pub fn engine_tables(&self) -> usize {
        let parts = self.families.iter().flat_map(|rules| &rules.parts);
        parts.map(|part| part.engine.stats().tables).sum()
    }

    /// Bytes held by engines.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let parts = self.families.iter().flat_map(|rules| &rules.parts);
        parts.map(|part| part.engine.stats().bytes()).sum()
    }

    /// Looks up the winning entry of each packet. `key` returns the key at a position of
    /// the batch.
    pub fn classify<'k>(
        &self,
        key: impl Fn(usize) -> &'k PacketKey,
        winners: &mut [Winner],
        buffers: &mut TableBuffers,
    ) {
        let always = self.always.values().next();
        winners.fill(always.copied().unwrap_or(Winner::MISS));
        if self.families.iter().all(|rules| rules.parts.is_empty()) {
            return;
        }
        let mut family_places = std::mem::take(&mut buffers.places);
        family_places.iter_mut().for_each(Vec::clear);
        for place in 0..winners.len() {
            family_places[Family::of(key(place)) as usize].push(place);
        }
        for (rules, places) in self.families.iter().zip(&family_places) {
            if rules.parts.is_empty() || places.is_empty() {
                continue;
            }
            buffers.winners.clear();
            let begin = places.iter().map(|&place| winners[place]);
            buffers.winners.extend(begin);
            for part in &rules.parts {
                part.improve(places.iter().map(|&place| key(place)), buffers);
            }
            for (&place, &winner) in places.iter().zip(&buffers.winners) {
                winners[place] = winner;
            }
        }
        buffers.places = family_places;
    }

    /// Looks up the winning entry of a packet. Adds to `mask` the bits of the packet's
    /// key on which the result depends: every packet with the same values of these bits
    /// has the same winner.
    pub fn classify_masked(
        &self,
        key: &PacketKey,
        mask: &mut [u64; KEY_WORDS],
        buffers: &mut TableBuffers,
    ) -> Winner {
        let always = self.always.values().next();
        let mut winner = always.copied().unwrap_or(Winner::MISS);
        if self.families.iter().all(|rules| rules.parts.is_empty()) {
            return winner;
        }
        PacketKey::place(Field::EthType).set_bits(mask, u128::MAX);
        for part in &self.families[Family::of(key) as usize].parts {
            winner = part.improve_masked(key, winner, mask, buffers);
        }
        winner
    }
}

/// True if an entry is a rule of a family's engines.
fn is_in(flow: &FlowMatch, family: Family) -> bool {
    !flow.values().is_empty() && flow.families().any(|other| other == family)
}

impl FamilyRules {
    fn add(
        &mut self,
        id: RuleId,
        entry: &Entry,
        family: Family,
        entries: &Entries,
        settings: &TableSettings,
    ) -> Result<(), TableError> {
        // The widest part, so that the other parts become empty.
        let mut parts = self.parts.iter_mut().rev();
        if let Some(part) = parts.find(|part| part.projection.covers(&entry.flow)) {
            return part.insert(id, entry);
        }
        let new = std::iter::once((&id, entry));
        let rules: usize = self.parts.iter().map(|part| part.rules).sum();
        if rules < settings.rebuild_below || self.parts.is_empty() {
            let members = entries.iter();
            let members = members.filter(|(_, entry)| is_in(&entry.flow, family));
            self.parts = vec![Part::build(members.chain(new), family, settings)?];
            return Ok(());
        }
        let last = self.parts.last().expect("there is one");
        let fields = last.projection.fields();
        let built = if self.parts.len() < MAX_PARTS && last.rules >= settings.rebuild_below {
            // Includes the fields of the previous part, since its rules will move here.
            Part::over(fields, new.clone(), family, settings).map(|part| (part, false))
        } else {
            // Replaces the last part by a wider one.
            let members = entries.iter().filter(|(id, _)| last.has(**id));
            let members = members.chain(new.clone());
            Part::over(fields, members, family, settings).map(|part| (part, true))
        };
        match built {
            Ok((part, replaces)) => {
                if replaces {
                    self.parts.pop();
                }
                self.parts.push(part);
                Ok(())
            }
            // Fields that no entry uses any more may make the projection too wide.
            Err(TableError::Wide(_)) => {
                let members = entries.iter();
                let members = members.filter(|(_, entry)| is_in(&entry.flow, family));
                self.parts = vec![Part::build(members.chain(new), family, settings)?];
                self.moving.clear();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Moves up to `steps` rules from the first part to the last. Returns the number of
    /// steps, at least one.
    fn move_some(&mut self, steps: usize, family: Family, entries: &Entries) -> usize {
        let [first, .., last] = &mut self.parts[..] else {
            return 1;
        };
        if self.moving.is_empty() {
            let members = entries
                .iter()
                .filter(|(_, entry)| is_in(&entry.flow, family));
            let members = members.filter(|(id, _)| first.has(**id));
            self.moving.extend(members.map(|(id, _)| *id));
        }
        let first_moved = self.moving.len().saturating_sub(steps);
        let mut moved = 0;
        for id in self.moving.drain(first_moved..) {
            moved += 1;
            if first.has(id) {
                last.insert(id, &entries[&id])
                    .expect("the last part is wide enough");
                first.remove(id);
            }
        }
        self.drop_empty();
        moved.max(1)
    }

    fn drop_empty(&mut self) {
        let first = self.parts.first().map(|part| part.rules);
        if first == Some(0) {
            self.moving.clear();
        }
        self.parts.retain(|part| part.rules > 0);
    }

    fn remove(&mut self, id: RuleId) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.has(id)) {
            part.remove(id);
        }
        self.drop_empty();
    }
}

impl Part {
    /// Builds an engine over the fields of some entries.
    fn build<'e>(
        entries: impl Iterator<Item = (&'e RuleId, &'e Entry)>,
        family: Family,
        settings: &TableSettings,
    ) -> Result<Part, TableError> {
        Part::over(FieldSet::NONE, entries, family, settings)
    }

    /// Builds an engine over `fields` and the fields of some entries.
    fn over<'e>(
        fields: FieldSet,
        entries: impl Iterator<Item = (&'e RuleId, &'e Entry)>,
        family: Family,
        settings: &TableSettings,
    ) -> Result<Part, TableError> {
        let entries: Vec<(&RuleId, &Entry)> = entries.collect();
        let fields = entries.iter().fold(fields, |fields, (_, entry)| {
            fields.and(FieldSet::of(&entry.flow, family))
        });
        let projection = Projection::new(fields, family)?;
        let mut rules = RuleSet::new(projection.schema());
        for (id, entry) in &entries {
            let rule = projection.rule(**id, entry.priority, ActionId(0), &entry.flow);
            let rule = rule.expect("the match was checked");
            rules.push(rule.view()).expect("ids are distinct");
        }
        let limits = Limits::default();
        let engine = settings.engine.build(&rules, &limits, &mut NoProgress)?;
        Ok(Part {
            projection,
            engine,
            rules: entries.len(),
        })
    }

    fn has(&self, id: RuleId) -> bool {
        self.engine
            .dynamic()
            .is_some_and(|engine| engine.contains(id))
    }

    fn insert(&mut self, id: RuleId, entry: &Entry) -> Result<(), TableError> {
        let rule = self
            .projection
            .rule(id, entry.priority, ActionId(0), &entry.flow);
        let rule = rule.expect("the match was checked");
        let engine = self.engine.as_dynamic().expect("an engine with updates");
        engine
            .apply(Transaction::new().insert(rule.view()))
            .map_err(TableError::Update)?;
        self.rules += 1;
        Ok(())
    }

    fn remove(&mut self, id: RuleId) {
        let engine = self.engine.as_dynamic().expect("an engine with updates");
        let removed = engine.apply(Transaction::new().remove(id));
        removed.expect("the rule is there");
        self.rules -= 1;
    }

    /// Replaces each winner in `buffers` by the best rule of this part that matches its
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
        words.clear();
        words.resize(winners.len() * width, 0);
        for (key, words) in packets.zip(words.chunks_exact_mut(width)) {
            self.projection.project(key, words);
        }
        let keys = KeySlice::new(words, width);
        self.engine.improve_batch(keys, winners, scratch);
    }

    /// Returns `winner`, or the best rule of this part that matches, if that rule is better.
    /// Adds to `mask` the bits of the key that the result depends on.
    fn improve_masked(
        &self,
        key: &PacketKey,
        winner: Winner,
        mask: &mut [u64; KEY_WORDS],
        buffers: &mut TableBuffers,
    ) -> Winner {
        let width = self.projection.schema().key_words();
        let TableBuffers { words, .. } = buffers;
        words.clear();
        words.resize(2 * width, 0);
        let (own, wanted) = words.split_at_mut(width);
        self.projection.project(key, own);
        let winner = self.engine.improve_masked(own, winner, wanted);
        self.projection.add_mask(wanted, mask);
        winner
    }
}
