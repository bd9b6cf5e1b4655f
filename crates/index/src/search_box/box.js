// The search as a box on a page, and as a dialog that Ctrl-K opens. Both are in shadow trees.
//
// They use a source: `find(request)` promises an answer, `prepare()` does preparations if there are
// any, `page` is the URL of a page with its own search, and `all(query)` is the URL of all results
// on that page.

const PAUSE_MS = 120;
// The margin between the panel of results and the edges of the window, and the panel's minimum
// width if its box is narrower.
const MARGIN_PX = 8;
const PANEL_PX = 360;

let sheet = null;

const styleSheet = () => {
  if (sheet === null) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  return sheet;
};

/** A host with a shadow tree in the search's style, light or dark as requested or as its page. */
const shadowHost = (theme) => {
  const host = document.createElement("div");
  // The texts of the box are English, whatever the language of its page.
  host.lang = "en";
  const root = host.attachShadow({ mode: "open" });
  // Also works if the page forbids inline styles.
  root.adoptedStyleSheets = [styleSheet()];
  if (theme === "light" || theme === "dark") {
    host.dataset.theme = theme;
    return root;
  }
  const follow = () => {
    const named = document.documentElement.dataset.theme ?? document.body?.dataset.theme;
    if (named === "light" || named === "dark") host.dataset.theme = named;
    else delete host.dataset.theme;
  };
  follow();
  const watcher = new MutationObserver(follow);
  for (const node of [document.documentElement, document.body]) {
    if (node) watcher.observe(node, { attributes: true, attributeFilter: ["data-theme"] });
  }
  return root;
};

/** The default number of results for each kind of box. */
const RESULTS_OF = { panel: 6, dialog: 10, page: 10 };
const MOST_RESULTS = 20;

/** Whether a key event is text input. */
const isWriting = (event) => {
  const on = event.composedPath()[0];
  return on instanceof HTMLElement && (on.isContentEditable || /^(input|textarea|select)$/i.test(on.tagName));
};

/**
 * A field with the results of its query, of one of three kinds: `panel` shows the results over the
 * page; `dialog` is a dialog; `page` shows them in the page, with more on request, and keeps the
 * query in the page's URL.
 */
class Box {
  #asker;
  #source;
  #kind;
  #limit;
  // The number of requested results, which grows on a page.
  #wanted;
  #keepsRecent;
  #form;
  #field;
  #panel;
  #status;
  #list;
  #more;
  // True if the arrow key was pressed before the results arrived.
  #isFirstWanted = false;
  #isAsking = false;

