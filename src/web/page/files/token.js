// The token by which a person changes something: it is in this tab alone, until it is closed.
import {ask} from './dialog.js';
import {h} from './dom.js';

const TOKEN = 'nodepool-token';
const SCOPES = 'nodepool-token-scopes';
const NAME = 'nodepool-token-name';

export const token = () => sessionStorage.getItem(TOKEN);
export const tokenName = () => sessionStorage.getItem(NAME) ?? '';
export const may = (scope) => (sessionStorage.getItem(SCOPES) ?? '').split(' ').includes(scope);

export function forget() {
  for (const key of [TOKEN, SCOPES, NAME]) sessionStorage.removeItem(key);
}

/** Asks the API with a token, this tab's without another one. Throws what it is refused with. */
export async function send(method, target, {authorization = token(), body} = {}) {
  const headers = {Authorization: `Bearer ${authorization}`, Accept: 'application/json'};
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch(`api/v1/${target}`, {method, headers, body: body && JSON.stringify(body)});
  if (answer.status === 401) forget();
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

export const refusal = () => `${tokenName()} may not change anything here: it lacks the scope operate.`;

/** Asks for a token, and says what it allows. */
export function enterToken(changed) {
  ask({
    title: 'Enter a token', button: 'Use it',
    text: ['A token with the scope operate, made by `nodepool token NAME --scope operate`. It stays in this tab until the tab is closed.'],
    fields: [{name: 'token', label: 'Token', type: 'password', isRequired: true}],
    act: async ({token: text}) => {
      const {name, scopes} = await send('GET', 'token', {authorization: text});
      sessionStorage.setItem(TOKEN, text);
      sessionStorage.setItem(NAME, name);
      sessionStorage.setItem(SCOPES, scopes.join(' '));
      changed();
      return may('operate') ? `The token is good: ${name} may change what is shown here.` : refusal();
    },
  });
}

/** The button that asks for a token, or lets it go. */
export const tokenButton = () => (token() ? h('button', {type: 'button', 'data-action': 'forget'}, 'Forget the token')
  : h('button', {type: 'button', 'data-action': 'token'}, 'Enter a token to change it…'));
