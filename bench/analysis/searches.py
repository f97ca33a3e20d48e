"""Searches for dead and redundant rules with classyard's Python package, z3, BDDs and aerleon.

A rule is a pair: the first and last value of each field, and whether it permits. Better rules
come first, and the last rule matches every header. A search returns numbers of rules; a search
that is timed returns CPU seconds before them, without the time to build expressions, diagrams or
terms.
"""
import ipaddress, itertools, time

FIELDS = {"src": 32, "dst": 32, "sport": 16, "dport": 16, "proto": 8}
WIDTHS = list(FIELDS.values())
ALL = [(0, 2**width - 1) for width in WIDTHS]
ORDERS = [(0, 1, 2, 3, 4), (4, 1, 0, 3, 2), (4, 3, 2, 1, 0)]  # of the fields in a BDD
ENCODINGS = ["push", "assume"]


def overlaps(first, second):
    return all(a <= d and c <= b for (a, b), (c, d) in zip(first, second))


def better(rules):
    """Returns for each rule the better rules that overlap it."""
    return [[j for j in range(i) if overlaps(rules[j][0], rules[i][0])] for i in range(len(rules))]


# classyard


def dead_classyard(text):
    """Returns the CPU seconds and the dead rules of a policy in classyard's own format."""
    import classyard
    policy = classyard.Policy.parse(text)
    begin = time.process_time()
    report = classyard.lint(policy, redundant=False)
    seconds = time.process_time() - begin
    return seconds, sorted(finding.rule.id for finding in report.findings)


def answered(text, headers):
    """Returns the CPU seconds and the number of answers of a query about headers."""
    import classyard
    policy = classyard.Policy.parse(text)
    begin = time.process_time()
    report = classyard.query(policy, headers)
    return time.process_time() - begin, len(report.answers)


# z3


def expressions(rules):
    """Returns the match of each rule as an expression of bit vectors."""
    import z3
    fields = [z3.BitVec(name, width) for name, width in FIELDS.items()]
    atoms = {}

    def atom(field, low, high):
        size = high - low + 1
        if size & (size - 1) == 0 and low % size == 0:
            bits = size.bit_length() - 1
            return z3.Extract(WIDTHS[field] - 1, bits, fields[field]) == (low >> bits)
        return z3.And(z3.UGE(fields[field], low), z3.ULE(fields[field], high))

    def expression(match):
        keys = [(field, *ends) for field, ends in enumerate(match) if ends != ALL[field]]
        return z3.And([atoms.setdefault(key, atom(*key)) for key in keys])
    return [expression(match) for match, _ in rules]


def dead_z3(rules, encoding):
    """Returns the CPU seconds and the dead rules. One solver for all rules: `push` adds the match of a rule and
    the negations of better rules; `assume` defines a variable for each match and checks assumptions."""
    import z3
    matches, lists = expressions(rules), better(rules)
    if encoding == "assume":
        solver, named = z3.SolverFor("QF_FD"), [z3.Bool(f"rule{i}") for i in range(len(rules))]
        definitions = [name == match for name, match in zip(named, matches)]
        negated = [z3.Not(name) for name in named]
    else:
        solver, negated = z3.Solver(), [z3.Not(match) for match in matches]
    found, begin = [], time.process_time()
    if encoding == "assume":
        solver.add(definitions)
    for i, match in enumerate(matches):
        if encoding == "assume":
            answer = solver.check(named[i], *[negated[j] for j in lists[i]])
        else:
            solver.push()
            solver.add(match, *[negated[j] for j in lists[i]])
            answer = solver.check()
            solver.pop()
        if answer == z3.unsat:
            found.append(i)
    return time.process_time() - begin, found


def redundant_z3(rules):
    """Returns rules that decide packets and whose removal changes no action."""
    import z3
    matches, found = expressions(rules), []
    for i, (match, permits) in enumerate(rules):
        decides = [matches[i]] + [z3.Not(matches[j]) for j in range(i) if overlaps(rules[j][0], match)]
        differs = z3.BoolVal(True)
        for j in range(len(rules) - 1, i, -1):
            if overlaps(rules[j][0], match):
                differs = z3.If(matches[j], z3.BoolVal(rules[j][1] != permits), differs)
        solver = z3.Solver()
        solver.add(*decides)
        if solver.check() == z3.sat:
            solver.add(differs)
            if solver.check() == z3.unsat:
                found.append(i)
    return found


# BDD


