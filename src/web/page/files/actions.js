// What operators change, with a token (http-actions.md): which actions an entry has, and how they are carried out.
import {ask} from './dialog.js';
import {h} from './dom.js';
import {userOf} from './facts.js';
import {leaseOf, mayEnd} from './leases.js';
import {keyOf} from './records.js';
import {enterToken, forget, may, refusal, send, token, tokenButton} from './token.js';

const path = (...parts) => parts.map(encodeURIComponent).join('/');
const reason = {name: 'reason', label: 'Reason', hint: 'shown to everybody', type: 'text'};
const drain = {name: 'drain', label: 'Delete its unused nodes, too', type: 'checkbox'};
const time = {name: 'seconds', label: 'For how many hours', hint: 'without it until max-hold-age', type: 'number',
              read: (value) => Math.round(Number(value) * 3600)};
const jobName = {name: 'name', label: 'Job', hint: 'its name, or a regular expression that begins with ^', type: 'text', isRequired: true};
const atMost = {name: 'hold_on_failure', label: 'How many nodes at most', type: 'number', isRequired: true, read: (value) => Math.round(Number(value))};

const upload = (e) => path('images', e.image, 'builds', e.build, 'uploads', e.provider, e.id);

// Who uses a node has to give it back first, or its lease is ended.
function inUse(node) {
  const user = userOf(node);
  if (!user) return null;
  const way = leaseOf(node) ? '; end the lease to take it back' : '';
  return `It is in use by ${user}. While that has its lock, this is refused${way}.`;
}

// By topic; `if` says for which entries, `means` what happens, `warns` what stands against it.
const ACTIONS = {
  nodes: {
    endLease: {title: 'End the lease', method: 'DELETE', path: (e) => path('requests', leaseOf(e).id), bad: true, if: (e) => Boolean(leaseOf(e)), may: (e) => mayEnd(leaseOf(e)),
               means: (e) => `All nodes of the lease are taken from ${leaseOf(e).client} at once and deleted; what runs on them is lost.`},
    hold: {title: 'Hold', method: 'POST', path: (e) => path('nodes', e.id, 'hold'), fields: [reason, time], warns: inUse,
           means: () => 'The node is kept for a person to inspect, and not given to anybody else.'},
    unhold: {title: 'Give back', method: 'POST', path: (e) => path('nodes', e.id, 'unhold'), if: (e) => e.state === 'hold',
             means: () => 'The hold ends, and the node is deleted.'},
    delete: {title: 'Delete', method: 'DELETE', path: (e) => path('nodes', e.id), bad: true, warns: inUse,
             means: () => 'The machine is deleted with all that is on it.'},
  },
  images: {
    build: {title: 'Build now', method: 'POST', path: (e) => path('images', e.name, 'build'), if: (e) => !e.build_request,
            means: () => 'A builder makes a new build as soon as it can, and uploads it.'},
    pause: {title: 'Pause', method: 'POST', path: (e) => path('images', e.name, 'pause'), if: (e) => !e.is_paused,
            means: () => 'No builds are begun any more. What is uploaded stays in use.'},
    unpause: {title: 'Build again', method: 'POST', path: (e) => path('images', e.name, 'unpause'), if: (e) => e.is_paused,
              means: () => 'The image is built when it is due.'},
  },
  builds: {
    delete: {title: 'Delete', method: 'DELETE', path: (e) => path('images', e.image, 'builds', e.id), bad: true,
             means: () => 'The build is deleted with all its uploads; nodes boot from the one before.'},
  },
  uploads: {
    retry: {title: 'Try again now', method: 'POST', path: (e) => path('images', e.image, 'uploads', e.provider, 'retry'),
            if: (e) => e.state === 'failed',
            means: (e) => `The newest build of ${e.image} is uploaded to ${e.provider} without waiting for the next attempt.`},
    delete: {title: 'Delete', method: 'DELETE', path: upload, bad: true,
             means: () => 'The upload is deleted in the cloud; that of the newest build is made again.'},
  },
  providers: {
    pause: {title: 'Pause', method: 'POST', path: (e) => path('providers', e.name, 'pause'), fields: [reason, drain], if: (e) => !e.pause,
            means: () => 'No launcher takes requests for it or launches nodes in it. Requests that only it could serve fail. Nodes in use stay.'},
    unpause: {title: 'Use again', method: 'POST', path: (e) => path('providers', e.name, 'unpause'), if: (e) => e.pause,
              means: () => 'Launchers take requests for it again.'},
  },
  jobs: {
    delete: {title: 'Delete', method: 'DELETE', path: (e) => path('jobs', e.id), bad: true,
             means: () => 'No more nodes are held for the job. What is held stays held.'},
  },
};

// Of a whole list.
const CREATIONS = {
  jobs: {title: 'Hold nodes of a job', method: 'POST', path: () => 'jobs', fields: [jobName, atMost],
         means: () => 'Nodes on which the job fails are held for a person to inspect, at most so many at a time.'},
};

const WHAT = {nodes: 'node', images: 'image', builds: 'build', uploads: 'upload', providers: 'provider', jobs: 'rule'};

const button = (topic, action, key, {title, bad}) =>
  h('button', {type: 'button', class: bad ? 'bad' : null, 'data-action': action, 'data-topic': topic, 'data-key': key}, `${title}…`);

/** The buttons of an entry; one that asks for a token where there is none. */
export function actionBar(topic, entry) {
  if (!(topic in ACTIONS)) return null;
  const offered = Object.entries(ACTIONS[topic]).filter(([, action]) => (!action.if || action.if(entry)) && (action.may ? action.may(entry) : may('operate')));
  return [token() && !may('operate') && h('p', {class: 'quiet refusal'}, refusal()),
          h('p', {class: 'actions'}, token() && offered.map(([name, action]) => button(topic, name, keyOf(topic, entry), action)), tokenButton())];
}

/** The button that makes a new entry of a list; null: there is none. */
export function creationBar(topic) {
  if (!(topic in CREATIONS)) return null;
  return h('span', {class: 'actions'}, may('operate') ? button(topic, 'create', '', CREATIONS[topic]) : token() ? null : tokenButton());
}

function confirm(topic, action, entry, changed) {
  const what = entry ? `${WHAT[topic]} ${keyOf(topic, entry)}` : '';
  ask({
    title: what ? `${action.title}: ${what}` : action.title, button: action.title, isBad: action.bad, fields: action.fields ?? [],
    text: [action.means(entry), entry && action.warns?.(entry)].filter(Boolean),
    act: async (values) => {
      try {
        const answer = await send(action.method, action.path(entry), {body: Object.keys(values).length ? values : null});
        const state = answer.pause ? (answer.pause.is_drained ? 'drained' : 'paused') : answer.state;
        return what ? `Done: ${what}${state ? ` is ${state}` : ''}.` : `Done: ${WHAT[topic]} ${answer.id} is made.`;
      } finally {
        changed();
      }
    },
  });
}

/** Carries out what the buttons say. `find(topic, key)` returns an entry; `changed()` is called when buttons may have changed. */
export function followActions(find, changed) {
  document.addEventListener('click', (event) => {
    const {action, topic, key} = event.target.closest('button[data-action]')?.dataset ?? {};
    if (action === 'token') enterToken(changed);
    else if (action === 'forget') {
      forget();
      changed();
    } else if (action === 'create') confirm(topic, CREATIONS[topic], null, changed);
    else if (action) {
      const entry = find(topic, key);
      if (entry) confirm(topic, ACTIONS[topic][action], entry, changed);
    }
  });
}
