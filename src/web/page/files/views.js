// The lists: which columns and filters each has, those that matter most first.
import {fullest, meter, tightest} from './bars.js';
import {h} from './dom.js';
import {age, badge, counted, date, number} from './format.js';
import {lastBuild, missingIn} from './images.js';
import {aboutLink, link} from './links.js';
import {faultsOf, stateOf} from './providers.js';
import {keyOf} from './records.js';
import {jobText} from './runners.js';
import {isWaiting, reasonOf} from './waiting.js';

const field = (key, title, more = {}) => ({key, title, value: (e) => e[key], ...more});
const list = (key, title) => ({key, title, value: (e) => counted(e[key] ?? [])});
// Ages grow while times stay: the oldest comes first in the order of times.
const since = (key, title) => ({key, title, width: 9, value: (e) => (typeof e[key] === 'number' ? -e[key] : null),
                                text: (e) => (e[key] ? date(e[key]) : ''), cell: (e) => age(e[key])});
const linked = (key, title, topic) => ({key, title, value: (e) => e[key], cell: (e) => (e[key] ? link(topic, e[key]) : '')});
const state = {key: 'state', title: 'State', width: 10, value: (e) => e.state, cell: (e) => badge(e.state)};
const byState = {key: 'state', title: 'State', values: (e) => [e.state]};
const chosen = (key, title) => ({key, title, values: (e) => [e[key]], isChoice: true});
const label = {key: 'label', title: 'Label', values: (e) => [...new Set(e.labels)], isChoice: true};
const grows = {grows: true};
const wide = {isWide: true};

const of = (topic) => ({topic, key: (e) => keyOf(topic, e), entries: (records) => records.list(topic)});

const whyOf = (request) => (isWaiting(request) ? reasonOf(request) : request.state === 'failed' ? request.decline_reasons.join('; ') : '');
const faultText = (provider) => faultsOf(provider).map(({text}) => text).join('; ');
const fullestOf = (provider) => fullest(tightest(provider))[0];

function bar(provider) {
  const amount = fullestOf(provider);
  return amount ? meter(amount, provider.nodes) : '';
}

// Images, builds and uploads are one list: what is wrong with an image is seen at the image.
const WHAT = {images: 'image', builds: 'build', uploads: 'upload'};

function imageRows(records) {
  const [images, builds, uploads] = ['images', 'builds', 'uploads'].map((topic) => records.list(topic));
  const rows = [...builds.map((e) => ({...e, topic: 'builds', build: e.id})), ...uploads.map((e) => ({...e, topic: 'uploads'}))];
  for (const image of images) {
    const last = lastBuild(image, builds);
    const missing = missingIn(image, uploads);
    rows.push({...image, topic: 'images', image: image.name, state: image.is_paused ? 'paused' : last?.state ?? null,
               state_since: last?.since, build: last?.id, provider: null, ready: image.ready_in.join(', '),
               error: [last?.error, missing.length ? `missing in ${missing.join(', ')}` : null].filter(Boolean).join('; ') || null});
  }
  return rows;
}

// Sets of runners and their jobs are one list: why a job waits is often seen at its set.
const runnerRows = (records) => [
  ...records.list('runners').map((e) => ({...e, topic: 'runners', why: e.fault ?? e.why})),
  ...records.list('runner_jobs').map((e) => ({...e, topic: 'runner_jobs'})),
];

