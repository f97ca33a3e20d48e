//! Filling a pipeline from a text piece by piece.
//!
//! # Data layout
//! The text is held by the caller. Of flows, only the messages of one piece are held at a
//! time, and 4 bytes a flow for its line. Groups and meters are held as messages until
//! they are carried out, since groups may refer to groups that stand behind them.

use std::collections::HashMap;
use std::time::Duration;

use classyard::RuleId;
use classyard_text::Problems;
use classyard_text::line::counted_verb;
use classyard_text::ofctl::{Statement, StatementKind, statements};
use classyard_text::overlap::{self, Condition};

use super::{Located, Problem, Reader, order, refused};
use crate::action::GroupId;
use crate::flow::{FlowChange, FlowEntry};
use crate::flow_table::TableError;
use crate::meter::MeterId;
use crate::pipeline::{Change, Message, Pipeline};

/// Flows that are carried out together: enough that publishing a version costs little
/// for each, few enough that their messages take little memory.
const FLOWS_A_PIECE: usize = 1024;

/// A pipeline that was filled from a text.
pub struct Filled {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The lines of its entries, groups and meters.
    pub lines: Lines,
    /// Problems of lines that were skipped; none unless skipping was asked for.
    pub skipped: Problems,
    /// Remarks on what was read, one sentence each.
    pub notes: Vec<String>,
}

/// Lines of entries, groups and meters. The last line about one counts.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// By the number of the entry; 0 for none.
    flows: Vec<u32>,
    groups: HashMap<GroupId, usize>,
    meters: HashMap<MeterId, usize>,
}

impl Lines {
    /// The line of a flow entry.
    #[must_use]
    pub fn flow(&self, id: RuleId) -> Option<usize> {
        let line = *self.flows.get(id.index())?;
        usize::try_from(line).ok().filter(|&line| line != 0)
    }

    /// The line of a group.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<usize> {
        self.groups.get(&group).copied()
    }

    /// The line of a meter.
    #[must_use]
    pub fn meter(&self, meter: MeterId) -> Option<usize> {
        self.meters.get(&meter).copied()
    }

    fn set_flow(&mut self, id: RuleId, line: usize) {
        if self.flows.len() <= id.index() {
            self.flows.resize(id.index() + 1, 0);
        }
        self.flows[id.index()] = u32::try_from(line).unwrap_or(0);
    }
}

/// Fills an empty pipeline with what a text says, in the order that the
/// [module](super) describes. `source` names the text in messages.
///
/// Engines are built once over all entries, unless the pipeline has workers: then they
/// get the entries one after the other.
///
/// With `skip_bad`, lines with problems and lines that the pipeline refuses are left out
/// and counted.
///
/// # Errors
/// The problems of the text, or the first message that the pipeline refuses, unless they
/// are skipped. The pipeline is gone then.
pub fn fill(
    pipeline: Pipeline,
    source: &str,
    text: &str,
    skip_bad: bool,
    now: Duration,
) -> Result<Filled, Problems> {
    let mut pipeline = pipeline;
    let is_filling = pipeline.begin_filling();
    let mut filler = Filler {
        pipeline,
        lines: Lines::default(),
        problems: Problems::new(source),
        reader: Reader::of(text),
        skip_bad,
        is_refused: false,
        good: 0,
        now,
    };
    filler.all(text);
    let Filler {
        mut pipeline,
        lines,
        problems,
        reader,
        good,
        ..
    } = filler;
    if !problems.is_empty() && !skip_bad {
        return Err(problems.beside(good));
    }
    if is_filling {
        pipeline
            .rebuild()
            .map_err(|error| unbuilt(source, &error))?;
    }
    let mut notes: Vec<String> = reader.ports.note().into_iter().collect();
    if reader.stray_bits > 0 {
        let flows = counted_verb(reader.stray_bits, "flow", "has", "have");
        notes.push(format!(
            "{flows} a value with bits outside of its mask; they are ignored"
        ));
    }
    notes.extend(overlaps(&pipeline, &lines));
    Ok(Filled {
        pipeline,
        lines,
        skipped: problems,
        notes,
    })
}

