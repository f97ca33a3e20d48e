"""The measures of `run`. Each adds rows to the report."""

import json
import os
import re
import select
import statistics
import struct
import sys
import time

import openflow
import traffic
from failure import Failure
from network import ETH_P_TEST, call, frame_socket
from openflow import Controller
from report import Goal, Row
from switches import PORTS, TWO_WAYS

MILLION = 1e6
FRAME_WAIT_SECONDS = 0.3
TEST_TYPE = struct.pack("!H", ETH_P_TEST)
TEST_SOURCE = b"\x02\x00\x00\x00\x00\x02"
STATS_FLOWS = 20_000
MEMORY_FLOWS = 64_000
CONNECT_MS = 3000

# Open vSwitch changes its cached flows some time after the barrier reply.
CACHE_SECONDS = 0.5


def talk(text):
    print(text, file=sys.stderr, flush=True)


def at_least(factor, other=None):
    return Goal("at least", factor, other)


def at_most(factor, other=None):
    return Goal("at most", factor, other)


class Run:
    """The contenders, the settings and the rows so far."""

    def __init__(self, settings, network, contenders, program):
        self.settings = settings
        self.network = network
        self.ours, self.theirs, self.wire = contenders
        self.program = program
        self.rows = []

    def switches(self):
        return (self.ours, self.theirs)

    def row(self, measure, name, unit, values, *goals, note=""):
        row = Row(measure, name, unit, values, list(goals), note)
        self.rows.append(row)
        talk("  " + "; ".join(
            [f"{name}, {unit}"] + [f"{letter}: {row.cell(letter)}" for letter in values]))

    def alternate(self, measured, contenders=None):
        """Measures each contender in each round while the others are stopped.

        `measured` returns one value, or several in a tuple. Returns the values of the
        rounds by letter; for tuples, one dictionary for each place.
        """
        contenders = contenders or self.switches()
        everybody = (self.ours, self.theirs, self.wire)
        rounds = {contender.letter: [] for contender in contenders}
        for _ in range(self.settings.rounds):
            for contender in contenders:
                for other in everybody:
                    if other is not contender:
                        other.pause()
                contender.resume()
                try:
                    value = measured(contender)
                except Failure as failure:
                    raise Failure(f"{contender.title}: {failure}") from None
                rounds[contender.letter].append(value if isinstance(value, tuple) else (value,))
        for contender in everybody:
            contender.resume()
        places = zip(*(zip(*values) for values in rounds.values()))
        by_place = [dict(zip(rounds, map(list, place))) for place in places]
        return by_place[0] if len(by_place) == 1 else by_place


# TCP


def tcp(run):
    for contender in (run.ours, run.theirs, run.wire):
        for port in (1, 2):
            call("ip", "-n", contender.hosts[port], "addr", "replace", f"10.7.0.{port}/24", "dev", "e0")
    for switch in run.switches():
        switch.load(TWO_WAYS)
    run.wire.start("vnet")
    connects = {}
    for contender in (run.ours, run.theirs, run.wire):
        connects[contender.letter] = [int(iperf(run, contender, 1) is not None)]
    run.row("tcp", "connects, host settings at their defaults", "1: yes", connects, at_least(1))
    for port in (1, 2):
        run.network.run_inside(run.theirs.hosts[port], "ethtool", "-K", "e0", "tx", "off")

    def rate(contender):
        before = contender.cpu_seconds()
        bits = iperf(run, contender, run.settings.tcp_seconds)
        if bits is None:
            return 0.0, 0.0
        cpu = contender.cpu_seconds() - before
        return bits / MILLION, bits * run.settings.tcp_seconds / MILLION / max(cpu, 0.01)

    wall, cpu = run.alternate(rate, (run.ours, run.theirs, run.wire))
    run.wire.stop()
    for port in (1, 2):
        run.network.run_inside(run.theirs.hosts[port], "ethtool", "-K", "e0", "tx", "on")
    run.row("tcp", "one connection", "Mbit/s", wall, at_least(3, "o"), at_least(0.8, "w"),
            note="hosts of Open vSwitch with `ethtool -K e0 tx off`, all others with their defaults")
    run.row("tcp", "one connection, by CPU time of the forwarder", "Mbit per CPU s", cpu)


def iperf(run, contender, seconds):
    """Received bits per second from host 1 to host 2, or None without a connection."""
    server = run.network.child(contender.hosts[2], "iperf3", "-s", "-1", "--forceflush", log="iperf.log",
                               processors=run.network.hosts)
    try:
        time.sleep(0.3)
        text = run.network.run_inside(
            contender.hosts[1], "iperf3", "-c", "10.7.0.2", "-t", str(seconds), "-J",
            "--connect-timeout", str(CONNECT_MS), check=False, seconds=seconds + 30)
    finally:
        run.network.end(server)
    report = json.loads(text)
    if "error" in report:
        talk(f"  iperf3 over {contender.title}: {report['error']}")
        return None
    return report["end"]["sum_received"]["bits_per_second"]


