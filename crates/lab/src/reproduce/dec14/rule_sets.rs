//! [DEC14] Table III: the rule sets.
//!
//! [DEC14]: classyard::papers#dec14

use std::collections::HashSet;

use classyard::{FieldMatch, RuleSet};
use classyard_report::failure::Failure;
use classyard_workload::generate::OpenFlowRules;
use serde::{Deserialize, Serialize};

use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The fields of a rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Distinct {
    pub(super) rules: usize,
    /// The number of different matches in each field.
    pub(super) unique: Vec<usize>,
    /// The mean number of fields that a rule names.
    pub(super) named: f64,
}

impl Distinct {
    /// Counts the matches of rules.
    pub(super) fn of(rules: &RuleSet) -> Distinct {
        let ids: Vec<_> = rules.schema().field_ids().collect();
        let unique = ids.iter().map(|&id| {
            let matches: HashSet<FieldMatch> = rules.iter().map(|rule| rule.field(id)).collect();
            matches.len()
        });
        let named = rules.iter().map(|rule| {
            let named = ids.iter().filter(|&&id| rule.field(id) != FieldMatch::Any);
            named.count()
        });
        Distinct {
            rules: rules.len(),
            unique: unique.collect(),
            named: coordinate(named.sum()) / coordinate(rules.len().max(1)),
        }
    }
}

/// The greatest deviation from the paper's ratio, as a share.
const MAX_DEVIATION: f64 = 0.02;

/// Creates the table.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = study.dec14_sizes();
    study.expect_points(sizes.len());
    let ratios = OpenFlowRules::default().ratios;
    let schema = classyard::Schema::openflow15();
    let mut sets = Vec::new();
    for &rules in &sizes {
        sets.push(study.point(&format!("rule set, {rules} rules"), |study| {
            let policy = study.dec14_policy(rules, 0)?;
            Ok(Distinct::of(&policy.parts()[0]))
        })?);
    }
    let mut columns = vec!["field".to_owned(), "the paper's ρ".to_owned()];
    columns.extend(
        sizes
            .iter()
            .map(|&size| format!("ρ at {}", size_name(size))),
    );
    let mut grid = Grid {
        title: "Unique rules of each field over all rules".to_owned(),
        columns,
        words: 1,
        rows: Vec::new(),
    };
    let mut deviations = Vec::new();
    let mut lines = Vec::new();
    for (field, ratio) in schema.fields().iter().zip(ratios) {
        let index = grid.rows.len();
        let mut row = vec![field.name().to_owned(), format!("{ratio}")];
        // A short field has at most one value for each pattern of its bits, and the
        // wildcard.
        let max_unique = match field.width() {
            width @ 0..=16 => coordinate(1 << width) + 1.0,
            _ => f64::INFINITY,
        };
        let mut deviation = 0.0_f64;
        for set in &sets {
            let unique = coordinate(set.unique[index]);
            let expected = (ratio * coordinate(set.rules)).min(max_unique);
            let allowed = (MAX_DEVIATION * expected).max(1.0);
            deviation = deviation.max((unique - expected).abs() / allowed);
            row.push(format!("{:.4}", unique / coordinate(set.rules.max(1))));
            lines.push(format!("{},{},{ratio},{unique}", set.rules, field.name()));
        }
        deviations.push(Case::exact(field.name(), deviation));
        grid.rows.push(row);
    }
    study.write_csv("rule-sets.csv", "rules,field,ratio,unique", &lines)?;
    let named = sets.last().map_or(0.0, |set| set.named);
    Ok(Section {
        title: "The rule sets (Table III)".to_owned(),
        method: format!(
            "Rules whose fields have as many different matches as the paper's. It does not say how \
             often a field is a wildcard: ours name {named:.1} of fifteen fields in the mean. \
             Fields of few bits have fewer matches than the ratio: they are saturated, as the \
             paper says of ρ = 1."
        ),
        claims: claims(deviations),
        grids: vec![grid],
        pictures: Vec::new(),
    })
}

/// Returns the claim; without deviations, it is not measured.
pub(super) fn claims(deviations: Vec<Case>) -> Vec<Claim> {
    vec![
        Claim::new(
            "Table III",
            "The ratios of unique rules over all rules are ρ for each field, or what its bits \
             allow.",
        )
        .part(
            Part::new(
                "difference from ρ / 2 % or one match, the most of all sizes",
                Threshold::AtMost(1.0),
            )
            .cases(deviations)
            .grid("Unique rules", ""),
        ),
    ]
}
