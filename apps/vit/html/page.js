'use strict';
// Lists the images of the page: filters them, orders them, opens them. All texts become text nodes, never markup.
const data = JSON.parse(document.getElementById('data').textContent);
const thumbnails = document.getElementById('thumbnails').textContent;  // base64, one behind the other
const filter = document.getElementById('filter');
const order = document.getElementById('order');
const viewer = document.getElementById('viewer');
const more = document.getElementById('more');
const shownLabels = 3;
const cardsAtOnce = 240;  // more follow where the window comes near their end

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function scoreText(score) {
  return data.scores === 'probability' ? (100 * score).toFixed(1) + ' %' : score.toFixed(4);
}

function source(item) {
  const [begin, length] = item.thumbnail;
  return 'data:image/webp;base64,' + thumbnails.substr(begin, length);
}

function labelRow(tag, [name, score]) {
  const row = element(tag, 'label');
  const bar = row.appendChild(element('i'));
  bar.style.width = 100 * Math.min(1, Math.max(0, score)) + '%';
  row.appendChild(element('span', '', name));
  row.appendChild(element('span', '', scoreText(score)));
  return row;
}

// An image is decoded while it is near the window, and forgotten when it is far away.
const observer = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries) {
    if (isIntersecting) target.src = source(target.item);
    else target.removeAttribute('src');
  }
}, {rootMargin: '800px'});

function picture(item) {
  const image = element('img');
  image.alt = '';
  image.loading = 'lazy';
  image.decoding = 'async';
  image.item = item;
  observer.observe(image);
  return image;
}

// The end of each name, from a slash on, that no other name has: folders distinguish files of one name.
const shortNames = new Map();
function nameShortly(names) {
  const ending = (name, parts) => name.split('/').slice(-parts).join('/') || name;
  for (let parts = 1, left = [...new Set(names)]; left.length; ++parts) {
    const counts = new Map();
    for (const name of left) counts.set(ending(name, parts), (counts.get(ending(name, parts)) || 0) + 1);
    left = left.filter(name => {
      const isWhole = parts >= name.split('/').length;
      if (isWhole || counts.get(ending(name, parts)) === 1) shortNames.set(name, ending(name, parts));
      return !shortNames.has(name);
    });
  }
}

function makeCard(item) {
  const card = element('button', 'card');
  card.type = 'button';
  card.title = item.name;
  const frame = card.appendChild(element('span', 'frame'));
  if (item.thumbnail) frame.appendChild(picture(item));
  else frame.appendChild(element('span', 'missing', item.missing));
  if (item.score !== undefined && !item.labels) frame.appendChild(element('span', 'badge', scoreText(item.score)));
  const text = card.appendChild(element('span', 'text'));
  text.appendChild(element('span', 'name', shortNames.get(item.name)));
  if (item.note) text.appendChild(element('span', 'note', item.note));
  item.rows = text.appendChild(element('span', 'labels'));
  card.addEventListener('click', () => openViewer(item));
  item.card = card;
  item.place = element('li');
  item.place.appendChild(card);
}

// The place of an item in the list; made when it is first shown.
function placeOf(item) {
  if (!item.place) makeCard(item);
  showLabels(item);
  return item.place;
}

let words = [];  // of the filter
function isMatch(text) {
  return words.some(word => text.toLowerCase().includes(word));
}

// The labels that the filter speaks of come first, however improbable.
function showLabels(item) {
  if (!item.labels || item.words === words) return;
  item.words = words;
  const matches = item.labels.filter(([name]) => isMatch(name));
  const others = item.labels.filter(([name]) => !isMatch(name));
  const rows = matches.concat(others).slice(0, Math.max(shownLabels, Math.min(matches.length, 8))).map(label => labelRow('span', label));
  for (let i = 0; i < matches.length && i < rows.length; ++i) rows[i].classList.add('match');
  item.rows.replaceChildren(...rows);
}

const items = [];
const sections = data.sections.map(section => {
  const box = element('section');
  if (section.title || section.leads) {
    const head = box.appendChild(element('div', 'section-head'));
    const leads = (section.leads || []).filter(lead => lead.thumbnail);
    if (leads.length) {
      const row = head.appendChild(element('div', 'leads'));
      for (const lead of leads) row.appendChild(picture(lead));
    }
    const text = head.appendChild(element('div'));
    text.appendChild(element('h2', '', section.title || ''));
    if (section.note) text.appendChild(element('p', '', section.note));
  }
  const list = box.appendChild(element('ul', 'cards' + (data.large ? ' wide' : '')));
  list.setAttribute('role', 'list');
  for (const item of section.items) {
    item.index = items.length;
    item.haystack = (item.name + '\n' + (item.labels || []).map(([name]) => name).join('\n')).toLowerCase();
    items.push(item);
  }
  return {box, list, items: section.items, shown: [], count: 0};
});
nameShortly(items.map(item => item.name));
document.getElementById('sections').append(...sections.map(section => section.box));

// What an image is ordered by: the best of the labels that the filter speaks of, or its own score.
function scoreOf(item) {
  const matches = (item.labels || []).filter(([name]) => isMatch(name)).map(([, score]) => score);
  return matches.length ? Math.max(...matches) : item.score === undefined ? -Infinity : item.score;
}

