#!/bin/bash
# make-capture.sh - build a small office out of network namespaces, let real
# programs talk across it, and capture what its router sees.
#
#   sudo ./make-capture.sh [OUTDIR]          build, capture, derive (about 90 s)
#   ./make-capture.sh --derive [OUTDIR]      only recompute the derived files
#                                            from an existing office.pcap
#
# OUTDIR defaults to the folder of this script.  It receives
#   office.pcap           classic pcap, Ethernet, snapped at $SNAP bytes
#   office.pcapng.gz      the same frames as pcapng, one interface block per
#                         router port
#   office.headers.csv    per-frame reference, dissected by tshark
#   office.counts.json    counts of the same dissection (also put into README.md)
#
# Debian packages needed (bookworm names):
#   iproute2 procps util-linux ethtool nftables python3 openssl curl gzip
#   wireshark-common tshark                 (dumpcap, editcap, mergecap, tshark)
#   iputils-ping iputils-arping traceroute dnsutils dnsmasq-base udhcpc
#   openssh-server openssh-client chrony nmap sipsak libusrsctp-examples
#
# Nothing leaves the machine: all hosts are namespaces with veth links between
# them, no namespace has a link to the real network, and every namespace,
# process and temporary file is removed on exit.  Every program runs under a
# time limit, and the capture stops by itself.
#
# The kernel needs only veth, bridge, nftables and IPv6.  802.1Q and 802.1ad
# tags are pushed and popped by a small AF_PACKET switch (see "switch" in the
# Python helper below), so the 8021q module is not needed; SCTP is spoken by the
# user-space stack of libusrsctp-examples, so the sctp module is not needed (and
# must not be loaded, it would answer the association with ABORTs).
#
# A second run gives the same kinds of traffic, not the same bytes: times, TCP
# sequence numbers, ephemeral ports, DNS ids and keys differ.

set -euo pipefail

SNAP=168          # bytes kept of each frame: all headers, some payload
MAXSECS=240       # the capture ends itself after this long, whatever happens

# ---------------------------------------------------------------------------
# Arguments and checks
# ---------------------------------------------------------------------------
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
derive_only=no
if [[ ${1:-} == --derive ]]; then derive_only=yes; shift; fi
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0
fi
out=${1:-$here}
die() { echo "make-capture: $*" >&2; exit 1; }
say() { echo "== $*"; }
[[ -d $out ]] || die "no such folder: $out"

missing=()
need() { local t; for t in "$@"; do command -v "$t" >/dev/null 2>&1 || missing+=("$t"); done; }
PATH=$PATH:/usr/sbin:/sbin
need tshark python3 gzip
USRSCTP=/usr/lib/usrsctp
if [[ $derive_only == no ]]; then
    need ip sysctl unshare ethtool nft openssl curl dumpcap editcap mergecap \
         reordercap capinfos ping arping traceroute dig dnsmasq udhcpc sshd ssh \
         ssh-keygen chronyd nmap nping sipsak timeout
    [[ -x $USRSCTP/echo_server && -x $USRSCTP/client ]] || missing+=("$USRSCTP/client")
