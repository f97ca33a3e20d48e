"""The contenders: classyard, Open vSwitch and bare wires, each with four ports of its own."""

import contextlib
import os
import shutil
import signal
import socket
import time

from failure import Failure
from network import call, cpu_seconds, resident_bytes

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
PORTS = (1, 2, 3, 4)
TWO_WAYS = ["priority=10,in_port=1 actions=output:2", "priority=10,in_port=2 actions=output:1"]

# A stopped Open vSwitch has timers to serve first, after it continues.
CONTINUE_SECONDS = 0.3


class Contender:
    """A forwarder in a namespace, with ports p1 to p4 that lead to hosts 1 to 4."""

    letter = title = None

    def __init__(self, network):
        self.network = network
        self.process = None
        self.folder = os.path.join(network.folder, self.letter)
        os.mkdir(self.folder)
        self.switch = network.namespace(f"{self.letter}s")
        self.hosts = {}
        for port in PORTS:
            self.hosts[port] = network.namespace(f"{self.letter}{port}")
            network.pair(self.switch, f"p{port}", self.hosts[port], "e0")

    @property
    def log(self):
        return f"{self.letter}.log"

    def path(self, name):
        return os.path.join(self.folder, name)

    def cpu_seconds(self):
        return cpu_seconds(self.process)

    def resident_bytes(self):
        return resident_bytes(self.process)

    def delivered(self, port):
        """Frames that have left the forwarder by the port."""
        return self.network.received(self.hosts[port], "e0")

    def pause(self):
        """Stops all threads, so that others are measured alone."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            time.sleep(CONTINUE_SECONDS)

    def start(self):
        raise NotImplementedError

    def stop(self):
        if self.process is not None:
            self.network.end(self.process)
            self.process = None


class Switch(Contender):
    """A contender that speaks OpenFlow on a Unix socket."""

    address = None

    def ofctl(self, command, *rest, options=()):
        return call("ovs-ofctl", "-O", "OpenFlow13", *options, command, f"unix:{self.address}", *rest,
                    processors=self.network.hosts)

    def load(self, lines):
        """Replaces all flows."""
        flows = self.path("flows")
        with open(flows, "w", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in lines))
        self.ofctl("del-flows")
        self.ofctl("add-flows", flows, options=["--bundle"])

    def listens(self):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
            return probe.connect_ex(self.address) == 0


class Classyard(Switch):
    letter, title = "c", "classyard"

    def __init__(self, network, program, controllers=()):
        super().__init__(network)
        self.program = program
        self.controllers = controllers
        self.address = self.path("br0.mgmt")

    def start(self):
        with open(self.path("br0.toml"), "w", encoding="utf-8") as file:
            file.write(f'[switch]\nname = "br0"\ndatapath-id = 1\nrun-dir = "{self.folder}"\n')
            for port in PORTS:
                file.write(f'\n[[port]]\nnumber = {port}\nname = "p{port}"\n')
            for address in self.controllers:
                file.write(f'\n[[controller]]\naddress = "{address}"\n')
        self.process = self.network.child(self.switch, self.program, "switch", "run", self.path("br0.toml"),
                                          log=self.log, processors=self.network.forwarder)
        self.network.until(self.listens, "classyard does not start", self.log)

    @staticmethod
    def version(program):
        return call(program, "--version").strip()


class OpenVSwitch(Switch):
    """Userspace datapath `netdev`, with a database of its own."""

    letter, title = "o", "Open vSwitch"

    def __init__(self, network, controllers=()):
        super().__init__(network)
        self.controllers = controllers
        names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        self.environment = {**os.environ, **{name: self.folder for name in names}}
        self.address = self.path("br0.mgmt")
        self.database = None

    def start(self):
        self.stop()
        for name in os.listdir(self.folder):
            os.remove(self.path(name))
        call("ovsdb-tool", "create", self.path("conf.db"), SCHEMA)
        self.database = self.network.child(
            self.switch, "ovsdb-server", self.path("conf.db"), f"--remote=punix:{self.path('db.sock')}",
            f"--unixctl={self.path('ovsdb.ctl')}", "-vconsole:off", log=self.log,
            processors=self.network.hosts, environment=self.environment)
        self.network.until(lambda: os.path.exists(self.path("db.sock")), "ovsdb-server does not start", self.log)
        self.vsctl("--no-wait", "init")
        self.process = self.network.child(
            self.switch, "ovs-vswitchd", f"unix:{self.path('db.sock')}", "--disable-system",
            f"--unixctl={self.path('vswitchd.ctl')}", "-vconsole:off", f"--log-file={self.path('vswitchd.log')}",
            log=self.log, processors=self.network.forwarder, environment=self.environment)
        bridge = ["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure",
                  "protocols=OpenFlow13", "other-config:datapath-id=0000000000000001"]
        for port in PORTS:
            bridge += ["--", "add-port", "br0", f"p{port}", "--", "set", "interface", f"p{port}",
                       f"ofport_request={port}"]
        if self.controllers:
            bridge += ["--", "set-controller", "br0", *self.controllers]
        self.vsctl(*bridge)
        self.network.until(self.listens, "ovs-vswitchd does not start", self.log)

    def stop(self):
        super().stop()
        if self.database is not None:
            self.network.end(self.database)
            self.database = None

    def vsctl(self, *command):
        return call("ovs-vsctl", f"--db=unix:{self.path('db.sock')}", "--timeout=30", *command)

    @staticmethod
    def version():
        return call("ovs-vswitchd", "--version").splitlines()[0].rpartition(" ")[2]


class Wire(Contender):
    """frames.c in place of a switch: `wire` for frames one way, `vnet` for TCP."""

    letter, title = "w", "bare wire"

    def __init__(self, network, frames):
        super().__init__(network)
        self.frames = frames

    def start(self, mode="wire"):
        self.stop()
        self.process = self.network.child(self.switch, self.frames, mode, "p1", "p2", log=self.log,
                                          processors=self.network.forwarder)


PACKAGES = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-common",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-common",
    "iperf3": "iperf3",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "cc": "gcc and libc6-dev",
}


def check_installed():
    """All that is missing, in one message."""
    missing = [f"missing: {name}; apt-get install {package}" for name, package in PACKAGES.items()
               if shutil.which(name) is None]
    if not os.path.exists(SCHEMA):
        missing.append(f"missing: {SCHEMA}; apt-get install openvswitch-common")
    if missing:
        raise Failure("\n".join(missing))
    if os.geteuid() != 0:
        raise Failure("only root can make network namespaces and packet sockets; run this with sudo")
