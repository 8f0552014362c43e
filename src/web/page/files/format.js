// How values are shown.
import {h} from './dom.js';

let ahead = 0;

/** The server's clock was at `seconds` just now. */
export function setClock(seconds) {
  ahead = seconds - Date.now() / 1000;
}

/** Seconds since the epoch, by the server's clock. */
export function now() {
  return Date.now() / 1000 + ahead;
}

/** "3 s", "4 min", "5 h 10 min", "6 d 2 h" */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 100) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 100) return `${min} min`;
  const hours = Math.floor(min / 60);
  if (hours < 48) return min % 60 ? `${hours} h ${min % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

const HOURS = {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'};
const dateFormat = new Intl.DateTimeFormat(undefined, {year: 'numeric', month: 'short', day: 'numeric', second: '2-digit', ...HOURS});
const timeFormat = new Intl.DateTimeFormat(undefined, HOURS);

/** Local time. */
export const date = (since) => dateFormat.format(new Date(since * 1000));
export const timeOfDay = (since) => timeFormat.format(new Date(since * 1000));

/** An age that keeps counting. */
export function age(since) {
  if (typeof since !== 'number') return '–';
  return h('time', {datetime: new Date(since * 1000).toISOString(), 'data-since': since, title: date(since)},
           duration(now() - since));
}

/** A time in the past in local time, with its age. */
export const moment = (since) => (typeof since === 'number' ? [date(since), h('span', {class: 'quiet'}, ' (', age(since), ' ago)')] : '–');

/** A time in the future, or one that has passed. */
export const deadline = (at) => [date(at), h('span', {class: 'quiet'}, at > now() ? ` (in ${duration(at - now())})` : ' (due)')];

/** Counts the ages of the document on. */
export function countAges() {
  for (const time of document.querySelectorAll('time[data-since]')) {
    const text = duration(now() - Number(time.dataset.since));
    if (time.textContent !== text) time.textContent = text;
  }
}

export function number(value) {
  return Number.isInteger(value) ? value.toLocaleString() : value.toLocaleString(undefined, {maximumFractionDigits: 1});
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const KINDS = {
  ready: 'good', up: 'good', running: 'good', fulfilled: 'good', 'in-use': 'busy',
  building: 'new', uploading: 'new', testing: 'new', init: 'new', pending: 'new',
  requested: 'wait', starting: 'wait', initializing: 'wait', hold: 'held', draining: 'held', paused: 'held',
  failed: 'bad', failing: 'bad', aborted: 'bad', fault: 'bad', lost: 'bad',
  listening: 'good', online: 'good', job: 'busy', node: 'new', registered: 'new', started: 'new', wanted: 'wait', waiting: 'wait',
};

/** The states of nodes that are counted, those that matter most first. */
export const STATES = ['in-use', 'ready', 'building', 'hold', 'used', 'deleting', 'failed'];

/** Good, busy, new, wait, held, bad or plain: the colour of a state, wherever it is shown. */
export const kindOf = (state) => KINDS[state] ?? 'plain';

export function badge(state, text = state) {
  return h('span', {class: `badge ${kindOf(state)}`}, text ?? 'none');
}

/** How often each key occurs. */
export function countBy(entries, keysOf) {
  const counts = new Map();
  for (const entry of entries) for (const key of keysOf(entry)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Labels with how often they are asked for. */
export function counted(names) {
  return [...countBy(names, (name) => [name])].map(([name, count]) => (count > 1 ? `${count} × ${name}` : name)).join(', ');
}
