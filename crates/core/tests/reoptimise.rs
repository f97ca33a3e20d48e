//! Re-optimisation of engines while rules change, from snapshots of any age and
//! with several plans at a time. Answers equal the answers of `linear` at any
//! moment, and lookups cost less afterwards.

use classyard::policy::PartId;
use classyard::reoptimise::{Drift, LookupPlan, Reoptimise, Snapshot};
use classyard::*;

mod table_kit;

use table_kit::{Dice, Owned, answers, id, linear, transaction};

fn build(spec: &str, rules: &RuleSet) -> Box<dyn Classifier> {
    // The counts depend on where hashes put rules.
    let spec = EngineSpec::parse(spec).unwrap().seeded(0);
    spec.build(rules, &Limits::default(), &mut NoProgress)
        .unwrap()
}

/// Returns a rule; there are four kinds. Rules of one kind differ only in
/// fields that other kinds leave open, so a plan for one kind does not suit the
/// others.
fn rule(number: u32, kind: usize, dice: &mut Dice) -> Rule {
    let address = |dice: &mut Dice, bits: u32, length| FieldMatch::Prefix {
        value: u128::from(dice.roll() % (1 << bits)) << (32 - bits),
        length,
    };
    let mut matches = [FieldMatch::Any; 5];
    match kind {
        0 => matches[0] = address(dice, 12, 12),
        1 => {
            let length = [8, 16, 24][dice.below(3)];
            matches[1] = address(dice, 16, length);
        }
        2 => {
            matches[0] = address(dice, 4, 4);
            matches[1] = address(dice, 6, 6);
            matches[3] = FieldMatch::Exact(u128::from(dice.roll() % 64));
        }
        _ => {
            let low = u128::from(dice.roll() % 60_000);
            matches[2] = FieldMatch::Range {
                low,
                high: low + u128::from(dice.roll() % 5000),
            };
        }
    }
    let priority = Priority(u32::try_from(dice.below(50)).unwrap());
    let schema = Schema::ipv4_5tuple();
    Rule::new(&schema, id(number), priority, ActionId(0), &matches).unwrap()
}

fn headers(count: usize, dice: &mut Dice) -> KeyVec {
    let mut keys = KeyVec::new(&Schema::ipv4_5tuple());
    for _ in 0..count {
        let mut below = |bound: u64, shift: u32| u128::from((dice.roll() % bound) << shift);
        let key = [
            below(1 << 12, 20),
            below(1 << 16, 16),
            below(1 << 16, 0),
            below(64, 0),
            6,
        ];
        keys.push(&key).unwrap();
    }
    keys
}

fn drift_of(classifier: &dyn Classifier) -> Drift {
    let dynamic = classifier.dynamic().unwrap();
    dynamic.reoptimise().unwrap().drift()
}

/// A classifier, the oracle, and the current rules.
struct World {
    subject: Box<dyn Classifier>,
    oracle: Box<dyn Classifier>,
    held: Vec<bool>,
    dice: Dice,
}

impl World {
    fn new(spec: &str, ids: usize, seed: u64) -> World {
        let none = RuleSet::new(&Schema::ipv4_5tuple());
        World {
            subject: build(spec, &none),
            oracle: linear(&none),
            held: vec![false; ids],
            dice: Dice(seed),
        }
    }

    fn engine(&mut self) -> &mut dyn DynamicClassifier {
        self.subject.as_dynamic().unwrap()
    }

    fn fitted(&mut self) -> &mut dyn Reoptimise {
        self.engine().reoptimise_mut().unwrap()
    }

    fn plan(&mut self) -> LookupPlan {
        let plan = self.fitted().snapshot().compute(&mut NoProgress);
        plan.unwrap().unwrap()
    }

    fn apply(&mut self, change: Owned) {
        let changes = [change];
        let change = transaction(&changes);
        self.engine().apply(&change).unwrap();
        self.oracle.as_dynamic().unwrap().apply(&change).unwrap();
    }

