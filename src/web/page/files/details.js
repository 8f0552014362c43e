// The panel with every field of an entry.
import {h} from './dom.js';
import {age, badge} from './format.js';
import {parameters, target, view} from './route.js';

const links = (ids, name) => ids.map((id, i) => [i ? ', ' : '', h('a', {href: view(name, {id})}, id)]);

// Fields that are shown in a way of their own.
const FIELDS = {
  state: (value) => badge(value),
  allocated_to: (value) => links([value], 'requests'),
  nodes: (value) => (Array.isArray(value) ? links(value, 'nodes') : null),
  held: (value) => links(value, 'nodes'),
  hold_notes: (value) => links(value, 'nodes'),
  provider: (value) => links([value], 'providers'),
  waits: (value) => h('ul', {}, value.map((wait) => h('li', {}, h('b', {}, `${wait.provider} ${wait.pool}: `), wait.text))),
  decline_reasons: (value) => h('ul', {}, value.map((text) => h('li', {}, text))),
};

function shown(key, value) {
  const special = FIELDS[key]?.(value);
  if (special) return special;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  if (typeof value === 'object') return h('pre', {}, JSON.stringify(value, null, 2));
  return String(value);
}

const isEmpty = (value) => value === null || value === '' || (typeof value === 'object' && !Object.keys(value).length);

/** The panel of an entry; its heading names it. */
export function details(title, entry) {
  const rows = Object.entries(entry).filter(([key, value]) => !isEmpty(value) && !/(^|_)age$/.test(key));
  const close = h('a', {class: 'close', href: target({id: null}, parameters()), 'aria-label': 'Close the details'}, '×');
  return h('aside', {class: 'details', 'aria-label': title}, h('div', {class: 'bar'}, h('h2', {}, title), close),
           h('dl', {}, rows.map(([key, value]) => [
             h('dt', {}, key.replaceAll('_', ' ')),
             h('dd', {}, /(^|_)since$/.test(key) ? age(value) : shown(key, value)),
           ])));
}
