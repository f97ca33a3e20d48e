"""An Open vSwitch of its own: private folder, private network namespace, no service.

The userspace datapath with DPDK, without huge pages and without a kernel module.
Packets come from a capture that DPDK's `net_pcap` holds in memory, and go to its
`net_null`, which frees them.
"""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

from failure import Failure

BRIDGE = "br0"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
DEBIAN_VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
PACKAGE = "openvswitch-switch-dpdk"
DRIVERS = {
    "librte_net_pcap": "librte-net-pcap23",
    "librte_net_null": "librte-net-null23",
    "librte_bus_vdev": "librte-bus-vdev23",
    "librte_mempool_ring": "librte-mempool-ring23",
}
PR_SET_PDEATHSIG = 1

# All packet counts of a first pass must be there after this time.
COUNTS_SECONDS = 10.0


class Tools:
    """The programs that are needed. What is missing is named, with its package."""

    def __init__(self, vswitchd):
        self.vswitchd = vswitchd

    @staticmethod
    def found(vswitchd):
        missing = {}
        for command, package in [
            ("ovsdb-tool", PACKAGE), ("ovsdb-server", PACKAGE), ("ovs-vsctl", PACKAGE), ("ovs-ofctl", PACKAGE),
            ("ovs-appctl", PACKAGE), ("unshare", "util-linux"),
        ]:
            if not shutil.which(command):
                missing[command] = package
        if vswitchd is None:
            vswitchd = DEBIAN_VSWITCHD if os.path.exists(DEBIAN_VSWITCHD) else shutil.which("ovs-vswitchd")
        if vswitchd is None or not os.access(vswitchd, os.X_OK):
            missing["ovs-vswitchd"] = PACKAGE
        elif "DPDK" not in version_of(vswitchd):
            missing["ovs-vswitchd with DPDK"] = PACKAGE
        if vswitchd == DEBIAN_VSWITCHD:
            for library, package in DRIVERS.items():
                if not glob.glob(f"/usr/lib/*/dpdk/pmds-*/{library}.so*"):
                    missing[library] = package
        if missing:
            lines = [f"missing: {name}; apt-get install {package}" for name, package in missing.items()]
            raise Failure("Open vSwitch with DPDK is needed for this measurement alone\n" + "\n".join(lines))
        if os.geteuid() != 0:
            raise Failure("root is needed, for a network namespace with the bridge's own port in it")
        return Tools(vswitchd)

    def versions(self):
        text = version_of(self.vswitchd)
        ovs = re.search(r"Open vSwitch\) (\S+)", text)
        dpdk = re.search(r"DPDK (\S+)", text)
        return {"ovs": ovs.group(1) if ovs else "?", "dpdk": dpdk.group(1) if dpdk else "?"}


