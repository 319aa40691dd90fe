// Uses a page of several sections, of `vit duplicates` or `vit search --each`, as list_steps.js does one of `vit classify`.
const boxes = () => Array.from(document.querySelectorAll('main section')).filter(box => !box.hidden);
const cards = box => Array.from((box || document).querySelectorAll('.card'));
const names = box => cards(box).map(card => card.querySelector('.name').textContent);
const scores = box => cards(box).map(card => Number(card.querySelector('.badge').textContent));
const choose = async key => {
  order.value = key;
  order.dispatchEvent(new Event('change'));
  await settle();
};
const all = names();
check('there are several sections, each with a title and cards',
      boxes().length > 1 && boxes().every(box => box.querySelector('h2').textContent && cards(box).length > 0));
check('every image has a card and a score', all.length === items.length && scores().every(score => score > 0 && score <= 1.0001));

await choose('worst');
const rising = box => scores(box).every((score, i, row) => i === 0 || score >= row[i - 1]);
check('the lowest score comes first in each section', boxes().every(rising) && names().join() !== all.join());
await choose('best');
check('the highest score comes first in each section', boxes().every(box => scores(box).every((score, i, row) => i === 0 || score <= row[i - 1])));
await choose('name');
const sorted = box => names(box).every((name, i, row) => i === 0 || row[i - 1] <= name);
check('names are in order in each section', boxes().every(sorted));
await choose('given');
check('the given order comes back', names().join() === all.join());

const wanted = all[0].split('_')[0];
await type(wanted);
const kept = all.filter(name => name.includes(wanted)).length;
check('names are filtered in all sections', names().length === kept && kept < all.length && names().every(name => name.includes(wanted)));
check('sections without a match are gone', boxes().length < data.sections.length && boxes().every(box => cards(box).length > 0));
check('what is left is counted', document.getElementById('count').textContent === kept + ' of ' + all.length);
await type('');
check('the filter is undone', names().join() === all.join());

const last = cards().length - 1;
cards()[last].click();
check('a card opens with its score', viewer.open && document.getElementById('viewer-name').textContent === shown[last].name &&
                                     document.getElementById('viewer-note').textContent.startsWith(scores()[last].toFixed(4)));
document.getElementById('previous').click();
check('and leads to the one before', document.getElementById('viewer-name').textContent === shown[last - 1].name);
check('the page is no wider than its window', document.documentElement.scrollWidth <= window.innerWidth);