# Frames


def write_frames(run, name, frames):
    path = os.path.join(run.network.folder, name)
    with open(path, "wb") as file:
        file.write(frames)
    return path


def forwarding(run, contender, path, warm_seconds):
    """Frames per CPU second and frames per second that leave by port 2 under full load."""
    sender = run.network.child(contender.hosts[1], run.wire.frames, "send", "e0", path, log="send.log",
                               processors=run.network.hosts)
    try:
        time.sleep(warm_seconds)
        cpu, frames, begin = contender.cpu_seconds(), contender.delivered(2), time.monotonic()
        time.sleep(run.settings.frame_seconds)
        cpu = contender.cpu_seconds() - cpu
        frames = contender.delivered(2) - frames
        wall = time.monotonic() - begin
        if sender.poll() is not None:
            raise Failure(f"the generator ended: {run.network.last_lines('send.log')}")
    finally:
        run.network.end(sender)
    return frames / max(cpu, 0.01) / MILLION, frames / wall / MILLION


ONE_FLOW = "one flow entry"


def frames(run):
    for switch in run.switches():
        switch.load(TWO_WAYS)
    run.wire.start("wire")
    path = write_frames(run, "few.frames", traffic.few_frames())
    cpu, wall = run.alternate(lambda contender: forwarding(run, contender, path, run.settings.warm_seconds),
                              (run.ours, run.theirs, run.wire))
    run.wire.stop()
    run.row("frames", ONE_FLOW, "M frames per CPU s", cpu, at_least(2, "o"), at_least(0.8, "w"))
    run.row("frames", f"{ONE_FLOW}, wall time", "M frames/s", wall)


def rules(run):
    for size, factor in zip(run.settings.rule_counts, (4, 10)):
        lines = traffic.rule_set(run.program, run.settings.profile, size, run.network.folder)
        path = write_frames(run, "many.frames", traffic.hitting_frames(lines, run.settings.connections))
        talk(f"  {size:,} rules of {run.settings.profile}: {len(lines):,} flows")
        for switch in run.switches():
            switch.load(lines)
        # Open vSwitch may cache few megaflows at first.
        run.ours.pause()
        forwarding(run, run.theirs, path, run.settings.settle_seconds)
        missed = []

        def rate(contender, path=path, missed=missed):
            before = misses(run.theirs) if contender is run.theirs else 0
            value = forwarding(run, contender, path, run.settings.warm_seconds)
            if contender is run.theirs:
                missed.append(misses(run.theirs) - before)
            return value

        cpu, wall = run.alternate(rate)
        name = f"{size:,} rules, {run.settings.connections:,} connections"
        run.row("rules", name, "M frames per CPU s", cpu, at_least(factor, "o"), at_least(0.75, ONE_FLOW),
                note=f"{len(lines):,} flows from rules of {run.settings.profile}; upcalls of Open vSwitch in a "
                     f"round, median {statistics.median(missed):,.0f}")
        run.row("rules", f"{name}, wall time", "M frames/s", wall)


def misses(switch):
    """Packets that no cached flow of Open vSwitch matched."""
    text = call("ovs-appctl", "-t", switch.path("vswitchd.ctl"), "dpctl/show")
    return int(re.search(r"missed:(\d+)", text).group(1))


# OpenFlow


def to_port(xid, command, port):
    """A flow-mod for the test frames."""
    return openflow.flow_mod(xid, command, [(openflow.ETH_TYPE, TEST_TYPE)], port=port)


def test_frame(number, destination=b"\x02\x00\x00\x00\x00\x01"):
    body = destination + TEST_SOURCE + TEST_TYPE + struct.pack("!I", number)
    return body.ljust(traffic.FRAME_BYTES, b"\0")


def number_of(data):
    return struct.unpack_from("!I", data, 14)[0]


def barrier(run):
    """After each change and its barrier reply, one frame: does it meet the new entry?"""
    stale, lost, counts = {}, {}, []
    for switch in run.switches():
        other = run.theirs if switch is run.ours else run.ours
        other.pause()
        switch.resume()
        changes = run.settings.changes if switch is run.ours else run.settings.changes_ovs
        stale_frames, lost_frames = barrier_changes(switch, changes)
        stale[switch.letter] = [100 * stale_frames / changes]
        lost[switch.letter] = [100 * lost_frames / changes]
        counts.append(f"{switch.title}: {stale_frames:,} stale and {lost_frames:,} lost of {changes:,}")
        other.resume()
    note = "; ".join(counts)
    run.row("barrier", "next frame met the old entry", "% of changes", stale, at_most(0), note=note)
    run.row("barrier", "next frame was lost", "% of changes", lost, at_most(0))


