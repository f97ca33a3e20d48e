//! The order of the entries of a list, which decides later fragments as the rules do.
//!
//! A later fragment has no ports. On a router, an IPv4 entry that permits and has conditions
//! on the layer-4 header permits later fragments too, and no entry selects packets with the
//! header only. So before the first statement that would give later fragments another
//! action, entries with the word `fragments` decide all of them, also by the default action.
//! The entries after these decide the other packets.
//!
//! ASA examines reassembled packets. Its entries with conditions on the layer-4 header select
//! no later fragments, and it has no entries for later fragments alone.

use std::collections::HashSet;

use super::super::Refusal;
use super::super::statement::{Protocols, Statement, TCP};
use super::entry::Form;
use crate::builder::PERMIT;
use crate::packets::Field;

/// A part of a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'l, 'p> {
    Statement(Form<'l, 'p>),
    /// The start of the entries for later fragments.
    FragmentsStart,
    /// The default action for later fragments.
    FragmentsDefault,
}

/// The kinds of packets that a statement selects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Packets with and without the layer-4 header.
    All,
    /// Packets with the layer-4 header, and conditions on it or not.
    Header { has_layer4: bool },
    /// Later fragments.
    Later,
}

/// The fields on which later fragments are compared.
type LaterFields = (Option<(u128, u128)>, Option<(u128, u128)>, Protocols);

fn kind(statement: &Statement<'_>) -> Kind {
    match statement.range(Field::Fragment) {
        Some((0, 1)) => Kind::Header {
            has_layer4: statement.has_layer4(),
        },
        Some((2, 3)) => Kind::Later,
        // Other ranges are refused.
        _ => Kind::All,
    }
}

fn later_fields(statement: &Statement<'_>) -> LaterFields {
    (
        statement.bits(Field::Source),
        statement.bits(Field::Destination),
        statement.protocols,
    )
}

