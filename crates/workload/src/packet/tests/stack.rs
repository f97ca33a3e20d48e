//! Frames built by hand, layer by layer, and the results that the parser must return.

use crate::packet::{Fragment, LinkType};

/// The layer above IP.
#[derive(Clone, Debug)]
pub(crate) enum Upper {
    /// TCP: ports, and the number of 32-bit words of options.
    Tcp(u16, u16, u8),
    Udp(u16, u16),
    Sctp(u16, u16),
    /// ICMP or ICMPv6: type and code.
    Icmp(u8, u8),
    /// A protocol number and some bytes.
    Other(u8, Vec<u8>),
}

/// An IPv6 extension header.
#[derive(Clone, Debug)]
pub(crate) enum Extension {
    HopByHop(u8),
    Routing(u8),
    Destination(u8),
    /// Offset, and the more-fragments flag.
    Fragment(u16, bool),
    Authentication(u8),
}

#[derive(Clone, Debug)]
pub(crate) enum Net {
    V4 {
        src: u32,
        dst: u32,
        dscp: u8,
        option_words: u8,
        offset: u16,
        more: bool,
        upper: Upper,
    },
    V6 {
        src: u128,
        dst: u128,
        dscp: u8,
        extensions: Vec<Extension>,
        upper: Upper,
    },
    Arp {
        /// True for RARP.
        reverse: bool,
        operation: u16,
        sender: u32,
        target: u32,
    },
    Other(u16, Vec<u8>),
}

#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) link: LinkType,
    /// TPID, VLAN number and priority of each tag.
    pub(crate) tags: Vec<(u16, u16, u8)>,
    /// Label and traffic class of each entry.
    pub(crate) labels: Vec<(u32, u8)>,
    /// The number of a PPPoE session; only without labels.
    pub(crate) session: Option<u16>,
    pub(crate) net: Net,
    pub(crate) padding: usize,
}

pub(crate) const SRC: u64 = 0x0200_0000_00aa;
pub(crate) const DST: u64 = 0x0200_0000_00bb;

impl Upper {
    pub(crate) fn protocol(&self, v6: bool) -> u8 {
        match self {
            Upper::Tcp(..) => 6,
            Upper::Udp(..) => 17,
            Upper::Sctp(..) => 132,
            Upper::Icmp(..) if v6 => 58,
            Upper::Icmp(..) => 1,
            Upper::Other(protocol, _) => *protocol,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let two = |sport: u16, dport: u16| [sport.to_be_bytes(), dport.to_be_bytes()].concat();
        match self {
            Upper::Tcp(sport, dport, options) => {
                let mut bytes = two(*sport, *dport);
                bytes.resize(20 + 4 * usize::from(*options), 1);
                bytes[12] = (5 + options) << 4;
                bytes
            }
            Upper::Udp(sport, dport) => {
                let mut bytes = two(*sport, *dport);
                bytes.extend([0, 11, 0, 0, 1, 2, 3]);
                bytes
            }
            Upper::Sctp(sport, dport) => {
                let mut bytes = two(*sport, *dport);
                bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 11, 0, 0, 4]);
                bytes
            }
            Upper::Icmp(kind, code) => vec![*kind, *code, 0, 0, 0, 0, 0, 0],
            Upper::Other(_, bytes) => bytes.clone(),
        }
    }

    pub(crate) fn ports(&self) -> Option<(u16, u16)> {
        match *self {
            Upper::Tcp(sport, dport, _) | Upper::Udp(sport, dport) | Upper::Sctp(sport, dport) => {
                Some((sport, dport))
            }
            _ => None,
        }
    }

    pub(crate) fn icmp(&self) -> Option<(u8, u8)> {
        match *self {
            Upper::Icmp(kind, code) => Some((kind, code)),
            _ => None,
        }
    }
}

impl Extension {
    fn protocol(&self) -> u8 {
        match self {
            Extension::HopByHop(_) => 0,
            Extension::Routing(_) => 43,
            Extension::Fragment(..) => 44,
            Extension::Authentication(_) => 51,
            Extension::Destination(_) => 60,
        }
    }