def barrier_changes(switch, changes):
    sender = frame_socket(switch.hosts[1], "e0", receives=False)
    receivers = {port: frame_socket(switch.hosts[port], "e0", receives=True) for port in (2, 3)}
    by_fd = {receiver.fileno(): port for port, receiver in receivers.items()}
    poll = select.poll()
    for fd in by_fd:
        poll.register(fd, select.POLLIN)

    def arrival(number):
        """The port by which the frame left, or None."""
        end = time.monotonic() + FRAME_WAIT_SECONDS
        while (left := end - time.monotonic()) > 0:
            for fd, _ in poll.poll(left * 1000):
                if number_of(receivers[by_fd[fd]].recv(2048)) == number:
                    return by_fd[fd]
        return None

    stale = lost = number = 0
    port = 2
    with Controller(switch.address) as controller:
        controller.delete_all()
        controller.send(to_port(controller.next_xid(), openflow.ADD, port))
        controller.barrier()
        for _ in range(changes):
            # The present entry is in every cache.
            sender.send(test_frame(number))
            arrival(number)
            port = 5 - port
            controller.send(to_port(controller.next_xid(), openflow.ADD, port))
            controller.barrier()
            sender.send(test_frame(number + 1))
            left_by = arrival(number + 1)
            stale += left_by not in (None, port)
            lost += left_by is None
            number += 2
        controller.delete_all()
    for raw in (sender, *receivers.values()):
        raw.close()
    return stale, lost


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def control(run):
    barriers, one, slowest, mods, commit, stats = run.alternate(lambda switch: control_round(run, switch))
    count = f"{run.settings.flow_mods:,}"
    run.row("control", "barrier without changes, median", "µs", barriers)
    run.row("control", "flow-mod and barrier, median", "µs", one, at_most(0.4, "o"))
    run.row("control", "flow-mod and barrier, 99 %", "µs", slowest, at_most(0.1, "o"))
    run.row("control", f"{count} flow-mods and one barrier", "flow-mods/s", mods, at_least(20, "o"))
    run.row("control", f"bundle of {count} flow-mods", "flow-mods/s", commit, at_least(20, "o"))
    run.row("control", f"flow statistics of {count} flows", "flows/s", stats, at_least(5, "o"))


def control_round(run, switch):
    count = run.settings.flow_mods
    with Controller(switch.address) as controller:
        controller.delete_all()
        empty, times = [], []
        for number in range(run.settings.single_mods):
            begin = time.perf_counter()
            controller.barrier()
            empty.append((time.perf_counter() - begin) * MILLION)
        for number in range(run.settings.single_mods):
            begin = time.perf_counter()
            controller.send(openflow.numbered_flow(number, controller.next_xid()))
            controller.barrier()
            times.append((time.perf_counter() - begin) * MILLION)
        controller.delete_all()

        many = b"".join(openflow.numbered_flow(number, 7) for number in range(count))
        begin = time.perf_counter()
        controller.send(many)
        controller.barrier()
        mods_rate = count / (time.perf_counter() - begin)

        begin = time.perf_counter()
        parts = controller.flow_statistics()
        stats_rate = count / (time.perf_counter() - begin)
        if openflow.entries(parts) != count:
            raise Failure(f"{switch.title} has {openflow.entries(parts):,} of {count:,} flows after flow-mods")
        controller.delete_all()

        many = b"".join(openflow.in_bundle(1, 8, openflow.numbered_flow(number, 8)) for number in range(count))
        begin = time.perf_counter()
        controller.commit(1, openflow.BUNDLE_OPEN)
        controller.send(many)
        controller.commit(1, openflow.BUNDLE_COMMIT)
        bundle_rate = count / (time.perf_counter() - begin)
        held = openflow.entries(controller.flow_statistics())
        if held != count:
            raise Failure(f"{switch.title} has {held:,} of {count:,} flows after a bundle")
        controller.delete_all()
    return (statistics.median(empty), statistics.median(times), quantile(times, 0.99), mods_rate, bundle_rate,
            stats_rate)


