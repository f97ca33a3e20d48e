"""A controller's side of OpenFlow 1.3, as far as the measurements need it."""

import socket
import struct
import time

from failure import Failure

VERSION = 4
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER, SET_CONFIG = 0, 1, 2, 3, 4, 9
PACKET_IN, PACKET_OUT, FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY = 10, 13, 14, 18, 19
BARRIER_REQUEST, BARRIER_REPLY = 20, 21

ADD, DELETE = 0, 3
ANY = 0xFFFFFFFF
NO_BUFFER = 0xFFFFFFFF
CONTROLLER = 0xFFFFFFFD
ALL_TABLES = 255
WHOLE_PACKET = 0xFFFF
ONE_MORE = 1
MULTIPART_FLOW = 1

# Fields of a match, class "basic".
ETH_DST, ETH_TYPE, IP_PROTO, IPV4_DST, TCP_DST = 3, 5, 10, 12, 14

# Bundles in OpenFlow 1.3: extension 230 of the Open Networking Foundation.
ONF = 0x4F4E4600
BUNDLE_CONTROL, BUNDLE_ADD = 2300, 2301
BUNDLE_OPEN, BUNDLE_OPENED, BUNDLE_COMMIT, BUNDLE_COMMITTED = 0, 1, 4, 5
ATOMIC_AND_ORDERED = 3

HEADER = struct.Struct("!BBHI")
REPLY_SECONDS = 20


def message(kind, xid, body=b""):
    return HEADER.pack(VERSION, kind, HEADER.size + len(body), xid) + body


def match(*fields):
    """A match of (field, bytes) pairs, padded to a multiple of eight bytes."""
    body = b"".join(struct.pack("!HBB", 0x8000, field << 1, len(value)) + value for field, value in fields)
    length = 4 + len(body)
    return struct.pack("!HH", 1, length) + body + bytes(-length % 8)


def output(port):
    return struct.pack("!HHIH6x", 0, 16, port, WHOLE_PACKET)


def flow_mod(xid, command, fields, port=None, priority=10, cookie=0, table=0):
    """A flow-mod whose entry sends packets to `port`."""
    body = struct.pack("!QQBBHHHIIIHxx", cookie, 0, table, command, 0, 0, priority, NO_BUFFER, ANY, ANY, 0)
    body += match(*fields)
    if port is not None:
        body += struct.pack("!HH4x", 4, 24) + output(port)
    return message(FLOW_MOD, xid, body)


def numbered_flow(number, xid=0):
    """Entry `number` of many: one address and one TCP port each."""
    fields = [
        (ETH_TYPE, b"\x08\x00"),
        (IP_PROTO, b"\x06"),
        (IPV4_DST, struct.pack("!I", 0x0A000000 + number)),
        (TCP_DST, struct.pack("!H", 1024 + number % 50_000)),
    ]
    return flow_mod(xid, ADD, fields, port=2, cookie=number)


def packet_out(xid, port, data):
    body = struct.pack("!IIH6x", NO_BUFFER, CONTROLLER, len(output(port))) + output(port) + data
    return message(PACKET_OUT, xid, body)


def bundle(kind, xid, number, body):
    return message(EXPERIMENTER, xid, struct.pack("!III", ONF, kind, number) + body)


class Controller:
    """A connection to a switch. Errors of the switch are failures."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(REPLY_SECONDS)
        self.socket.connect(path)
        self.bytes = bytearray()
        self.xid = 1
        self.send(message(HELLO, 0))
        self.receive(HELLO)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def next_xid(self):
        self.xid += 1
        return self.xid

    def next_message(self):
        while True:
            if len(self.bytes) >= HEADER.size:
                length = struct.unpack_from("!H", self.bytes, 2)[0]
                if len(self.bytes) >= length:
                    taken = bytes(self.bytes[:length])
                    del self.bytes[:length]
                    return taken
            try:
                received = self.socket.recv(1 << 20)
            except TimeoutError:
                raise Failure(f"no message from the switch in {REPLY_SECONDS} s") from None
            if not received:
                raise Failure("the switch closed the OpenFlow connection")
            self.bytes += received

    def receive(self, kind, xid=None):
        """The next message of a kind; others are skipped, echo requests answered."""
        end = time.monotonic() + REPLY_SECONDS
        while True:
            if time.monotonic() > end:
                raise Failure(f"no message of type {kind} from the switch in {REPLY_SECONDS} s")
            taken = self.next_message()
            _, its_kind, _, its_xid = HEADER.unpack_from(taken)
            if its_kind == ECHO_REQUEST:
                self.send(message(ECHO_REPLY, its_xid, taken[8:]))
            elif its_kind == ERROR:
                error_type, code = struct.unpack_from("!HH", taken, 8)
                raise Failure(f"the switch answered error type {error_type}, code {code} to {taken[12:76].hex()}")
            elif its_kind == kind and xid in (None, its_xid):
                return taken

    def barrier(self):
        xid = self.next_xid()
        self.send(message(BARRIER_REQUEST, xid))
        self.receive(BARRIER_REPLY, xid)

    def delete_all(self):
        self.send(flow_mod(self.next_xid(), DELETE, [], table=ALL_TABLES))
        self.barrier()

    def receive_packets_in(self):
        """Packets to controllers are sent whole, and to this connection too."""
        self.send(message(SET_CONFIG, self.next_xid(), struct.pack("!HH", 0, WHOLE_PACKET)))

    def packet_in(self):
        """The frame of the next packet-in."""
        taken = self.receive(PACKET_IN)
        length = struct.unpack_from("!H", taken, 26)[0]
        return taken[24 + (length + 7) // 8 * 8 + 2:]

    def flow_statistics(self):
        """All parts of the reply to a request for the statistics of all flows."""
        xid = self.next_xid()
        body = struct.pack("!HH4x", MULTIPART_FLOW, 0)
        body += struct.pack("!B3xII4xQQ", ALL_TABLES, ANY, ANY, 0, 0) + match()
        self.send(message(MULTIPART_REQUEST, xid, body))
        parts = []
        while True:
            parts.append(self.receive(MULTIPART_REPLY, xid))
            if not struct.unpack_from("!H", parts[-1], 10)[0] & ONE_MORE:
                return parts

    def commit(self, number, control):
        """Sends a bundle control message and waits for its reply."""
        xid = self.next_xid()
        self.send(bundle(BUNDLE_CONTROL, xid, number, struct.pack("!HH", control, ATOMIC_AND_ORDERED)))
        reply = struct.unpack_from("!H", self.receive(EXPERIMENTER, xid), 20)[0]
        if reply != control + 1:
            raise Failure(f"the switch answered type {reply} to bundle control type {control}")


def in_bundle(number, xid, modification):
    """A message of a bundle. Both headers have the same transaction number."""
    return bundle(BUNDLE_ADD, xid, number, struct.pack("!2xH", ATOMIC_AND_ORDERED) + modification)


def entries(parts):
    """The number of flow entries in parts of a reply."""
    count = 0
    for part in parts:
        at = 16
        while at < len(part):
            at += struct.unpack_from("!H", part, at)[0]
            count += 1
    return count
