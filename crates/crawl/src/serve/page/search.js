// The search page: results while typing, and keyboard shortcuts.

// Longer than the time between two letters, shorter than that between two words.
const PAUSE_MS = 120;

const form = document.getElementById("search");
const field = document.getElementById("q");
const status = document.getElementById("status");
const answerBox = document.getElementById("answer");
const title = answerBox.dataset.title;
const welcome = element("div", { class: "welcome" }, element("h2", {}, "To narrow your search"), tips());
const asker = new Asker(askServer("/api/search"));
// The filters of the page. A link that changes them loads another page.
let filters = filtersOf(location.search);

document.documentElement.classList.add("js");

const setTitle = (query) => {
  document.title = query === "" ? title : `${harmless(query)} · ${title}`;
};

const setBusy = (isBusy) => {
  answerBox.setAttribute("aria-busy", String(isBusy));
  form.classList.toggle("busy", isBusy);
};

const clear = () => {
  asker.forget();
  setBusy(false);
  status.textContent = "";
  answerBox.replaceChildren(welcome);
  setTitle("");
};

// Whether the arrow key was pressed before the results arrived.
let isFirstWanted = false;

const draw = (answer, request) => {
  setBusy(false);
  status.textContent = statusOf(answer, request);
  answerBox.replaceChildren(...resultsOf(answer, request));
  if (isFirstWanted) links()[0]?.focus();
  isFirstWanted = false;
};

const fail = (text) => {
  setBusy(false);
  status.textContent = "";
  answerBox.replaceChildren(element("p", { class: "failed", role: "alert" }, text));
};

/** Searches for the text in the field. */
const search = (wait) => {
  const query = field.value.trim();
  if (query === "") return clear();
  const request = { query, limit: 10, offset: 0, filters, facets: true };
  isFirstWanted = false;
  setBusy(true);
  setTitle(query);
  asker.ask(request, wait, (answer) => draw(answer, request), fail);
};

let typed = field.value.trim();
field.addEventListener("input", () => {
  const query = field.value.trim();
  // Only white space changed.
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
  // The server renders other pages of results, and results with other filters.
  const hasOtherFilters = linkTo("", 1, filtersOf(location.search)) !== linkTo("", 1, filters);
  if (values.has("page") || hasOtherFilters) return location.reload();
  const query = values.get("q") ?? "";
  // The step led to another place on this page, for example by the skip link.
  if (query === typed) return;
  typed = query;
  field.value = query;
  search(0);
});

answerBox.addEventListener("click", (event) => {
  if (event.target.closest(".hit a")) recent.add(field.value.trim());
});

// Put the caret at the end of the query, so that the query can be changed at once.
if (document.activeElement === field) field.setSelectionRange(field.value.length, field.value.length);

const links = () => [...answerBox.querySelectorAll(".hit .title a")];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const active = document.activeElement;
  const isTyping = active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement;
  if (event.key === "/" && !isTyping) {
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