fi
if (( ${#missing[@]} )); then
    die "missing: ${missing[*]} - see the package list at the top of this script"
fi

W=$(mktemp -d /tmp/office-capture.XXXXXX)

# ---------------------------------------------------------------------------
# Derived files: what an independent dissector (tshark) says about office.pcap
# ---------------------------------------------------------------------------
derive() {
    say "dissecting with tshark"
    # Reassembly is off, so a first fragment shows its ports and a later one has
    # none.  A frame can hold a field several times (ICMP errors quote a packet):
    # -E occurrence=a lists them outermost first and the code takes what belongs
    # to the outermost packet only.
    tshark -n -r "$out/office.pcap" -o ip.defragment:FALSE -o ipv6.defragment:FALSE \
        -T fields -E separator=/t -E occurrence=a -E aggregator=, \
        -e frame.number -e frame.protocols -e frame.len -e frame.cap_len \
        -e eth.type -e vlan.id -e ieee8021ad.id \
        -e arp.src.proto_ipv4 -e arp.dst.proto_ipv4 \
        -e ip.src -e ip.dst -e ip.cur_rt -e ip.proto -e ip.hdr_len -e ip.flags.mf -e ip.frag_offset \
        -e ipv6.src -e ipv6.dst -e ipv6.nxt -e ipv6.hopopts.nxt -e ipv6.dstopts.nxt \
        -e ipv6.routing.nxt -e ipv6.fraghdr.nxt -e ipv6.fraghdr.offset -e ipv6.fraghdr.more \
        -e tcp.srcport -e tcp.dstport -e udp.srcport -e udp.dstport \
        -e sctp.srcport -e sctp.dstport >"$W/fields.tsv" 2>"$W/tshark.err" ||
        { cat "$W/tshark.err" >&2; die "tshark failed"; }
    python3 - "$W/fields.tsv" "$out" "$(tshark --version | sed -n '1s/^\(TShark (Wireshark) [^ ]*\).*/\1/p')" <<'PY'
import json, os, sys
tsv, out, version = sys.argv[1:4]
names = """number protocols len cap_len etype vlan svlan arp_src arp_dst
src4 dst4 hop4 proto4 hlen4 mf4 off4 src6 dst6 nxt6 hop dst rt frag fragoff fragmore
tcp_s tcp_d udp_s udp_d sctp_s sctp_d""".split()
keys = """frames frames_snapped ipv4 ipv6 arp other_l3 vlan_tagged qinq_tagged
tcp udp icmp icmpv6 sctp igmp other_ip_protocol ipv4_fragments_first
ipv4_fragments_later ipv6_fragments_first ipv6_fragments_later
ipv4_with_options ipv6_with_extension_headers with_ports""".split()
c = dict.fromkeys(keys, 0)
flag = lambda v: v in ("1", "True")
PORTS = {6: "tcp", 17: "udp", 132: "sctp"}
BYNUM = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmpv6", 132: "sctp", 2: "igmp"}
EXT = {0: "hop", 60: "dst", 43: "rt", 44: "frag"}
with open(tsv) as f, open(os.path.join(out, "office.headers.csv"), "w") as o:
    o.write("frame,l3,src,dst,proto,sport,dport,vlan\n")
    for n, line in enumerate(f):
        cols = line.rstrip("\n").split("\t")
        assert len(cols) == len(names), (n, cols)
        r = {k: (v.split(",") if v else []) for k, v in zip(names, cols)}
        assert r["number"] == [str(n + 1)]
        first = lambda k: r[k][0] if r[k] else ""
        c["frames"] += 1
        c["frames_snapped"] += int(first("cap_len")) < int(first("len"))
        layers = first("protocols").split(":")
        l3 = next(({"ip": "ipv4"}.get(x, x) for x in layers if x in ("ip", "ipv6", "arp")), "other")
        if l3 == "arp" and "ip" in layers: l3 = "ipv4"
        src = dst = proto = sport = dport = ""
        later = False
        # Tags: the outermost is the 802.1ad one where there is one.
        tags = r["svlan"] + r["vlan"]
        vlan = tags[0] if tags else ""
        c["vlan_tagged"] += len(tags) >= 1
        c["qinq_tagged"] += len(tags) >= 2
        if l3 == "ipv4":
            # In a source-routed packet tshark's ip.dst is the end of the route;
            # ip.cur_rt is what the header's destination field holds.
            src, dst, proto = first("src4"), first("hop4") or first("dst4"), int(first("proto4"))
            c["ipv4_with_options"] += int(first("hlen4")) > 20
            off, mf = int(first("off4")), flag(first("mf4"))
            later = off > 0
            c["ipv4_fragments_first"] += mf and not later
            c["ipv4_fragments_later"] += later
        elif l3 == "ipv6":
            # Walk the extension headers: the k-th header of a kind in the outer
            # packet is the k-th occurrence of its field.
            src, dst, proto = first("src6"), first("dst6"), int(first("nxt6"))
            seen = dict.fromkeys(EXT.values(), 0)
            while proto in EXT and not later:
                kind = EXT[proto]
                k = seen[kind]; seen[kind] += 1
                if kind == "frag":
                    later = int(r["fragoff"][k]) > 0
                    c["ipv6_fragments_first"] += flag(r["fragmore"][k]) and not later
                    c["ipv6_fragments_later"] += later
                proto = int(r[kind][k])
            c["ipv6_with_extension_headers"] += any(seen.values())
        elif l3 == "arp":
            src, dst = first("arp_src"), first("arp_dst")
        c[l3 if l3 != "other" else "other_l3"] += 1
        if proto != "":
            c[BYNUM.get(proto, "other_ip_protocol")] += 1
            if proto in PORTS and not later:
                sport, dport = first(PORTS[proto] + "_s"), first(PORTS[proto] + "_d")
                c["with_ports"] += sport != ""
        o.write(",".join(map(str, (n, l3, src, dst, proto, sport, dport, vlan))) + "\n")
with open(os.path.join(out, "office.counts.json"), "w") as o:
    json.dump({"source": "office.pcap", "dissector": version, "counts": c}, o, indent=2)
    o.write("\n")
# Refresh the table in README.md, where there is one.
readme = os.path.join(out, "README.md")
if os.path.exists(readme):
    label = {
        "frames": "frames", "frames_snapped": "frames cut by the snap length",
        "ipv4": "IPv4", "ipv6": "IPv6", "arp": "ARP", "other_l3": "other than these three",
        "vlan_tagged": "VLAN-tagged (one tag or more)", "qinq_tagged": "QinQ-tagged (two tags)",
        "tcp": "TCP", "udp": "UDP", "icmp": "ICMP", "icmpv6": "ICMPv6", "sctp": "SCTP",
        "igmp": "IGMP", "other_ip_protocol": "other IP protocols",
        "ipv4_fragments_first": "IPv4 fragments, first",
        "ipv4_fragments_later": "IPv4 fragments, later",
        "ipv6_fragments_first": "IPv6 fragments, first",
        "ipv6_fragments_later": "IPv6 fragments, later",
        "ipv4_with_options": "IPv4 with options",
        "ipv6_with_extension_headers": "IPv6 with extension headers (fragment header included)",
        "with_ports": "TCP, UDP or SCTP with ports in the frame"}
    table = "| kind | key in office.counts.json | frames |\n|---|---|---:|\n" + "".join(
        "| %s | `%s` | %d |\n" % (label[k], k, c[k]) for k in keys)
    text = open(readme).read()
    a, b = "<!-- counts:begin -->\n", "<!-- counts:end -->"
    if a in text and b in text:
        text = text[:text.index(a) + len(a)] + table + text[text.index(b):]
        open(readme, "w").write(text)
for k in keys: print("   %-30s %6d" % (k, c[k]))
PY
}

if [[ $derive_only == yes ]]; then
    trap 'rm -rf "$W"' EXIT
    [[ -f $out/office.pcap ]] || die "no office.pcap in $out"
    derive
    exit 0
fi

# ---------------------------------------------------------------------------
# Namespaces, and their removal whatever happens
# ---------------------------------------------------------------------------
[[ $EUID -eq 0 ]] || { rm -rf "$W"; die "building namespaces needs root; run it with sudo"; }
[[ ! -e /proc/net/sctp ]] || { rm -rf "$W"; die "the kernel's sctp module is loaded; unload it first (see the header)"; }

HOSTS="gw sw staff1 staff2 server access guest1 phone1 branch1 outside"
for h in $HOSTS; do
    [[ ! -e /run/netns/office-$h && ! -e /etc/netns/office-$h ]] ||
        { rm -rf "$W"; die "office-$h exists already (an earlier run?); remove it first"; }
done
cleanup() {
    local h pids
    set +e
    for h in $HOSTS; do
        pids=$(ip netns pids "office-$h" 2>/dev/null)
        [[ -z $pids ]] || kill $pids 2>/dev/null
    done
    sleep 0.3
    for h in $HOSTS; do
        pids=$(ip netns pids "office-$h" 2>/dev/null)
        [[ -z $pids ]] || kill -9 $pids 2>/dev/null
        ip netns del "office-$h" 2>/dev/null
        rm -rf "/etc/netns/office-$h"
    done
    rmdir /etc/netns 2>/dev/null
    [[ $made_run_sshd == no ]] || rmdir /run/sshd 2>/dev/null
    rm -rf "$W"
}
made_run_sshd=no
trap cleanup EXIT
trap 'exit 130' INT TERM

# on HOST CMD...: run CMD on a host, under the host's own name.
on() { local h=$1; shift; ip netns exec "office-$h" unshare --uts sh -c 'hostname "$1" 2>/dev/null; shift; exec "$@"' sh "$h" "$@"; }
# try HOST CMD...: one bounded bit of traffic; a refusal is a result like another.
try() { on "$1" timeout -k 2 20 "${@:2}" </dev/null >>"$W/log" 2>&1 || echo "   ($1: ${*:2:3}... status $?)" >>"$W/log"; }
# start HOST CMD...: a server that runs until the end.
start() { on "$1" timeout -k 2 "$MAXSECS" "${@:2}" </dev/null >>"$W/log" 2>&1 & disown; }
sys() { local h=$1; shift; ip netns exec "office-$h" sysctl -qw "$@"; }

say "building the office"
for h in $HOSTS; do
    ip netns add "office-$h"
    sys $h net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0 \
           net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
           net.ipv6.conf.default.autoconf=0
    ip -n "office-$h" link set lo up
    # Each host queries the office's DNS server.
    mkdir -p "/etc/netns/office-$h"
    printf 'nameserver 10.20.2.53\noptions timeout:2 attempts:1\n' >"/etc/netns/office-$h/resolv.conf"
    printf '127.0.0.1 localhost\n' >"/etc/netns/office-$h/hosts"
done

# cable HOST IF MAC  HOST IF MAC: a veth link with checksum and segmentation
# offload off at both ends, so that frames are what a wire would carry.
cable() {
    ip link add "$2" netns "office-$1" address "$3" type veth peer name "$5" netns "office-$4" address "$6"
    ip netns exec "office-$1" ethtool -K "$2" tx off sg off tso off gso off gro off >/dev/null 2>&1
    ip netns exec "office-$4" ethtool -K "$5" tx off sg off tso off gso off gro off >/dev/null 2>&1
}
# no6 HOST IF: a port that only carries frames and has no addresses of its own.
no6() { sys "$1" "net.ipv6.conf.$2.disable_ipv6=1" "net.ipv4.conf.$2.arp_ignore=8"; }

echo '10.20.40.21 phone1' >>/etc/netns/office-phone1/hosts       # sipsak looks itself up

cable gw lan0   02:00:00:01:00:01  sw p0         02:00:00:01:00:f0
cable sw p1     02:00:00:01:00:f1  staff1 eth0   02:00:00:01:00:0b
cable sw p2     02:00:00:01:00:f2  staff2 eth0   02:00:00:01:00:0c
cable gw dmz0   02:00:00:02:00:01  server eth0   02:00:00:02:00:10
cable gw trunk0 02:00:00:30:00:f0  access up0    02:00:00:30:00:f1
cable gw metro0 02:00:00:50:00:f0  access metro1 02:00:00:50:00:f1
cable access g1 02:00:00:30:00:f2  guest1 eth0   02:00:00:30:00:65
cable access h1 02:00:00:40:00:f2  phone1 eth0   02:00:00:40:00:15
cable access b1 02:00:00:50:00:f2  branch1 eth0  02:00:00:50:00:0b
cable gw wan0   02:00:00:ff:00:01  outside eth0  02:00:00:ff:00:50
# The router's sub-interfaces: vlanN has the address, subN faces the tagger.
cable gw vlan30 02:00:00:30:00:01  gw sub30      02:00:00:30:00:02
cable gw vlan40 02:00:00:40:00:01  gw sub40      02:00:00:40:00:02
cable gw vlan50 02:00:00:50:00:01  gw sub50      02:00:00:50:00:02
for i in trunk0 metro0 sub30 sub40 sub50; do no6 gw $i; done
for i in up0 metro1 g1 h1 b1; do no6 access $i; done
sys sw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
# Tagged frames are up to 8 bytes longer.
ip -n office-gw link set trunk0 mtu 1508; ip -n office-access link set up0 mtu 1508
ip -n office-gw link set metro0 mtu 1508; ip -n office-access link set metro1 mtu 1508
# The uplink is narrower than the rest: path MTU discovery has something to find.
ip -n office-gw link set wan0 mtu 1400;   ip -n office-outside link set eth0 mtu 1400

# The staff switch.
ip -n office-sw link add br0 type bridge stp_state 0 mcast_snooping 0
for i in p0 p1 p2; do ip -n office-sw link set $i master br0 up; done
ip -n office-sw link set br0 up

# The router.
sys gw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.wan0.rp_filter=1
gwif() { # gwif IF IPV4/LEN IPV6/LEN
    ip -n office-gw link set "$1" addrgenmode none
    ip -n office-gw link set "$1" up
    ip -n office-gw addr add "$2" brd + dev "$1"
    ip -n office-gw addr add fe80::1/64 dev "$1" nodad
    ip -n office-gw addr add "$3" dev "$1" nodad
}
gwif lan0   10.20.1.1/24    2001:db8:20:1::1/64
gwif dmz0   10.20.2.1/24    2001:db8:20:2::1/64
gwif vlan30 10.20.30.1/24   2001:db8:20:30::1/64
gwif vlan40 10.20.40.1/24   2001:db8:20:40::1/64
gwif vlan50 10.20.50.1/24   2001:db8:20:50::1/64
gwif wan0   198.51.100.1/24 2001:db8:ffff::1/64
for i in trunk0 metro0 sub30 sub40 sub50; do ip -n office-gw link set $i up; done
ip -n office-gw route add default via 198.51.100.80
ip -n office-gw route add default via 2001:db8:ffff::80
ip -n office-gw route add unreachable 10.20.0.0/16             # office networks that are not there
ip -n office-gw route add unreachable 2001:db8:20::/48
# A little of the firewall that office.rules describes, so that some probes go
# unanswered and some are refused.
ip netns exec office-gw nft -f - <<'NFT'
table inet office {
  chain forward {
    type filter hook forward priority 0; policy accept;
    iifname "wan0" ip saddr { 10.20.0.0/16, 127.0.0.0/8, 192.168.0.0/16 } drop
    iifname "wan0" ip saddr { 192.0.2.0/24, 203.0.113.0/24 } drop
    iifname "wan0" ip6 saddr 2001:db8:bad::/48 drop
    iifname "wan0" tcp dport { 135-139, 445, 3306, 3389, 5432 } drop
    iifname "wan0" udp dport { 137-138, 161, 1900 } drop
    iifname "vlan30" ip daddr { 10.20.1.0/24, 10.20.2.22, 10.20.40.0/24 } reject with icmpx type admin-prohibited
    iifname "vlan30" ip6 daddr { 2001:db8:20:1::/64, 2001:db8:20:2::22, 2001:db8:20:40::/64 } reject with icmpx type admin-prohibited
  }
}
NFT

# ---------------------------------------------------------------------------
# A Python helper: the tagging switch and a few small servers and senders that
# use plain sockets
# ---------------------------------------------------------------------------
cat >"$W/lab.py" <<'PY'
import http.server, os, select, socket, ssl, struct, sys, threading, time

def switch(*ports):
    """trunk:30=access or trunk:100.50=access: carry frames between a tagged
    trunk and an untagged port, pushing or popping 802.1Q (one number) or
    802.1ad + 802.1Q (two)."""
    sock, to_access, to_trunk = {}, {}, {}
    def port(name):
        if name not in sock:
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            s.setsockopt(263, 8, 1)                      # PACKET_AUXDATA
            s.bind((name, 3))                            # ETH_P_ALL
            sock[name] = s
        return sock[name]
    for p in ports:
        left, access = p.split("=")
        trunk, ids = left.split(":")
        ids = [int(x) for x in ids.split(".")]
        tpids = [0x8100] if len(ids) == 1 else [0x88A8, 0x8100]
        stack = tuple(zip(tpids, ids))
        to_access[port(trunk), stack] = port(access)
        to_trunk[port(access)] = (port(trunk), b"".join(struct.pack("!HH", *t) for t in stack))
    while True:
        for s in select.select(list(sock.values()), [], [])[0]:
            try: f, anc, _, addr = s.recvmsg(65535, socket.CMSG_SPACE(20))
            except OSError: continue                     # "network is down", until it is up
            if addr[2] == 4: continue                    # our own sends
            for level, kind, data in anc:                # the kernel took the outer tag off
                if (level, kind) == (263, 8):
                    st, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
                    if st & 0x10:
                        f = f[:12] + struct.pack("!HH", tpid if st & 0x40 else 0x8100, tci) + f[12:]
            try:
                if s in to_trunk:
                    t, tags = to_trunk[s]
                    t.send(f[:12] + tags + f[12:])
                else:
                    stack, at = [], 12
                    while f[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
                        tpid, tci = struct.unpack("!HH", f[at:at + 4])
                        stack.append((tpid, tci & 0xFFF)); at += 4
                    a = to_access.get((s, tuple(stack)))
                    if a: a.send(f[:12] + f[at:])
            except OSError:
                pass

def web(root, cert, key):
    """HTTP on 80 and HTTPS on 443, IPv4 and IPv6."""
    os.chdir(root)
    class V6(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6
        daemon_threads = True
        def server_bind(self):
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self.socket.bind(self.server_address)
            self.server_name, self.server_port = "www", self.server_address[1]
    class H(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *a): pass
    plain, tls = V6(("::", 80), H), V6(("::", 443), H)
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); ctx.load_cert_chain(cert, key)
    tls.socket = ctx.wrap_socket(tls.socket, server_side=True)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    tls.serve_forever()

def sip(addr):
    """A registrar that says OK to everything."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((addr, 5060))
    while True:
        m, a = s.recvfrom(4096)
        keep = [l for l in m.decode(errors="replace").split("\r\n")
                if l.split(":")[0].lower() in ("via", "v", "from", "f", "to", "t", "call-id", "i", "cseq")]
        s.sendto(("SIP/2.0 200 OK\r\n" + "\r\n".join(keep) + "\r\nContent-Length: 0\r\n\r\n").encode(), a)

def rtp(local, lport, remote, rport, count):
    """G.711-sized packets at 20 ms."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((local, int(lport)))
    for i in range(int(count)):
        s.sendto(struct.pack("!BBHII", 0x80, 0, i, 160 * i, 0x20) + bytes(160), (remote, int(rport)))
        time.sleep(0.02)

def udp(dst, port, size, *opts):
    """One datagram of SIZE bytes; opts: bcast, ttl=N, dev=IF, count=N, sport=N,
    hopopts, dstopts (IPv6 extension headers set with the sockets API)."""
    o = dict((x.split("=") + [1])[:2] for x in opts)
    s = socket.socket(socket.AF_INET6 if ":" in dst else socket.AF_INET, socket.SOCK_DGRAM)
    if "bcast" in o: s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    if "dev" in o: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, o["dev"].encode())
    if "ttl" in o: s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, int(o["ttl"]))
    if "sport" in o: s.bind(("::" if ":" in dst else "0.0.0.0", int(o["sport"])))
    pad = bytes([0, 0, 1, 4, 0, 0, 0, 0])                # next, length, PadN
    if "hopopts" in o: s.setsockopt(socket.IPPROTO_IPV6, 54, pad)   # IPV6_HOPOPTS
    if "dstopts" in o: s.setsockopt(socket.IPPROTO_IPV6, 59, pad)   # IPV6_DSTOPTS
    s.connect((dst, int(port))) if "bcast" not in o else None
    for _ in range(int(o.get("count", 1))):
        try: s.sendto(os.urandom(int(size)), (dst, int(port)))
        except OSError as e: print("udp:", e)
        time.sleep(0.05)

def mdns(dev, name):
    """Ask ff02::fb port 5353 for NAME's PTR."""
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("::", 5353))
    q = b"".join(bytes([len(l)]) + l for l in name.encode().split(b".")) + b"\0"
    s.sendto(struct.pack("!6H", 0, 0, 1, 0, 0, 0) + q + struct.pack("!HH", 12, 1),
             ("ff02::fb", 5353, 0, socket.if_nametoindex(dev)))

def sink(*where):
    """Listen on UDP addr,port pairs and answer with the same bytes."""
    ss = []
    for w in where:
        a, p = w.rsplit(",", 1)
        s = socket.socket(socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((a, int(p))); ss.append(s)
    while True:
        for s in select.select(ss, [], [])[0]:
            m, a = s.recvfrom(65535); s.sendto(m, a)

def join(dev, secs):
    """Join an IPv4 and an IPv6 group, then leave: IGMP and MLD reports."""
    i = socket.if_nametoindex(dev)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                 socket.inet_aton("239.20.1.1") + struct.pack("@ii", 0, i))
    t = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    t.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                 socket.inet_pton(socket.AF_INET6, "ff05::2001") + struct.pack("@i", i))
    time.sleep(float(secs))

