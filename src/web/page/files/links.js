// Links from one entry to another.
import {h} from './dom.js';
import {view} from './route.js';

const VIEW_OF = {builds: 'images', uploads: 'images', changes: 'events', runner_jobs: 'runners'};

/** The URL of an entry of a topic. */
export function urlOf(topic, key) {
  if (topic === 'labels') return view('nodes', {label: key});
  return view(VIEW_OF[topic] ?? topic, {id: key});
}

/** A link to an entry, by its key. */
export const link = (topic, key, text = key) => h('a', {href: urlOf(topic, key)}, text);

/** Links to several entries. */
export const links = (topic, keys) => keys.map((key, i) => [i ? ', ' : '', link(topic, key)]);

const TOPIC_OF = {node: 'nodes', request: 'requests', image: 'images', provider: 'providers'};

/** A link to what a change is about. */
export function aboutLink({kind, about}, text = about) {
  const isComponent = kind === 'provider' && about.includes('/');
  return link(isComponent ? 'components' : TOPIC_OF[kind] ?? 'events', about, text);
}
