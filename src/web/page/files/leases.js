// The leases of clients over HTTP that hold nodes. Who may see one is the server's decision, so it is asked for with the token.
import {now} from './format.js';
import {may, send, token, tokenName} from './token.js';

const AGE = 10; // seconds for which an answer is good

const known = new Map(); // by id: {lease, at}; the lease is null while it is not known

/** The lease's id and client in the record of a node that one holds; null: no lease holds it. */
export function leaseOf({user_data: data, state}) {
  const isLease = data !== null && typeof data === 'object' && typeof data.lease === 'string' && typeof data.client === 'string';
  return isLease && state === 'in-use' ? {id: data.lease, client: data.client} : null;
}

/** Whether this tab's token may see and end it. */
export const mayEnd = (lease) => Boolean(token()) && (may('operate') || tokenName() === lease.client);

/** When the lease ends unless it is renewed; null: not known, or not yet; `changed()` is called when it is. */
export function endOf(lease, changed) {
  if (!mayEnd(lease)) return null;
  const entry = known.get(lease.id);
  if (!entry || now() - entry.at > AGE) {
    known.set(lease.id, {lease: entry?.lease ?? null, at: now()});
    send('GET', `requests/${encodeURIComponent(lease.id)}`).then((found) => {
      known.set(lease.id, {lease: found, at: now()});
      changed();
    }).catch(() => {});
  }
  const found = known.get(lease.id).lease;
  return found && found.renewed !== null ? found.renewed + found.lease : null;
}