    /// Makes a random change of a rule of this kind.
    fn change(&mut self, kind: usize, share_out: usize) {
        let at = self.dice.below(self.held.len());
        let number = u32::try_from(at).unwrap();
        let out = self.dice.below(100) < share_out;
        match (self.held[at], out) {
            (true, true) => self.apply(Owned::Remove(id(number))),
            (false, true) => return,
            (true, false) => {
                let rule = rule(number, kind, &mut self.dice);
                self.apply(Owned::Modify(rule));
            }
            (false, false) => {
                let rule = rule(number, kind, &mut self.dice);
                self.apply(Owned::Insert(rule));
            }
        }
        self.held[at] = !out;
    }

    fn check(&mut self) -> usize {
        let keys = headers(40, &mut self.dice);
        let right = answers(self.oracle.as_ref(), &keys);
        assert_eq!(answers(self.subject.as_ref(), &keys), right);
        for (key, &winner) in keys.as_slice().iter().zip(&right) {
            assert_eq!(self.subject.classify_one(key), winner);
            let mut mask = vec![0; key.len()];
            let subject = &self.subject;
            let masked = subject.classify_masked(key, &mut mask);
            assert_eq!(masked, winner);
            assert_eq!(subject.trace(key).winner, winner);
        }
        let rules = self.held.iter().filter(|held| **held).count();
        assert_eq!(self.subject.stats().rules, rules);
        let dynamic = self.subject.dynamic().unwrap();
        for (number, &held) in (0..).zip(&self.held) {
            assert_eq!(dynamic.contains(id(number)), held);
        }
        right.iter().filter(|winner| !winner.is_miss()).count()
    }

    /// Finishes all deferred work; it must end within a bounded number of
    /// steps.
    fn finish(&mut self) {
        let most = 50 * self.held.len() + 10_000;
        let mut steps = 0;
        while self.fitted().step(16) {
            steps += 16;
            assert!(steps < most, "{steps} steps and no end");
        }
    }
}

#[test]
fn reoptimisation_at_any_moment_changes_no_answer() {
    let (mut hits, mut adopted, mut mid_way, mut stale) = (0, 0, 0, 0);
    for (seed, spec) in (1..).zip([
        "forest",
        "forest:most=2",
        "forest:most=4:bucket=1:seed=9",
        "forest:without=nested",
        "tuplemerge",
        "tuplemerge:c=2:offline-c=1",
        "tuplemerge-offline:rebuild=500",
        "tuplemerge-vpp",
        "cut-split",
        "cut-split:fields=3:binth=2:change=4:spread=5",
    ]) {
        for ids in [30, 700] {
            let mut world = World::new(spec, ids, seed);
            let (mut snapshot, mut plans) = (Snapshot::new(), Vec::new());
            // Plans for other rules, with other hashes.
            let name = spec.split(':').next().unwrap();
            let mut other = World::new(&format!("{name}:seed=77"), 60, seed);
            (0..80).for_each(|_| other.change(2, 20));
            let foreign = other.plan();
            let (mut kind, mut share_out) = (0, 30);
            for _ in 0..6000 {
                match world.dice.below(400) {
                    0..2 => kind = world.dice.below(4),
                    2..4 => share_out = [5, 30, 60, 95][world.dice.below(4)],
                    // A snapshot is taken a few rules at a time, while rules
                    // change.
                    4..24 => {
                        if world.fitted().look(&mut snapshot) {
                            let plan = snapshot.compute(&mut NoProgress);
                            plans.push((plan.unwrap().unwrap(), kind));
                            snapshot = Snapshot::new();
                        }
                    }
                    24..32 => {
                        let which = world.dice.below(plans.len() + 1);
                        let plan = plans.get(which).map_or(&foreign, |(plan, _)| plan);
                        mid_way += usize::from(world.fitted().is_installing());
                        assert!(world.fitted().install(plan));
                        stale += usize::from(plans.get(which).is_none_or(|p| p.1 != kind));
                        adopted += 1;
                    }
                    32 => world.finish(),
                    33 => {
                        let steps = world.dice.below(50);
                        world.fitted().step(steps);
                    }
                    34 => world.engine().rebuild(&mut NoProgress).unwrap(),
                    35..75 => hits += world.check(),
                    _ => {
                        let kind = match world.dice.below(4) {
                            0 => world.dice.below(4),
                            _ => kind,
                        };
                        world.change(kind, share_out);
                    }
                }
            }
            world.finish();
            hits += world.check();
            // No removed rules remain.
            for number in 0..u32::try_from(ids).unwrap() {
                if std::mem::take(&mut world.held[number as usize]) {
                    world.apply(Owned::Remove(id(number)));
                }
            }
            world.finish();
            assert_eq!(world.check(), 0);
            assert_eq!(world.subject.stats().tables, 0, "empty tables go");
        }
    }
    assert!(hits > 10_000, "{hits} hits");
    assert!(adopted > 500 && mid_way > 100 && stale > 100);
}

