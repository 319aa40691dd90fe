"""From a stroke to the mask on the page of `vit serve`: processor time of the server and time to the answer, by the number of strokes,
with the features of an image of 518 x 518 pixels computed once.

    python paint.py --vit build/release/vit --model DINOV2 [--image FILE] [--size 518] [--rounds 5]      (needs Pillow)
"""

import argparse
import base64
import io
import json
import re
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[3]
# Strokes of 12 pixels on an image of edge 1: the class, and the ends.
STROKES = [(0, (.05, .05, .9, .05)), (1, (.4, .5, .6, .55)), (0, (.05, .9, .9, .9)), (1, (.3, .4, .5, .4)), (2, (.95, .2, .95, .8)),
           (2, (.1, .2, .1, .8))]


def runs_of(edge, strokes):
    """begin, end, class of the runs of painted pixels in raster order."""
    labels = Image.new("L", (edge, edge), 255)
    for value, (x0, y0, x1, y1) in strokes:
        ImageDraw.Draw(labels).line((x0 * edge, y0 * edge, x1 * edge, y1 * edge), fill=value, width=12)
    pixels, out, begin = labels.tobytes(), [], 0
    for end in range(1, len(pixels) + 1):
        if end == len(pixels) or pixels[end] != pixels[begin]:
            if pixels[begin] != 255:
                out += [begin, end, pixels[begin]]
            begin = end
    return out


class Server:

    def __init__(self, options):
        arguments = [options.vit, "serve", "--port", "0", "--log", "none", "--threads", "1", "--size", str(options.size), "--model", options.model]
        self.process = subprocess.Popen([str(a) for a in arguments], stderr=subprocess.PIPE, text=True)
        self.address = re.search(r"http://127\.0\.0\.1:\d+", self.process.stderr.readline()).group(0)
        while True:
            try:
                urllib.request.urlopen(self.address + "/health")
                return
            except urllib.error.HTTPError:
                time.sleep(0.1)

    def seconds(self):
        """Processor time of the server, without the processes that decode."""
        fields = Path(f"/proc/{self.process.pid}/schedstat")
        return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in fields.with_name("task").iterdir()) / 1e9

    def post(self, path, body):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        before, start = self.seconds(), time.perf_counter()
        answer = json.load(urllib.request.urlopen(request))
        return answer, 1000 * (self.seconds() - before), 1000 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", default="build/release/vit", type=Path)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--image", default=ROOT / "data/images/cat_tabby.jpg", type=Path)
    parser.add_argument("--size", default=518, type=int)
    parser.add_argument("--rounds", default=5, type=int)
    options = parser.parse_args()
    file = io.BytesIO()
    Image.open(options.image).convert("RGB").resize((options.size, options.size)).save(file, "PNG")
    server = Server(options)
    try:
        image, processor, wall = server.post("/page/paint/image", {"image": base64.b64encode(file.getvalue()).decode()})
        print(f"the features, once: {processor:.0f} ms of processor time, {wall:.0f} ms\n")
        print("| strokes | classes | rows | upsampling | processor time, ms | to the answer, ms |\n|---|---|---|---|---|---|")
        for count in range(2, len(STROKES) + 1):
            strokes = STROKES[:count]
            classes = len({value for value, _ in strokes})
            for way in ("bilinear", "guided"):
                body = {"images": [{"key": image["key"], "runs": runs_of(options.size, strokes)}], "classes": classes, "upsample": way}
                found = [server.post("/page/paint", body) for _ in range(options.rounds)]
                print(f"| {count} | {classes} | {found[0][0]['rows']} | {way} | {statistics.median(f[1] for f in found):.0f} | "
                      f"{statistics.median(f[2] for f in found):.0f} |")
    finally:
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
