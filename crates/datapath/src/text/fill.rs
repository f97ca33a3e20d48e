//! Fills a pipeline from a text piece by piece.
//!
//! # Data layout
//! The text stays with the caller. In addition, [`fill`] holds the flow messages of at
//! most four pieces at a time, 4 bytes for the line number of each flow, and all messages
//! about tables, groups, meters and ports, since a group may refer to a later group.
//!
//! # Threads
//! A second thread reads the next pieces of a text that has more than one piece of flows.
//! Another searches for overlapping flows while engines are built. If the system has no
//! thread left, the calling thread does this work.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use classyard::RuleId;
use classyard_text::Problems;
use classyard_text::line::counted_verb;
use classyard_text::ofctl::{Statement, StatementKind, statements};
use classyard_text::overlap::{self, Condition};

use super::{Fault, Located, Problem, Reader, order, refused};
use crate::action::{GroupId, PortNo};
use crate::flow::{FlowChange, FlowEntry, FlowStore};
use crate::meter::MeterId;
use crate::pipeline::{Change, Message, Pipeline};
use crate::table_settings::TableError;

/// Flows in a piece. More flows make publishing cheaper for each flow, fewer flows take less
/// memory.
const FLOWS_PER_PIECE: usize = 1024;

/// Maximum number of pieces that wait between the thread that reads and the thread that
/// changes the pipeline. These threads process one or two more pieces.
const WAITING_PIECES: usize = 2;

/// A pipeline filled from a text.
pub struct Filled {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The line numbers of its entries, groups, meters and ports.
    pub lines: Lines,
    /// The numbers of ports by name, also of names that got a number because no line gives
    /// them.
    pub port_numbers: BTreeMap<String, u32>,
    /// Problems of skipped lines; empty unless `skip_bad` is set.
    pub skipped: Problems,
    /// Remarks on the text, one sentence each.
    pub notes: Vec<String>,
}

/// Line numbers of entries, groups, meters and ports, counted from 1. If several lines change an
/// item, the number of the last line.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Lines indexed by entry number; 0 for no line.
    flows: Vec<u32>,
    groups: HashMap<GroupId, usize>,
    meters: HashMap<MeterId, usize>,
    ports: HashMap<PortNo, usize>,
}

impl Lines {
    /// Returns the line number of a flow entry, or `None` if no line added it.
    #[must_use]
    pub fn flow(&self, id: RuleId) -> Option<usize> {
        let line = *self.flows.get(id.index())?;
        usize::try_from(line).ok().filter(|&line| line != 0)
    }

    /// Returns the line number of a group, or `None` if no line added it.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<usize> {
        self.groups.get(&group).copied()
    }

    /// Returns the line number of a meter, or `None` if no line added it.
    #[must_use]
    pub fn meter(&self, meter: MeterId) -> Option<usize> {
        self.meters.get(&meter).copied()
    }

    /// Returns the line number of a port, or `None` if no line describes it.
    #[must_use]
    pub fn port(&self, port: PortNo) -> Option<usize> {
        self.ports.get(&port).copied()
    }

    /// Returns the ports that lines describe, in any order.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> {
        self.ports.keys().copied()
    }

    fn set_flow(&mut self, id: RuleId, line: usize) {
        if self.flows.len() <= id.index() {
            self.flows.resize(id.index() + 1, 0);
        }
        self.flows[id.index()] = u32::try_from(line).unwrap_or(0);
    }
}

