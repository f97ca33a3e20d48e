//! Actions change packets and send them on (OpenFlow 1.3.5 §5.12, §7.2.4).
//!
//! An action list is carried out in order. An action set has at most one action of each
//! [`Kind`]. It has its own order and is carried out when a packet leaves the last flow
//! table.

use std::fmt;

use crate::error::{ErrorCode, OpenFlowError};
use crate::field::{Field, Prerequisite, VLAN_PRESENT, eth_type};
use crate::flow_match::{FlowMatch, MatchField};
use crate::limits::MAX_PACKET_ACTIONS;
use crate::packet::{InvalidTtl, Packet};

/// A port number, or a reserved number of an output action (`ofp_port_no`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortNo(pub u32);

impl PortNo {
    /// The largest port number.
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// The port that received the packet. An output to its ordinary number drops the
    /// packet; only this reserved number sends the packet back.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// The first flow table; only in packet-out messages.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// The processing of a switch without OpenFlow.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// All flooding ports except the packet's input port.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// All ports except the packet's input port.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// The controller.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: PortNo = PortNo(0xffff_fffe);
    /// Any port; only in requests.
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

    /// True if this is the number of a port, not a reserved number.
    #[must_use]
    pub fn is_physical(self) -> bool {
        (1..=PortNo::MAX.0).contains(&self.0)
    }

    /// Returns the reserved port with a name such as `flood`; case is ignored.
    #[must_use]
    pub fn from_name(name: &str) -> Option<PortNo> {
        let mut reserved = PortNo::RESERVED.into_iter();
        let reserved_port =
            reserved.find(|(_, reserved_name)| reserved_name.eq_ignore_ascii_case(name));
        reserved_port.map(|(port, _)| port)
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

/// The number of a group of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// An action.
///
/// ```
/// use classyard_datapath::{Action, Field, MatchField, Packet, PortNo};
///
/// let action = Action::Output { port: PortNo(2), max_len: 0 };
/// assert_eq!(action.to_string(), "output:2");
/// let mut packet = Packet::new(&[0; 60], 1);
/// let set = Action::SetField(MatchField::exact(Field::EthDst, 7));
/// set.change(&mut packet).expect("no time to live is decremented");
/// assert_eq!(packet.key().get(Field::EthDst), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Sends out the packet as changed by the actions before.
    Output {
        /// The output port.
        port: PortNo,
        /// The maximum number of bytes that are sent to the controller.
        max_len: u16,
    },
    /// Passes the packet to a group.
    Group(GroupId),
    /// Selects the queue of the output ports.
    SetQueue(u32),
    /// Sets all bits of a field.
    SetField(MatchField),
    /// Pushes a VLAN tag of this type.
    PushVlan(u16),
    /// Removes the outermost VLAN tag.
    PopVlan,
    /// Pushes an MPLS label; this becomes the frame's type.
    PushMpls(u16),
    /// Removes the outermost MPLS label; this becomes the frame's type.
    PopMpls(u16),
    /// Sets the time to live of the outermost MPLS label.
    SetMplsTtl(u8),
    /// Decrements the time to live of the outermost MPLS label.
    DecrementMplsTtl,
    /// Sets the time to live of IP.
    SetTtl(u8),
    /// Decrements the time to live of IP.
    DecrementTtl,
    /// Copies the time to live of the next inner label or IP header to the outermost MPLS
    /// label.
    CopyTtlOut,
    /// Copies the time to live of the outermost MPLS label to the next inner label or IP
    /// header.
    CopyTtlIn,
}

/// Kinds of actions. An action set has at most one action of each kind and carries them
/// out in this order (OpenFlow 1.3.5 §5.10).
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
    /// [`Action::Output`]; not carried out if the set has a group.
    Output,
}

impl Action {
    /// Returns the port that an output sends packets to; `None` for other actions.
    pub(crate) fn output_port(&self) -> Option<PortNo> {
        match self {
            Action::Output { port, .. } => Some(*port),
            _ => None,
        }
    }

    /// Returns the kind of the action.
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

    /// True if the action changes packets.
    #[must_use]
    pub fn changes_packets(&self) -> bool {
        !matches!(
            self,
            Action::Output { .. } | Action::Group(_) | Action::SetQueue(_)
        )
    }

    /// True if the action changes the length of packets.
    pub(crate) fn changes_length(&self) -> bool {
        matches!(
            self,
            Action::PushVlan(_) | Action::PopVlan | Action::PushMpls(_) | Action::PopMpls(_)
        )
    }

