//! Own rules, headers and engines on several cores: rules split over cores, and a field a core
//! against a packet a core.

use classyard::policy::PartId;
use classyard::{FieldMatch, RuleSet};
use classyard_report::failure::Failure;

use super::fields::{self, TwoWays};
use super::split::{self, Split};
use super::{ENGINE, PAPER_FORM, WITHOUT_TIMES};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, check_one_schema, compare, compare_algorithms,
};
use crate::reproduce::study::Study;

const SPLIT: [Quantity; 4] = [
    Quantity {
        column: "whole_ns",
        title: "Time of a header with all rules on one core, ns",
    },
    Quantity {
        column: "part_ns",
        title: "Time until both cores are done with their rules, ns",
    },
    Quantity {
        column: "merge_ns",
        title: "Time to merge the winners, ns",
    },
    Quantity {
        column: "throughput_ratio",
        title: "Throughput over the throughput with a header a core",
    },
];

/// Draws own rules that are split over two cores.
pub(super) fn draw_split(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`split` of dec14")?;
    let comparison = Comparison {
        figure: "split",
        title: "One rule set split over cores, winners merged",
        method: format!(
            "Each of two threads has every second rule by rank and looks all headers up in \
             batches; the better of their winners wins. Times are elapsed times. Without own \
             rules, the rules have the fifteen fields of the paper. {WITHOUT_TIMES}"
        ),
        quantities: &SPLIT,
        engines: &[ENGINE, PAPER_FORM],
        generated: Generated::OpenFlow15,
        sizes: &[study.dec14_rules()],
        has_headers: true,
        options: String::new(),
    };
    let section = compare(study, &comparison, |_, workload, engines| {
        let rules = workload.policy.part(PartId::FIRST);
        let keys = workload.trace.part(PartId::FIRST).as_slice();
        let cells = engines.iter().map(|engine| {
            let split = match Split::of(rules, keys, engine) {
                Ok(split) => split,
                Err(error) => return Cell::refused(&error),
            };
            let (whole, part, merge) = (split.whole, split.part, split.merge);
            let values = vec![whole, part, merge, split.throughput_ratio()];
            timed_cell(split.objection, values, split.wrong)
        });
        Ok(cells.collect())
    })?;
    Ok(Section {
        claims: split::claims(Vec::new()),
        ..section
    })
}

/// Returns a cell, without its values if there is an objection to them.
fn timed_cell(objection: Option<String>, values: Vec<f64>, wrong: usize) -> Cell {
    Cell {
        values: if objection.is_some() {
            Vec::new()
        } else {
            values
        },
        refused: objection,
        wrong,
    }
}

/// The ways to use cores, in the order of the cells.
const WAYS: [&str; 3] = ["one core", "a packet a core", "a field a core"];

const FIELDS: [Quantity; 2] = [
    Quantity {
        column: "ns",
        title: "Time of a header, ns",
    },
    Quantity {
        column: "times_one_core",
        title: "Headers a second, divided by the rate of one core",
    },
];

/// Draws a field a core against a packet a core, over own rules.
pub(super) fn draw_fields(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`fields` of dec14")?;
    let comparison = Comparison {
        figure: "fields",
        title: "A field a core, against a packet a core",
        method: fields::method(),
        quantities: &FIELDS,
        engines: &WAYS,
        generated: Generated::OpenFlow15,
        sizes: &[],
        has_headers: true,
        options: String::new(),
    };
    let headers = study.headers();
    let section = compare_algorithms(study, &comparison, "way", headers, |_, workload| {
        let rules = workload.policy.part(PartId::FIRST);
        if let Some(reason) = refusal(rules) {
            return Ok(vec![Cell::refused(&reason); WAYS.len()]);
        }
        let ways = TwoWays::of(rules, workload.trace.part(PartId::FIRST).as_slice());
        let cells = [ways.alone, ways.packets, ways.fields].map(|ns| {
            let values = vec![ns, ways.alone / ns];
            timed_cell(ways.objection.clone(), values, ways.wrong)
        });
        Ok(cells.into())
    })?;
    Ok(Section {
        claims: fields::claims(Vec::new()),
        ..section
    })
}

/// Returns the reason why the vectors of the figure cannot hold rules, if there is one.
fn refusal(rules: &RuleSet) -> Option<String> {
    let max = fields::MAX_RULES;
    if rules.len() > max {
        let found = rules.len();
        return Some(format!(
            "{found} rules; the vectors of `fields` hold at most {max}"
        ));
    }
    let with_gaps = rules.iter().find_map(|rule| {
        let ids = rule.schema().field_ids();
        let mut gaps =
            ids.filter(|&id| has_gaps(rule.field(id), rule.schema().field(id).max_value()));
        Some((rule.id(), gaps.next()?))
    });
    with_gaps.map(|(rule, field)| {
        let field = rules.schema().field(field).name();
        format!(
            "rule {} has a mask with gaps in {field}; the vectors of `fields` hold ranges",
            rule.get()
        )
    })
}

/// True if the values that match are not a range.
fn has_gaps(matched: FieldMatch, max_value: u128) -> bool {
    let FieldMatch::Ternary { mask, .. } = matched else {
        return false;
    };
    let free = max_value & !mask;
    free & free.wrapping_add(1) != 0
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, Field, MatchKind, Priority, RuleId, Schema};

    use super::*;

    #[test]
    fn rules_with_gaps_and_too_many_rules_are_refused() {
        let schema = Schema::new("one", vec![Field::new("f", 16, MatchKind::Ternary)]).unwrap();
        let rules = |masks: &[u128]| {
            let mut rules = RuleSet::new(&schema);
            for (number, &mask) in masks.iter().enumerate() {
                let id = RuleId::from_index(number);
                let matched = FieldMatch::Ternary { value: 0, mask };
                rules.add(id, Priority(1), ActionId(0), &[matched]).unwrap();
            }
            rules
        };
        assert_eq!(refusal(&rules(&[0xffff, 0xff00, 0])), None);
        let reason = refusal(&rules(&[0xff00, 0xf0f0])).unwrap();
        assert!(
            reason.contains("rule 1 has a mask with gaps in f"),
            "{reason}"
        );
        let reason = refusal(&rules(&[0; 8_001])).unwrap();
        assert!(reason.contains("at most 8000"), "{reason}");
    }
}
