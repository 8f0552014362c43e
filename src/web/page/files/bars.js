// How much of what is used, as bars.
import {h, svg} from './dom.js';
import {kindOf, number, STATES} from './format.js';

const FULL = 0.9;

function describe(name, used, reserved, limit) {
  if (limit === undefined) return `${name}: ${number(used)} used, no limit known`;
  const free = `${number(Math.max(0, limit - used))} free of ${number(limit)}`;
  return `${name}: ${number(used)} used${reserved ? `, ${number(reserved)} of it reserved` : ''}, ${free}`;
}

// Parts of a whole beside each other, each in the colour of its kind.
function stack(parts, whole) {
  let at = 0;
  return svg('svg', {class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
             parts.filter(({value}) => value > 0).map(({kind, value}) => {
               const width = Math.min(100 - at, (100 * value) / Math.max(whole, 1e-9));
               const rect = svg('rect', {class: `fill ${kind}`, x: at.toFixed(2), width: width.toFixed(2), height: 10});
               at += width;
               return rect;
             }));
}

function partsOf({name, used, reserved, limit}, nodes) {
  if (name !== 'instances' || !nodes) return [{kind: used >= limit * FULL ? 'wait' : 'busy', value: used}];
  const states = STATES.map((state) => ({kind: kindOf(state), value: nodes[state] ?? 0}));
  const shown = states.reduce((sum, {value}) => sum + value, 0);
  return [...states, {kind: 'plain', value: Math.max(reserved, used - shown)}];
}

/** One resource and its limit; `nodes`, counts by state, colours its instances. */
export function meter(amount, nodes, title = amount.name) {
  const {used, reserved, limit} = amount;
  const text = describe(title, used, reserved, limit);
  const numbers = limit === undefined ? `${number(used)}, no limit` : `${number(used)} of ${number(limit)}`;
  return h('div', {class: 'quota', title: text}, h('span', {class: 'what'}, title),
           limit === undefined ? h('span', {}) : h('span', {
             class: 'meter', role: 'meter', 'aria-label': text, 'aria-valuemin': 0, 'aria-valuemax': Math.max(limit, used),
             'aria-valuenow': used}, stack(partsOf(amount, nodes), Math.max(limit, used))),
           h('span', {class: 'numbers'}, numbers, reserved ? h('span', {class: 'quiet'}, ` (${number(reserved)} reserved)`) : null));
}

/** Each resource of a provider or pool, by name. An entry of another launcher may lack figures. */
export function amounts({used, reserved, limit}) {
  const names = [...new Set([...Object.keys(limit ?? {}), ...Object.keys(used ?? {})])].sort();
  return names.map((name) => ({name, used: used?.[name] ?? 0, reserved: reserved?.[name] ?? 0, limit: limit?.[name]}));
}

const share = ({used, limit}) => (limit === undefined ? -1 : used / Math.max(limit, 1e-9));

/** The limits that a provider of one pool comes to first: its own, or its pool's where that is tighter. */
export function tightest(provider) {
  const [pool, second] = provider.pools ?? [];
  const own = amounts(provider);
  if (!pool || second) return own;
  const tighter = new Map(amounts(pool).map((amount) => [amount.name, amount]));
  return own.map((amount) => {
    const other = tighter.get(amount.name);
    tighter.delete(amount.name);
    return other && share(other) > share(amount) ? other : amount;
  }).concat([...tighter.values()].filter(({limit}) => limit !== undefined));
}

/** The resources with a limit, instances first and then the fullest. */
export function fullest(list) {
  const rank = (amount) => (amount.name === 'instances' ? Infinity : share(amount));
  return list.filter(({limit}) => limit !== undefined).sort((a, b) => rank(b) - rank(a));
}
