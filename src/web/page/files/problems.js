// What an operator looks at first, the most urgent on top.
import {h} from './dom.js';
import {age, plural} from './format.js';
import {urlOf} from './links.js';

const MOST = 5; // that are in sight

// As the launcher orders them: what is bad, what delays most requests, what its kind says, what lasts longest.
const isBad = ({severity}) => Number(severity === 'bad');
const worstFirst = (a, b) => isBad(b) - isBad(a) || b.delayed_requests - a.delayed_requests ||
  a.rank - b.rank || (a.since ?? Infinity) - (b.since ?? Infinity) || 0;

/** The worst first; a launcher that lists none has its one fault in the status. */
export function problemsOf(records) {
  const listed = records.list('problems');
  if (listed.length === 0 && records.status?.fault) {
    return [{id: 'status', severity: 'bad', since: null, topic: null, text: records.status.fault, remedy: null}];
  }
  return listed.sort(worstFirst);
}

// The link leads to more on the page; the command that shows more is told where the pointer rests.
function line({severity, since, topic, key, text, remedy, command, delayed_requests: delayed}) {
  return h('li', {class: severity === 'bad' ? 'bad' : 'wait', title: command ?? ''},
           h('span', {class: 'words'}, topic ? h('a', {href: urlOf(topic, key)}, text) : text,
             remedy && h('span', {class: 'remedy'}, ' ', remedy)),
           (since || delayed > 0) && h('span', {class: 'since'}, since && ['for ', age(since)],
             delayed > 0 && h('span', {class: 'delayed'}, `delays ${plural(delayed, 'request')}`)));
}

/** The list as a section; `isKnown`: the launcher knows all records. */
export function problems(list, isKnown) {
  if (list.length === 0) return h('p', {id: 'problems', class: 'well'}, isKnown ? 'All is well.' : '');
  return h('section', {id: 'problems', 'aria-labelledby': 'problems-title'}, h('h2', {id: 'problems-title'}, 'Look at first'),
           h('ul', {class: 'problems'}, list.slice(0, MOST).map(line)),
           list.length > MOST && h('details', {}, h('summary', {}, `${list.length - MOST} more`), h('ul', {class: 'problems'}, list.slice(MOST).map(line))));
}
