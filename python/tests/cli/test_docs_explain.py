"""docs/explain.md shows the real output."""

import contextlib
import io
import linecache
from pathlib import Path

from cli_support import tool
from harness.versions import as_printed

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "explain.md").read_text()


def test_the_page_shows_what_the_tool_prints(tmp_path):
    (tmp_path / "program.py").write_text(PAGE.split("```python\n")[1].split("```")[0])
    command, shown = PAGE.split("```text\n$ godynamo ")[1].split("```")[0].split("\n", 1)
    done = tool(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == as_printed(shown)


def test_the_tree_of_guards_is_what_is_printed(tmp_path, monkeypatch):
    code, shown = PAGE.split("```python\n")[2].split("```\n```\n")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "block_1.py"
    path.write_text(code)
    linecache.checkcache()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(path), "exec"), {"__name__": "guards"})
    assert out.getvalue() == shown.split("```")[0]
