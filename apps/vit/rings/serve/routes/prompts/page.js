"use strict";
/// Phrases, points and boxes: what they find is drawn over the image, and listed.
(() => {
  const page = window.vitPage, by = page.by;
  const COLORS = ["#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000", "#e632e6", "#2f4f9f"];
  const fresh = () => ({ objects: [{ points: [], box: null }], examples: [], order: [], found: { objects: [], classes: [] }, cross: null, corner: null, drag: null, over: -1 });
  const turns = { objects: 0, classes: 0 };  // of what is asked for each list
  let s = fresh();

  const tasks = () => (page.model() && page.model().tasks) || [];
  const takes = (what) => tasks().includes(what);
  const isOn = () => (takes("phrases") || takes("objects")) && Boolean(page.state.bitmap);
  const mark = () => document.querySelector("input[name=mark]:checked").value;
  const all = () => [...s.found.objects, ...s.found.classes];
  const phrases = () => [...new Set(by("phrases").value.split(",").map((p) => p.trim()).filter(Boolean))];

  // ------------------------------------------------------------------------------------------- asking the server

  async function pictureOf(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    return createImageBitmap(new Blob([bytes], { type: "image/png" }));
  }

  const request = (more) => page.ask("v1/segment", { model: page.model().id, input: [page.state.data], modality: "image", ...more });

  /// The results of `more` take the place of `list`, unless another question came since.
  async function find(list, more) {
    const own = ++turns[list], begin = performance.now();
    page.say("");
    page.status("looking for it");
    try {
      const answer = (await request(more)).data[0];
      const segments = await Promise.all(answer.segments.map(async (one) => ({ ...one, picture: await pictureOf(one.mask) })));
      if (own !== turns[list]) return;
      s.found[list] = segments.map((one) => ({ ...one, list }));
      page.status("answered in " + ((performance.now() - begin) / 1000).toFixed(2) + " s");
      show();
    } catch (error) {
      if (own !== turns[list]) return;
      page.status("");
      page.say("Not found: " + error.message);
    }
  }

  /// Of `list` nothing is asked any more: neither what was found is shown, nor an answer that is still to come.
  function withdraw(list) {
    ++turns[list];
    s.found[list] = [];
    page.status("");
    show();
  }

  const asked = () => s.objects.filter((o) => o.points.length || o.box);

  function objectsBody() {
    return { objects: asked().map((o) => ({ points: o.points, box: o.box, multimask: o.points.length + (o.box ? 1 : 0) < 2 })) };
  }

  function classesBody() {
    const labels = phrases(), body = { threshold: Number(by("threshold").value) };
    if (labels.length) body.classes = labels;
    if (s.examples.length) body.boxes = s.examples.map((e) => ({ ...e, label: labels.length > 1 ? labels[0] : "" }));
    return body;
  }

  const findObjects = () => (asked().length ? find("objects", objectsBody()) : withdraw("objects"));
  const findClasses = () => (phrases().length || s.examples.length ? find("classes", classesBody()) : withdraw("classes"));

  async function save() {
    const parts = [];
    if (asked().length) parts.push(objectsBody());
    if (phrases().length || s.examples.length) parts.push(classesBody());
    if (!parts.length) return page.say("Nothing to save: ask first.");
    try {
      const answers = await Promise.all(parts.map((body) => request({ ...body, format: "coco" })));
      const name = page.state.file.name.replace(/\.[^.]*$/, "");
      const list = answers.flatMap((a) => a.data[0].segments).map((one) => ({ image_id: name, file_name: page.state.file.name, category_id: one.index, category: one.label, segmentation: one.segmentation,
        bbox: [one.box[0], one.box[1], one.box[2] - one.box[0], one.box[3] - one.box[1]], area: one.area, iscrowd: 0, score: one.score }));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(list)], { type: "application/json" }));
      link.download = name + ".json";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      page.say("Not saved: " + error.message);
    }
  }

  // ---------------------------------------------------------------------------------------------------- showing

  function show() {
    const list = all();
    by("no-found").hidden = list.length > 0;
    by("no-found").textContent = s.order.length || phrases().length ? "Nothing found: a lower score finds more." : "Nothing is asked yet.";
    page.showLabels("found", list.map((one) => ({ name: one.label === "visual" ? "like the box" : one.label, share: one.score, text: one.score.toFixed(3) })));
    [...by("found").children].forEach((line, i) => {
      const color = document.createElement("i");
      color.style.background = COLORS[i % COLORS.length];
      line.prepend(color);
      for (const [event, over] of [["pointerenter", i], ["pointerleave", -1]]) line.addEventListener(event, () => { s.over = over; page.draw(); });
    });
    page.draw();
  }

  function drawMask(context, picture, color, strength) {
    const { width, height } = context.canvas, canvas = new OffscreenCanvas(width, height), c = canvas.getContext("2d");
    c.drawImage(picture, 0, 0, width, height);
    const pixels = c.getImageData(0, 0, width, height), rgb = [1, 3, 5].map((k) => parseInt(color.slice(k, k + 2), 16));
    for (let i = 0; i < pixels.data.length; i += 4) {
      pixels.data[i + 3] = strength * pixels.data[i];
      for (let k = 0; k < 3; ++k) pixels.data[i + k] = rgb[k];
    }
    c.putImageData(pixels, 0, 0);
    context.drawImage(canvas, 0, 0);
  }

  function drawBox(context, [x0, y0, x1, y1], scale, color, dashed) {
    context.setLineDash(dashed ? [6, 4] : []);
    for (const [style, width] of [["#000", 4], [color, 2]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.strokeRect(x0 * scale, y0 * scale, (x1 - x0) * scale, (y1 - y0) * scale);
    }
    context.setLineDash([]);
  }

  function drawPoint(context, [x, y, positive], scale) {
    context.beginPath();
    context.arc(x * scale, y * scale, 6, 0, 2 * Math.PI);
    context.fillStyle = positive ? "#2ecc40" : "#ff4136";
    context.strokeStyle = "#fff";
    context.lineWidth = 2;
    context.fill();
    context.stroke();
  }

  function drawCross(context, { x, y }, scale) {
    for (const [style, width] of [["#000", 3], ["#fff", 1]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x * scale - 12, y * scale);
      context.lineTo(x * scale + 12, y * scale);
      context.moveTo(x * scale, y * scale - 12);
      context.lineTo(x * scale, y * scale + 12);
      context.stroke();
    }
  }

  function draw(context, scale) {
    by("drop").classList.toggle("marks", isOn());
    if (!isOn()) return;
    all().forEach((one, i) => drawMask(context, one.picture, COLORS[i % COLORS.length], s.over < 0 || s.over === i ? 0.55 : 0.12));
    for (const one of s.found.classes) drawBox(context, one.box, scale, COLORS[all().indexOf(one) % COLORS.length], false);
    for (const o of s.objects) {
      if (o.box) drawBox(context, o.box, scale, "#fff", true);
      for (const point of o.points) drawPoint(context, point, scale);
    }
    for (const e of s.examples) drawBox(context, e.box, scale, e.positive ? "#2ecc40" : "#ff4136", true);
    if (s.drag) drawBox(context, s.drag, scale, "#fff", true);
    if (s.cross) drawCross(context, s.cross, scale);
  }

  // ---------------------------------------------------------------------------------------------------- marking

  const object = () => s.objects[s.objects.length - 1];
  const isBox = () => !["point", "outside"].includes(mark());

  /// A point, or the two corners of a box, in pixels of the image.
  function place(from, to) {
    const [x0, x1] = [from.x, to.x].sort((a, b) => a - b), [y0, y1] = [from.y, to.y].sort((a, b) => a - b);
    if (!isBox()) {
      object().points.push([to.x, to.y, mark() === "point" ? 1 : 0]);
      s.order.push("point");
      return findObjects();
    }
    if (!(x1 - x0 >= 1 && y1 - y0 >= 1)) return page.say("A box is drawn from one corner to the other.");
    page.say("");
    if (mark() === "box") {
      if (object().box) s.objects.push({ points: [], box: null });
      object().box = [x0, y0, x1, y1];
      s.order.push("box");
      return findObjects();
    }
    s.examples.push({ box: [x0, y0, x1, y1], positive: mark() === "like" });
    s.order.push("example");
    findClasses();
  }

  function undo() {
    const last = s.order.pop();
    if (!last) return;
    if (last === "example") {
      s.examples.pop();
      return findClasses();
    }
    while (s.objects.length > 1 && !object().points.length && !object().box) s.objects.pop();
    last === "point" ? object().points.pop() : (object().box = null);
    findObjects();
  }

  function clear() {
    s = fresh();
    for (const list in turns) withdraw(list);
  }

  /// Where an event is, in pixels of the image.
  function at(event) {
    const frame = by("view").getBoundingClientRect(), size = page.state.bitmap;
    const inside = (value, most) => Math.max(0, Math.min(most, value));
    return { x: inside((event.clientX - frame.left) / frame.width * size.width, size.width), y: inside((event.clientY - frame.top) / frame.height * size.height, size.height) };
  }

  const view = by("view");
  let start = null;  // {pointer, x, y}: where the pointer that marks went down
  const isMarking = (event) => start && start.pointer === event.pointerId;
  view.addEventListener("pointerdown", (event) => {
    if (!isOn() || start || event.button !== 0) return;  // one finger at a time
    event.preventDefault();
    by("drop").focus({ preventScroll: true });
    view.setPointerCapture(event.pointerId);
    start = { pointer: event.pointerId, ...at(event) };
  });
  view.addEventListener("pointermove", (event) => {
    if (!isMarking(event) || !isBox()) return;
    const now = at(event);
    s.drag = [Math.min(start.x, now.x), Math.min(start.y, now.y), Math.max(start.x, now.x), Math.max(start.y, now.y)];
    page.draw();
  });
  view.addEventListener("pointerup", (event) => {
    if (!isMarking(event)) return;
    const from = start;
    start = s.drag = null;
    page.draw();
    place(from, at(event));
  });
  for (const kind of ["pointercancel", "lostpointercapture"]) view.addEventListener(kind, (event) => {
    if (!isMarking(event)) return;
    start = s.drag = null;
    page.draw();
  });

  function press(event) {
    const size = page.state.bitmap, step = (event.shiftKey ? 1 : 10) * Math.max(size.width, size.height) / 500;
    const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (!move && event.key !== "Enter" && event.key !== " " && event.key !== "Escape") return false;
    s.cross ||= { x: size.width / 2, y: size.height / 2 };
    if (move) {
      s.cross = { x: Math.max(0, Math.min(size.width, s.cross.x + move[0])), y: Math.max(0, Math.min(size.height, s.cross.y + move[1])) };
      if (s.corner) s.drag = [Math.min(s.corner.x, s.cross.x), Math.min(s.corner.y, s.cross.y), Math.max(s.corner.x, s.cross.x), Math.max(s.corner.y, s.cross.y)];
    } else if (event.key === "Escape") {
      s.cross = s.corner = s.drag = null;
    } else if (!isBox() || s.corner) {
      const from = s.corner || s.cross;
      s.corner = s.drag = null;
      place(from, s.cross);
    } else {
      s.corner = { ...s.cross };
    }
    page.draw();
    return true;
  }

  by("prompts-form").addEventListener("submit", (event) => { event.preventDefault(); findClasses(); });
  by("undo").addEventListener("click", undo);
  by("clear").addEventListener("click", clear);
  by("save").addEventListener("click", save);
  by("next-object").addEventListener("click", () => { if (object().points.length || object().box) s.objects.push({ points: [], box: null }); });

  page.sections.push({
    isOn,
    draw,
    press,
    forget: clear,  // of another image nothing is known
    takeModel() {
      by("prompts-section").hidden = !(takes("phrases") || takes("objects"));
      by("prompts-form").hidden = !takes("phrases");
      for (const what of ["objects", "phrases"]) for (const one of document.querySelectorAll(".of-" + what)) one.hidden = !takes(what);
      const first = document.querySelector("#marks label:not([hidden]) input");
      if (first && document.querySelector("input[name=mark]:checked").closest("[hidden]")) first.checked = true;
      for (const list in turns) withdraw(list);
    },
    keys: { f: () => !by("prompts-section").hidden && !by("prompts-form").hidden && (by("phrases").focus(), true), u: () => isOn() && (undo(), true) },
  });
})();