def version_of(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout


class Switch:
    """Runs from `with` to its end, whatever happens."""

    def __init__(self, tools, args, folder):
        self.tools = tools
        self.args = args
        self.folder = folder
        self.children = []
        self.inputs = 0
        # DPDK's files too.
        names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY")
        self.environment = {**os.environ, **{name: folder for name in names}}

    def __enter__(self):
        os.mkdir(self.folder)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    # Starting and stopping

    def start(self):
        self.call("ovsdb-tool", "create", self.path("conf.db"), SCHEMA)
        self.child("ovsdb-server", self.path("conf.db"), f"--remote=punix:{self.path('db.sock')}",
                   f"--unixctl={self.path('ovsdb.ctl')}", f"--log-file={self.path('ovsdb.log')}", "-vconsole:off")
        self.until(lambda: os.path.exists(self.path("db.sock")), "ovsdb-server does not listen")
        self.vsctl("--no-wait", "init")
        # OVS adds --in-memory by itself unless it sees --legacy-mem, and DPDK refuses
        # --in-memory together with --no-huge.
        dpdk = f"--no-huge --legacy-mem --no-shconf --no-telemetry --no-pci -m {self.args.memory}"
        settings = {
            "dpdk-init": "true",
            "dpdk-extra": dpdk,
            "dpdk-lcore-mask": hex(1 << self.args.others[0]),
            "pmd-cpu-mask": hex(1 << self.args.processor),
        }
        settings.update(setting.split("=", 1) for setting in self.args.ovs_config)
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".",
                   *(f"other_config:{key}={json.dumps(value)}" for key, value in settings.items()))
        self.vswitchd = self.child(
            "unshare", "--net", self.tools.vswitchd, f"unix:{self.path('db.sock')}",
            f"--unixctl={self.path('vswitchd.ctl')}", f"--log-file={self.path('vswitchd.log')}", "-vconsole:off",
            processors=self.args.others,
        )
        self.until(lambda: os.path.exists(self.path("vswitchd.ctl")), "ovs-vswitchd does not start")
        self.vsctl("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure",
                   "protocols=OpenFlow13")
        # Without no-rx, net_null hands out packets without end, which take half of the time.
        self.port("out", 2, "net_null0,no-rx=1")

    def stop(self):
        for process in reversed(self.children):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.children = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def child(self, *command, processors=None):
        def prepare():
            # Ends with us even if we are killed.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, processors or self.args.others)

        with open(self.path("console.log"), "ab") as console:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=console, stderr=console, preexec_fn=prepare)
        self.children.append(process)
        return process

    def until(self, ready, problem, seconds=20):
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end or any(process.poll() is not None for process in self.children):
                raise Failure(f"{problem}\n{self.last_lines()}")
            time.sleep(0.02)

    def last_lines(self):
        """The ends of the logs, which say why something failed."""
        lines = []
        for name in ("console.log", "vswitchd.log"):
            try:
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    found = [line.rstrip() for line in file if "|coverage|" not in line]
            except FileNotFoundError:
                continue
            lines += found[-15:]
        return "\n".join(lines)

    def call(self, *command, seconds=180):
        try:
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=seconds,
                                  preexec_fn=lambda: os.sched_setaffinity(0, self.args.others), check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"{command[0]} took more than {seconds} s\n{self.last_lines()}") from None
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: {done.stderr.strip()}\n{self.last_lines()}")
        return done.stdout

    def vsctl(self, *command):
        return self.call("ovs-vsctl", f"--db=unix:{self.path('db.sock')}", "--timeout=30", *command)

    def appctl(self, *command):
        return self.call("ovs-appctl", "--timeout=60", "-t", self.path("vswitchd.ctl"), *command)

    def ofctl(self, command, *rest):
        return self.call("ovs-ofctl", "-O", "OpenFlow13", command, self.path(f"{BRIDGE}.mgmt"), *rest)

    # Ports, flows, packets

    def port(self, name, number, device):
        self.vsctl("add-port", BRIDGE, name, "--", "set", "interface", name, "type=dpdk",
                   f"ofport_request={number}", f"options:dpdk-devargs={json.dumps(device)}")
        found = json.loads(self.vsctl("--format=json", "--columns=ofport,error", "list", "interface", name))
        number_given, error = found["data"][0]
        if number_given != number:
            raise Failure(f"port {name}: {error or number_given}; more --memory may help\n{self.last_lines()}")

    def load(self, pipeline):
        """Loads a pipeline and returns how many seconds that took."""
        begin = time.monotonic()
        self.ofctl("add-flows", pipeline)
        return time.monotonic() - begin

    def input(self, capture, endless):
        # A name of its own each time: DPDK keeps devices until they are detached.
        self.inputs += 1
        # Paths are relative, since commas would end them.
        name = f"input{self.inputs}.pcap"
        os.symlink(capture, self.path(name))
        ending = ",infinite_rx=1" if endless else ""
        self.port("in", 1, f"net_pcap{self.inputs},rx_pcap={name}{ending}")

    def no_input(self):
        self.vsctl("del-port", BRIDGE, "in")
        self.appctl("dpif-netdev/pmd-stats-clear")

    def wait_for_packets(self, packets, seconds):
        """Until a capture that does not repeat is through."""
        end = time.monotonic() + seconds
        while True:
            now = self.counters()
            if now["packets"] >= packets or time.monotonic() > end:
                now["megaflows"], now["flow_limit"] = self.megaflows()
                return now
            time.sleep(0.1)

    def flow_counts(self):
        """Packets by cookie. What the caches have counted comes a second or so later."""
        counts = {}
        for line in self.ofctl("dump-flows").splitlines():
            found = re.search(r"cookie=(0x[0-9a-f]+),.* n_packets=(\d+),", line)
            if found:
                counts[int(found.group(1), 16)] = int(found.group(2))
        return counts

    def settled_flow_counts(self, seconds, is_complete=lambda counts: False):
        """Packets by cookie once `is_complete` accepts them, they no longer change, or the time is over.

        The switch adds the counts of cached flows twice a second or less often.
        """
        end = time.monotonic() + seconds
        before = counts = None
        while counts is None or (counts != before and not is_complete(counts) and time.monotonic() < end):
            before = counts
            time.sleep(1.5)
            counts = self.flow_counts()
        return counts

    # Counters

    def counters(self):
        """Of the PMD thread, since they were cleared."""
        text = self.appctl("dpif-netdev/pmd-stats-show").split("main thread:")[0]

        def number(pattern):
            found = re.search(pattern, text)
            return int(found.group(1)) if found else 0

        hits = number(r"\n\s*megaflow hits: (\d+)")
        average = re.search(r"avg. subtable lookups per megaflow hit: ([\d.]+)", text)
        return {
            "packets": number(r"packets received: (\d+)"),
            "clocks": number(r"\n\s*processing cycles: (\d+)"),
            "simple": number(r"simple match hits: (\d+)"),
            "emc": number(r"emc hits: (\d+)"),
            "smc": number(r"smc hits: (\d+)"),
            "megaflow": hits,
            "lookups": float(average.group(1)) * hits if average else 0.0,
            "upcalls": number(r"miss with success upcall: (\d+)") + number(r"miss with failed upcall: (\d+)"),
        }

    def megaflows(self):
        """How many there are, and how many there may be."""
        found = re.search(r"\(current (\d+)\).*\(limit (\d+)\)", self.appctl("upcall/show"))
        return (int(found.group(1)), int(found.group(2))) if found else (0, 0)

    def sent(self):
        return int(re.search(r"tx pkts=(\d+)", self.ofctl("dump-ports", "2")).group(1))

    def cpu_seconds(self):
        """CPU time of the PMD thread, and of all others together."""
        pmd = others = 0.0
        tasks = f"/proc/{self.vswitchd.pid}/task"
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/comm", encoding="utf-8") as file:
                    name = file.read()
                with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
                    seconds = int(file.read().split()[0]) / 1e9
            except FileNotFoundError:
                continue
            if name.startswith("pmd-c"):
                pmd += seconds
            else:
                others += seconds
        return pmd, others

    def settle(self, seconds):
        """Waits until two seconds have passed without upcalls; returns how many seconds that took."""
        begin = time.monotonic()
        upcalls = self.counters()["upcalls"]
        quiet = 0
        while quiet < 2:
            if time.monotonic() - begin > seconds:
                return None
            time.sleep(1)
            now = self.counters()["upcalls"]
            quiet = quiet + 1 if now == upcalls else 0
            upcalls = now
        return time.monotonic() - begin - 2

    def rates(self, seconds):
        """What the PMD thread does for some seconds."""
        begin, sent, before, (pmd, others) = time.monotonic(), self.sent(), self.counters(), self.cpu_seconds()
        time.sleep(seconds)
        sent_after, after, (pmd_after, others_after) = self.sent(), self.counters(), self.cpu_seconds()
        wall = time.monotonic() - begin
        done = {key: after[key] - before[key] for key in after}
        pmd, others = pmd_after - pmd, others_after - others
        if not done["packets"] or pmd <= 0:
            raise Failure(f"no packets came through the switch\n{self.last_lines()}")
        megaflows, limit = self.megaflows()
        packets = done["packets"]
        return {
            "packets_per_second": packets / pmd,
            "packets_per_second_of_wall_time": packets / wall,
            # It counts clocks while others have its processor too, as wall time does.
            "clocks_per_packet": done["clocks"] / wall * pmd / packets,
            "clocks_per_second": done["clocks"] / wall,
            "sent_share": (sent_after - sent) / packets,
            "simple_share": done["simple"] / packets,
            "emc_share": done["emc"] / packets,
            "smc_share": done["smc"] / packets,
            "megaflow_share": done["megaflow"] / packets,
            "lookups_per_hit": done["lookups"] / done["megaflow"] if done["megaflow"] else 0.0,
            "upcalls_per_second": done["upcalls"] / pmd,
            "megaflows": megaflows,
            "flow_limit": limit,
            "cpu_of_other_threads": others / wall,
        }

    # Pausing

    def pause(self):
        """Stops all threads, so that nothing else runs while replay is measured.

        Between two dumps of the revalidator: one that takes long makes it lower the
        limit on megaflows, and a pause within it would count.
        """
        end = time.monotonic() + 2
        last = self.revalidated()
        while time.monotonic() < end:
            time.sleep(0.03)
            now = self.revalidated()
            if now == last:
                break
            last = now
        self.vswitchd.send_signal(signal.SIGSTOP)

    def resume(self):
        self.vswitchd.send_signal(signal.SIGCONT)

    def revalidated(self):
        """CPU time of the revalidator threads."""
        total = 0
        tasks = f"/proc/{self.vswitchd.pid}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/comm", encoding="utf-8") as file:
                name = file.read()
            if name.startswith("revalidator"):
                with open(f"{tasks}/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
        return total
