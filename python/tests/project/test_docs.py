"""Every code block of the documents runs, and prints the output shown below it.

``python`` blocks of a page run in order in one process; a block without a language directly below one is its output. In
``console`` blocks, lines after ``$`` are commands, in a folder that contains examples/ and the page's ``python`` blocks
as block_0.py, block_1.py, ...; the lines below are their output, both streams. ``...`` in an output matches anything.
``text`` blocks are not checked. The pages show the instructions of Python 3.11; on another version, lines that show
instructions and their source are not compared.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import project_support
from harness import forked
from harness.versions import as_printed

ROOT = Path(project_support.ROOT)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"", "python", "console", "text", "go", "c"}  # the last two are examples of code style
#: commands on a page that its test does not run, because other tests cover them
NOT_RUN = ("make ", "pip install ", "git clone ", "eval ")
WHOLE_RUNS = ("godynamo bench --quick",)  # takes minutes
#: looks like a path in the repository; leading folders may be omitted
PATH = re.compile(r"(?:[\w.-]+/)*[\w.-]+\.(?:go|c|h|py|toml|table|sh|json|txtar)")
#: a line that shows an instruction, two beside each other, or the source of those that follow
INSTRUCTION = re.compile(r"^.*(\s\|\s|\b\d+ [A-Z]{3}|\b[A-Z]+_[A-Z_]+\b).*\n|^ *\d+  \S.*\n", re.MULTILINE)
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
MARK = "---- block {} of the page ----"


@dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    output: str = ""  # of the previous block


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found: list[Block] = []
    end = -1
    for match in FENCE.finditer(text):
        language, body = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if not language and found and found[-1].language == "python" and not text[end : match.start()].strip():
            found[-1].output = body
        else:
            found.append(Block(page.name, line, language, body))
        end = match.end()
    return found


MECHANISMS = sorted((ROOT / "docs" / "mechanisms").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *MECHANISMS]
WITH_PYTHON = [p for p in PAGES if any(b.language == "python" for b in blocks(p))]
WITH_COMMANDS = [p for p in PAGES if any(b.language == "console" for b in blocks(p))]


def same(want: str, got: str) -> bool:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if VERSION != "3.11":
        want = as_printed(want)
        want, got = re.sub(r"\s*\.\.\.\s*", "...", INSTRUCTION.sub("", want)), INSTRUCTION.sub("", got)
    return doctest.OutputChecker().check_output(want, got, flags)


@pytest.fixture
def place(tmp_path):
    """Return (a folder to work in, the environment with godynamo and python on PATH)."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = tmp_path / ".bin"
    programs.mkdir()
    (programs / "godynamo").symlink_to(ROOT / "build" / "bin" / "godynamo")
    (programs / "python").symlink_to(forked.python())
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("GODYNAMO_")},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "GODYNAMO_CACHE_DIR": "0",
        "GODYNAMO_PYTHON": forked.python(),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "100",
    }
    return tmp_path, environment


def write_programs(page: Path, folder: Path) -> list[Block]:
    """Write a file for each python block, since explanations name its lines; return the blocks."""
    found = [b for b in blocks(page) if b.language == "python"]
    for i, block in enumerate(found):
        (folder / f"block_{i}.py").write_text(block.text)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_blocks_say_what_they_are(page):
    unknown = {(b.line, b.language) for b in blocks(page)} - {
        (b.line, b.language) for b in blocks(page) if b.language in LANGUAGES
    }
    assert not unknown
    assert page.read_text().count("\n```") % 2 == 0


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda p: p.name)
def test_python_blocks_run_and_print_what_the_page_says(page, place):
    folder, environment = place
    found = write_programs(page, folder)
    program = folder / "page.py"
    program.write_text(
        "import sys\n"
        "namespace = {'__name__': '__main__'}\n"
        f"for i in range({len(found)}):\n"
        f"    print({MARK!r}.format(i), flush=True)\n"
        "    file = f'block_{i}.py'\n"
        "    exec(compile(open(file).read(), file, 'exec'), namespace)\n"
        "    sys.stdout.flush()\n"
    )
    done = subprocess.run(
        [forked.python(), str(program)], cwd=folder, env=environment, capture_output=True, text=True, timeout=250
    )
    printed = re.split(r"^" + re.escape(MARK).replace(r"\{\}", r"\d+") + r"\n", done.stdout, flags=re.MULTILINE)[1:]
    assert done.returncode == 0, f"{page.name}:{found[max(len(printed) - 1, 0)].line}:\n{done.stderr}"
    for block, got in zip(found, printed, strict=True):
        if block.output:
            assert same(block.output, got), f"{page.name}:{block.line} prints\n{got}"


def commands(block: Block) -> list[tuple[str, str]]:
    """Return (command, output) for each command of a console block."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.rstrip("\n"), "")
        else:
            assert found, f"{block.page}:{block.line}: an output without a command"
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda p: p.name)
def test_commands_run_and_print_what_the_page_says(page, place):
    folder, environment = place
    write_programs(page, folder)
    targets = subprocess.run(["make", "-qp"], cwd=ROOT, capture_output=True, text=True).stdout
    for block in blocks(page):
        for command, output in commands(block) if block.language == "console" else ():
            where = f"{page.name}:{block.line}: {command}"
            if command.startswith(NOT_RUN) or command in WHOLE_RUNS:
                if command.startswith("make "):
                    assert re.search(rf"^{command.split()[1]}:", targets, re.MULTILINE), where
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=280,
            )  # fmt: skip
            assert done.returncode == 0, f"{where}\n{done.stdout}"
            if output:
                assert same(output, done.stdout), f"{where} prints\n{done.stdout}"


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ARGUMENTS = {"train.py": ["--steps", "12", "--compare"]}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_examples_run_by_python_and_by_the_tool(example, place):
    folder, environment = place
    arguments = [f"examples/{example.name}", *ARGUMENTS.get(example.name, [])]
    for start in ([forked.python()], ["godynamo", "run"]):
        done = subprocess.run(
            [*start, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=250
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_links_of_the_documents_lead_somewhere():
    wrong = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", FENCE.sub("", page.read_text())):
            if not re.match(r"\w+:", target) and not (page.parent / target).exists():
                wrong.append(f"{page.name}: {target}")
    assert wrong == []


def test_documents_name_every_page_of_docs():
    text = (ROOT / "README.md").read_text()
    assert [p.name for p in PAGES[1:] if p not in MECHANISMS and f"docs/{p.name}" not in text] == []
    map_of_the_code = (ROOT / "docs" / "architecture.md").read_text()
    assert [p.name for p in MECHANISMS if f"](mechanisms/{p.name})" not in map_of_the_code] == []


def test_pages_on_the_code_name_files_that_exist():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    files = [f"/{name}" for name in listed.stdout.splitlines()]
    wrong = []
    for page in [ROOT / "docs" / "architecture.md", ROOT / "docs" / "style.md", *MECHANISMS]:
        text = FENCE.sub("", page.read_text()).partition("## Examples to follow")[0]  # these name other projects' files
        for name in re.findall(r"`([^`\s]+)`", text):
            if PATH.fullmatch(name) and not any(f.endswith(f"/{name}") for f in files):
                wrong.append(f"{page.name}: {name}")
    assert wrong == []
