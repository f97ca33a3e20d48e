"""Rule sets, and the frames that hit them."""

import ipaddress
import random
import struct

from network import call

FRAME_BYTES = 60
ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17}
ONE_FLOW_CONNECTIONS = 64
SEED = 20_090_402


def frame(protocol, source, destination, source_port, destination_port):
    """An IPv4 frame of 60 bytes. Checksums are left out: forwarders do not read them."""
    header = struct.pack("!BBHHHBBHII", 0x45, 0, FRAME_BYTES - 14, 0, 0, 64, protocol, 0, source, destination)
    if protocol in (6, 17):
        header += struct.pack("!HH", source_port, destination_port)
    if protocol == 6:
        header += struct.pack("!IIBBHHH", 0, 0, 5 << 4, 0x10, 1024, 0, 0)
    elif protocol == 17:
        header += struct.pack("!HH", FRAME_BYTES - 34, 0)
    return (ETHERNET + header).ljust(FRAME_BYTES, b"\0")


def few_frames():
    """UDP frames of a few connections, all for one flow entry."""
    return b"".join(frame(17, 0x0A000001, 0x0A000101, 1000 + i, 2000 + i) for i in range(ONE_FLOW_CONNECTIONS))


def rule_set(program, profile, rules, folder):
    """Flows of a generated access list. All of them send to port 2."""
    text, flows = f"{folder}/{profile}-{rules}.rules", f"{folder}/{profile}-{rules}.flows"
    call(program, "--quiet", "generate", "--profile", profile, "--rules", str(rules), "-o", text)
    call(program, "--quiet", "convert", text, flows, "--to", "ovs")
    with open(flows, encoding="ascii") as file:
        matches = [line.partition(" actions=")[0] for line in file if not line.startswith("#")]
    return [f"{match} actions=output:2" for match in matches]


def hitting_frames(lines, count):
    """Frames of `count` different connections. Each is drawn from a flow chosen at random."""
    chance = random.Random(SEED)
    patterns = [pattern(line) for line in lines]
    found = {}
    while len(found) < count:
        protocol, *fields = chance.choice(patterns)
        if protocol is None:
            protocol = chance.choice((6, 17))
        values = [value | chance.getrandbits(bits) & ~mask for value, mask, bits in fields]
        found[frame(protocol, *values)] = None
    return b"".join(found)


def pattern(line):
    """The protocol of a flow, and (value, mask, bits) of its addresses and ports."""
    words = dict(word.partition("=")[::2] for word in line.partition(" ")[0].split(","))
    protocol = next((number for name, number in PROTOCOLS.items() if name in words), None)
    if "nw_proto" in words:
        protocol = int(words["nw_proto"])
    return (protocol, address(words.get("nw_src")), address(words.get("nw_dst")),
            port(words.get("tp_src")), port(words.get("tp_dst")))


def address(text):
    if text is None:
        return (0, 0, 32)
    network = ipaddress.IPv4Network(text, strict=False)
    return (int(network.network_address), int(network.netmask), 32)


def port(text):
    if text is None:
        return (0, 0, 16)
    value, _, mask = text.partition("/")
    mask = int(mask, 0) if mask else 0xFFFF
    return (int(value, 0) & mask, mask, 16)