def finish(raw, src, hosts, dst):
    """pcapng SRC to DST: drop what it says of the machine it was made on
    (hardware and operating system: section header options 2 and 3, interface
    option 12), put a name resolution block after the interface blocks, and put
    back the interface statistics blocks that dumpcap wrote at the end of RAW and
    that the sorting and merging tools leave out."""
    def blocks(path):
        d, at = open(path, "rb").read(), 0
        while at < len(d):
            kind, size = struct.unpack("<II", d[at:at + 8])
            yield kind, d[at:at + size]
            at += size
    def block(kind, body):
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size
    drop, fixed = {0x0A0D0D0A: (2, 3), 1: (12,)}, {0x0A0D0D0A: 24, 1: 16}
    names = b""
    for line in open(hosts):
        addr, name = line.split()
        six = ":" in addr
        rec = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, addr) + name.encode() + b"\0"
        names += struct.pack("<HH", 2 if six else 1, len(rec)) + rec + bytes(-len(rec) % 4)
    names, named, o = names + bytes(4), False, b""
    for kind, b in blocks(src):
        if kind in drop:
            p, body = fixed[kind], b[8:fixed[kind]]
            while p < len(b) - 4:
                code, n = struct.unpack("<HH", b[p:p + 4])
                q = p + 4 + (n + 3) // 4 * 4
                if code not in drop[kind]: body += b[p:q]
                p = q
                if code == 0: break
            b = block(kind, body)
        elif not named:
            o += block(4, names); named = True
        o += b
    for kind, b in blocks(raw):
        if kind == 5: o += b
    open(dst, "wb").write(o)

