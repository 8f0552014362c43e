// The cluster at a glance: is it bad, what is bad, what is to be done.
import {h} from './dom.js';
import {age} from './format.js';
import {charts} from './history.js';
import {images} from './images.js';
import {labels} from './labels.js';
import {aboutLink} from './links.js';
import {problems, problemsOf} from './problems.js';
import {providers} from './providers.js';
import {parameters, view} from './route.js';
import {outcomes, tiles} from './tiles.js';
import {isWaiting, waiting} from './waiting.js';

const MOST_CHANGES = 14;

const section = (id, title, ...content) =>
  h('section', {id, 'aria-labelledby': `${id}-title`}, h('h2', {id: `${id}-title`}, title), content);
const empty = (text) => h('p', {class: 'quiet'}, text);
const sideways = (label, content) => h('div', {class: 'sideways', tabindex: '0', role: 'region', 'aria-label': label}, content);

function changes(all) {
  const latest = all.slice(0, MOST_CHANGES);
  if (latest.length === 0) return empty('Nothing since the launcher started.');
  return [h('ol', {class: 'changes'}, latest.map((change) => h('li', {}, age(change.at), aboutLink(change, change.text)))),
          h('p', {}, h('a', {href: view('events')}, 'All events'))];
}

// What to do next where there is nothing to see yet.
function welcome(list) {
  const label = list.flatMap((provider) => provider.labels ?? [])[0];
  if (list.length === 0) return h('p', {id: 'welcome'}, 'No provider is configured yet: describe a cloud or hosts under ', h('code', {}, 'providers'),
                                  ' in nodepool.yaml; they appear here at once.');
  return h('p', {id: 'welcome'}, 'No machines yet: ask for one with ', h('code', {}, `nodepool request ${label ?? 'LABEL'} --wait`),
           ', or have some kept ready with ', h('code', {}, 'min-ready'), '.');
}

/** The sections of the overview. */
export function overview(records) {
  const [nodes, requests, list] = ['nodes', 'requests', 'providers'].map((topic) => records.list(topic));
  const isDay = parameters().get('range') === 'day';
  if (isDay) records.loadDay();
  const samples = records.samples[isDay ? 'day' : 'hour'];
  const now = requests.filter(isWaiting);
  const launches = outcomes(records.samples.hour);
  const isEmpty = nodes.length === 0 && requests.length === 0;
  const own = records.list('images');
  return [
    problems(problemsOf(records), records.status?.is_complete !== false),
    isEmpty ? welcome(list) : tiles({nodes, waiting: now, launches, samples: records.samples.hour}),
    h('div', {class: 'overview'},
      list.length > 0 && section('providers', 'Providers', providers(list, launches)),
      section('waiting', 'Requests waiting', now.length ? waiting(now) : empty('No request waits.')),
      own.length > 0 && section('images', 'Images', sideways('Images', images(own, records.list('builds'), records.list('uploads')))),
      section('labels', 'Nodes by label and state', sideways('Nodes by label and state', labels(list, nodes, now))),
      section('changes', 'What changed lately', changes(records.changes)),
      isEmpty ? null : section('charts', 'Over time', charts(samples, list))),
  ];
}
