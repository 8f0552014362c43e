// What a person wants to know of an entry first, as rows of a title and what there is to say.
import {amounts, fullest, meter} from './bars.js';
import {copyable} from './copy.js';
import {h} from './dom.js';
import {age, badge, counted, date, deadline, moment, number, plural} from './format.js';
import {buildLine, lastBuild, missingIn, nextBuild, places} from './images.js';
import {endOf, leaseOf} from './leases.js';
import {aboutLink, link, links} from './links.js';
import {logOf} from './logs.js';
import {faultsOf, stateBadges} from './providers.js';
import {jobLink, jobOf, jobText, timeLine} from './runners.js';
import {isWaiting, reasonOf} from './waiting.js';

const state = (entry) => ['State', badge(entry.state), typeof entry.state_since === 'number' && [
  h('span', {class: 'quiet'}, ' for ', age(entry.state_since)), ' since ', date(entry.state_since)]];
const list = (items) => h('ul', {}, items.map((item) => h('li', {}, item)));

/** Who uses a node, in words; null: nobody. */
export function userOf(node) {
  const lease = leaseOf(node);
  if (lease) return `a lease of ${lease.client}`;
  if (node.state !== 'in-use' && !(node.is_locked && node.state !== 'building')) return null;
  const request = node.allocated_to ? ` for request ${node.allocated_to}` : '';
  return `${node.requestor ?? 'a client'}${request}`;
}

function holdRows(node) {
  if (node.state !== 'hold') return [];
  return [['Why', node.comment ?? 'no reason was given', node.hold_job && h('span', {class: 'quiet'}, ` – job ${node.hold_job}`)],
          ['Held until', node.hold_expiration ? deadline(node.state_since + node.hold_expiration) : 'max-hold-age of the configuration']];
}

function useRows(node, changed) {
  const lease = leaseOf(node);
  if (!lease) {
    const user = userOf(node);
    return user ? [['Used by', node.requestor ?? 'a client', node.allocated_to && [' for request ', link('requests', node.allocated_to)]]] : [];
  }
  const end = endOf(lease, changed);
  return [['Used by', `${lease.client}, lease ${lease.id}`, node.requestor && node.requestor !== lease.client ? `, for ${node.requestor}` : ''],
          ['Lease ends', end === null ? 'shown with a token that may see it' : [deadline(end), ' unless it is renewed']]];
}

function jobRows(node) {
  const job = jobOf(node);
  return job ? [['Job', jobText(node)], ['Workflow', job.workflow], ['Its address', jobLink(job)]] : [];
}

function sshLine({interface_ip: ip, connection_port: port, username, connection_type: type}) {
  if (!ip || (type && type !== 'ssh') || ip.startsWith('-')) return null;
  const isPlain = (text) => /^[\w.:-]+$/.test(text);
  if (!isPlain(ip) || (username && !isPlain(username))) return null;
  return `ssh ${/^\d+$/.test(port) && Number(port) !== 22 ? `-p ${port} ` : ''}${username ? `${username}@` : ''}${ip}`;
}