/// The problem of a text whose entries no engine can be built over.
fn unbuilt(source: &str, error: &TableError) -> Problems {
    let found = format!("flows whose engine cannot be built: {error}");
    let mut problems = Problems::new(source);
    problems.push(Problem::at(
        1,
        "",
        "",
        found,
        "other flows, or another engine".to_owned(),
    ));
    problems
}

struct Filler<'t> {
    pipeline: Pipeline,
    lines: Lines,
    problems: Problems,
    reader: Reader<'t>,
    skip_bad: bool,
    /// True after the pipeline refused a message, unless those are skipped.
    is_refused: bool,
    good: usize,
    now: Duration,
}

impl<'t> Filler<'t> {
    fn all(&mut self, text: &'t str) {
        let is_flow = |one: &Statement<'t>| one.kind == StatementKind::Flow;
        let first: Vec<Statement<'t>> = statements(text).filter(|one| !is_flow(one)).collect();
        self.piece(&first);
        let mut piece = Vec::with_capacity(FLOWS_A_PIECE);
        for statement in statements(text).filter(is_flow) {
            piece.push(statement);
            if piece.len() == FLOWS_A_PIECE {
                self.piece(&piece);
                piece.clear();
            }
        }
        self.piece(&piece);
    }

    /// Reads some statements and carries them out, unless the text is bad already: then
    /// problems are counted only.
    fn piece(&mut self, statements: &[Statement<'t>]) {
        let mut located = Vec::with_capacity(statements.len());
        for statement in statements {
            match self.reader.message(statement) {
                Ok(message) => located.push(Located {
                    line: statement.number,
                    message,
                }),
                Err(fault) => self.problems.push_fault_of(statement, fault),
            }
        }
        self.good += located.len();
        if self.is_refused || (!self.problems.is_empty() && !self.skip_bad) {
            return;
        }
        let located = order::ordered(located);
        let numbers: Vec<usize> = located.iter().map(|one| one.line).collect();
        let messages: Vec<Message> = located.into_iter().map(|one| one.message).collect();
        let mut done = 0;
        while done < messages.len() {
            let end = match self.pipeline.apply(&messages[done..], self.now) {
                Ok(changes) => {
                    self.note_lines(&messages[done..], &numbers[done..], &changes);
                    return;
                }
                Err(refusal) => {
                    let refused = done + refusal.index();
                    self.refuse(statements, numbers[refused], refusal.error().to_string());
                    refused
                }
            };
            if !self.skip_bad {
                self.is_refused = true;
                return;
            }
            // Those before the refused message, which were taken back with it.
            let before = &messages[done..end];
            if let Ok(changes) = self.pipeline.apply(before, self.now) {
                self.note_lines(before, &numbers[done..end], &changes);
            }
            self.good -= 1;
            done = end + 1;
        }
    }

    fn refuse(&mut self, statements: &[Statement<'t>], number: usize, why: String) {
        if let Ok(at) = statements.binary_search_by_key(&number, |one| one.number) {
            let fault = refused(&statements[at], why);
            self.problems.push_fault_of(&statements[at], fault);
        }
    }

    /// Records the lines of messages that were carried out. Each flow made one entry, in
    /// their order.
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
                Message::Table(_) | Message::Port(..) => {}
            }
        }
    }
}

/// A note on flows of equal priority that overlap.
fn overlaps(pipeline: &Pipeline, lines: &Lines) -> Option<String> {
    let class = |entry: &FlowEntry| u64::from(entry.table.0) << 16 | u64::from(entry.priority);
    let entries = pipeline.flows().iter().map(|entry| (class(entry), entry));
    let found = overlap::find(entries, |entry: &FlowEntry, conditions| {
        conditions.extend(entry.flow.values().iter().map(|value| Condition {
            field: value.field.index(),
            value: value.value,
            mask: value.mask,
        }));
    });
    found.note(|entry| lines.flow(entry.id).unwrap_or(0))
}
