"""One policy that aerleon writes for four platforms, read by classyard and compared with diff.

Each file becomes rules in classyard's own format, and so does the policy itself, written by this
module. Lists that differ are compared again with rules in front that decide the packets of a known
difference between platforms, for example later fragments. The lists must then be equal, and the
known differences that are needed for this are named.
"""
import ipaddress, itertools, json, logging

NETWORKS = {
    "INTERNAL": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "2001:db8:a::/48", "fd00::/8"],
    "ADMIN": ["10.1.2.0/24", "10.1.3.0/25", "198.51.100.7/32", "2001:db8:a:1::/64"],
    "GUESTS": ["10.99.0.0/16", "2001:db8:a:99::/64"],
    "BOGONS": ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "::1/128", "2001:db8:dead::/48"],
    "SERVERS": ["192.0.2.0/25", "203.0.113.64/26", "2001:db8:1::/64"],
    "WEB": ["192.0.2.10/32", "192.0.2.11/32", "203.0.113.80/32", "2001:db8:1::10/128", "2001:db8:1::11/128"],
    "MAIL": ["192.0.2.25/32", "2001:db8:1::25/128"],
    "DNS": ["192.0.2.53/32", "203.0.113.99/32", "2001:db8:1::53/128"],
    "PEERS": ["198.51.100.1/32", "198.51.100.2/32", "2001:db8:ff::1/128"],
}
SERVICES = {
    "HTTP": ["80/tcp"], "HTTPS": ["443/tcp", "443/udp"], "SMTP": ["25/tcp"], "SUBMISSION": ["465/tcp", "587/tcp"],
    "IMAPS": ["993/tcp"], "DNS": ["53/tcp", "53/udp"], "NTP": ["123/udp"], "SSH": ["22/tcp"],
    "LDAP": ["389/tcp", "636/tcp"], "APPS": ["8000-8099/tcp", "9443/tcp"], "SNMP": ["161-162/udp"],
    "IKE": ["500/udp", "4500/udp"], "BGP": ["179/tcp"], "TRACEROUTE": ["33434-33534/udp"],
    "HIGH": ["1024-65535/tcp", "1024-65535/udp"], "RPC": ["135/tcp", "137-139/udp", "445/tcp"],
    "SIP": ["5060-5061/tcp", "5060-5061/udp"], "UPLOAD": ["7777/tcp"],
}
ICMP = {
    4: {"echo-reply": 0, "unreachable": 3, "source-quench": 4, "redirect": 5, "echo-request": 8, "time-exceeded": 11},
    6: {"destination-unreachable": 1, "packet-too-big": 2, "time-exceeded": 3, "echo-request": 128, "echo-reply": 129},
}
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "gre": 47, "esp": 50, "ah": 51, "icmpv6": 58, "ospf": 89}
# Known differences, and rules that decide their packets.
KNOWN = {
    "later fragments": ["deny fragment=later-3"],
    "states of connections": ["deny state=1-7"],
    "TCP with ACK or RST": ["deny proto=tcp tcp_flags=0x10&0x10", "deny proto=tcp tcp_flags=0x4&0x4"],
    "SYN without ACK on port 7777": ["deny proto=tcp dport=7777 tcp_flags=0x2&0x12"],
}
LOGINS = "proto=tcp dport=22 state=new fragment=whole tcp_flags=0x2&0x16"


def term(name, action, protocols="", source="", destination="", sport="", dport="", **more):
    """Returns a term of the policy, with the keys of aerleon."""
    values = {"protocol": protocols, "source-address": source, "destination-address": destination,
              "source-port": sport, "destination-port": dport, "action": action, "name": name}
    return {key: value for key, value in (values | more).items() if value}


