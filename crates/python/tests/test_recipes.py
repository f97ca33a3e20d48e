"""The recipes of docs/recipes.md: each block of Python prints the text below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

RECIPES = Path(__file__).parents[3] / "docs" / "recipes.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_recipes_print_what_the_document_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(RECIPES.parents[1])
    blocks = BLOCK.findall(RECIPES.read_text())
    names: dict[str, Any] = {}
    shown = 0
    for place, (language, text) in enumerate(blocks):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, f"{RECIPES.name}, block {place}", "exec"), names)
            follower = blocks[place + 1] if place + 1 < len(blocks) else ("python", "")
            expected = follower[1] if follower[0] == "text" else ""
            assert printed.getvalue() == expected, text
            shown += expected != ""
    assert shown >= 8 and {language for language, _ in blocks} == {"python", "text"}
