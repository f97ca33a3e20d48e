//! A rule set as the access list of a pipeline.

use std::fmt::Write as _;
use std::time::Duration;

use classyard::policy::PartId;
use classyard::{EngineSpec, FieldMatch, Policy, RuleSet};
use classyard_datapath::flow::TableId;
use classyard_datapath::pipeline::{Message, Pipeline, PortState};
use classyard_datapath::{PortNo, TableSettings, text};
use classyard_report::failure::Failure;
use classyard_workload::formats::{RuleFormat, write_policy};

/// An engine with fewer rules is rebuilt when an entry brings a new field; as in
/// `replay`.
const REBUILD_BELOW: usize = 1_000;

/// The input and output ports of packets.
pub(super) const IN_PORT: u32 = 1;
const OUT_PORT: u32 = 2;

/// The table with the access list.
pub(super) const ACL_TABLE: TableId = TableId(0);

/// The messages that create a pipeline.
pub(super) struct Acl {
    messages: Vec<Message>,
    /// Entries of the access list, without the default rule.
    pub(super) flows: usize,
    /// All entries, as a flow file. The entries of the access list have cookies, counted from
    /// 1; the others have cookie 0.
    pub(super) text: String,
}

impl Acl {
    /// Returns the access list of a rule set: ranges become several entries, and every
    /// rule accepts.
    pub(super) fn of(policy: &Policy) -> Result<Acl, Failure> {
        let mut flows = Vec::new();
        write_policy(policy, RuleFormat::Ovs, &mut flows)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Acl::new(&String::from_utf8_lossy(&flows))
    }

    /// Returns an access list with the default rule only.
    pub(super) fn without_rules() -> Result<Acl, Failure> {
        Acl::new("")
    }

    /// Returns an access list of these flows; their actions are ignored.
    fn new(flows: &str) -> Result<Acl, Failure> {
        let mut pipeline = String::with_capacity(flows.len() + 200);
        let mut count = 0;
        let matches = flows.lines().filter(|line| !line.starts_with('#'));
        for line in matches {
            let match_end = line.find(" actions=").unwrap_or(line.len());
            count += 1;
            // Writing to a String cannot fail.
            let _ = writeln!(
                pipeline,
                "table=0,cookie={count},{} actions=goto_table:1",
                &line[..match_end]
            );
        }
        let _ = writeln!(pipeline, "table=0,priority=0 actions=goto_table:1");
        let _ = writeln!(
            pipeline,
            "table=1,in_port={IN_PORT} actions=output:{OUT_PORT}"
        );
        let ports = [IN_PORT, OUT_PORT].map(PortNo);
        let ports = ports.map(|port| Message::Port(port, Some(PortState::default())));
        let read = text::read(&pipeline).map_err(|problems| {
            let first = problems.shown().first().map(ToString::to_string);
            Failure::usage(format!(
                "flows that were written cannot be read: {}",
                first.unwrap_or_default()
            ))
        })?;
        let mut messages = ports.to_vec();
        messages.extend(read.into_iter().map(|one| one.message));
        Ok(Acl {
            messages,
            flows: count,
            text: pipeline,
        })
    }

    /// Builds a pipeline with this engine in every table.
    pub(super) fn pipeline(&self, engine: &str) -> Result<Pipeline, Failure> {
        let spec = EngineSpec::parse(engine).expect("a registered engine");
        // A fixed seed gives the same numbers of tables in every process.
        let settings = TableSettings::new(spec.seeded(0))?;
        let mut pipeline = Pipeline::new(settings.rebuild_below(REBUILD_BELOW));
        let added = pipeline.apply(&self.messages, Duration::ZERO);
        added.map_err(|error| Failure::usage(format!("{engine}: {error}")))?;
        let rebuilt = pipeline.rebuild();
        rebuilt.map_err(|error| Failure::usage(format!("{engine}: {error}")))?;
        Ok(pipeline)
    }
}

/// Returns the rules with every range of ports, except the range of all ports, replaced
/// by its first port: the rules that the paper gives to Open vSwitch.
pub(super) fn single_ports(policy: &Policy) -> Policy {
    let original = policy.part(PartId::FIRST);
    let schema = original.schema();
    let mut rules = RuleSet::new(schema);
    for rule in original.iter() {
        let mut fields = rule.fields();
        for (id, field) in schema.field_ids().zip(&mut fields) {
            let (low, high) = rule.ends(id);
            let is_port = matches!(schema.field(id).name(), "sport" | "dport");
            let is_range = low < high && (low, high) != (0, schema.field(id).max_value());
            if is_port && is_range {
                *field = FieldMatch::Exact(low);
            }
        }
        let added = rules.add(rule.id(), rule.priority(), rule.action(), &fields);
        added.expect("the schema is the same");
    }
    Policy::from_parts(policy.name(), vec![rules])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use classyard::policy::PartId;
    use classyard_workload::generate::Profile;

    use super::*;
    use crate::bench::generated_policy;
    use classyard_report::input::family::FamilyName;

    fn policy(profile: &str) -> Policy {
        let profile = Arc::new(Profile::built_in(profile).unwrap().clone());
        let family = FamilyName::Ipv4.with(profile, 0.0);
        generated_policy(family, 300, 1, &mut classyard::NoProgress).unwrap()
    }

    #[test]
    fn ranges_of_ports_become_single_ports_and_nothing_else_changes() {
        let policy = policy("fw1");
        let single = single_ports(&policy);
        let (before, after) = (policy.part(PartId::FIRST), single.part(PartId::FIRST));
        assert_eq!(before.len(), after.len());
        let mut changed = 0;
        for (old, new) in before.iter().zip(after.iter()) {
            assert_eq!((old.id(), old.priority()), (new.id(), new.priority()));
            for id in before.schema().field_ids() {
                let name = before.schema().field(id).name();
                if !matches!(name, "sport" | "dport") {
                    assert_eq!(old.ends(id), new.ends(id), "{name}");
                    continue;
                }
                let (low, high) = new.ends(id);
                assert!(low == high || (low, high) == (0, 65_535), "{low}:{high}");
                changed += usize::from(old.ends(id) != new.ends(id));
            }
        }
        assert!(changed > 0);
        let flows = |policy: &Policy| Acl::of(policy).unwrap().flows;
        assert!(flows(&single) < flows(&policy));
    }

    #[test]
    fn the_access_list_has_every_flow_and_the_default_rule() {
        let acl = Acl::of(&policy("acl1")).unwrap();
        let pipeline = acl.pipeline("tss").unwrap();
        let of_table = |table: u8| {
            let entries = pipeline.flows().iter();
            entries
                .filter(|entry| entry.table == TableId(table))
                .count()
        };
        assert_eq!(of_table(0), acl.flows + 1);
        assert_eq!(of_table(1), 1);
        assert!(pipeline.engine_tables(TableId(0)) > 1);
        let bare = Acl::without_rules().unwrap().pipeline("tss").unwrap();
        assert_eq!(bare.flows().len(), 2);
        assert_eq!(bare.engine_tables(TableId(0)), 0);
    }
}