    fn bytes(&self, next: u8) -> Vec<u8> {
        match *self {
            Extension::HopByHop(units) | Extension::Destination(units) => {
                let mut bytes = vec![next, units];
                // One padding option or several fill the header.
                bytes.resize(8 + 8 * usize::from(units), 0);
                bytes
            }
            Extension::Routing(units) => {
                let mut bytes = vec![next, units, 4, 0];
                bytes.resize(8 + 8 * usize::from(units), 0);
                bytes
            }
            Extension::Fragment(offset, more) => {
                let field = ((offset << 3) | u16::from(more)).to_be_bytes();
                vec![next, 0, field[0], field[1], 0, 0, 0, 9]
            }
            Extension::Authentication(words) => {
                let mut bytes = vec![next, words];
                bytes.resize((usize::from(words) + 2) * 4, 7);
                bytes
            }
        }
    }
}

impl Net {
    pub(crate) fn ethertype(&self) -> u16 {
        match self {
            Net::V4 { .. } => 0x0800,
            Net::V6 { .. } => 0x86dd,
            Net::Arp { reverse: false, .. } => 0x0806,
            Net::Arp { reverse: true, .. } => 0x8035,
            Net::Other(ethertype, _) => *ethertype,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Net::V4 {
                src,
                dst,
                dscp,
                option_words,
                offset,
                more,
                upper,
            } => {
                let payload = upper.bytes();
                let header = 20 + 4 * usize::from(*option_words);
                let total = u16::try_from(header + payload.len()).unwrap();
                let mut bytes = vec![0x45 + option_words, dscp << 2];
                bytes.extend(total.to_be_bytes());
                bytes.extend([0, 1]);
                bytes.extend((offset | (u16::from(*more) << 13)).to_be_bytes());
                bytes.extend([64, upper.protocol(false), 0, 0]);
                bytes.extend(src.to_be_bytes());
                bytes.extend(dst.to_be_bytes());
                bytes.resize(header, 1);
                bytes.extend(payload);
                bytes
            }
            Net::V6 {
                src,
                dst,
                dscp,
                extensions,
                upper,
            } => {
                let mut next = upper.protocol(true);
                let mut payload = upper.bytes();
                for extension in extensions.iter().rev() {
                    let mut bytes = extension.bytes(next);
                    bytes.extend(payload);
                    payload = bytes;
                    next = extension.protocol();
                }
                let mut bytes = vec![0x60 | (dscp >> 2), dscp << 6, 0, 0];
                bytes.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
                bytes.extend([next, 64]);
                bytes.extend(src.to_be_bytes());
                bytes.extend(dst.to_be_bytes());
                bytes.extend(payload);
                bytes
            }
            Net::Arp {
                operation,
                sender,
                target,
                ..
            } => {
                let mut bytes = vec![0, 1, 8, 0, 6, 4];
                bytes.extend(operation.to_be_bytes());
                bytes.extend([2, 0, 0, 0, 0, 0xaa]);
                bytes.extend(sender.to_be_bytes());
                bytes.extend([0; 6]);
                bytes.extend(target.to_be_bytes());
                bytes
            }
            Net::Other(_, bytes) => bytes.clone(),
        }
    }

    pub(crate) fn fragment(&self) -> Fragment {
        match self {
            Net::V4 { offset, more, .. } => Fragment::new(*offset, *more),
            Net::V6 { extensions, .. } => extensions
                .iter()
                .filter_map(|extension| match extension {
                    Extension::Fragment(offset, more) => Some(Fragment::new(*offset, *more)),
                    _ => None,
                })
                .find(|&fragment| fragment != Fragment::Whole)
                .unwrap_or_default(),
            _ => Fragment::Whole,
        }
    }
}

impl Stack {
    pub(crate) fn ethernet(net: Net) -> Stack {
        Stack {
            link: LinkType::Ethernet,
            tags: Vec::new(),
            labels: Vec::new(),
            session: None,
            net,
            padding: 0,
        }
    }

    /// The EtherType after the tags.
    pub(crate) fn ethertype(&self) -> u16 {
        match self.session {
            Some(_) => 0x8864,
            None if self.labels.is_empty() => self.net.ethertype(),
            None => 0x8847,
        }
    }