#[test]
fn lookups_of_a_set_that_has_grown_cost_as_little_as_when_built() {
    let mut world = World::new("forest", 20_000, 5);
    let mut set = RuleSet::new(&Schema::ipv4_5tuple());
    for number in 0..20_000 {
        let rule = rule(number, number as usize % 3, &mut world.dice);
        set.extend([rule.clone()]);
        world.held[number as usize] = true;
        world.apply(Owned::Insert(rule));
    }
    let drift = |world: &World| drift_of(world.subject.as_ref());
    let grown = drift(&world);
    assert!(grown.is_due(), "{grown:?}");
    let plan = world.plan();
    assert!(world.fitted().install(&plan));
    assert!(drift(&world).installing && !drift(&world).is_due());
    // Updates alone do the work: an eighth as many updates as there are rules,
    // plus the updates that allocate slots.
    let mut updates = 0;
    while world.fitted().is_installing() {
        world.change(updates % 3, 10);
        updates += 1;
        // During the installation, a lookup costs at most the sum of the costs
        // in both structures.
        if updates % 256 == 0 {
            let now = drift(&world).current;
            assert!(now < 1.5 * grown.current, "{now} of {grown:?}");
        }
    }
    assert!(updates < 20_000 / 4, "{updates} updates");
    let adopted = drift(&world);
    assert!(
        adopted.current * 2.0 < grown.current,
        "{adopted:?}, before {grown:?}"
    );
    assert!(adopted.ratio() < 1.05 && !adopted.is_due());
    let built = build("forest", &set);
    let built = drift_of(built.as_ref());
    assert!(
        adopted.current < 1.3 * built.current,
        "{adopted:?}, built {built:?}"
    );
    assert!(world.check() > 0);
}

/// Inserts specific rules first: the online form makes many tables for them.
#[test]
fn tables_selected_in_the_background_are_as_good_as_those_of_a_build() {
    let mut world = World::new("tuplemerge", 6000, 8);
    let mut set = RuleSet::new(&Schema::ipv4_5tuple());
    for number in 0..6000_u32 {
        let kind = [2, 1, 0][number as usize / 2000];
        let rule = rule(number, kind, &mut world.dice);
        set.extend([rule.clone()]);
        world.held[number as usize] = true;
        world.apply(Owned::Insert(rule));
    }
    let grown = world.fitted().drift();
    assert!(grown.is_due(), "{grown:?}");
    let plan = world.plan();
    assert_eq!(plan.sequence(), 6000);
    assert!(world.fitted().install(&plan));
    assert!(world.fitted().drift().installing);
    // Updates move some of the rules, and steps move the rest.
    for number in 0..500 {
        let rule = set.rule(number).to_rule();
        world.apply(Owned::Modify(rule));
    }
    assert!(world.fitted().is_installing());
    assert!(world.check() > 0);
    world.finish();
    let installed = world.fitted().drift();
    assert!(!installed.is_due() && !installed.installing);
    let built = build("tuplemerge-offline", &set);
    let built = drift_of(built.as_ref());
    assert!(
        installed.current < 1.15 * built.current,
        "{installed:?}, built {built:?}"
    );
    assert!(world.check() > 0);
}

