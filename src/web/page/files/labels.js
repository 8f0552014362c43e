// Which nodes there are of each label.
import {h} from './dom.js';
import {countBy, number, STATES} from './format.js';
import {view} from './route.js';

/** Counts by state, of each label that a pool offers or a node has, by name. */
function countsByLabel(providers, nodes) {
  const byLabel = new Map();
  for (const {labels} of providers) for (const name of labels ?? []) byLabel.set(name, new Map());
  for (const node of nodes) {
    for (const label of node.labels) {
      if (!byLabel.has(label)) byLabel.set(label, new Map());
      const counts = byLabel.get(label);
      counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
    }
  }
  return [...byLabel].sort((a, b) => (a[0] < b[0] ? -1 : 1));
}

export function labels(providers, nodes, waiting) {
  const rows = countsByLabel(providers, nodes);
  if (rows.length === 0) return h('p', {class: 'quiet'}, 'No labels and no nodes.');
  const shown = STATES.filter((state) => rows.some(([, counts]) => counts.get(state)));
  const wanted = countBy(waiting, (request) => request.labels);
  const cell = (title, count, href) => h('td', {class: 'number', 'data-title': title}, count ? h('a', {href}, number(count)) : null);
  return h('table', {class: 'stacking'},
           h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Label'), [...shown, 'asked for'].map((title) => h('th', {scope: 'col', class: 'number'}, title)))),
           h('tbody', {}, rows.map(([label, counts]) => h('tr', {},
             h('th', {scope: 'row'}, h('a', {href: view('nodes', {label})}, label)),
             shown.map((state) => cell(state, counts.get(state), view('nodes', {label, state}))),
             cell('asked for', wanted.get(label), view('requests', {label, state: ['requested', 'pending']}))))));
}
