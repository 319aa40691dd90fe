"use strict";
// Learns two classes of pixels from strokes, as vit fit does with strength 1: logistic regression on the means of the features of the
// labeled pixels at each patch, and the functions of patches interpolated for every pixel.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const stage = {picture: byId("picture"), classes: byId("classes"), strokes: byId("strokes")};
const colors = [[0, 80, 255], [208, 48, 0]];
const radius = 2, spaceSigma = 0.75, colorSigma = 0.1;  // of guided weights, as in the library
let shown = null;  // the image that is painted on
let brush = 1, cursor = null, painting = null;
const images = [];

function bytesOf(text) {
  const letters = atob(text), out = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; ++i) out[i] = letters.charCodeAt(i);
  return out;
}

// For each pixel of an axis the patches on both sides and the part of the second.
function between(count, centers, step) {
  const out = [];
  for (let i = 0, low = 0; i < count; ++i) {
    const at = (i + 0.5) * step;
    while (low + 1 < centers.length && centers[low + 1] <= at) ++low;
    const high = Math.min(low + 1, centers.length - 1), gap = centers[high] - centers[low];
    out.push([low, high, gap > 0 ? Math.min(Math.max((at - centers[low]) / gap, 0), 1) : 0]);
  }
  return out;
}

async function prepare(given) {
  const picture = new Image();
  picture.src = "data:image/webp;base64," + given.picture;
  await picture.decode();
  const width = picture.naturalWidth, height = picture.naturalHeight;
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const image = {name: given.name, width, height, full: [given.width, given.height], canvas, pixels: context.getImageData(0, 0, width, height).data,
    count: given.count, h: given.ys.length, w: given.xs.length, features: new Float32Array(bytesOf(given.features).buffer),
    labels: new Int8Array(width * height).fill(-1), history: [], weights: {}};
  const stepY = given.height / height, stepX = given.width / width;
  image.rows = between(height, given.ys, stepY);
  image.columns = between(width, given.xs, stepX);
  image.ys = given.ys.map((y) => y / stepY);
  image.xs = given.xs.map((x) => x / stepX);
  return image;
}

function patchColors(image) {
  const sums = new Float64Array(image.h * image.w * 4);
  for (let y = 0; y < image.height; ++y) {
    for (let x = 0; x < image.width; ++x) {
      const patch = nearest(image, x, y) * 4, at = (y * image.width + x) * 4;
      for (let c = 0; c < 3; ++c) sums[patch + c] += image.pixels[at + c] / 255;
      ++sums[patch + 3];
    }
  }
  for (let p = 0; p < image.h * image.w; ++p) for (let c = 0; c < 3; ++c) sums[4 * p + c] /= Math.max(sums[4 * p + 3], 1);
  return sums;
}

function nearest(image, x, y) {
  const row = image.rows[y], column = image.columns[x];
  return (row[2] < 0.5 ? row[0] : row[1]) * image.w + (column[2] < 0.5 ? column[0] : column[1]);
}

