//! `cut-split`: a few decision trees that cut first and split below, with updates.

use std::sync::Arc;

use crate::classifier::{LookupTrace, Metric, Progress};
use crate::engine::adapter::{Algorithm, BuildRequest, DynamicFamily, Updates, build_dynamic};
use crate::engine::tree::MOST_RULES;
use crate::engine::{Engine, EngineOption, EngineSpec, Wraps};
use crate::error::BuildError;
use crate::id_map::IdMap;
use crate::memory::{Memory, bytes_of};
use crate::monitor::Monitor;
use crate::reoptimise::Reoptimise;
use crate::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::schema::Schema;
use crate::seed::Seed;
use crate::sort::sort_by_key;

mod estimate;
mod fields;
mod grow;
mod node;
mod reoptimise;
mod rows;
#[cfg(test)]
mod tests;
mod trees;
mod update;

use fields::Fields;
use reoptimise::Installing;
use rows::Rows;
use trees::{Outline, Trees};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "cut-split",
    summary: "a few trees that cut the small fields and split below; rules at the leaves",
    paper: "[CS18]; [TM19] §II.B, ref. 18",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::whole(
            "binth",
            (1, 1 << 16),
            8,
            "nodes of at most this many rules are not split",
        ),
        EngineOption::whole(
            "fields",
            (0, 4),
            2,
            "selected fields: rules that are small in the same ones share a tree",
        ),
        EngineOption::whole(
            "change",
            (1, 1 << 30),
            32,
            "nodes of at most this many rules are split, larger ones are cut where they can be",
        ),
        EngineOption::whole(
            "places",
            (1, 1 << 16),
            8,
            "how many leaves a rule may be in, in the mean; leaves stay long where more are needed",
        ),
        EngineOption::whole(
            "spread",
            (1, 1 << 16),
            64,
            "rules in more leaves than this go to a list instead",
        ),
        EngineOption::SEED,
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate: estimate::estimate,
};

/// What progress observers are told.
const SORTING: &str = "sorting rules";
const NOTING: &str = "noting ids";

/// What the options say.
#[derive(Clone, Copy, Debug)]
struct Settings {
    binth: usize,
    fields: usize,
    change: usize,
    places: usize,
    spread: usize,
    seed: Seed,
}

impl Settings {
    fn of(spec: &EngineSpec) -> Settings {
        let options = spec.options();
        Settings {
            binth: options.whole("binth"),
            fields: options.whole("fields"),
            change: options.whole("change"),
            places: options.whole("places"),
            spread: options.whole("spread"),
            seed: options.seed("seed"),
        }
    }
}

/// Refuses more rules than can be numbered.
fn check_rules(rules: usize) -> Result<(), BuildError> {
    if rules > MOST_RULES {
        return Err(BuildError::EngineFull {
            engine: ENGINE.name.to_owned(),
            rules,
            limit: MOST_RULES,
        });
    }
    Ok(())
}

/// Keys of a batch that are looked up in step with each other.
const GROUP: usize = 16;

/// Ids that stand together in the map of ids.
const ID_GROUP: usize = 16;

/// The engine at every key width.
struct AnyWidth;

impl DynamicFamily for AnyWidth {
    type At<const W: usize> = CutSplit<W>;
}

/// What is known of a rule by its id. The rest is found in a leaf: that of the
/// key.
#[derive(Clone, Copy, Debug)]
struct Known<const W: usize> {
    /// A key that the rule matches.
    key: [u64; W],
    priority: Priority,
    action: ActionId,
    tree: u8,
    /// Which trees these are: [`CutSplit::side`] or the others.
    side: bool,
}

/// Rules in trees.
struct CutSplit<const W: usize> {
    settings: Settings,
    fields: Arc<Fields>,
    trees: Trees<W>,
    /// Trees from which rules are being moved.
    old: Option<Trees<W>>,
    /// Tells the rules of `trees` from those of `old`.
    side: bool,
    ids: IdMap<Known<W>>,
    installing: Installing,
    /// Changes made so far.
    changes: u64,
    /// The cost of a lookup right after the trees were made.
    fitted: f64,
    /// The row of a changed rule.
    row: Vec<u64>,
}

impl<const W: usize> CutSplit<W> {
    fn schema(&self) -> &Arc<Schema> {
        &self.fields.schema
    }

    fn rank(id: RuleId, known: &Known<W>) -> u64 {
        Winner::new(known.priority, id).rank()
    }

