//! Actions: what changes packets and sends them on (OpenFlow 1.3.5 §5.12, §7.2.4).
//!
//! An action list is carried out in order. An action set has at most one action of
//! each [`Kind`], in an order of its own, and is carried out when a packet leaves the
//! last flow table.

use std::fmt;

use crate::error::{ErrorCode, OpenFlowError};
use crate::field::{Field, Prerequisite, VLAN_PRESENT, eth_type};
use crate::flow_match::{FieldValue, FlowMatch};
use crate::limits::MAX_PACKET_ACTIONS;
use crate::packet::{InvalidTtl, Packet};

/// A port, or what stands for one in an output (`ofp_port_no`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The largest number of a port.
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// The port that the packet came in by. Output to that port says so: to its
    /// number it is dropped.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// The first flow table; in packet-out messages alone.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// What a switch without OpenFlow would do.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// All ports that flood, without the one that the packet came in by.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// All ports, without the one that the packet came in by.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// The controller.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: PortNo = PortNo(0xffff_fffe);
    /// Any port: in requests alone.
    pub const ANY: PortNo = PortNo(0xffff_ffff);

    const RESERVED: [(PortNo, &'static str); 8] = [
        (PortNo::IN_PORT, "in_port"),
        (PortNo::TABLE, "table"),
        (PortNo::NORMAL, "normal"),
        (PortNo::FLOOD, "flood"),
        (PortNo::ALL, "all"),
        (PortNo::CONTROLLER, "controller"),
        (PortNo::LOCAL, "local"),
        (PortNo::ANY, "any"),
    ];

    /// Whether it is the number of a port.
    #[must_use]
    pub fn is_physical(self) -> bool {
        (1..=PortNo::MAX.0).contains(&self.0)
    }

    /// The port of a name such as `flood`, in small letters or capitals.
    #[must_use]
    pub fn from_name(name: &str) -> Option<PortNo> {
        let mut reserved = PortNo::RESERVED.into_iter();
        let found = reserved.find(|(_, other)| other.eq_ignore_ascii_case(name));
        found.map(|(port, _)| port)
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PortNo::RESERVED.iter().find(|(port, _)| port == self) {
            Some((_, name)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

/// A group of actions, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// An action.
///
/// ```
/// use classyard_datapath::{Action, Field, FieldValue, Packet, PortNo};
///
/// let action = Action::Output { port: PortNo(2), max_len: 0 };
/// assert_eq!(action.to_string(), "output:2");
/// let mut packet = Packet::new(&[0; 60], 1);
/// let set = Action::SetField(FieldValue::exact(Field::EthDst, 7));
/// set.change(&mut packet).expect("no time to live is decremented");
/// assert_eq!(packet.key().get(Field::EthDst), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends the packet out, as it is then.
    Output {
        /// By which port.
        port: PortNo,
        /// To the controller, at most so many bytes.
        max_len: u16,
    },
    /// Has a group process the packet.
    Group(GroupId),
    /// Chooses the queue of ports that the packet goes out by.
    SetQueue(u32),
    /// Sets a field. All bits of the value count.
    SetField(FieldValue),
    /// Pushes a VLAN tag of a type.
    PushVlan(u16),
    /// Removes the outermost VLAN tag.
    PopVlan,
    /// Pushes an MPLS label; the frame's type becomes this.
    PushMpls(u16),
    /// Removes the outermost MPLS label; the frame's type becomes this.
    PopMpls(u16),
    /// Sets the time to live of the outermost MPLS label.
    SetMplsTtl(u8),
    /// Decrements the time to live of the outermost MPLS label.
    DecrementMplsTtl,
    /// Sets the time to live of IP.
    SetTtl(u8),
    /// Decrements the time to live of IP.
    DecrementTtl,
    /// Copies the time to live from what is below the outermost MPLS label to it.
    CopyTtlOut,
    /// Copies the time to live from the outermost MPLS label to what is below it.
    CopyTtlIn,
}

/// Kinds of actions, of which an action set has one each, in the order in which a
/// set carries them out (OpenFlow 1.3.5 §5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// [`Action::CopyTtlIn`].
    CopyTtlIn,
    /// [`Action::PopVlan`].
    PopVlan,
    /// [`Action::PopMpls`].
    PopMpls,
    /// [`Action::PushMpls`].
    PushMpls,
    /// [`Action::PushVlan`].
    PushVlan,
    /// [`Action::CopyTtlOut`].
    CopyTtlOut,
    /// [`Action::DecrementMplsTtl`].
    DecrementMplsTtl,
    /// [`Action::DecrementTtl`].
    DecrementTtl,
    /// [`Action::SetMplsTtl`].
    SetMplsTtl,
    /// [`Action::SetTtl`].
    SetTtl,
    /// [`Action::SetField`] of a field.
    SetField(Field),
    /// [`Action::SetQueue`].
    SetQueue,
    /// [`Action::Group`].
    Group,
    /// [`Action::Output`], which a set with a group does not carry out.
    Output,
}

impl Action {
    /// The kind of the action.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Action::Output { .. } => Kind::Output,
            Action::Group(_) => Kind::Group,
            Action::SetQueue(_) => Kind::SetQueue,
            Action::SetField(value) => Kind::SetField(value.field),
            Action::PushVlan(_) => Kind::PushVlan,
            Action::PopVlan => Kind::PopVlan,
            Action::PushMpls(_) => Kind::PushMpls,
            Action::PopMpls(_) => Kind::PopMpls,
            Action::SetMplsTtl(_) => Kind::SetMplsTtl,
            Action::DecrementMplsTtl => Kind::DecrementMplsTtl,
            Action::SetTtl(_) => Kind::SetTtl,
            Action::DecrementTtl => Kind::DecrementTtl,
            Action::CopyTtlOut => Kind::CopyTtlOut,
            Action::CopyTtlIn => Kind::CopyTtlIn,
        }
    }

    /// Whether the action changes packets.
    #[must_use]
    pub fn changes_packets(&self) -> bool {
        !matches!(
            self,
            Action::Output { .. } | Action::Group(_) | Action::SetQueue(_)
        )
    }

    /// Changes a packet, if the action is one of those that do; the others leave it
    /// as it is.
    ///
    /// # Errors
    /// [`InvalidTtl`] where a time to live was not decremented.
    pub fn change(&self, packet: &mut Packet) -> Result<(), InvalidTtl> {
        match *self {
            Action::SetField(FieldValue { field, value, .. }) => packet.set_field(field, value),
            Action::PushVlan(kind) => packet.push_vlan(kind),
            Action::PopVlan => packet.pop_vlan(),
            Action::PushMpls(kind) => packet.push_mpls(kind),
            Action::PopMpls(kind) => packet.pop_mpls(kind),
            Action::SetMplsTtl(ttl) => packet.set_mpls_ttl(ttl),
            Action::DecrementMplsTtl => return packet.decrement_mpls_ttl(),
            Action::SetTtl(ttl) => packet.set_ttl(ttl),
            Action::DecrementTtl => return packet.decrement_ttl(),
            Action::CopyTtlOut => packet.copy_ttl_out(),
            Action::CopyTtlIn => packet.copy_ttl_in(),
            Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => {}
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    /// As `ovs-ofctl` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Output { port, max_len } if port == PortNo::CONTROLLER => {
                write!(f, "controller(max_len={max_len})")
            }
            Action::Output { port, .. } if port.is_physical() => write!(f, "output:{port}"),
            Action::Output { port, .. } => port.fmt(f),
            Action::Group(GroupId(group)) => write!(f, "group:{group}"),
            Action::SetQueue(queue) => write!(f, "set_queue:{queue}"),
            Action::SetField(FieldValue { field, value, .. }) => {
                write!(f, "set_field:{}->{field}", field.format().display(value))
            }
            Action::PushVlan(kind) => write!(f, "push_vlan:{kind:#06x}"),
            Action::PopVlan => f.write_str("pop_vlan"),
            Action::PushMpls(kind) => write!(f, "push_mpls:{kind:#06x}"),
            Action::PopMpls(kind) => write!(f, "pop_mpls:{kind:#06x}"),
            Action::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl({ttl})"),
            Action::DecrementMplsTtl => f.write_str("dec_mpls_ttl"),
            Action::SetTtl(ttl) => write!(f, "mod_nw_ttl:{ttl}"),
            Action::DecrementTtl => f.write_str("dec_ttl"),
            Action::CopyTtlOut => f.write_str("copy_ttl_out"),
            Action::CopyTtlIn => f.write_str("copy_ttl_in"),
        }
    }
}

