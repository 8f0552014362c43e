// The connection to the server's events. It reconnects by itself and asks for what it has missed.
import {TOPICS} from './records.js';

const PAUSES = [500, 1000, 2000, 5000, 10000];
const HIDDEN_LIMIT = 30000;
// The server sends an event every ten seconds, if only a beat.
const SILENCE_LIMIT = 25000;

export class Stream {
  /** `heard(name, data)` is called for each event; `changed(isOpen, isSilent)` when the connection opens or is lost. */
  constructor(heard, changed) {
    this.heard = heard;
    this.changed = changed;
    this.last = '';
    this.failures = 0;
    document.addEventListener('visibilitychange', () => this.#visibilityChanged());
    addEventListener('online', () => this.#retry());
    // A page that the browser keeps for its back button would keep its connection, too.
    addEventListener('pagehide', () => this.#close());
    addEventListener('pageshow', () => this.#retry());
    this.#open();
  }

  #open() {
    this.#close();
    const query = this.last ? `?last=${encodeURIComponent(this.last)}` : '';
    this.source = new EventSource(`api/v1/events${query}`);
    for (const name of ['hello', 'reset', 'beat', ...TOPICS]) {
      this.source.addEventListener(name, (event) => this.#received(name, event));
    }
    this.source.addEventListener('error', () => this.#lost(false));
    this.#watch();
  }

  // A server that hangs keeps its connections open and says nothing.
  #watch() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.#lost(true), SILENCE_LIMIT);
  }

  #received(name, event) {
    this.last = event.lastEventId;
    this.#watch();
    if (name === 'beat') return;
    if (name === 'hello') {
      this.failures = 0;
      this.changed(true);
    }
    this.heard(name, JSON.parse(event.data));
  }

  #lost(isSilent) {
    this.#close();
    this.changed(false, isSilent);
    const pause = PAUSES[Math.min(this.failures++, PAUSES.length - 1)];
    this.timer = setTimeout(() => this.#open(), pause * (0.75 + Math.random() / 2));
  }

  #retry() {
    if (!this.source) this.#open();
  }

  #close() {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.source?.close();
    this.source = null;
  }

  // A browser has few connections to a server; a page that nobody sees leaves its own to others.
  #visibilityChanged() {
    clearTimeout(this.hidden);
    if (document.hidden) this.hidden = setTimeout(() => this.#close(), HIDDEN_LIMIT);
    else this.#retry();
  }
}
