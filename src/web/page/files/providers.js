// The providers on the overview: state, faults and how full they are, a line each.
import {fullest, meter, tightest} from './bars.js';
import {h} from './dom.js';
import {age, badge, kindOf, number, plural, STATES} from './format.js';
import {view} from './route.js';
import {success} from './tiles.js';

const METERS = 2;

export const pauseText = ({paused_by: by, reason, is_drained: isDrained}) =>
  `${isDrained ? 'drained' : 'paused'} by ${by ?? 'an unknown operator'}${reason ? `: ${reason}` : ''}`;

/** What an open breaker is of, why it is open, and what comes next. */
export const breakerText = ({pool, label, state, evidence, tried_anyway: anyway}) => {
  const part = label ? `label ${label} in pool ${pool}` : pool ? `pool ${pool}` : 'the provider';
  return `The breaker of ${part} is ${state}: ${evidence}${anyway ? `; tried anyway for ${plural(anyway, 'request')}` : ''}`;
};

// The breaker of the whole provider is open: none of its launches works.
const isBroken = (breakers) => (breakers ?? []).some(({pool, label}) => !pool && !label);

/** The one word that says how a provider is. */
export function stateOf({state, pause, breakers}) {
  if (state !== 'up') return badge(state);
  if (pause) return badge('paused', pause.is_drained ? 'drained' : 'paused');
  return badge(isBroken(breakers) ? 'failing' : state);
}

/** Counts by state as badges that lead to the nodes. */
export function stateBadges(counts, filters) {
  return h('span', {class: 'states'}, STATES.filter((state) => counts?.[state]).map((state) =>
    h('a', {class: `badge ${kindOf(state)}`, href: view('nodes', {state, ...filters})}, `${number(counts[state])} ${state}`)));
}

/** What is wrong with a provider, one sentence each, with its colour. */
export function faultsOf({fault, notices, pause, breakers, pools}) {
  // What is wrong with the provider is wrong with its labels.
  const ofLabels = fault ? [] : (pools ?? []).flatMap(({labels}) => labels.filter((label) => label.fault));
  const labels = [...new Map(ofLabels.map(({name, fault: why}) => [name, `${name}: ${why}`])).values()].join('; ');
  const broken = (breakers ?? []).map(breakerText);
  return [...[fault, ...(notices ?? []), ...broken, labels].filter(Boolean).map((text) => ({kind: 'bad', text})),
          ...(pause ? [{kind: 'held', text: pauseText(pause)}] : [])];
}

function meters(entry) {
  const list = fullest(tightest(entry)).slice(0, METERS);
  const several = (entry.pools ?? []).length > 1 ? entry.pools : [];
  const ofPools = several.map((pool) => [pool, fullest(tightest({...pool, pools: []}))[0]]).filter(([, amount]) => amount);
  // An entry of another launcher may lack figures.
  if (list.length + ofPools.length === 0) return h('p', {class: 'quiet'}, entry.limit ? 'no limit' : `figures: on the page of ${(entry.launchers ?? []).join(', ')}`);
  return [list.map((amount) => meter(amount, entry.nodes)),
          ofPools.map(([pool, amount]) => meter(amount, pool.nodes, `${pool.name}: ${amount.name}`))];
}

function launchesOf(entry, launches) {
  const share = launches && success(launches);
  return [share ? [h('span', {class: share.kind}, `${share.text} of launches good`)] : null,
          entry.launches ? h('span', {class: 'quiet'}, plural(entry.launches, 'launch', 'launches'), ' in progress') : null];
}

function line(entry, launches, isShared) {
  const faults = faultsOf(entry);
  return h('article', {class: 'provider', 'aria-label': entry.name},
           h('h3', {}, h('a', {href: view('providers', {id: entry.name})}, entry.name), stateOf(entry),
             isShared && h('span', {class: 'quiet'}, (entry.launchers ?? []).join(', '))),
           h('div', {class: 'meters'}, meters(entry)),
           h('div', {class: 'use'}, stateBadges(entry.nodes, {provider: entry.name}), launchesOf(entry, launches)),
           faults.length > 0 && h('div', {class: 'faults'}, faults.map(({kind, text}, i) =>
             h('p', {class: kind}, text, i === 0 && entry.fault ? [' — for ', age(entry.state_since)] : null))));
}

export function providers(list, launches) {
  const sorted = [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
  const launchers = new Set(list.flatMap((entry) => entry.launchers ?? []));
  return h('div', {class: 'lines'}, sorted.map((entry) => line(entry, launches[entry.name], launchers.size > 1)));
}
