// What the scripts that use a page share: result_pages.py puts this before them, inside of one asynchronous function.
const failed = [];
const check = (what, holds) => {
  if (!holds) failed.push(what);
};
// After the events and timers that are due now.
const settle = () => new Promise(done => setTimeout(done, 0));
const until = async (what, holds) => {
  const end = performance.now() + 30000;
  while (!holds() && performance.now() < end) await new Promise(done => setTimeout(done, 10));
  check(what, holds());
};
const type = async text => {
  filter.value = text;
  filter.dispatchEvent(new Event('input'));
  await settle();
};