/// What is known of the packets that a flow entry matches, as far as actions depend
/// on it; actions change it.
#[derive(Clone, Debug)]
struct Known {
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
    has_tag: bool,
}

impl Known {
    fn of(flow: &FlowMatch) -> Known {
        let exact = |field: Field| {
            let value = flow.get(field)?;
            value.is_exact().then_some(value.value)
        };
        let tag = flow.get(Field::VlanVid);
        Known {
            eth_type: exact(Field::EthType),
            ip_proto: exact(Field::IpProto),
            icmpv6_type: exact(Field::Icmpv6Type),
            has_tag: tag.is_some_and(|tag| tag.value & u128::from(VLAN_PRESENT) != 0),
        }
    }

    /// Whether packets are of a kind that has a field.
    fn has(&self, field: Field) -> bool {
        let is = |known: Option<u128>, values: &[u16]| {
            known.is_some_and(|known| values.iter().any(|&value| u128::from(value) == known))
        };
        match field.info().prerequisite {
            // A VLAN's number is set in a tag.
            Prerequisite::None => field != Field::VlanVid || self.has_tag,
            Prerequisite::InPort => false,
            Prerequisite::Vlan => self.has_tag,
            Prerequisite::EthType(types) => is(self.eth_type, types),
            Prerequisite::IpProto(types, proto) => {
                is(self.eth_type, types) && is(self.ip_proto, &[u16::from(proto)])
            }
            Prerequisite::Icmpv6Type(types) => {
                let known = self.icmpv6_type.filter(|_| self.has(Field::Icmpv6Type));
                types.iter().any(|&kind| is(known, &[u16::from(kind)]))
            }
        }
    }

