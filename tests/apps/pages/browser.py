"""Chromium, driven over a pipe (DevTools protocol) as a person would: real keys, real files, pictures of what is seen."""
import base64
import json
import os
import select
import subprocess
import time

KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), " ": (32, " "), "ArrowDown": (40, ""), "ArrowUp": (38, ""),
        "ArrowRight": (39, ""), "ArrowLeft": (37, "")}


class Browser:
    """One window. What its pages complain about is kept in `complaints`."""

    def __init__(self, program, profile):
        from_browser, browser_end = os.pipe()
        browser_start, to_browser = os.pipe()

        def place_pipes():  # the protocol reads descriptor 3 and writes 4
            for given, wanted in ((os.dup(browser_start), 3), (os.dup(browser_end), 4)):
                os.dup2(given, wanted)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--remote-debugging-pipe", "--user-data-dir=" + profile, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=place_pipes, close_fds=False)
        os.close(browser_start)
        os.close(browser_end)
        self.input, self.output = from_browser, to_browser
        self.buffer, self.number, self.session = b"", 0, None
        self.events, self.complaints = [], []
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.ask(domain + ".enable")
        self.ask("Page.setInterceptFileChooserDialog", enabled=True)

    def close(self):
        self.process.kill()
        self.process.wait()

    # ------------------------------------------------------------------------------------------------ the protocol

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            data = os.read(self.input, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded":
            self.complaints.append(message["params"]["entry"]["text"])
        elif "method" in message:
            self.events.append(message)
        return message

    def ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.output, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            message = self.receive(deadline)
            if message is None:
                raise RuntimeError(method + ": no answer of the browser")
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def wait_for_event(self, method, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            for event in self.events:
                if event["method"] == method:
                    self.events.remove(event)
                    return event["params"]
            if self.receive(deadline) is None:
                raise RuntimeError(method + " did not come")

    # ----------------------------------------------------------------------------------------------- what people do

    def open(self, address):
        self.events.clear()
        self.ask("Page.navigate", url=address)
        self.wait_for_event("Page.loadEventFired")

    def look(self, width=1200, height=900, dark=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, file):
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def value(self, script):
        """Of an expression, which may be a promise."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(script + ": " + str(found["exceptionDetails"]))
        return found["result"].get("value")

    def until(self, script, seconds=20):
        """The first value of the expression that is true."""
        deadline = time.monotonic() + seconds
        while not (found := self.value(script)):
            if time.monotonic() > deadline:
                raise AssertionError("never: " + script + "\n" + str(self.value("document.body.innerText")))
            time.sleep(0.02)
        return found

    def press(self, key, shift=False):
        code, text = KEYS.get(key, (ord(key[0].upper()), key))
        event = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def choose_file(self, file):
        """In the dialog that the page has opened."""
        chooser = self.wait_for_event("Page.fileChooserOpened")
        self.ask("DOM.setFileInputFiles", files=[file], backendNodeId=chooser["backendNodeId"])
