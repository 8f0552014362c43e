// Puts the page together: records, stream, views.
import {followActions} from './actions.js';
import {followCopies} from './copy.js';
import {details} from './details.js';
import {h, patchChildren, throttled} from './dom.js';
import {countAges, number} from './format.js';
import {followLogs} from './logs.js';
import {overview} from './overview.js';
import {followPointer} from './pointer.js';
import {problemsOf} from './problems.js';
import {Records, RESOURCES} from './records.js';
import {follow, go, parameters, target, view} from './route.js';
import {Stream} from './stream.js';
import {Table} from './table.js';
import {LISTS} from './views.js';

const OVERVIEW = {name: 'Overview', topic: null};
const VIEWS = {overview: OVERVIEW, ...LISTS};
const LIMIT = 10000;
const SHOW_EVERY = 100;

const main = document.getElementById('main');
const banner = document.getElementById('banner');
const nav = document.getElementById('views');

const panel = h('div', {class: 'panel'});
let table = null; // of the list that is shown
let shownView = null;
let isOpen = true;
let isSilent = false;

const records = new Records(() => show());

const viewName = () => (Object.hasOwn(VIEWS, parameters().get('view')) ? parameters().get('view') : 'overview');

function messages() {
  const {topic} = VIEWS[viewName()];
  const partial = (topic ? [topic] : RESOURCES).filter((name) => records.partial.has(name));
  const missing = records.status && !records.status.is_complete;
  return [
    !isOpen && h('p', {class: 'bad'}, isSilent ? 'The server has been silent for 25 s: what you see is getting old. Trying again…'
      : 'The connection is lost: what you see is getting old. Trying again…'),
    isOpen && missing && h('p', {class: 'bad'}, 'ZooKeeper cannot be reached, or its records are not read yet.'),
    partial.length > 0 && h('p', {class: 'wait'}, `Only the first ${number(LIMIT)} ${partial.join(', ')} are shown; there are more.`),
  ].filter(Boolean);
}

function showNavigation(current) {
  const bad = problemsOf(records).filter(({severity}) => severity === 'bad').length;
  patchChildren(nav, Object.entries(VIEWS).map(([name, {name: title}]) =>
    h('a', {href: name === 'overview' ? './' : view(name), 'aria-current': name === current ? 'page' : null}, title,
      name === 'overview' && bad > 0 && h('span', {class: 'alarm', title: `${bad} to look at first`}, bad))));
}

// Of a view whose list has entries of several topics.
const TOPICS_OF = {images: ['uploads', 'builds', 'images'], runner_jobs: ['runner_jobs', 'runners']};

// The topic and the entry that the URL names.
function chosen(topic, id) {
  if (topic === 'changes') return [topic, records.changes.find((entry) => String(entry.id) === id)];
  const topics = TOPICS_OF[topic] ?? [topic];
  const found = topics.find((each) => records.find(each, id));
  return [found, found && records.find(found, id)];
}

function showDetails(name) {
  const {topic, name: title} = VIEWS[name];
  const id = parameters().get('id');
  const hadFocus = panel.contains(document.activeElement);
  if (id === null) {
    patchChildren(panel, []);
    if (hadFocus) table?.grid.focus();
    return;
  }
  const [found, entry] = chosen(topic, id);
  patchChildren(panel, [entry ? details(`${title}: ${id}`, found, entry, {records, changed: show}) : details(`${title}: ${id} is gone`, null, {})]);
}

function enter(name) {
  table?.remove();
  table = null;
  shownView = name;
  document.title = name === 'overview' ? 'Nodepool' : `${VIEWS[name].name} – Nodepool`;
  main.className = name === 'overview' ? '' : 'with-list';
  main.replaceChildren();
  if (name === 'overview') return;
  table = new Table(LISTS[name], () => LISTS[name].entries(records));
  main.append(h('h2', {class: 'hidden'}, VIEWS[name].name), table.element, panel);
}

function render() {
  const name = viewName();
  showNavigation(name);
  patchChildren(banner, messages());
  if (records.fault !== null && records.list('components').length === 0) {
    shownView = null;
    main.replaceChildren(h('p', {class: 'quiet'}, records.fault));
    return;
  }
  if (name !== shownView) enter(name);
  if (table === null) {
    patchChildren(main, overview(records));
  } else {
    table.update();
    showDetails(name);
  }
}

const show = throttled(SHOW_EVERY, render);

follow(() => render());
followActions((topic, key) => records.find(topic, key), () => render());
followCopies();
followLogs(() => render());
followPointer();
addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && parameters().has('id') && panel.contains(event.target)) go(target({id: null}));
});
setInterval(countAges, 1000);
new Stream((name, data) => records.heard(name, data), (open, silent) => {
  isOpen = open;
  isSilent = !open && (silent || isSilent);
  show();
});
render();
