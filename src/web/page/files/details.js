// The panel of an entry: what matters first, what one may do, and every field below.
import {actionBar} from './actions.js';
import {h} from './dom.js';
import {date} from './format.js';
import {factsOf} from './facts.js';
import {parameters, target} from './route.js';

const isEmpty = (value) => value === null || value === '' || (typeof value === 'object' && !Object.keys(value).length);

// Values within values as lists, in words.
function shown(key, value) {
  if (/(^|_)(since|at)$/.test(key) && typeof value === 'number') return date(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (value === null) return '–';
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object')) return value.join(', ');
  return h('ul', {}, Object.entries(value).filter(([, each]) => !isEmpty(each)).map(([name, each]) =>
    h('li', {}, Array.isArray(value) ? null : h('span', {class: 'quiet'}, `${name.replaceAll('_', ' ')}: `), shown(name, each))));
}

function allFields(entry) {
  const rows = Object.entries(entry).filter(([key, value]) => !isEmpty(value) && !/(^|_)age$/.test(key));
  return h('details', {class: 'fields'}, h('summary', {}, 'All fields'),
           h('dl', {}, rows.map(([key, value]) => [h('dt', {}, key.replaceAll('_', ' ')), h('dd', {}, shown(key, value))])));
}

/** The panel of an entry of a topic; its heading names it. Without a topic the entry is gone. */
export function details(title, topic, entry, context) {
  const close = h('a', {class: 'close', href: target({id: null}, parameters()), 'aria-label': 'Close the details'}, '×');
  return h('aside', {class: 'details', 'aria-label': title}, h('div', {class: 'headline'}, h('h2', {}, title), close),
           topic && [h('dl', {class: 'facts'}, factsOf(topic, entry, context).map(([name, parts]) => [h('dt', {}, name), h('dd', {}, parts)])),
                     actionBar(topic, entry), allFields(entry)]);
}
