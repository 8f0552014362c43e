// Elements are made and changed by functions only: text from outside never becomes HTML.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element with attributes and children; null, undefined and false are left out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same of an SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function patchAttributes(old, now) {
  for (const name of old.getAttributeNames()) {
    // Whether the user has opened it stays as it is.
    if (!now.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  }
  for (const name of now.getAttributeNames()) {
    if (old.getAttribute(name) === now.getAttribute(name)) continue;
    // The page's policy allows styles that scripts set, not attributes with styles.
    if (name === 'style') old.style.cssText = now.style.cssText;
    else old.setAttribute(name, now.getAttribute(name));
  }
}

function patch(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) return old.replaceWith(now);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return undefined;
  }
  patchAttributes(old, now);
  return patchChildren(old, [...now.childNodes]);
}

/** Makes the children of an element like these, and keeps what is the same, so that focus and scrolling stay. */
export function patchChildren(element, children) {
  const old = [...element.childNodes];
  children.forEach((child, i) => (i < old.length ? patch(old[i], child) : element.append(child)));
  old.slice(children.length).forEach((child) => child.remove());
}

/** Calls a function soon after calls of the result, at most once in so many milliseconds. */
export function throttled(milliseconds, call) {
  let timer = null;
  let last = -Infinity;
  return () => {
    timer ??= setTimeout(() => {
      timer = null;
      last = performance.now();
      call();
    }, Math.max(0, last + milliseconds - performance.now()));
  };
}