const collator = new Intl.Collator(undefined, {numeric: true});
const orders = {
  given: ['Given order', (a, b) => a.index - b.index],
  best: ['Highest score first', (a, b) => b.current - a.current || a.index - b.index],
  worst: ['Lowest score first', (a, b) => a.current - b.current || a.index - b.index],
  name: ['By name', (a, b) => collator.compare(a.name, b.name) || a.index - b.index],
};
const hasScores = items.some(item => item.score !== undefined);
for (const [key, [text]] of Object.entries(orders)) {
  if (!hasScores && (key === 'best' || key === 'worst')) continue;
  if (data.sorted && key === 'given') continue;
  order.add(new Option(text, key));
}

if (!items.some(item => item.labels)) {
  filter.placeholder = 'Filter by name';
  filter.setAttribute('aria-label', filter.placeholder);
}

let shown = items;  // by the filter, in the order on the page
let limit = 0;      // cards that are there, of these

// Adds cards until there are `count`, or all.
function grow(count) {
  limit = Math.min(Math.max(limit, count), shown.length);
  let left = limit;
  for (const section of sections) {
    const wanted = Math.min(left, section.shown.length);
    if (wanted > section.count) section.list.append(...section.shown.slice(section.count, wanted).map(placeOf));
    section.count = Math.max(section.count, wanted);
    section.box.hidden = section.count === 0;
    left -= wanted;
  }
  more.hidden = limit === shown.length;
}

const growth = new IntersectionObserver(entries => {
  if (!entries.some(entry => entry.isIntersecting)) return;
  grow(limit + cardsAtOnce);
  growth.unobserve(more);  // to be told again, should it still be near
  growth.observe(more);
}, {rootMargin: '1500px'});
growth.observe(more);

function update() {
  words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of sections) {
    section.shown = section.items.filter(item => words.every(word => item.haystack.includes(word)));
    for (const item of section.shown) item.current = scoreOf(item);
    section.shown.sort(orders[order.value][1]);
    section.list.replaceChildren();
    section.count = 0;
  }
  shown = sections.flatMap(section => section.shown);
  limit = 0;
  grow(cardsAtOnce);
  document.getElementById('count').textContent =
      shown.length === items.length ? items.length + (items.length === 1 ? ' image' : ' images') : shown.length + ' of ' + items.length;
  document.getElementById('nothing').hidden = shown.length > 0 || items.length === 0;
}

function focusOn(item) {
  grow(shown.indexOf(item) + 1);
  item.card.focus();
  item.card.scrollIntoView({block: 'nearest'});
}

let pending = 0;
filter.addEventListener('input', () => {
  clearTimeout(pending);
  pending = setTimeout(update, items.length > 2000 ? 150 : 0);
});
order.addEventListener('change', update);

let current = null;
function openViewer(item) {
  current = item;
  const image = document.getElementById('viewer-image');
  image.hidden = !item.thumbnail;
  if (item.thumbnail) image.src = source(item);
  document.getElementById('viewer-missing').textContent = item.thumbnail ? '' : item.missing;
  document.getElementById('viewer-name').textContent = item.name;
  const score = item.score !== undefined && !item.labels ? scoreText(item.score) : '';
  document.getElementById('viewer-note').textContent = [score, item.note].filter(Boolean).join('\n');
  document.getElementById('viewer-labels').replaceChildren(...(item.labels || []).map(label => labelRow('li', label)));
  const link = document.getElementById('viewer-link');
  link.hidden = !item.link;
  if (item.link) link.href = item.link;
  if (!viewer.open) viewer.showModal();
}

function step(by) {
  const next = shown[shown.indexOf(current) + by];
  if (next) openViewer(next);
}
document.getElementById('previous').addEventListener('click', () => step(-1));
document.getElementById('next').addEventListener('click', () => step(1));
document.getElementById('close').addEventListener('click', () => viewer.close());
viewer.addEventListener('click', event => {
  if (event.target === viewer) viewer.close();
});
viewer.addEventListener('close', () => focusOn(current));

// The card above or below in the same column.
function vertical(from, by) {
  const {left, top} = from.card.getBoundingClientRect();
  for (let i = shown.indexOf(from) + by; shown[i]; i += by) {
    grow(i + 1);
    const at = shown[i].card.getBoundingClientRect();
    if (by * (at.top - top) > 1 && Math.abs(at.left - left) < 2) return shown[i];
  }
  return null;
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (viewer.open) {
    if (event.key === 'ArrowLeft') step(-1);
    if (event.key === 'ArrowRight') step(1);
    return;
  }
  if (event.target === filter) {
    if (event.key === 'Escape') {
      filter.value = '';
      update();
    } else if ((event.key === 'ArrowDown' || event.key === 'Enter') && shown.length) {
      focusOn(shown[0]);
      event.preventDefault();
    }
    return;
  }
  if (event.key === '/' && event.target !== order) {
    filter.focus();
    filter.select();
    event.preventDefault();
    return;
  }
  const at = shown.findIndex(item => item.card === event.target);
  if (at < 0) return;
  const moves = {
    ArrowLeft: () => shown[at - 1],
    ArrowRight: () => shown[at + 1],
    ArrowUp: () => vertical(shown[at], -1),
    ArrowDown: () => vertical(shown[at], 1),
    Home: () => shown[0],
    End: () => shown[shown.length - 1],
  };
  const target = moves[event.key] && moves[event.key]();
  if (!target) return;
  focusOn(target);
  event.preventDefault();
});

document.getElementById('facts').textContent = data.facts.join(' \u00b7 ');
const leftOut = document.getElementById('left-out');
leftOut.hidden = !data.left_out;
leftOut.textContent = data.left_out;
viewer.classList.toggle('large', Boolean(data.large));
update();