class Diagrams:
    """Matches of rules as BDDs over the bits of a header."""

    def __init__(self, order):
        from oxidd.bdd import BDDManager
        self.manager = BDDManager(1 << 25, 1 << 20, 1)
        self.manager.add_vars(sum(WIDTHS))
        starts = itertools.accumulate([WIDTHS[field] for field in order], initial=0)
        self.order, self.start, self.memo = order, dict(zip(order, starts)), {}

    def range(self, field, low, high):
        if (field, low, high) not in self.memo:
            above = below = self.manager.true()
            for bit in range(WIDTHS[field]):
                variable = self.start[field] + WIDTHS[field] - 1 - bit
                one, zero = self.manager.var(variable), self.manager.not_var(variable)
                above = one & above if low >> bit & 1 else one | above
                below = zero | below if high >> bit & 1 else zero & below
            self.memo[field, low, high] = above & below
        return self.memo[field, low, high]

    def match(self, rule):
        result = self.manager.true()
        for field in reversed(self.order):
            result = self.range(field, *rule[0][field]) & result
        return result

    def permits(self, rules):
        """Returns the headers that the rules permit."""
        result = self.manager.false()
        for rule in reversed(rules):
            match = self.match(rule)
            result = result | match if rule[1] else result & ~match
        return result


def dead_bdd(rules, order):
    """Returns the CPU seconds and the dead rules: those that the union of better rules contains."""
    diagrams = Diagrams(order)
    matches = [diagrams.match(rule) for rule in rules]
    found, begin = [], time.process_time()
    union = diagrams.manager.false()
    for i, match in enumerate(matches):
        larger = union | match
        if larger == union:
            found.append(i)
        union = larger
    return time.process_time() - begin, found


def redundant_bdd(rules):
    diagrams = Diagrams(ORDERS[1])
    empty, found = diagrams.manager.false(), []
    worse, union = {True: empty, False: empty}, empty
    matches, decided = [diagrams.match(rule) for rule in rules], []
    for match in matches:
        decided.append(match & ~union)
        union = union | match
    for i in reversed(range(len(rules))):
        action = rules[i][1]
        if decided[i] != empty and decided[i] & ~worse[action] == empty:
            found.append(i)
        worse = {action: worse[action] | matches[i], not action: worse[not action] & ~matches[i]}
    return sorted(found)


def compared_bdd(first, second):
    """Returns true if two lists permit the same headers, and the share of the headers that differ."""
    diagrams = Diagrams(ORDERS[1])
    differ = diagrams.permits(first) ^ diagrams.permits(second)
    return not differ.satisfiable(), differ.sat_count(sum(WIDTHS)) / 2 ** sum(WIDTHS)


# aerleon


def aerleon_terms(rules):
    """Returns the terms of a policy with these rules, as aerleon's parser makes them."""
    from aerleon.lib import naming, policy, policy_builder
    numbers = {1: "icmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 51: "ah"}
    networks, services, terms = {}, {}, []
    for i, (match, permits) in enumerate(rules):
        term = {"name": f"t{i}", "action": "accept" if permits else "deny"}
        protocols = [match[4][0]] if match[4] != ALL[4] else []
        if match[2:4] != ALL[2:4]:
            protocols = protocols or [6, 17]
        if protocols:
            term["protocol"] = [numbers.get(number, str(number)) for number in protocols]
        for key, (low, high) in zip(("source-address", "destination-address"), match):
            length = 32 - (high - low + 1).bit_length() + 1
            networks[f"N{low}_{length}"] = {"values": [{"address": f"{ipaddress.ip_address(low)}/{length}"}]}
            if length:
                term[key] = f"N{low}_{length}"
        for key, (low, high) in zip(("source-port", "destination-port"), match[2:4]):
            if (low, high) != ALL[2]:
                services[f"S{low}_{high}"] = [{"protocol": name, "port": f"{low}-{high}"} for name in ("tcp", "udp")]
                term[key] = f"S{low}_{high}"
        terms.append(term)
    definitions = naming.Naming()
    definitions.ParseDefinitionsObject({"networks": networks, "services": services}, "definitions")
    source = {"filename": "rules", "filters": [{"header": {"targets": {"juniper": "LIST inet"}}, "terms": terms}]}
    return policy.FromBuilder(policy_builder.PolicyBuilder(source, definitions, False, False))


def dead_aerleon(rules):
    """Returns the CPU seconds and the rules that one better rule contains, as aerleon's shade check finds them."""
    from aerleon.lib import policy
    parsed, found = aerleon_terms(rules), []

    class Warnings:
        warning = staticmethod(lambda text, *_: found.append(int(text.split()[0][1:])))
    policy.logging = Warnings
    begin = time.process_time()
    parsed._DetectShading(parsed.filters[0][1])
    return time.process_time() - begin, sorted(set(found))