def policy(family):
    """Returns the terms of the policy for an IP version."""
    icmp = "icmp" if family == 4 else "icmpv6"
    errors = "unreachable time-exceeded" if family == 4 else "destination-unreachable packet-too-big time-exceeded"
    refused = [term("redirects", "deny", icmp, **{"icmp-type": "redirect source-quench"})] if family == 4 else []
    return [
        term("replies", "accept", "tcp", option="tcp-established"),
        term("bogons", "deny", source="BOGONS"),
        term("uploads", "accept", "tcp", "INTERNAL", "SERVERS", dport="UPLOAD",
             **{"option": "tcp-initial", "platform-exclude": "cisco nftables"}),
        term("web", "accept", "tcp", destination="WEB", dport="HTTP HTTPS"),
        term("quic", "accept", "udp", destination="WEB", sport="HIGH", dport="HTTPS"),
        term("mail", "accept", "tcp", destination="MAIL", dport="SMTP"),
        term("submission", "accept", "tcp", "INTERNAL", "MAIL", dport="SUBMISSION IMAPS"),
        term("guests-dns", "accept", "udp tcp", "GUESTS", "DNS", dport="DNS"),
        term("guests", "deny", source="GUESTS", destination="SERVERS"),
        term("dns", "accept", "udp tcp", destination="DNS", sport="HIGH DNS", dport="DNS"),
        term("dns-answers", "accept", "udp", "DNS", "INTERNAL", sport="DNS", dport="HIGH"),
        term("ntp", "accept", "udp", "INTERNAL", "SERVERS", "NTP HIGH", "NTP"),
        term("ssh-admin", "accept", "tcp", "ADMIN", "SERVERS", dport="SSH"),
        term("ssh-others", "deny", "tcp", destination="SERVERS", dport="SSH"),
        term("ldap", "accept", "tcp", "INTERNAL", "SERVERS", "HIGH", "LDAP"),
        term("apps", "accept", "tcp", "INTERNAL PEERS", "SERVERS WEB", dport="APPS"),
        term("snmp", "accept", "udp", "ADMIN", "SERVERS", dport="SNMP"),
        term("rpc-tcp", "deny", "tcp", destination="SERVERS", dport="RPC"),
        term("rpc-udp", "deny", "udp", destination="SERVERS", dport="RPC"),
        term("ping", "accept", icmp, destination="SERVERS", **{"icmp-type": "echo-request echo-reply"}),
        *refused,
        term("icmp-errors", "accept", icmp, **{"icmp-type": errors}),
        term("tunnels", "accept", "gre", "PEERS", "SERVERS"),
        term("ipsec", "accept", "esp ah", "PEERS"),
        term("ike", "accept", "udp", "PEERS", sport="IKE", dport="IKE"),
        term("bgp-in", "accept", "tcp", "PEERS", "PEERS", "HIGH", "BGP"),
        term("bgp-out", "accept", "tcp", "PEERS", "PEERS", "BGP", "HIGH"),
        term("ospf", "accept", "ospf", "PEERS"),
        term("sip", "accept", "udp tcp", "INTERNAL", "PEERS", dport="SIP", **{"source-exclude": "GUESTS"}),
        term("traceroute", "accept", "udp", destination="SERVERS", dport="TRACEROUTE"),
        term("rest", "deny"),
    ]


def targets(family):
    """Returns the target of aerleon and the name of the list for each platform."""
    inet = "inet" if family == 4 else "inet6"
    return {"cisco": ("cisco", "EDGE extended" if family == 4 else "EDGE inet6", "EDGE"),
            "juniper": ("juniper", f"EDGE {inet}", "EDGE"),
            "iptables": ("speedway", f"INPUT DROP {inet}", "INPUT"),
            "nftables": ("nftables", f"{inet} INPUT", "root0")}


def definitions():
    from aerleon.lib import naming
    networks = {name: {"values": [{"address": address} for address in values]} for name, values in NETWORKS.items()}
    service = lambda value: dict(zip(("port", "protocol"), value.split("/")))
    services = {name: list(map(service, values)) for name, values in SERVICES.items()}
    result = naming.Naming()
    result.ParseDefinitionsObject({"networks": networks, "services": services}, "definitions")
    return result


def generated(family, platform):
    """Returns the text that aerleon writes for a platform."""
    from aerleon import api
    logging.disable(logging.WARNING)  # aerleon says that nftables needs no terms for replies
    target, options, _ = targets(family)[platform]
    source = {"filename": "edge", "filters": [{"header": {"targets": {target: options}}, "terms": policy(family)}]}
    text, = api.Generate([source], definitions()).values()
    return text


