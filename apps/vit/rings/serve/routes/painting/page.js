// Painting classes of pixels: the server keeps the features of the images, learns and answers with the classes of all pixels.
(() => {
  const { state, ask, say, model, has, sections } = window.vitPage;
  const by = (id) => document.getElementById("paint-" + id);

  /// Labels of pixels as begin, end, class of the runs that have one.
  function runsOf(labels) {
    const out = [];
    for (let begin = 0, end = 0; begin < labels.length; begin = end) {
      while (end < labels.length && labels[end] === labels[begin]) ++end;
      if (labels[begin] >= 0) out.push(begin, end, labels[begin]);
    }
    return out;
  }

  /// Computes the features of an image, unless the server has them.
  async function keep(of) {
    const id = model().id;
    if (of.keys[id]) return null;
    const found = await ask("page/paint/image", { model: id, image: of.data });
    of.keys[id] = found.key;
    return found;
  }

  /// Asks with the strokes of all images that have some, and the shown one.
  async function askStrokes(path, question, more) {
    const labels = question.images.map(question.labels), used = question.images.filter((of, i) => of === question.shown || labels[i].some((label) => label >= 0));
    for (let attempt = 0; ; ++attempt) {
      for (const of of used) await keep(of);
      const images = used.map((of) => ({ key: of.keys[model().id], runs: runsOf(labels[question.images.indexOf(of)]) }));
      try {
        return await ask(path, { model: model().id, images, classes: question.names.length, upsample: question.guided ? "guided" : "bilinear", ...more(used) });
      } catch (error) {
        if (error.code !== "forgotten" || attempt) throw error;
        for (const of of used) of.keys = {};
      }
    }
  }

  async function learn(question) {
    const found = await askStrokes("page/paint", question, (used) => ({ shown: used.indexOf(question.shown) }));
    const classes = new Uint8Array(question.shown.width * question.shown.height);
    for (let i = 0, at = 0; i < found.runs.length; i += 2) classes.fill(found.runs[i + 1], at, at += found.runs[i]);
    return { classes, rows: found.rows, milliseconds: found.milliseconds };
  }

  async function headFile(question) {
    const found = await askStrokes("page/paint/head", question, () => ({ labels: question.names }));
    return new Blob([Uint8Array.from(atob(found.head), (c) => c.charCodeAt(0))]);
  }

  const board = paintBoard({ keys: by("board"), learn, headFile });

  /// Puts the image of the page on the board.
  async function begin() {
    if (by("begin").disabled) return;
    const { data, file: { name } } = state, known = board.images.find((of) => of.data === data);
    by("begin").disabled = true;
    try {
      if (known) {
        board.show(known);
      } else {
        const of = { name, data, keys: {} }, found = await keep(of);
        const bytes = Uint8Array.from(atob(found.picture), (c) => c.charCodeAt(0));
        const canvas = await createImageBitmap(new Blob([bytes], { type: "image/webp" }));
        board.add(Object.assign(of, { canvas, width: canvas.width, height: canvas.height, full: [found.width, found.height] }));
      }
      by("board").hidden = false;
      by("strokes").focus();
    } catch (error) {
      say(name + " cannot be painted on: " + error.message);
    }
    by("begin").disabled = false;
  }

  by("begin").addEventListener("click", begin);
  sections.push({
    isOn: () => false,  // it takes nothing that is done on the image above
    draw() {},
    press: () => false,
    forget() { by("begin").disabled = false; },
    takeModel() {
      by("section").hidden = !has("paint");
      board.changed();  // the features are another model's
    },
    keys: { p: () => !by("section").hidden && (begin(), true) },
  });
})();
