"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const state = { models: [], data: "", file: null, bitmap: null, look: null, key: "", turn: 0, pictures: [] };

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
    const parts = [m.architecture, m.embedding_dimensions && m.embedding_dimensions + " numbers a vector", m.classes && m.classes + " classes"];
    by("facts").textContent = parts.filter(Boolean).join(", ");
    by("words-form").hidden = !m.modalities.includes("text");
    by("words-help").textContent = m.classes ? "Words of your own, one a line; none: the model's classes" : "Words of your own, one a line";
    by("no-classes").hidden = Boolean(m.classes) || m.modalities.includes("text");
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

  /// Turned as the model sees it.
  async function bitmapOf(file, isUpright) {
    return createImageBitmap(file, { imageOrientation: isUpright ? "from-image" : "none" }).catch(() => null);
  }

  async function look() {
    const found = await ask("page/look", { model: model().id, image: state.data });
    const bitmap = await bitmapOf(state.file, found.upright);
    return () => {
      state.look = found;
      state.bitmap = bitmap;
      by("attention-choice").hidden = !found.attention.length;
      if (!found.attention.length && layer() === "attention") chooseLayer("image");
    };
  }

  /// The address of an image of the index; "" where the browser gets none.
  async function pictureOf(result) {
    const answer = await fetch("page/picture/" + result.number, { headers: keyHeader() });
    if (!answer.ok) return "";
    const address = URL.createObjectURL(await answer.blob());
    state.pictures.push(address);
    return address;
  }

  async function nearest() {
    const { results } = await ask("page/nearest", { model: model().id, image: state.data });
    const pictures = await Promise.all(results.map((r) => pictureOf(r).catch(() => "")));
    return () => {
      by("nearest-section").hidden = !results.length;
      showLabels("nearest", results.map((r, i) => ({ name: r.file.replace(/.*\//, ""), title: r.file, share: r.score, text: r.score.toFixed(4), picture: pictures[i] })));
    };
  }

  async function run() {
    if (!state.data || !model()) return;
    const turn = ++state.turn, begin = performance.now();
    say("");
    by("status").textContent = "computing";
    state.pictures.splice(0).forEach((address) => URL.revokeObjectURL(address));
    const results = await Promise.allSettled([classify(), look(), nearest()]);
    if (turn !== state.turn) return;  // of an image or a model that is not wanted any more
    state.look = null;
    for (const list of ["labels", "nearest"]) by(list).replaceChildren();
    by("nearest-section").hidden = true;
    for (const result of results) if (result.status === "fulfilled") result.value();
    const failed = results.find((r) => r.status === "rejected");
    if (failed) say(failed.reason.message);
    by("status").textContent = failed ? "" : "answered in " + ((performance.now() - begin) / 1000).toFixed(2) + " s";
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
    view.setAttribute("aria-label", { "": "the image", pca: "PCA of its patches", attention: "attention to its patches" }[shown]);
    const context = view.getContext("2d");
    if (state.bitmap) context.drawImage(state.bitmap, 0, 0, view.width, view.height);
    if (!shown) return;
    context.fillStyle = "rgb(10 14 20 / 60%)";  // what the model does not see, and what it does not look at
    context.fillRect(0, 0, view.width, view.height);
    const [left, top, right, bottom] = state.look.box.map((x) => x * scale);
    context.imageSmoothingEnabled = shown === "attention";
    context.drawImage(patchPicture(shown), left, top, right - left, bottom - top);
  }

  async function take(file) {
    if (!file) return;
    const reader = new FileReader();
    const text = await new Promise((resolve, reject) => {
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
    ++state.turn;
    state.data = text;
    state.file = file;
    state.look = null;
    state.bitmap = await bitmapOf(file, true);
    by("drop-help").textContent = state.bitmap ? "" : file.name + " (this browser does not show it)";
    chooseLayer("image");
    draw();
    run();
  }

  const drop = by("drop");
  drop.addEventListener("click", () => by("file").click());
  drop.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    by("file").click();
  });
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") take(event.dataTransfer.files[0]);
    });
  }
  document.addEventListener("paste", (event) => take([...event.clipboardData.files].find((f) => f.type.startsWith("image/"))));
  by("file").addEventListener("change", () => { take(by("file").files[0]); by("file").value = ""; });
  by("model").addEventListener("change", takeModel);
  by("words-form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
  by("layers").addEventListener("change", draw);
  by("key-form").addEventListener("submit", (event) => { event.preventDefault(); state.key = by("key").value; listModels(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.target.tagName === "INPUT" && !/^(radio|file)$/.test(event.target.type)) return;
    const layers = { 1: "image", 2: "pca", 3: "attention" };
    if (layers[event.key] && state.look) chooseLayer(layers[event.key]);
    else if (event.key === "o") by("file").click();
    else if (event.key === "m") by("model").focus();
    else if (event.key === "w" && !by("words-form").hidden) by("words").focus();
    else return;
    event.preventDefault();
  });
  listModels();
})();