def reactive(run):
    results = run.alternate(lambda switch: reactive_round(run, switch))
    arrived, arrived_99, left, left_99, lost = results
    run.row("reactive", "frame to packet-in, median", "µs", arrived, at_most(0.6, "o"))
    run.row("reactive", "frame to packet-in, 99 %", "µs", arrived_99, at_most(0.3, "o"))
    run.row("reactive", "frame to frame through the controller, median", "µs", left, at_most(0.2, "o"))
    run.row("reactive", "frame to frame through the controller, 99 %", "µs", left_99)
    run.row("reactive", "lost frames", f"of {run.settings.reactive_frames:,}", lost, at_most(0))


def reactive_round(run, switch):
    sender = frame_socket(switch.hosts[1], "e0", receives=False)
    receiver = frame_socket(switch.hosts[2], "e0", receives=True)
    receiver.settimeout(FRAME_WAIT_SECONDS)
    to_controller, through, lost = [], [], 0
    with Controller(switch.address) as controller:
        controller.delete_all()
        controller.receive_packets_in()
        controller.send(openflow.flow_mod(controller.next_xid(), openflow.ADD, [], port=openflow.CONTROLLER,
                                          priority=0))
        controller.barrier()
        time.sleep(CACHE_SECONDS)
        for number in range(run.settings.reactive_frames):
            destination = struct.pack("!BBI", 2, 9, number)
            begin = time.perf_counter()
            sender.send(test_frame(number, destination))
            data = controller.packet_in()
            while data[12:14] != TEST_TYPE or number_of(data) != number:
                data = controller.packet_in()
            to_controller.append((time.perf_counter() - begin) * MILLION)
            entry = openflow.flow_mod(controller.next_xid(), openflow.ADD, [(openflow.ETH_DST, destination)],
                                      port=2)
            controller.send(entry + openflow.packet_out(controller.next_xid(), 2, data))
            try:
                while number_of(receiver.recv(2048)) != number:
                    pass
                through.append((time.perf_counter() - begin) * MILLION)
            except TimeoutError:
                lost += 1
        controller.delete_all()
    sender.close()
    receiver.close()
    if not through:
        raise Failure(f"{switch.title} sent none of {run.settings.reactive_frames} packet-outs")
    return (statistics.median(to_controller), quantile(to_controller, 0.99),
            statistics.median(through), quantile(through, 0.99), lost)


def add_flow(run):
    for switch in run.switches():
        switch.load(TWO_WAYS)

    def wall(switch):
        times = []
        for number in range(run.settings.add_flows):
            begin = time.perf_counter()
            switch.ofctl("add-flow", f"priority=20,tcp,nw_dst=10.0.0.1,tp_dst={number} actions=output:2")
            times.append((time.perf_counter() - begin) * 1000)
        return statistics.median(times)

    run.row("add-flow", "one `ovs-ofctl add-flow`", "ms", run.alternate(wall), at_most(0.5, "o"))


# Idle and memory


def idle(run):
    shares = {}
    for switch in run.switches():
        switch.load(TWO_WAYS)
    for switch in run.switches():
        other = run.theirs if switch is run.ours else run.ours
        other.pause()
        switch.resume()
        time.sleep(1)
        cpu, begin = switch.cpu_seconds(), time.monotonic()
        time.sleep(run.settings.idle_seconds)
        shares[switch.letter] = [100 * (switch.cpu_seconds() - cpu) / (time.monotonic() - begin)]
        other.resume()
    run.row("idle", f"CPU share without frames, {len(PORTS)} ports", "% of a CPU", shares, at_most(1))


def memory(run):
    empty, total, each = {}, {}, {}
    count = run.settings.memory_flows
    for switch in run.switches():
        switch.stop()
        switch.start()
        time.sleep(1)
        before = switch.resident_bytes()
        with Controller(switch.address) as controller:
            controller.send(b"".join(openflow.numbered_flow(number, 7) for number in range(count)))
            controller.barrier()
            time.sleep(1)
            after = switch.resident_bytes()
            held = openflow.entries(controller.flow_statistics())
            if held != count:
                raise Failure(f"{switch.title} has {held:,} of {count:,} flows")
            controller.delete_all()
        empty[switch.letter] = [before / MILLION]
        total[switch.letter] = [after / MILLION]
        each[switch.letter] = [(after - before) / count]
    run.row("memory", "resident memory without flows", "MB", empty)
    run.row("memory", f"resident memory with {count:,} flows", "MB", total, at_most(80))
    run.row("memory", f"resident memory of a flow, {count:,} flows", "bytes", each, at_most(200))


ALL = {
    "tcp": tcp,
    "frames": frames,
    "rules": rules,
    "barrier": barrier,
    "control": control,
    "reactive": reactive,
    "add-flow": add_flow,
    "idle": idle,
    "memory": memory,
}
