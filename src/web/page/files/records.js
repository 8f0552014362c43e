// Everything that the page knows, by topic and key.
import {setClock} from './format.js';

const KEYS = {
  nodes: (e) => e.id,
  requests: (e) => e.id,
  images: (e) => e.name,
  builds: (e) => `${e.image}/${e.id}`,
  uploads: (e) => `${e.image}/${e.build}/${e.provider}/${e.id}`,
  providers: (e) => e.name,
  components: (e) => e.path,
  jobs: (e) => e.id,
  runners: (e) => e.set,
  runner_jobs: (e) => `${e.set}/${e.id}`,
  problems: (e) => e.id,
};
export const RESOURCES = Object.keys(KEYS);
export const TOPICS = [...RESOURCES, 'changes', 'samples', 'status'];

const MAX_CHANGES = 1000;
const MAX_SAMPLES = 360;
const RETRY = 2000;
const DAY_AGE = 60000;

export const keyOf = (topic, entry) => KEYS[topic](entry);

// Lists have ages, events have times.
function withTimes(entry, made) {
  for (const [key, value] of Object.entries(entry)) {
    if (/(^|_)age$/.test(key) && typeof value === 'number') entry[key.replace(/age$/, 'since')] = made - value;
  }
  return entry;
}

async function get(path) {
  const answer = await fetch(`api/v1/${path}`);
  if (!answer.ok) throw new Error(await answer.text());
  return {body: await answer.json(), made: Date.parse(answer.headers.get('Last-Modified')) / 1000};
}

export class Records {
  /** `changed(topic)` is called after each change; null: of everything. */
  constructor(changed) {
    this.changed = changed;
    this.tables = Object.fromEntries(RESOURCES.map((name) => [name, new Map()]));
    this.partial = new Set(); // resources with more entries than a list has
    this.changes = []; // the latest first
    this.samples = {hour: [], day: []};
    this.status = null;
    this.fault = 'Loading…'; // why nothing is known yet
    this.waiting = []; // events that arrive while lists are loaded; null: none are
    this.loads = 0;
    this.made = 0; // when the oldest list was made
    this.dayUntil = -Infinity; // when the samples of a day are to be loaded again
    this.completeSince = null; // from when on events are known
    this.load();
  }

  list(topic) {
    return [...this.tables[topic].values()];
  }

  find(topic, key) {
    return this.tables[topic].get(key);
  }

  /** An event of the stream. */
  heard(name, data) {
    if (name === 'hello') {
      setClock(data.now);
      this.status = data.status;
      this.completeSince ??= data.complete_since;
      if (this.waiting === null && this.#isGap()) this.load();
      this.changed('status');
    } else if (name === 'reset') {
      this.load();
    } else if (this.waiting) {
      this.waiting.push([name, data]);
    } else {
      this.#apply(name, data);
      this.changed(name);
    }
  }

  // Whether there may have been changes between the lists and the first event.
  #isGap() {
    return this.completeSince !== null && this.made < this.completeSince;
  }

  #apply(topic, data) {
    if (topic === 'status') {
      this.status = data;
    } else if (topic === 'samples') {
      this.samples.hour = [...this.samples.hour, data].slice(-MAX_SAMPLES);
    } else if (topic === 'changes') {
      if (!this.changes.some((change) => change.id === data.id)) this.changes.unshift(data);
      this.changes.length = Math.min(this.changes.length, MAX_CHANGES);
    } else if (data.is_gone) {
      this.tables[topic].delete(data.id);
    } else {
      this.tables[topic].set(keyOf(topic, data), data);
    }
  }

  /** Loads everything; events that arrive meanwhile count more. */
  async load() {
    const load = ++this.loads;
    clearTimeout(this.timer);
    this.waiting ??= [];
    try {
      const [changes, samples, ...lists] = await Promise.all(
          [get('changes?limit=1000'), get('samples?since=3600'), ...RESOURCES.map(get)]);
      if (load !== this.loads) return;
      RESOURCES.forEach((name, i) => this.#replace(name, lists[i]));
      this.changes = changes.body.changes;
      this.samples.hour = samples.body.hour;
      this.fault = null;
      this.made = Math.min(...lists.map(({made}) => made));
      const waiting = this.waiting;
      this.waiting = null;
      waiting.forEach(([name, data]) => this.#apply(name, data));
      if (this.#isGap()) this.timer = setTimeout(() => this.load(), RETRY);
    } catch (error) {
      if (load !== this.loads) return;
      this.fault = error.message;
      this.timer = setTimeout(() => this.load(), RETRY);
    }
    this.changed(null);
  }

  /** Loads the samples of the last day, if they are older than a minute: they are large, and seldom asked for. */
  async loadDay() {
    if (performance.now() < this.dayUntil) return;
    this.dayUntil = performance.now() + DAY_AGE;
    this.samples.day = (await get('samples')).body.day;
    this.changed('samples');
  }

  #replace(name, {body, made}) {
    this.tables[name] = new Map(body[name].map((entry) => [keyOf(name, entry), withTimes(entry, made)]));
    if (body.is_complete) this.partial.delete(name);
    else this.partial.add(name);
  }
}