const FACTS = {
  nodes: (node, {changed}) => [
    state(node), ...holdRows(node), ...useRows(node, changed),
    ...jobRows(node),
    ['Labels', node.labels.join(', ')],
    ['Address', node.interface_ip && copyable(node.interface_ip)],
    ['Log in', sshLine(node) && copyable(sshLine(node))],
    ['Provider', node.provider && link('providers', node.provider), node.pool && `, pool ${node.pool}`],
    ['Machine', typeof node.server_id === 'string' && copyable(node.server_id), node.hostname && node.hostname !== node.server_id && ` ${node.hostname}`],
    ['Made', moment(node.since)],
  ],
  requests: (request) => [
    ['State', badge(request.state), h('span', {class: 'quiet'}, ' made ', age(request.since), ' ago, ', date(request.since))],
    ['Why it waits', isWaiting(request) && reasonOf(request)],
    ['Why it failed', request.state === 'failed' && list(request.decline_reasons)],
    ['Asks for', counted(request.labels)],
    ['Asked by', request.requestor, request.tenant && `, tenant ${request.tenant}`],
    ['Nodes', request.nodes.length > 0 && links('nodes', request.nodes)],
    ['Accepted by', request.accepted_by && [link('providers', request.accepted_by.provider), ` ${request.accepted_by.pool}`]],
    ['Prefers', request.provider && link('providers', request.provider)],
  ],
  providers: (provider) => [
    state(provider),
    ['What is wrong', faultsOf(provider).length > 0 && list(faultsOf(provider).map(({kind, text}) => h('span', {class: kind}, text)))],
    ['Paused', provider.pause && provider.pause.at && moment(provider.pause.at)],
    ['Used', amounts(provider).map((amount) => meter(amount, provider.nodes))],
    ['Nodes', stateBadges(provider.nodes, {provider: provider.name})],
    ['Launching', provider.launches > 0 && plural(provider.launches, 'node')],
    ...(provider.pools ?? []).map((pool) => [`Pool ${pool.name}`, pool.is_waiting && badge('paused', 'waits for capacity'), pool.is_draining && badge('draining'),
                                             fullest(amounts(pool)).map((amount) => meter(amount, pool.nodes)), h('p', {}, pool.labels.map(({name}) => name).join(', '))]),
    ['Launchers', (provider.launchers ?? []).join(', ')],
    ['Driver', provider.driver],
  ],
  images: (image, {records}) => {
    const build = lastBuild(image, records.list('builds'));
    const own = (topic) => records.list(topic).filter((entry) => entry.image === image.name);
    return [
      ['Paused', image.is_paused && 'no builds are begun'],
      ['Last build', buildLine(image, build)],
      ['Its log', build && logOf(image.name, build.id)],
      ['In use is', image.newest_ready_build ? [link('images', `${image.name}/${image.newest_ready_build}`, `build ${image.newest_ready_build}`), ' of ', moment(image.newest_ready_build_since)]
        : 'no build is ready'],
      ['Where', h('span', {class: 'states'}, places(image, missingIn(image, records.list('uploads'))))],
      ['Next build', nextBuild(image.next_build)],
      ['Builds', own('builds').length > 0 && list(own('builds').map((each) => [link('images', `${image.name}/${each.id}`, each.id), ' ', badge(each.state)]))],
      ['Uploads', own('uploads').length > 0 && list(own('uploads').map((each) =>
        [link('images', `${image.name}/${each.build}/${each.provider}/${each.id}`, each.provider), ' ', badge(each.state), each.error && h('span', {class: 'bad'}, ` ${each.error}`)]))],
    ];
  },
  builds: (build) => [
    state(build), ['Error', build.error && h('span', {class: 'bad'}, build.error)], ['Log', logOf(build.image, build.id)],
    ['Image', link('images', build.image)], ['Made by', build.builder], ['Formats', build.formats.join(', ')],
  ],
  uploads: (upload) => [
    state(upload), ['Error', upload.error && h('span', {class: 'bad'}, upload.error)], ['Progress', upload.progress],
    ['Image', link('images', upload.image), ', build ', link('images', `${upload.image}/${upload.build}`, upload.build)],
    ['Provider', link('providers', upload.provider)],
    ['In the cloud', upload.external_name && copyable(upload.external_name)], ['Its id there', upload.external_id && copyable(upload.external_id)],
  ],
  jobs: (job) => [
    ['Rule', job.hold_on_failure > 0 ? `at most ${plural(job.hold_on_failure, 'node')} on which ${job.name} fails ${job.hold_on_failure === 1 ? 'is' : 'are'} held` : 'no nodes are held'],
    ['Held', job.held.length > 0 ? links('nodes', job.held) : 'none'],
    ['To be held', job.hold_notes.length > 0 && links('nodes', job.hold_notes)],
  ],
  runners: (set) => [
    ['State', badge(set.state), h('span', {class: 'quiet'}, ' since ', age(set.since))],
    ['What is wrong', set.fault && h('span', {class: 'bad'}, set.fault)],
    ['What to do', set.fault && set.remedy],
    ['Jobs waiting', set.waiting > 0 && `${number(set.waiting)}: ${set.why ?? ''}`],
    ['Runners', `${set.busy} busy, ${set.idle} idle, ${set.starting} starting, ${set.max_runners} at most`],
    ['Phantoms', set.phantoms > 0 && `${plural(set.phantoms, 'job')} that the service counts and that never came`],
    ['Service', set.url && copyable(set.url)],
    ['Served by', set.hostname],
  ],
  runner_jobs: (job) => [
    ['State', badge(job.state), h('span', {class: 'quiet'}, ' since ', age(job.since))],
    [job.state === 'lost' ? 'Why it was lost' : 'Why it waits', job.why],
    ['What to do', job.state === 'lost' && 'Run it again in the service, which fails it after some minutes and does not repeat it'],
    ['Repository', job.repository], ['Workflow', job.workflow], ['Job', job.job], ['Address', jobLink(job)],
    ['Node', job.node && link('nodes', job.node)], ['Runner', job.runner && copyable(job.runner)],
    ['Set', link('runners', job.set)], ['Time line', timeLine(job)],
  ],
  components: (component) => [
    ['What', `${component.kind} on ${component.hostname}`], ['State', badge(component.state)], ['Version', component.version],
    ['Pool', component.provider && [link('providers', component.provider), ` ${component.pool}`]],
    ['Labels', component.labels.join(', ')],
    ['Priority', component.priority !== null && component.priority !== undefined && number(component.priority)],
  ],
  changes: (change) => [['What', change.text], ['When', moment(change.at)], ['About', aboutLink(change)]],
};

const isSomething = (part) => part !== null && part !== undefined && part !== false && part !== '' && !(Array.isArray(part) && part.length === 0);

/** Rows of [title, parts…]; what is not known is left out. `context`: the records, and `changed()`, for what is asked for later. */
export function factsOf(topic, entry, context) {
  return FACTS[topic](entry, context).map(([title, ...parts]) => [title, parts.filter(isSomething)]).filter(([, parts]) => parts.length > 0);
}
