// The snippet: one script tag puts a search box with results onto a page.
//
// Attributes of the tag, all optional:
//   data-target       CSS selector of the element that takes the box; by default it stands
//                     where the tag stands
//   data-label        what the field is called for those who do not see it
//   data-placeholder  what stands in the empty field
//   data-limit        results at most, 1 to 20
//   data-theme        light or dark; by default that of the page
//   data-shortcut     a key that moves to the field, such as /

const PAUSE_MS = 120;

const tag = document.currentScript;
const server = new URL(tag.src).origin;

const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);

class Box {
  #asker = new Asker(server + "/api/search");
  #limit;
  #host;
  #root;
  #field;
  #panel;
  #status;
  #list;

  constructor(options) {
    const limit = Number.parseInt(options.limit ?? "", 10);
    this.#limit = limit >= 1 && limit <= 20 ? limit : 6;
    this.#host = document.createElement("div");
    this.#root = this.#host.attachShadow({ mode: "open" });
    // Works also where the page forbids inline styles.
    this.#root.adoptedStyleSheets = [sheet];
    const label = options.label ?? "Search this site";
    this.#field = element("input", {
      id: "q", type: "search", name: "q", maxlength: "4096", autocomplete: "off", autocapitalize: "none",
      spellcheck: "false", enterkeyhint: "search", "aria-controls": "panel", placeholder: options.placeholder ?? label,
    });
    this.#status = element("p", { class: "hidden", role: "status" });
    this.#list = element("div", {});
    this.#panel = element("div", { class: "panel", id: "panel", role: "region", "aria-label": "Results", hidden: true },
      this.#list);
    const form = element("form", { role: "search", action: server + "/", method: "get" },
      element("label", { for: "q", class: "hidden" }, label), this.#field);
    // The status that is read out stands outside of what comes and goes: it would come too late.
    this.#root.append(element("div", { class: "box" }, form, this.#status, this.#panel));
    this.#listen(form, options.shortcut);
    this.#dress(options.theme);
  }

  get host() {
    return this.#host;
  }

  #listen(form, shortcut) {
    this.#field.addEventListener("input", () => this.#search(PAUSE_MS));
    this.#field.addEventListener("focus", () => {
      if (this.#list.childNodes.length > 0) this.#open(true);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#search(0);
    });
    this.#root.addEventListener("keydown", (event) => this.#key(event));
    // A click or the focus elsewhere puts the results away.
    this.#host.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !this.#host.contains(event.relatedTarget)) this.#open(false);
    });
    document.addEventListener("pointerdown", (event) => {
      if (!event.composedPath().includes(this.#host)) this.#open(false);
    });
    if (shortcut) {
      document.addEventListener("keydown", (event) => {
        const on = event.composedPath()[0];
        const writing = on instanceof HTMLElement && (on.isContentEditable || /^(input|textarea|select)$/i.test(on.tagName));
        if (event.key !== shortcut || writing || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        this.#field.focus();
      });
    }
  }

  /** Light or dark: by the tag, else by the page's data-theme, else by its color-scheme. */
  #dress(theme) {
    if (theme === "light" || theme === "dark") {
      this.#host.dataset.theme = theme;
      return;
    }
    const follow = () => {
      const named = document.documentElement.dataset.theme ?? document.body?.dataset.theme;
      if (named === "light" || named === "dark") this.#host.dataset.theme = named;
      else delete this.#host.dataset.theme;
    };
    follow();
    const watcher = new MutationObserver(follow);
    for (const node of [document.documentElement, document.body]) {
      if (node) watcher.observe(node, { attributes: true, attributeFilter: ["data-theme"] });
    }
  }

  #key(event) {
    if (event.isComposing) return;
    const links = [...this.#list.querySelectorAll("h3 a, .all a")];
    const active = this.#root.activeElement;
    if (event.key === "Escape") {
      event.preventDefault();
      if (this.#panel.hidden) this.#clear();
      // The focus opens what is there.
      this.#field.focus();
      this.#open(false);
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && links.length > 0) {
      if (active === this.#field && event.key === "ArrowUp") return;
      event.preventDefault();
      this.#open(true);
      moveFocus(links, this.#field, active, event.key === "ArrowDown" ? 1 : -1);
    }
  }

  #clear() {
    this.#asker.forget();
    this.#field.value = "";
    this.#status.textContent = "";
    this.#list.replaceChildren();
  }

  #open(is) {
    this.#panel.hidden = !is;
  }

  #search(wait) {
    const query = this.#field.value.trim();
    if (query === "") {
      this.#asker.forget();
      this.#status.textContent = "";
      this.#list.replaceChildren();
      this.#open(false);
      return;
    }
    const asked = { query, limit: this.#limit, offset: 0 };
    this.#asker.ask(asked, wait, (answer) => this.#draw(answer, asked), (text) => {
      this.#open(true);
      this.#status.textContent = "";
      this.#list.replaceChildren(element("p", { class: "failed", role: "alert" }, text));
    });
  }

  #draw(answer, asked) {
    this.#open(true);
    const status = statusOf(answer, asked);
    const nodes = [element("p", { class: "status", "aria-hidden": "true" }, status)];
    if (answer.did_you_mean) {
      nodes.push(element("p", { class: "status" }, `Nothing fits “${harmless(asked.query)}”. These are the results for “${answer.did_you_mean}”.`));
    }
    const leftOut = leftOutOf(answer);
    if (leftOut) nodes.push(element("p", { class: "status" }, leftOut));
    if (answer.results.length === 0) nodes.push(tips());
    else nodes.push(element("ol", { class: "hits" }, answer.results.map(item)));
    if (answer.total > answer.results.length) {
      const href = server + linkTo(asked.query, 1);
      nodes.push(element("p", { class: "all" }, element("a", { href }, `All ${grouped(answer.total)} results`)));
    }
    this.#list.replaceChildren(...nodes);
    this.#status.textContent = status;
  }
}

const settle = () => {
  const options = tag.dataset;
  const box = new Box(options);
  const target = options.target ? document.querySelector(options.target) : null;
  if (target) target.append(box.host);
  else if (tag.parentNode && tag.parentNode !== document.head) tag.after(box.host);
  else document.body.prepend(box.host);
};

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", settle);
else settle();
