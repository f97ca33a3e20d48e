//! [DEC14] Table III and the equations of §IV.C with own rules.
//!
//! [DEC14]: classyard::papers#dec14

use classyard::policy::PartId;
use classyard::{EngineSpec, RuleSet};
use classyard_report::failure::Failure;

use super::PAPER_FORM;
use super::concurrency::{chunk_ns, predicted};
use super::equations::{RuleField, Search};
use super::forecast::{self, Forecast, MOST_PACKETS, latency_ns, rule_fields};
use super::latency::Model;
use super::model::Mode;
use super::own::lookups;
use super::rule_sets::{self, Distinct};
use crate::bench::size_name;
use crate::reproduce::claims::{Grid, Section};
use crate::reproduce::comparison::{
    Cell, Comparison, Generated, Quantity, check_one_schema, compare_algorithms, csv_line,
};
use crate::reproduce::statistics::coordinate;
use crate::reproduce::study::Study;

/// Counts the different matches of own rules in each field (Table III).
pub(super) fn draw_rule_sets(study: &mut Study<'_>) -> Result<Section, Failure> {
    let inputs = std::sync::Arc::clone(&study.inputs);
    let (mut grids, mut lines) = (Vec::new(), Vec::new());
    for own in &inputs.rules {
        for rules in own.policy.parts() {
            let distinct = Distinct::of(rules);
            let (rows, more_lines) = rows(&own.name, rules, &distinct);
            lines.extend(more_lines);
            grids.push(Grid {
                title: format!(
                    "{}: {} rules of {}, which name {:.1} fields in the mean",
                    own.name,
                    size_name(distinct.rules),
                    rules.schema().name(),
                    distinct.named
                ),
                columns: ["field", "different matches", "ρ", "the paper's ρ"]
                    .map(str::to_owned)
                    .to_vec(),
                words: 1,
                rows,
            });
        }
    }
    let heading = "rule_set,schema,rules,field,unique,ratio,paper_ratio";
    study.write_csv("own-rule-sets.csv", heading, &lines)?;
    Ok(Section {
        title: "The rule sets (Table III), own inputs".to_owned(),
        method: "The different matches of each field, a wildcard included. ρ is their number \
                 over the number of rules. The paper has a ratio for each of its fifteen fields."
            .to_owned(),
        claims: rule_sets::claims(Vec::new()),
        grids,
        pictures: Vec::new(),
    })
}

/// Returns the rows of the table, and of the file.
fn rows(name: &str, rules: &RuleSet, distinct: &Distinct) -> (Vec<Vec<String>>, Vec<String>) {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let paper = rule_fields();
    for (field, &unique) in rules.schema().fields().iter().zip(&distinct.unique) {
        let ratio = coordinate(unique) / coordinate(distinct.rules.max(1));
        let of_paper = paper.iter().find(|one| one.name == field.name());
        let of_paper = of_paper.map(|one| one.ratio.to_string());
        rows.push(vec![
            field.name().to_owned(),
            unique.to_string(),
            format!("{ratio:.4}"),
            of_paper.clone().unwrap_or("–".to_owned()),
        ]);
        lines.push(csv_line([
            name,
            rules.schema().name(),
            &distinct.rules.to_string(),
            field.name(),
            &unique.to_string(),
            &ratio.to_string(),
            &of_paper.unwrap_or_default(),
        ]));
    }
    (rows, lines)
}

/// The quantities of [`draw`]. Times are until all headers are done.
const QUANTITIES: [Quantity; 8] = [
    Quantity {
        column: "v_inst",
        title: "V_inst: instructions of a lookup by the equations",
    },
    Quantity {
        column: "v_1",
        title: "V_1: accesses to L1 of a lookup by eq. 1",
    },
    Quantity {
        column: "latency_ns",
        title: "Measured time of one header, ns",
    },
    Quantity {
        column: "equations_ns",
        title: "Time of one header by eq. 6, ns",
    },
    Quantity {
        column: "counts_ns",
        title: "Time of one header by our counts, ns",
    },
    Quantity {
        column: "latency_64_ns",
        title: "Measured time of 64 headers together, ns",
    },
    Quantity {
        column: "equations_64_ns",
        title: "Time of 64 headers together by eq. 6, ns",
    },
    Quantity {
        column: "counts_64_ns",
        title: "Time of 64 headers together by our counts, ns",
    },
];

