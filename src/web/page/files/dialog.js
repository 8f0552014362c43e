// A question to the person, and its answer.
import {h} from './dom.js';

function inputOf({name, label, hint, type, isRequired}) {
  const input = h('input', {id: `ask-${name}`, type, required: isRequired, autocomplete: 'off', min: type === 'number' ? 0 : null,
                            step: type === 'number' ? 'any' : null, maxlength: type === 'text' ? 1000 : null,
                            'aria-describedby': hint ? `hint-${name}` : null});
  const words = [h('label', {for: `ask-${name}`}, label), hint && h('span', {class: 'quiet', id: `hint-${name}`}, ` ${hint}`)];
  return {input, row: h('p', {class: type === 'checkbox' ? 'check' : null}, type === 'checkbox' ? [input, ' ', words] : [words, input])};
}

// What was entered, without what was left empty.
function valuesOf(fields, inputs) {
  const values = {};
  fields.forEach(({name, type, read}, i) => {
    if (type === 'checkbox') values[name] = inputs[i].checked;
    else if (inputs[i].value.trim()) values[name] = read ? read(inputs[i].value) : inputs[i].value.trim();
  });
  return values;
}

/**
 * Asks in a dialog. `act(values)` is called when the person agrees; what it returns or throws is shown, and after a
 * refusal the person may try again.
 */
export function ask({title, text, fields, button, isBad, act}) {
  const rows = fields.map(inputOf);
  const inputs = rows.map(({input}) => input);
  const result = h('p', {role: 'status', class: 'result'});
  const go = h('button', {type: 'button', class: isBad ? 'bad' : null, 'data-do': true}, button);
  const cancel = h('button', {type: 'button'}, 'Cancel');
  const dialog = h('dialog', {'aria-labelledby': 'ask-title'}, h('h2', {id: 'ask-title'}, title), text.map((each) => h('p', {}, each)),
                   rows.map(({row}) => row), result, h('p', {class: 'actions'}, go, cancel));
  const show = (words, isFault) => {
    result.className = isFault ? 'result fault' : 'result';
    result.textContent = words;
  };
  const agree = async () => {
    const wrong = inputs.find((input) => !input.reportValidity());
    if (wrong || go.disabled) return;
    go.disabled = true;
    show('…', false);
    try {
      show(await act(valuesOf(fields, inputs)), false);
      go.remove();
      cancel.textContent = 'Close';
      cancel.focus();
    } catch (error) {
      show(error.message, true);
      go.disabled = false;
    }
  };
  go.addEventListener('click', agree);
  cancel.addEventListener('click', () => dialog.close());
  dialog.addEventListener('keydown', (event) => {
    event.stopPropagation(); // Escape closes the dialog, not what is behind it
    if (event.key === 'Enter' && event.target.tagName === 'INPUT') agree();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