    /// The trees that have a rule.
    fn trees_of(&self, known: &Known<W>) -> &Trees<W> {
        match &self.old {
            Some(old) if known.side != self.side => old,
            _ => &self.trees,
        }
    }

    /// The row of a rule.
    fn row(&self, id: RuleId, known: &Known<W>) -> &[u64] {
        let trees = self.trees_of(known);
        let row = trees.find(usize::from(known.tree), &known.key, Self::rank(id, known));
        row.expect("a rule is in the leaf of each key that it matches")
    }

    /// The rows of all rules, best first.
    fn all_rows(&self, monitor: &mut Monitor<'_>) -> Result<Vec<u64>, BuildError> {
        let mut ranks: Vec<(u64, RuleId)> = Vec::with_capacity(self.ids.len());
        ranks.extend(self.ids.iter().map(|(id, known)| (Self::rank(id, &known), id)));
        monitor.begin(SORTING, ranks.len())?;
        sort_by_key(&mut ranks, |rank| rank.0, monitor)?;
        let stride = Rows::<W>::stride(self.schema());
        let mut rows = Vec::with_capacity(ranks.len() * stride);
        for (_, id) in ranks {
            let known = self.ids.get(id).expect("it was there");
            rows.extend_from_slice(self.row(id, &known));
            monitor.advance(1)?;
        }
        Ok(rows)
    }

    /// Makes all trees anew, of the rules of now.
    fn make_anew(&mut self, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let rows = self.all_rows(monitor)?;
        let stride = Rows::<W>::stride(self.schema());
        let words = |place: usize| grow::words_of(&rows, stride, place);
        let rule = |place: usize| (rows[place * stride], words(place));
        let (fields, count) = (Arc::clone(&self.fields), self.ids.len());
        let outline = Outline::new(&fields, &self.settings, count, words, monitor)?;
        let trees = Trees::plant(&fields, &self.settings, &outline, rule, monitor)?;
        for (row, &tree) in rows.chunks_exact(stride).zip(&outline.of_place) {
            let id = grow::winner_of(row).rule().expect("a rule's rank");
            let known = self.ids.get_mut(id).expect("all rules are known");
            (known.tree, known.side) = (tree, self.side);
        }
        (self.trees, self.old) = (trees, None);
        self.installing = Installing::default();
        self.fitted = self.cost();
        Ok(())
    }

    /// Looks a whole group up.
    #[inline]
    fn improve_group(&self, keys: &[[u64; W]; GROUP], winners: &mut [Winner]) {
        self.trees.improve_group(keys, winners);
        if let Some(old) = &self.old {
            old.improve_group(keys, winners);
        }
    }
}

impl<const W: usize> Algorithm<W> for CutSplit<W> {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<CutSplit<W>, BuildError> {
        let (rules, limits) = (request.rules, request.limits);
        check_rules(rules.len())?;
        let settings = Settings::of(request.spec);
        let (schema, count) = (rules.schema(), rules.len());
        let least_ids = IdMap::<Known<W>>::bytes_for(count, count.div_ceil(ID_GROUP));
        limits.check_bytes(Rows::<W>::bytes_of(schema, count).saturating_add(least_ids))?;
        let mut monitor = request.monitor();
        let monitor = &mut monitor;

        monitor.begin(SORTING, count)?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let mut order: Vec<u32> = (0..=u32::MAX).take(count).collect();
        let rank = |&at: &u32| rules.rule(at as usize).winner().rank();
        sort_by_key(&mut order, rank, monitor)?;
        let fields = Arc::new(Fields::new(schema));
        let at = |place: usize| rules.rule(order[place] as usize);
        let words = |place: usize| at(place).words();
        let outline = Outline::new(&fields, &settings, count, words, monitor)?;
        let rule = |place: usize| (at(place).winner().rank(), words(place));
        let trees = Trees::plant(&fields, &settings, &outline, rule, monitor)?;

