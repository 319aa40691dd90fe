"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const state = { models: [], data: "", bitmap: null, look: null, key: "", turn: 0 };

  const say = (text) => {
    by("notice").textContent = text;
    by("notice").hidden = !text;
  };

  async function ask(path, body) {
    const headers = {};
    if (state.key) headers.Authorization = "Bearer " + state.key;
    if (body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
    if (answer.status === 401) by("key-form").hidden = false;
    const found = await answer.json();
    if (!answer.ok) throw new Error((found.error && found.error.message) || "the server answered " + answer.status);
    return found;
  }

  const model = () => state.models[by("model").selectedIndex];

  async function listModels() {
    try {
      state.models = (await ask("v1/models")).data;
    } catch (error) {
      say(error.message);
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
    const parts = [m.architecture, m.embedding_dimensions + " numbers a vector"];
    if (m.classes) parts.push(m.classes + " classes");
    by("facts").textContent = parts.filter(Boolean).join(", ");
    by("words-form").hidden = !m.modalities.includes("text");
    state.look = null;
    run();
  }

  function showLabels(list, items) {
    by(list).replaceChildren(...items.map(({ name, share, text }) => {
      const line = document.createElement("li");
      line.style.setProperty("--share", Math.round(100 * Math.max(0, Math.min(1, share))) + "%");
      const label = document.createElement("span");
      label.textContent = name;
      const value = document.createElement("span");
      value.textContent = text;
      line.append(label, value);
      return line;
    }));
  }

  const words = () => [...new Set(by("words").value.split("\n").map((w) => w.trim()).filter(Boolean))];

  async function classify() {
    const m = model();
    const own = m.modalities.includes("text") ? words() : [];
    if (!own.length && !m.classes) return showLabels("labels", []);
    const body = { model: m.id, input: [state.data], modality: "image", top_k: 10 };
    if (own.length) Object.assign(body, { candidate_labels: own, template: by("template").value });
    const found = await ask("v1/classify", body);
    showLabels("labels", found.data[0].labels.map((l) => ({ name: l.label, share: l.score, text: (100 * l.score).toFixed(2) + " %" })));
  }

  async function look() {
    state.look = await ask("page/look", { model: model().id, image: state.data });
    by("attention-choice").hidden = !state.look.attention.length;
    if (by("attention-choice").hidden && layer() === "attention") chooseLayer("image");
  }

  async function nearest() {
    const found = await ask("page/nearest", { model: model().id, image: state.data });
    by("nearest-section").hidden = !found.results.length;
    showLabels("nearest", found.results.map((r) => ({ name: r.file, share: r.score, text: r.score.toFixed(4) })));
  }

  async function run() {
    if (!state.data || !model()) return;
    const turn = ++state.turn;
    say("");
    const results = await Promise.allSettled([classify(), look(), nearest()]);
    if (turn !== state.turn) return;
    const failed = results.find((r) => r.status === "rejected");
    if (failed) say(failed.reason.message);
    draw();
  }

  const layer = () => document.querySelector("input[name=layer]:checked").value;
  function chooseLayer(name) {
    const input = document.querySelector("input[name=layer][value=" + name + "]");
    if (input.closest("[hidden]")) return;
    input.checked = true;
    draw();
  }

  /// The patches as a small picture, one pixel each.
  function patchPicture(kind) {
    const { rows, columns, pca, attention } = state.look;
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    const pixels = new ImageData(columns, rows);
    const most = Math.max(...attention, 1e-12);
    for (let i = 0; i < rows * columns; ++i) {
      const heat = kind === "attention" ? attention[i] / most : 0;
      const color = kind === "pca" ? [0, 1, 2].map((k) => 255 * pca[3 * i + k]) : [255 * heat, 90 * heat, 60 * (1 - heat)];
      pixels.data.set([...color, 255], 4 * i);
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }

  function draw() {
    const view = by("view");
    const shown = state.look && layer() !== "image" ? patchPicture(layer()) : null;
    const size = state.bitmap || (state.look && { width: state.look.imageWidth, height: state.look.imageHeight });
    view.hidden = !size;
    by("drop-help").hidden = Boolean(state.bitmap) || Boolean(shown);
    by("layers").hidden = !state.look;
    if (!size) return;
    const scale = Math.min(1, 1024 / Math.max(size.width, size.height));
    view.width = Math.max(1, Math.round(size.width * scale));
    view.height = Math.max(1, Math.round(size.height * scale));
    view.setAttribute("aria-label", layer() === "image" ? "the image" : layer() + " of the image");
    const context = view.getContext("2d");
    if (state.bitmap) context.drawImage(state.bitmap, 0, 0, view.width, view.height);
    if (!shown) return;
    context.globalAlpha = layer() === "attention" && state.bitmap ? 0.7 : 1;
    context.imageSmoothingEnabled = false;
    context.drawImage(shown, 0, 0, view.width, view.height);
    context.globalAlpha = 1;
  }

  async function take(file) {
    if (!file) return;
    const reader = new FileReader();
    const text = await new Promise((resolve, reject) => {
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
    state.data = text;
    state.look = null;
    state.bitmap = await createImageBitmap(file).catch(() => null);
    by("drop-help").textContent = state.bitmap ? "" : file.name + " (this browser does not show it)";
    chooseLayer("image");
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
    if (event.target.tagName === "INPUT" && event.target.type !== "radio") return;
    const layers = { 1: "image", 2: "pca", 3: "attention" };
    if (layers[event.key] && state.look) chooseLayer(layers[event.key]);
    else if (event.key === "o") by("file").click();
    else if (event.key === "m") by("model").focus();
    else if (event.key === "w") by("words").focus();
    else return;
    event.preventDefault();
  });
  listModels();
})();