/// Returns for each statement whether later statements and the default action give all later
/// fragments its action.
fn is_confirmed(statements: &[&Statement<'_>], default: [Option<&str>; 2]) -> Vec<bool> {
    let mut remaining = default;
    let mut confirmed: Vec<bool> = Vec::with_capacity(statements.len());
    for statement in statements.iter().rev() {
        let remaining = &mut remaining[statement.family as usize];
        let is_same = *remaining == Some(statement.action);
        confirmed.push(is_same);
        if !is_same && !matches!(kind(statement), Kind::Header { .. }) {
            *remaining = None;
        }
    }
    confirmed.reverse();
    confirmed
}

/// Returns the statements of a family as forms. Two that are `established` become one.
fn forms<'l, 'p>(statements: impl Iterator<Item = &'l Statement<'p>>) -> Vec<Form<'l, 'p>>
where
    'p: 'l,
{
    let mut forms: Vec<Form<'l, 'p>> = Vec::new();
    for statement in statements {
        match forms.last_mut() {
            Some(last) if is_established(last.statement, statement) => last.is_established = true,
            _ => forms.push(Form::new(statement)),
        }
    }
    forms
}

/// True if two statements together select packets with ACK or RST.
fn is_established(first: &Statement<'_>, second: &Statement<'_>) -> bool {
    const ACK: u128 = 0x10;
    const RST: u128 = 0x04;
    let flags = [first, second].map(|statement| statement.bits(Field::TcpFlags));
    let [Some((value, mask)), Some((other, other_mask))] = flags else {
        return false;
    };
    let is_one = |bits| value == bits && mask == bits;
    let is_other = |bits| other == bits && other_mask & !(ACK | RST) == 0 && other_mask & bits != 0;
    (is_one(ACK) && is_other(RST) || is_one(RST) && is_other(ACK))
        && first.protocols == Protocols::One(TCP)
        && first.is_same_except(second, Field::TcpFlags)
}

/// Returns the parts of a router's list of one family.
pub(super) fn of_router<'l, 'p>(
    statements: impl Iterator<Item = &'l Statement<'p>>,
    default: &str,
    permits_later_fragments: bool,
) -> Vec<Part<'l, 'p>>
where
    'p: 'l,
{
    let forms = forms(statements);
    let first = first_to_separate(&forms, default, permits_later_fragments);
    let (before, after) = forms.split_at(first);
    let mut parts = Vec::new();
    for (index, form) in before.iter().enumerate() {
        let neighbours = [index.checked_sub(1), Some(index + 1)];
        let neighbours = neighbours.into_iter().flatten();
        let mut neighbours = neighbours.filter_map(|index| before.get(index));
        let is_said = permits_later_fragments && neighbours.any(|other| is_with(other, form));
        if !is_said {
            parts.push(Part::Statement(match kind(form.statement) {
                Kind::Later => form.for_fragments(),
                _ => *form,
            }));
        }
    }
    if after.is_empty() {
        return parts;
    }
    parts.push(Part::FragmentsStart);
    let fragments = after.iter();
    let fragments = fragments.filter(|form| !matches!(kind(form.statement), Kind::Header { .. }));
    let mut fragments: Vec<&Form<'_, '_>> = fragments.collect();
    // The default action decides the packets of the last ones, which are written below.
    while fragments
        .last()
        .is_some_and(|last| kind(last.statement) == Kind::All && last.statement.action == default)
    {
        fragments.pop();
    }
    let fragments = fragments.into_iter().map(|form| form.for_fragments());
    parts.extend(fragments.map(Part::Statement));
    parts.push(Part::FragmentsDefault);
    let others = after.iter().copied();
    let others = others.filter(|form| kind(form.statement) != Kind::Later);
    parts.extend(others.map(Part::Statement));
    parts
}

/// Returns the index of the first statement whose entry would give later fragments another
/// action than the rules.
fn first_to_separate(
    forms: &[Form<'_, '_>],
    default: &str,
    permits_later_fragments: bool,
) -> usize {
    let statements: Vec<&Statement<'_>> = forms.iter().map(|form| form.statement).collect();
    let confirmed = is_confirmed(&statements, [Some(default); 2]);
    let mut decided: HashSet<LaterFields> = HashSet::new();
    for (index, form) in forms.iter().enumerate() {
        let fields = later_fields(form.statement);
        let has_effect = match kind(form.statement) {
            Kind::Header { has_layer4: false } => true,
            Kind::Header { has_layer4: true } => {
                permits_later_fragments && form.statement.action == PERMIT
            }
            Kind::All | Kind::Later => {
                decided.insert(fields);
                false
            }
        };
        let is_said = || {
            let next = forms.get(index + 1);
            next.is_some_and(|next| is_with(form, next))
        };
        if has_effect && !confirmed[index] && !decided.contains(&fields) && !is_said() {
            return index;
        }
    }
    forms.len()
}

/// True if an entry with conditions on the layer-4 header also permits the later fragments of
/// another statement next to it.
fn is_with(form: &Form<'_, '_>, later: &Form<'_, '_>) -> bool {
    let (form, later) = (form.statement, later.statement);
    kind(form) == Kind::Header { has_layer4: true }
        && kind(later) == Kind::Later
        && form.action == PERMIT
        && later.action == PERMIT
        && form.name == later.name
        && later_fields(form) == later_fields(later)
}

/// Returns the parts of a list of a system that reassembles packets, and the number of
/// statements about later fragments that are left out.
///
/// # Errors
/// Each statement for packets with the layer-4 header, or for later fragments, whose entry
/// would give later fragments another action.
pub(super) fn of_reassembling<'l, 'p>(
    statements: &'l [Statement<'p>],
    default: [Option<&str>; 2],
) -> (Vec<Part<'l, 'p>>, Vec<Refusal>, usize) {
    let statements: Vec<&Statement<'_>> = statements.iter().collect();
    let confirmed = is_confirmed(&statements, default);
    let mut parts: Vec<Part<'l, 'p>> = Vec::new();
    let (mut refusals, mut left_out) = (Vec::new(), 0);
    for (statement, is_confirmed) in statements.into_iter().zip(confirmed) {
        match kind(statement) {
            Kind::Later if is_confirmed => left_out += 1,
            Kind::Later => refusals
                .push(statement.refuse("later fragments only, as ASA examines packets as a whole")),
            Kind::Header { has_layer4: false } if !is_confirmed => refusals.push(statement.refuse(
                "packets except later fragments, without ports or ICMP messages, as ASA examines \
                 packets as a whole",
            )),
            _ => match parts.last_mut() {
                Some(Part::Statement(last))
                    if !last.is_for_both && statement.is_form_of(last.statement) =>
                {
                    last.is_for_both = true;
                }
                _ => parts.push(Part::Statement(Form::new(statement))),
            },
        }
    }
    (parts, refusals, left_out)
}
