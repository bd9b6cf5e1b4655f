// The search box: on the bundle's own page, and on any page by one script tag.
//
// <script src="/search/search.js" defer></script> puts it where the tag stands. Attributes of
// the tag: data-into (a selector: where instead), data-label, data-placeholder, data-limit,
// data-autofocus, data-address (keep the query in the page's address).

const WAIT_MS = 120;

class Box {
  constructor(into, base, options) {
    this.base = base;
    this.limit = Math.min(50, Math.max(1, Number(options.limit) || 10));
    this.hasAddress = options.address !== undefined;
    this.asked = 0;
    this.shown = this.limit;
    const shadow = into.attachShadow({ mode: 'open' });
    const style = element('link', { rel: 'stylesheet', href: new URL('search.css', base).href });
    this.input = element('input', {
      type: 'search', id: 'query', name: 'q', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false',
      enterkeyhint: 'search', maxlength: '500', placeholder: options.placeholder || '', 'aria-describedby': 'keys',
    });
    const label = element('label', { for: 'query' }, options.label || 'Search');
    this.form = element('form', { role: 'search' }, label, this.input);
    this.status = element('p', { role: 'status', 'aria-live': 'polite', class: 'status' });
    this.list = element('ol', { class: 'results' });
    this.more = element('button', { type: 'button', class: 'more', hidden: '' }, 'More results');
    const keys = element('p', { id: 'keys', class: 'unseen' }, 'Results appear while you type. Arrow keys move through them.');
    shadow.append(style, this.form, keys, this.status, this.list, this.more);
    this.listen(into);
    if (options.autofocus !== undefined) this.input.focus();
    if (this.hasAddress) this.fromAddress();
  }

  listen(into) {
    this.input.addEventListener('focus', () => this.opened().catch(() => {}), { once: true });
    this.input.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), WAIT_MS);
    });
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      clearTimeout(this.timer);
      this.ask();
    });
    this.more.addEventListener('click', () => {
      this.shown += this.limit;
      this.ask(true);
    });
    into.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('keydown', (event) => {
      const isTyping = event.composedPath().some((at) => at.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(at.tagName || ''));
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.input.focus();
      this.input.select();
    });
    if (this.hasAddress) window.addEventListener('popstate', () => this.fromAddress());
  }

  // Arrow keys walk from the input through the results and back; Escape leads back.
  key(event) {
    const links = Array.from(this.list.querySelectorAll('a.title'));
    const at = links.indexOf(this.list.getRootNode().activeElement);
    const isInput = this.list.getRootNode().activeElement === this.input;
    if (event.isComposing) return;
    if (event.key === 'ArrowDown' && (at >= 0 || isInput)) this.go(event, links[at + 1]);
    else if (event.key === 'ArrowUp' && at >= 0) this.go(event, links[at - 1] || this.input);
    else if (event.key === 'Escape' && at >= 0) this.go(event, this.input);
    else if (event.key === 'Escape' && isInput && this.input.value) {
      event.preventDefault();
      this.input.value = '';
      this.ask();
    }
  }

  go(event, to) {
    if (!to) return;
    event.preventDefault();
    to.focus();
  }

  fromAddress() {
    this.input.value = new URL(location.href).searchParams.get('q') || '';
    this.ask();
  }

  toAddress(text) {
    if (!this.hasAddress) return;
    const url = new URL(location.href);
    if (text) url.searchParams.set('q', text);
    else url.searchParams.delete('q');
    if (url.href !== location.href) history.replaceState(null, '', url);
  }

  opened() {
    if (!this.search) {
      this.search = Search.open(loader(this.base));
      this.search.catch(() => (this.search = null));
    }
    return this.search;
  }

  async ask(isMore) {
    const text = this.input.value.trim();
    const turn = ++this.asked;
    if (!isMore) this.shown = this.limit;
    this.toAddress(text);
    if (!text) {
      this.show({ total: 0, results: [] }, '');
      return;
    }
    this.list.setAttribute('aria-busy', 'true');
    try {
      const search = await this.opened();
      const answer = await search.search(text, { limit: this.shown });
      if (turn === this.asked) this.show(answer, summary(answer));
    } catch (error) {
      if (turn === this.asked) this.show({ total: 0, results: [] }, `The search could not be loaded: ${error.message}`);
    }
  }

  show(answer, status) {
    this.list.removeAttribute('aria-busy');
    this.status.textContent = status;
    const focused = Array.from(this.list.querySelectorAll('a.title')).indexOf(this.list.getRootNode().activeElement);
    this.list.replaceChildren(...answer.results.map(item));
    this.more.hidden = answer.results.length >= answer.total;
    const links = this.list.querySelectorAll('a.title');
    if (focused >= 0 && links[focused]) links[focused].focus();
  }
}

function summary(answer) {
  const instead = answer.did_you_mean ? ` for “${answer.did_you_mean}”` : '';
  if (!answer.total) return `Nothing found${instead}.`;
  const leftOut = answer.unknown ? `. No page has ${answer.unknown.join(', ')}: left out.` : '';
  return `${answer.total} ${answer.total === 1 ? 'page' : 'pages'}${instead}${leftOut}`;
}

function item(result) {
  const link = element('a', { class: 'title', href: safe(result.url) }, ...marked(result.title_parts));
  const found = element('li', {}, link, element('cite', {}, shortened(result.url)));
  if (result.excerpt_parts.length) found.append(element('p', {}, ...marked(result.excerpt_parts)));
  if (result.section) {
    found.append(element('a', { class: 'section', href: safe(result.section.url) }, `§ ${result.section.heading}`));
  }
  if (result.language) found.lang = result.language;
  return found;
}

function marked(parts) {
  return parts.map((part) => (part.match ? element('mark', {}, part.text) : part.text));
}

// Links lead to pages, and run nothing.
function safe(url) {
  return /^https?:\/\//i.test(url) ? url : '#';
}

function shortened(url) {
  const plain = url.replace(/^https?:\/\//i, '');
  try {
    return decodeURI(plain).replace(/[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu, '');
  } catch {
    return plain;
  }
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function loader(base) {
  return async (name) => {
    // Data is named by its hash and never changes; what names it may.
    const isNamed = name !== 'search.json';
    const answer = await fetch(new URL(name, base), { cache: isNamed ? 'default' : 'no-cache', credentials: 'same-origin' });
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  };
}

if (typeof document === 'object' && document.currentScript) {
  const script = document.currentScript;
  const { into, ...options } = script.dataset;
  let place = into && document.querySelector(into);
  if (!place) {
    place = document.createElement('div');
    if (document.body && document.body.contains(script)) script.after(place);
    else document.body.append(place);
  }
  place.crawlSearch = new Box(place, new URL('.', script.src), options);
}
if (typeof globalThis === 'object') {
  globalThis.CrawlSearch = { open: (base) => Search.open(loader(new URL(base, globalThis.location))), Search, words };
}
