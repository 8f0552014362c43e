// Images: how their last build went, how old what is in use is, and where it is missing.
import {h} from './dom.js';
import {age, badge, duration, now} from './format.js';
import {view} from './route.js';

/** The newest build with its error; null: there is none, or none that is still known. */
export function lastBuild(image, builds) {
  if (image.last_build !== undefined) return image.last_build;
  const own = builds.filter((build) => build.image === image.name).sort((a, b) => b.state_since - a.state_since)[0];
  return own ? {id: own.id, state: own.state, since: own.state_since, error: own.error ?? null} : null;
}

/** The providers that want the image and lack an upload that can be used. */
export function missingIn(image, uploads) {
  if (image.missing_in !== undefined) return image.missing_in;
  const failed = uploads.filter(({image: name, state, provider}) => name === image.name && state === 'failed' && !image.ready_in.includes(provider));
  return [...new Set(failed.map(({provider}) => provider))];
}

/** "failed 4 min ago: disk-image-create ended with 1" */
export function buildLine(image, build) {
  if (!build) return 'none';
  return [h('a', {class: `badge ${badge(build.state).className.split(' ')[1]}`, href: view('images', {id: `${image.name}/${build.id}`})}, build.state), ' ',
          h('span', {class: 'quiet'}, age(build.since)), build.error && h('span', {class: 'fault'}, ` ${build.error}`)];
}

/** Where it is ready, and where it is missing. */
export function places(image, missing) {
  return [image.ready_in.map((name) => h('a', {class: 'badge good', href: view('images', {image: image.name, provider: name})}, name)),
          missing.map((name) => h('a', {class: 'badge bad', href: view('images', {image: image.name, provider: name})}, `missing in ${name}`)),
          image.ready_in.length + missing.length === 0 && '–'];
}

export const nextBuild = (at) => (at === null || at === undefined ? '–' : at > now() ? `in ${duration(at - now())}` : 'due');

export function images(list, builds, uploads) {
  const cell = (title, ...content) => h('td', {'data-title': title}, content);
  const rows = [...list].sort((a, b) => (a.name < b.name ? -1 : 1)).map((image) => h('tr', {},
    h('th', {scope: 'row'}, h('a', {href: view('images', {id: image.name})}, image.name),
      image.is_paused && badge('paused'), image.build_request === 'pending' && badge('pending', 'a build is asked for')),
    cell('Last build', buildLine(image, lastBuild(image, builds))),
    cell('In use is', image.newest_ready_build ? [age(image.newest_ready_build_since), ' old'] : h('span', {class: 'fault'}, 'no build is ready')),
    cell('Next build', nextBuild(image.next_build)),
    cell('Ready in', places(image, missingIn(image, uploads)))));
  return h('table', {class: 'stacking'},
           h('thead', {}, h('tr', {}, ['Image', 'Last build', 'What is in use', 'Next build', 'Ready in'].map((title) => h('th', {scope: 'col'}, title)))),
           h('tbody', {}, rows));
}