globals()[sys.argv[1]](*sys.argv[2:])
PY
LAB="python3 $W/lab.py"

start gw     $LAB switch trunk0:30=sub30 trunk0:40=sub40 metro0:100.50=sub50
start access $LAB switch up0:30=g1 up0:40=h1 metro1:100.50=b1

# ---------------------------------------------------------------------------
# The capture: every frame once, where it comes in; and what the router itself
# sends (ARP, neighbour discovery, ICMP errors, relayed DHCP) where it goes out
# ---------------------------------------------------------------------------
own=arp
for a in 10.20.1.1 10.20.2.1 10.20.30.1 10.20.40.1 10.20.50.1 198.51.100.1 \
         2001:db8:20:1::1 2001:db8:20:2::1 2001:db8:20:30::1 2001:db8:20:40::1 \
         2001:db8:20:50::1 2001:db8:ffff::1 fe80::1 ::; do
    own="$own or src host $a"
done
plain="inbound or (outbound and ($own))"
onetag="inbound or (outbound and vlan and ($own))"
twotags="inbound or (outbound and vlan and vlan and ($own))"
say "capturing on lan0 dmz0 trunk0 metro0 wan0, $SNAP bytes a frame"
ip netns exec office-gw dumpcap -q -n -a "duration:$MAXSECS" -B 8 \
    -i lan0   -s $SNAP -f "$plain" -i dmz0   -s $SNAP -f "$plain" \
    -i trunk0 -s $SNAP -f "$onetag" -i metro0 -s $SNAP -f "$twotags" \
    -i wan0   -s $SNAP -f "$plain" -w "$W/raw.pcapng" >"$W/dumpcap.log" 2>&1 &
