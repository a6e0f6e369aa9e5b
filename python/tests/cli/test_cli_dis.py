"""godynamo dis and doctor: they embed CPython, or run it as a plain process if there is no libpython."""

import json
import os
import subprocess
import sys

import pytest
import torch

import godynamo
from cli_support import NEW_PYTHON, ROOT, environment, tool
from godynamo._tools import doctor

PROGRAM = """\
import sys
import torch

def act(x):
    return x.relu()

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x + 1)
        if y.sum() > 0:
            y = y * 2
        return act(y)

    @staticmethod
    def twice(x, k=2):
        return x * k

if __name__ == "__main__":
    print("begun", __name__, sys.argv[1:])
    torch.manual_seed(0)
    for n in (2, 3):
        Model()(torch.ones(n, 3))
    print("ended")
"""


LOAD = "LOAD_FAST_BORROW" if sys.version_info >= (3, 14) else "LOAD_FAST"
METHOD = "LOAD_ATTR" if sys.version_info >= (3, 12) else "LOAD_METHOD"  # the opcode that loads a method


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_both_listings_stand_side_by_side_and_the_program_ends_there(program):
    done = tool("dis", f"{program}:Model.forward", "--", "--epochs", "1", COLUMNS="120")
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert "begun __main__ ['--epochs', '1']" in out
    assert "ended" not in out
    assert f"-- 1 of 2: Model.forward ({program}:12)" in out
    line = out.index("y = self.linear(x + 1)")
    # the module call on the left, the resulting operation on the right
    rows = [row.partition(" |")[::2] for row in out[line : out.index("if y.sum() > 0", line)].splitlines()[1:]]
    assert any(METHOD in left and "lin" in left for left, _ in rows)
    assert any("torch._C._nn.linear" in right for _, right in rows)
    assert "GD0101" in out
    assert "-> if y.sum() > 0:" in out
    assert "___check_tensors(x, self._modules['linear']" in out
    assert "inlined: act" in out
    assert "inlined: Linear.forward" in out
    assert "return F.linear" not in out  # code of libraries is named, not listed


def test_a_function_keeps_what_it_was_optimized_with(tmp_path):
    program = tmp_path / "asked.py"
    program.write_text(
        "import godynamo\nimport torch\n"
        "@godynamo.optimize(python_ops=True)\ndef f(x):\n    y = x + 1\n    print(y.sum().item())\n    return y * 2\n"
    )
    done = tool("dis", "--json", "-", f"{program}:f", "--args", "torch.ones(3)")
    assert done.returncode == 0, done.stderr
    (translation,) = json.loads(done.stdout)["translations"]
    assert "PyObjectCall" in translation["graph"]


def test_json_has_all_of_it_and_keeps_the_programs_output_apart(program, tmp_path):
    done = tool("dis", "--json", "-", f"{program}:act")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "begun" in done.stderr
    (translation,) = told["translations"]
    assert translation["function"] == "act"
    assert [i["opname"] for b in translation["original"] for i in b["instructions"]][:3] == [
        "RESUME", LOAD, METHOD,
    ]  # fmt: skip
    assert "relu" in translation["graph"]
    out = tmp_path / "dis.json"
    assert tool("dis", f"{program}:act", "--json", out).returncode == 0  # flags may come last, as with explain
    assert json.loads(out.read_text())["translations"][0]["graph"] == translation["graph"]


def test_arguments_may_be_given_instead_of_a_call(program):
    done = tool("dis", "--args", "Model(), torch.zeros(1, 3)", f"{program}:Model.forward")
    assert done.returncode == 0, done.stderr
    assert "begun" not in done.stdout  # the module is not run as __main__
    assert "y = self.linear(x + 1)" in done.stdout
    done = tool("dis", "--args", "torch.ones(2), k=5", f"{program}:Model.twice")
    assert done.returncode == 0, done.stderr
    assert "%mul" in done.stdout