    fn is_mpls(&self) -> bool {
        self.eth_type
            .is_some_and(|kind| is_mpls(u16::try_from(kind).expect("sixteen bits")))
    }

    fn is_ip(&self) -> bool {
        let ip = [eth_type::IPV4, eth_type::IPV6].map(u128::from);
        self.eth_type.is_some_and(|kind| ip.contains(&kind))
    }

    fn becomes(&mut self, kind: u16) {
        *self = Known {
            eth_type: Some(u128::from(kind)),
            ip_proto: None,
            icmpv6_type: None,
            has_tag: self.has_tag,
        };
    }
}

fn is_mpls(kind: u16) -> bool {
    matches!(kind, eth_type::MPLS | eth_type::MPLS_UPSTREAM)
}

/// Checks that actions fit the packets of a match, one after the other: each sets
/// what packets have by then, with values that exist (OpenFlow 1.3.5 §7.2.4, §7.4.4.4).
/// Whether ports and groups exist is not checked here.
///
/// # Errors
/// [`OpenFlowError`] about the first action that does not fit.
pub fn check(actions: &[Action], flow: &FlowMatch) -> Result<(), OpenFlowError> {
    let mut known = Known::of(flow);
    for action in actions {
        check_action(action, &mut known)?;
    }
    Ok(())
}

/// Checks that a list of actions can be carried out whole.
pub(crate) fn check_length(actions: &[Action]) -> Result<(), OpenFlowError> {
    if actions.len() <= MAX_PACKET_ACTIONS as usize {
        return Ok(());
    }
    let message = format!(
        "a list of {} actions; at most {MAX_PACKET_ACTIONS} are possible",
        actions.len()
    );
    Err(OpenFlowError::new(ErrorCode::TooManyActions, message))
}

