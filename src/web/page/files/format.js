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

const dateFormat = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
const timeFormat = new Intl.DateTimeFormat(undefined, {timeStyle: 'medium'});

export const date = (since) => dateFormat.format(new Date(since * 1000));
export const timeOfDay = (since) => timeFormat.format(new Date(since * 1000));

/** An age that keeps counting. */
export function age(since) {
  if (typeof since !== 'number') return '–';
  return h('time', {datetime: new Date(since * 1000).toISOString(), 'data-since': since, title: date(since)},
           duration(now() - since));
}

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
  ready: 'good', up: 'good', running: 'good', fulfilled: 'good',
  'in-use': 'busy', building: 'busy', uploading: 'busy', pending: 'busy', requested: 'wait', starting: 'wait',
  initializing: 'wait', testing: 'busy', hold: 'held', draining: 'held', paused: 'held',
  failed: 'bad', failing: 'bad', aborted: 'bad',
};

/** Good, busy, wait, held, bad or plain: the colour of a state. */
export const kindOf = (state) => KINDS[state] ?? 'plain';

export function badge(state, text = state) {
  return h('span', {class: `badge ${kindOf(state)}`}, text ?? 'none');
}

/** Labels with how often they are asked for. */
export function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => (count > 1 ? `${count} × ${name}` : name)).join(', ');
}