export const LISTS = {
  nodes: {
    ...of('nodes'), name: 'Nodes', sort: 'id', facets: [byState, chosen('provider', 'Provider'), label],
    columns: [field('id', 'Id'), state, since('state_since', 'In state for'), list('labels', 'Labels'), field('provider', 'Provider'),
              field('interface_ip', 'Address'), {key: 'job', title: 'Job', value: jobText, grows: true}, field('comment', 'Comment', grows), linked('allocated_to', 'Request', 'requests'),
              field('requestor', 'Requestor', wide), field('tenant', 'Tenant', wide), field('pool', 'Pool', wide), field('hostname', 'Host name', wide),
              {key: 'is_locked', title: 'Lock', value: (e) => (e.is_locked ? 'locked' : ''), ...wide}, {...since('since', 'Age'), ...wide}],
  },
  requests: {
    ...of('requests'), name: 'Requests', sort: '-since',
    facets: [byState, label, chosen('requestor', 'Requestor'), {key: 'why', title: 'Why', values: (e) => [whyOf(e)], isChoice: true}],
    columns: [field('id', 'Id'), state, since('since', 'Age'), list('labels', 'Labels'),
              {key: 'why', title: 'Why it waits or failed', value: whyOf, ...grows},
              field('requestor', 'Requestor'), field('tenant', 'Tenant'), list('nodes', 'Nodes'), field('priority', 'Priority', wide)],
  },
  providers: {
    ...of('providers'), name: 'Providers', sort: 'name', facets: [byState, chosen('driver', 'Driver')],
    columns: [field('name', 'Name'), {...state, cell: stateOf},
              {key: 'fault', title: 'What is wrong', value: faultText, ...grows, cell: (e) => h('span', {class: faultsOf(e)[0]?.kind}, faultText(e))},
              {key: 'used', title: 'Used', width: 34, value: (e) => fullestOf(e)?.used ?? null, cell: bar},
              {key: 'nodes', title: 'Nodes', value: (e) => Object.entries(e.nodes ?? {}).map(([name, count]) => `${count} ${name}`).join(', ')},
              {key: 'launches', title: 'Launching', value: (e) => e.launches || null}, {...since('state_since', 'In state for'), ...wide},
              {key: 'launchers', title: 'Launchers', value: (e) => (e.launchers ?? []).join(', '), ...wide}, field('driver', 'Driver', wide), {...list('labels', 'Labels'), ...wide}],
  },
  images: {
    topic: 'images', name: 'Images', sort: 'what', entries: imageRows,
    // As the topics that have the entries.
    key: (e) => keyOf(e.topic, e),
    facets: [{key: 'what', title: 'What', values: (e) => [WHAT[e.topic]]}, byState, {key: 'image', title: 'Image', values: (e) => [e.image], isChoice: true},
             chosen('provider', 'Provider')],
    columns: [{key: 'what', title: 'What', value: (e) => Object.keys(WHAT).indexOf(e.topic), text: (e) => WHAT[e.topic]},
              field('image', 'Image'), state, since('state_since', 'In state for'), field('provider', 'Provider'),
              {key: 'error', title: 'What is wrong', value: (e) => e.error, ...grows, cell: (e) => h('span', {class: 'bad'}, e.error ?? '')},
              field('ready', 'Ready in'), field('build', 'Build', wide), field('external_name', 'Name in the cloud', wide), field('format', 'Format', wide), field('builder', 'Builder', wide)],
  },
  events: {
    topic: 'changes', key: (e) => String(e.id), entries: (records) => records.changes, name: 'Events', sort: '-at',
    facets: [{key: 'kind', title: 'Kind', values: (e) => [e.kind]}],
    columns: [{key: 'at', title: 'When', width: 22, value: (e) => e.at, text: (e) => date(e.at), cell: (e) => date(e.at)},
              field('kind', 'Kind'), {key: 'text', title: 'What', value: (e) => e.text, ...grows},
              {key: 'about', title: 'About', width: 16, value: (e) => e.about, cell: (e) => aboutLink(e)}],
  },
  jobs: {
    ...of('jobs'), name: 'Jobs', sort: 'name', facets: [],
    columns: [field('name', 'Job'), field('hold_on_failure', 'Holds at most'), {key: 'held', title: 'Held', value: (e) => e.held.length, text: (e) => number(e.held.length)},
              {key: 'nodes', title: 'Nodes', value: (e) => e.held.join(', '), ...grows},
              {key: 'notes', title: 'To be held', value: (e) => e.hold_notes.join(', ')}, field('id', 'Rule')],
  },
  runners: {
    topic: 'runner_jobs', name: 'Runners', sort: '-since', entries: runnerRows, key: (e) => keyOf(e.topic, e),
    facets: [{key: 'what', title: 'What', values: (e) => [e.topic === 'runners' ? 'set' : 'job']}, byState, chosen('set', 'Set'), chosen('repository', 'Repository')],
    columns: [field('set', 'Set'), state, since('since', 'Since'), field('repository', 'Repository'), field('job', 'Job'), linked('node', 'Node', 'nodes'),
              {key: 'why', title: 'Why', value: (e) => e.why, ...grows, cell: (e) => h('span', {class: e.fault || e.state === 'lost' ? 'bad' : null}, e.why ?? '')},
              {key: 'waiting', title: 'Jobs waiting', value: (e) => e.waiting ?? null}, field('workflow', 'Workflow', wide), field('runner', 'Runner', wide)],
  },
  components: {
    ...of('components'), name: 'Components', sort: 'path',
    facets: [{key: 'kind', title: 'Kind', values: (e) => [e.kind]}, byState],
    columns: [field('kind', 'Kind'), field('hostname', 'Host'), state, field('provider', 'Provider'), field('pool', 'Pool'),
              {key: 'is_paused', title: 'Paused', value: (e) => (e.is_paused ? 'paused' : '')}, {...list('labels', 'Labels'), ...grows},
              field('version', 'Version', wide), field('path', 'Entry', wide)],
  },
};
