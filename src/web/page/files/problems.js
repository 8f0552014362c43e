// What an operator looks at first, the most urgent on top.
import {h} from './dom.js';
import {age} from './format.js';
import {urlOf} from './links.js';

const MOST = 5; // that are in sight

/** Bad ones before those that only wait; a launcher that lists none has its one fault in the status. */
export function problemsOf(records) {
  const listed = records.list('problems');
  if (listed.length === 0 && records.status?.fault) {
    return [{id: 'status', severity: 'bad', since: null, subject: null, text: records.status.fault, remedy: null}];
  }
  return listed.sort((a, b) => (a.severity === b.severity ? 0 : a.severity === 'bad' ? -1 : 1));
}

function line({severity, since, subject, text, remedy}) {
  return h('li', {class: severity === 'bad' ? 'bad' : 'wait'},
           h('span', {class: 'words'}, subject ? h('a', {href: urlOf(subject.topic, subject.key)}, text) : text,
             remedy && h('span', {class: 'remedy'}, ' ', remedy)),
           since && h('span', {class: 'since'}, 'for ', age(since)));
}

/** The list as a section; `isKnown`: the launcher knows all records. */
export function problems(list, isKnown) {
  if (list.length === 0) return h('p', {id: 'problems', class: 'well'}, isKnown ? 'All is well.' : '');
  return h('section', {id: 'problems', 'aria-labelledby': 'problems-title'}, h('h2', {id: 'problems-title'}, 'Look at first'),
           h('ul', {class: 'problems'}, list.slice(0, MOST).map(line)),
           list.length > MOST && h('details', {}, h('summary', {}, `${list.length - MOST} more`), h('ul', {class: 'problems'}, list.slice(MOST).map(line))));
}
