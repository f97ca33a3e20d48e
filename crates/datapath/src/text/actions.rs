//! Reads actions and instructions.

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_text::ofctl::{Kind, PortNames, number, parts};

use super::fields;
use crate::action::{Action, GroupId, PortNo};
use crate::field::{Field, VLAN_PRESENT};
use crate::flow::{Instructions, TableId};
use crate::flow_match::MatchField;
use crate::meter::MeterId;

/// Reads the text after `actions=`: actions to apply, mixed with instructions.
pub(super) fn instructions<'t>(
    text: &'t str,
    kind: Kind,
    ports: &mut PortNames<'_>,
) -> Result<Instructions, Fault<'t>> {
    let mut read = Instructions::default();
    let parts = parts(text);
    for part in &parts {
        let (name, value) = named(part);
        let refuse_repeated = |is_there: bool| match is_there {
            true => Err(Fault::new(
                part,
                format!("`{name}` is given twice"),
                "each instruction once",
            )),
            false => Ok(()),
        };
        match name {
            "drop" if parts.len() == 1 => {}
            "drop" => {
                let description = "`drop` together with other actions";
                return Err(Fault::new(part, description, "`drop` alone, or none"));
            }
            "goto_table" => {
                refuse_repeated(read.goto_table.is_some())?;
                read.goto_table = Some(TableId(number(value, "goto_table")?));
            }
            "meter" => {
                refuse_repeated(read.meter.is_some())?;
                read.meter = Some(MeterId(number(value, "meter")?));
            }
            "clear_actions" => {
                refuse_repeated(read.clear)?;
                read.clear = true;
            }
            "write_metadata" => {
                refuse_repeated(read.metadata.is_some())?;
                let (value, mask) = value
                    .split_once('/')
                    .unwrap_or((value, "0xffffffffffffffff"));
                let mask = number(mask, "write_metadata")?;
                read.metadata = Some((number(value, "write_metadata")?, mask));
            }
            "write_actions" => {
                refuse_repeated(!read.write.is_empty())?;
                read.write = actions(value, kind, ports)?;
            }
            "apply_actions" => read.apply.extend(actions(value, kind, ports)?),
            _ => read.apply.push(action(part, kind, ports)?),
        }
    }
    Ok(read)
}

/// Reads a list of actions.
pub(super) fn actions<'t>(
    text: &'t str,
    kind: Kind,
    ports: &mut PortNames<'_>,
) -> Result<Vec<Action>, Fault<'t>> {
    let parts = parts(text);
    let drops = parts == ["drop"];
    let parts = parts.into_iter().filter(|_| !drops);
    parts.map(|part| action(part, kind, ports)).collect()
}

/// Splits `name:value`, `name(value)`, `name=value` or `name` into name and value.
fn named(part: &str) -> (&str, &str) {
    let name_end = part.find([':', '(', '=']).unwrap_or(part.len());
    let (name, tail) = part.split_at(name_end);
    let value = match tail.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')').unwrap_or(inner),
        None => tail.get(1..).unwrap_or_default(),
    };
    (name, value)
}

/// Older actions that set a field, with the name of the field.
const OLD_NAMES: [(&str, &str); 8] = [
    ("mod_dl_src", "dl_src"),
    ("mod_dl_dst", "dl_dst"),
    ("mod_nw_src", "ip_src"),
    ("mod_nw_dst", "ip_dst"),
    ("mod_nw_tos", "nw_tos"),
    ("mod_tp_src", "tp_src"),
    ("mod_tp_dst", "tp_dst"),
    ("mod_vlan_pcp", "vlan_pcp"),
];

/// Returns an action that sets a field whose name is not in the text. A fault names `part`.
fn set_named<'t>(
    part: &'t str,
    field: &'static str,
    value: &'t str,
    kind: Kind,
    ports: &mut PortNames<'_>,
) -> Result<Action, Fault<'t>> {
    let is_port = field.starts_with("tp_");
    if is_port && (kind.is_icmp() || kind.ip_proto.is_none()) {
        return Err(Fault::new(
            part,
            format!("{} without a protocol", quoted(part)),
            "`tcp`, `udp` or `sctp` in the match, or `set_field` with the field of a protocol",
        ));
    }
    let set = fields::value(field, value, kind, ports)?;
    Ok(Action::SetField(set))
}

