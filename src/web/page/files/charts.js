// Lines over time, as SVG, each with its numbers as a table.
import {h, svg} from './dom.js';
import {number, timeOfDay} from './format.js';

const WIDTH = 480;
const HEIGHT = 140;
const LEFT = 40;
const BOTTOM = 20;
const ROWS = 15;

function niceTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value);
}

function grid(top, first, last) {
  const lines = [0, 0.5, 1].map((share) => {
    const y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 8);
    return [svg('line', {class: 'grid', x1: LEFT, x2: WIDTH, y1: y, y2: y}),
            svg('text', {class: 'label', x: LEFT - 4, y: y + 4, 'text-anchor': 'end'}, (share * top).toLocaleString(undefined, {maximumSignificantDigits: 2}))];
  });
  return [lines, svg('text', {class: 'label', x: LEFT, y: HEIGHT - 4}, timeOfDay(first)),
          svg('text', {class: 'label', x: WIDTH, y: HEIGHT - 4, 'text-anchor': 'end'}, timeOfDay(last))];
}

function path(points, top, first, last) {
  const x = (at) => LEFT + ((at - first) / Math.max(1, last - first)) * (WIDTH - LEFT);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 8);
  let isPen = false;
  return points.map(([at, value]) => {
    if (value === null) {
      isPen = false;
      return '';
    }
    const step = `${isPen ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    // A single point shows as a dot.
    const dot = isPen ? '' : 'h0.01';
    isPen = true;
    return step + dot;
  }).join('');
}

function table(title, samples, series) {
  const rows = samples.slice(-ROWS).reverse();
  return h('details', {}, h('summary', {}, 'As a table'),
           h('div', {class: 'sideways', tabindex: '0', role: 'region', 'aria-label': `${title}, as a table`},
             h('table', {}, h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Time'),
                                             series.map(({name}) => h('th', {scope: 'col'}, name)))),
               h('tbody', {}, rows.map((sample) => h('tr', {}, h('th', {scope: 'row'}, timeOfDay(sample.at)),
                                                     series.map(({value}) => h('td', {}, number(value(sample) ?? 0)))))))));
}

/** A chart of samples; each of the series has a name and `value(sample)`, null where there is none. */
export function chart(title, unit, samples, series) {
  if (samples.length < 2) return h('figure', {}, h('figcaption', {}, title), h('p', {class: 'quiet'}, 'No samples yet.'));
  const first = samples[0].at;
  const last = samples.at(-1).at;
  const lines = series.map(({value}) => samples.map((sample) => [sample.at, value(sample)]));
  const top = niceTop(Math.max(0, ...lines.flat().map(([, value]) => value ?? 0)));
  const latest = series.map(({name, value}) => `${name} ${number(value(samples.at(-1)) ?? 0)}`).join(', ');
  return h('figure', {},
           h('figcaption', {}, title, h('span', {class: 'quiet'}, ` ${unit}`)),
           svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}. Now: ${latest}`},
               svg('title', {}, title), svg('desc', {}, `Now: ${latest}`), grid(top, first, last),
               lines.map((points, i) => svg('path', {class: `line series-${i}`, d: path(points, top, first, last)}))),
           h('ul', {class: 'legend'}, series.map(({name}, i) => h('li', {class: `series-${i}`}, name))),
           table(title, samples, series));
}
