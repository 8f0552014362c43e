// The lists: which columns and filters each has.
import {pauseText} from './details.js';
import {age, badge, counted, date, number} from './format.js';
import {h} from './dom.js';
import {view} from './route.js';
import {keyOf} from './records.js';

const reason = ({provider, pool, text}) => `${provider} ${pool}: ${text}`;
const amounts = (used, limit) => [...new Set([...Object.keys(limit), ...Object.keys(used)])].sort()
    .map((name) => `${name} ${number(used[name] ?? 0)}${name in limit ? ` of ${number(limit[name])}` : ''}`).join(', ');
const states = (nodes) => Object.entries(nodes).map(([state, count]) => `${count} ${state}`).join(', ');

const field = (key, title, width = 'minmax(7rem, 1fr)') => ({key, title, width, value: (e) => e[key]});
const list = (key, title, width = 'minmax(9rem, 1.5fr)') => ({key, title, width, value: (e) => counted(e[key] ?? [])});
// Ages grow while times stay: the oldest comes first in the order of times.
const since = (key, title) => ({key, title, width: '7rem', value: (e) => (e[key] === undefined ? null : -e[key]),
                                text: (e) => (e[key] ? date(e[key]) : ''), cell: (e) => age(e[key])});
const link = (key, title, to, width = '9rem') => ({
  key, title, width, value: (e) => e[key],
  cell: (e) => (e[key] ? h('a', {href: view(to, {id: e[key]})}, e[key]) : ''),
});
const state = {key: 'state', title: 'State', width: '8rem', value: (e) => e.state, cell: (e) => badge(e.state)};
const byState = {key: 'state', title: 'State', values: (e) => [e.state]};
const chosen = (key, title) => ({key, title, values: (e) => [e[key]], isChoice: true});
const label = {key: 'label', title: 'Label', values: (e) => [...new Set(e.labels)], isChoice: true};

const of = (topic) => ({topic, key: (e) => keyOf(topic, e)});

export const LISTS = {
  nodes: {
    ...of('nodes'), name: 'Nodes', sort: 'id', facets: [byState, chosen('provider', 'Provider'), label],
    columns: [field('id', 'Id', '8rem'), state, since('state_since', 'In state for'), list('labels', 'Labels'),
              field('provider', 'Provider'), field('pool', 'Pool', '7rem'), link('allocated_to', 'Request', 'requests', '10rem'),
              field('requestor', 'Requestor'), field('hostname', 'Host name'), field('interface_ip', 'Address', '9rem'),
              {key: 'is_locked', title: 'Lock', width: '6rem', value: (e) => (e.is_locked ? 'locked' : '')},
              since('since', 'Age'), field('comment', 'Comment', 'minmax(10rem, 2fr)')],
  },
  requests: {
    ...of('requests'), name: 'Requests', sort: '-since', facets: [byState, label, chosen('requestor', 'Requestor')],
    columns: [field('id', 'Id', '9rem'), state, since('since', 'Age'), list('labels', 'Labels'),
              field('requestor', 'Requestor'), field('tenant', 'Tenant', '7rem'), field('priority', 'Priority', '6rem'),
              {key: 'why', title: 'Why it waits or failed', width: 'minmax(20rem, 4fr)',
               value: (e) => [...(e.waits ?? []).map(reason), ...(e.state === 'failed' ? e.decline_reasons : [])].join('; ')},
              list('nodes', 'Nodes')],
  },
  providers: {
    ...of('providers'), name: 'Providers', sort: 'name', facets: [byState, chosen('driver', 'Driver')],
    columns: [field('name', 'Name'), state, since('state_since', 'In state for'), field('driver', 'Driver', '8rem'),
              {key: 'pause', title: 'Paused', width: 'minmax(10rem, 2fr)', value: (e) => (e.pause ? pauseText(e.pause) : '')},
              {key: 'nodes', title: 'Nodes', width: 'minmax(12rem, 2fr)', value: (e) => states(e.nodes)},
              {key: 'used', title: 'Used', width: 'minmax(16rem, 3fr)', value: (e) => amounts(e.used, e.limit)},
              field('launches', 'Launching', '7rem'), list('labels', 'Labels'),
              {key: 'fault', title: 'Fault', width: 'minmax(14rem, 3fr)', value: (e) => e.fault ?? ''}],
  },
  images: {
    ...of('uploads'), name: 'Images', sort: 'image',
    facets: [byState, {key: 'image', title: 'Image', values: (e) => [e.image], isChoice: true}, chosen('provider', 'Provider')],
    columns: [field('image', 'Image'), field('build', 'Build', '9rem'), field('provider', 'Provider'), state,
              since('state_since', 'In state for'), field('format', 'Format', '6rem'),
              field('external_name', 'Name in the cloud', 'minmax(12rem, 2fr)'), field('external_id', 'Id in the cloud'),
              field('id', 'Upload', '8rem')],
  },
  events: {
    topic: 'changes', key: (e) => String(e.id), name: 'Events', sort: '-at',
    facets: [{key: 'kind', title: 'Kind', values: (e) => [e.kind]}],
    columns: [{key: 'at', title: 'When', width: '8rem', value: (e) => e.at, text: (e) => date(e.at), cell: (e) => age(e.at)},
              field('kind', 'Kind', '6rem'), field('about', 'About', '10rem'), field('text', 'What', 'minmax(24rem, 6fr)')],
  },
  jobs: {
    ...of('jobs'), name: 'Jobs', sort: 'name', facets: [],
    columns: [field('name', 'Job', 'minmax(14rem, 2fr)'), field('hold_on_failure', 'Holds at most', '8rem'),
              {key: 'held', title: 'Held', width: '6rem', value: (e) => e.held.length},
              {key: 'nodes', title: 'Nodes', width: 'minmax(12rem, 2fr)', value: (e) => e.held.join(', ')},
              {key: 'notes', title: 'To be held', width: 'minmax(10rem, 1fr)', value: (e) => e.hold_notes.join(', ')},
              field('id', 'Id', '8rem')],
  },
  components: {
    ...of('components'), name: 'Components', sort: 'path',
    facets: [{key: 'kind', title: 'Kind', values: (e) => [e.kind]}, byState],
    columns: [field('kind', 'Kind', '7rem'), field('hostname', 'Host'), state, field('version', 'Version', '10rem'),
              field('provider', 'Provider'), field('pool', 'Pool', '8rem'), list('labels', 'Labels', 'minmax(12rem, 2fr)'),
              {key: 'is_paused', title: 'Paused', width: '6rem', value: (e) => (e.is_paused ? 'paused' : '')},
              field('path', 'Entry', 'minmax(14rem, 2fr)')],
  },
};
