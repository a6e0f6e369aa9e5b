"""Each golden is what its program is translated to now: `make golden` writes them, the diff is to be read."""

import re

import pytest

from godynamo._explain.break_codes_gen import BREAK_CODES
from golden_files import FOLDER, generated, parsed, written

FILES = sorted(FOLDER.glob("*/*.txtar"))
NO_CODE = {
    "GD0003": "GODYNAMO_BISECT is read when the process starts",
}


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_translation_is_the_golden(path, capsys):
    assert generated(path) == path.read_text(), "make golden writes what it is now"


def test_files_are_read_as_they_are_written():
    text = FILES[0].read_text()
    assert written(parsed(text)) == text
    assert list(parsed(text))[:3] == ["", "src.py", "graph"]


def test_each_golden_says_what_it_shows():
    assert len(FILES) >= 60
    for path in FILES:
        comment = parsed(path.read_text())[""].strip()
        assert comment.endswith(".") and len(comment) < 120, path


def test_each_break_code_has_a_golden():
    seen = {code for path in FILES for code in re.findall(r"^GD\d{4}", parsed(path.read_text()).get("breaks", ""), re.M)}
    assert seen == set(BREAK_CODES) - set(NO_CODE)