// Patches and weights of all pixels, of a fixed number each; computed once.
function weightsOf(image, guided) {
  const known = image.weights[guided];
  if (known) return known;
  const most = guided ? (2 * radius + 1) ** 2 : 4, total = image.width * image.height;
  const patches = new Uint16Array(total * most), weights = new Float32Array(total * most);
  const mean = guided ? patchColors(image) : null;
  const stepY = image.h > 1 ? image.ys[1] - image.ys[0] : 1, stepX = image.w > 1 ? image.xs[1] - image.xs[0] : 1;
  for (let y = 0, at = 0; y < image.height; ++y) {
    for (let x = 0; x < image.width; ++x, at += most) {
      const [top, bottom, down] = image.rows[y], [left, right, across] = image.columns[x];
      if (!guided) {
        patches.set([top * image.w + left, top * image.w + right, bottom * image.w + left, bottom * image.w + right], at);
        weights.set([(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across], at);
        continue;
      }
      const row = down < 0.5 ? top : bottom, column = across < 0.5 ? left : right, pixel = (y * image.width + x) * 4;
      let largest = -Infinity, used = 0;
      for (let r = Math.max(row - radius, 0); r < Math.min(row + radius + 1, image.h); ++r) {
        const dy = (y + 0.5 - image.ys[r]) / stepY;
        for (let c = Math.max(column - radius, 0); c < Math.min(column + radius + 1, image.w); ++c, ++used) {
          const dx = (x + 0.5 - image.xs[c]) / stepX, patch = r * image.w + c;
          let difference = 0;
          for (let k = 0; k < 3; ++k) difference += (image.pixels[pixel + k] / 255 - mean[4 * patch + k]) ** 2;
          const exponent = -(dx * dx + dy * dy) / (2 * spaceSigma ** 2) - difference / (2 * colorSigma ** 2);
          patches[at + used] = patch;
          weights[at + used] = exponent;
          largest = Math.max(largest, exponent);
        }
      }
      let sum = 0;
      for (let i = 0; i < used; ++i) sum += weights[at + i] = Math.exp(weights[at + i] - largest);
      for (let i = 0; i < used; ++i) weights[at + i] /= sum;
    }
  }
  return image.weights[guided] = {most, patches, weights};
}

// One row for each patch and class: the mean of the features of its labeled pixels.
function rowsOf(image, guided, rows, classes) {
  const groups = new Map();
  for (let i = 0; i < image.labels.length; ++i) {
    if (image.labels[i] < 0) continue;
    const key = nearest(image, i % image.width, Math.floor(i / image.width)) * 2 + image.labels[i];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(i);
  }
  const {most, patches, weights} = weightsOf(image, guided);
  for (const [key, pixels] of groups) {
    const parts = new Map();
    for (const pixel of pixels) {
      for (let i = pixel * most; i < (pixel + 1) * most; ++i) if (weights[i] > 0) parts.set(patches[i], (parts.get(patches[i]) || 0) + weights[i]);
    }
    const row = new Float64Array(image.count);
    for (const [patch, weight] of parts) {
      const part = weight / pixels.length;
      for (let c = 0, at = patch * image.count; c < image.count; ++c) row[c] += part * image.features[at + c];
    }
    rows.push(row);
    classes.push(key % 2);
  }
}

// The minimum of sum log(1 + exp(-s f(x))) + |w|^2 / 2 over w and b, on standardized rows, by L-BFGS.
function learn(rows, classes) {
  const count = rows.length, width = rows[0].length;
  const mean = new Float64Array(width), scale = new Float64Array(width);
  for (const row of rows) for (let c = 0; c < width; ++c) mean[c] += row[c] / count;
  for (const row of rows) for (let c = 0; c < width; ++c) scale[c] += (row[c] - mean[c]) ** 2 / count;
  for (let c = 0; c < width; ++c) scale[c] = scale[c] > 1e-24 ? Math.sqrt(scale[c]) : 1;
  const x = rows.map((row) => Float64Array.from(row, (value, c) => (value - mean[c]) / scale[c]));
  const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; ++i) sum += a[i] * b[i]; return sum; };
  const slopeAt = (point, slope) => {
    let value = 0;
    for (let c = 0; c < width; ++c) value += point[c] * (slope[c] = point[c]) / 2;
    slope[width] = 0;
    for (let i = 0; i < count; ++i) {
      let f = point[width];
      for (let c = 0; c < width; ++c) f += point[c] * x[i][c];
      const sign = classes[i] ? 1 : -1, margin = sign * f;
      value += margin > 0 ? Math.log1p(Math.exp(-margin)) : Math.log1p(Math.exp(margin)) - margin;
      const factor = -sign / (1 + Math.exp(margin));
      for (let c = 0; c < width; ++c) slope[c] += factor * x[i][c];
      slope[width] += factor;
    }
    return value;
  };
  let point = new Float64Array(width + 1), slope = new Float64Array(width + 1), value = slopeAt(point, slope);
  const pairs = [];
  for (let round = 0; round < 200 && Math.sqrt(dot(slope, slope)) > 1e-6 * Math.max(1, Math.sqrt(dot(point, point))); ++round) {
    const direction = Float64Array.from(slope, (s) => -s), alphas = [];
    for (const {s, y, rho} of pairs.slice().reverse()) {
      const alpha = rho * dot(s, direction);
      alphas.unshift(alpha);
      for (let i = 0; i <= width; ++i) direction[i] -= alpha * y[i];
    }
    const last = pairs[pairs.length - 1];
    const first = last ? dot(last.s, last.y) / dot(last.y, last.y) : 1 / Math.sqrt(dot(slope, slope));
    for (let i = 0; i <= width; ++i) direction[i] *= first;
    pairs.forEach(({s, y, rho}, k) => {
      const beta = rho * dot(y, direction);
      for (let i = 0; i <= width; ++i) direction[i] += (alphas[k] - beta) * s[i];
    });
    const descent = dot(direction, slope), next = new Float64Array(width + 1), nextSlope = new Float64Array(width + 1);
    let step = 1, nextValue = 0;
    for (;; step /= 2) {
      for (let i = 0; i <= width; ++i) next[i] = point[i] + step * direction[i];
      nextValue = slopeAt(next, nextSlope);
      if (nextValue <= value + 1e-4 * step * descent || step < 1e-10) break;
    }
    const s = next.map((v, i) => v - point[i]), y = nextSlope.map((v, i) => v - slope[i]), curvature = dot(s, y);
    if (step < 1e-10) break;
    if (curvature > 1e-12) pairs.push({s, y, rho: 1 / curvature});
    if (pairs.length > 10) pairs.shift();
    point = next;
    slope = nextSlope;
    value = nextValue;
  }
  return {mean, scale, weights: point.subarray(0, width), intercept: point[width], rows: count};
}

