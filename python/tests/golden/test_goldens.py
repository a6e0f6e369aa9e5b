"""Each golden file is its program's current translation: `make golden` writes them; review the diff."""

import pytest

from golden_files import FOLDER, generated, parsed, written

FILES = sorted(FOLDER.glob("*/*.txtar"))


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