/// Fills an empty pipeline from a text, in the order that the [module](super) describes.
/// `source` names the text in messages.
///
/// Engines are built once over all entries. If the pipeline has workers, engines get the
/// entries one by one instead.
///
/// With `skip_bad`, lines with problems and lines that the pipeline refuses are skipped and
/// counted.
///
/// # Errors
/// The problems of the text, or the first message that the pipeline refuses, unless
/// `skip_bad` is set. Then the pipeline is dropped.
pub fn fill(
    pipeline: Pipeline,
    source: &str,
    text: &str,
    skip_bad: bool,
    now: Duration,
) -> Result<Filled, Problems> {
    let mut pipeline = pipeline;
    let is_filling = pipeline.begin_filling();
    let reader = Reader::of(text);
    let mut filler = Filler {
        pipeline,
        lines: Lines::default(),
        problems: Problems::new(source),
        skip_bad,
        is_refused: false,
        good: 0,
        now,
    };
    let reader = filler.all(text, reader);
    let Filler {
        mut pipeline,
        lines,
        problems,
        good,
        ..
    } = filler;
    if !problems.is_empty() && !skip_bad {
        return Err(problems.with_good_lines(good));
    }
    let overlaps = |flows: &FlowStore| overlap_note(flows, &lines);
    let overlap_note = if is_filling {
        let built = pipeline.rebuild_beside(overlaps);
        built.map_err(|error| unbuilt(source, &error))?
    } else {
        overlaps(pipeline.flows())
    };
    let mut notes: Vec<String> = reader.ports.note().into_iter().collect();
    if reader.stray_bits > 0 {
        let flows = counted_verb(reader.stray_bits, "flow", "has", "have");
        notes.push(format!(
            "{flows} a value with bits outside of its mask; they are ignored"
        ));
    }
    notes.extend(overlap_note);
    Ok(Filled {
        pipeline,
        lines,
        port_numbers: reader.ports.into_numbers(),
        skipped: problems,
        notes,
    })
}

/// Returns the problem of a text for whose entries no engine can be built.
fn unbuilt(source: &str, error: &TableError) -> Problems {
    let description = format!("flows whose engine cannot be built: {error}");
    let mut problems = Problems::new(source);
    problems.push(Problem::at(
        1,
        "",
        "",
        description,
        "other flows, or another engine".to_owned(),
    ));
    problems
}

/// Consecutive statements, with the messages and faults that were read from them.
struct Piece<'t> {
    statements: Vec<Statement<'t>>,
    located: Vec<Located>,
    /// Faults, with the position of their statement.
    faults: Vec<(usize, Fault<'t>)>,
}

impl<'t> Piece<'t> {
    fn read(statements: Vec<Statement<'t>>, reader: &mut Reader<'t>) -> Piece<'t> {
        let (mut located, mut faults) = (Vec::with_capacity(statements.len()), Vec::new());
        for (index, statement) in statements.iter().enumerate() {
            match reader.message(statement) {
                Ok(message) => located.push(Located {
                    line: statement.number,
                    message,
                }),
                Err(fault) => faults.push((index, fault)),
            }
        }
        Piece {
            statements,
            located,
            faults,
        }
    }
}

/// Reads flows piece by piece.
fn pieces<'t>(
    mut flows: impl Iterator<Item = Statement<'t>>,
    reader: &mut Reader<'t>,
) -> impl Iterator<Item = Piece<'t>> {
    std::iter::from_fn(move || {
        let statements: Vec<_> = flows.by_ref().take(FLOWS_PER_PIECE).collect();
        (!statements.is_empty()).then(|| Piece::read(statements, reader))
    })
}

/// Sends pieces until none is left or the receiver has been dropped.
fn send_all<'t>(pieces: impl Iterator<Item = Piece<'t>>, sender: &SyncSender<Piece<'t>>) {
    for piece in pieces {
        if sender.send(piece).is_err() {
            return;
        }
    }
}

struct Filler {
    pipeline: Pipeline,
    lines: Lines,
    problems: Problems,
    skip_bad: bool,
    /// True after the pipeline refused a message, unless `skip_bad` is set.
    is_refused: bool,
    good: usize,
    now: Duration,
}

