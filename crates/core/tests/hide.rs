//! Hiding rules of a static engine from lookups.

use classyard::engine::adapter::{Algorithm, EveryWidth, build_static};
use classyard::engine::{BuildRequest, Engine, Wraps};
use classyard::*;

/// A list of rules, best first, each with a flag for hidden rules.
struct List(RuleSet, Vec<(usize, bool)>);

impl List {
    fn shown(&self) -> impl Iterator<Item = RuleRef<'_>> {
        let shown = self.1.iter().filter(|rule| !rule.1);
        shown.map(|rule| self.0.rule(rule.0))
    }
}

impl<const W: usize> Algorithm<W> for List {
    type Buffers = ();

    fn build(request: &mut BuildRequest<'_>) -> Result<List, BuildError> {
        let order = request.rules.by_rank();
        let order = order.into_iter().map(|index| (index as usize, false));
        Ok(List(request.rules.clone(), order.collect()))
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let mut better = self.shown().take_while(|rule| rule.winner().beats(best));
        let first = better.find(|rule| rule.matches(key));
        first.map_or(best, |rule| rule.winner())
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        mask.fill(u64::MAX);
        self.improve(key, best)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        LookupTrace {
            probes: Vec::new(),
            tables: 1,
            winner: self.improve(key, Winner::MISS),
        }
    }

    fn rules(&self) -> usize {
        self.shown().count()
    }

    fn tables(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        let position = self.0.position(id);
        let rule = self.1.iter_mut().find(|rule| Some(rule.0) == position);
        Some(rule.is_some_and(|rule| !std::mem::replace(&mut rule.1, true)))
    }
}

struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = List;
}

static LIST: &[Engine] = &[Engine {
    name: "list",
    summary: "rules in a list, best first",
    paper: "none",
    wraps: Wraps::Nothing,
    options: &[],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<AnyWidth>,
    estimate: |_, _| unreachable!("not called here"),
}];

fn rules() -> RuleSet {
    let schema = Schema::ipv4_5tuple();
    let mut rules = RuleSet::new(&schema);
    for number in 0..40 {
        let mut matches = [FieldMatch::Any; 5];
        matches[4] = FieldMatch::Exact(u128::from(number) % 4);
        let id = RuleId::new(number).unwrap();
        let priority = Priority(number / 4);
        rules.add(id, priority, ActionId(0), &matches).unwrap();
    }
    rules
}

#[test]
fn hidden_rules_win_no_lookup() {
    let rules = rules();
    let spec = EngineSpec::parse_in(LIST, "list").unwrap();
    let built = spec.build(&rules, &Limits::default(), &mut NoProgress);
    let mut list = built.unwrap();
    assert!(list.dynamic().is_none() && list.as_dynamic().is_none());
    let mut keys = KeyVec::new(rules.schema());
    (0..4).for_each(|protocol| keys.push(&[1, 2, 3, 4, protocol]).unwrap());
    let mut scratch = Scratch::new();
    for left in (0..10_u32).rev() {
        for protocol in 0..4 {
            let best = RuleId::new(4 * left + protocol).unwrap();
            let key = keys.key(protocol as usize);
            assert_eq!(list.classify_one(key).rule(), Some(best));
            let mut mask = vec![0; key.len()];
            let masked = list.classify_masked(key, &mut mask);
            assert_eq!(masked.rule(), Some(best));
            assert_eq!(list.hide(best), Some(true));
            assert_eq!(list.hide(best), Some(false), "it is hidden already");
            assert_eq!(list.stats().rules, (4 * left + 3 - protocol) as usize);
        }
    }
    let mut winners = [Winner::MISS; 4];
    list.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
    assert_eq!(winners, [Winner::MISS; 4]);
    assert_eq!(list.hide(RuleId::new(99).unwrap()), Some(false));
}

#[test]
fn engines_that_take_updates_remove_rules_instead() {
    let rules = rules();
    for spec in EngineSpec::all().filter(EngineSpec::is_dynamic) {
        let built = spec.build(&rules, &Limits::default(), &mut NoProgress);
        let mut built = built.unwrap();
        assert_eq!(built.hide(RuleId::new(3).unwrap()), None, "{spec}");
        assert_eq!(built.stats().rules, rules.len(), "{spec}");
    }
}
