// The panel with every field of an entry.
import {h} from './dom.js';
import {actionBar} from './actions.js';
import {age, badge} from './format.js';
import {parameters, target, view} from './route.js';

const links = (ids, name) => ids.map((id, i) => [i ? ', ' : '', h('a', {href: view(name, {id})}, id)]);

const imageLink = (id, text = id) => h('a', {href: view('images', {id})}, text);

// Fields that are shown in a way of their own.
const FIELDS = {
  image: (value, entry) => ('builder' in entry || 'build' in entry ? imageLink(value) : null),
  build: (value, entry) => imageLink(`${entry.image}/${value}`, value),
  newest_ready_build: (value, entry) => imageLink(`${entry.name}/${value}`, value),
  pause: (value) => pauseText(value),
  state: (value) => badge(value),
  allocated_to: (value) => links([value], 'requests'),
  nodes: (value) => (Array.isArray(value) ? links(value, 'nodes') : null),
  held: (value) => links(value, 'nodes'),
  hold_notes: (value) => links(value, 'nodes'),
  provider: (value) => links([value], 'providers'),
  waits: (value) => h('ul', {}, value.map((wait) => h('li', {}, h('b', {}, `${wait.provider} ${wait.pool}: `), wait.text))),
  decline_reasons: (value) => h('ul', {}, value.map((text) => h('li', {}, text))),
};

export const pauseText = ({paused_by: by, reason, is_drained: isDrained}) =>
  `${isDrained ? 'drained' : 'paused'} by ${by ?? 'an unknown operator'}${reason ? `: ${reason}` : ''}`;

function shown(key, value, entry) {
  const special = FIELDS[key]?.(value, entry);
  if (special) return special;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  if (typeof value === 'object') return h('pre', {}, JSON.stringify(value, null, 2));
  return String(value);
}

const isEmpty = (value) => value === null || value === '' || (typeof value === 'object' && !Object.keys(value).length);

/** The panel of an entry of a topic; its heading names it. */
export function details(title, topic, entry) {
  const rows = Object.entries(entry).filter(([key, value]) => !isEmpty(value) && !/(^|_)age$/.test(key));
  const close = h('a', {class: 'close', href: target({id: null}, parameters()), 'aria-label': 'Close the details'}, '×');
  return h('aside', {class: 'details', 'aria-label': title}, h('div', {class: 'bar'}, h('h2', {}, title), close),
           topic && actionBar(topic, entry),
           h('dl', {}, rows.map(([key, value]) => [
             h('dt', {}, key.replaceAll('_', ' ')),
             h('dd', {}, /(^|_)since$/.test(key) ? age(value) : shown(key, value, entry)),
           ])));
}
