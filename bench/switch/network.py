"""Network namespaces, veth pairs and processes, all removed at the end."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import time

from failure import Failure

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
ETH_P_TEST = 0x88B5
STOP_SECONDS = 5.0
LIBC = ctypes.CDLL(None, use_errno=True)


def call(*command, check=True, text=None, seconds=300, processors=None, environment=None):
    """Runs a command to its end and returns its output."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=seconds, check=False, env=environment,
            preexec_fn=(lambda: os.sched_setaffinity(0, processors)) if processors else None)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command[:4])} took more than {seconds} s") from None
    if check and done.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit code {done.returncode}\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


@contextlib.contextmanager
def inside(namespace):
    """The calling thread is in the network namespace meanwhile."""
    with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{namespace}", "rb") as other:
        if LIBC.setns(other.fileno(), CLONE_NEWNET):
            raise Failure(f"cannot enter the network namespace {namespace}: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            LIBC.setns(home.fileno(), CLONE_NEWNET)


class Network:
    """Namespaces named after this process, and the processes in them."""

    def __init__(self, folder, forwarder, hosts):
        self.folder = folder
        self.forwarder = [forwarder]
        self.hosts = hosts
        self.prefix = f"cysw{os.getpid()}"
        self.namespaces = []
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in list(reversed(self.children)):
            self.end(child)
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def namespace(self, name):
        name = f"{self.prefix}{name}"
        # Listed first, so that an interrupted start removes it too.
        self.namespaces.append(name)
        call("ip", "netns", "add", name)
        call("ip", "-n", name, "link", "set", "lo", "up")
        return name

    def pair(self, switch, port, host, interface):
        """A veth pair between the namespaces `switch` and `host`, with default settings."""
        call("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", interface, "netns", host)
        for namespace, name in ((switch, port), (host, interface)):
            with inside(namespace):
                # No router solicitations among the counted frames.
                with contextlib.suppress(FileNotFoundError):
                    with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w", encoding="ascii") as file:
                        file.write("1")
            call("ip", "-n", namespace, "link", "set", name, "up")

    def received(self, namespace, interface):
        """Frames that the interface has received."""
        (link,) = json.loads(call("ip", "-n", namespace, "-s", "-j", "link", "show", interface))
        return link["stats64"]["rx"]["packets"]

    def run_inside(self, namespace, *command, **settings):
        """Runs a command in the namespace to its end, on the processors of hosts."""
        return call("ip", "netns", "exec", namespace, *command, processors=self.hosts, **settings)

    def child(self, namespace, *command, log, processors, environment=None):
        """Starts a process in the namespace. It ends with this script, even after kill -9."""

        def prepare():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, processors)

        with open(os.path.join(self.folder, log), "ab") as output:
            process = subprocess.Popen(["ip", "netns", "exec", namespace, *command], stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, env=environment, preexec_fn=prepare)
        self.children.append(process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.children.remove(process)

    def until(self, ready, problem, log, seconds=20):
        """Waits for `ready`; the log explains a failure."""
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end or any(child.poll() is not None for child in self.children):
                raise Failure(f"{problem}\n{self.last_lines(log)}")
            time.sleep(0.02)

    def last_lines(self, log, count=15):
        try:
            with open(os.path.join(self.folder, log), encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-count:]).rstrip()
        except FileNotFoundError:
            return f"there is no {log}"


def cpu_seconds(process):
    """CPU time of all threads of a process, from /proc/PID/stat."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process):
    """Resident memory of a process."""
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def frame_socket(namespace, interface, receives):
    """A packet socket for frames of the Ethernet type ETH_P_TEST."""
    protocol = ETH_P_TEST if receives else 0
    with inside(namespace):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        raw.bind((interface, protocol))
    return raw