let head = null;

function logitsOf(image) {
  const out = new Float32Array(image.h * image.w), factors = head.weights.map((w, c) => w / head.scale[c]);
  let constant = head.intercept;
  for (let c = 0; c < image.count; ++c) constant -= factors[c] * head.mean[c];
  for (let p = 0; p < out.length; ++p) {
    let sum = constant;
    for (let c = 0, at = p * image.count; c < image.count; ++c) sum += factors[c] * image.features[at + c];
    out[p] = sum;
  }
  return out;
}

function classesOf(image) {
  const {most, patches, weights} = weightsOf(image, byId("guided").checked), logits = logitsOf(image);
  const out = new Uint8Array(image.width * image.height);
  for (let i = 0, at = 0; i < out.length; ++i) {
    let sum = 0;
    for (const end = at + most; at < end; ++at) sum += weights[at] * logits[patches[at]];
    out[i] = sum > 0 ? 1 : 0;
  }
  return out;
}

function update() {
  const start = performance.now(), rows = [], classes = [];
  for (const image of images) rowsOf(image, byId("guided").checked, rows, classes);
  const context = stage.classes.getContext("2d");
  context.clearRect(0, 0, shown.width, shown.height);
  head = classes.includes(0) && classes.includes(1) ? learn(rows, classes) : null;
  const labeled = images.some((image) => image.labels.some((label) => label >= 0));
  byId("save-head").disabled = byId("save-mask").disabled = !head;
  byId("save-strokes").disabled = !labeled;
  if (!head) {
    byId("status").textContent = labeled ? "Paint the other class, too." : "";
    return;
  }
  const found = classesOf(shown), picture = context.createImageData(shown.width, shown.height);
  let marked = 0;
  for (let i = 0; i < found.length; ++i) {
    picture.data.set(colors[found[i]], 4 * i);
    picture.data[4 * i + 3] = found[i] ? 255 : 60;
    marked += found[i];
  }
  if (byId("mask").checked) context.putImageData(picture, 0, 0);
  const time = Math.round(performance.now() - start);
  byId("status").textContent = `${(100 * marked / found.length).toFixed(1)} % marked, from ${rows.length} patches, in ${time} ms`;
  document.body.dataset.milliseconds = time;
}

