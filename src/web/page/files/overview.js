// The cluster at a glance.
import {chart} from './charts.js';
import {pauseText} from './details.js';
import {h} from './dom.js';
import {age, badge, counted, duration, kindOf, now, number, plural} from './format.js';
import {parameters, target, view} from './route.js';

const STATES = ['ready', 'in-use', 'building', 'hold', 'used', 'deleting', 'failed'];
const MOST = 10;

const section = (id, title, ...content) =>
  h('section', {id, 'aria-labelledby': `${id}-title`}, h('h2', {id: `${id}-title`}, title), content);
const empty = (text) => h('p', {class: 'quiet'}, text);

function countBy(entries, keysOf) {
  const counts = new Map();
  for (const entry of entries) for (const key of keysOf(entry)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

const isWaiting = (request) => request.state === 'requested' || request.state === 'pending';

function outcomes(records) {
  const byProvider = {};
  for (const {launches} of records.samples.hour) {
    for (const [name, {ready, failed}] of Object.entries(launches)) {
      byProvider[name] ??= {ready: 0, failed: 0};
      byProvider[name].ready += ready;
      byProvider[name].failed += failed;
    }
  }
  return byProvider;
}

function rate({ready, failed}) {
  const all = ready + failed;
  return all === 0 ? null : Math.floor((100 * ready) / all);
}

function tile(title, value, href, kind = 'plain', note = null) {
  return h('a', {class: `tile ${kind}`, href}, h('span', {class: 'value'}, value), h('span', {}, title),
           note && h('span', {class: 'quiet'}, note));
}

function tiles(records) {
  const counts = countBy(records.nodes, (node) => [node.state]);
  const oldest = Math.min(...records.waiting.map((request) => request.since));
  const ofState = (state) => tile(state, number(counts.get(state) ?? 0), view('nodes', {state}),
                                  counts.get(state) ? kindOf(state) : 'plain');
  const launches = Object.values(records.outcomes).reduce(
      (sum, {ready, failed}) => ({ready: sum.ready + ready, failed: sum.failed + failed}), {ready: 0, failed: 0});
  const share = rate(launches);
  return h('div', {class: 'tiles'},
           tile('nodes', number(records.nodes.length), view('nodes')),
           ['ready', 'in-use', 'building', 'hold'].map(ofState),
           tile('waiting', number(records.waiting.length), view('requests', {state: ['requested', 'pending']}),
                records.waiting.length ? 'wait' : 'plain',
                records.waiting.length ? `longest ${duration(now() - oldest)}` : null),
           tile('launches good', share === null ? '–' : `${share} %`, view('events', {kind: 'node'}),
                launches.failed ? 'bad' : 'plain',
                share === null ? 'none in the last hour' : `${number(launches.ready)} of ${number(launches.ready + launches.failed)}`));
}

function bar(name, used, reserved, limit) {
  const title = limit === undefined
    ? `${name}: ${number(used)} used, no limit known`
    : `${name}: ${number(used)} used${reserved ? `, ${number(reserved)} of it reserved` : ''}, ` +
      `${number(Math.max(0, limit - used))} free of ${number(limit)}`;
  const numbers = limit === undefined ? number(used) : `${number(used)} of ${number(limit)}`;
  return h('div', {class: 'quota', title}, h('span', {}, name),
           limit === undefined ? h('span', {class: 'unlimited'}, 'no limit')
             : h('meter', {min: 0, max: Math.max(limit, 1e-9), high: limit * 0.9, value: used, 'aria-label': title}),
           h('span', {class: 'numbers'}, numbers, reserved ? h('span', {class: 'quiet'}, ` (${number(reserved)} reserved)`) : null));
}

function bars({used, reserved, limit}) {
  const names = [...new Set([...Object.keys(limit), ...Object.keys(used)])].sort();
  return names.map((name) => bar(name, used[name] ?? 0, reserved[name] ?? 0, limit[name]));
}

function stateBar(counts, href) {
  const states = STATES.filter((state) => counts[state]);
  return h('div', {class: 'states'}, states.map((state) =>
    h('a', {class: `badge ${kindOf(state)}`, href: href(state)}, `${number(counts[state])} ${state}`)));
}

function poolOf(pool) {
  const faults = pool.labels.filter(({fault}) => fault);
  return h('div', {class: 'pool'}, h('h4', {}, pool.name,
                                     pool.is_waiting && badge('paused', 'waits for capacity'),
                                     pool.is_draining && badge('draining')),
           bars(pool), faults.map(({name, fault}) => h('p', {class: 'fault'}, `${name}: ${fault}`)));
}

function provider(entry, launches) {
  const share = launches && rate(launches);
  return h('article', {class: 'card'},
           h('h3', {}, h('a', {href: view('providers', {id: entry.name})}, entry.name), badge(entry.state), entry.pause && badge('paused'),
             h('span', {class: 'quiet'}, entry.driver)),
           entry.pause && h('p', {class: 'held'}, pauseText(entry.pause)),
           entry.fault && h('p', {class: 'fault'}, entry.fault, ' — for ', age(entry.state_since)),
           bars(entry),
           stateBar(entry.nodes, (state) => view('nodes', {state, provider: entry.name})),
           h('p', {class: 'quiet'}, share === null || share === undefined ? 'No launches in the last hour.'
             : `Launches in the last hour: ${number(launches.ready)} good, ${number(launches.failed)} failed (${share} %).`,
             entry.launches ? ` ${plural(entry.launches, 'launch', 'launches')} in progress.` : ''),
           entry.pools.map(poolOf));
}

function providers(records) {
  const all = records.list('providers').sort((a, b) => (a.name < b.name ? -1 : 1));
  return section('providers', 'Providers', all.length ? h('div', {class: 'cards'}, all.map((entry) => provider(entry, records.outcomes[entry.name])))
    : empty('This launcher has no providers.'));
}

function why({waits, state}) {
  if (waits.length === 0) return state === 'pending' ? 'its nodes are being launched' : 'another launcher may serve it';
  return h('ul', {}, waits.map((wait) => h('li', {}, h('b', {}, `${wait.provider} ${wait.pool}`), `: ${wait.text}`)));
}

function waiting(records) {
  const longest = [...records.waiting].sort((a, b) => a.since - b.since).slice(0, MOST);
  if (longest.length === 0) return section('waiting', 'Requests waiting', empty('No request waits.'));
  const more = records.waiting.length - longest.length;
  return section('waiting', 'Requests waiting, longest first',
                 h('div', {class: 'sideways', tabindex: '0', role: 'region', 'aria-label': 'Requests waiting'}, h('table', {},
                   h('thead', {}, h('tr', {}, ['Request', 'For', 'Labels', 'By', 'Why'].map((title) => h('th', {scope: 'col'}, title)))),
                   h('tbody', {}, longest.map((request) => h('tr', {},
                     h('th', {scope: 'row'}, h('a', {href: view('requests', {id: request.id})}, request.id)),
                     h('td', {}, age(request.since)), h('td', {}, counted(request.labels)),
                     h('td', {}, request.requestor ?? ''), h('td', {}, why(request))))))),
                 more > 0 && h('p', {}, h('a', {href: view('requests', {state: ['requested', 'pending'], sort: '-since'})},
                                         `${plural(more, 'more request waits', 'more requests wait')}`)));
}

function labels(records) {
  const byLabel = new Map();
  for (const {pools} of records.list('providers')) {
    for (const pool of pools) for (const {name} of pool.labels) byLabel.set(name, new Map());
  }
  for (const node of records.nodes) {
    for (const label of node.labels) {
      if (!byLabel.has(label)) byLabel.set(label, new Map());
      byLabel.get(label).set(node.state, (byLabel.get(label).get(node.state) ?? 0) + 1);
    }
  }
  const shown = STATES.filter((state) => [...byLabel.values()].some((counts) => counts.get(state)));
  const cell = (label, state, count) =>
    h('td', {class: 'number'}, count ? h('a', {href: view('nodes', {label, state})}, number(count)) : '');
  const wanted = countBy(records.waiting, (request) => request.labels);
  const rows = [...byLabel].sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([label, counts]) => h('tr', {},
    h('th', {scope: 'row'}, h('a', {href: view('nodes', {label})}, label)),
    shown.map((state) => cell(label, state, counts.get(state))),
    h('td', {class: 'number'}, wanted.get(label) ? h('a', {href: view('requests', {label, state: ['requested', 'pending']})}, number(wanted.get(label))) : '')));
  return section('labels', 'Nodes by label and state', rows.length === 0 ? empty('No labels and no nodes.')
    : h('div', {class: 'sideways', tabindex: '0', role: 'region', 'aria-label': 'Nodes by label and state'}, h('table', {},
        h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Label'),
                         shown.map((state) => h('th', {scope: 'col', class: 'number'}, state)),
                         h('th', {scope: 'col', class: 'number'}, 'asked for'))),
        h('tbody', {}, rows))));
}