impl Filler {
    /// Reads a text and carries out its messages. Returns the reader.
    fn all<'t>(&mut self, text: &'t str, mut reader: Reader<'t>) -> Reader<'t> {
        let is_flow = |statement: &Statement<'t>| statement.kind == StatementKind::Flow;
        let non_flows = statements(text).filter(|statement| !is_flow(statement));
        self.carry_out(Piece::read(non_flows.collect(), &mut reader));
        let mut flows = statements(text).filter(is_flow);
        let first: Vec<Statement<'t>> = flows.by_ref().take(FLOWS_PER_PIECE).collect();
        let is_last = first.len() < FLOWS_PER_PIECE;
        self.carry_out(Piece::read(first, &mut reader));
        if is_last {
            return reader;
        }
        let reader = Mutex::new(reader);
        let lock = || reader.lock().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| {
            let (sender, received) = sync_channel(WAITING_PIECES);
            let later = flows.clone();
            let reading = thread::Builder::new().spawn_scoped(scope, move || {
                send_all(pieces(later, &mut lock()), &sender);
            });
            match reading {
                Ok(_) => received.iter().for_each(|piece| self.carry_out(piece)),
                Err(_) => pieces(flows, &mut lock()).for_each(|piece| self.carry_out(piece)),
            }
        });
        reader.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out the messages of some statements. After an earlier problem that is not
    /// skipped, only counts problems.
    fn carry_out(&mut self, piece: Piece<'_>) {
        let Piece {
            statements,
            located,
            faults,
        } = piece;
        for (index, fault) in faults {
            self.problems.push_fault_of(&statements[index], fault);
        }
        self.good += located.len();
        if self.is_refused || (!self.problems.is_empty() && !self.skip_bad) {
            return;
        }
        let located = order::ordered(located);
        let numbers: Vec<usize> = located.iter().map(|line| line.line).collect();
        let messages: Vec<Message> = located.into_iter().map(|line| line.message).collect();
        let mut done = 0;
        while done < messages.len() {
            let refused = match self.pipeline.apply(&messages[done..], self.now) {
                Ok(changes) => {
                    self.note_lines(&messages[done..], &numbers[done..], &changes);
                    return;
                }
                Err(refusal) => {
                    let refused = done + refusal.index();
                    self.refuse(&statements, numbers[refused], refusal.error().to_string());
                    refused
                }
            };
            if !self.skip_bad {
                self.is_refused = true;
                return;
            }
            // Repeats the messages before the refused one, which were undone with it.
            let before = &messages[done..refused];
            if let Ok(changes) = self.pipeline.apply(before, self.now) {
                self.note_lines(before, &numbers[done..refused], &changes);
            }
            self.good -= 1;
            done = refused + 1;
        }
    }

    fn refuse(&mut self, statements: &[Statement<'_>], number: usize, why: String) {
        if let Ok(at) = statements.binary_search_by_key(&number, |statement| statement.number) {
            let fault = refused(&statements[at], why);
            self.problems.push_fault_of(&statements[at], fault);
        }
    }

    /// Records the lines of messages that were carried out. Each flow message has changed one
    /// entry; the changes are in the order of the messages.
    fn note_lines(&mut self, messages: &[Message], numbers: &[usize], changes: &[Change]) {
        let mut entries = changes.iter().filter_map(|change| match change {
            Change::Flow(FlowChange::Added(new)) => Some(new.id),
            Change::Flow(FlowChange::Changed { new, .. }) => Some(new.id),
            _ => None,
        });
        for (message, &line) in messages.iter().zip(numbers) {
            match message {
                Message::Flow(_) => {
                    if let Some(id) = entries.next() {
                        self.lines.set_flow(id, line);
                    }
                }
                Message::Group(group) => {
                    self.lines.groups.insert(group.group.id, line);
                }
                Message::Meter(meter) => {
                    self.lines.meters.insert(meter.meter.id, line);
                }
                Message::Port(port, _) => {
                    self.lines.ports.insert(*port, line);
                }
                Message::Table(_) => {}
            }
        }
    }
}

/// Returns a note on flows of equal priority that overlap.
fn overlap_note(flows: &FlowStore, lines: &Lines) -> Option<String> {
    let class = |entry: &FlowEntry| u64::from(entry.table.0) << 16 | u64::from(entry.priority);
    let entries = flows.iter().map(|entry| (class(entry), entry));
    let overlaps = overlap::find(entries, |entry: &FlowEntry, conditions| {
        conditions.extend(entry.flow.values().map(|value| Condition {
            field: value.field.index(),
            value: value.value,
            mask: value.mask,
        }));
    });
    overlaps.note(|entry| lines.flow(entry.id).unwrap_or(0))
}
