"""How speed holds next to other programs on the same cores: `vit`, ONNX Runtime, OpenVINO and PyTorch by turns, alone and
with one busy program pinned to the last core.

    python neighbors.py --vit build/release/vit --work ~/compare
    python neighbors.py --vit build/release/vit --work ~/compare --variants tiny --batches 8 --rounds 5

The busy program copies memory, multiplies small matrices, or is `vit` itself on one thread. Models, weights and checks are
those of compare.py. Prints milliseconds per image, medians over rounds; how many times as long the best other engine
takes in each state; and the speed of `vit` as a percentage of the share that the busy program leaves. With N cores
that share is (N - 1/2) / N of the speed alone: the busy program takes half of one of them. More than 100 % means that
the scheduler gave it less.
"""

import os
import statistics
import subprocess
import sys
from contextlib import contextmanager

from compare import engines_parser, parse, prepare
from engines import ENGINES
from models import Case, model_folder

COPY_MEMORY = """
import numpy as np
a, b = np.zeros(2**25), np.ones(2**25)
while True: np.copyto(a, b)
"""
MULTIPLY = """
import numpy as np
a = np.ones((256, 256), np.float32)
while True: a @ a
"""
STATES = ["alone", "memory", "arithmetic", "vit"]


def neighbor_command(state, options):
    if state == "vit":
        folder = model_folder(options.work, "tiny")
        return [options.vit, "bench", "--model", folder, "--threads", "1", "--seconds", "3600"]
    return [sys.executable, "-c", {"memory": COPY_MEMORY, "arithmetic": MULTIPLY}[state]]


@contextmanager
def neighbor(state, options):
    """A busy program on the last core while the block runs; none for "alone"."""
    if state == "alone":
        yield
        return
    core = max(os.sched_getaffinity(0))
    command = ["taskset", "-c", core, *neighbor_command(state, options)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, env=environment) as process:
        try:
            yield
        finally:
            process.kill()


def measure(engines, state, options, turned, found):
    with neighbor(state, options):
        for name in reversed(engines) if turned else engines:
            found.setdefault((state, name), []).append(engines[name].milliseconds(options.seconds))


def percent_of_share(state, found):
    cores = len(os.sched_getaffinity(0))
    share = 1 if state == "alone" else (cores - 0.5) / cores
    # rounds are compared with the undisturbed state of the same round
    rounds = zip(found["alone", "vit"], found[state, "vit"])
    return 100 * statistics.median(alone / (next_to * share) for alone, next_to in rounds)


def table(case, engines, found):
    others = [name for name in engines if ENGINES[name].package]
    rows = [["next to", *engines, "best other / vit", "vit, of its share", "rounds"]]
    for state in STATES:
        milliseconds = {name: found[state, name] for name in engines}
        # within a round all engines ran in the same hour
        lead = statistics.median(min(times) / own for own, *times in
                                 zip(milliseconds["vit"], *(milliseconds[name] for name in others)))
        rows.append([state, *(f"{statistics.median(times):.1f}" for times in milliseconds.values()), f"{lead:.2f}",
                     f"{percent_of_share(state, found):.0f} %", str(len(found[state, "vit"]))])
    rows.insert(1, ["---"] * len(rows[0]))
    return f"{case}\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def parse_options():
    parser = engines_parser(__doc__)
    parser.set_defaults(variants=["tiny", "base"], engines=["ONNX Runtime", "OpenVINO", "torch"])
    parser.add_argument("--size", type=int, default=224)
    return parse(parser)


def main():
    options = parse_options()
    for variant in options.variants:
        for batch in options.batches:
            case = Case(variant, options.size, batch, "float32")
            engines = prepare(case, options)
            found = {}
            for index in range(options.rounds):
                for state in STATES:
                    measure(engines, state, options, index % 2 == 1, found)
            print(table(case, engines, found), flush=True)


if __name__ == "__main__":
    main()