        monitor.begin(NOTING, count)?;
        monitor.memory().take(bytes_of::<u32>(count))?;
        let mut by_id: Vec<u32> = (0..=u32::MAX).take(count).collect();
        let id = |&place: &u32| at(place as usize).id();
        sort_by_key(&mut by_id, id, monitor)?;
        let group = |place: &u32| id(place).index() / ID_GROUP;
        let groups = by_id.chunk_by(|a, b| group(a) == group(b)).count();
        let mut counted = 0;
        let needed = IdMap::<Known<W>>::bytes_for(count, groups);
        monitor.memory().recount(&mut counted, needed)?;
        let mut ids = IdMap::new(settings.seed.number());
        for chunk in by_id.chunks(Monitor::BLOCK) {
            ids.extend(chunk.iter().map(|&place| {
                let rule = at(place as usize);
                let known = Known {
                    key: rule.value().try_into().expect("a rule of this width"),
                    priority: rule.priority(),
                    action: rule.action(),
                    tree: outline.of_place[place as usize],
                    side: false,
                };
                (rule.id(), known)
            }));
            monitor.advance(chunk.len())?;
        }
        monitor.memory().recount(&mut counted, ids.bytes())?;
        let working = bytes_of::<u32>(2 * count) + outline.bytes();
        drop((by_id, order, outline));
        monitor.memory().give_back(working);
        let mut built = CutSplit {
            settings,
            fields,
            trees,
            old: None,
            side: false,
            ids,
            installing: Installing::default(),
            changes: 0,
            fitted: 0.0,
            row: Vec::new(),
        };
        built.fitted = built.cost();
        Ok(built)
    }

    #[inline]
    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let winner = self.trees.improve(key, best);
        match &self.old {
            None => winner,
            Some(old) => old.improve(key, winner),
        }
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], (): &mut ()) {
        let (groups, rest) = keys.as_chunks::<GROUP>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP);
        for (keys, winners) in groups.iter().zip(of_groups.chunks_exact_mut(GROUP)) {
            self.improve_group(keys, winners);
        }
        for (key, winner) in rest.iter().zip(of_rest) {
            *winner = self.improve(key, *winner);
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let winner = self.trees.improve_masked(key, best, mask);
        match &self.old {
            None => winner,
            Some(old) => old.improve_masked(key, winner, mask),
        }
    }

    /// Each tree is a table.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut trace = LookupTrace {
            probes: Vec::new(),
            tables: Algorithm::tables(self),
            winner: Winner::MISS,
        };
        self.trees.trace(key, &mut trace);
        if let Some(old) = &self.old {
            let first = trace.probes.len();
            old.trace(key, &mut trace);
            for probe in &mut trace.probes[first..] {
                probe.table += self.trees.trees.len();
            }
        }
        trace
    }

    fn rules(&self) -> usize {
        self.ids.len()
    }

    fn tables(&self) -> usize {
        self.trees.present() + self.old.as_ref().map_or(0, Trees::present)
    }

    fn bytes(&self) -> usize {
        self.trees.bytes() + self.old.as_ref().map_or(0, Trees::bytes) + self.ids.bytes()
    }

    fn metrics(&self) -> Vec<Metric> {
        let list = &self.trees.trees[self.trees.list()];
        vec![
            Metric::count("selected fields", self.trees.selected.len()),
            Metric::count("nodes", self.trees.nodes.used()),
            Metric::count("places", self.trees.places()),
            Metric::count("rules in the list", list.rules),
        ]
    }
}

impl<const W: usize> Updates<W> for CutSplit<W> {
    fn capacity(&self) -> usize {
        MOST_RULES
    }

    fn contains(&self, id: RuleId) -> bool {
        self.ids.get(id).is_some()
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let known = self.ids.get(id)?;
        words.extend_from_slice(&self.row(id, &known)[1..]);
        Some(known.priority)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.ids.get(id)?.action)
    }

    fn winners(&self) -> Vec<Winner> {
        let rules = self.ids.iter();
        rules.map(|(id, known)| Winner::new(known.priority, id)).collect()
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let known = Known {
            key: rule.value().try_into().expect("a rule of this width"),
            priority: rule.priority(),
            action: rule.action(),
            tree: 0,
            side: self.side,
        };
        let Ok(position) = self.ids.insert(rule.id(), known) else {
            return false;
        };
        self.row.clear();
        self.row.push(rule.winner().rank());
        self.row.extend_from_slice(rule.words());
        let tree = self.trees.insert(&self.row);
        self.ids.at_mut(position).tree = u8::try_from(tree).expect("at most 17 trees");
        self.changes += 1;
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(known) = self.ids.get(id) else {
            return false;
        };
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend_from_slice(self.row(id, &known));
        let trees = match &mut self.old {
            Some(old) if known.side != self.side => old,
            _ => &mut self.trees,
        };
        trees.remove(usize::from(known.tree), &row);
        self.row = row;
        self.ids.remove(id);
        self.changes += 1;
        true
    }

    fn settle(&mut self, changes: usize) {
        if self.old.is_some() {
            self.install_some(changes.saturating_mul(reoptimise::STEPS));
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let mut memory = Memory::unlimited();
        self.make_anew(&mut Monitor::new(progress, &mut memory))
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        Some(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        Some(self)
    }
}
