#!/usr/bin/env python3
"""openai-python against vit serve: openai_client.py VIT MODEL IMAGE VENV. Its vectors are those of vit embed.

The package is that of this Python, or else one that PyPI puts into the folder VENV, a virtual environment that is kept.
Ends with 77, a skip to ctest, where neither is to be had. The client uses the loopback address only.
"""
import base64
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

PACKAGE = "openai==3.57.0"
vit, model, image, venv = sys.argv[1:]


def continue_in_venv():
    """Runs this file by a Python that has the package."""
    python = venv + "/bin/python"
    made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
    if made.returncode == 0 and subprocess.run([python, "-c", "import openai"], stderr=subprocess.DEVNULL).returncode != 0:
        made = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                               "--timeout", "15", PACKAGE], capture_output=True, text=True)
    if made.returncode != 0:
        print("skipped: the package openai is not installed, and cannot be:", (made.stdout + made.stderr).strip())
        sys.exit(77)
    sys.exit(subprocess.run([python, *sys.argv], env={**os.environ, "VIT_TEST_IN_VENV": "1"}).returncode)


if not importlib.util.find_spec("openai") and "VIT_TEST_IN_VENV" not in os.environ:
    continue_in_venv()

import openai  # noqa: E402


def bits(vector):
    return struct.pack(f"<{len(vector)}f", *vector)


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([vit, "embed", "--model", model, "--output", folder + "/x.jsonl", "--quiet", image], check=True)
    with open(folder + "/x.jsonl", encoding="utf-8") as lines:
        expected = next(json.loads(line)["pooled"] for line in lines)

server = subprocess.Popen([vit, "serve", "--port", "0", "--model", "m=" + model], stderr=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://127\.0\.0\.1:\d+", server.stderr.readline()).group(0)
    client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=20, timeout=60)
    with open(image, "rb") as file:
        uri = "data:image/jpeg;base64," + base64.b64encode(file.read()).decode()
    assert [m.id for m in client.models.list()] == ["m"]  # repeated until the model is loaded
    for encoding in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        answer = client.embeddings.create(model="m", input=[uri], extra_body={"modality": "image"}, **encoding)
        vector = answer.data[0].embedding
        vector = base64.b64decode(vector) if isinstance(vector, str) else bits(vector)
        assert vector == bits(expected), encoding
    try:
        client.embeddings.create(model="other", input=["a"])
        raise AssertionError("no error")
    except openai.NotFoundError as error:
        assert error.param == "model" and error.code == "model_not_found"
    try:
        client.embeddings.create(model="m", input=["no image"], extra_body={"modality": "image"})
        raise AssertionError("no error")
    except openai.BadRequestError as error:
        assert error.param == "input[0]"
finally:
    server.terminate()
    assert server.wait(timeout=60) == 0
