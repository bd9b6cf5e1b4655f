// Renders the page's results and filter links with the same elements as view/results.rs and
// view/facets.rs.

const FACETS = [["Folder", "folder"], ["Version", "version"], ["Language", "language"], ["Type", "type"]];

/** Returns the filters in the query of a URL. */
const filtersOf = (search) => {
  const values = new URLSearchParams(search);
  const set = ["folder", "language", "version", "type"].map((name) => [name, (values.get(name) ?? "").trim()]);
  return Object.fromEntries(set.filter(([, value]) => value !== ""));
};

const facetOf = (asked, label, name, values) => {
  const chosen = asked.filters[name];
  const others = values.filter((of) => of.value !== chosen);
  // A single value that all results share doesn't narrow them.
  if (chosen === undefined && others.length < 2) return null;
  const to = (value) => linkTo(asked.query, 1, { ...asked.filters, [name]: value });
  const item = (of) => element("li", {},
    element("a", { href: to(of.value) }, place(of.name)), element("span", { class: "count" }, ` ${grouped(of.count)}`));
  const all = (value) => element("li", {},
    element("a", { class: "chosen", href: to(undefined) },
      place(values.find((of) => of.value === value)?.name ?? value),
      element("span", { class: "hidden" }, ", selected: show all"),
      element("span", { "aria-hidden": "true" }, " \u00d7")));
  return element("div", { class: "facet" },
    element("span", { class: "facet-name" }, label),
    element("ul", { "aria-label": label }, chosen === undefined ? null : all(chosen), others.map(item)));
};

/** Returns the filter links; null if no filter is set and none would narrow the results. */
const filterLinks = (answer, asked) => {
  const shown = FACETS.map(([label, name]) => facetOf(asked, label, name, answer.facets?.[name] ?? []));
  return shown.some((facet) => facet !== null)
    ? element("nav", { class: "facets", "aria-label": "Narrow the results" }, shown)
    : null;
};

const pagesOf = (answer, asked) => {
  const page = Math.floor(asked.offset / asked.limit) + 1;
  const last = Math.ceil(Math.min(answer.total, RANKED_MOST) / asked.limit);
  if (last < 2) return null;
  const to = (page) => linkTo(asked.query, page, asked.filters);
  return element("nav", { class: "pages", "aria-label": "Pages of results" },
    page > 1 ? element("a", { rel: "prev", href: to(page - 1) }, "Previous") : null,
    element("span", {}, `Page ${grouped(page)} of ${grouped(last)}`),
    page < last ? element("a", { rel: "next", href: to(page + 1) }, "Next") : null);
};

/** Returns the elements of the results area. */
const resultsOf = (answer, asked) => {
  const nodes = [];
  if (answer.did_you_mean) {
    nodes.push(element("p", { class: "meant" },
      `No results for “${harmless(asked.query)}”. Showing results for `,
      element("a", { href: linkTo(answer.did_you_mean, 1, asked.filters) }, answer.did_you_mean), "."));
  }
  const leftOut = leftOutOf(answer);
  if (leftOut) nodes.push(element("p", { class: "meant" }, leftOut));
  const facets = filterLinks(answer, asked);
  if (facets) nodes.push(facets);
  if (answer.results.length === 0) {
    nodes.push(element("div", { class: "nothing" },
      element("p", {}, "Try fewer or different words, or check the spelling."), tips()));
    return nodes;
  }
  nodes.push(element("ol", { class: "hits", start: String(asked.offset + 1) }, answer.results.map((hit) => item(hit, "h2"))));
  const pages = pagesOf(answer, asked);
  if (pages) nodes.push(pages);
  return nodes;
};
