// Learns classes of pixels from strokes, as vit fit does with strength 1: logistic regression on the means of the features of the
// labeled pixels at each patch, and the functions of patches interpolated for every pixel.
const data = JSON.parse(document.getElementById("data").textContent);
const radius = 2, spaceSigma = 0.75, colorSigma = 0.1;  // of guided weights, as in the library

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
    count: given.count, h: given.ys.length, w: given.xs.length, features: new Float32Array(bytesOf(given.features).buffer), weights: {}};
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
function rowsOf(image, labels, guided, numClasses, rows, classes) {
  const groups = new Map();
  for (let i = 0; i < labels.length; ++i) {
    if (labels[i] < 0) continue;
    const key = nearest(image, i % image.width, Math.floor(i / image.width)) * numClasses + labels[i];
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
    classes.push(key % numClasses);
  }
}

// The minimum of a smooth function, slopeAt(point, slope) -> value, from 0 on, by L-BFGS.
function minimum(size, slopeAt) {
  const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; ++i) sum += a[i] * b[i]; return sum; };
  let point = new Float64Array(size), slope = new Float64Array(size), value = slopeAt(point, slope);
  const pairs = [];
  for (let round = 0; round < 200 && Math.sqrt(dot(slope, slope)) > 1e-6 * Math.max(1, Math.sqrt(dot(point, point))); ++round) {
    const direction = Float64Array.from(slope, (s) => -s), alphas = [];
    for (const {s, y, rho} of pairs.slice().reverse()) {
      const alpha = rho * dot(s, direction);
      alphas.unshift(alpha);
      for (let i = 0; i < size; ++i) direction[i] -= alpha * y[i];
    }
    const last = pairs[pairs.length - 1];
    const first = last ? dot(last.s, last.y) / dot(last.y, last.y) : 1 / Math.sqrt(dot(slope, slope));
    for (let i = 0; i < size; ++i) direction[i] *= first;
    pairs.forEach(({s, y, rho}, k) => {
      const beta = rho * dot(y, direction);
      for (let i = 0; i < size; ++i) direction[i] += (alphas[k] - beta) * s[i];
    });
    const descent = dot(direction, slope), next = new Float64Array(size), nextSlope = new Float64Array(size);
    let step = 1, nextValue = 0;
    for (;; step /= 2) {
      for (let i = 0; i < size; ++i) next[i] = point[i] + step * direction[i];
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
  return point;
}

// The minimum of sum -log softmax(W x)[class] + |W|^2 / 2 over W, with classes that count equally; of two classes of
// sum log(1 + exp(-s f(x))) + |w|^2 / 2, and the functions are half of f and its opposite. The vectors of the patches have length one.
function learnFunctions(rows, classes, numClasses) {
  const width = rows[0].length, numFunctions = numClasses === 2 ? 1 : numClasses, values = new Float64Array(numClasses);
  const counts = new Float64Array(numClasses);
  for (const truth of classes) ++counts[truth];
  const point = minimum(numFunctions * width, (at, slope) => {
    let loss = 0;
    for (let i = 0; i < at.length; ++i) loss += at[i] * (slope[i] = at[i]) / 2;
    rows.forEach((row, r) => {
      values.fill(0);
      for (let k = 0; k < numFunctions; ++k) {
        let f = 0;
        for (let c = 0; c < width; ++c) f += at[k * width + c] * row[c];
        values[numClasses === 2 ? 1 : k] = f;
      }
      const largest = Math.max(...values), truth = values[classes[r]], weight = rows.length / (numClasses * counts[classes[r]]);
      let sum = 0;
      for (let k = 0; k < numClasses; ++k) sum += values[k] = Math.exp(values[k] - largest);
      loss += weight * (Math.log(sum) + largest - truth);
      for (let k = 0; k < numFunctions; ++k) {
        const of = numClasses === 2 ? 1 : k, factor = weight * (values[of] / sum - (classes[r] === of ? 1 : 0));
        for (let c = 0; c < width; ++c) slope[k * width + c] += factor * row[c];
      }
    });
    return loss;
  });
  const functions = [];
  for (let k = 0; k < numFunctions; ++k) functions.push(point.slice(k * width, (k + 1) * width));
  if (numClasses === 2) functions.splice(0, 1, functions[0].map((v) => -v / 2), functions[0].map((v) => v / 2));
  return {functions, rows: rows.length, width};
}

// The values of the functions for the patches of an image.
function valuesOf(image, head) {
  const numClasses = head.functions.length, out = new Float32Array(image.h * image.w * numClasses);
  head.functions.forEach((f, k) => {
    for (let p = 0; p < image.h * image.w; ++p) {
      let sum = 0;
      for (let c = 0, at = p * image.count; c < image.count; ++c) sum += f[c] * image.features[at + c];
      out[p * numClasses + k] = sum;
    }
  });
  return out;
}

function classesOf(image, head, guided) {
  const {most, patches, weights} = weightsOf(image, guided), values = valuesOf(image, head), numClasses = head.functions.length;
  const out = new Uint8Array(image.width * image.height), sums = new Float64Array(numClasses);
  for (let i = 0, at = 0; i < out.length; ++i) {
    sums.fill(0);
    for (const end = at + most; at < end; ++at) for (let k = 0; k < numClasses; ++k) sums[k] += weights[at] * values[patches[at] * numClasses + k];
    for (let k = 1; k < numClasses; ++k) if (sums[k] > sums[out[i]]) out[i] = k;
  }
  return out;
}

function learnHead(question) {
  const rows = [], classes = [];
  for (const image of question.images) rowsOf(image, question.labels(image), question.guided, question.names.length, rows, classes);
  return learnFunctions(rows, classes, question.names.length);
}

function learn(question) {
  const start = performance.now(), head = learnHead(question), classes = classesOf(question.shown, head, question.guided);
  return {classes, rows: head.rows, milliseconds: performance.now() - start};
}

// The head of the page with the numbers that were learned: a safetensors file, as vit segment --classifier reads it.
function headFile(question) {
  const file = bytesOf(data.head), view = new DataView(file.buffer), length = Number(view.getBigUint64(0, true));
  const given = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length))), head = learnHead(question);
  const functions = head.functions.map((f) => Array.from(f)), header = {__metadata__: given.__metadata__}, numbers = [];
  const put = (name, shape, values) => {
    const begin = 4 * numbers.length;
    numbers.push(...values);
    header[name] = {dtype: "F32", shape, data_offsets: [begin, 4 * numbers.length]};
  };
  put("mean", [head.width], new Array(head.width).fill(0));
  put("scale", [head.width], new Array(head.width).fill(1));
  put("coefficients", [functions.length, head.width], functions.flat());
  put("intercepts", [functions.length], functions.map(() => 0));
  const facts = JSON.parse(header.__metadata__.vit_classifier), pixels = JSON.parse(header.__metadata__.vit_pixels);
  const labels = question.images.map(question.labels);
  facts.labels = question.names;
  facts.images = head.rows;
  pixels.upsampling = question.guided ? "guided" : "bilinear";
  pixels.images = labels.filter((of) => of.some((label) => label >= 0)).length;
  pixels.pixels = labels.reduce((sum, of) => sum + of.reduce((n, label) => n + (label >= 0 ? 1 : 0), 0), 0);
  header.__metadata__.vit_classifier = JSON.stringify(facts);
  header.__metadata__.vit_pixels = JSON.stringify(pixels);
  const text = JSON.stringify(header), size = new TextEncoder().encode(text).length;
  const bytes = new TextEncoder().encode(text + " ".repeat((8 - size % 8) % 8)), start = new DataView(new ArrayBuffer(8));
  start.setBigUint64(0, BigInt(bytes.length), true);
  return new Blob([start, bytes, Float32Array.from(numbers)]);
}

const board = paintBoard({keys: document, learn, headFile});

(async () => {
  for (const given of data.images) board.add(await prepare(given));
  board.show(board.images[0]);
  document.body.dataset.ready = "yes";
})();
