//! Actions and instructions.

use super::fields::{self, Kind};
use super::scan::{Fault, part_number, parts, quoted};
use crate::action::{Action, GroupId, PortNo};
use crate::field::{Field, VLAN_PRESENT};
use crate::flow::{Instructions, TableId};
use crate::flow_match::FieldValue;
use crate::meter::MeterId;

/// Reads what follows `actions=`: actions to apply, and instructions among them.
pub(super) fn instructions(text: &str, kind: Kind) -> Result<Instructions, Fault<'_>> {
    let mut read = Instructions::default();
    let parts = parts(text);
    if parts.is_empty() {
        return Err(Fault::missing(text, "actions, or `drop`"));
    }
    for part in &parts {
        let (name, value) = named(part);
        let again = |is_there: bool| match is_there {
            true => Err(Fault::new(
                part,
                format!("`{name}` stands there twice"),
                "each instruction once",
            )),
            false => Ok(()),
        };
        match name {
            "drop" if parts.len() == 1 => {}
            "drop" => {
                let found = "`drop` beside other actions";
                return Err(Fault::new(part, found, "`drop` alone, or none"));
            }
            "goto_table" | "resubmit" if name == "goto_table" => {
                again(read.goto_table.is_some())?;
                read.goto_table = Some(TableId(part_number(value, "table")?));
            }
            "meter" => {
                again(read.meter.is_some())?;
                read.meter = Some(MeterId(part_number(value, "meter")?));
            }
            "clear_actions" => {
                again(read.clear)?;
                read.clear = true;
            }
            "write_metadata" => {
                again(read.metadata.is_some())?;
                let (value, mask) = value
                    .split_once('/')
                    .unwrap_or((value, "0xffffffffffffffff"));
                let mask = part_number(mask, "mask")?;
                read.metadata = Some((part_number(value, "value of metadata")?, mask));
            }
            "write_actions" => {
                again(!read.write.is_empty())?;
                read.write = actions(value, kind)?;
            }
            "apply_actions" => read.apply.extend(actions(value, kind)?),
            _ => read.apply.push(action(part, kind)?),
        }
    }
    Ok(read)
}

/// Reads a list of actions.
pub(super) fn actions(text: &str, kind: Kind) -> Result<Vec<Action>, Fault<'_>> {
    let parts = parts(text);
    let drops = parts == ["drop"];
    let parts = parts.into_iter().filter(|_| !drops);
    parts.map(|part| action(part, kind)).collect()
}

/// `name:value`, `name(value)`, `name=value` or `name`.
fn named(part: &str) -> (&str, &str) {
    let end = part.find([':', '(', '=']).unwrap_or(part.len());
    let (name, rest) = part.split_at(end);
    let value = match rest.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').unwrap_or(inner),
        None => rest.get(1..).unwrap_or_default(),
    };
    (name, value)
}

fn action(part: &str, kind: Kind) -> Result<Action, Fault<'_>> {
    let (name, value) = named(part);
    let set = |field, value| Ok(Action::SetField(FieldValue::exact(field, value)));
    let set_named = |name: &'static str| {
        // The name is not in the text, so what is wrong with it is of the whole part.
        let field = fields::field(name, kind).map_err(|fault| fault.about(part))?;
        fields::value(name, field, value).map(Action::SetField)
    };
    match name {
        "output" => Ok(output(port(value)?, u16::MAX)),
        "controller" | "CONTROLLER" => {
            let length = value.strip_prefix("max_len=").unwrap_or(value);
            let length = match length {
                "" => u16::MAX,
                length => part_number(length, "number of bytes")?,
            };
            Ok(output(PortNo::CONTROLLER, length))
        }
        "group" => Ok(Action::Group(GroupId(part_number(value, "group")?))),
        "set_queue" => Ok(Action::SetQueue(part_number(value, "queue")?)),
        "set_field" => set_field(part, value, kind),
        "mod_dl_src" => set_named("dl_src"),
        "mod_dl_dst" => set_named("dl_dst"),
        "mod_nw_src" => set_named("ip_src"),
        "mod_nw_dst" => set_named("ip_dst"),
        "mod_nw_tos" => set_named("nw_tos"),
        "mod_tp_src" => set_named("tp_src"),
        "mod_tp_dst" => set_named("tp_dst"),
        "mod_vlan_vid" => {
            let vid: u16 = part_number(value, "number of a VLAN")?;
            set(Field::VlanVid, u128::from(vid | VLAN_PRESENT))
        }
        "mod_vlan_pcp" => set_named("vlan_pcp"),
        "push_vlan" => Ok(Action::PushVlan(part_number(value, "type of a tag")?)),
        "pop_vlan" | "strip_vlan" => Ok(Action::PopVlan),
        "push_mpls" => Ok(Action::PushMpls(part_number(value, "type of MPLS")?)),
        "pop_mpls" => Ok(Action::PopMpls(part_number(value, "EtherType")?)),
        "set_mpls_ttl" => Ok(Action::SetMplsTtl(part_number(value, "time to live")?)),
        "dec_mpls_ttl" => Ok(Action::DecrementMplsTtl),
        "mod_nw_ttl" | "set_nw_ttl" => Ok(Action::SetTtl(part_number(value, "time to live")?)),
        "dec_ttl" => Ok(Action::DecrementTtl),
        "copy_ttl_out" => Ok(Action::CopyTtlOut),
        "copy_ttl_in" => Ok(Action::CopyTtlIn),
        _ if PortNo::from_name(name).is_some() || name.parse::<u32>().is_ok() => {
            Ok(output(port(part)?, u16::MAX))
        }
        _ => Err(Fault::new(
            part,
            format!("{} is no action", quoted(name)),
            "an action of OpenFlow 1.3 such as `output:1`, `set_field:VALUE->FIELD`, `group:1`, \
             `push_vlan:0x8100`, `dec_ttl`, `goto_table:1`, `drop`",
        )),
    }
}

fn output(port: PortNo, max_len: u16) -> Action {
    // A length has a meaning for the controller alone.
    let max_len = if port == PortNo::CONTROLLER {
        max_len
    } else {
        0
    };
    Action::Output { port, max_len }
}

fn port(text: &str) -> Result<PortNo, Fault<'_>> {
    match PortNo::from_name(text) {
        Some(port) => Ok(port),
        None => part_number(text, "port").map(PortNo),
    }
}

/// `VALUE->FIELD`.
fn set_field<'t>(part: &'t str, text: &'t str, kind: Kind) -> Result<Action, Fault<'t>> {
    let Some((value, name)) = text.split_once("->") else {
        return Err(Fault::new(
            part,
            format!("{} sets nothing", quoted(part)),
            "`set_field:VALUE->FIELD`",
        ));
    };
    let field = fields::field(name, kind)?;
    let mut set = fields::value(name, field, value)?;
    if !set.is_exact() {
        return Err(Fault::new(
            value,
            "a value with a mask",
            "all bits of the field: OpenFlow 1.3 sets it as a whole",
        ));
    }
    if field == Field::VlanVid {
        // As a number, or with the bit that says that there is a tag.
        set.value |= u128::from(VLAN_PRESENT);
    }
    Ok(Action::SetField(set))
}
