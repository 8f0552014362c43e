// A list of any length: only the rows in view are in the document. Filters and order are in the URL.
import {h, patchChildren, throttled} from './dom.js';
import {creationBar} from './actions.js';
import {number} from './format.js';
import {Columns, textOf} from './columns.js';
import {go, parameters, target} from './route.js';

const MARGIN = 8; // rows above and below the view

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return a < b ? -1 : 1;
}

const classOf = ({grows, isWide}) => (grows ? 'grows' : isWide ? 'for-wide' : null);

/** The order of the URL, "-state" for descending; the list's own otherwise. */
function orderOf(spec, query) {
  const text = query.get('sort') ?? spec.sort;
  const column = spec.columns.find(({key}) => key === text.replace(/^-/, '')) ?? spec.columns[0];
  return {column, isDescending: text.startsWith('-')};
}

function isChosen(facets, query, entry) {
  return facets.every(({key, values}) => {
    const wanted = query.getAll(key).filter(Boolean);
    return wanted.length === 0 || values(entry).some((value) => wanted.includes(value ?? ''));
  });
}

/** The entries that the query asks for, in its order. */
export function select(spec, entries, query) {
  const words = (query.get('q') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter((entry) => isChosen(spec.facets, query, entry) && words.every(
      (word) => spec.columns.some((column) => textOf(column, entry).toLowerCase().includes(word))));
  const {column, isDescending} = orderOf(spec, query);
  const sign = isDescending ? -1 : 1;
  const keyed = found.map((entry) => [column.value(entry), spec.key(entry), entry]);
  // Ties in the order of the keys, so that rows do not jump.
  keyed.sort((a, b) => sign * compare(a[0], b[0]) || compare(a[1], b[1]));
  return keyed.map(([, , entry]) => entry);
}

function counts(entries, values) {
  const found = new Map();
  for (const entry of entries) for (const value of values(entry)) found.set(value ?? '', (found.get(value ?? '') ?? 0) + 1);
  return [...found].sort((a, b) => compare(a[0], b[0]));
}

function chips({key, title, values}, entries, query) {
  const chosen = query.getAll(key);
  const all = counts(entries, values);
  for (const value of chosen) if (!all.some(([name]) => name === value)) all.push([value, 0]);
  return h('div', {class: 'chips', role: 'group', 'aria-label': title}, all.map(([value, count]) => {
    const isOn = chosen.includes(value);
    const next = isOn ? chosen.filter((each) => each !== value) : [...chosen, value];
    return h('a', {class: 'chip', role: 'button', href: target({[key]: next}, query), 'aria-pressed': String(isOn)},
             `${value || 'none'} `, h('span', {class: 'count'}, number(count)));
  }));
}

function choice({key, title, values}, entries, query) {
  const chosen = query.get(key) ?? '';
  const all = counts(entries, values).filter(([value]) => value !== '');
  if (chosen && !all.some(([value]) => value === chosen)) all.push([chosen, 0]);
  return h('label', {}, `${title} `, h('select', {name: key},
      h('option', {value: '', selected: chosen === ''}, 'all'),
      all.map(([value, count]) => h('option', {value, selected: value === chosen}, `${value} (${number(count)})`))));
}

export class Table {
  /**
   * `spec`: name, topic, columns {key, title, width?, grows?, isWide?, value(entry), text?(entry), cell?(entry)}, facets
   * {key, title, values(entry), isChoice?}, key(entry), sort. `isWide`: not on a narrow screen. `entries()` returns what there is.
   */
  constructor(spec, entries) {
    this.spec = spec;
    this.entries = entries;
    this.rows = [];
    this.columns = new Columns(spec.columns);
    this.active = null; // key of the row that the keyboard is at
    this.filter = h('input', {type: 'search', placeholder: 'Filter', 'aria-label': `Filter ${spec.name}`});
    this.facets = h('div', {class: 'facets'});
    this.count = h('span', {class: 'quiet', 'aria-live': 'off'});
    this.head = h('div', {role: 'row', class: 'row head'});
    this.body = h('div', {role: 'rowgroup', class: 'rows'});
    this.grid = h('div', {class: 'grid', role: 'grid', tabindex: '0', 'aria-label': spec.name},
                  h('div', {role: 'rowgroup', class: 'heads'}, this.head), this.body);
    this.creation = h('span', {});
    this.element = h('div', {class: 'list'}, h('div', {class: 'tools'}, this.filter, this.count, this.creation), this.facets, this.grid);
    this.#listen();
  }

  // A row's height depends on the width of the screen (style.css).
  get #rowHeight() {
    return parseFloat(getComputedStyle(this.grid).getPropertyValue('--row'));
  }

  #listen() {
    const search = throttled(100, () => go(target({q: this.filter.value || null}), true));
    this.filter.addEventListener('input', search);
    this.facets.addEventListener('change', (event) => go(target({[event.target.name]: event.target.value || null})));
    this.grid.addEventListener('scroll', () => this.#show());
    this.grid.addEventListener('keydown', (event) => this.#key(event));
    this.body.addEventListener('click', (event) => this.#clicked(event));
    this.resized = new ResizeObserver(() => this.#show());
    this.resized.observe(this.grid);
  }

  /** Shows what there is now, as the URL asks for it. */
  update() {
    const query = parameters();
    const entries = this.entries();
    this.rows = select(this.spec, entries, query);
    const isAll = this.rows.length === entries.length;
    this.count.textContent = isAll ? number(entries.length) : `${number(this.rows.length)} of ${number(entries.length)}`;
    if (document.activeElement !== this.filter) this.filter.value = query.get('q') ?? '';
    this.#showFacets(entries, query);
    if (this.columns.measure(this.rows)) {
      this.grid.style.setProperty('--width', this.columns.width);
      this.grid.style.setProperty('--columns', this.columns.template);
    }
    patchChildren(this.creation, [creationBar(this.spec.topic)].filter(Boolean));
    patchChildren(this.head, this.#headers(query));
    this.grid.setAttribute('aria-rowcount', this.rows.length + 1);
    this.grid.setAttribute('aria-colcount', this.columns.shown.length);
    this.body.style.height = `${this.rows.length * this.#rowHeight}px`;
    this.#show();
  }

  #showFacets(entries, query) {
    // An open list of choices closes when it is changed.
    if (this.facets.contains(document.activeElement) && document.activeElement.tagName === 'SELECT') return;
    const groups = this.spec.facets.map((facet) => (facet.isChoice ? choice : chips)(facet, entries, query));
    patchChildren(this.facets, groups);
    for (const select of this.facets.querySelectorAll('select')) select.value = query.get(select.name) ?? '';
  }

  #headers(query) {
    const order = orderOf(this.spec, query);
    return this.columns.shown.map((column, i) => {
      const isSorted = column === order.column;
      const direction = order.isDescending ? 'descending' : 'ascending';
      const next = isSorted && !order.isDescending ? `-${column.key}` : column.key;
      return h('div', {role: 'columnheader', class: classOf(column), 'aria-colindex': i + 1, 'aria-sort': isSorted ? direction : 'none'},
               h('a', {href: target({sort: next}, query)}, column.title,
                 h('span', {'aria-hidden': 'true'}, isSorted ? (order.isDescending ? ' ▾' : ' ▴') : '')));
    });
  }

  #row(entry, index, height) {
    const key = this.spec.key(entry);
    const row = h('div', {role: 'row', class: `row${key === this.active ? ' active' : ''}`, id: `row-${index}`,
                          'aria-rowindex': index + 2, 'data-key': key,
                          'aria-selected': String(key === parameters().get('id'))},
                  this.columns.shown.map((column, i) => {
                    const text = textOf(column, entry);
                    return h('div', {role: 'gridcell', class: classOf(column), 'aria-colindex': i + 1, title: text || null},
                             column.cell ? column.cell(entry) : text);
                  }));
    row.style.transform = `translateY(${index * height}px)`;
    return row;
  }

  // The rows in view.
  #show() {
    const height = this.#rowHeight;
    const first = Math.max(0, Math.floor(this.grid.scrollTop / height) - MARGIN);
    const count = Math.ceil(this.grid.clientHeight / height) + 2 * MARGIN;
    const shown = this.rows.slice(first, first + count);
    patchChildren(this.body, shown.map((entry, i) => this.#row(entry, first + i, height)));
    const at = this.#activeIndex();
    if (at >= first && at < first + shown.length) this.grid.setAttribute('aria-activedescendant', `row-${at}`);
    else this.grid.removeAttribute('aria-activedescendant');
  }

  #activeIndex() {
    return this.active === null ? -1 : this.rows.findIndex((entry) => this.spec.key(entry) === this.active);
  }

  #clicked(event) {
    const row = event.target.closest('.row');
    if (!row || event.target.closest('a')) return;
    this.#open(row.dataset.key);
  }

  #open(key) {
    this.active = key;
    go(target({id: key}));
  }

  #key(event) {
    if (event.target !== this.grid) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / this.#rowHeight) - 2);
    const at = this.#activeIndex();
    const goals = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0,
                   End: this.rows.length - 1};
    if (event.key in goals && this.rows.length > 0) this.#moveTo(goals[event.key]);
    else if (event.key === 'Enter' && at >= 0) this.#open(this.active);
    else if (event.key === 'Escape') go(target({id: null}));
    else return;
    event.preventDefault();
  }

  #moveTo(goal) {
    const index = Math.min(Math.max(goal, 0), this.rows.length - 1);
    this.active = this.spec.key(this.rows[index]);
    const row = this.#rowHeight;
    const top = index * row;
    const height = this.grid.clientHeight - row - this.head.offsetHeight;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    if (top > this.grid.scrollTop + height) this.grid.scrollTop = top - height;
    this.#show();
  }

  remove() {
    this.resized.disconnect();
  }
}