capture=$!
for _ in $(seq 50); do [[ -s $W/raw.pcapng ]] && break; sleep 0.1; done
sleep 0.5
kill -0 $capture 2>/dev/null || { cat "$W/dumpcap.log" >&2; die "the capture did not start"; }

# ---------------------------------------------------------------------------
# The hosts come up: duplicate address detection, router solicitation, MLD, DHCP
# ---------------------------------------------------------------------------
say "bringing hosts up"
host() { # host NAME IPV4/LEN GW4 GW6 IPV6/LEN...
    local h=$1 v4=$2 g4=$3 g6=$4 a; shift 4
    ip -n "office-$h" link set eth0 up
    [[ $v4 == dhcp ]] || ip -n "office-$h" addr add "$v4" brd + dev eth0
    for a in "$@"; do ip -n "office-$h" addr add "$a" dev eth0; done
    [[ $v4 == dhcp ]] || ip -n "office-$h" route add default via "$g4"
    [[ $g6 == ra ]] || ip -n "office-$h" route add default via "$g6"
}
for i in g1 h1 b1 up0 metro1; do ip -n office-access link set $i up; done
host server  10.20.2.10/24    10.20.2.1   2001:db8:20:2::1  2001:db8:20:2::10/64
for a in 22 53 60; do # more addresses: ssh, DNS/NTP/DHCP, telephony
    ip -n office-server addr add 10.20.2.$a/24 dev eth0
    ip -n office-server addr add 2001:db8:20:2::$a/64 dev eth0 nodad
done
host outside 198.51.100.80/24 198.51.100.1 2001:db8:ffff::1 2001:db8:ffff::80/64
ip -n office-outside addr add 198.51.100.200/24 dev eth0      # the scanner
ip -n office-outside addr add 2001:db8:ffff::200/64 dev eth0 nodad
for a in 192.0.2.66/32 203.0.113.99/32 2001:db8:bad::66/128; do # hosts of ill repute
    ip -n office-outside addr add $a dev lo
done
# The DNS, DHCP and TFTP server and the router's relay come first, DHCP clients later.
mkdir -p "$W/tftp" "$W/office-web" "$W/outside-web"
head -c 3000 /dev/zero | tr '\0' 'c' >"$W/tftp/phone1.cnf"
for d in office-web outside-web; do
    python3 -c 'for i in range(260): print("<p>line %d of a page with nothing secret on it</p>" % i)' >"$W/$d/index.html"
    head -c 700 "$W/$d/index.html" >"$W/$d/small.html"
done
chmod -R a+rX "$W"
big=""
for i in $(seq 12); do big="$big,$(printf 'a-long-text-record-that-does-not-fit-%03d-%0150d' $i 7)"; done
start server dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --pid-file= \
    --user=root --log-facility=- --edns-packet-max=4096 --local=/office.example/ --local=/outside.example/ \
    --address=/www.office.example/10.20.2.10 --address=/www.office.example/2001:db8:20:2::10 \
    --address=/ssh.office.example/10.20.2.22 --address=/ssh.office.example/2001:db8:20:2::22 \
    --address=/www.outside.example/198.51.100.80 --address=/www.outside.example/2001:db8:ffff::80 \
    --mx-host=office.example,mail.office.example,10 --address=/mail.office.example/10.20.2.10 \
    --txt-record=big.office.example"$big" \
    --ptr-record=11.1.20.10.in-addr.arpa,staff1.office.example \
    --dhcp-range=10.20.1.100,10.20.1.199,255.255.255.0,1h \
    --dhcp-range=10.20.30.100,10.20.30.199,255.255.255.0,1h \
    --dhcp-host=02:00:00:01:00:0c,10.20.1.112,staff2 --dhcp-host=02:00:00:30:00:65,10.20.30.101,guest1 \
    --dhcp-leasefile="$W/leases" --enable-tftp --tftp-root="$W/tftp"
