// The state of the page is its URL: what it shows, filters and the order.

/** The parameters of the URL. */
export function parameters() {
  return new URLSearchParams(location.search);
}

/** The URL with some parameters changed: null removes one, a list repeats it. */
export function target(changes, from = parameters()) {
  const query = new URLSearchParams(from);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of [value ?? []].flat()) query.append(name, each);
  }
  return `?${query}`;
}

/** The URL of a view. */
export const view = (name, filters = {}) => target({view: name, ...filters}, new URLSearchParams());

/** Changes parameters; without a new entry in the history if `replaces`. */
export function go(url, replaces = false) {
  history[replaces ? 'replaceState' : 'pushState'](null, '', url);
  dispatchEvent(new Event('route'));
}

function followLink(event) {
  const link = event.target.closest('a[href^="?"], a[href="./"]');
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute('href'));
}

/** Calls a function after each change of the URL. */
export function follow(changed) {
  addEventListener('popstate', changed);
  addEventListener('route', changed);
  document.addEventListener('click', followLink);
}
