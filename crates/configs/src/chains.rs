//! Chains of rules that jump to each other, as one list in which the first match decides.
//!
//! A jump is replaced by the rules of its target, for the packets that take the jump. A rule
//! that returns removes its packets from the rest of its chain.

use classyard_text::Fault;
use classyard_workload::diagnostic::ReadError;

use crate::builder::{Builder, SourceId};
use crate::packets::{PacketSet, TooManyBoxes};

/// The maximum number of jumps inside each other.
const MAX_DEPTH: usize = 32;

/// The maximum number of times that rules are visited, for each list.
const MAX_VISITS: usize = 1 << 20;

/// The maximum number of pairs of boxes that are compared, for each list. A large set of
/// packets that reaches many large rules needs many.
const MAX_PAIRS: usize = 1 << 26;

/// What a rule of a chain does with its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Decides them.
    Verdict(String),
    /// Examines them in another chain, and then continues in this one.
    Jump(usize),
    /// Examines them in another chain, and then continues after the jump to this one.
    Goto(usize),
    /// Continues after the jump to this chain.
    Return,
    /// Like `Return`. `others` are all packets that the rule does not select; they may be
    /// much simpler than the difference of the sets.
    Leave { others: PacketSet },
    /// Continues with the next rule.
    Continue,
}

/// A rule of a chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainRule {
    pub(crate) source: SourceId,
    pub(crate) line: usize,
    pub(crate) packets: PacketSet,
    pub(crate) target: Target,
}

/// A chain: a list of rules that other rules can jump to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub(crate) name: String,
    pub(crate) rules: Vec<ChainRule>,
}

/// Adds the rules of the chain `first`, and of the chains that it jumps to, for `packets`.
/// Problems are recorded with the rule that jumps too deep or expands too much.
pub(crate) fn add_chain(
    builder: &mut Builder<'_>,
    chains: &[Chain],
    first: usize,
    packets: PacketSet,
) -> Result<(), ReadError> {
    let mut inliner = Inliner {
        builder,
        chains,
        path: vec![first],
        visits: 0,
        pairs: 0,
    };
    inliner.add(packets)
}

struct Inliner<'a, 'b> {
    builder: &'a mut Builder<'b>,
    chains: &'a [Chain],
    /// The chains that are being added, the innermost last.
    path: Vec<usize>,
    visits: usize,
    pairs: usize,
}

impl Inliner<'_, '_> {
    /// Adds the rules of the innermost chain for some packets.
    fn add(&mut self, mut packets: PacketSet) -> Result<(), ReadError> {
        let chains = self.chains;
        let chain = &chains[*self.path.last().expect("a chain")];
        for rule in &chain.rules {
            self.visits += 1;
            if self.visits > MAX_VISITS {
                self.problem(
                    rule,
                    format!("more than {MAX_VISITS} rules after all jumps"),
                );
                return Ok(());
            }
            let others = match &rule.target {
                Target::Leave { others } => others.boxes().len(),
                _ => 0,
            };
            let boxes = rule.packets.boxes().len() + others;
            let pairs = packets.boxes().len().saturating_mul(boxes);
            self.pairs = self.pairs.saturating_add(pairs);
            if self.pairs > MAX_PAIRS {
                let found = format!("more than {MAX_PAIRS} comparisons of matches after all jumps");
                self.problem(rule, found);
                return Ok(());
            }
            match self.add_rule(rule, &mut packets)? {
                Ok(()) => {}
                Err(TooManyBoxes) => self.problem(rule, TooManyBoxes.to_string()),
            }
            if packets.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn add_rule(
        &mut self,
        rule: &ChainRule,
        packets: &mut PacketSet,
    ) -> Result<Result<(), TooManyBoxes>, ReadError> {
        let selected = match packets.intersect(&rule.packets) {
            Ok(selected) => selected,
            Err(error) => return Ok(Err(error)),
        };
        if selected.is_empty() {
            return Ok(Ok(()));
        }
        match &rule.target {
            Target::Verdict(action) => self.builder.add(rule.source, selected, action)?,
            Target::Jump(chain) => self.enter(rule, *chain, selected)?,
            Target::Goto(chain) => {
                self.enter(rule, *chain, selected)?;
                return Ok(leave(packets, &rule.packets));
            }
            Target::Return => return Ok(leave(packets, &rule.packets)),
            Target::Leave { others } => match packets.intersect(others) {
                Ok(kept) => *packets = kept,
                Err(error) => return Ok(Err(error)),
            },
            Target::Continue => {}
        }
        Ok(Ok(()))
    }

    fn enter(
        &mut self,
        rule: &ChainRule,
        chain: usize,
        packets: PacketSet,
    ) -> Result<(), ReadError> {
        let name = &self.chains[chain].name;
        if self.path.contains(&chain) {
            self.problem(rule, format!("a loop of jumps through the chain `{name}`"));
            return Ok(());
        }
        if self.path.len() == MAX_DEPTH {
            self.problem(
                rule,
                format!("more than {MAX_DEPTH} jumps inside each other"),
            );
            return Ok(());
        }
        self.path.push(chain);
        self.add(packets)?;
        self.path.pop();
        Ok(())
    }

    fn problem(&mut self, rule: &ChainRule, found: String) {
        let text = self.builder.source_mut(rule.source).text.clone();
        let fault = Fault::new(&text, found, "fewer or simpler rules");
        self.builder.problem(fault, rule.line, &text);
    }
}

/// Removes the packets of a rule from the packets of a chain.
fn leave(packets: &mut PacketSet, of_rule: &PacketSet) -> Result<(), TooManyBoxes> {
    *packets = packets.subtract(of_rule)?;
    Ok(())
}
