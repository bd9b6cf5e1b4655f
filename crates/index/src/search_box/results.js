// Renders the results of a search with the same elements as view/results.rs.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// Maximum results that are ranked.
const RANKED_MOST = 1000;

/** Creates an element with attributes and children. Text is never parsed as HTML. */
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null));
  return made;
};

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const isWeb = (url) => /^https?:\/\//.test(url);

const isLanguage = (name) => /^[a-z]{2,3}$/.test(name ?? "");

// White space, control characters, and characters that change the text direction.
const HIDES = /[\u0000-\u0020\u007f-\u00a0\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/;

/** Removes characters that change the text direction. The server's responses have none. */
const harmless = (text) => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");

/** Percent-decodes a piece of a path, unless that would hide something. */
const readable = (piece) => {
  try {
    const text = decodeURIComponent(piece);
    return HIDES.test(text) ? piece : text;
  } catch {
    return piece;
  }
};

/** Returns the host and path of a URL as `example.org › a › b`. */
const place = (url) => {
  const at = url.indexOf(":" + "//");
  const rest = at < 0 ? url : url.slice(at + 3);
  return rest.split("/").filter((piece) => piece !== "").map(readable).join(" › ");
};

/** Returns a day in UTC as `2026-11-20` and as `20 Nov 2026`. */
const day = (seconds) => {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return null;
  const month = MONTHS[date.getUTCMonth()];
  const person = `${date.getUTCDate()} ${month} ${String(date.getUTCFullYear()).padStart(4, "0")}`;
  return { machine: date.toISOString().slice(0, 10), person };
};

const marked = (parts) =>
  parts.map((part) => (part.match ? element("mark", {}, part.text) : part.text));

/** Joins a heading and those above it. */
const nameOf = (section) =>
  [section.heading, ...(section.parents ?? [])].filter((name) => name !== "").join(" \u00b7 ");

const sectionsOf = (hit, lang) => {
  const shown = (hit.sections ?? []).filter((section) => isWeb(section.url) && section.heading !== "");
  if (shown.length === 0) return null;
  const link = (section) => element("a", { class: "section", href: section.url }, nameOf(section));
  return element("ul", { class: "sections", lang, dir: "auto" },
    shown.map((section) => element("li", {}, link(section))));
};

const more = (hit) => {
  const when = typeof hit.modified === "number" ? day(hit.modified) : null;
  return when
    ? element("p", { class: "more" }, element("time", { datetime: when.machine }, when.person))
    : null;
};

/** Creates a result whose title is in an element of this name. */
const item = (hit, heading) => {
  const lang = isLanguage(hit.language) ? hit.language : null;
  const title = marked(hit.title_parts);
  const name = isWeb(hit.leads_to) ? [element("a", { href: hit.passage_url ?? hit.leads_to }, title)] : title;
  const excerpt = hit.excerpt_parts.length > 0
    ? element("p", { class: "excerpt", lang, dir: "auto" }, marked(hit.excerpt_parts))
    : null;
  return element("li", { class: "hit" },
    element("p", { class: "where" }, element("bdi", {}, place(hit.url))),
    element(heading, { class: "title", lang, dir: "auto" }, name),
    excerpt,
    sectionsOf(hit, lang),
    more(hit));
};

const tips = () => {
  const tip = (code, text) => element("li", {}, element("code", {}, code), text);
  return element("ul", { class: "tips" },
    tip('"exact words"', " finds the exact phrase"),
    tip("-word", " excludes pages with this word"),
    tip("title:word", " searches only titles"),
    tip("site:host", " searches only one host"));
};

/** Describes the number of results in words. */
const statusOf = (answer, request) => {
  const query = harmless(answer.did_you_mean ?? request.query);
  const first = request.offset + 1;
  const last = request.offset + answer.results.length;
  if (answer.total === 0) return `No results for “${query}”`;
  if (answer.results.length === 0) return `No more results for “${query}”`;
  if (answer.total === 1) return `1 result for “${query}”`;
  if (last >= answer.total && first === 1) return `${grouped(answer.total)} results for “${query}”`;
  return `Results ${grouped(first)} to ${grouped(last)} of ${grouped(answer.total)} for “${query}”`;
};

/** Returns a sentence about the words that the results lack; null if nothing is missing. */
const leftOutOf = (answer) => {
  if (answer.unknown) {
    const words = answer.unknown.map(harmless).join(", ");
    return answer.total ? `No page has ${words}: left out.` : `No page has ${words}.`;
  }
  return answer.lacks_words ? "Few pages have all words: pages with some of them follow." : null;
};

/**
 * Requests results and drops the answers of superseded requests. `find(request, signal)` promises an
 * answer; the message of its errors is shown to the user.
 */
class Asker {
  #find;
  #under = null;
  #timer = 0;

  constructor(find) {
    this.#find = find;
  }

  /** Cancels pending requests. */
  forget() {
    clearTimeout(this.#timer);
    this.#under?.abort();
    this.#under = null;
  }

  /** After `wait` ms without another call, calls `then` with the answer or `fail` with a message. */
  ask(request, wait, then, fail) {
    this.forget();
    this.#timer = setTimeout(() => this.#now(request, then, fail), wait);
  }

  async #now(request, then, fail) {
    const under = new AbortController();
    this.#under = under;
    let answer;
    try {
      answer = await this.#find(request, under.signal);
    } catch (error) {
      if (this.#under === under) fail(error.message);
      return;
    }
    if (this.#under === under) then(answer);
  }
}

/** Moves the focus from one result to the next, or back to the field. */
const moveFocus = (links, field, active, step) => {
  const at = links.indexOf(active);
  const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
  if (next < 0) field.focus();
  else links[Math.min(next, links.length - 1)]?.focus();
};