/// Checks what can be checked of an action alone, whatever packets it is for.
pub(crate) fn check_alone(action: &Action) -> Result<(), OpenFlowError> {
    let refuse = |code, why: &str| Err(OpenFlowError::new(code, format!("{action}: {why}")));
    match *action {
        Action::Output { port, .. } => match port {
            PortNo::ANY | PortNo(0) => refuse(ErrorCode::BadOutPort, "no port to send to"),
            PortNo::TABLE => refuse(
                ErrorCode::BadOutPort,
                "only packets from the controller are sent to the first table",
            ),
            PortNo::NORMAL => refuse(
                ErrorCode::BadOutPort,
                "this switch does nothing that no flow entry says; use flood or ports",
            ),
            PortNo(number) if port > PortNo::MAX && number < PortNo::IN_PORT.0 => {
                refuse(ErrorCode::BadOutPort, "a reserved number without a meaning")
            }
            _ => Ok(()),
        },
        Action::PushVlan(kind) if !matches!(kind, eth_type::VLAN | eth_type::VLAN_SERVICE) => {
            refuse(ErrorCode::BadTag, "a tag is of type 0x8100 or 0x88a8")
        }
        Action::PushMpls(kind) if !is_mpls(kind) => {
            refuse(ErrorCode::BadTag, "MPLS is of type 0x8847 or 0x8848")
        }
        Action::SetField(FieldValue { field, value, mask }) => {
            let most = field.max_value();
            if !field.info().settable {
                return refuse(ErrorCode::BadSetType, "no action can set this field");
            }
            if value > most || mask != most {
                let width = field.info().width;
                let why = format!("a value of all {width} bits of {field} is needed, and no mask");
                return refuse(ErrorCode::BadSetArgument, &why);
            }
            if field == Field::VlanVid && value & u128::from(VLAN_PRESENT) == 0 {
                let why = format!(
                    "a VLAN's number is set with the bit {VLAN_PRESENT:#x}; pop_vlan removes a tag"
                );
                return refuse(ErrorCode::BadSetArgument, &why);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks an action for packets of which something is known, and what is known of
/// them after it.
fn check_action(action: &Action, known: &mut Known) -> Result<(), OpenFlowError> {
    check_alone(action)?;
    let (fits, needed) = match *action {
        Action::SetField(FieldValue { field, .. }) => (known.has(field), "this field"),
        Action::PopVlan => (known.has_tag, "a VLAN tag"),
        Action::PopMpls(_)
        | Action::SetMplsTtl(_)
        | Action::DecrementMplsTtl
        | Action::CopyTtlOut
        | Action::CopyTtlIn => (known.is_mpls(), "MPLS, such as eth_type=0x8847"),
        Action::SetTtl(_) | Action::DecrementTtl => {
            (known.is_ip(), "IP, which is eth_type=0x0800 or 0x86dd")
        }
        Action::Output { .. }
        | Action::Group(_)
        | Action::SetQueue(_)
        | Action::PushVlan(_)
        | Action::PushMpls(_) => (true, ""),
    };
    if !fits {
        let message = format!("{action}: the match does not say that packets have {needed}");
        return Err(OpenFlowError::new(ErrorCode::InconsistentAction, message));
    }
    match *action {
        Action::PushVlan(_) => known.has_tag = true,
        // There may be another one, which is not known.
        Action::PopVlan => known.has_tag = false,
        Action::PushMpls(kind) | Action::PopMpls(kind) => known.becomes(kind),
        Action::SetField(FieldValue {
            field: Field::Icmpv6Type,
            value,
            ..
        }) => known.icmpv6_type = Some(value),
        _ => {}
    }
    Ok(())
}

/// The actions to carry out when a packet leaves the last table: one of each kind, in
/// the order of kinds.
///
/// ```
/// use classyard_datapath::{Action, ActionSet, PortNo};
///
/// let output = |port| Action::Output { port: PortNo(port), max_len: 0 };
/// let mut set = ActionSet::default();
/// set.write(&[output(1), Action::PopVlan, output(2)]);
/// assert_eq!(set.ordered().copied().collect::<Vec<_>>(), [Action::PopVlan, output(2)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionSet {
    actions: Vec<Action>,
}

impl ActionSet {
    /// Writes actions into the set: each takes the place of the one of its kind.
    pub fn write(&mut self, actions: &[Action]) {
        for action in actions {
            let kind = action.kind();
            match self.actions.binary_search_by_key(&kind, Action::kind) {
                Ok(at) => self.actions[at] = *action,
                Err(at) => self.actions.insert(at, *action),
            }
        }
    }

    /// Removes all actions. The set keeps its memory.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// Whether there is no action.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// All actions in the order of their kinds.
    pub fn in_order(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter()
    }

    /// The actions in the order in which they are carried out. With a group there is
    /// no output.
    pub fn ordered(&self) -> impl Iterator<Item = &Action> {
        let has_group = self
            .actions
            .iter()
            .any(|action| action.kind() == Kind::Group);
        let output = move |action: &&Action| has_group && action.kind() == Kind::Output;
        self.actions.iter().filter(move |action| !output(action))
    }
}
