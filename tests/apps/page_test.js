// Uses a page of `vit classify data/images` as a person does.
testPage(async ({check, settle, type}) => {
  // Decoding does not hold up the browser's virtual time: it may end later than settle().
  const until = async holds => {
    for (let i = 0; i < 50 && !holds(); ++i) await settle();
  };
  const cards = () => Array.from(document.querySelectorAll('.card'));
  const names = () => cards().map(card => card.querySelector('.name').textContent);
  const press = key => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  const all = names();
  check('every image has a card', all.length === items.length && all.length > 20);
  check('cards are in the order of the inputs', all.join() === items.map(item => baseName(item.name)).join());
  const first = document.querySelector('.frame img');
  await until(() => first.complete && first.naturalWidth > 0);
  check('a thumbnail is loaded', first.naturalWidth > 32 && first.src.startsWith('data:image/webp;base64,'));

  await type('CAT_');
  check('names are filtered', names().length === 3 && names().every(name => name.startsWith('cat_')));
  await type('airplane truck');
  check('all words must be there', names().length > 0 && names().length < all.length && shown.every(item => /airplane/.test(item.haystack) && /truck/.test(item.haystack)));
  await type('frog');
  order.value = 'best';
  order.dispatchEvent(new Event('change'));
  const scores = shown.map(item => Math.max(...item.labels.filter(([name]) => name === 'frog').map(([, score]) => score), item.score * /frog/.test(item.labels[0][0])));
  check('labels are filtered and order by their own score', names()[0].startsWith('frog_') && scores.every((score, i) => i === 0 || score <= scores[i - 1]));
  check('the label of the filter is the first', cards()[0].querySelector('.label').classList.contains('match'));
  await type('no such image');
  check('nothing is said to match', !document.getElementById('nothing').hidden && cards().length === 0);
  await type('');
  order.value = 'name';
  order.dispatchEvent(new Event('change'));
  check('the filter is undone', names().length === all.length);

  document.body.focus();
  press('/');
  check('a key leads to the filter', document.activeElement === filter);
  press('ArrowDown');
  check('and down to the first card', document.activeElement === cards()[0]);
  press('ArrowRight');
  check('to the next card', document.activeElement === cards()[1]);
  press('ArrowDown');
  const at = cards().indexOf(document.activeElement);
  check('to the card below', at > 1 && cards()[at].getBoundingClientRect().top > cards()[1].getBoundingClientRect().top);
  press('End');
  check('to the last card', document.activeElement === cards()[all.length - 1]);
  document.activeElement.click();
  check('a card opens', viewer.open && document.getElementById('viewer-name').textContent === shown[all.length - 1].name);
  press('ArrowLeft');
  check('and leads to the one before', document.getElementById('viewer-name').textContent === shown[all.length - 2].name);
  viewer.close();
  viewer.dispatchEvent(new Event('close'));  // the browser's own may come after the end of its virtual time
  check('whose card has the focus then', document.activeElement === cards()[all.length - 2]);
});