  constructor(source, options, kind) {
    this.#source = source;
    this.#asker = new Asker(source.find);
    this.#kind = kind;
    const limit = Number.parseInt(options.limit ?? "", 10);
    this.#limit = limit >= 1 && limit <= MOST_RESULTS ? limit : RESULTS_OF[kind];
    this.#keepsRecent = options.recent !== "off";
    const label = options.label ?? "Search this site";
    this.#field = element("input", {
      id: "q", type: "search", name: "q", maxlength: "4096", autocomplete: "off", autocapitalize: "none",
      spellcheck: "false", enterkeyhint: "search", "aria-controls": "panel", placeholder: options.placeholder ?? label,
    });
    this.#status = element("p", { class: "hidden", role: "status" });
    this.#list = element("div", {});
    this.#more = element("button", { type: "button", class: "further", hidden: true }, "More results");
    // The dialog is one landmark with its own name; on a page these two are.
    const [search, region] = kind === "dialog" ? [{}, {}] : [{ role: "search" }, { role: "region", "aria-label": "Results" }];
    this.#panel = element("div", { class: "panel", id: "panel", ...region, hidden: true }, this.#list, this.#more);
    this.#form = element("form", { ...search, action: source.page, method: "get" },
      element("label", { for: "q", class: "hidden" }, label), this.#field);
    // The status for screen readers is outside the replaced elements, where it would be read too
    // late.
    this.element = element("div", { class: "box", "data-kind": kind }, this.#form, this.#status, this.#panel);
    this.#listen();
  }

  focus() {
    this.#field.focus();
    this.#field.select();
    if (this.#kind === "dialog" && this.#field.value.trim() === "") this.#empty();
  }

  get form() {
    return this.#form;
  }

  #listen() {
    this.#field.addEventListener("input", () => this.#search(PAUSE_MS));
    this.#field.addEventListener("focus", () => {
      this.#source.prepare?.();
      if (this.#list.childNodes.length > 0) this.open(true);
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#remember();
      this.#search(0);
    });
    this.#list.addEventListener("click", (event) => {
      if (event.target.closest("a")) this.#remember();
    });
    this.#more.addEventListener("click", () => {
      this.#wanted += this.#limit;
      this.#ask(0);
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    if (this.#kind === "page") window.addEventListener("popstate", () => this.searchAddress());
  }

  /** Searches for the query in the page's URL. */
  searchAddress() {
    this.#field.value = new URL(location.href).searchParams.get("q") ?? "";
    this.#search(0);
  }

  #keepAddress(query) {
    const url = new URL(location.href);
    if (query === "") url.searchParams.delete("q");
    else url.searchParams.set("q", query);
    if (url.href !== location.href) history.replaceState(null, "", url);
  }

  #remember() {
    if (this.#keepsRecent) recent.add(this.#field.value.trim());
  }

  #key(event) {
    if (event.isComposing) return;
    const links = this.#links();
    const active = this.element.getRootNode().activeElement;
    if (event.key === "Escape" && this.#kind !== "dialog") {
      event.preventDefault();
      // Escape clears the field if no panel is open. On a results page, which can't be closed, it
      // clears the field that has the focus.
      if (this.#panel.hidden || (this.#kind === "page" && active === this.#field)) {
        this.#field.value = "";
        this.#search(0);
      }
      // Focusing the field opens the panel, so close it again.
      this.#field.focus();
      if (this.#kind === "panel") this.open(false);
    } else if (event.key === "ArrowDown" && active === this.#field && this.#isAsking) {
      event.preventDefault();
      this.#isFirstWanted = true;
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && links.length > 0) {
      if (active === this.#field && event.key === "ArrowUp") return;
      event.preventDefault();
      this.open(true);
      moveFocus(links, this.#field, active, event.key === "ArrowDown" ? 1 : -1);
    }
  }

  #links() {
    return [...this.#list.querySelectorAll(".title a, .all a, .again")];
  }

  open(is) {
    this.#panel.hidden = !is;
    if (is && this.#kind === "panel") this.#place();
  }

  /** Hides results that cover the page. */
  leave() {
    if (this.#kind === "panel") this.open(false);
  }

  /** Keeps the panel within the window, and wide enough for text if its box is narrow. */
  #place() {
    const box = this.element.getBoundingClientRect();
    const inner = document.documentElement.clientWidth;
    const width = Math.min(Math.max(box.width, PANEL_PX), inner - 2 * MARGIN_PX);
    const left = Math.max(Math.min(box.left, inner - MARGIN_PX - width), MARGIN_PX);
    this.#panel.style.width = `${width}px`;
    this.#panel.style.left = `${left - box.left}px`;
  }

  /** Shows the empty state: nothing, or in the dialog the last searches. */
  #empty() {
    this.#asker.forget();
    this.#isAsking = false;
    this.#isFirstWanted = false;
    this.#status.textContent = "";
    const queries = this.#kind === "dialog" && this.#keepsRecent ? recent.all() : [];
    this.#more.hidden = true;
    this.#list.replaceChildren(...(queries.length > 0 ? this.#recentSearches(queries) : []));
    this.open(queries.length > 0);
  }

  #recentSearches(queries) {
    const again = (query) => {
      const button = element("button", { type: "button", class: "again" }, query);
      button.addEventListener("click", () => {
        this.#field.value = query;
        this.#field.focus();
        this.#search(0);
      });
      return element("li", {}, button);
    };
    const clear = element("button", { type: "button", class: "clear" }, "Clear recent searches");
    clear.addEventListener("click", () => {
      recent.clear();
      this.#field.focus();
      this.#empty();
    });
    return [
      element("p", { class: "status", id: "recent" }, "Recent searches"),
      element("ul", { class: "recent", "aria-labelledby": "recent" }, queries.map(again)),
      clear,
    ];
  }

  #search(wait) {
    this.#wanted = this.#limit;
    this.#ask(wait);
  }

  #ask(wait) {
    const query = this.#field.value.trim();
    if (this.#kind === "page") this.#keepAddress(query);
    if (query === "") {
      this.#empty();
      return;
    }
    const request = { query, limit: this.#wanted, offset: 0 };
    this.#isAsking = true;
    this.#isFirstWanted = false;
    this.#asker.ask(request, wait, (answer) => this.#draw(answer, request), (text) => {
      this.#isAsking = false;
      this.#status.textContent = "";
      this.#more.hidden = true;
      this.#list.replaceChildren(element("p", { class: "failed", role: "alert" }, text));
      this.open(true);
    });
  }

  #draw(answer, request) {
    this.#isAsking = false;
    const status = statusOf(answer, request);
    // Our heading level could not fit every page.
    const heading = this.#kind === "page" ? "h2" : "div";
    const nodes = [element("p", { class: "status", "aria-hidden": "true" }, status)];
    if (answer.did_you_mean) {
      nodes.push(element("p", { class: "status" }, `Nothing fits “${harmless(request.query)}”. These are the results for “${answer.did_you_mean}”.`));
    }
    const leftOut = leftOutOf(answer);
    if (leftOut) nodes.push(element("p", { class: "status" }, leftOut));
    if (answer.results.length === 0) nodes.push(tips());
    else nodes.push(element("ol", { class: "hits" }, answer.results.map((hit) => item(hit, heading))));
    const hasMore = answer.total > answer.results.length;
    this.#more.hidden = !hasMore || this.#kind !== "page";
    if (hasMore && this.#kind !== "page") {
      const href = this.#source.all(request.query);
      nodes.push(element("p", { class: "all" }, element("a", { href }, `All ${grouped(answer.total)} results`)));
    }
    this.#list.replaceChildren(...nodes);
    this.open(true);
    this.#status.textContent = status;
    if (this.#isFirstWanted) this.#links()[0]?.focus();
    this.#isFirstWanted = false;
  }
}