#[test]
fn a_plan_of_rules_that_are_all_gone_is_found_out() {
    let mut world = World::new("forest", 3000, 6);
    for _ in 0..6000 {
        world.change(0, 5);
    }
    let plan = world.plan();
    world.engine().rebuild(&mut NoProgress).unwrap();
    let before = world.fitted().drift();
    // Now all rules are of another kind, for which the plan has no mask.
    for number in 0..3000 {
        let rule = rule(number, 1, &mut world.dice);
        let held = std::mem::replace(&mut world.held[number as usize], true);
        world.apply(match held {
            true => Owned::Modify(rule),
            false => Owned::Insert(rule),
        });
    }
    assert!(world.fitted().install(&plan));
    world.finish();
    let after = world.fitted().drift();
    assert!(after.fitted <= before.fitted, "{after:?}, {before:?}");
    assert!(after.is_due(), "{after:?}");
    world.check();
}

#[test]
fn a_plan_that_does_not_fit_is_refused() {
    let set = RuleSet::new(&Schema::ipv4_5tuple());
    let mut forest = build("forest", &set);
    let forest = forest.as_dynamic().unwrap();
    let forest = forest.reoptimise_mut().unwrap();
    let plan = forest.snapshot().compute(&mut NoProgress);
    let plan = plan.unwrap().unwrap();
    let mut other = build("forest", &RuleSet::new(&Schema::ipv6_5tuple()));
    let other = other.as_dynamic().unwrap().reoptimise_mut().unwrap();
    assert!(!other.install(&plan));
    let mut linear = linear(&set);
    let linear = linear.as_dynamic().unwrap();
    assert!(linear.reoptimise().is_none() && linear.reoptimise_mut().is_none());
    let built = Table::build(
        &set,
        &EngineSpec::parse("tss").unwrap(),
        &Limits::default(),
        &mut NoProgress,
    );
    let (mut writer, table) = built.unwrap();
    assert!(!writer.install(&plan) && !writer.maintain(9));
    assert!(table.reader().plan(&mut NoProgress).unwrap().is_none());
    assert_eq!(writer.drift(), None);
}

#[test]
fn parts_of_a_policy_learn_on_their_own() {
    let spec = EngineSpec::parse("forest").unwrap();
    let mut policy = Policy::dual_stack();
    let (v4, v6) = (PartId::from_index(0), PartId::from_index(1));
    for number in 0..2000_u32 {
        let mut matches = [FieldMatch::Any; 5];
        matches[1] = FieldMatch::Exact(u128::from(number) << 7);
        let part = if number % 2 == 0 { v4 } else { v6 };
        let parts: &[(PartId, &[FieldMatch])] = &[(part, &matches)];
        policy
            .add(id(number), Priority(1), ActionId(0), parts)
            .unwrap();
    }
    let built = PolicyTable::build_policy(&policy, &spec, &Limits::default(), &mut NoProgress);
    let (mut writer, table) = built.unwrap();
    let mut direct = policy
        .build(&spec, &Limits::default(), &mut NoProgress)
        .unwrap();
    let mut reader = table.reader();
    for part in [v4, v6] {
        let plan = reader.plan(part, &mut NoProgress).unwrap().unwrap();
        let other = if part == v4 { v6 } else { v4 };
        assert!(!writer.install(other, &plan) && !direct.install(other, &plan));
        assert!(writer.install(part, &plan) && direct.install(part, &plan));
        assert!(writer.drift(part).unwrap().installing);
        while writer.maintain(64) {}
        while direct.maintain(64) {}
        assert!(!reader.drift(part).unwrap().installing);
    }
    // Both sides have finished all work.
    for _ in 0..2 {
        let guard = reader.pin();
        for (part, index) in [(v4, 0), (v6, 1)] {
            let rules = policy.part(part);
            let mut keys = KeyVec::new(rules.schema());
            for number in (index..2000).step_by(2) {
                keys.push(&[1, number << 7, 2, 3, 6]).unwrap();
            }
            let right: Vec<Winner> = keys.as_slice().iter().map(|key| rules.scan(key)).collect();
            assert!(right.iter().all(|winner| !winner.is_miss()));
            assert_eq!(answers(guard.part(part), &keys), right);
            assert_eq!(answers(direct.part(part), &keys), right);
        }
        drop(guard);
        let before = writer.visible();
        writer.apply(&PolicyTransaction::new()).unwrap();
        assert_ne!(writer.publish(), before);
    }
}
