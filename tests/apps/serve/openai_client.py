#!/usr/bin/env python3
"""openai-python against vit serve: openai_client.py VIT MODEL IMAGE. Its vectors are those of vit embed.

Ends with 77 where the package is not installed, as ctest takes for a skip. Only the loopback address is asked.
"""
import base64
import json
import re
import struct
import subprocess
import sys
import tempfile

try:
    import openai
except ImportError:
    print("skipped: the package openai is not installed")
    sys.exit(77)

vit, model, image = sys.argv[1:]


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
    assert [m.id for m in client.models.list()] == ["m"]  # asked again until the model is loaded
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
