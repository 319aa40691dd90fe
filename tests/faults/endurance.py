#!/usr/bin/env python3
"""Runs the program over a list of images repeated many times, and watches memory, descriptors and throughput.

    endurance.py VIT MODEL IMAGES SECONDS [COMMAND...]

IMAGES is a folder, COMMAND what runs on it ("embed" to a folder of parts unless given: "classify"). After SECONDS the
run is interrupted. Printed are the slope of the resident memory after the first tenth, the largest and smallest count
of open descriptors, and the throughput of the last tenth beside that of the second (the first holds the start).
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time


def resident_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    vit, model, images, seconds = sys.argv[1:5]
    command = sys.argv[5:] or ["embed"]
    paths = sorted(p for p in pathlib.Path(images).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    with tempfile.TemporaryDirectory(prefix="vit-endurance-") as folder:
        output = pathlib.Path(folder) / "out"
        list_path = pathlib.Path(folder) / "list"
        with list_path.open("w") as out:
            for _ in range(1_000_000 // len(paths)):
                out.writelines(f"{p}\n" for p in paths)
        arguments = [vit, *command, "-", "--model", model, "--threads", "2", "--progress", "always"]
        if command[0] == "embed":
            arguments += ["--output", str(output) + "/"]
        else:
            arguments += ["--format", "csv"]
        log = pathlib.Path(folder) / "log"
        with list_path.open() as stdin, log.open("wb") as err:
            process = subprocess.Popen(arguments, stdin=stdin, stdout=subprocess.DEVNULL, stderr=err,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        samples = []
        start = time.monotonic()
        while time.monotonic() - start < float(seconds):
            time.sleep(0.5)
            if process.poll() is not None:
                break
            done = re.findall(rb"(\d+)/\d+", log.read_bytes()[-4000:])
            samples.append((processor_seconds(process.pid), int(done[-1]) if done else 0, resident_mib(process.pid),
                            len(os.listdir(f"/proc/{process.pid}/fd"))))
        process.send_signal(signal.SIGINT)
        process.wait(120)
    tenth = len(samples) // 10
    warm = samples[tenth:]
    mean_x = sum(s[1] for s in warm) / len(warm)
    mean_y = sum(s[2] for s in warm) / len(warm)
    slope = sum((s[1] - mean_x) * (s[2] - mean_y) for s in warm) / max(sum((s[1] - mean_x) ** 2 for s in warm), 1)
    rate = lambda part: (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])
    print(f"{' '.join(command)}: exit {process.returncode}, {samples[-1][1]} images in {samples[-1][0]:.0f} s of processor time, "
          f"{warm[0][2]:.1f} MiB after the first tenth, {warm[-1][2]:.1f} MiB at the end, slope {slope * 1000 * 1024:.1f} KiB "
          f"per 1000 images, descriptors {min(s[3] for s in warm)} to {max(s[3] for s in warm)}, images per second of processor time "
          f"{rate(samples[tenth:2 * tenth + 1]):.2f} in the second tenth, {rate(samples[-tenth - 1:]):.2f} in the last")


if __name__ == "__main__":
    main()