/// Compares eq. 6 and our counts with measured times over own rules.
pub(super) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    check_one_schema(study, "`equations` of dec14")?;
    let sizes = study.dec14_sizes();
    let forecast = Forecast::fit(study, &sizes)?;
    let model = Model::fit(study)?;
    let chunk_ns = chunk_ns(study, &model)?;
    let comparison = Comparison {
        figure: "equations",
        title: "The paper's equations (§IV.C)",
        method: "The equations get N, and ρ and the width of each field, from the rules. The \
                 paper's groups of short fields are used if the rules have at least two of their \
                 fields. All constants are fitted to the figure's smallest generated rule sets, \
                 not to own rules. Measured are lookups with share=0, the form of the paper, on \
                 one core; times are CPU times until all headers are done. Our counts come from \
                 the built structure, with the model of Fig. 2."
            .to_owned(),
        quantities: &QUANTITIES,
        engines: &[PAPER_FORM],
        generated: Generated::OpenFlow15,
        sizes: &[],
        has_headers: true,
        options: String::new(),
    };
    let engine = EngineSpec::parse(PAPER_FORM).expect("a registered engine");
    let engine = engine.seeded(0);
    let headers = study.headers();
    let section = compare_algorithms(study, &comparison, "engine", headers, |study, workload| {
        let lookups = match lookups(study, workload, &engine) {
            Ok((lookups, _)) => lookups,
            Err(refused) => return Ok(vec![refused]),
        };
        let rules = workload.policy.len();
        let forecast = forecast.with_fields(own_fields(workload.policy.part(PartId::FIRST)));
        let together = predicted(&model, &lookups, MOST_PACKETS, chunk_ns);
        let values = vec![
            forecast.design(rules).instructions(),
            forecast.l1_accesses(rules),
            latency_ns(&lookups, 1),
            forecast.latency_ns(rules, 1, &forecast.alone),
            model.predict(&lookups, Mode::Single),
            latency_ns(&lookups, MOST_PACKETS),
            forecast.latency_ns(rules, MOST_PACKETS, &forecast.together),
            together * coordinate(MOST_PACKETS),
        ];
        Ok(vec![Cell {
            refused: None,
            values,
            wrong: lookups.wrong,
        }])
    })?;
    Ok(Section {
        claims: forecast::claims(&[], &[], Vec::new()),
        ..section
    })
}

/// Returns the fields of rules with their ratios.
fn own_fields(rules: &RuleSet) -> Vec<RuleField> {
    let distinct = Distinct::of(rules);
    let fields = rules.schema().fields().iter().zip(distinct.unique);
    let fields = fields.map(|(field, unique)| RuleField {
        name: field.name().to_owned(),
        width_bits: field.width(),
        ratio: coordinate(unique) / coordinate(distinct.rules.max(1)),
        search: Search::of(field.kind()),
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use classyard::{ActionId, FieldMatch, Priority, RuleId, Schema};

    use super::*;

    #[test]
    fn ratios_count_the_matches_of_own_rules() {
        let mut rules = RuleSet::new(&Schema::ipv4_5tuple());
        let any = FieldMatch::Any;
        for number in 0..4_u32 {
            let port = FieldMatch::Exact(u128::from(number / 2));
            let proto = FieldMatch::Exact(u128::from(number));
            let id = RuleId::new(number).unwrap();
            let matches = [any, any, any, port, proto];
            rules.add(id, Priority(1), ActionId(0), &matches).unwrap();
        }
        let fields = own_fields(&rules);
        let ratios: Vec<f64> = fields.iter().map(|field| field.ratio).collect();
        assert_eq!(ratios, [0.25, 0.25, 0.25, 0.5, 1.0]);
        assert_eq!(fields[4].search, Search::Hash);
        assert_eq!(fields[0].search, Search::Tree);
        let (rows, lines) = rows("a,b.rules", &rules, &Distinct::of(&rules));
        assert_eq!(rows[3], ["dport", "2", "0.5000", "0.1"]);
        assert_eq!(lines[3], "\"a,b.rules\",ipv4-5tuple,4,dport,2,0.5,0.1");
    }
}
