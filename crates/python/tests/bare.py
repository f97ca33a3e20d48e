"""Uses the package in an environment that has no other package.

`check` runs this with every Python that it finds; `pytest` does not collect it.
"""

import importlib.util
import pathlib
import pickle
import sys
import tempfile
from typing import Any

import classyard

for name in ("numpy", "pyarrow", "polars", "pandas", "duckdb"):
    assert importlib.util.find_spec(name) is None, f"{name} is installed"

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "office.rules"
    path.write_text(
        "schema dual-5tuple\n"
        "permit proto=tcp dst=10.1.0.0/16 dport=443\n"
        "permit proto=udp src=2001:db8::/32 dport=53\n"
        "deny dst=10.1.2.0/24 dport=443 proto=tcp\n"
        "deny any\n"
    )
    policy = classyard.Policy.read(path)
    path.write_text("schema ipv4-5tuple\npermit dport=x\n")
    try:
        classyard.Policy.read(path)
    except classyard.ParseError as error:
        assert "2:14" in str(error), error
    else:
        raise AssertionError("a bad rule was read")

kinds = [finding.kind for finding in classyard.lint(policy).findings]
assert kinds[0] == "dead", kinds
table = classyard.Table(pickle.loads(pickle.dumps(policy)))
flows: dict[str, Any] = {
    "src": ["192.0.2.1", "2001:db8::1", "192.0.2.1", None],
    "dst": ["10.1.2.3", "2001:db8::2", "10.9.9.9", "10.1.2.3"],
    "dport": [443, 53, 443, 443],
    "proto": ["tcp", "udp", "tcp", "tcp"],
    "sport": [1, 2, 3, 4],
}
assert table.classify(**flows).actions() == ["permit", "permit", "deny", None]
table.apply(insert=["drop dst=10.1.2.3 priority=10"])
assert table.classify(**flows).actions() == ["drop", "permit", "deny", None]
verdict = table.classify_one(
    src="192.0.2.1", dst="10.1.2.3", sport=1, dport=443, proto="tcp"
)
assert verdict.action == "drop"

version = ".".join(str(number) for number in sys.version_info[:3])
print(f"Python {version}, alone: classyard {classyard.__version__} works")
