// The columns of a list: those that have something to show, as wide as what they show.

const MOST = 44; // characters of a column
const LEAST = 26; // of one that takes what is left
const SAMPLED = 300; // rows that are measured
const GAP = 2; // between columns, in characters
const SORTED = 2; // for the mark of the order

/** A column's text of an entry. */
export const textOf = (column, entry) => String((column.text ?? column.value)(entry) ?? '');

// In widths of a digit; letters are narrower.
const lengthOf = (text) => Math.ceil(text.length * (/^[\d\W]*$/.test(text) ? 1 : 0.92));

export class Columns {
  constructor(columns) {
    this.all = columns.map((column, i) => ({column, width: 0, isShown: i === 0}));
    this.shown = [];
  }

  /** Looks at the rows; true if the widths have changed. Columns only grow, so that nothing jumps. */
  measure(rows) {
    const before = this.template;
    const step = Math.max(1, Math.floor(rows.length / SAMPLED));
    for (const each of this.all) {
      const {column} = each;
      each.isShown ||= rows.some((entry) => ![undefined, null, ''].includes(column.value(entry)));
      if (!each.isShown) continue;
      each.width = Math.max(each.width, column.width ?? 0, column.title.length + SORTED);
      if (column.width) continue;
      for (let i = 0; i < rows.length; i += step) each.width = Math.max(each.width, lengthOf(textOf(column, rows[i])));
    }
    const shown = this.all.filter(({isShown}) => isShown);
    this.shown = shown.map(({column}) => column);
    // Where no column takes what is left, the last one does.
    const last = shown.some(({column}) => column.grows) ? null : shown.at(-1);
    const widthOf = ({width, column}) => Math.min(width, column.grows ? LEAST : MOST) + 1;
    this.template = shown.map((each) => (each.column.grows || each === last ? `minmax(${widthOf(each)}ch, 1fr)` : `${widthOf(each)}ch`)).join(' ');
    this.width = `${shown.reduce((sum, each) => sum + widthOf(each) + GAP, GAP)}ch`;
    return this.template !== before;
  }
}
