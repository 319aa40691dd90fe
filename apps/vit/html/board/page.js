"use strict";
// A board to paint classes of pixels on: images, brushes, strokes and files. What learns from the strokes is the page's:
//   keys        the element whose keys the board takes
//   learn       (question) -> {classes: Uint8Array of the shown image, rows, milliseconds}, or a promise of it; throws what to say
//   headFile    (question) -> Blob, or a promise of it
// A question is {images, shown, labels: (image) -> Int8Array of -1 or 0 .. names.length - 1, names, guided}, of the classes that have strokes.
// An image is {name, width, height, full: [width, height] of the file, canvas}.
const paintColors = [[0, 80, 255], [208, 48, 0], [0, 140, 70], [150, 60, 200], [190, 130, 0], [0, 140, 160], [215, 60, 140], [105, 105, 105]];

function paintBoard({keys, learn, headFile}) {
  const by = (id) => document.getElementById("paint-" + id);
  const stage = {picture: by("picture"), classes: by("classes"), strokes: by("strokes")};
  const images = [], names = [];
  let shown = null;  // the image that is painted on
  let brush = 1, cursor = null;
  let painting = null;  // {pointer, x, y}: where the pointer that paints is
  let found = null;  // the classes of all pixels of the shown image

  // ------------------------------------------------------------------------------------------------------ classes

  function addClass(name) {
    const value = names.length, label = document.createElement("label"), input = document.createElement("input"), swatch = document.createElement("i");
    names.push(name);
    Object.assign(input, {type: "radio", name: "brush", value});
    swatch.style.backgroundColor = `rgb(${paintColors[value].join(" ")})`;
    label.append(input, swatch, document.createElement("span"));
    label.lastChild.textContent = name;
    by("brushes").append(label);
    by("add").disabled = names.length === paintColors.length;
  }

  function chooseBrush(value) {
    const input = document.querySelector(`[name=brush][value="${value}"]`);
    if (!input) return;
    input.checked = true;
    brush = value;
    by("name").disabled = brush < 0;
    by("name").value = brush < 0 ? "" : names[brush];
  }

  // What was painted, with the classes that have strokes numbered from 0.
  function question() {
    const used = new Set();
    for (const image of images) for (const label of image.labels) used.add(label);
    const present = names.map((name, value) => value).filter((value) => used.has(value)), number = new Int8Array(names.length + 1).fill(-1);
    present.forEach((value, i) => { number[value + 1] = i; });
    return {images, shown, present, names: present.map((value) => names[value]), guided: by("guided").checked, labels: (image) => image.labels.map((label) => number[label + 1])};
  }

  // ----------------------------------------------------------------------------------------------------- learning

  let isLearning = false, isStale = false;
  async function update() {
    isStale = true;
    if (isLearning) return;
    isLearning = true;
    while (isStale) {
      isStale = false;
      const asked = question(), image = shown;
      by("save-strokes").disabled = !asked.present.length;
      if (asked.present.length < 2) {
        found = null;
        by("status").textContent = !asked.present.length ? "" : names.length === 2 ? "Paint the other class, too." : "Paint another class, too.";
      } else {
        try {
          const {classes, rows, milliseconds} = await learn(asked);
          if (image !== shown) continue;
          found = classes.map((i) => asked.present[i]);
          const counts = new Array(names.length).fill(0);
          for (const value of found) ++counts[value];
          const shares = asked.present.slice(1).map((value) => `${(100 * counts[value] / found.length).toFixed(1)} % ${names[value]}`);
          by("status").textContent = `${shares.join(", ")}; from ${rows} patches, in ${Math.round(milliseconds)} ms`;
          document.body.dataset.milliseconds = Math.round(milliseconds);
        } catch (error) {
          found = null;
          by("status").textContent = error.message;
        }
      }
      showFound();
    }
    isLearning = false;
  }

  // ------------------------------------------------------------------------------------------------------ drawing

  function showFound() {
    by("save-head").disabled = by("save-mask").disabled = !found;
    const context = stage.classes.getContext("2d");
    context.clearRect(0, 0, shown.width, shown.height);
    if (!found || !by("mask").checked) return;
    const picture = context.createImageData(shown.width, shown.height);
    found.forEach((value, i) => {
      picture.data.set(paintColors[value], 4 * i);
      picture.data[4 * i + 3] = value ? 255 : 60;
    });
    context.putImageData(picture, 0, 0);
  }

  function drawStrokes() {
    const context = stage.strokes.getContext("2d"), picture = context.createImageData(shown.width, shown.height);
    for (let i = 0; i < shown.labels.length; ++i) {
      if (shown.labels[i] < 0) continue;
      picture.data.set(paintColors[shown.labels[i]], 4 * i);
      picture.data[4 * i + 3] = 255;
    }
    context.putImageData(picture, 0, 0);
    if (!cursor) return;
    context.strokeStyle = "#fff";
    context.lineWidth = 2;
    context.beginPath();
    context.arc(cursor.x, cursor.y, by("size").value / 2, 0, 2 * Math.PI);
    context.stroke();
  }

  let isWaiting = false;
  function changed() {
    if (isWaiting || !shown) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      drawStrokes();
      update();
    });
  }

  function show(image) {
    shown = image;
    cursor = painting = found = null;  // what was found is another image's
    for (const canvas of Object.values(stage)) {
      canvas.width = image.width;
      canvas.height = image.height;
    }
    stage.picture.getContext("2d").drawImage(image.canvas, 0, 0);
    by("image").selectedIndex = images.indexOf(image);
    showFound();
    changed();
  }

  function add(image) {
    images.push(Object.assign(image, {labels: new Int8Array(image.width * image.height).fill(-1), history: []}));
    by("image").append(new Option(image.name));
    show(image);
  }

  // ----------------------------------------------------------------------------------------------------- painting

  function dab(x, y) {
    const reach = by("size").value / 2;
    for (let v = Math.max(Math.floor(y - reach), 0); v <= Math.min(Math.ceil(y + reach), shown.height - 1); ++v) {
      for (let u = Math.max(Math.floor(x - reach), 0); u <= Math.min(Math.ceil(x + reach), shown.width - 1); ++u) {
        if ((u + 0.5 - x) ** 2 + (v + 0.5 - y) ** 2 <= reach * reach) shown.labels[v * shown.width + u] = brush;
      }
    }
  }

  function stroke(from, to) {
    const length = Math.hypot(to.x - from.x, to.y - from.y), steps = Math.max(Math.ceil(length / 2), 1);
    for (let i = 0; i <= steps; ++i) dab(from.x + (to.x - from.x) * i / steps, from.y + (to.y - from.y) * i / steps);
    changed();
  }

  function remember() {
    shown.history.push(shown.labels.slice());
    if (shown.history.length > 50) shown.history.shift();
  }

  function undo() {
    const before = shown && shown.history.pop();
    if (before) shown.labels = before;
    changed();
  }

  function pointOf(event) {
    const box = stage.strokes.getBoundingClientRect();
    return {x: (event.clientX - box.left) * shown.width / box.width, y: (event.clientY - box.top) * shown.height / box.height};
  }

  const isPainting = (event) => painting && painting.pointer === event.pointerId;
  stage.strokes.addEventListener("pointerdown", (event) => {
    if (painting || event.button !== 0) return;  // one finger at a time
    stage.strokes.setPointerCapture(event.pointerId);
    remember();
    painting = {pointer: event.pointerId, ...pointOf(event)};
    stroke(painting, painting);
  });
  stage.strokes.addEventListener("pointermove", (event) => {
    if (!isPainting(event)) return;
    const to = pointOf(event);
    stroke(painting, to);
    Object.assign(painting, to);
  });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture"]) stage.strokes.addEventListener(kind, (event) => { if (isPainting(event)) painting = null; });

  function moveCursor(event) {
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}, move = moves[event.key];
    if (!move && event.key !== " ") return false;
    const before = cursor || {x: shown.width / 2, y: shown.height / 2}, step = Math.max(by("size").value / 2, 2);
    cursor = move ? {x: Math.min(Math.max(before.x + move[0] * step, 0), shown.width), y: Math.min(Math.max(before.y + move[1] * step, 0), shown.height)} : before;
    if (event.key === " " || event.shiftKey) {
      remember();
      stroke(before, cursor);
    }
    changed();
    return true;
  }

  keys.addEventListener("keydown", (event) => {
    const target = event.target, size = by("size");
    if (event.ctrlKey || event.metaKey || event.altKey || !shown) return;
    if (target.matches("input, select, textarea") && target.type !== "radio" && target.type !== "checkbox") return;
    if (target === stage.strokes && moveCursor(event)) return event.preventDefault();
    if (/^[1-8]$/.test(event.key)) chooseBrush(Number(event.key) - 1);
    else if (event.key === "e") chooseBrush(-1);
    else if (event.key === "[") size.value = Number(size.value) - 2;
    else if (event.key === "]") size.value = Number(size.value) + 2;
    else if (event.key === "z") undo();
    else if (event.key === "m") by("mask").click();
    else return;
    event.preventDefault();
  });
  for (const radios of document.querySelectorAll("#paint-tools fieldset")) radios.addEventListener("change", (event) => chooseBrush(Number(event.target.value)));
  by("name").addEventListener("input", () => {
    names[brush] = by("name").value.trim() || `class ${brush}`;
    by("brushes").children[brush].lastChild.textContent = names[brush];
  });
  by("name").addEventListener("change", changed);
  by("add").addEventListener("click", () => {
    addClass(`class ${names.length}`);
    chooseBrush(names.length - 1);
  });
  by("undo").addEventListener("click", undo);
  by("clear").addEventListener("click", () => {
    if (!shown) return;
    remember();
    shown.labels = new Int8Array(shown.labels.length).fill(-1);
    changed();
  });
  by("guided").addEventListener("change", changed);
  by("mask").addEventListener("change", () => { if (shown) showFound(); });
  by("image").addEventListener("change", (event) => show(images[event.target.selectedIndex]));

  // -------------------------------------------------------------------------------------------------------- files

  function download(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // A PNG of the whole image, each pixel that of the shown one which it is in; none where colorOf gives null.
  function mapFile(colorOf) {
    const [width, height] = shown.full, canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d"), picture = context.createImageData(width, height);
    for (let y = 0; y < height; ++y) {
      const row = Math.min(Math.floor((y + 0.5) * shown.height / height), shown.height - 1) * shown.width;
      for (let x = 0; x < width; ++x) {
        const color = colorOf(row + Math.min(Math.floor((x + 0.5) * shown.width / width), shown.width - 1));
        if (color) picture.data.set([...color, 255], 4 * (y * width + x));
      }
    }
    context.putImageData(picture, 0, 0);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  // White is marked where there are two classes; more have their colors.
  const maskFile = () => mapFile((i) => names.length === 2 ? Array(3).fill(255 * found[i]) : paintColors[found[i]]);
  const strokesFile = () => mapFile((i) => shown.labels[i] < 0 ? null : paintColors[shown.labels[i]]);
  const head = () => headFile(question());

  const stem = () => shown.name.split("/").pop();
  by("save-head").addEventListener("click", async () => {
    try {
      download(`${question().names.slice(1).join("-").replace(/[^\p{L}\p{N}_-]+/gu, "_")}.safetensors`, await head());
    } catch (error) {
      by("status").textContent = error.message;
    }
  });
  by("save-mask").addEventListener("click", async () => download(`${stem()}_mask.png`, await maskFile()));
  by("save-strokes").addEventListener("click", async () => download(`${stem()}.png`, await strokesFile()));

  for (const name of ["rest", "marked"]) addClass(name);
  chooseBrush(1);
  return {add, show, changed, head, maskFile, strokesFile, images, shown: () => shown, classes: () => found};
}
