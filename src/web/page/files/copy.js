// Texts that one takes elsewhere.
import {h} from './dom.js';

const SHOWN = 1500;

/** A text with a button that copies it. */
export function copyable(text) {
  return h('span', {class: 'copyable'}, h('code', {}, text), ' ', h('button', {type: 'button', 'data-copy': text}, 'Copy'));
}

// Browsers offer their clipboard over HTTPS and on this host only; elsewhere the text is selected, to be copied by hand.
async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    return 'Copied';
  } catch {
    getSelection().selectAllChildren(button.parentElement.querySelector('code'));
    return 'Selected';
  }
}

export function followCopies() {
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('button[data-copy]');
    if (!button) return;
    const {left, bottom} = button.getBoundingClientRect();
    const note = h('div', {class: 'tooltip', role: 'status'}, await copy(button));
    Object.assign(note.style, {left: `${left}px`, top: `${bottom + 4}px`});
    document.body.append(note);
    setTimeout(() => note.remove(), SHOWN);
  });
}
