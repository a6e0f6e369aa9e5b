"""The process that compiles graphs. It imports torch and godynamo, and none of the program's modules.

It runs until its standard input is closed.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from typing import Any

from . import job as jobs


def main() -> None:
    """Write that the process has started, and compile the jobs that arrive on standard input.

    The answer to each is a job.Answer.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # compilers may print
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(arrived,), daemon=True).start()
    jobs.send("started", answers)
    while True:
        job, path = arrived.get()
        jobs.send(_answer(job, path), answers)


def _read(arrived: queue.SimpleQueue[Any]) -> None:
    """Receive jobs. End the process when standard input is closed, even during a compilation, or after any error."""
    try:
        with os.fdopen(os.dup(0), "rb", buffering=0) as source:
            while True:
                arrived.put(jobs.receive(source))
    finally:
        os._exit(0)


def _answer(job: jobs.Job, path: str) -> jobs.Answer:
    begin, why, conditions = time.perf_counter(), None, []
    try:
        conditions = compile_to(job, path)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    return jobs.Answer(why, time.perf_counter() - begin, conditions)


def compile_to(job: jobs.Job, path: str) -> list[Any]:
    """Compile a job's graph and write inductor's CompiledArtifact to a file. Raises whatever the compiler raises.

    Return the conditions on sizes under which the compiled code is right (symbolic.Condition).
    """
    import torch
    import torch._functorch.config
    from torch._inductor import standalone_compile

    from .._backends import graph_outputs, symbolic
    from .._backends.graph_modules import build_graph_module, recompile

    jobs.prepare(job)
    sizes = symbolic.Sizes(*(job.sizes or ((), (), [None] * len(job.inputs), (), False, False)))
    found, mode = jobs.objects_of(job), sizes.mode
    inputs = sizes.examples(jobs.inputs_of(job, found, mode))
    gm = build_graph_module(found[job.graph], inputs, mode)
    if sizes.prepare(gm, inputs):
        recompile(gm)
    # AOTAutograd saves a graph that calls a method only if the node has a fake value. Copies of a graph must have it.
    values = graph_outputs.fake_values(gm, lambda _: sizes.examples(jobs.inputs_of(job, found, mode)), mode)
    for node in gm.graph.nodes:
        node.meta = dict(node.meta, **({"example_value": values[node.name]} if node.name in values else {}))
    wrapper = torch._TorchCompileInductorWrapper(job.mode, job.options or None, False)
    # strict: raise at once, with the reason, if the graph cannot be saved
    strict = torch._functorch.config.patch(strict_autograd_cache=True)
    with strict, sizes.context():
        artifact = standalone_compile(
            gm, inputs, dynamic_shapes="from_tracing_context", options={"config_patches": wrapper.config}
        )
    conditions, constants = sizes.assumed()
    if constants:
        raise jobs.NotHandedOver("the compiler assumes more about sizes than guards can check")
    artifact.save(path=path, format="binary")
    return conditions
