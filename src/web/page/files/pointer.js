// The values of a chart at the pointer.
import {drawn, PLOT} from './charts.js';
import {h} from './dom.js';
import {date, number} from './format.js';

const GAP = 14; // between the pointer and the box

const box = h('div', {class: 'tooltip', role: 'status', hidden: true});
const mark = h('div', {class: 'mark', hidden: true});

function hide() {
  box.hidden = mark.hidden = true;
}

function nearest(samples, share) {
  const [first, last] = [samples[0].at, samples.at(-1).at];
  const at = first + Math.min(1, Math.max(0, share)) * (last - first);
  return samples.reduce((best, sample) => (Math.abs(sample.at - at) < Math.abs(best.at - at) ? sample : best));
}

function fill(sample, {series, limit}) {
  const rows = [...series].reverse().map(({name, kind, value}) => {
    const found = value(sample);
    return found === null ? null : h('li', {class: kind}, h('span', {}, name), h('b', {}, number(found)));
  });
  box.replaceChildren(h('p', {}, date(sample.at)), h('ul', {}, rows.filter(Boolean),
                                                     limit !== null && h('li', {class: 'of-limit'}, h('span', {}, 'limit'), h('b', {}, number(limit)))));
}

function move(event) {
  const plot = event.target.closest?.('svg[data-chart]');
  const found = plot && drawn.get(plot.dataset.chart);
  if (!found) return hide();
  const {left, top, width, height} = plot.getBoundingClientRect();
  const begin = left + PLOT.left * width;
  const span = (PLOT.right - PLOT.left) * width;
  const sample = nearest(found.samples, (event.clientX - begin) / span);
  fill(sample, found);
  box.hidden = mark.hidden = false;
  const [first, last] = [found.samples[0].at, found.samples.at(-1).at];
  const x = begin + (span * (sample.at - first)) / Math.max(1, last - first);
  Object.assign(mark.style, {left: `${x}px`, top: `${top}px`, height: `${height}px`});
  const isRight = x + GAP + box.offsetWidth > innerWidth;
  Object.assign(box.style, {left: `${isRight ? Math.max(0, x - GAP - box.offsetWidth) : x + GAP}px`,
                            top: `${Math.max(0, Math.min(event.clientY, innerHeight - box.offsetHeight - GAP))}px`});
  return undefined;
}

/** Shows the values of the chart under the pointer, also of a finger. */
export function followPointer() {
  document.body.append(mark, box);
  for (const name of ['pointermove', 'pointerdown']) document.addEventListener(name, move);
  for (const name of ['scroll', 'keydown', 'route']) addEventListener(name, hide, {capture: true, passive: true});
}
