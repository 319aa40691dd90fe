"""The readers of the library, run by the program vit_replay, and damage done to files."""

import json
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Replay:
    """Runs vit_replay, one file at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, kind, path):
        """The answer as a dictionary; {"error": why} where the library refuses the file."""
        self.process.stdin.write(f"{kind} {path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"vit_replay ended at {kind} {path}")
        return json.loads(answer)


def damaged(seeds, rng):
    """One of the byte strings with one to three changes, most often with one."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at:at + rng.randint(1, 8)]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randint(1, 4))
        elif kind == 4:
            other = rng.choice(seeds)
            begin = rng.randrange(len(other) + 1)
            data[at:at] = other[begin:begin + rng.randint(1, 16)]
        elif kind == 5:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 6:
            del data[at:]
        else:
            begin = rng.randrange(len(data))
            data[at:at + 4] = data[begin:begin + 4]
    return bytes(data)


class Tally:
    """Counts agreements, keeps what differs."""

    def __init__(self, name, keep):
        self.name = name
        self.keep = keep
        self.counts = {"equal": 0, "both refuse": 0}
        self.seen = {}
        if keep:
            keep.mkdir(parents=True, exist_ok=True)

    def add(self, what, data=None, detail=""):
        self.counts[what] = self.counts.get(what, 0) + 1
        key = (what, detail)
        self.seen[key] = self.seen.get(key, 0) + 1
        if data is not None and self.keep and self.seen[key] <= 3:
            number = sum(self.seen.values())
            (self.keep / f"{self.name}-{what.replace(' ', '_')}-{number}").write_bytes(data)

    def report(self):
        print(f"{self.name}: " + ", ".join(f"{count} {what}" for what, count in self.counts.items()))
        for (what, detail), count in sorted(self.seen.items(), key=lambda item: -item[1]):
            if detail:
                print(f"  {count} x {what}: {detail}")


def random_of(seed):
    return random.Random(seed)
