#!/usr/bin/env python3
"""Runs the program over many images and watches memory, descriptors and throughput.

    endurance.py VIT MODEL IMAGES [COMMAND] [--count N | --seconds S] [OPTION...]

IMAGES is a folder; its files are given again and again under names of their own, N of them (1,000,000 unless given).
COMMAND is what runs on them, with further options: embed (to a folder of parts) unless given, classify, index. After S
seconds the run is interrupted. Printed are the slope of the resident memory after the first tenth, the largest and
smallest count of open descriptors, and the throughput of the last tenth next to that of the second (the first holds the
start).
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


def resident_mib(pid):
    """None once the process ends."""
    found = re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(found.group(1)) / 1024 if found else None


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def images_done(log):
    """The last "DONE/ALL" of the progress bar."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4000))
        done = re.findall(rb"(\d+)/\d+", file.read())
    return int(done[-1]) if done else 0


def write_list(list_path, images, folder, count):
    """Names of `count` images: the same files, each time through another link to their folder."""
    names = sorted(str(p.relative_to(images)) for p in images.rglob("*")
                   if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".ppm"))
    with list_path.open("w") as out:
        for i in range(count):
            link = folder / f"link-{i // len(names)}"
            if i % len(names) == 0:
                link.symlink_to(images)
            out.write(f"{link}/{names[i % len(names)]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vit")
    parser.add_argument("model")
    parser.add_argument("images", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("command", nargs="?", choices=["embed", "classify", "index"], default="embed")
    options, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="vit-endurance-") as folder:
        folder = pathlib.Path(folder)
        list_path = folder / "list"
        write_list(list_path, options.images.resolve(), folder, options.count)
        arguments = [options.vit, options.command, *more, "-", "--model", options.model, "--threads", "2", "--progress", "always"]
        arguments += {"embed": ["--output", f"{folder}/out/"], "index": ["--output", f"{folder}/index"],
                      "classify": ["--format", "csv"]}[options.command]
        log = folder / "log"
        with list_path.open() as stdin, log.open("wb") as err:
            process = subprocess.Popen(arguments, stdin=stdin, stdout=subprocess.DEVNULL, stderr=err,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        samples = []
        start = time.monotonic()
        while time.monotonic() - start < options.seconds:
            time.sleep(0.5)
            resident = resident_mib(process.pid)
            if resident is None:
                break
            samples.append((processor_seconds(process.pid), images_done(log), resident,
                            len(os.listdir(f"/proc/{process.pid}/fd"))))
        process.send_signal(signal.SIGINT)
        process.wait(120)
    tenth = len(samples) // 10
    warm = samples[tenth:]
    mean_x = sum(s[1] for s in warm) / len(warm)
    mean_y = sum(s[2] for s in warm) / len(warm)
    slope = sum((s[1] - mean_x) * (s[2] - mean_y) for s in warm) / max(sum((s[1] - mean_x) ** 2 for s in warm), 1)
    rate = lambda part: (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])
    print(f"{options.command}: exit {process.returncode}, {samples[-1][1]} images in {samples[-1][0]:.0f} s of processor time, "
          f"{warm[0][2]:.1f} MiB after the first tenth, {warm[-1][2]:.1f} MiB at the end, slope {slope * 1000 * 1024:.1f} KiB "
          f"per 1000 images, descriptors {min(s[3] for s in warm)} to {max(s[3] for s in warm)}, images per second of processor time "
          f"{rate(samples[tenth:2 * tenth + 1]):.2f} in the second tenth, {rate(samples[-tenth - 1:]):.2f} in the last")


if __name__ == "__main__":
    main()