/** Opens the search dialog on Ctrl-K, or Command-K on a Mac, anywhere on the page. */
const listenForDialog = (source, options) => {
  const isMac = /mac|iphone|ipad/i.test(navigator.platform);
  let dialog = null;
  let box = null;
  const make = () => {
    const root = shadowHost(options.theme);
    box = new Box(source, options, "dialog");
    const close = element("button", { type: "button", class: "close" }, "Close");
    close.addEventListener("click", () => dialog.close());
    box.form.append(close);
    dialog = element("dialog", { "aria-label": options.label ?? "Search this site" }, box.element);
    dialog.addEventListener("click", (event) => {
      // The dialog's children cover it, so this is a click outside; a link may lead to this page.
      if (event.target === dialog || event.target.closest("a")) dialog.close();
    });
    dialog.addEventListener("keydown", (event) => {
      // A search field would use the key to clear itself.
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault();
      dialog.close();
    });
    root.append(dialog);
    document.body.append(root.host);
  };
  document.addEventListener("keydown", (event) => {
    const isAsked = (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey)
      && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
    if (!isAsked || event.defaultPrevented || event.isComposing) return;
    event.preventDefault();
    if (dialog === null) make();
    if (dialog.open) {
      dialog.close();
      return;
    }
    dialog.showModal();
    box.focus();
  });
};

/** Puts a box in a tag's target or after the tag; the tag's attributes are the options. */
const mount = (tag, source) => {
  const options = tag.dataset;
  const settle = () => {
    const root = shadowHost(options.theme);
    const box = new Box(source, options, options.address === undefined ? "panel" : "page");
    root.append(box.element);
    // A click or focus outside hides the results.
    root.host.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !root.host.contains(event.relatedTarget)) box.leave();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!event.composedPath().includes(root.host)) box.leave();
    });
    if (options.shortcut) {
      document.addEventListener("keydown", (event) => {
        if (event.key !== options.shortcut || isWriting(event) || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        box.focus();
      });
    }
    if (options.dialog !== "off") listenForDialog(source, options);
    const target = options.target ? document.querySelector(options.target) : null;
    // The replaced content of a results page is for browsers without scripts.
    if (target && options.address !== undefined) target.replaceChildren(root.host);
    else if (target) target.append(root.host);
    else if (tag.parentNode && tag.parentNode !== document.head) tag.after(root.host);
    else document.body.prepend(root.host);
    if (options.autofocus !== undefined) box.focus();
    if (options.address !== undefined) box.searchAddress();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", settle);
  else settle();
};
