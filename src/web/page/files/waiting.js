// Requests that wait, grouped by the reason.
import {h} from './dom.js';
import {age, counted, plural} from './format.js';
import {view} from './route.js';

const MOST = 5;
const LABELS = 2;

export const isWaiting = (request) => request.state === 'requested' || request.state === 'pending';

/** The one sentence that says why a request waits. */
export function reasonOf({state, reason, waits}) {
  if (reason) return reason.text;
  const own = (waits ?? []).find((wait) => wait.reason !== 'others-can-serve');
  if (own) return `${own.provider} ${own.pool}: ${own.text}`;
  return state === 'pending' ? 'its nodes are being launched' : 'another launcher may serve it';
}

function groups(requests) {
  const byReason = new Map();
  for (const request of requests) {
    const text = reasonOf(request);
    if (!byReason.has(text)) byReason.set(text, {text, requests: [], since: Infinity});
    const group = byReason.get(text);
    group.requests.push(request);
    group.since = Math.min(group.since, request.since);
  }
  return [...byReason.values()].sort((a, b) => b.requests.length - a.requests.length || a.since - b.since);
}

function labelsOf(requests) {
  const names = [...new Set(requests.flatMap((request) => request.labels))];
  const shown = counted(names.slice(0, LABELS));
  return names.length > LABELS ? `${shown} and ${names.length - LABELS} more` : shown;
}

export function waiting(requests) {
  const all = groups(requests);
  const line = ({text, requests: of, since}) => h('li', {},
    h('a', {class: 'count', href: view('requests', {why: text, state: ['requested', 'pending']})}, plural(of.length, 'request')),
    h('span', {class: 'why'}, text), h('span', {class: 'quiet'}, labelsOf(of)), h('span', {class: 'since'}, 'longest ', age(since)));
  const rest = all.slice(MOST).reduce((sum, group) => sum + group.requests.length, 0);
  return [h('ul', {class: 'reasons'}, all.slice(0, MOST).map(line)),
          rest > 0 && h('p', {}, h('a', {href: view('requests', {state: ['requested', 'pending'], sort: '-since'})},
                                   `${plural(rest, 'request waits', 'requests wait')} for other reasons`))];
}