function nextBuild(at) {
  if (at === null) return '–';
  return at > now() ? `in ${duration(at - now())}` : 'due';
}

function images(records) {
  const uploads = records.list('uploads');
  const rows = records.list('images').sort((a, b) => (a.name < b.name ? -1 : 1)).map((image) => {
    const own = uploads.filter((upload) => upload.image === image.name);
    const bad = own.filter(({state}) => state === 'failed');
    return h('tr', {}, h('th', {scope: 'row'}, h('a', {href: view('images', {image: image.name, id: image.name})}, image.name),
                        image.is_paused && badge('paused'), image.build_request && badge('pending', `build ${image.build_request}`)),
             h('td', {}, Object.entries(image.builds).map(([state, count]) => badge(state, `${count} ${state}`))),
             h('td', {}, image.newest_ready_build ? [age(image.newest_ready_build_since), h('span', {class: 'quiet'}, ` ${image.newest_ready_build}`)] : 'never'),
             h('td', {}, nextBuild(image.next_build)),
             h('td', {}, image.ready_in.join(', ') || '–', ' ', bad.length > 0 && badge('failed', plural(bad.length, 'upload failed', 'uploads failed'))));
  });
  return section('images', 'Images', rows.length === 0 ? empty('No image was built.')
    : h('div', {class: 'sideways', tabindex: '0', role: 'region', 'aria-label': 'Images'}, h('table', {},
        h('thead', {}, h('tr', {}, ['Image', 'Builds', 'Newest is ready for', 'Next build', 'Ready in'].map((title) => h('th', {scope: 'col'}, title)))),
        h('tbody', {}, rows))));
}

