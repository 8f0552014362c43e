// Which charts there are, and of what.
import {amounts, tightest} from './bars.js';
import {chart} from './charts.js';
import {h} from './dom.js';
import {kindOf, STATES} from './format.js';
import {parameters, target, view} from './route.js';

const BUCKETS = 60;
const MOST_PROVIDERS = 12;

const PERCENTILES = [['p50', 'good'], ['p95', 'wait'], ['p99', 'bad']];
const percentiles = (name) => PERCENTILES.map(([key, kind]) => ({name: key, kind, value: (s) => (s[name].count ? s[name][key] : null)}));

// How many machines a provider may have; null: no limit is known.
function instancesOf(provider) {
  const pools = (provider.pools ?? []).map((pool) => amounts(pool).find(({name}) => name === 'instances')?.limit);
  const own = tightest(provider).find(({name}) => name === 'instances')?.limit;
  const ofPools = pools.length > 0 && pools.every((limit) => limit !== undefined) ? pools.reduce((sum, limit) => sum + limit, 0) : undefined;
  const known = [own, ofPools].filter((limit) => limit !== undefined);
  return known.length ? Math.min(...known) : null;
}

const stackOf = (countsOf) => STATES.map((state) => ({name: state, kind: kindOf(state), value: (sample) => countsOf(sample)?.[state] ?? 0}));

function nodeCharts(samples, providers) {
  const isUsed = ({name}) => samples.some((sample) => sample.nodes_by_provider?.[name]);
  const limited = providers.map((provider) => ({name: provider.name, limit: instancesOf(provider), isUsed: isUsed(provider)}));
  const isKnown = limited.some(({limit}) => limit !== null) && limited.every((each) => each.limit !== null || !each.isUsed);
  const all = chart('Nodes', 'of all providers', samples, stackOf((sample) => sample.nodes),
                    {isStacked: true, limit: isKnown ? limited.reduce((sum, {limit}) => sum + (limit ?? 0), 0) : null});
  const used = limited.filter((each) => each.isUsed);
  const each = used.length < 2 ? [] : used.slice(0, MOST_PROVIDERS).map(({name, limit}) =>
    chart(name, 'nodes', samples, stackOf((sample) => sample.nodes_by_provider?.[name]), {isStacked: true, limit, href: view('providers', {id: name}), id: `provider ${name}`}));
  return [all, ...each];
}

// Sums of counts within longer intervals, so that single events can be seen.
function summed(samples, counts) {
  const size = Math.ceil(samples.length / BUCKETS);
  const buckets = [];
  for (let i = 0; i < samples.length; i += size) {
    const part = samples.slice(i, i + size);
    const sums = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, part.reduce((sum, sample) => sum + count(sample), 0)]));
    buckets.push({at: part.at(-1).at, ...sums});
  }
  return buckets;
}

const sumOf = (sample, count) => Object.values(sample.launches).reduce((sum, each) => sum + count(each), 0);

function countCharts(samples) {
  const launches = summed(samples, {good: (s) => sumOf(s, ({ready}) => ready), bad: (s) => sumOf(s, ({failed, errors}) => Math.max(failed, errors ?? 0))});
  const calls = summed(samples, {answered: (s) => s.api_calls - s.api_failures, failed: (s) => s.api_failures});
  const series = (name, kind, text = name) => ({name: text, kind, value: (s) => s[name]});
  return [chart('Launches', 'attempts that ended', launches, [series('good', 'good'), series('bad', 'bad', 'failed')], {isStacked: true}),
          chart('Calls of clouds', 'by this launcher', calls, [series('answered', 'busy'), series('failed', 'bad', 'without answer')], {isStacked: true})];
}

export function charts(samples, providers) {
  const isDay = parameters().get('range') === 'day';
  const range = (name, text) => h('a', {class: 'chip', role: 'button', href: target({range: name}),
                                        'aria-pressed': String(isDay === (name === 'day'))}, text);
  return [h('div', {class: 'chips'}, range(null, 'last hour'), range('day', 'last day')),
          h('div', {class: 'charts'}, nodeCharts(samples, providers),
            chart('Requests waiting', '', samples, [{name: 'waiting', kind: 'wait', value: (s) => s.requests_waiting}], {isStacked: true}),
            chart('Wait until fulfilled', 'seconds', samples, percentiles('waits')),
            chart('Launch time', 'seconds', samples, percentiles('launch_times')), countCharts(samples))];
}
