// The ends of builds' logs, asked for when somebody wants to read them.
import {h} from './dom.js';

const known = new Map(); // by "IMAGE/BUILD": the text, or why there is none

const path = (image, build) => `images/${encodeURIComponent(image)}/builds/${encodeURIComponent(build)}/log`;

/** The end of a build's log, or the button that asks for it. */
export function logOf(image, build) {
  const text = known.get(`${image}/${build}`);
  if (text === undefined) return h('button', {type: 'button', 'data-log-image': image, 'data-log-build': build}, 'Show the end of the log');
  return h('pre', {class: 'log', tabindex: '0', 'aria-label': 'End of the log'}, text);
}

async function load(image, build) {
  const answer = await fetch(`api/v1/${path(image, build)}`);
  const text = await answer.text();
  if (answer.ok) return text;
  return answer.status === 404 && !text.trim() ? 'This launcher has no logs of builds.' : text;
}

export function followLogs(changed) {
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('button[data-log-build]');
    if (!button) return;
    const {logImage: image, logBuild: build} = button.dataset;
    const text = await load(image, build).catch((error) => error.message);
    known.set(`${image}/${build}`, text);
    changed();
    const log = document.querySelector('pre.log');
    if (log) log.scrollTop = log.scrollHeight;
  });
}
