// Charts of samples as SVG: stacked areas, lines and bars, each with its numbers as a table and under the pointer.
import {h, svg} from './dom.js';
import {number, timeOfDay} from './format.js';

const WIDTH = 480;
const HEIGHT = 150;
const LEFT = 40;
const BOTTOM = 18;
const TOP = 8;
const ROWS = 15;

/** What is drawn at the moment, by its id, for the pointer. */
export const drawn = new Map();
export const PLOT = {left: LEFT / WIDTH, right: 1};

function niceTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value);
}

function scaleOf(samples, top) {
  const first = samples[0].at;
  const span = Math.max(1, samples.at(-1).at - first);
  return {x: (at) => (LEFT + ((at - first) / span) * (WIDTH - LEFT)).toFixed(1),
          y: (value) => (HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP)).toFixed(1)};
}

function grid({y}, top, samples) {
  const lines = [0, 0.5, 1].map((share) => [
    svg('line', {class: 'grid', x1: LEFT, x2: WIDTH, y1: y(share * top), y2: y(share * top)}),
    svg('text', {class: 'label', x: LEFT - 4, y: Number(y(share * top)) + 4, 'text-anchor': 'end'},
        (share * top).toLocaleString(undefined, {maximumSignificantDigits: 2}))]);
  return [lines, svg('text', {class: 'label', x: LEFT, y: HEIGHT - 3}, timeOfDay(samples[0].at)),
          svg('text', {class: 'label', x: WIDTH, y: HEIGHT - 3, 'text-anchor': 'end'}, timeOfDay(samples.at(-1).at))];
}

// Each series on top of those before it.
function areas({x, y}, samples, series) {
  let below = samples.map(() => 0);
  return series.map(({kind, value}) => {
    const above = samples.map((sample, i) => below[i] + (value(sample) ?? 0));
    const up = samples.map(({at}, i) => `${x(at)} ${y(above[i])}`);
    const back = samples.map(({at}, i) => `${x(at)} ${y(below[i])}`).reverse();
    below = above;
    return svg('path', {class: `fill ${kind}`, d: `M${up.join('L')}L${back.join('L')}Z`});
  });
}

// From one known value to the next; a value alone is a dot.
function lines({x, y}, samples, series) {
  return series.map(({kind, value}) => {
    const known = samples.map((sample) => [sample.at, value(sample)]).filter(([, found]) => found !== null);
    const points = known.map(([at, found]) => `${x(at)} ${y(found)}`);
    return svg('path', {class: `line ${kind}`, d: points.length ? `M${points.join('L')}${points.length === 1 ? 'h0.01' : ''}` : ''});
  });
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

/**
 * A chart of samples. Each of the series has a name, a kind, which is its colour, and `value(sample)`, null where there is
 * none. `limit`: a line that the values cannot exceed. `isStacked`: areas on top of each other. `id`: where the title may
 * be that of another chart.
 */
export function chart(title, unit, samples, series, {isStacked = false, limit = null, href = null, id = title} = {}) {
  const caption = h('figcaption', {}, href ? h('a', {href}, title) : title, h('span', {class: 'quiet'}, ` ${unit}`));
  if (samples.length < 2) return h('figure', {}, caption, h('p', {class: 'quiet'}, 'No samples yet.'));
  const heights = samples.map((sample) => series.map(({value}) => value(sample) ?? 0))
      .map((values) => (isStacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values)));
  const top = niceTop(Math.max(0, limit ?? 0, ...heights));
  const scale = scaleOf(samples, top);
  const latest = series.map(({name, value}) => `${name} ${number(value(samples.at(-1)) ?? 0)}`).join(', ');
  const used = series.filter(({value}) => samples.some((sample) => value(sample)));
  const shown = used.length ? used : series;
  drawn.set(id, {samples, series: shown, limit});
  return h('figure', {}, caption,
           svg('svg', {class: 'chart', 'data-chart': id, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}. Now: ${latest}`},
               grid(scale, top, samples), (isStacked ? areas : lines)(scale, samples, series),
               limit !== null && svg('line', {class: 'limit', x1: LEFT, x2: WIDTH, y1: scale.y(limit), y2: scale.y(limit)})),
           h('ul', {class: 'legend'}, shown.map(({name, kind}) => h('li', {class: kind}, name)),
             limit !== null && h('li', {class: 'of-limit'}, `limit ${number(limit)}`)),
           table(title, samples, shown));
}
