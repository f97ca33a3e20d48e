"""The packets of `differences`: for each row of docs/differences.md, and what it says of them.

Expectations are words: `tp_dst=80` is a field and its value, `-tcp_dst` a field that is
not there. A word alone is, for Open vSwitch, the protocol that it prints and, for
classyard, a malformation that it counts; there must be no others. For Open vSwitch a
field that a packet lacks is 0.
"""

import dataclasses
import struct


@dataclasses.dataclass
class Packet:
    """A packet of a row. What a column does not say is not compared."""

    name: str
    frame: bytes
    ovs: str = None
    # What `trace` reads, and what commands that take rules read.
    here: str = None
    rules: str = None
    # Matches of flows, and whether Open vSwitch and classyard find that the packet has them.
    matches: tuple = ()
    # The `vlan-limit` of Open vSwitch (2 in parse-pcap), and its handling of fragments.
    tags: int = 2
    frag: str = "normal"

    def __post_init__(self):
        self.with_bridge = bool(self.matches) or self.tags != 2 or len(self.frame) > MOST_IN_PCAP


# `ovs-ofctl parse-pcap` refuses captures with longer packets. `ofproto/trace` of 3.1 takes
# them, but with more than 65,590 bytes it writes beyond its memory.
MOST_IN_PCAP = 65_535

MAC_1, MAC_2 = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
IP6_1, IP6_2 = (bytes.fromhex(f"20010db8{number:024x}") for number in (1, 2))
IPV4, IPV6, ARP, RARP, MPLS, PPPOE = 0x0800, 0x86DD, 0x0806, 0x8035, 0x8847, 0x8864
VLAN, SERVICE_VLAN, OLD_VLAN = 0x8100, 0x88A8, 0x9100
HOPS, ICMP, IGMP, TCP, UDP, FRAGMENT, ICMP6, NO_NEXT, DESTINATION, SCTP = 0, 1, 2, 6, 17, 44, 58, 59, 60, 132


def ethernet(kind, content):
    return MAC_1 + MAC_2 + struct.pack("!H", kind) + content


def tagged(vids, kind, content, tpid=VLAN):
    """Behind the type of the first tag: the tags, and what they carry."""
    kinds = [tpid] * (len(vids) - 1) + [kind]
    return b"".join(struct.pack("!HH", vid, after) for vid, after in zip(vids, kinds)) + content


def snap(kind, content, organisation=0):
    return bytes.fromhex("aaaa03") + organisation.to_bytes(3, "big") + struct.pack("!H", kind) + content


def in_802_3(content, length=None):
    return ethernet(len(content) if length is None else length, content)


def arp(hardware=1, operation=1):
    return (struct.pack("!HHBBH", hardware, IPV4, 6, 4, operation) + MAC_2 + bytes([10, 0, 0, 1]) + bytes(6)
            + bytes([10, 0, 0, 2]))


def ipv4(protocol, content, version=4, words=5, options=b"", length=None, fragment=0):
    """An IPv4 packet with DSCP 10; `words` is what its header length says."""
    total = 20 + len(options) + len(content) if length is None else length
    return struct.pack("!BBHHHBBH4B4B", version << 4 | words, 10 << 2, total, 1, fragment, 64, protocol, 0,
                       10, 0, 0, 1, 10, 0, 0, 2) + options + content


def ipv6(following, content, version=6, length=None):
    """An IPv6 packet with DSCP 10 and flow label 5."""
    first = version << 28 | 10 << 22 | 5
    size = len(content) if length is None else length
    return struct.pack("!IHBB", first, size, following, 64) + IP6_1 + IP6_2 + content


