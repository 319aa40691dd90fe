// Steps on the page of vit fit --paint, as a person would take them; `failed` collects what is not as it should be.
const failed = [];
const check = (holds, what) => { if (!holds) failed.push(what); };
const canvas = document.getElementById("paint-strokes");
const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
canvas.setPointerCapture = () => {};
const point = (kind, x, y, more = {}) => {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent(kind, {
    pointerId: 1, bubbles: true, clientX: box.left + x * box.width / canvas.width, clientY: box.top + y * box.height / canvas.height, ...more}));
};
const drag = async (fromX, fromY, toX, toY) => {
  point("pointerdown", fromX, fromY);
  point("pointermove", toX, toY);
  point("pointerup", toX, toY);
  await frame();
};
const press = async (key, target = document.body) => {
  target.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  await frame();
};
const status = () => document.getElementById("paint-status").textContent;
const learned = async (holds) => { for (let i = 0; i < 200 && !holds(status()); ++i) await new Promise((done) => setTimeout(done, 50)); };

for (let i = 0; i < 100 && document.body.dataset.ready !== "yes"; ++i) await new Promise((done) => setTimeout(done, 50));
check(document.body.dataset.ready === "yes", "the page is not ready");
check(document.getElementById("paint-save-head").disabled, "a head without strokes");
await press("1");
check(document.querySelector("[name=brush]:checked").value === "0", "key 1 does not choose the rest");
await drag(4, 4, canvas.width - 4, 4);
check(status().startsWith("Paint the other class"), `one class: ${status()}`);
await press("2");
const middle = [canvas.width * 0.5, canvas.height * 0.5];
await drag(middle[0] - 12, middle[1], middle[0] + 12, middle[1]);
check(/% marked/.test(status()), `two classes: ${status()}`);
check(!document.getElementById("paint-save-head").disabled, "no head after two strokes");
const at = (x, y) => board.classes()[Math.floor(y) * board.shown().width + Math.floor(x)];
check(at(middle[0], middle[1]) === 1, "the stroke's own pixels are not marked");
check(at(8, 4) === 0, "the rest's own pixels are marked");
await press("z");
check(status().startsWith("Paint the other class"), `undo: ${status()}`);
canvas.focus();
await press("ArrowDown", canvas);
await press(" ", canvas);
check(/% marked/.test(status()), `painted by keys: ${status()}`);
await press("m");
const drawn = document.getElementById("paint-classes").getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
check(drawn.every((value) => value === 0), "key m does not hide the mask");
await press("m");
const addressOf = (blob) => new Promise((done) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.readAsDataURL(blob);
});
document.body.dataset.head = await addressOf(await board.head());
document.body.dataset.strokes = await addressOf(await board.strokesFile());
document.body.dataset.shown = status();
// a third class, which the brush of a pen paints
document.getElementById("paint-add").click();
check(document.querySelector("[name=brush]:checked").value === "2", "a new class is not chosen");
const name = document.getElementById("paint-name");
name.value = "third";
name.dispatchEvent(new Event("input", {bubbles: true}));
await drag(4, canvas.height - 4, canvas.width - 4, canvas.height - 4);
await learned((text) => text.includes("third"));
check(/% marked, .*% third/.test(status()), `three classes: ${status()}`);
check(at(8, canvas.height - 4) === 2, "the third class's own pixels are not marked");
document.body.dataset.third = await addressOf(await board.head());
// what was found goes with its image
const saves = ["paint-save-mask", "paint-save-head"].map((id) => document.getElementById(id));
check(saves.every((button) => !button.disabled), "nothing to save after three strokes");
board.show(board.shown());
check(saves.every((button) => button.disabled) && !board.classes(), "classes of the image before can be saved");
await frame();
check(saves.every((button) => !button.disabled), "nothing to save once the image is shown");
// one pointer paints at a time, and by its first button
document.getElementById("paint-clear").click();
const painted = () => board.shown().labels.filter((label) => label >= 0).length;
point("pointerdown", ...middle, {button: 2});
point("pointermove", middle[0] + 9, middle[1]);
point("pointerup", ...middle, {button: 2});
check(painted() === 0, "the right button paints");
const left = [canvas.width * 0.1, middle[1]], right = [canvas.width * 0.9, middle[1]];
point("pointerdown", ...left);
const dab = painted();
point("pointerdown", ...right, {pointerId: 2});
point("pointermove", ...left);
point("pointermove", ...right, {pointerId: 2});
point("pointercancel", ...right, {pointerId: 2});
check(dab > 0 && painted() === dab, "a second finger paints");
point("pointermove", ...middle);
check(painted() > dab, "the first finger stops with the second one");
point("pointerup", ...middle);
await frame();
