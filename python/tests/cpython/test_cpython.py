"""The short form of make cpython, and its harness: it detects crashes, hangs, differences and needless list entries."""

from __future__ import annotations

import sys
import textwrap

import pytest

from cpython_children import FileRun, run_file
from cpython_compare import Listed, compare, expected_differences
from cpython_run import FILES, one, table


@pytest.mark.parametrize("file", ["test_with", "test_except_star", "test_grammar"])
def test_a_file_of_cpython_passes_as_it_does_plainly(file):
    c = one(file, expected_differences().get(file, {}), timeout=120)
    assert c.ok, (c.differ, c.stale, c.translated.internal)
    assert c.translated.translated > 300
    assert c.translated.served > c.translated.translated


FILE = """
    import os, time, unittest

    class T(unittest.TestCase):
        def test_a_passes(self): pass
        def test_b_fails(self): self.assertEqual([1], [2])
        def test_c_crashes(self): os.abort()
        def test_d_hangs(self): time.sleep(1000)
        def test_e_passes(self):
            for i in range(3):
                with self.subTest(i=i):
                    self.assertEqual(i, i)
        def test_f_is_skipped(self): self.skipTest("no")
"""


@pytest.mark.parametrize("godynamo", [False, True])
def test_a_crash_and_a_hang_cost_one_test_each(tmp_path, monkeypatch, godynamo):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("")
    (tmp_path / "made" / "test_it.py").write_text(textwrap.dedent(FILE))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = run_file("made.test_it", godynamo=godynamo, timeout=8)
    outcomes = [outcome for outcome, _ in run.tests.values()]
    assert outcomes == ["passed", "failed", "crashed", "hung", "passed", "skipped"]
    assert (run.translated > 0) == godynamo
    assert not run.died
    assert "test_c_crashes" in run.tests["made.test_it.T.test_c_crashes"][1]  # the traceback by faulthandler


def test_a_file_that_cannot_be_loaded_in_either_mode_is_named(tmp_path, monkeypatch):
    (tmp_path / "lacks.py").write_text("import unittest\nunittest.not_there\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("import lacks\n")
    (tmp_path / "made" / "test_it.py").write_text("")
    plain, translated = (run_file("made.test_it", godynamo=on, timeout=60) for on in (False, True))
    error = "AttributeError: module 'unittest' has no attribute 'not_there'"
    c = compare("made.test_it", plain, translated, {})
    assert c.unloadable == error and not c.ok
    assert compare("made.test_it", FileRun({"t": ("passed", "")}), translated, {}).unloadable == ""


def runs(plain: dict[str, str], translated: dict[str, str]) -> tuple[FileRun, FileRun]:
    def made(tests: dict[str, str]) -> FileRun:
        return FileRun({name: (outcome, "") for name, outcome in tests.items()}, translated=1)

    return made(plain), made(translated)


@pytest.mark.parametrize(
    ("translated", "listed", "differ", "stale"),
    [
        ("passed", {}, [], []),
        ("failed", {}, ["t"], []),
        ("skipped", {}, ["t"], []),
        ("crashed", {}, ["t"], []),
        ("failed", {"t": Listed("why")}, [], []),
        ("passed", {"t": Listed("why")}, [], ["t"]),
        ("passed", {"t": Listed("why", sometimes=True)}, [], []),
        ("skipped", {"t": Listed("why", sometimes=True)}, [], []),
        ("passed", {"gone": Listed("why")}, [], ["gone"]),
    ],
)
def test_what_passes_plainly_must_pass(translated, listed, differ, stale):
    c = compare("f", *runs({"t": "passed", "u": "passed"}, {"t": translated, "u": "passed"}), listed)
    assert (list(c.differ), c.stale, c.ok) == (differ, stale, not differ and not stale)


def test_a_test_that_was_not_run_differs():
    assert list(compare("f", *runs({"t": "passed"}, {}), {}).differ) == ["t"]


def test_what_fails_plainly_may_fail_but_not_crash():
    assert compare("f", *runs({"t": "failed", "u": "passed"}, {"t": "failed", "u": "passed"}), {}).ok
    assert list(compare("f", *runs({"t": "failed"}, {"t": "crashed"}), {}).differ) == ["t"]


def test_a_file_in_which_nothing_was_translated_is_not_ok():
    plain, translated = runs({"t": "passed"}, {"t": "passed"})
    translated.translated = 0
    assert not compare("f", plain, translated, {}).ok


def test_the_list_names_files_that_are_run_with_a_cause_each():
    assert set(expected_differences()) <= set(FILES)


def test_an_entry_without_a_cause_is_refused(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('[[difference]]\nfile = "f"\ntests = ["t"]\ncause = ""\n')
    with pytest.raises(ValueError, match="are needed"):
        expected_differences(path)


def test_an_entry_may_begin_and_end_with_a_version(tmp_path):
    path = tmp_path / "e.toml"
    entry = '[[difference]]\nfile = "f"\ntests = ["{0}"]\ncause = "c"\nsince = "{0}"\n'
    path.write_text(entry.format("3.11") + entry.format("3.12") + entry.format("3.99"))
    assert list(expected_differences(path)["f"]) == ["test.f.3.11", "test.f.3.12"][: sys.version_info[1] - 10]
    path.write_text(entry.format("3.11") + 'until = "3.11"\n')
    assert len(expected_differences(path)) == (sys.version_info[1] == 11)
    path.write_text(entry.format("312"))
    with pytest.raises(ValueError, match="are needed"):
        expected_differences(path)


def test_the_table_has_the_sums():
    c = compare("f", *runs({"t": "passed", "u": "failed"}, {"t": "failed", "u": "passed"}), {})
    assert table([c, c]).splitlines()[-1].split()[:9] == "2 files 4 2 0 0 2 0 0".split()
