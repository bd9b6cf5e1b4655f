// Renders the page's results and filter links with the same elements as view/results.rs and
// view/facets.rs.

const FACETS = [["Folder", "folder"], ["Version", "version"], ["Language", "language"], ["Type", "type"]];

/** Returns the filters in the query of a URL. */
const filtersOf = (search) => {
  const values = new URLSearchParams(search);
  const set = ["folder", "language", "version", "type"].map((name) => [name, (values.get(name) ?? "").trim()]);
  return Object.fromEntries(set.filter(([, value]) => value !== ""));
};

const facetOf = (request, label, name, values) => {
  const chosen = request.filters[name];
  const unchosen = values.filter((of) => of.value !== chosen);
  // A single value that all results share doesn't narrow them.
  if (chosen === undefined && unchosen.length < 2) return null;
  const to = (value) => linkTo(request.query, 1, { ...request.filters, [name]: value });
  const item = (of) => element("li", {},
    element("a", { href: to(of.value) }, place(of.name)), element("span", { class: "count" }, ` ${grouped(of.count)}`));
  const all = (value) => element("li", {},
    element("a", { class: "chosen", href: to(undefined) },
      place(values.find((of) => of.value === value)?.name ?? value),
      element("span", { class: "hidden" }, ", selected: show all"),
      element("span", { "aria-hidden": "true" }, " \u00d7")));
  return element("div", { class: "facet" },
    element("span", { class: "facet-name" }, label),
    element("ul", { "aria-label": label }, chosen === undefined ? null : all(chosen), unchosen.map(item)));
};

/** Returns the filter links; null if no filter is set and none would narrow the results. */
const filterLinks = (answer, request) => {
  const shown = FACETS.map(([label, name]) => facetOf(request, label, name, answer.facets?.[name] ?? []));
  return shown.some((facet) => facet !== null)
    ? element("nav", { class: "facets", "aria-label": "Narrow the results" }, shown)
    : null;
};

const pagesOf = (answer, request) => {
  const page = Math.floor(request.offset / request.limit) + 1;
  const last = Math.ceil(Math.min(answer.total, RANKED_MOST) / request.limit);
  if (last < 2) return null;
  const to = (page) => linkTo(request.query, page, request.filters);
  return element("nav", { class: "pages", "aria-label": "Pages of results" },
    page > 1 ? element("a", { rel: "prev", href: to(page - 1) }, "Previous") : null,
    element("span", {}, `Page ${grouped(page)} of ${grouped(last)}`),
    page < last ? element("a", { rel: "next", href: to(page + 1) }, "Next") : null);
};

/** Returns the elements of the results area. */
const resultsOf = (answer, request) => {
  const nodes = [];
  if (answer.did_you_mean) {
    nodes.push(element("p", { class: "meant" },
      `No results for “${harmless(request.query)}”. Showing results for `,
      element("a", { href: linkTo(answer.did_you_mean, 1, request.filters) }, answer.did_you_mean), "."));
  }
  const leftOut = leftOutOf(answer);
  if (leftOut) nodes.push(element("p", { class: "meant" }, leftOut));
  const facets = filterLinks(answer, request);
  if (facets) nodes.push(facets);
  if (answer.results.length === 0) {
    nodes.push(element("div", { class: "nothing" },
      element("p", {}, "Try fewer or different words, or check the spelling."), tips()));
    return nodes;
  }
  nodes.push(element("ol", { class: "hits", start: String(request.offset + 1) }, answer.results.map((hit) => item(hit, "h2"))));
  const pages = pagesOf(answer, request);
  if (pages) nodes.push(pages);
  return nodes;
};
