//! [FCH14] Fig. 2 with own rules as the access lists of the pipeline.
//!
//! [FCH14]: classyard::papers#fch14

use classyard::Policy;
use classyard::policy::PartId;
use classyard_report::failure::Failure;
use classyard_workload::formats::{RuleFormat, write_policy};

use super::{cross_product, pipelines};
use crate::reproduce::claims::Section;
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, check_one_schema, compare_algorithms,
    with_priorities_from_1,
};
use crate::reproduce::statistics::coordinate;
use crate::reproduce::study::Study;

/// The logical datapaths without their access lists: the name, ports and subnets.
const DATAPATHS: [(&str, usize, usize); 4] = [
    ("2 ports and 1 subnet", 2, 1),
    ("4 ports and 2 subnets", 4, 2),
    ("8 ports and 4 subnets", 8, 4),
    ("16 ports and 8 subnets", 16, 8),
];

/// The greatest number of rules: each has its own priority of 16 bits, and the default rule
/// has 0.
const MAX_RULES: usize = 65_535;

/// Actions of rules whose packets are dropped. A rule without an action drops, too.
const DROPPING_ACTIONS: [&str; 2] = ["drop", "deny"];

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        column: "flows",
        title: "Flows of the pipeline",
    },
    Quantity {
        column: "entries",
        title: "Entries of the cross product",
    },
    Quantity {
        column: "paths",
        title: "Paths: header spaces of the cross product",
    },
    Quantity {
        column: "seconds",
        title: "CPU time to compute the cross product, s",
    },
];

/// Draws the cross products of pipelines with own access lists.
pub(super) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`cross-product` of fch14")?;
    let max_entries = cross_product::max_entries(study);
    let comparison = Comparison {
        figure: "cross-product",
        title: "The cross product of a whole pipeline (Fig. 2)",
        method: format!(
            "The rules are the access lists in both directions of the generated datapaths, in \
             place of blocked ports, as flows of Open vSwitch: ranges become several flows. \
             Packets of rules with the action drop or deny, or without an action, are dropped; \
             other packets go to the next table. The limit is {max_entries} entries."
        ),
        quantities: &QUANTITIES,
        engines: &DATAPATHS.map(|(name, ..)| name),
        generated: Generated::Profiles,
        sizes: &[],
        has_headers: false,
        options: format!(", {max_entries} entries"),
    };
    // No header is looked up.
    let headers = 1;
    let section = compare_algorithms(study, &comparison, "datapath", headers, |_, workload| {
        let acl = match access_list(&workload.policy) {
            Ok(acl) => acl,
            Err(reason) => return Ok(vec![Cell::refused(&reason); DATAPATHS.len()]),
        };
        let cells = DATAPATHS.map(|(_, ports, subnets)| {
            cell(ports, subnets, &acl, max_entries).unwrap_or_else(|reason| Cell::refused(&reason))
        });
        Ok(cells.into())
    })?;
    Ok(Section {
        claims: cross_product::claims(&[]),
        ..section
    })
}

/// Measures a datapath. Beyond the limit, the cell has the flows only.
fn cell(
    ports: usize,
    subnets: usize,
    acl: &[(String, bool)],
    max_entries: usize,
) -> Result<Cell, String> {
    let flows = pipelines::flows_with_acl(ports, subnets, acl)?;
    let measured = cross_product::measure_flows(&flows, max_entries);
    let flows = coordinate(measured.flows);
    if !measured.is_complete {
        return Ok(Cell {
            values: vec![flows],
            ..Cell::refused(&format!("more than {max_entries} entries"))
        });
    }
    Ok(Cell {
        refused: None,
        values: vec![
            flows,
            coordinate(measured.entries),
            coordinate(measured.paths),
            measured.seconds,
        ],
        wrong: 0,
    })
}

/// Returns the flows of an access list: a match with a priority above 0, and true if its
/// packets are dropped.
///
/// # Errors
/// The reason why flows cannot be the rules.
fn access_list(policy: &Policy) -> Result<Vec<(String, bool)>, String> {
    let rules = policy.part(PartId::FIRST).len();
    if rules > MAX_RULES {
        return Err(format!(
            "{rules} rules; a flow table has priorities for at most {MAX_RULES}"
        ));
    }
    let mut text = Vec::new();
    let policy = with_priorities_from_1(policy);
    let report = write_policy(&policy, RuleFormat::Ovs, &mut text);
    let report = report.map_err(|error| error.to_string())?;
    let lost = report.losses.total();
    if lost > 0 {
        return Err(format!("{lost} rules match other headers as flows"));
    }
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let flows = lines.filter_map(|line| {
        let (matched, action) = line.split_once(" actions=")?;
        let is_dropped = DROPPING_ACTIONS
            .iter()
            .any(|name| action.eq_ignore_ascii_case(name));
        Some((matched.to_owned(), is_dropped))
    });
    Ok(flows.collect())
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, FieldMatch, Priority, RuleId, RuleSet, Schema};

    use super::*;

    /// A policy that allows ports 81 to 83 of TCP and drops the other packets of TCP.
    fn policy() -> Policy {
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        let tcp = FieldMatch::Exact(6);
        let ports = FieldMatch::Range { low: 81, high: 83 };
        let any = FieldMatch::Any;
        for (number, matches) in [[any, any, any, any, tcp], [any, any, any, ports, tcp]]
            .into_iter()
            .enumerate()
        {
            let priority = Priority(u32::try_from(number).unwrap());
            let action = ActionId(u32::try_from(number).unwrap());
            let id = RuleId::from_index(number);
            rules.add(id, priority, action, &matches).unwrap();
        }
        let mut policy = Policy::from_parts("ipv4-5tuple", vec![rules]);
        policy.declare_action("deny");
        policy.declare_action("allow");
        policy
    }

    #[test]
    fn rules_become_flows_with_priorities_above_0() {
        let mut acl = access_list(&policy()).unwrap();
        acl.sort();
        // 81, and 82 with 83 under a mask; the rule for all ports has the lowest priority.
        assert_eq!(acl.len(), 3, "{acl:?}");
        assert_eq!(acl[0], ("priority=1,tcp".to_owned(), true));
        for (matched, is_dropped) in &acl[1..] {
            assert!(matched.starts_with("priority=2,tcp"), "{acl:?}");
            assert!(!is_dropped);
        }
    }

    #[test]
    fn access_lists_are_in_both_directions() {
        let acl = access_list(&policy()).unwrap();
        let with = pipelines::flows_with_acl(2, 1, &acl).unwrap();
        let without = pipelines::flows_with_acl(2, 1, &[]).unwrap();
        assert_eq!(with.len(), without.len() + 2 * acl.len());
        assert_eq!(without.len(), pipelines::flows(2, 0, 1).len());
        // The default rules of both tables remain.
        for table in [2, 6] {
            let table = with.iter().filter(|entry| entry.table.0 == table);
            assert_eq!(table.count(), acl.len() + 1);
        }
        let cell = cell(2, 1, &acl, 50_000).unwrap();
        assert_eq!(cell.refused, None);
        assert!(cell.values[1] > cell.values[0], "{cell:?}");
    }
}
