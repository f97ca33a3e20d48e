"""Makes pipelines and captures with classyard: the same files for both sides."""

import dataclasses
import os
import struct
import subprocess

from failure import Failure

# The switch keeps all packets of a capture in buffers of its pool, which has 262,144.
MOST_PACKETS = 250_000

# replay works on vectors of 256 packets, so it needs a capture of few packets
# many times over. The order of packets stays that of the loop in the switch.
REPEATED_TO = 16_384

# Packets that come by a port before the bridge knows it are lost: some hundred. So
# the capture of the first pass begins with frames of a local experimental Ethernet
# type (0x88b5), which the access list does not match.
FILLERS = 10_000
FILLER = bytes.fromhex("020000000002 020000000001 88b5") + bytes(46)


@dataclasses.dataclass
class Case:
    """What both sides are measured with."""

    name: str
    traffic: str
    tables: int
    flows: int
    packets: int
    distinct: int
    pipeline: str
    switch_capture: str
    first_capture: str
    replay_capture: str
    # The flows from this line on do not match the frames before the first pass.
    compared_from: int


def cases(args, folder):
    """Yields the cases of the command line; files are made when they are due."""
    for profile in args.profiles:
        for size in args.sizes:
            name = f"{profile} {size}"
            stem = os.path.join(folder, f"{profile}-{size}")
            rules, flows = stem + ".rules", stem + ".flows"
            classyard(args, "generate", "--profile", profile, "--rules", size, "-o", rules)
            classyard(args, "convert", rules, flows, "--to", "ovs")
            access_list = read_flows(flows)
            pipelines = [(name, stem + ".pipeline", pipeline_of(access_list, args.tables))]
            if args.one_flow:
                one = [flow(0, 1, "priority=0", "output:2")]
                pipelines.append((f"one flow, packets of {name}", stem + ".one", one))
            for case_name, path, lines in pipelines:
                with open(path, "w", encoding="ascii") as file:
                    file.write("".join(line + "\n" for line in lines))
                for traffic in args.traffic:
                    packets = {"few": args.few, "many": args.packets}[traffic]
                    capture = f"{stem}-{traffic}.pcap"
                    repeated, first = f"{stem}-{traffic}-repeated.pcap", f"{stem}-{traffic}-first.pcap"
                    trace = ("generate", "trace", "-k", args.kind, "-n", str(packets), "-o", capture)
                    classyard(args, *trace, rules)
                    _, distinct = repeat(capture, repeated, max(1, REPEATED_TO // packets))
                    repeat(capture, first, 1, fillers=FILLERS)
                    everything_first = len(lines) == 1 or args.tables == 3
                    yield Case(
                        name=case_name,
                        traffic=traffic,
                        tables=1 if len(lines) == 1 else args.tables,
                        flows=len(lines),
                        packets=packets,
                        distinct=distinct,
                        pipeline=path,
                        switch_capture=capture,
                        first_capture=first,
                        replay_capture=repeated,
                        compared_from=2 if everything_first else 1,
                    )


def classyard(args, *arguments):
    """Runs classyard. Exit code 1 means lost rules, which would be another rule set."""
    done = subprocess.run([args.classyard, "--quiet", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"classyard {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")


def read_flows(path):
    """The matches of a converted rule set, in order."""
    matches = []
    with open(path, encoding="ascii") as file:
        for line in file:
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            match, _, _actions = line.partition(" actions=")
            matches.append(match)
    return matches


def pipeline_of(matches, tables):
    """The access list as the only table, or as the middle one of three."""
    if tables == 1:
        return [flow(0, line, match, "output:2") for line, match in enumerate(matches, 1)]
    lines = [flow(0, 1, "priority=0", "goto_table:1")]
    lines += [flow(1, line, match, "goto_table:2") for line, match in enumerate(matches, 2)]
    lines.append(flow(2, len(lines) + 1, "priority=0", "output:2"))
    return lines


def flow(table, line, match, actions):
    """A flow as text. Its cookie is its line, by which packet counts are compared."""
    return f"table={table},cookie={line},{match} actions={actions}"


def repeat(source, target, times, fillers=0):
    """Writes the packets of a pcap file `times` times, after `fillers` fillers.

    Returns the number of packets in the source, and the number of distinct ones.
    """
    with open(source, "rb") as file:
        data = file.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    header, records = data[:24], data[24:]
    distinct = set()
    packets = at = 0
    while at < len(records):
        (length,) = struct.unpack_from(order + "I", records, at + 8)
        distinct.add(records[at + 16 : at + 16 + length])
        at += 16 + length
        packets += 1
    with open(target, "wb") as file:
        file.write(header)
        file.write((struct.pack(order + "IIII", 0, 0, len(FILLER), len(FILLER)) + FILLER) * fillers)
        for _ in range(times):
            file.write(records)
    return packets, len(distinct)
