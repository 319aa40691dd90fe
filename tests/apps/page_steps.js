// What the scripts that use a page share: page_test.cmake puts it before them. Calls `steps` with the tools below, and leaves
// what it found as text.
const testPage = async steps => {
  const found = [];
  const check = (what, holds) => found.push((holds ? 'holds: ' : 'FAILS: ') + what);
  const settle = () => new Promise(done => setTimeout(done, 300));
  const type = async text => {
    filter.value = text;
    filter.dispatchEvent(new Event('input'));
    await settle();
  };
  try {
    await settle();
    await steps({check, settle, type});
    check('nothing was fetched', performance.getEntriesByType('resource').every(entry => entry.name.startsWith('data:')));
    document.body.replaceChildren(found.join('\n') + '\nend of the page test');
  } catch (error) {
    document.body.replaceChildren('FAILS: ' + error.stack);
  }
};