function drawStrokes() {
  const context = stage.strokes.getContext("2d"), picture = context.createImageData(shown.width, shown.height);
  for (let i = 0; i < shown.labels.length; ++i) {
    if (shown.labels[i] < 0) continue;
    picture.data.set(colors[shown.labels[i]], 4 * i);
    picture.data[4 * i + 3] = 255;
  }
  context.putImageData(picture, 0, 0);
  if (cursor) {
    context.strokeStyle = "#fff";
    context.lineWidth = 2;
    context.beginPath();
    context.arc(cursor.x, cursor.y, byId("size").value / 2, 0, 2 * Math.PI);
    context.stroke();
  }
}

function dab(x, y) {
  const reach = byId("size").value / 2;
  for (let v = Math.max(Math.floor(y - reach), 0); v <= Math.min(Math.ceil(y + reach), shown.height - 1); ++v) {
    for (let u = Math.max(Math.floor(x - reach), 0); u <= Math.min(Math.ceil(x + reach), shown.width - 1); ++u) {
      if ((u + 0.5 - x) ** 2 + (v + 0.5 - y) ** 2 <= reach * reach) shown.labels[v * shown.width + u] = brush;
    }
  }
}

function stroke(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y), steps = Math.max(Math.ceil(length / 2), 1);
  for (let i = 0; i <= steps; ++i) dab(from.x + (to.x - from.x) * i / steps, from.y + (to.y - from.y) * i / steps);
}

let waiting = false;
function changed() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawStrokes();
    update();
  });
}

function remember() {
  shown.history.push(shown.labels.slice());
  if (shown.history.length > 50) shown.history.shift();
}

function show(image) {
  shown = image;
  cursor = null;
  for (const canvas of Object.values(stage)) {
    canvas.width = image.width;
    canvas.height = image.height;
  }
  stage.picture.getContext("2d").drawImage(image.canvas, 0, 0);
  changed();
}

function pointOf(event) {
  const box = stage.strokes.getBoundingClientRect();
  return {x: (event.clientX - box.left) * shown.width / box.width, y: (event.clientY - box.top) * shown.height / box.height};
}

function chooseBrush(value) {
  brush = value;
  document.querySelector(`[name=brush][value="${value}"]`).checked = true;
}

stage.strokes.addEventListener("pointerdown", (event) => {
  stage.strokes.setPointerCapture(event.pointerId);
  remember();
  painting = pointOf(event);
  stroke(painting, painting);
  changed();
});
stage.strokes.addEventListener("pointermove", (event) => {
  if (!painting) return;
  const to = pointOf(event);
  stroke(painting, to);
  painting = to;
  changed();
});
for (const kind of ["pointerup", "pointercancel"]) stage.strokes.addEventListener(kind, () => { painting = null; });
stage.strokes.addEventListener("keydown", (event) => {
  const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  const move = moves[event.key];
  if (!move && event.key !== " ") return;
  event.preventDefault();
  const before = cursor || {x: shown.width / 2, y: shown.height / 2}, step = Math.max(byId("size").value / 2, 2);
  cursor = move ? {x: Math.min(Math.max(before.x + move[0] * step, 0), shown.width), y: Math.min(Math.max(before.y + move[1] * step, 0), shown.height)} : before;
  if (event.key === " " || event.shiftKey) {
    remember();
    stroke(before, cursor);
  }
  changed();
});

