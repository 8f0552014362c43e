// The numbers on top of the overview, with their trend.
import {h, svg} from './dom.js';
import {countBy, duration, kindOf, now, number} from './format.js';
import {view} from './route.js';

// From which share of good launches on they are good, and worth a look.
const GOOD = 0.95;
const FAIR = 0.8;

/** How the launches of the last hour ended, by provider: nodes that became ready, and attempts that failed. */
export function outcomes(samples) {
  const byProvider = Object.create(null); // names may be any text
  for (const {launches} of samples) {
    for (const [name, {ready, failed, errors}] of Object.entries(launches)) {
      byProvider[name] ??= {good: 0, bad: 0};
      byProvider[name].good += ready;
      // Only the launcher that makes attempts counts them; that a node failed is known to all.
      byProvider[name].bad += Math.max(failed, errors ?? 0);
    }
  }
  return byProvider;
}

/** The share of good attempts as text, with its kind; null: there were none. */
export function success({good, bad}) {
  if (good + bad === 0) return null;
  const share = good / (good + bad);
  return {text: `${Math.floor(100 * share)} %`, kind: share >= GOOD ? 'plain' : share >= FAIR ? 'wait' : 'bad',
          counts: `${number(good)} of ${number(good + bad)}`};
}

function trend(values) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  const top = Math.max(...known, 1);
  const points = values.map((value, i) => `${((100 * i) / (values.length - 1)).toFixed(1)},${(19 - (18 * (value ?? 0)) / top).toFixed(1)}`);
  return svg('svg', {class: 'trend', viewBox: '0 0 100 20', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
             svg('polyline', {points: points.join(' ')}));
}

function tile(title, value, href, {kind = 'plain', note = null, values = []} = {}) {
  return h('a', {class: `tile ${kind}`, href}, h('span', {class: 'value'}, value), h('span', {}, title),
           note && h('span', {class: 'quiet'}, note), trend(values));
}

export function tiles({nodes, waiting, launches, samples}) {
  const counts = countBy(nodes, (node) => [node.state]);
  const ofState = (state) => tile(state, number(counts.get(state) ?? 0), view('nodes', {state}), {
    kind: counts.get(state) ? kindOf(state) : 'plain', values: samples.map((sample) => sample.nodes[state] ?? 0)});
  const oldest = Math.min(...waiting.map((request) => request.since));
  const all = Object.values(launches).reduce((sum, {good, bad}) => ({good: sum.good + good, bad: sum.bad + bad}), {good: 0, bad: 0});
  const share = success(all);
  return h('div', {class: 'tiles'},
           tile('nodes', number(nodes.length), view('nodes'), {
             values: samples.map((sample) => Object.values(sample.nodes).reduce((sum, count) => sum + count, 0))}),
           ['ready', 'in-use', 'building', 'hold'].map(ofState),
           tile('waiting', number(waiting.length), view('requests', {state: ['requested', 'pending']}), {
             kind: waiting.length ? 'wait' : 'plain', note: waiting.length ? `longest ${duration(now() - oldest)}` : null,
             values: samples.map((sample) => sample.requests_waiting)}),
           tile('launches good', share?.text ?? '–', view('events', {kind: 'node'}), {
             kind: share?.kind, note: share ? `${share.counts} attempts` : 'none in the last hour'}));
}