start gw dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --pid-file= --user=root --log-facility=- \
    --dhcp-relay=10.20.1.1,10.20.2.53 --dhcp-relay=10.20.30.1,10.20.2.53 \
    --enable-ra --dhcp-range=2001:db8:20:1::,ra-only --dhcp-range=2001:db8:20:30::,ra-stateless \
    --dhcp-leasefile="$W/leases-gw"
cat >"$W/dhcp.sh" <<'SH'
#!/bin/sh
case $1 in bound|renew)
    ip addr add "$ip/$mask" brd + dev "$interface"; ip route add default via "$router";;
esac
SH
chmod +x "$W/dhcp.sh"
sleep 1.5
host staff1  10.20.1.11/24  10.20.1.1   ra                  2001:db8:20:1::11/64
host staff2  dhcp           10.20.1.1   ra                  2001:db8:20:1::12/64
host phone1  10.20.40.21/24 10.20.40.1  2001:db8:20:40::1   2001:db8:20:40::21/64
host branch1 10.20.50.11/24 10.20.50.1  2001:db8:20:50::1   2001:db8:20:50::11/64
sys guest1 net.ipv6.conf.default.autoconf=1 net.ipv6.conf.eth0.autoconf=1
host guest1  dhcp           10.20.30.1  ra
try staff2 udhcpc -f -n -q -t 3 -T 4 -i eth0 -s "$W/dhcp.sh" -x hostname:staff2 -F staff2
try guest1 udhcpc -f -n -q -t 3 -T 4 -i eth0 -s "$W/dhcp.sh" -x hostname:guest1 -F guest1
[[ -n $(ip -n office-guest1 -4 route show default) ]] || die "guest1 got no DHCP lease"
[[ -n $(ip -n office-staff2 -4 route show default) ]] || die "staff2 got no DHCP lease"
# guest1 makes its own IPv6 address from a router advertisement; that takes a while.
for _ in $(seq 60); do
    [[ -z $(ip -n office-guest1 -6 addr show dev eth0 scope global -tentative) ]] || break
    sleep 0.25
done
[[ -n $(ip -n office-guest1 -6 addr show dev eth0 scope global -tentative) ]] || die "guest1 got no IPv6 prefix"

# ---------------------------------------------------------------------------
# Servers
# ---------------------------------------------------------------------------
say "starting servers"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
    -subj /CN=www.office.example -keyout "$W/key.pem" -out "$W/cert.pem" >/dev/null 2>&1
start server  $LAB web "$W/office-web"  "$W/cert.pem" "$W/key.pem"
start outside $LAB web "$W/outside-web" "$W/cert.pem" "$W/key.pem"
start server  $LAB sip 10.20.2.60
start server  $LAB sink 10.20.2.60,16400 10.20.2.10,7007 2001:db8:20:2::10,7007
start outside $LAB sink 2001:db8:ffff::80,7007
start server  $USRSCTP/echo_server
ssh-keygen -q -t ed25519 -N '' -C office -f "$W/hostkey"
ssh-keygen -q -t ed25519 -N '' -C staff1 -f "$W/userkey"
cp "$W/userkey.pub" "$W/authorized_keys"
[[ -d /run/sshd ]] || { mkdir -p /run/sshd; made_run_sshd=yes; }   # sshd insists on it
start server "$(command -v sshd)" -D -e -f /dev/null -h "$W/hostkey" -o UsePAM=no -o StrictModes=no \
    -o PidFile=none -o AuthorizedKeysFile="$W/authorized_keys" -o PrintMotd=no \
    -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no
printf 'local stratum 5\nallow\ncmdport 0\nbindcmdaddress /\npidfile %s\ndriftfile %s\n' "$W/chrony.pid" "$W/drift" >"$W/chrony.conf"
start server chronyd -x -d -u root -f "$W/chrony.conf"
sleep 2

# ---------------------------------------------------------------------------
# Traffic
# ---------------------------------------------------------------------------
say "web and DNS"
web() { try "$1" curl -s -o /dev/null -k --max-time 8 "${@:2}"; }
web staff1  http://www.office.example/
web staff1  -6 http://www.office.example/small.html
web staff1  -4 http://www.outside.example/
web staff2  -6 http://www.outside.example/
web staff2  -4 https://www.office.example/small.html
web staff2  -6 https://www.outside.example/small.html
web staff1  -4 https://www.outside.example/
web guest1  http://www.outside.example/small.html
web guest1  -4 https://www.outside.example/small.html
web branch1 -4 http://www.office.example/
web branch1 -6 https://www.office.example/small.html
web outside http://10.20.2.10/small.html
for i in 1 2 3; do
    web staff1 http://www.office.example/small.html
    web staff2 https://www.outside.example/small.html
    web guest1 -6 http://www.outside.example/small.html
    web branch1 -4 http://www.outside.example/small.html
done
web guest1  -6 http://www.outside.example/
web branch1 -6 http://www.office.example/
web outside 'https://[2001:db8:20:2::10]/small.html'
web outside --interface 198.51.100.200 https://10.20.2.10/small.html
try staff1  dig +time=2 +tries=1 www.office.example A
try staff1  dig +time=2 +tries=1 www.office.example AAAA
try staff1  dig +time=2 +tries=1 office.example MX
try staff1  dig +time=2 +tries=1 -x 10.20.1.11
try staff2  dig +time=2 +tries=1 +tcp www.outside.example A
try staff2  dig +time=2 +tries=1 @2001:db8:20:2::53 www.outside.example AAAA
try staff2  dig +time=2 +tries=1 no-such-name.office.example
try staff1  dig +time=2 +tries=1 +bufsize=4096 +ignore big.office.example TXT     # a fragmented answer
try branch1 dig +time=2 +tries=1 +bufsize=1232 big.office.example TXT             # cut, asked again over TCP
try guest1  dig +time=2 +tries=1 @198.51.100.80 www.outside.example               # not our resolver: refused
try guest1  dig +time=2 +tries=1 @10.20.2.53 www.office.example
try outside dig +time=1 +tries=1 @10.20.2.53 version.bind CH TXT