def addresses(item, key, family):
    """Returns the networks of a term, without the excluded ones."""
    listed = lambda key: [ipaddress.ip_network(text) for word in item.get(key, "").split() for text in NETWORKS[word]]
    networks = [network for network in listed(f"{key}-address") if network.version == family]
    for hole in listed(f"{key}-exclude"):
        inside = lambda network: hole.version == family and hole.subnet_of(network)
        split = lambda network: network.address_exclude(hole) if inside(network) else [network]
        networks = [part for network in networks for part in split(network)]
    return networks


def own(family):
    """Returns the policy in classyard's own format, without aerleon."""
    flags = {"tcp-established": ["0x10&0x10", "0x4&0x4"], "tcp-initial": ["0x2&0x12"]}
    lines = ["schema acl"]
    for item in policy(family):
        words = lambda key: item.get(key, "").split()
        action = "permit" if item["action"] == "accept" else "deny"
        for protocol in words("protocol") or [None]:
            choices = [[f"family=ipv{family} proto={PROTOCOLS[protocol]}" if protocol else f"family=ipv{family}"]]
            for name, key in (("src", "source"), ("dst", "destination")):
                networks = [f"{name}={network}" for network in addresses(item, key, family)]
                choices.append(networks if words(f"{key}-address") else [""])
            for name, key in (("sport", "source-port"), ("dport", "destination-port")):
                pairs = [value.split("/") for word in words(key) for value in SERVICES[word]]
                ports = [f"{name}={port}" for port, transport in pairs if transport == protocol]
                choices.append(ports if words(key) else [""])
            choices.append([f"icmp_type={ICMP[family][word]}" for word in words("icmp-type")] or [""])
            choices.append([f"tcp_flags={value}" for word in words("option") for value in flags[word]] or [""])
            lines += [" ".join([action, *chosen]) for chosen in itertools.product(*choices)]
    return "\n".join(lines) + "\n"


def compare(call, program, folder, family, problem):
    """Prints two tables for an IP version."""
    lists = {"policy": own(family)}
    print(f"| IPv{family} | lines | statements | dead | redundant | not modelled | share of logins permitted |\n"
          "|---|---|---|---|---|---|---|")
    logins = set()
    for platform, (_, _, name) in targets(family).items():
        source, rules = folder / f"edge.{platform}", folder / f"{platform}.rules"
        source.write_text(generated(family, platform))
        call(program, "convert", source, rules, "--to", "rules", "--list", name)
        report = json.loads(call(program, "lint", source, "--list", name, "--format", "json")[1])["files"][0]
        query = ["query", source, "--list", name, "-m", LOGINS, "--action", "permit", "--format", "json"]
        permitted = f"{sum(answer['share'] for answer in json.loads(call(program, *query)[1])['answers']):.4g}"
        logins.add(permitted)
        lists[platform] = rules.read_text()
        keys = ["rules", "dead", "redundant", "with_conditions"]
        cells = [len(source.read_text().splitlines()), *map(report.get, keys), permitted]
        print(f"| {platform} | {' | '.join(map(str, cells))} |")

    if len(logins) > 1:
        problem(f"IPv{family}: query: the platforms permit different shares of logins: {sorted(logins)}")

    def differences(first, second, known):
        files = [folder / "first.rules", folder / "second.rules"]
        for file, text in zip(files, (first, second)):
            head, _, body = text.partition("\n")
            file.write_text("\n".join([head, *(line for name in known for line in KNOWN[name]), body]))
        report = json.loads(call(program, "diff", *files, "--format", "json")[1])
        return None if report["equivalent"] is None else report["differences"]

    print(f"\n| IPv{family} | differences | equal except for |\n|---|---|---|")
    for first, second in itertools.combinations(lists, 2):
        pair = [lists[first], lists[second]]
        count, needed = len(differences(*pair, [])), list(KNOWN)
        left = differences(*pair, needed)
        if left or left is None:
            problem(f"IPv{family}, {first} and {second}: {json.dumps(left and left[0])}")
            continue
        for name in KNOWN:
            fewer = [other for other in needed if other != name]
            needed = fewer if differences(*pair, fewer) == [] else needed
        print(f"| {first}, {second} | {count} | {', '.join(needed) or 'nothing'} |", flush=True)
    print()