fn action<'t>(part: &'t str, kind: Kind, ports: &mut PortNames<'_>) -> Result<Action, Fault<'t>> {
    let (name, value) = named(part);
    let set = |field, value| Ok(Action::SetField(MatchField::exact(field, value)));
    if let Some((_, field)) = OLD_NAMES.iter().find(|(old, _)| *old == name) {
        return set_named(part, field, value, kind, ports);
    }
    match name {
        "output" => Ok(output(port(value, ports)?, u16::MAX)),
        "controller" | "CONTROLLER" => {
            let length = value.strip_prefix("max_len=").unwrap_or(value);
            let length = match length {
                "" => u16::MAX,
                length => number(length, "max_len")?,
            };
            Ok(output(PortNo::CONTROLLER, length))
        }
        "group" => Ok(Action::Group(GroupId(number(value, "group")?))),
        "set_queue" => Ok(Action::SetQueue(number(value, "set_queue")?)),
        "set_field" => set_field(part, value, kind, ports),
        "mod_vlan_vid" => {
            let vid: u16 = number(value, "mod_vlan_vid")?;
            set(Field::VlanVid, u128::from(vid | VLAN_PRESENT))
        }
        "push_vlan" => Ok(Action::PushVlan(number(value, "push_vlan")?)),
        "pop_vlan" | "strip_vlan" => Ok(Action::PopVlan),
        "push_mpls" => Ok(Action::PushMpls(number(value, "push_mpls")?)),
        "pop_mpls" => Ok(Action::PopMpls(number(value, "pop_mpls")?)),
        "set_mpls_ttl" => Ok(Action::SetMplsTtl(number(value, "set_mpls_ttl")?)),
        "dec_mpls_ttl" => Ok(Action::DecrementMplsTtl),
        "mod_nw_ttl" | "set_nw_ttl" => Ok(Action::SetTtl(number(value, "set_nw_ttl")?)),
        "dec_ttl" => Ok(Action::DecrementTtl),
        "copy_ttl_out" => Ok(Action::CopyTtlOut),
        "copy_ttl_in" => Ok(Action::CopyTtlIn),
        _ if PortNo::from_name(name).is_some() || name.parse::<u32>().is_ok() => {
            Ok(output(port(part, ports)?, u16::MAX))
        }
        _ => Err(Fault::unsupported(
            part,
            format!("unsupported action {}", quoted(name)),
            "an action of OpenFlow 1.3 such as `output:1`, `set_field:VALUE->FIELD`, `group:1`, \
             `push_vlan:0x8100`, `dec_ttl`, `goto_table:1`, `drop`",
        )),
    }
}

fn output(port: PortNo, max_len: u16) -> Action {
    // Only outputs to the controller have a length.
    let max_len = if port == PortNo::CONTROLLER {
        max_len
    } else {
        0
    };
    Action::Output { port, max_len }
}

fn port<'t>(text: &'t str, ports: &mut PortNames<'_>) -> Result<PortNo, Fault<'t>> {
    ports.port(text, "output").map(PortNo)
}

/// Reads `VALUE->FIELD`.
fn set_field<'t>(
    part: &'t str,
    text: &'t str,
    kind: Kind,
    ports: &mut PortNames<'_>,
) -> Result<Action, Fault<'t>> {
    let Some((value, name)) = text.split_once("->") else {
        return Err(Fault::new(
            part,
            format!("{} sets nothing", quoted(part)),
            "`set_field:VALUE->FIELD`",
        ));
    };
    let mut set = fields::value(name, value, kind, ports)?;
    if !set.is_exact() {
        return Err(Fault::new(
            value,
            "a value with a mask",
            "all bits of the field: OpenFlow 1.3 sets it as a whole",
        ));
    }
    if set.field == Field::VlanVid {
        // The text may have the presence bit of the tag or leave it out.
        set.value |= u128::from(VLAN_PRESENT);
    }
    Ok(Action::SetField(set))
}
