"""Executes the commands of another program, such as `classyard reproduce tm19 --open-vswitch`.

README.md describes the commands and their replies: one line of JSON each.
"""

import contextlib
import json
import os
import sys
import tempfile

import inputs
from failure import Failure
from switch import COUNTS_SECONDS, Switch, Tools

PROTOCOL = 1

# A turn begins after two seconds without upcalls, or after this time.
MIN_RESUME_SECONDS = 3.0


def execute(args):
    """Replies to each command until standard input ends. Returns the exit code."""
    try:
        tools = Tools.found(args.vswitchd)
    except Failure as failure:
        reply({"error": str(failure)})
        return 2
    versions = tools.versions()
    reply({
        "peer": "open-vswitch",
        "protocol": PROTOCOL,
        "version": f"Open vSwitch {versions['ovs']} with DPDK {versions['dpdk']}",
        "max_packets": inputs.MOST_PACKETS,
    })
    with Session(args, tools) as session:
        # Not `for line in sys.stdin`, which would wait for more than a line.
        while line := sys.stdin.readline():
            try:
                reply(session.obey(line.strip()))
            except Failure as failure:
                session.unload()
                reply({"error": str(failure)})
    return 0


def reply(value):
    print(json.dumps(value), flush=True)


class Session:
    """At most one switch at a time. It is stopped whenever no command is being executed."""

    def __init__(self, args, tools):
        self.args = args
        self.tools = tools
        self.switch = None
        self.context = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unload()

    def obey(self, command):
        if command == "load":
            return self.load()
        if command == "turn":
            return self.turn()
        if command == "unload":
            self.unload()
            return {}
        raise Failure(f"unknown command `{command}`; expected load, turn or unload")

    def unload(self):
        self.switch = None
        self.context.close()

    def load(self):
        """Starts a switch with FOLDER/pipeline, and gives it the packets of FOLDER/capture in a loop."""
        self.unload()
        folder = self.context.enter_context(tempfile.TemporaryDirectory(prefix="classyard-ovs-"))
        pipeline, capture = (os.path.join(os.path.realpath(self.args.commands), name)
                             for name in ("pipeline", "capture"))
        first = os.path.join(folder, "first.pcap")
        packets, distinct = inputs.repeat(capture, first, 1, fillers=inputs.FILLERS)
        if not 1 <= packets <= inputs.MOST_PACKETS:
            raise Failure(f"{capture} has {packets} packets; expected 1 to {inputs.MOST_PACKETS}")
        switch = self.context.enter_context(Switch(self.tools, self.args, os.path.join(folder, "ovs")))
        load_seconds = switch.load(pipeline)
        counts = self.first_pass(switch, first, packets)
        switch.input(capture, endless=True)
        settled = switch.settle(self.args.settle)
        switch.pause()
        self.switch = switch
        return {"packets": packets, "distinct": distinct, "load_seconds": load_seconds,
                "settled_seconds": settled, "counts": counts}

    def first_pass(self, switch, capture, packets):
        """Packets by cookie after each packet has come once; None if that takes too long."""
        switch.input(capture, endless=False)
        cold = switch.wait_for_packets(inputs.FILLERS + packets, self.args.settle)
        counts = None
        if cold["packets"] >= packets:
            counts = {cookie: count for cookie, count in switch.settled_flow_counts(COUNTS_SECONDS).items()
                      if cookie and count}
        switch.no_input()
        return counts

    def turn(self):
        """Measures the switch for --seconds."""
        if self.switch is None:
            raise Failure("`turn` before `load`")
        self.switch.resume()
        self.switch.settle(max(MIN_RESUME_SECONDS, self.args.seconds))
        rates = self.switch.rates(self.args.seconds)
        self.switch.pause()
        return rates
