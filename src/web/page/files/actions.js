// What operators change, with a token (http-actions.md): which actions an entry has, and how they are carried out.
import {ask} from './dialog.js';
import {h} from './dom.js';
import {keyOf} from './records.js';

const TOKEN = 'nodepool-token';

// The token is in this tab alone, until it is closed.
export const token = () => sessionStorage.getItem(TOKEN);

const path = (...parts) => parts.map(encodeURIComponent).join('/');
const reason = {name: 'reason', label: 'Reason', hint: 'shown to everybody', type: 'text'};
const drain = {name: 'drain', label: 'Delete its unused nodes, too', type: 'checkbox'};
const time = {name: 'seconds', label: 'For how many hours', hint: 'without it until max-hold-age', type: 'number',
              read: (value) => Math.round(Number(value) * 3600)};

const upload = (e) => path('images', e.image, 'builds', e.build, 'uploads', e.provider, e.id);

// By topic; `if` says for which entries, `means` what happens.
const ACTIONS = {
  nodes: {
    hold: {title: 'Hold', method: 'POST', path: (e) => path('nodes', e.id, 'hold'), fields: [reason, time],
           means: () => 'The node is kept for a person to inspect, and not given to anybody else.'},
    unhold: {title: 'Give back', method: 'POST', path: (e) => path('nodes', e.id, 'unhold'), if: (e) => e.state === 'hold',
             means: () => 'The hold ends, and the node is deleted.'},
    delete: {title: 'Delete', method: 'DELETE', path: (e) => path('nodes', e.id), bad: true,
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
};

const WHAT = {nodes: 'node', images: 'image', builds: 'build', uploads: 'upload', providers: 'provider'};

/** The buttons of an entry; one that asks for a token where there is none. */
export function actionBar(topic, entry) {
  if (!(topic in ACTIONS)) return null;
  if (!token()) return h('p', {class: 'actions'}, h('button', {type: 'button', 'data-action': 'token'}, 'Enter a token to change it…'));
  const buttons = Object.entries(ACTIONS[topic]).filter(([, action]) => !action.if || action.if(entry)).map(([name, {title, bad}]) =>
    h('button', {type: 'button', class: bad ? 'bad' : null, 'data-action': name, 'data-topic': topic, 'data-key': keyOf(topic, entry)}, `${title}…`));
  return h('p', {class: 'actions'}, buttons, h('button', {type: 'button', 'data-action': 'forget'}, 'Forget the token'));
}

async function send(method, target, authorization, body) {
  const headers = {Authorization: `Bearer ${authorization}`, Accept: 'application/json'};
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch(`api/v1/${target}`, {method, headers, body: body && JSON.stringify(body)});
  if (answer.status === 401) sessionStorage.removeItem(TOKEN);
  const text = await answer.text();
  let read = {};
  try {
    read = text ? JSON.parse(text) : {};
  } catch {
    read = {message: text};
  }
  if (!answer.ok) throw new Error(read.message || `The server answers ${answer.status}.`);
  return read;
}

function enterToken(changed) {
  ask({
    title: 'Enter a token', button: 'Use it',
    text: ['A token with the scope operate, made by `nodepool token NAME --scope operate`. It stays in this tab until the tab is closed.'],
    fields: [{name: 'token', label: 'Token', type: 'password', isRequired: true}],
    act: async ({token: text}) => {
      await send('GET', 'leases', text);
      sessionStorage.setItem(TOKEN, text);
      changed();
      return 'The token is good. What it allows shows with each action.';
    },
  });
}

function confirm(topic, action, entry, changed) {
  const what = `${WHAT[topic]} ${keyOf(topic, entry)}`;
  ask({
    title: `${action.title}: ${what}`, button: action.title, isBad: action.bad, text: [action.means(entry)], fields: action.fields ?? [],
    act: async (values) => {
      try {
        const answer = await send(action.method, action.path(entry), token(), Object.keys(values).length ? values : null);
        const state = answer.pause ? (answer.pause.is_drained ? 'drained' : 'paused') : answer.state;
        return `Done: ${what}${state ? ` is ${state}` : ''}.`;
      } finally {
        changed();
      }
    },
  });
}

/** Carries out what the buttons say. `find(topic, key)` returns an entry; `changed()` is called when buttons may have changed. */
export function followActions(find, changed) {
  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-action]');
    if (!button) return;
    const {action, topic, key} = button.dataset;
    if (action === 'token') enterToken(changed);
    else if (action === 'forget') {
      sessionStorage.removeItem(TOKEN);
      changed();
    } else {
      const entry = find(topic, key);
      if (entry) confirm(topic, ACTIONS[topic][action], entry, changed);
    }
  });
}