    /// Changes a packet if the action [changes packets](Self::changes_packets); otherwise
    /// does nothing.
    ///
    /// # Errors
    /// [`InvalidTtl`] if a time to live could not be decremented.
    pub fn change(&self, packet: &mut Packet) -> Result<(), InvalidTtl> {
        match *self {
            Action::SetField(MatchField { field, value, .. }) => packet.set_field(field, value),
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
    /// Writes the action in the syntax of `ovs-ofctl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Output { port, max_len } if port == PortNo::CONTROLLER => {
                write!(f, "controller(max_len={max_len})")
            }
            Action::Output { port, .. } if port.is_physical() => write!(f, "output:{port}"),
            Action::Output { port, .. } => port.fmt(f),
            Action::Group(GroupId(group)) => write!(f, "group:{group}"),
            Action::SetQueue(queue) => write!(f, "set_queue:{queue}"),
            Action::SetField(MatchField { field, value, .. }) => {
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

/// Properties that all packets of a flow entry have and that its actions require.
/// Checking an action updates them.
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

    /// True if all packets are of a kind that has `field`.
    fn has(&self, field: Field) -> bool {
        let is = |known: Option<u128>, values: &[u16]| {
            known.is_some_and(|known| values.iter().any(|&value| u128::from(value) == known))
        };
        match field.info().prerequisite {
            // Setting the VLAN number requires a tag.
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

    /// Notes another `eth_type`. The headers after it are unknown.
    fn becomes(&mut self, kind: u128) {
        *self = Known {
            eth_type: Some(kind),
            ip_proto: None,
            icmpv6_type: None,
            has_tag: self.has_tag,
        };
    }

    /// Notes that an action has set a field.
    fn set(&mut self, field: Field, value: u128) {
        match field {
            Field::EthType => self.becomes(value),
            Field::IpProto => (self.ip_proto, self.icmpv6_type) = (Some(value), None),
            Field::Icmpv6Type => self.icmpv6_type = Some(value),
            _ => {}
        }
    }
}

fn is_mpls(kind: u16) -> bool {
    matches!(kind, eth_type::MPLS | eth_type::MPLS_UPSTREAM)
}

/// Checks that actions fit the packets of a match. Each action may set only fields that
/// packets have after the actions before, and only to valid values (OpenFlow 1.3.5
/// §7.2.4, §7.4.4.4). Does not check that ports and groups exist.
///
/// # Errors
/// [`OpenFlowError`] about the first action that does not fit.
pub fn check(actions: &[Action], flow: &FlowMatch) -> Result<(), OpenFlowError> {
    if !actions.iter().any(Action::changes_packets) {
        return actions.iter().try_for_each(check_alone);
    }
    let mut known = Known::of(flow);
    for action in actions {
        check_action(action, &mut known)?;
    }
    Ok(())
}

/// Checks that a list of actions is within [`MAX_PACKET_ACTIONS`].
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

/// Checks an action without its match.
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
        Action::SetField(MatchField { field, value, mask }) => {
            let max_value = field.max_value();
            if !field.info().settable {
                return refuse(ErrorCode::BadSetType, "no action can set this field");
            }
            if value > max_value || mask != max_value {
                let width = field.info().width;
                let why = format!("a value of all {width} bits of {field} is needed, and no mask");
                return refuse(ErrorCode::BadSetArgument, &why);
            }
            if field == Field::EthType && value < u128::from(eth_type::LEAST) {
                let why = format!(
                    "a smaller number than {:#06x} is the length of an 802.3 frame",
                    eth_type::LEAST
                );
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

/// Checks an action against the known properties of packets, and updates these to the
/// properties after the action.
fn check_action(action: &Action, known: &mut Known) -> Result<(), OpenFlowError> {
    check_alone(action)?;
    let (fits, needed) = match *action {
        Action::SetField(MatchField { field, .. }) => (known.has(field), "this field"),
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
        // Whether the packet has another tag is unknown.
        Action::PopVlan => known.has_tag = false,
        Action::PushMpls(kind) | Action::PopMpls(kind) => known.becomes(u128::from(kind)),
        Action::SetField(MatchField { field, value, .. }) => known.set(field, value),
        _ => {}
    }
    Ok(())
}

/// The actions for a packet that leaves the last table: at most one action of each kind,
/// in the order of kinds.
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
    /// Writes actions into the set. Each replaces the action of its kind.
    pub fn write(&mut self, actions: &[Action]) {
        for action in actions {
            let kind = action.kind();
            match self.actions.binary_search_by_key(&kind, Action::kind) {
                Ok(at) => self.actions[at] = *action,
                Err(at) => self.actions.insert(at, *action),
            }
        }
    }

    /// Replaces this set by a copy of `other`. The set keeps its memory.
    pub(crate) fn copy_from(&mut self, other: &ActionSet) {
        self.actions.clone_from(&other.actions);
    }

    /// Removes all actions. The set keeps its memory.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// True if the set has no action.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Iterates over all actions in the order of their kinds.
    pub fn in_order(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter()
    }

    /// Iterates over the actions that are carried out, in their order. If there is a
    /// group, the output is left out.
    pub fn ordered(&self) -> impl Iterator<Item = &Action> {
        let has_group = self
            .actions
            .iter()
            .any(|action| action.kind() == Kind::Group);
        let output = move |action: &&Action| has_group && action.kind() == Kind::Output;
        self.actions.iter().filter(move |action| !output(action))
    }
}
