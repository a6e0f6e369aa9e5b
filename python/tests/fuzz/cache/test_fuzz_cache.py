"""The short form of make fuzz-cache, and what its parts detect."""

from __future__ import annotations

from pathlib import Path

import pytest

import cache_damage as damage
import cache_edits as edits
import cache_judge as judging
from cache_format import blake3, dumps, loads, sealed, split
from cache_run import BAD, Damage, Edits, children, said


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Damage:
    return Damage(tmp_path_factory.mktemp("fuzz-cache"))


def test_damaged_files_are_misses_and_end_no_process(trials: Damage) -> None:
    found = list(trials.run(list(range(60))))
    bad = [said(*one) for one in found if one[1].kind.removesuffix(" after others") in BAD]
    assert not bad and len(found) == 60, "\n".join(bad)


def test_edited_programs_are_cpythons(tmp_path: Path) -> None:
    found = list(Edits(tmp_path).run(list(range(8))))
    bad = [said(*one) for one in found if one[1].kind in BAD]
    assert not bad and len(found) == 8 + 2 * 3, "\n".join(bad)


@pytest.mark.parametrize(
    ("size", "wanted"), [(0, "af1349b9f5f9a1a6"), (1, "2d3adedff11b61f1"), (1024, "42214739f095a406"),
                         (3073, "7124b49501012f81"), (102400, "bc3e3d41a1146b06")]
)  # fmt: skip
def test_the_checksum_is_blake3(size: int, wanted: str) -> None:
    text = bytes(i % 251 for i in range(size))
    assert blake3([b"x" * 5000, text])[1].hex().startswith(wanted)


def test_a_file_is_written_as_godynamo_writes_it(trials: Damage) -> None:
    for files in trials.good.values():
        made = sealed([split(data).body() for data in files.values()])
        for (path, data), (name, again) in zip(files.items(), made, strict=True):
            payload = split(data).payload
            assert path.endswith(name) and len(again) == len(data) and dumps(loads(payload)) == payload


def test_a_sealed_file_is_loaded(trials: Damage) -> None:
    """A file with a changed constant must be used: otherwise the sealed trials check nothing but the checksum."""
    path, data = damage._ordered(trials.good["sizes"])[0]
    parts = split(data)
    record = loads(parts.payload)
    for row in record[0]:
        if row[2] == "int" and row[3] == b"2":
            row[3] = b"3"
    trial = damage.Trial(1, "sizes", False, "2 -> 3", dict(trials.good["sizes"]))
    damage._seal(trial, path, parts._replace(payload=dumps(record)))
    ((name, sealed_data),) = sealed([body for _, body, _ in trial.bodies])
    trial.files[f"{trial.bodies[0][0]}/{name}"] = sealed_data
    trials.trials = {"1": trial}
    ((_, found),) = children(trials.judge, ["1"])
    assert found.kind == "sealed: another result", found


def test_a_wrong_result_is_seen(trials: Damage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cache_run.run_with", lambda folder, codes, *a: judging.Ran([{"value": 1}], 0, 0, []))
    trials.trials = {str(t.seed): t for t in damage.trials(trials.good, list(range(12))) if t.plain}
    assert {found.kind for _, found in children(trials.judge, list(trials.trials))} == {"wrong"}
    assert Edits(tmp_path).one(edits.edited(1)).kind == "wrong"


def test_the_trials_have_every_kind_of_damage(trials: Damage) -> None:
    text = "\n".join(trial.text for trial in damage.trials(trials.good, list(range(2000))))
    words = (
        "swapped with|has the content of|has another key|format 0|: key|description|: magic|bytes of the payload"
        "|Program.Nodes[|Function.Code.Code: |Resumes[0].Stack|Objects[|Levels|Rows|Chains|Flags|Program.Consts|Closure"
    )
    for word in words.split("|"):
        assert word in text, word


def test_the_edits_have_every_kind() -> None:
    text = "\n".join(edits.edited(seed).text for seed in range(200))
    words = (
        "twice|swapped|without|@wrapped|property in place of| is renamed|(Other)|from Block to Base|__bases__|__code__"
        "|raise"
    )
    for word in words.split("|"):
        assert word in text, word
    assert edits.edited(3) == edits.edited(3) != edits.edited(4)
