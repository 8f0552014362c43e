// Jobs of CI services on nodes. All texts about a job are the service's.
import {h} from './dom.js';
import {date, duration} from './format.js';

/** The job in the record of a node that a set of runners uses; null: there is none. */
export function jobOf({user_data: data}) {
  const job = data !== null && typeof data === 'object' ? data.runner : null;
  return job !== null && typeof job === 'object' && typeof job.repository === 'string' ? job : null;
}

/** "octo/app: build" */
export function jobText(node) {
  const job = jobOf(node);
  return job ? `${job.repository}: ${job.job}` : '';
}

/** A link to where the service shows the job; null: it has no address that may be followed. */
export function jobLink(job) {
  if (typeof job.run_url !== 'string' || !/^https:[/][/]/.test(job.run_url)) return null;
  return h('a', {href: job.run_url, rel: 'noreferrer', target: '_blank'}, job.run_url);
}

const STEPS = [['queued_at', 'queued'], ['assigned_at', 'assigned'], ['wanted_at', 'node requested'], ['node_at', 'has its node'],
               ['online_at', 'runner online'], ['first_step_at', 'first step']];

/** The time line of a job: each step, and how long after the one before. */
export function timeLine(job) {
  const steps = STEPS.filter(([key]) => typeof job[key] === 'number').map(([key, text]) => [job[key], text]).sort(([a], [b]) => a - b);
  return steps.map(([at, text], i) => h('p', {}, `${text} `, i === 0 ? date(at) : `${(at - steps[i - 1][0]).toFixed(1)} s later`,
                                        i > 1 && h('span', {class: 'quiet'}, `, ${duration(at - steps[0][0])} in all`)));
}
