"""The examples in the documentation of the package, and the names that it exports."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import classyard


def test_examples_of_docstrings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner()
    with_examples = set()
    tests = finder.find(classyard, "classyard", globs={})
    # The finder leaves out functions and static methods that are not written in Python.
    functions: list[Callable[..., Any]] = [classyard.Policy.parse, classyard.Policy.from_rules]
    functions += [classyard.lint, classyard.diff, classyard.query]
    for function in functions:
        tests += finder.find(function, f"classyard.{function.__qualname__}", module=False, globs={})
    for test in tests:
        if test.examples:
            with_examples.add(test.name)
            runner.run(test)
    assert runner.summarize().failed == 0
    expected = {"", ".Capture", ".Policy", ".Policy.parse", ".Policy.from_rules", ".Result", ".Table"}
    expected |= {".Table." + name for name in ("classify", "classify_one", "explain", "apply")}
    expected |= {".lint", ".diff", ".query"}
    assert {"classyard" + name for name in expected} <= with_examples


def test_examples_of_the_readme() -> None:
    readme = Path(__file__).parent.parent / "README.md"
    failed, attempted = doctest.testfile(str(readme), module_relative=False)
    assert failed == 0 and attempted >= 3


def test_everything_public_has_documentation() -> None:
    for name in classyard.__all__:
        value = getattr(classyard, name)
        if callable(value):
            assert value.__doc__, name
        if isinstance(value, type):
            public = [member for member in vars(value) if not member.startswith("_")]
            for member in public:
                assert getattr(value, member).__doc__, f"{name}.{member}"
