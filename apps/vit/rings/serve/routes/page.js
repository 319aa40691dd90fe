"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const state = { models: [], data: "", file: null, bitmap: null, look: null, maps: {}, key: "", turn: 0, files: 0, searches: 0, pictures: [] };
  const sections = [];  // scripts of further parts of the page: {isOn, draw, press, forget, takeModel, keys}
  const isMarked = () => sections.some((part) => part.isOn());
  const has = (task) => Boolean(model() && (model().tasks || []).includes(task));

  const say = (text) => {
    by("notice").textContent = text;
    by("notice").hidden = !text;
  };

  const keyHeader = () => (state.key ? { Authorization: "Bearer " + state.key } : {});

  async function ask(path, body) {
    const headers = keyHeader();
    if (body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
    if (answer.status === 401) by("key-form").hidden = false;
    const found = await answer.json();
    if (answer.ok) return found;
    const error = new Error((found.error && found.error.message) || "the server answered " + answer.status);
    error.status = answer.status;
    error.code = found.error && found.error.code;
    throw error;
  }

  const model = () => state.models[by("model").selectedIndex];

  async function listModels() {
    try {
      state.models = (await ask("v1/models")).data;
    } catch (error) {
      say(error.message);
      if (error.status === 401) by("key").focus();
      if (error.status === 503) setTimeout(listModels, 1000);  // it still loads them
      return;
    }
    say("");
    by("key-form").hidden = true;
    by("model").replaceChildren(...state.models.map((m) => new Option(m.id)));
    takeModel();
  }

  function takeModel() {
    const m = model();
    if (!m) return;
    const parts = [m.architecture, m.embedding_dimensions && m.embedding_dimensions + "-dimensional embedding", m.classes && m.classes + " classes"];
    by("facts").textContent = parts.filter(Boolean).join(", ");
    by("words-form").hidden = !m.modalities.includes("text");
    by("words-help").textContent = m.classes ? "Words of your own, one a line; none: the model's classes" : "Words of your own, one a line";
    by("no-classes").hidden = Boolean(m.classes) || m.modalities.includes("text");
    by("no-image").hidden = Boolean(state.data) || !by("no-classes").hidden;
    by("nearest-section").hidden = !has("search");
    by("search-form").hidden = !m.modalities.includes("text");
    ++state.searches;  // those were of another model
    if (!state.data) by("labels").replaceChildren();
    if (!state.data) showNearest([], []);
    by("classes-section").hidden = has("phrases") || has("objects");
    by("prompt-keys").hidden = !by("classes-section").hidden;
    for (const part of sections) part.takeModel();
    run();
  }

  /// Lines with bars; those that have a picture show it once it is there.
  function showLabels(list, items) {
    by(list).replaceChildren(...items.map(({ name, title, share, text, picture }) => {
      const line = document.createElement("li");
      line.style.setProperty("--share", Math.round(100 * Math.max(0, Math.min(1, share))) + "%");
      const label = document.createElement("span");
      label.textContent = name;
      label.title = title || "";
      const value = document.createElement("span");
      value.textContent = text;
      line.append(label, value);
      if (picture) {
        const image = document.createElement("img");
        image.alt = "";
        image.src = picture;
        line.prepend(image);
      }
      return line;
    }));
  }

  const words = () => [...new Set(by("words").value.split("\n").map((w) => w.trim()).filter(Boolean))];

  // What is asked of the server; each gives what shows its answer.

  async function classify() {
    const m = model();
    const own = m.modalities.includes("text") ? words() : [];
    if (!own.length && !m.classes) return () => showLabels("labels", []);
    const body = { model: m.id, input: [state.data], modality: "image", top_k: 10 };
    if (own.length) Object.assign(body, { candidate_labels: own, template: by("template").value });
    const found = await ask("v1/classify", body);
    return () => showLabels("labels", found.data[0].labels.map((l) => ({ name: l.label, share: l.score, text: (100 * l.score).toFixed(2) + " %" })));
  }

  /// The bytes of an image with EXIF that cannot be read: browsers turn an image by it whatever they are told.
  function withoutExif(data) {
    const bytes = atob(data.slice(data.indexOf(",") + 1)).replace(/(Exif\0\0|eXIf)(II\*\0|MM\0\*)/, "$1\0\0\0\0");
    return new Blob([Uint8Array.from(bytes, (c) => c.charCodeAt(0))]);
  }

  /// Turned as the model sees it.
  async function bitmapOf(file, data) {
    return createImageBitmap(model() && !model().upright ? withoutExif(data) : file).catch(() => null);
  }

  async function look() {
    if (has("phrases") || has("objects")) {  // which takes long, and is not what such a model is asked for
      const bitmap = await bitmapOf(state.file, state.data);
      return () => { state.bitmap = bitmap; };
    }
    const found = await ask("page/look", { model: model().id, image: state.data });
    const bitmap = await bitmapOf(state.file, state.data);
    return () => {
      state.look = found;
      state.bitmap = bitmap;
      by("attention-choice").hidden = !found.attention.length;
      if (!found.attention.length && layer() === "attention") chooseLayer("image");
    };
  }

  /// An image of the index; null where the browser gets none.
  async function pictureOf(result) {
    const answer = await fetch("page/picture/" + result.number, { headers: keyHeader() });
    return answer.ok ? answer.blob() : null;
  }

  /// Results in the place of those before, whose pictures are given back.
  function showNearest(results, blobs) {
    state.pictures.forEach((address) => URL.revokeObjectURL(address));
    state.pictures = blobs.map((blob) => blob && URL.createObjectURL(blob));
    showLabels("nearest", results.map((r, i) => ({ name: r.file.replace(/.*\//, ""), title: r.file + (blobs[i] ? "" : " (moved, or no image that browsers show)"), share: r.score, text: r.score.toFixed(4), picture: state.pictures[i] })));
  }

  /// The nearest images of the index to `query`, {image} or {text}; they are shown unless another turn came since.
  async function nearest(query, what, turn) {
    const { results } = await ask("page/nearest", { model: model().id, ...query });
    const blobs = await Promise.all(results.map((r) => pictureOf(r).catch(() => null)));
    return () => {
      if (turn !== state.searches) return;
      by("nearest-title").textContent = "Nearest images of the index to " + what;
      by("no-nearest").hidden = results.length > 0;
      by("no-nearest").textContent = "The index has no images.";
      showNearest(results, blobs);
    };
  }

  async function search() {
    const text = by("search").value.trim();
    if (!text || !has("search")) return;
    const turn = ++state.searches;
    say("");
    by("status").textContent = "searching";
    try {
      (await nearest({ text }, "\u201c" + text + "\u201d", turn))();
    } catch (error) {
      if (turn === state.searches) say("Search for \u201c" + text + "\u201d failed: " + error.message);
    }
    if (turn === state.searches) by("status").textContent = "";
  }

  /// A map of the image as a picture, computed when it is first chosen.
  async function loadMap(name) {
    const turn = state.turn;
    state.maps[name] = "loading";
    by("status").textContent = "computing";
    try {
      const forms = { depth: { format: "color" }, segment: { format: "color" } };
      const found = await ask("v1/" + name, { model: model().id, input: [state.data], modality: "image", ...forms[name] });
      const text = found.data[0][name === "depth" ? "depth" : "segmentation"];
      const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      if (turn === state.turn) state.maps[name] = bitmap;
    } catch (error) {
      if (turn !== state.turn) return;
      delete state.maps[name];
      say(name + " failed: " + error.message);
      chooseLayer("image");
    }
    by("status").textContent = "";
    draw();
  }

  async function run() {
    if (!state.data || !model()) return;
    const turn = ++state.turn, searched = ++state.searches, begin = performance.now();
    say("");
    by("status").textContent = "computing";
    const jobs = [classify(), look()];
    if (has("search")) jobs.push(nearest({ image: state.data }, state.file.name, searched));
    const results = await Promise.allSettled(jobs);
    if (turn !== state.turn) return;  // of an image or a model that is not wanted any more
    state.look = null;
    by("labels").replaceChildren();
    if (searched === state.searches) showNearest([], []);
    by("no-image").hidden = true;
    state.maps = {};
    for (const name of ["depth", "segment"]) by(name + "-choice").hidden = !has(name);
    if (document.querySelector("input[name=layer]:checked").closest("[hidden]")) chooseLayer("image");
    for (const result of results) if (result.status === "fulfilled") result.value();
    const failed = results.find((r) => r.status === "rejected");
    if (failed) say(state.file.name + " failed: " + failed.reason.message);
    if (failed) by("status").textContent = "";
    else if (!isMarked()) by("status").textContent = "answered in " + ((performance.now() - begin) / 1000).toFixed(2) + " s";
    else by("status").textContent = "ready for phrases and marks";
    draw();
  }

  const layer = () => document.querySelector("input[name=layer]:checked").value;
  function chooseLayer(name) {
    const input = document.querySelector("input[name=layer][value=" + name + "]");
    if (input.closest("[hidden]")) return;
    input.checked = true;
    draw();
  }

  /// The patches as a small picture, one pixel each: colors, or warm where attention is.
  function patchPicture(kind) {
    const { rows, columns, pca, attention } = state.look;
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    const pixels = new ImageData(columns, rows);
    const most = Math.max(...attention, 1e-12);
    for (let i = 0; i < rows * columns; ++i) {
      const heat = kind === "attention" ? attention[i] / most : 0;
      const color = kind === "pca" ? [...[0, 1, 2].map((k) => 255 * pca[3 * i + k]), 255] : [255, 200 * heat, 40, 230 * heat];
      pixels.data.set(color, 4 * i);
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }

  function draw() {
    const view = by("view");
    const shown = state.look && layer() !== "image" ? layer() : "";
    const size = state.bitmap || (state.look && { width: state.look.imageWidth, height: state.look.imageHeight });
    view.hidden = !size || !(state.bitmap || shown);
    by("drop-help").hidden = !view.hidden;
    by("layers").hidden = !state.look;
    if (view.hidden) return;
    const scale = Math.min(1, 1024 / Math.max(size.width, size.height)) * Math.max(1, 512 / Math.max(size.width, size.height));
    view.width = Math.max(1, Math.round(size.width * scale));
    view.height = Math.max(1, Math.round(size.height * scale));
    view.setAttribute("aria-label", { "": "the image", pca: "PCA of its patches", attention: "attention to its patches", depth: "its depth", segment: "its segments" }[shown]);
    const context = view.getContext("2d");
    if (state.bitmap) context.drawImage(state.bitmap, 0, 0, view.width, view.height);
    if (!shown) return sections.forEach((part) => part.draw(context, scale));
    if (shown === "depth" || shown === "segment") {
      const map = state.maps[shown];
      if (!map) loadMap(shown);
      if (!map || map === "loading") return;
      context.globalAlpha = shown === "segment" && state.bitmap ? 0.7 : 1;
      context.drawImage(map, 0, 0, view.width, view.height);
      context.globalAlpha = 1;
      return;
    }
    context.fillStyle = "rgb(10 14 20 / 60%)";  // what the model does not see, and what it does not look at
    context.fillRect(0, 0, view.width, view.height);
    const [left, top, right, bottom] = state.look.box.map((x) => x * scale);
    context.imageSmoothingEnabled = shown === "attention";
    context.drawImage(patchPicture(shown), left, top, right - left, bottom - top);
  }

  async function take(file, isNewest) {
    const reader = new FileReader();
    const text = await new Promise((resolve, reject) => {
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
    const bitmap = await bitmapOf(file, text);
    if (!isNewest()) return;
    ++state.turn;
    Object.assign(state, { data: text, file, bitmap, look: null, maps: {} });
    for (const part of sections) part.forget();
    by("drop-help").textContent = state.bitmap ? "" : file.name + " (this browser does not show it)";
    chooseLayer("image");
    draw();
    run();
  }

  /// The first file that can be read is shown; the others are named with what is wrong.
  async function takeAll(files) {
    if (!files.length) return;
    const turn = ++state.files, isNewest = () => turn === state.files, failures = [];
    let taken = 0;
    for (const file of files) {
      if (taken) {
        failures.push(file.name + ": one image at a time; the first is shown");
        continue;
      }
      try {
        await take(file, isNewest);
        taken += 1;
      } catch (error) {
        failures.push(file.name + " failed: " + ((error && error.message) || "it cannot be read"));
      }
    }
    if (!isNewest()) return;
    by("failures").hidden = !failures.length;
    by("failures").replaceChildren(...failures.map((text) => {
      const line = document.createElement("li");
      line.textContent = text;
      return line;
    }));
  }

  /// A landscape with a house, drawn here: no file is asked for.
  async function takeExample() {
    const canvas = document.createElement("canvas");
    canvas.width = 448;
    canvas.height = 336;
    const c = canvas.getContext("2d");
    const sky = c.createLinearGradient(0, 0, 0, 220);
    sky.addColorStop(0, "#4a90d9");
    sky.addColorStop(1, "#cfe7fb");
    const shapes = [[sky, [0, 0, 448, 0, 448, 336, 0, 336]], ["#6d7f8f", [0, 220, 110, 90, 200, 190, 290, 70, 448, 220]],
      ["#5d8f3d", [0, 210, 448, 195, 448, 336, 0, 336]], ["#c9a25f", [190, 336, 250, 336, 236, 270, 222, 270]],
      ["#b5533c", [150, 190, 230, 130, 310, 190]], ["#f0e3c8", [165, 190, 295, 190, 295, 272, 165, 272]],
      ["#5b3a22", [218, 226, 244, 226, 244, 272, 218, 272]], ["#8fb9d6", [180, 204, 206, 204, 206, 230, 180, 230]],
      ["#8fb9d6", [256, 204, 282, 204, 282, 230, 256, 230]], ["#6b4a2f", [366, 200, 382, 200, 384, 290, 364, 290]]];
    for (const [color, points] of shapes) {
      c.fillStyle = color;
      c.beginPath();
      for (let i = 0; i < points.length; i += 2) c.lineTo(points[i], points[i + 1]);
      c.fill();
    }
    for (const [color, x, y, radius] of [["#ffe27a", 70, 60, 28], ["#2f6b2f", 374, 176, 44], ["#397a37", 352, 200, 30], ["#397a37", 398, 198, 32]]) {
      c.fillStyle = color;
      c.beginPath();
      c.arc(x, y, radius, 0, 2 * Math.PI);
      c.fill();
    }
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    await takeAll([new File([blob], "example.png", { type: "image/png" })]);
  }

  const drop = by("drop");
  const choose = () => by("file").click();
  drop.addEventListener("click", () => { if (!isMarked()) choose(); });
  drop.addEventListener("keydown", (event) => {
    const part = sections.find((one) => one.isOn());
    if (part) {
      if (part.press(event)) event.preventDefault();
      return;
    }
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") takeAll([...event.dataTransfer.files]);
    });
  }
  document.addEventListener("paste", (event) => takeAll([...event.clipboardData.files].filter((f) => f.type.startsWith("image/"))));
  by("file").addEventListener("change", () => { takeAll([...by("file").files]); by("file").value = ""; });
  by("choose").addEventListener("click", choose);
  by("example").addEventListener("click", takeExample);
  by("search-form").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  by("model").addEventListener("change", takeModel);
  by("words-form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
  by("layers").addEventListener("change", draw);
  by("key-form").addEventListener("submit", (event) => { event.preventDefault(); state.key = by("key").value; listModels(); });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || /^(TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.target.tagName === "INPUT" && !/^(radio|file)$/.test(event.target.type)) return;
    const layers = { 1: "image", 2: "pca", 3: "attention", 4: "depth", 5: "segment" };
    const part = sections.find((one) => one.keys[event.key]);
    if (part && part.keys[event.key]()) return event.preventDefault();
    if (layers[event.key] && state.look) chooseLayer(layers[event.key]);
    else if (event.key === "o") choose();
    else if (event.key === "e") takeExample();
    else if (event.key === "s" && has("search") && !by("search-form").hidden) by("search").focus();
    else if (event.key === "m") by("model").focus();
    else if (event.key === "w" && !by("words-form").hidden) by("words").focus();
    else return;
    event.preventDefault();
  });

  window.vitPage = { by, state, ask, model, has, say, draw, showLabels, sections, status: (text) => { by("status").textContent = text; } };
  document.addEventListener("DOMContentLoaded", listModels);  // once all parts are there
})();
