// Runs in each frame and worker before any script of the page. SEED is replaced by a number.
(() => {
  // Connections that the interception doesn't see, and workers that outlive or evade the page.
  const constructors = ['WebSocket', 'WebSocketStream', 'WebTransport', 'RTCPeerConnection',
    'webkitRTCPeerConnection', 'SharedWorker', 'FetchLaterResult', 'fetchLater'];
  for (const name of constructors) {
    for (let holder = self; holder; holder = Object.getPrototypeOf(holder)) {
      if (Object.hasOwn(holder, name)) delete holder[name];
    }
    // Workers get some constructors only after this script.
    if (!self.document) Object.defineProperty(self, name, { value: undefined });
  }
  for (const holder of ['Navigator', 'WorkerNavigator']) {
    if (self[holder]) delete self[holder].prototype.serviceWorker;
  }

  // The same numbers in each rendering (mulberry32).
  let state = SEED;
  const { imul } = Math;
  Math.random = function random() {
    state = (state + 0x6D2B79F5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };

  // Whole milliseconds, because the browser adds noise to finer times.
  const { now } = Performance.prototype;
  Performance.prototype.now = function () { return Math.round(Reflect.apply(now, this, [])); };
  if (!self.document) return;

  self.open = function open() { return null; };

  // Pass closed shadow roots to `stay.js`: a marker is in the root while the second event is
  // dispatched. Only a page that listens to these events sees the root.
  const { attachShadow, remove } = Element.prototype;
  const { apply } = Reflect;
  const { dispatchEvent } = EventTarget.prototype;
  const { appendChild } = Node.prototype;
  const { createElement } = Document.prototype;
  const [Message, MessageWithNode] = [Event, FocusEvent];
  Element.prototype.attachShadow = function (init) {
    const root = apply(attachShadow, this, [init]);
    if (root.mode === 'closed') {
      const marker = apply(createElement, document, ['i']);
      apply(dispatchEvent, self, [new MessageWithNode('crawl-root', { relatedTarget: marker })]);
      apply(appendChild, root, [marker]);
      apply(dispatchEvent, marker, [new Message('crawl-root')]);
      apply(remove, marker, []);
    }
    return root;
  };

  // Speculation rules make the browser fetch pages by itself. A script that isn't prepared yet is
  // disarmed by another type; the observer runs before the parser prepares the scripts it inserts.
  const isRules = (value) => String(value).trim().toLowerCase() === 'speculationrules';
  const disarm = (script) => {
    if (isRules(script.type)) script.setAttribute('type', 'text/speculationrules');
  };
  new MutationObserver((records) => {
    for (const record of records) {
      for (const node of record.addedNodes) {
        if (node.localName === 'script') disarm(node);
        else if (node.querySelectorAll) node.querySelectorAll('script').forEach(disarm);
      }
    }
  }).observe(document, { childList: true, subtree: true });
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function (name, value) {
    if (String(name).toLowerCase() === 'type' && this.localName === 'script' && isRules(value)) {
      value = 'text/speculationrules';
    }
    return apply(setAttribute, this, [name, value]);
  };
  const type = Object.getOwnPropertyDescriptor(HTMLScriptElement.prototype, 'type');
  Object.defineProperty(HTMLScriptElement.prototype, 'type', {
    ...type,
    set(value) { apply(type.set, this, [isRules(value) ? 'text/speculationrules' : value]); },
  });

  // Tell `stay.js` that the page reacts to scrolling: it observes which elements are visible, or
  // listens to scroll events. Listeners that capture the events of an element's descendants don't
  // count: React always adds one.
  const noteScrolling = () => apply(dispatchEvent, self, [new Message('crawl-scroll')]);
  const { observe } = IntersectionObserver.prototype;
  IntersectionObserver.prototype.observe = function (target) {
    noteScrolling();
    return apply(observe, this, [target]);
  };
  const { addEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    const isOfDescendants = this instanceof Element && (options === true || options?.capture);
    if (type === 'scroll' && !isOfDescendants) noteScrolling();
    return apply(addEventListener, this, [type, listener, options]);
  };
  const prototypes = [Document, HTMLElement, HTMLBodyElement].map(({ prototype }) => prototype);
  for (const holder of [self, ...prototypes]) {
    const onscroll = Object.getOwnPropertyDescriptor(holder, 'onscroll');
    Object.defineProperty(holder, 'onscroll', {
      ...onscroll,
      set(value) {
        noteScrolling();
        apply(onscroll.set, this, [value]);
      },
    });
  }
})();