    /// Builds the frame.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let first = self.tags.first().map_or(self.ethertype(), |tag| tag.0);
        let mut frame = match self.link {
            LinkType::Ethernet => {
                let mut header = DST.to_be_bytes()[2..].to_vec();
                header.extend(&SRC.to_be_bytes()[2..]);
                header.extend(first.to_be_bytes());
                header
            }
            LinkType::LinuxCooked => {
                let mut header = vec![0, 0, 0, 1, 0, 6];
                header.extend(&SRC.to_be_bytes()[2..]);
                header.extend([0, 0]);
                header.extend(first.to_be_bytes());
                header
            }
            LinkType::LinuxCooked2 => {
                let mut header = first.to_be_bytes().to_vec();
                header.extend([0, 0, 0, 0, 0, 2, 0, 1, 0, 6]);
                header.extend(&SRC.to_be_bytes()[2..]);
                header.extend([0, 0]);
                header
            }
            LinkType::Null => match self.net {
                Net::V6 { .. } => vec![30, 0, 0, 0],
                _ => vec![2, 0, 0, 0],
            },
            LinkType::Loopback => match self.net {
                Net::V6 { .. } => vec![0, 0, 0, 24],
                _ => vec![0, 0, 0, 2],
            },
            _ => Vec::new(),
        };
        for (index, &(_, vid, pcp)) in self.tags.iter().enumerate() {
            let next = self
                .tags
                .get(index + 1)
                .map_or(self.ethertype(), |tag| tag.0);
            frame.extend((vid | (u16::from(pcp) << 13)).to_be_bytes());
            frame.extend(next.to_be_bytes());
        }
        for (index, &(label, tc)) in self.labels.iter().enumerate() {
            let bottom = u32::from(index + 1 == self.labels.len());
            let entry = (label << 12) | (u32::from(tc) << 9) | (bottom << 8) | 64;
            frame.extend(entry.to_be_bytes());
        }
        let net = self.net.bytes();
        if let Some(session) = self.session {
            let protocol: u16 = match self.net {
                Net::V4 { .. } => 0x0021,
                Net::V6 { .. } => 0x0057,
                // The link control protocol.
                _ => 0xc021,
            };
            frame.extend([0x11, 0]);
            frame.extend(session.to_be_bytes());
            frame.extend(u16::try_from(net.len() + 2).unwrap().to_be_bytes());
            frame.extend(protocol.to_be_bytes());
        }
        frame.extend(net);
        frame.resize(frame.len() + self.padding, 0);
        frame
    }

    /// Returns the expected `openflow15` header.
    pub(crate) fn openflow15(&self, in_port: u32) -> [u128; 15] {
        let (eth_src, eth_dst) = match self.link {
            LinkType::Ethernet => (SRC, DST),
            LinkType::LinuxCooked | LinkType::LinuxCooked2 => (SRC, 0),
            _ => (0, 0),
        };
        let (_, vid, pcp) = self.tags.first().copied().unwrap_or_default();
        let (label, tc) = self.labels.first().copied().unwrap_or_default();
        let later = self.net.fragment() == Fragment::Later;
        let ports = |upper: &Upper| match (upper.ports(), upper.icmp()) {
            _ if later => (0, 0),
            (Some(ports), _) => ports,
            (_, Some((kind, code))) => (u16::from(kind), u16::from(code)),
            _ => (0, 0),
        };
        let (src, dst, proto, dscp, (sport, dport)) = match &self.net {
            Net::V4 {
                src,
                dst,
                dscp,
                upper,
                ..
            } => (*src, *dst, upper.protocol(false), *dscp, ports(upper)),
            Net::V6 { dscp, upper, .. } => (0, 0, upper.protocol(true), *dscp, ports(upper)),
            Net::Arp {
                operation,
                sender,
                target,
                ..
            } => (
                *sender,
                *target,
                u8::try_from(*operation).unwrap_or(0),
                0,
                (0, 0),
            ),
            Net::Other(..) => (0, 0, 0, 0, (0, 0)),
        };
        [
            in_port.into(),
            0,
            eth_src.into(),
            eth_dst.into(),
            self.ethertype().into(),
            vid.into(),
            pcp.into(),
            label.into(),
            tc.into(),
            src.into(),
            dst.into(),
            proto.into(),
            dscp.into(),
            sport.into(),
            dport.into(),
        ]
    }

    /// Returns the expected five-tuple for the packet's IP version.
    pub(crate) fn five_tuple(&self) -> Option<[u128; 5]> {
        let later = self.net.fragment() == Fragment::Later;
        let (src, dst, upper, v6) = match &self.net {
            Net::V4 {
                src, dst, upper, ..
            } => (u128::from(*src), u128::from(*dst), upper, false),
            Net::V6 {
                src, dst, upper, ..
            } => (*src, *dst, upper, true),
            _ => return None,
        };
        let (sport, dport) = match upper.ports() {
            Some(ports) if !later => ports,
            _ => (0, 0),
        };
        Some([
            src,
            dst,
            sport.into(),
            dport.into(),
            upper.protocol(v6).into(),
        ])
    }
}