def test_a_later_call_and_a_backend_are_asked_for(program):
    done = tool("dis", "--call", "2", "--backend", "aot_eager", f"{program}:act")
    assert done.returncode == 0, done.stderr
    assert "begun" in done.stdout
    assert "%relu" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "dis needs a function"),
        (["--", "program.py:act"], "dis needs a function"),
        (["program.py:act", "--epochs", "1"], "flags of the script follow --"),
        (["program.py:act", "1", "--call", "2"], "arguments of the script follow --: godynamo dis program.py:act -- 1"),
        (["program.py"], "names no function: SCRIPT:FUNCTION"),
        (["nothing.py:f"], "there is no file nothing.py"),
        (["program.py:Modle.forward"], "has no function Modle.forward; did you mean Model.forward"),
        (["--call", "0", "program.py:act"], "--call counts from 1"),
        (["--call", "9", "program.py:act"], "act was called only 2 times while program.py ran: ask for --call 2"),
        (["program.py:Model.twice"], "Model.twice was never called while program.py ran"),
        (["--args", "1 +", "program.py:act"], "is not the inside of a call's parentheses"),
    ],
)
def test_bad_use_is_one_line_and_code_2(program, arguments, text):
    done = tool("dis", *arguments, cwd=program.parent)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_program_that_raises_first_keeps_its_traceback(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text("import torch\ndef f(x):\n    return x\n1 / 0\n")
    done = tool("dis", f"{path}:f")
    plain = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (1, plain.stderr)


def test_doctor_finds_this_build_well(tmp_path):
    out = tmp_path / "doctor.json"
    done = tool("doctor", "--json", out, **NEW_PYTHON)
    told = json.loads(out.read_text())
    states = {f["name"]: f["state"] for f in told["findings"]}
    assert [n for n, s in states.items() if s == "wrong"] == [], done.stdout
    assert {"python", "tensor layout", "torch state", "translation", "hook", "fork", "speed"} <= set(states)
    assert (done.returncode, told["ok"]) == (0, True)
    assert f"CPython {sys.version.split()[0]} at {sys.executable}" in done.stdout
    assert done.stdout.endswith("all is well\n")
    assert done.stderr == ""
    assert "a child serves what is cached and translates what is new" in done.stdout


def test_doctor_says_what_is_off_and_ends_with_1():
    done = tool("doctor", GODYNAMO_DISABLE="1")
    assert done.returncode == 1
    assert "wrong  settings" in done.stdout
    assert "unset GODYNAMO_DISABLE" in done.stdout
    done = tool("doctor", "--plain", GODYNAMO_GOLIB="/no/library.so")
    assert done.returncode == 1
    assert "wrong  translation" in done.stdout


def test_doctor_looks_at_the_folder_of_translations(tmp_path):
    def finding(folder):
        with godynamo.config.patch(cache_dir=str(folder)):
            found = doctor.stored()
        return found.state, found.text

    folder = tmp_path / "new" / "translations"
    empty = f"0 translations, 0.0 MiB, in {folder}"
    assert finding(folder) == ("ok", empty)
    with godynamo.config.patch(cache_dir=str(folder)):
        godynamo.optimize(lambda x: x + 1)(torch.ones(1))
    assert finding(folder) == ("ok", empty.replace("0", "1", 1))
    folder.chmod(0o722)
    assert finding(folder) == ("note", f"{folder}: it is not used, since other users own or may write it")
    assert finding("/dev/null/translations") == ("note", "/dev/null/translations: it cannot be written")
    with godynamo.config.patch(cache_dir=""):
        assert doctor.stored() == doctor.Finding("stored", "ok", "translations are not stored for other processes")


def test_a_python_without_libpython_is_said_in_one_line_and_used_as_it_is(tmp_path, monkeypatch):
    # An interpreter without a shared libpython; the tool queries its sysconfig with -c.
    bare = tmp_path / "python"
    hide = "import sysconfig; sysconfig.get_config_var = lambda n: ''; sys.base_prefix = '/nowhere'"
    bare.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -c ]; then exec {sys.executable} -c "import sys; {hide}; exec(sys.argv[1])" "$2"; fi\n'
        f'exec {sys.executable} "$@"\n'
    )
    bare.chmod(0o755)
    done = tool("--python", bare, "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"has no shared libpython{version} to embed" in done.stderr
    assert done.stdout.endswith("all is well\n")


def test_the_launcher_links_neither_python_nor_go():
    launcher = ROOT / "python" / "godynamo" / "godynamo-embed"
    linked = subprocess.run(["readelf", "-d", str(launcher)], capture_output=True, text=True, check=True).stdout
    assert "libpython" not in linked
    assert "godynamo.so" not in linked
    done = subprocess.run([str(launcher), "/no/libpython.so", "x", "y"], capture_output=True, text=True)
    assert done.returncode == 127
    assert "/no/libpython.so" in done.stderr
    assert os.access(launcher, os.X_OK)


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_names_need_not_be_ascii(tmp_path, locale):
    (tmp_path / "prögramm 'ü'.py").write_text("import torch\ndef größe(x): return x + 1\ngröße(torch.ones(2))\n")
    done = tool("dis", "prögramm 'ü'.py:größe", "--", "ä", cwd=tmp_path, LC_ALL=locale)
    assert done.returncode == 0, done.stderr
    assert "-- 1 of 1: größe" in done.stdout