def options(following, size=8, content=b""):
    """A header of hop-by-hop or destination options; the rest is padding options of one byte."""
    return (bytes([following, size // 8 - 1]) + content).ljust(size, b"\0")


def jumbo(following, length):
    return options(following, 8, b"\xc2\x04" + struct.pack("!I", length))


def fragment6(following, at, more):
    """A fragment header; `at` counts units of eight bytes."""
    return struct.pack("!BBHI", following, 0, at << 3 | more, 7)


def tcp(offset=5, content=b""):
    return struct.pack("!HHIIBBHHH", 1000, 80, 0, 0, offset << 4, 2, 0, 0, 0) + content


def udp(length=8, content=b""):
    return struct.pack("!HHHH", 1000, 80, length, 0) + content


SCTP_HEADER = struct.pack("!HHII", 1000, 80, 0, 0)
ECHO_4, ECHO_6 = bytes.fromhex("0807000000000000"), bytes.fromhex("8007000000000000")
REPORT = bytes.fromhex("16070000e0000005")
SOLICITATION, ADVERTISEMENT = 135, 136


def discovery(kind, *link_layer):
    """A message of neighbour discovery, with options of one type each."""
    message = bytes([kind, 0]) + bytes(6) + IP6_2
    return message + b"".join(bytes([option, 1, 2, 0, 0, 0, 0, 10 + number])
                              for number, option in enumerate(link_layer))


def in_ip4(protocol, content, **header):
    return ethernet(IPV4, ipv4(protocol, content, **header))


def in_ip6(following, content, **header):
    return ethernet(IPV6, ipv6(following, content, **header))


WEB = ipv4(TCP, tcp())
OVS_NO_IP4 = "ip nw_src=0.0.0.0 nw_dst=0.0.0.0 nw_proto=0 nw_tos=0"
OVS_NO_IP6 = "ipv6 ipv6_src=:: ipv6_dst=:: nw_proto=0 nw_tos=0"
OVS_TCP4 = "tcp nw_src=10.0.0.1 nw_dst=10.0.0.2 nw_tos=40"
OVS_TCP6 = "tcp6 ipv6_src=2001:db8::1 ipv6_dst=2001:db8::2 nw_tos=40 ipv6_label=0x00005"
OVS_PORTS, OVS_NO_PORTS = "tp_src=1000 tp_dst=80", "tp_src=0 tp_dst=0"
OVS_ADDRESSES6 = "ipv6 ipv6_src=2001:db8::1 ipv6_dst=2001:db8::2 nw_proto=0 nw_tos=0 ipv6_label=0x00000"
NO_IP4 = "eth_type=0x800 -ipv4_src -ipv4_dst -ip_proto -ip_dscp -tcp_src"
NO_IP6 = "eth_type=0x86dd -ipv6_src -ipv6_dst -ip_proto -ip_dscp -tcp_src"
SOME_IP4 = "eth_type=0x800 ipv4_src=10.0.0.1 ipv4_dst=10.0.0.2 ip_proto=6 ip_dscp=10"
ADDRESSES6 = "eth_type=0x86dd ipv6_src=2001:db8::1 ipv6_dst=2001:db8::2 ip_dscp=10 ipv6_label=0x5"
SOME_IP6 = ADDRESSES6 + " ip_proto=6"
PORTS, NO_PORTS = "tcp_src=1000 tcp_dst=80", "-tcp_src -tcp_dst"
RULES_IP4 = "src=10.0.0.1 dst=10.0.0.2 proto=tcp ip_dscp=10 sport=1000 dport=80"
RULES_IP6 = "proto=tcp ip_dscp=10 sport=1000 dport=80"
WITHOUT_PORT = (("tcp,tp_dst=0", True, False), ("tcp,tp_dst=80", False, False))
WITHOUT_PORT6 = (("tcp6,tp_dst=0", True, False), ("tcp6,tp_dst=80", False, False))

ABSENT = {
    "lacks a field, such as a later fragment its ports": [
        Packet("IPv4, later fragment", in_ip4(TCP, tcp(), fragment=100), matches=WITHOUT_PORT, here=NO_PORTS),
        Packet("IPv6, TCP cut", in_ip6(TCP, tcp()[:3]), matches=WITHOUT_PORT6, here=NO_PORTS + " truncated-ports"),
    ],
    "rules: lacks a field": [
        Packet("later fragment", in_ip4(TCP, tcp(), fragment=100), rules="proto=tcp sport=0 dport=0 vlan_vid=0"),
    ],
}

ETHERNET = {
    "two VLAN tags or more": [
        Packet("two, vlan-limit 1", ethernet(VLAN, tagged([5, 6], IPV4, WEB)), tags=1,
               ovs="dl_vlan=5 -dl_vlan1 dl_type=0x8100", here="vlan_vid=0x1005 " + SOME_IP4),
        Packet("two, vlan-limit 2", ethernet(SERVICE_VLAN, tagged([0xE005, 6], IPV4, WEB)),
               ovs="tcp dl_vlan=5 dl_vlan_pcp=7 dl_vlan1=6 tp_dst=80", here="vlan_vid=0x1005 vlan_pcp=7 " + SOME_IP4),
        Packet("three, vlan-limit 2", ethernet(VLAN, tagged([5, 6, 7], IPV4, WEB)),
               ovs="dl_vlan=5 dl_vlan1=6 dl_type=0x8100", here="vlan_vid=0x1005 " + SOME_IP4),
        Packet("eight", ethernet(VLAN, tagged(list(range(5, 13)), IPV4, WEB)),
               ovs="dl_vlan=5 dl_vlan1=6 dl_type=0x8100", here="vlan_vid=0x1005 " + SOME_IP4),
    ],
    "more than eight tags": [
        Packet("nine", ethernet(VLAN, tagged(list(range(5, 13)), SERVICE_VLAN, tagged([13], IPV4, WEB))),
               ovs="dl_vlan=5 dl_vlan1=6 dl_type=0x8100",
               here="vlan_vid=0x1005 eth_type=0x88a8 -ipv4_src too-many-vlan-tags"),
    ],
    "tag 0x9100": [
        Packet("one", ethernet(OLD_VLAN, tagged([5], IPV4, WEB)), ovs="-dl_vlan dl_type=0x9100",
               here="vlan_vid=0x1005 " + SOME_IP4),
    ],
    "ends inside a tag": [
        Packet("no byte of it", ethernet(VLAN, b""), ovs="-dl_vlan dl_type=0x8100",
               here="-vlan_vid eth_type=0x8100 truncated-vlan"),
        Packet("three bytes of it", ethernet(SERVICE_VLAN, bytes(3)), ovs="-dl_vlan dl_type=0x88a8",
               here="-vlan_vid eth_type=0x88a8 truncated-vlan"),
        Packet("of the second", ethernet(SERVICE_VLAN, tagged([5], VLAN, bytes(2))), ovs="dl_vlan=5 dl_type=0x8100",
               here="vlan_vid=0x1005 eth_type=0x8100 truncated-vlan"),
    ],
    "a length in place of a type, then SNAP": [
        Packet("00-00-00", in_802_3(snap(IPV4, WEB)), ovs=f"{OVS_TCP4} {OVS_PORTS}", here=f"{SOME_IP4} {PORTS}"),
        Packet("00-00-f8", in_802_3(snap(IPV4, WEB, 0xF8)), ovs="dl_type=0x05ff", here=f"{SOME_IP4} {PORTS}"),
        Packet("00-00-0c", in_802_3(snap(IPV4, WEB, 0x0C)), ovs="dl_type=0x05ff", here="eth_type=0x5ff -ipv4_src"),
    ],
    "a length in place of a type": [
        Packet("ends in IPv4", in_802_3(snap(IPV4, WEB), 18), ovs=f"{OVS_TCP4} {OVS_PORTS}",
               here=NO_IP4 + " truncated-ipv4"),
        Packet("ends before TCP", in_802_3(snap(IPV4, WEB), 28), ovs=f"{OVS_TCP4} {OVS_PORTS}",
               here=f"{SOME_IP4} {NO_PORTS} payload-cut truncated-ports"),
        Packet("beyond the frame", in_802_3(snap(IPV4, WEB), 1000), ovs=f"{OVS_TCP4} {OVS_PORTS}",
               here=f"{SOME_IP4} {PORTS}"),
    ],
    "rules: SNAP announces a VLAN tag": [
        Packet("one", in_802_3(snap(VLAN, tagged([5], IPV4, WEB))), rules="vlan_vid=5 eth_type=0x800 " + RULES_IP4,
               here="eth_type=0x8100 -vlan_vid -ipv4_src"),
    ],
    "shorter than 14 bytes": [
        Packet("13 bytes", ethernet(IPV4, b"")[:13],
               ovs="dl_src=00:00:00:00:00:00 dl_dst=00:00:00:00:00:00 dl_type=0x0000",
               here="eth_src=00:00:00:00:00:00 eth_dst=00:00:00:00:00:00 eth_type=0x0 truncated-ethernet"),
    ],
    "PPPoE session (0x8864)": [
        Packet("IPv4", ethernet(PPPOE, bytes.fromhex("11000001002a0021") + WEB), ovs="dl_type=0x8864",
               here="eth_type=0x8864 -ipv4_src -tcp_dst"),
    ],
    "rules: PPPoE session": [
        Packet("IPv4", ethernet(PPPOE, bytes.fromhex("11000001002a0021") + WEB), rules="eth_type=0x8864 " + RULES_IP4),
        Packet("IPv6", ethernet(PPPOE, bytes.fromhex("11000001003e0057") + ipv6(TCP, tcp())),
               rules="eth_type=0x8864 " + RULES_IP6),
    ],
    "MPLS": [
        Packet("four labels", ethernet(MPLS, bytes.fromhex("00010040 00020040 00030040 00040140")),
               ovs=f"mpls mpls_label=16 mpls_lse1={0x0002_0040} mpls_lse2={0x0003_0040}",
               here="eth_type=0x8847 mpls_label=0x10 mpls_tc=0"),
    ],
    "rules: MPLS": [
        Packet("IPv4", ethernet(MPLS, bytes.fromhex("00010040 00020140") + WEB),
               rules="eth_type=0x8847 mpls_label=16 " + RULES_IP4, here="mpls_label=0x10 -ipv4_src"),
        Packet("IPv6", ethernet(MPLS, bytes.fromhex("00010140") + ipv6(TCP, tcp())),
               rules="eth_type=0x8847 mpls_label=16 " + RULES_IP6, here="mpls_label=0x10 -ipv6_src"),
    ],
}

ARP_FIELDS = "arp_spa=10.0.0.1 arp_tpa=10.0.0.2 arp_sha=02:00:00:00:00:02"

ARP_ROWS = {
    "hardware type 6 (IEEE 802)": [
        Packet("request", ethernet(ARP, arp(hardware=6)), ovs="arp arp_spa=0.0.0.0 arp_tpa=0.0.0.0 arp_op=0",
               here="arp_op=1 " + ARP_FIELDS),
    ],
    "operation above 255": [
        Packet("259", ethernet(ARP, arp(operation=259)), ovs="arp arp_op=0 " + ARP_FIELDS,
               here="arp_op=259 " + ARP_FIELDS, rules="eth_type=0x806 proto=hopopt"),
    ],
    "RARP": [
        Packet("request", ethernet(RARP, arp(operation=3)), ovs="rarp arp_op=3 " + ARP_FIELDS,
               here="eth_type=0x8035 -arp_op -arp_spa", rules="eth_type=0x8035 src=10.0.0.1 dst=10.0.0.2 proto=3"),
    ],
}

IPV4_ROWS = {
    "version other than 4": [
        Packet("6", in_ip4(TCP, tcp(), version=6), ovs=f"{OVS_TCP4} {OVS_PORTS}", here=NO_IP4 + " bad-ipv4-version"),
    ],
    "header length below 20 bytes": [
        Packet("16", in_ip4(TCP, tcp(), words=4), ovs=OVS_NO_IP4, here=NO_IP4 + " bad-ihl"),
    ],
    "header longer than the frame": [
        Packet("60 of 40 bytes", in_ip4(TCP, tcp(), words=15, length=80), ovs=OVS_NO_IP4,
               here=f"{SOME_IP4} {NO_PORTS} truncated-ipv4-options"),
    ],
    "total length beyond the frame": [
        Packet("by 1000", in_ip4(TCP, tcp(), length=1040), ovs=OVS_NO_IP4, here=f"{SOME_IP4} {PORTS} payload-cut"),
    ],
    "total length below the header's": [
        Packet("19", in_ip4(TCP, tcp(), length=19), ovs=OVS_NO_IP4, here=f"{SOME_IP4} {NO_PORTS} bad-total-length"),
        Packet("23 of 24", in_ip4(TCP, tcp(), words=6, options=bytes(4), length=23), ovs=OVS_NO_IP4,
               here=f"{SOME_IP4} {NO_PORTS} bad-total-length"),
    ],
    "total length 0": [
        Packet("TCP", in_ip4(TCP, tcp(), length=0), ovs=OVS_NO_IP4, here=f"{SOME_IP4} {PORTS} zero-length"),
    ],
    "more than 65,535 bytes of padding": [
        Packet("65,535", in_ip4(TCP, tcp()) + bytes(65_535), ovs=f"{OVS_TCP4} {OVS_PORTS}", here=f"{SOME_IP4} {PORTS}"),
        Packet("65,536", in_ip4(TCP, tcp()) + bytes(65_536), ovs=OVS_NO_IP4, here=f"{SOME_IP4} {PORTS}"),
    ],
    "first fragment": [
        Packet("frag=normal", in_ip4(TCP, tcp(), fragment=0x2000), here=PORTS,
               matches=(("tcp,tp_dst=0", True, False), ("tcp,tp_dst=80", False, True))),
        Packet("frag=nx-match", in_ip4(TCP, tcp(), fragment=0x2000), here=PORTS, frag="nx-match",
               matches=(("tcp,tp_dst=0", False, False), ("tcp,tp_dst=80", True, True))),
    ],
    "later fragment": [
        Packet("frag=normal", in_ip4(TCP, tcp(), fragment=100), here=NO_PORTS, matches=WITHOUT_PORT),
        Packet("frag=nx-match", in_ip4(TCP, tcp(), fragment=100), here=NO_PORTS, frag="nx-match",
               matches=WITHOUT_PORT),
    ],
}

IPV6_ROWS = {
    "version other than 6": [
        Packet("4", in_ip6(TCP, tcp(), version=4), ovs=f"{OVS_TCP6} {OVS_PORTS}", here=NO_IP6 + " bad-ipv6-version"),
    ],
    "payload length beyond the frame": [
        Packet("by 1000", in_ip6(TCP, tcp(), length=1020), ovs=OVS_NO_IP6, here=f"{SOME_IP6} {PORTS} payload-cut"),
    ],
    "payload length 0 in front of TCP, UDP, SCTP, ICMPv6 or an extension header, and more follows": [
        Packet("TCP", in_ip6(TCP, tcp(), length=0), ovs=f"{OVS_TCP6} {OVS_NO_PORTS}",
               here=f"{SOME_IP6} {PORTS} zero-length"),
        Packet("UDP", in_ip6(UDP, udp(), length=0), ovs="udp6 " + OVS_NO_PORTS, here="udp_dst=80 zero-length"),
        Packet("SCTP", in_ip6(SCTP, SCTP_HEADER, length=0), ovs="sctp6 " + OVS_NO_PORTS,
               here="sctp_dst=80 zero-length"),
        Packet("ICMPv6", in_ip6(ICMP6, ECHO_6, length=0), ovs="icmp6 icmp_type=0 icmp_code=0",
               here="icmpv6_type=128 icmpv6_code=7 zero-length"),
        Packet("hop-by-hop options", in_ip6(HOPS, options(TCP) + tcp(), length=0), ovs=OVS_ADDRESSES6,
               here=f"{SOME_IP6} {PORTS} zero-length"),
        Packet("TCP, 65,535 follow", in_ip6(TCP, tcp(content=bytes(65_515)), length=0),
               ovs=f"{OVS_TCP6} {OVS_NO_PORTS}", here=f"{SOME_IP6} {PORTS} zero-length"),
        Packet("TCP, 65,536 follow", in_ip6(TCP, tcp(content=bytes(65_516)), length=0), ovs=OVS_NO_IP6,
               here=f"{SOME_IP6} {PORTS} zero-length"),
    ],
    "jumbo payload option (RFC 2675)": [
        Packet("cut", in_ip6(HOPS, jumbo(TCP, 70_000) + tcp(), length=0), ovs=OVS_ADDRESSES6,
               here=f"{SOME_IP6} {PORTS} payload-cut"),
        Packet("whole", in_ip6(HOPS, jumbo(TCP, 65_536) + tcp(content=bytes(65_508)), length=0), ovs=OVS_NO_IP6,
               here=f"{SOME_IP6} {PORTS}"),
    ],
    "jumbo payload option of 65,535 or less, or behind another length than 0": [
        Packet("28, length 0", in_ip6(HOPS, jumbo(TCP, 28) + tcp(), length=0), ovs=OVS_ADDRESSES6,
               here=f"{SOME_IP6} {PORTS} zero-length"),
        Packet("70,000, length 28", in_ip6(HOPS, jumbo(TCP, 70_000) + tcp()), ovs=f"{OVS_TCP6} {OVS_PORTS}",
               here=f"{SOME_IP6} {PORTS}"),
    ],
    "more than 65,535 bytes of padding": [
        Packet("65,535 behind no next header", in_ip6(NO_NEXT, b"") + bytes(65_535), ovs="ipv6 nw_proto=59 nw_tos=40",
               here=ADDRESSES6 + " ip_proto=59"),
        Packet("65,536 behind no next header", in_ip6(NO_NEXT, b"") + bytes(65_536), ovs=OVS_NO_IP6,
               here=ADDRESSES6 + " ip_proto=59"),
    ],
    "first fragment": [
        Packet("frag=normal", in_ip6(FRAGMENT, fragment6(TCP, 0, 1) + tcp()), here=f"{SOME_IP6} {PORTS}",
               matches=(("tcp6,tp_dst=0", True, False), ("tcp6,tp_dst=80", False, True))),
        Packet("frag=nx-match", in_ip6(FRAGMENT, fragment6(TCP, 0, 1) + tcp()), here=f"{SOME_IP6} {PORTS}",
               frag="nx-match", matches=(("tcp6,tp_dst=0", False, False), ("tcp6,tp_dst=80", True, True))),
    ],
    "later fragment": [
        Packet("TCP", in_ip6(FRAGMENT, fragment6(TCP, 100, 1) + tcp()), ovs="ipv6 nw_proto=44",
               here=f"{SOME_IP6} {NO_PORTS}", matches=(("tcp6", False, True), ("ipv6,nw_proto=44", True, False))),
        Packet("destination options", in_ip6(FRAGMENT, fragment6(DESTINATION, 100, 1) + tcp()),
               ovs="ipv6 nw_proto=44", here=f"{ADDRESSES6} ip_proto=60 {NO_PORTS}"),
    ],
    "extension headers": [
        Packet("8,192 bytes", in_ip6(DESTINATION, options(DESTINATION, 2048) * 3 + options(TCP, 2048) + tcp()),
               ovs=f"{OVS_TCP6} {OVS_PORTS}", here=f"{SOME_IP6} {PORTS}"),
        Packet("8,200 bytes", in_ip6(DESTINATION, options(DESTINATION, 2048) * 4 + options(TCP) + tcp()),
               ovs=f"{OVS_TCP6} {OVS_PORTS}", here=f"{ADDRESSES6} -ip_proto {NO_PORTS} too-many-ipv6-extensions"),
    ],
    "ends inside an extension header": [
        Packet("16 of 24 bytes", in_ip6(DESTINATION, options(TCP, 24)[:16]),
               ovs=OVS_ADDRESSES6,
               here=f"{ADDRESSES6} -ip_proto truncated-ipv6-extension"),
    ],
}

NO_ND = "-nd_target -nd_sll -nd_tll"
TARGET = "nd_target=2001:db8::2"
OVS_TARGET, OVS_NO_ND = "icmp6 nd_target=2001:db8::2", "icmp6 nd_target=:: nd_sll=00:00:00:00:00:00"
OVS_UDP = "udp nw_src=10.0.0.1"
FIRST_OPTION, LAST_OF_16, LAST_OF_17 = "02:00:00:00:00:0a", "02:00:00:00:00:19", "02:00:00:00:00:1a"
ZERO_OPTION = bytes([1, 1]) + bytes(6)

TRANSPORT = {
    "TCP of less than 20 bytes, or less than its data offset says, or an offset below 20": [
        Packet("19 bytes", in_ip4(TCP, tcp()[:19]), ovs=f"{OVS_TCP4} {OVS_NO_PORTS}",
               here=f"{SOME_IP4} {PORTS} truncated-tcp"),
        Packet("4 bytes", in_ip6(TCP, tcp()[:4]), ovs=f"{OVS_TCP6} {OVS_NO_PORTS}",
               here=f"{SOME_IP6} {PORTS} truncated-tcp"),
        Packet("3 bytes", in_ip4(TCP, tcp()[:3]), ovs=f"{OVS_TCP4} {OVS_NO_PORTS}",
               here=f"{SOME_IP4} {NO_PORTS} truncated-ports"),
        Packet("offset 24 of 20", in_ip4(TCP, tcp(offset=6)), ovs=f"{OVS_TCP4} {OVS_NO_PORTS}",
               here=f"{SOME_IP4} {PORTS} truncated-tcp"),
        Packet("offset 16", in_ip4(TCP, tcp(offset=4)), ovs=f"{OVS_TCP4} {OVS_NO_PORTS}",
               here=f"{SOME_IP4} {PORTS} bad-tcp-offset"),
    ],
    "UDP of less than 8 bytes": [
        Packet("7 bytes", in_ip4(UDP, udp()[:7]), ovs=f"{OVS_UDP} {OVS_NO_PORTS}", here="udp_dst=80 truncated-udp"),
        Packet("3 bytes", in_ip4(UDP, udp()[:3]), ovs=f"{OVS_UDP} {OVS_NO_PORTS}", here="-udp_dst truncated-ports"),
    ],
    "UDP length that lies": [
        Packet("7", in_ip4(UDP, udp(7)), ovs=f"{OVS_UDP} {OVS_PORTS}", here="udp_dst=80 bad-udp-length"),
        Packet("9 of 8", in_ip4(UDP, udp(9)), ovs=f"{OVS_UDP} {OVS_PORTS}", here="udp_dst=80 bad-udp-length"),
    ],
    "SCTP of less than 12 bytes": [
        Packet("11 bytes", in_ip4(SCTP, SCTP_HEADER[:11]), ovs="sctp " + OVS_NO_PORTS,
               here="sctp_dst=80 truncated-sctp"),
        Packet("3 bytes", in_ip4(SCTP, SCTP_HEADER[:3]), ovs="sctp " + OVS_NO_PORTS, here="-sctp_dst truncated-ports"),
    ],
    "ICMP or ICMPv6 of less than 8 bytes": [
        Packet("ICMP, 7 bytes", in_ip4(ICMP, ECHO_4[:7]), ovs="icmp icmp_type=0 icmp_code=0",
               here="icmp_type=8 icmp_code=7"),
        Packet("ICMPv6, 2 bytes", in_ip6(ICMP6, ECHO_6[:2]), ovs="icmp6 icmp_type=0 icmp_code=0",
               here="icmpv6_type=128 icmpv6_code=7"),
        Packet("ICMP, 1 byte", in_ip4(ICMP, ECHO_4[:1]), ovs="icmp icmp_type=0 icmp_code=0",
               here="-icmp_type -icmp_code truncated-icmp"),
    ],
    "ICMP in IPv6, ICMPv6 in IPv4": [
        Packet("ICMP in IPv6", in_ip6(ICMP, ECHO_4), ovs="ipv6 nw_proto=1 tp_src=8 tp_dst=7",
               here="ip_proto=1 -icmp_type -icmpv6_type"),
        Packet("ICMPv6 in IPv4", in_ip4(ICMP6, ECHO_6), ovs="ip nw_proto=58 tp_src=128 tp_dst=7",
               here="ip_proto=58 -icmp_type -icmpv6_type"),
    ],
    "IGMP": [
        Packet("report", in_ip4(IGMP, REPORT), ovs="ip nw_proto=2 tp_src=22 tp_dst=7",
               here="ip_proto=2 -tcp_src -udp_src -icmp_type"),
    ],
    "neighbour discovery in a fragment": [
        Packet("first fragment", in_ip6(FRAGMENT, fragment6(ICMP6, 0, 1) + discovery(SOLICITATION, 1)),
               ovs=f"{OVS_TARGET} nd_sll={FIRST_OPTION}", here="icmpv6_type=135 " + NO_ND),
    ],
    "neighbour discovery, the same option twice": [
        Packet("solicitation", in_ip6(ICMP6, discovery(SOLICITATION, 1, 1)), ovs=OVS_NO_ND,
               here=f"{TARGET} nd_sll={FIRST_OPTION}"),
        Packet("advertisement", in_ip6(ICMP6, discovery(ADVERTISEMENT, 2, 2)), ovs=OVS_NO_ND,
               here=f"{TARGET} nd_tll={FIRST_OPTION}"),
        Packet("the first address 0",
               in_ip6(ICMP6, discovery(SOLICITATION) + ZERO_OPTION + discovery(SOLICITATION, 1)[24:]),
               ovs=f"{OVS_TARGET} nd_sll={FIRST_OPTION}", here=f"{TARGET} nd_sll=00:00:00:00:00:00"),
    ],
    "neighbour discovery, the option of the other kind": [
        Packet("solicitation", in_ip6(ICMP6, discovery(SOLICITATION, 2)), ovs=f"{OVS_TARGET} nd_tll={FIRST_OPTION}",
               here=f"{TARGET} -nd_sll -nd_tll"),
        Packet("advertisement", in_ip6(ICMP6, discovery(ADVERTISEMENT, 1)), ovs=f"{OVS_TARGET} nd_sll={FIRST_OPTION}",
               here=f"{TARGET} -nd_sll -nd_tll"),
    ],
    "neighbour discovery, more than 16 options": [
        Packet("the 16th", in_ip6(ICMP6, discovery(SOLICITATION, *[14] * 15, 1)),
               ovs=f"{OVS_TARGET} nd_sll={LAST_OF_16}", here=f"{TARGET} nd_sll={LAST_OF_16}"),
        Packet("the 17th", in_ip6(ICMP6, discovery(SOLICITATION, *[14] * 16, 1)),
               ovs=f"{OVS_TARGET} nd_sll={LAST_OF_17}", here=f"{TARGET} -nd_sll"),
    ],
}

PACKETS = {
    "Absent fields": ABSENT,
    "Ethernet": ETHERNET,
    "ARP": ARP_ROWS,
    "IPv4": IPV4_ROWS,
    "IPv6": IPV6_ROWS,
    "Transport": TRANSPORT,
}

# Rows without packets, by table and first cell, with the reason.
NOT_COMPARED = {}
