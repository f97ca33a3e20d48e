//! Chains of rules that jump to each other, as one list in which the first match decides.
//!
//! A jump is replaced by the rules of its target, for the packets that take the jump. A rule
//! that returns removes its packets from the rest of its chain. The packets that are left may
//! need many boxes: after returns for prefixes of both addresses, each pair of other prefixes
//! needs a box. Then the rules after the jump are added for the returning packets before the
//! rest of the chain.

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

/// The number of boxes of a chain's packets above which returning packets may be decided and not
/// removed. A return for one address of IPv6 leaves 128 boxes. After a quarter of
/// [`MAX_VISITS`], packets are decided only if they cannot be removed.
const MAX_KEPT_BOXES: usize = 1 << 8;

/// The maximum number of returns whose packets are examined inside each other.
const MAX_RETURNS: usize = 32;

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
pub(crate) struct ChainRule<'t> {
    pub(crate) source: SourceId,
    /// The number and the text of the line that problems are about.
    pub(crate) line: (usize, &'t str),
    /// The part of the line that problems point to.
    pub(crate) part: &'t str,
    pub(crate) packets: PacketSet,
    pub(crate) target: Target,
}

/// A chain: a list of rules that other rules can jump to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain<'t> {
    pub(crate) name: String,
    pub(crate) rules: Vec<ChainRule<'t>>,
}

/// The default action of a list, with the statement that states it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) source: SourceId,
    pub(crate) action: &'static str,
}

/// Adds the rules of the chain `first`, and of the chains that it jumps to, for `packets`, and
/// the default action. Problems are recorded with the rule that jumps too deep or expands too
/// much.
pub(crate) fn add_chain(
    builder: &mut Builder<'_>,
    chains: &[Chain<'_>],
    (first, packets): (usize, PacketSet),
    end: End,
) -> Result<(), ReadError> {
    let mut inliner = Inliner {
        builder,
        chains,
        path: vec![Call {
            chain: first,
            next: 0,
        }],
        end,
        visits: 0,
        pairs: 0,
        returns: 0,
    };
    inliner.add(&packets)?;
    inliner.builder.add(end.source, packets, end.action)
}

/// A chain that is being added, and the next rule of it.
#[derive(Clone, Copy, Debug)]
struct Call {
    chain: usize,
    next: usize,
}

struct Inliner<'a, 'b, 't> {
    builder: &'a mut Builder<'b>,
    chains: &'a [Chain<'t>],
    /// The chains that are being added, the innermost last.
    path: Vec<Call>,
    end: End,
    visits: usize,
    pairs: usize,
    /// The returns whose packets are being examined, inside each other.
    returns: usize,
}

impl<'t> Inliner<'_, '_, 't> {
    /// Adds the unread rules of the innermost chain for some packets.
    fn add(&mut self, entering: &PacketSet) -> Result<(), ReadError> {
        let mut packets = entering.clone();
        let chains = self.chains;
        while let Some(rule) = self.next_rule(chains) {
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
            match self.add_rule(rule, entering, &mut packets)? {
                Ok(()) => {}
                Err(TooManyBoxes) => self.problem(rule, TooManyBoxes.to_string()),
            }
            if packets.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the next rule of the innermost chain.
    fn next_rule<'c>(&mut self, chains: &'c [Chain<'t>]) -> Option<&'c ChainRule<'t>> {
        let call = self.path.last_mut().expect("a chain");
        let rule = chains[call.chain].rules.get(call.next)?;
        call.next += 1;
        Some(rule)
    }

    fn add_rule(
        &mut self,
        rule: &ChainRule<'t>,
        entering: &PacketSet,
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
            Target::Jump(chain) => self.enter(rule, *chain, &selected)?,
            Target::Goto(chain) => {
                // The packets do not come back to this chain.
                let call = *self.path.last().expect("a chain");
                self.path.last_mut().expect("a chain").next = usize::MAX;
                self.enter(rule, *chain, &selected)?;
                *self.path.last_mut().expect("a chain") = call;
                let kept_packets = packets.subtract(&rule.packets);
                return self.leave(packets, kept_packets, (entering, rule));
            }
            Target::Return => {
                let kept_packets = packets.subtract(&rule.packets);
                return self.leave(packets, kept_packets, (entering, rule));
            }
            Target::Leave { others } => {
                let kept_packets = packets.intersect(others);
                return self.leave(packets, kept_packets, (entering, rule));
            }
            Target::Continue => {}
        }
        Ok(Ok(()))
    }

    fn enter(
        &mut self,
        rule: &ChainRule<'t>,
        chain: usize,
        packets: &PacketSet,
    ) -> Result<(), ReadError> {
        let name = &self.chains[chain].name;
        if self.path.iter().any(|call| call.chain == chain) {
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
        self.path.push(Call { chain, next: 0 });
        self.add(packets)?;
        self.path.pop();
        Ok(())
    }

    /// Removes the packets that return by a rule from the packets of the innermost chain. `kept`
    /// are the others. If these need too many boxes, the returning packets are decided instead:
    /// all packets of the rule that entered the chain. Some of them may have left the chain
    /// before; the same rules follow for them.
    fn leave(
        &mut self,
        packets: &mut PacketSet,
        kept: Result<PacketSet, TooManyBoxes>,
        (entering, rule): (&PacketSet, &ChainRule<'t>),
    ) -> Result<Result<(), TooManyBoxes>, ReadError> {
        let returning = entering.intersect(&rule.packets);
        match (kept, returning) {
            (Ok(kept), Ok(returning)) if !self.is_decided_better(&kept, &returning) => {
                *packets = kept;
            }
            (Ok(kept), Err(TooManyBoxes)) => *packets = kept,
            (Err(error), _) if self.returns == MAX_RETURNS => return Ok(Err(error)),
            (_, Ok(returning)) => self.finish(returning)?,
            (Err(error), Err(_)) => return Ok(Err(error)),
        }
        Ok(Ok(()))
    }

    /// True if fewer boxes are added by a decision about the returning packets than by the rest
    /// of the chain for the packets that are kept. Jumps are not followed for that, and returns
    /// inside of each other could add too many rules.
    fn is_decided_better(&self, kept: &PacketSet, returning: &PacketSet) -> bool {
        let unread = |call: &Call| {
            let rules = self.chains[call.chain].rules.len();
            rules.saturating_sub(call.next)
        };
        let (innermost, callers) = self.path.split_last().expect("a chain");
        let after_return = 1 + callers.iter().map(unread).sum::<usize>();
        let (kept, returning) = (kept.boxes().len(), returning.boxes().len());
        kept > MAX_KEPT_BOXES
            && self.returns == 0
            && self.visits < MAX_VISITS / 4
            && kept.saturating_mul(unread(innermost)) > returning.saturating_mul(after_return)
    }

    /// Adds all rules that examine packets after they return from the innermost chain, and the
    /// default action. So no rule that is added later decides these packets.
    fn finish(&mut self, packets: PacketSet) -> Result<(), ReadError> {
        let path = self.path.clone();
        self.returns += 1;
        self.path.pop();
        while !self.path.is_empty() {
            self.add(&packets)?;
            self.path.pop();
        }
        self.returns -= 1;
        self.path = path;
        self.builder.add(self.end.source, packets, self.end.action)
    }

    fn problem(&mut self, rule: &ChainRule<'t>, found: String) {
        let (number, line) = rule.line;
        let fault = Fault::new(rule.part, found, "fewer or simpler rules");
        self.builder.problem(fault, number, line);
    }
}