function changes(records) {
  const latest = records.changes.slice(0, 2 * MOST);
  return section('changes', 'What changed lately', latest.length === 0 ? empty('Nothing since the launcher started.')
    : h('ol', {class: 'changes'}, latest.map((change) => h('li', {}, age(change.at), h('span', {}, change.text)))),
    h('p', {}, h('a', {href: view('events')}, 'All events')));
}

const percentiles = (name) => ['p50', 'p95', 'p99'].map((key) => ({name: key, value: (s) => (s[name].count ? s[name][key] : null)}));

function charts(records) {
  const isDay = parameters().get('range') === 'day';
  const samples = records.samples[isDay ? 'day' : 'hour'];
  const range = (name, text) => h('a', {class: 'chip', role: 'button', href: target({range: name}),
                                        'aria-pressed': String(isDay === (name === 'day'))}, text);
  return section('charts', 'Over time', h('div', {class: 'chips'}, range(null, 'last hour'), range('day', 'last day')),
                 h('div', {class: 'charts'},
                   chart('Nodes', '', samples, ['ready', 'in-use', 'building', 'hold'].map((state) => ({name: state, value: (s) => s.nodes[state] ?? 0}))),
                   chart('Requests waiting', '', samples, [{name: 'waiting', value: (s) => s.requests_waiting}]),
                   chart('Wait until fulfilled', 'seconds', samples, percentiles('waits')),
                   chart('Launch time', 'seconds', samples, percentiles('launch_times')),
                   chart('Launches', 'that ended', samples, ['ready', 'failed'].map((key) => ({
                     name: key, value: (s) => Object.values(s.launches).reduce((sum, each) => sum + each[key], 0)}))),
                   chart('Calls of clouds', '', samples, [{name: 'calls', value: (s) => s.api_calls},
                                                          {name: 'without answer', value: (s) => s.api_failures}])));
}

/** The sections of the overview. */
export function overview(all) {
  const requests = all.list('requests');
  const records = {list: (topic) => all.list(topic), changes: all.changes, samples: all.samples, nodes: all.list('nodes'),
                   waiting: requests.filter(isWaiting), outcomes: outcomes(all)};
  return [tiles(records), h('div', {class: 'overview'}, waiting(records),
                            h('div', {class: 'column'}, providers(records), images(records)),
                            h('div', {class: 'column'}, labels(records), changes(records)), charts(records))];
}
