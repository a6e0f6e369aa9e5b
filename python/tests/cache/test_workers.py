"""Worker processes load translations instead of making them."""

from __future__ import annotations

from stored_support import Programs

WORKERS = """
import multiprocessing, os
import torch, godynamo
from godynamo import utils
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)  # a DataLoader's workers do this; another number is another translation

@godynamo.optimize
def prepared(x):
    return (x - x.mean()) / x.std()

def counts():
    loaded = utils.counters["stats"]["translations_loaded"]
    return os.getpid(), utils.counters["frames"]["total"] - loaded, loaded

class Rows(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        y = prepared(torch.arange(4.0) * (i + 1))
        return y.tolist(), *counts()

def task(i):
    return Rows()[i]

def main(kind):
    os.environ["GODYNAMO_CACHE_DIR"] = godynamo.config.cache_dir
    if kind == "here":
        return [*map(task, range(6))]
    if kind == "pool":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            return pool.map(task, range(6), 1)
    return [*DataLoader(Rows(), batch_size=None, num_workers=2, multiprocessing_context="spawn")]
"""


def test_spawned_workers_load(programs: Programs) -> None:
    programs.write("workers", WORKERS)
    first = programs.run("workers", "here").result
    want = [row[0] for row in first]
    here, made, _ = first[-1][1:]
    assert made == 1
    for kind in ("loader", "pool"):
        rows = programs.run("workers", kind).result
        assert [row[0] for row in rows] == want
        assert {(made, loaded) for _, _, made, loaded in rows} == {(0, 1)}
        assert all(pid != here for _, pid, _, _ in rows)