say "ssh"
sshto() { on "$1" timeout -k 2 20 ssh -T -i "$W/userkey" -o UserKnownHostsFile="$W/known" -o BatchMode=yes \
    -o StrictHostKeyChecking=accept-new -o ConnectTimeout=4 -F /dev/null "${@:2}" >>"$W/log" 2>&1 || true; }
printf 'echo hello\nsleep 0.4\nseq 2000\nsleep 0.4\nls /\nsleep 0.3\nexit\n' | sshto staff1 root@10.20.2.22 sh
printf 'date\nsleep 0.3\nexit\n' | sshto branch1 root@2001:db8:20:2::22 sh
sshto guest1  root@10.20.2.22 true </dev/null      # refused by the router
sshto outside -o IdentityAgent=none -o IdentitiesOnly=yes nobody@10.20.2.22 true </dev/null

say "ping, unreachables, path MTU, traceroute"
try staff1  ping -n -c 3 -i 0.2 10.20.2.10
try staff1  ping -n -c 3 -i 0.2 2001:db8:20:2::10
try staff2  ping -n -c 2 -i 0.2 198.51.100.80
try staff2  ping -n -c 2 -i 0.2 2001:db8:ffff::80
try guest1  ping -n -c 2 -i 0.2 198.51.100.80
try guest1  ping -n -c 2 -i 0.2 2001:db8:ffff::80
try phone1  ping -n -c 2 -i 0.2 10.20.40.1
try branch1 ping -n -c 4 -i 0.2 10.20.1.11
try branch1 ping -n -c 4 -i 0.2 2001:db8:20:1::11
try outside ping -n -c 2 -i 0.2 10.20.2.10
try staff1  ping -n -c 2 -i 0.2 -s 4000 10.20.2.10                 # fragments
try staff1  ping -n -c 2 -i 0.2 -s 4000 2001:db8:20:2::10
try branch1 ping -n -c 2 -i 0.2 -s 2000 10.20.2.10                 # fragments inside QinQ
try guest1  ping -n -c 2 -i 0.2 -s 2000 2001:db8:ffff::80          # and inside 802.1Q
try staff1  ping -n -c 1 -W 1 10.20.9.9                            # no such network
try staff2  ping -n -c 1 -W 1 2001:db8:20:9::9
try staff1  ping -n -c 1 -W 4 10.20.2.99                           # no such host
try staff2  ping -n -c 1 -W 4 2001:db8:20:2::99
try guest1  ping -n -c 1 -W 1 10.20.1.11                           # prohibited
try guest1  ping -n -c 1 -W 1 2001:db8:20:1::11
try staff1  ping -n -c 1 -W 1 -M 'do' -s 1450 198.51.100.80        # too big for the uplink
try staff1  ping -n -c 1 -W 1 -M 'do' -s 1420 2001:db8:ffff::80
try staff1  traceroute -n -q 1 -m 4 -w 1 198.51.100.80
try staff2  traceroute -6 -n -q 1 -m 4 -w 1 2001:db8:ffff::80
try staff1  ping -n -c 2 -i 0.2 -R 10.20.2.10                      # IPv4 options: record route
try staff2  ping -n -c 1 -R 198.51.100.80
try staff1  ping -n -c 2 -i 0.2 -T tsonly 10.20.2.10               # and timestamps
try branch1 ping -n -c 1 -R 10.20.2.10
try staff1  arping -q -c 2 -w 2 -I eth0 10.20.1.1

say "big datagrams, IPv6 extension headers, groups and broadcasts"
try staff1  $LAB udp 10.20.2.10 7007 5000
try staff2  $LAB udp 2001:db8:20:2::10 7007 5000
try outside $LAB udp 10.20.2.10 7007 3000
try staff1  $LAB udp 2001:db8:ffff::80 7007 60 dstopts count=2
try staff1  $LAB udp 2001:db8:20:2::10 7007 60 hopopts count=2
try guest1  $LAB udp 2001:db8:ffff::80 7007 40 hopopts dstopts
try staff2  $LAB udp 2001:db8:20:2::10 7007 3000 dstopts           # fragment header and options
try staff1  $LAB join eth0 1
try phone1  $LAB join eth0 1
try staff1  $LAB udp 10.20.1.255 137 50 bcast sport=137 count=2
try staff2  $LAB udp 255.255.255.255 17500 120 bcast dev=eth0
try staff2  $LAB udp 239.255.255.250 1900 100 ttl=2 dev=eth0 count=2
try guest1  $LAB udp 239.255.255.250 1900 100 ttl=2 dev=eth0
try staff1  dig +time=1 +tries=1 -p 5353 @224.0.0.251 _ipp._tcp.local PTR
try staff2  $LAB mdns eth0 _airplay._tcp.local
try branch1 $LAB mdns eth0 _ipp._tcp.local
try guest1  dig +time=1 +tries=1 -p 5353 @224.0.0.251 _googlecast._tcp.local PTR

say "time, mail, telephony, odds and ends"
ntp() { printf 'cmdport 0\nbindcmdaddress /\npidfile %s\n' "$W/ntp.$1.pid" >"$W/ntp.$1.conf"
        echo "server $2 iburst maxsamples 4" >>"$W/ntp.$1.conf"
        on "$1" timeout -k 2 12 chronyd -Q -u root -t 6 -f "$W/ntp.$1.conf" </dev/null >>"$W/log" 2>&1 || true; }