function undo() {
  const before = shown.history.pop();
  if (before) shown.labels = before;
  changed();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || (event.target.matches("input, select") && event.target.type !== "radio" && event.target.type !== "checkbox")) return;
  const size = byId("size");
  if (event.key === "1") chooseBrush(0);
  else if (event.key === "2") chooseBrush(1);
  else if (event.key === "e") chooseBrush(-1);
  else if (event.key === "[") size.value = Number(size.value) - 2;
  else if (event.key === "]") size.value = Number(size.value) + 2;
  else if (event.key === "z") undo();
  else if (event.key === "m") byId("mask").click();
  else return;
  event.preventDefault();
});
byId("brushes").addEventListener("change", (event) => { brush = Number(event.target.value); });
byId("undo").addEventListener("click", undo);
byId("clear").addEventListener("click", () => {
  remember();
  shown.labels = new Int8Array(shown.labels.length).fill(-1);
  changed();
});
for (const id of ["guided", "mask"]) byId(id).addEventListener("change", changed);
byId("image").addEventListener("change", (event) => show(images[event.target.selectedIndex]));

// -------------------------------------------------------------------------------------------------------------------- files

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The pixels of the whole image, each that of the shown one which it is in.
function saveMap(name, pixelOf) {
  const [width, height] = shown.full, canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d"), picture = context.createImageData(width, height);
  for (let y = 0; y < height; ++y) {
    const row = Math.min(Math.floor((y + 0.5) * shown.height / height), shown.height - 1) * shown.width;
    for (let x = 0; x < width; ++x) {
      const color = pixelOf(row + Math.min(Math.floor((x + 0.5) * shown.width / width), shown.width - 1));
      if (color) picture.data.set([...color, 255], 4 * (y * width + x));
    }
  }
  context.putImageData(picture, 0, 0);
  return new Promise((done) => canvas.toBlob((blob) => { download(name, blob); done(blob); }, "image/png"));
}

// The head of the page with the numbers that were learned: a safetensors file, as vit segment --classifier reads it.
function headFile() {
  const file = bytesOf(data.head), view = new DataView(file.buffer), length = Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length))), body = file.slice(8 + length);
  const put = (name, values) => {
    const target = new DataView(body.buffer, header[name].data_offsets[0]);
    values.forEach((value, i) => target.setFloat32(4 * i, value, true));
  };
  const half = Array.from(head.weights, (w) => w / 2);
  put("mean", Array.from(head.mean));
  put("scale", Array.from(head.scale));
  put("coefficients", [...half.map((w) => -w), ...half]);
  put("intercepts", [-head.intercept / 2, head.intercept / 2]);
  const facts = JSON.parse(header.__metadata__.vit_classifier), pixels = JSON.parse(header.__metadata__.vit_pixels);
  facts.labels = ["rest", byId("name").value || "marked"];
  facts.images = head.rows;
  pixels.upsampling = byId("guided").checked ? "guided" : "bilinear";
  pixels.images = images.filter((image) => image.labels.some((label) => label >= 0)).length;
  pixels.pixels = images.reduce((sum, image) => sum + image.labels.reduce((n, label) => n + (label >= 0 ? 1 : 0), 0), 0);
  header.__metadata__.vit_classifier = JSON.stringify(facts);
  header.__metadata__.vit_pixels = JSON.stringify(pixels);
  let text = JSON.stringify(header);
  let bytes = new TextEncoder().encode(text);
  const padding = (8 - bytes.length % 8) % 8;
  bytes = new TextEncoder().encode(text + " ".repeat(padding));
  const start = new DataView(new ArrayBuffer(8));
  start.setBigUint64(0, BigInt(bytes.length), true);
  return new Blob([start, bytes, body]);
}

const stem = () => shown.name.split("/").pop();
byId("save-head").addEventListener("click", () => download(`${byId("name").value || "marked"}.safetensors`, headFile()));
byId("save-mask").addEventListener("click", () => {
  const found = classesOf(shown);
  saveMap(`${stem()}_mask.png`, (i) => Array(3).fill(255 * found[i]));
});
byId("save-strokes").addEventListener("click", () => saveMap(`${stem()}.png`, (i) => shown.labels[i] < 0 ? null : colors[shown.labels[i]]));

(async () => {
  for (const given of data.images) {
    images.push(await prepare(given));
    byId("image").append(new Option(given.name));
  }
  show(images[0]);
  document.body.dataset.ready = "yes";
})();
