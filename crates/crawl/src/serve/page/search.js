// The search page: results as one types, and keys.

// Shorter than a pause between two words, longer than between two letters.
const PAUSE_MS = 120;

const form = document.getElementById("search");
const field = document.getElementById("q");
const status = document.getElementById("status");
const answerBox = document.getElementById("answer");
const title = answerBox.dataset.title;
const welcome = element("div", { class: "welcome" }, element("h2", {}, "To narrow your search"), tips());
const asker = new Asker(askServer("/api/search"));
// What the pages must be: a link that changes it loads the page anew.
let filters = filtersOf(location.search);

document.documentElement.classList.add("js");

const name = (query) => {
  document.title = query === "" ? title : `${harmless(query)} · ${title}`;
};

const busy = (is) => {
  answerBox.setAttribute("aria-busy", String(is));
  form.classList.toggle("busy", is);
};

const clear = () => {
  asker.forget();
  busy(false);
  status.textContent = "";
  answerBox.replaceChildren(welcome);
  name("");
};

// The arrow was pressed before the results came.
let isFirstWanted = false;

const draw = (answer, asked) => {
  busy(false);
  status.textContent = statusOf(answer, asked);
  answerBox.replaceChildren(...resultsOf(answer, asked));
  if (isFirstWanted) links()[0]?.focus();
  isFirstWanted = false;
};

const fail = (text) => {
  busy(false);
  status.textContent = "";
  answerBox.replaceChildren(element("p", { class: "failed", role: "alert" }, text));
};

/** Asks for what stands in the field. */
const search = (wait) => {
  const query = field.value.trim();
  if (query === "") return clear();
  const asked = { query, limit: 10, offset: 0, filters, facets: true };
  isFirstWanted = false;
  busy(true);
  name(query);
  asker.ask(asked, wait, (answer) => draw(answer, asked), fail);
};

let typed = field.value.trim();
field.addEventListener("input", () => {
  const query = field.value.trim();
  // White space alone asks nothing else.
  if (query === typed) return;
  typed = query;
  history.replaceState(null, "", query === "" ? "/" : linkTo(query, 1, filters));
  search(PAUSE_MS);
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  typed = field.value.trim();
  recent.add(typed);
  const to = typed === "" ? "/" : linkTo(typed, 1, filters);
  if (location.pathname + location.search !== to) history.pushState(null, "", to);
  search(0);
});

addEventListener("popstate", () => {
  const values = new URLSearchParams(location.search);
  // Another page of results is the server's to draw, and so is one that is narrowed in another way.
  const isNarrowed = linkTo("", 1, filtersOf(location.search)) !== linkTo("", 1, filters);
  if (values.has("page") || isNarrowed) return location.reload();
  const query = values.get("q") ?? "";
  // A step within the page, such as the way past its head, asks nothing.
  if (query === typed) return;
  typed = query;
  field.value = query;
  search(0);
});

answerBox.addEventListener("click", (event) => {
  if (event.target.closest(".hit a")) recent.add(field.value.trim());
});

// What stands in the field is there to be changed: the caret is behind it.
if (document.activeElement === field) field.setSelectionRange(field.value.length, field.value.length);

const links = () => [...answerBox.querySelectorAll(".hit .title a")];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const active = document.activeElement;
  const writing = active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement;
  if (event.key === "/" && !writing) {
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === "Escape" && (active === field || links().includes(active))) {
    event.preventDefault();
    field.value = "";
    typed = "";
    filters = {};
    history.replaceState(null, "", "/");
    clear();
    field.focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const all = links();
    if (active === field && event.key === "ArrowDown" && answerBox.getAttribute("aria-busy") === "true") {
      event.preventDefault();
      isFirstWanted = true;
      return;
    }
    const here = active === field || all.includes(active);
    if (!here || all.length === 0 || (active === field && event.key === "ArrowUp")) return;
    event.preventDefault();
    moveFocus(all, field, active, event.key === "ArrowDown" ? 1 : -1);
  }
});