ntp staff1 10.20.2.53
ntp phone1 2001:db8:20:2::53
ntp guest1 198.51.100.80                                           # nobody there
try staff1  curl -s --max-time 3 smtp://10.20.2.10:25              # refused
try staff2  curl -s --max-time 3 smtp://198.51.100.80:25
try outside curl -s --max-time 3 smtp://10.20.2.10:25
try staff2  curl -s --max-time 3 telnet://10.20.2.22:23
try staff2  curl -s --max-time 3 http://10.20.2.10:8080/
try staff2  curl -s --max-time 3 ldap://10.20.2.10/
try staff1  curl -s --max-time 3 imaps://198.51.100.80/
try staff2  curl -s --max-time 3 telnet://198.51.100.80:22         # refused
try staff1  curl -s --max-time 3 telnet://198.51.100.80:853
try staff2  curl -s --max-time 3 http://10.20.50.11:631/           # the branch's printer is off
try branch1 curl -s --max-time 3 'http://[2001:db8:20:1::12]:8080/'
try staff2  dig +time=1 +tries=1 @198.51.100.80 www.outside.example
try staff2  $LAB udp 198.51.100.80 443 1200 count=2                # QUIC-sized, refused
try staff1  $LAB udp 2001:db8:ffff::80 443 1200
try branch1 $LAB udp 198.51.100.80 500 180 sport=500 count=2
try staff1  $LAB udp 198.51.100.80 51820 148
try phone1  $LAB udp 198.51.100.80 5060 300 sport=5060
try guest1  curl -s --max-time 2 http://10.20.1.11/                # prohibited
try guest1  curl -s --max-time 2 'http://[2001:db8:20:1::11]/'
try guest1  curl -s --max-time 2 telnet://198.51.100.80:445
try phone1  curl -s -o /dev/null --max-time 5 tftp://10.20.2.53/phone1.cnf
try phone1  sipsak -s sip:200@10.20.2.60
try phone1  sipsak -s sip:201@10.20.2.60
try phone1  $LAB rtp 10.20.40.21 16400 10.20.2.60 16400 50
try staff1  $LAB udp 10.20.2.10 514 80 count=2                     # syslog, nobody there
try staff2  $LAB udp 10.20.2.10 161 40                             # SNMP, nobody there
sctp() { { sleep 0.5; echo one; sleep 0.4; echo two; sleep 0.4; echo three; sleep 0.5; } |
         on "$1" timeout -k 2 6 "$USRSCTP/client" "$2" 7 "$3" >>"$W/log" 2>&1 || true; }
sctp staff1 10.20.2.10 36412
sctp branch1 10.20.2.10 36413

say "the scanner"
scan() { try outside nmap -n -Pn --max-retries 0 --host-timeout 15s --min-rate 60 -e eth0 "$@"; }
scan -S 198.51.100.200 -sS --top-ports 100 10.20.2.10
scan -S 198.51.100.200 -sS --top-ports 40 10.20.2.22 10.20.2.53
scan -S 198.51.100.200 -sU -p 53,123,137,161,500,514,1194,1900,4500,5060,33434 10.20.2.10
scan -S 198.51.100.200 -sX -p 21,22,23,80 10.20.2.10
scan -S 198.51.100.200 -sY -p 7,36412,3868 10.20.2.10              # SCTP INIT
scan -S 198.51.100.200 -sO -p 2,4,41,47,50,51,89,103,132 10.20.2.10
scan -S 198.51.100.200 -sS -p 22,80,443,445 10.20.1.11
scan -sS -D 192.0.2.7,203.0.113.9,192.0.2.130,ME -p 21,23,80,443,5900 10.20.2.10
scan -6 -S 2001:db8:ffff::200 -sS -p 21,22,23,25,53,80,110,143,443,445,3389,8080 2001:db8:20:2::10
scan -6 -S 2001:db8:ffff::200 -sU -p 53,123,161,500,5353,33434 2001:db8:20:2::10
web outside --connect-timeout 1 --interface 192.0.2.66   http://10.20.2.10/
web outside --connect-timeout 1 --interface 203.0.113.99 https://10.20.2.10/
web outside --connect-timeout 1 --interface 2001:db8:bad::66 'http://[2001:db8:20:2::10]/'
try outside nping -q --tcp --flags syn -p 22  -S 10.20.1.11   -e eth0 -c 2 --delay 100ms 10.20.2.22   # spoofed
try outside nping -q --udp -g 53 -p 1234      -S 127.0.0.1    -e eth0 -c 2 --delay 100ms 10.20.2.10
try outside nping -q --udp -g 53 -p 40000     -S 192.168.7.7  -e eth0 -c 2 --delay 100ms 10.20.2.53
try outside nping -q --tcp --flags syn -p 80  -S 192.0.2.201  -e eth0 -c 3 --delay 50ms  10.20.2.10
try outside nping -q --icmp -e eth0 -c 1 --ip-options '\x83\x07\x04\x0a\x14\x02\x01\x00' 10.20.2.10  # loose source route
try outside nping -q --icmp --icmp-type timestamp -e eth0 -c 1 10.20.2.10
try staff2  nping -q --tcp --flags syn -p 80 -S 172.16.9.9 -e eth0 -c 2 --delay 100ms 198.51.100.80     # a staff host lies
sleep 1

# ---------------------------------------------------------------------------
# Stop, put in order, convert
# ---------------------------------------------------------------------------
say "stopping the capture"
kill -INT $capture 2>/dev/null || true
wait $capture 2>/dev/null || true
grep -i 'dropped' "$W/dumpcap.log" || true
(
    cd "$W"
    # dumpcap writes the ports' frames as each thread gets them: sort by time.
    reordercap raw.pcapng sorted.pcapng >/dev/null
    # A fresh section header; the five interface blocks stay.
    mergecap -F pcapng -I none -w merged.pcapng sorted.pcapng
    # A few comments go onto the section and its first and last frames, and the
    # hosts' names into a name resolution block.
    cat >hosts <<'NAMES'
10.20.1.11 staff1.office.example
10.20.2.10 www.office.example
10.20.2.22 ssh.office.example
10.20.2.53 dns.office.example
198.51.100.80 www.outside.example
2001:db8:20:1::11 staff1.office.example
2001:db8:20:2::10 www.office.example
2001:db8:ffff::80 www.outside.example
NAMES
    last=$(capinfos -c -M -T -r merged.pcapng | cut -f2)
    editcap -F pcapng --discard-capture-comment --capture-comment "a small office, seen from its router" \
        -a "1:first frame" -a "$last:last frame" merged.pcapng noted.pcapng
    python3 lab.py finish raw.pcapng noted.pcapng hosts office.pcapng
    editcap -F pcap office.pcapng office.pcap
    gzip -9 -n -c office.pcapng >office.pcapng.gz
)
cp "$W/office.pcap" "$W/office.pcapng.gz" "$out/"
[[ -z ${KEEP_LOG:-} ]] || cp "$W/log" "$KEEP_LOG"
derive
ls -l "$out"/office.*
