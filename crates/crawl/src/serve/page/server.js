// Sends searches to a server, and links to its pages of results.

/** Returns the URL of a page of results. */
const linkTo = (query, page, filters = {}) => {
  const set = ["folder", "language", "version", "type"].filter((name) => filters[name] !== undefined);
  const values = set.map((name) => `&${name}=${encodeURIComponent(filters[name])}`);
  return "/?q=" + encodeURIComponent(query) + values.join("") + (page > 1 ? "&page=" + page : "");
};

/** Returns a function that sends searches to this endpoint. */
const askServer = (endpoint) => async (request, signal) => {
  const values = new URLSearchParams({ q: request.query, limit: request.limit, offset: request.offset, ...request.filters });
  if (request.facets) values.set("facets", "true");
  let response;
  let answer;
  try {
    response = await fetch(`${endpoint}?${values}`, { signal, credentials: "omit" });
    answer = await response.json();
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Error(await unreadable(endpoint, signal));
  }
  if (!response.ok) throw new Error(errorText(answer));
  return answer;
};

/**
 * Returns why an answer can't be read. A browser doesn't say whether the server can't be reached or doesn't
 * let pages of this site read answers, so this requests a script that any site may load.
 */
const unreadable = async (endpoint, signal) => {
  const { origin } = new URL(endpoint, location.href);
  const down = "Can't reach the search. Try again in a moment.";
  if (origin === location.origin) return down;
  try {
    await fetch(`${origin}/embed.js`, { mode: "no-cors", credentials: "omit", cache: "no-store", signal });
  } catch {
    return down;
  }
  const remedy = self.origin === "null"
    ? "A page that is opened from a file, or in a sandbox, has no origin that could be allowed: open the page over http."
    : `To allow it, start crawl serve with --allow-origin ${location.origin}`;
  const reason = `The search at ${origin} doesn't allow pages of this site to show results. ${remedy}`;
  console.error(reason);
  return reason;
};

/** Returns the error in an answer as sentences. */
const errorText = (problem) => {
  const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + ".";
  const texts = [problem.error, problem.hint].filter((text) => typeof text === "string" && text !== "");
  return texts.length > 0 ? texts.map(sentence).join(" ") : "The search failed. Try again in a moment.";
};

/** Returns a server as the source of a search box. */
const serverAt = (origin) => ({
  find: askServer(origin + "/api/search"),
  page: origin + "/",
  all: (query) => origin + linkTo(query, 1),
});
