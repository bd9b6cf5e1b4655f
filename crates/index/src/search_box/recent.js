// Searches that led somewhere, kept in the reader's browser and sent to nobody.

const RECENT_KEY = "crawl-search.recent";
const RECENT_MOST = 5;
const RECENT_MOST_CHARS = 200;

const recent = {
  /** The last searches, newest first; none where the browser keeps nothing. */
  all() {
    try {
      const kept = JSON.parse(localStorage.getItem(RECENT_KEY) ?? "[]");
      return kept.filter((query) => typeof query === "string" && query !== "").slice(0, RECENT_MOST);
    } catch {
      return [];
    }
  },

  add(query) {
    if (query === "" || query.length > RECENT_MOST_CHARS) return;
    const others = recent.all().filter((other) => other !== query);
    try {
      localStorage.setItem(RECENT_KEY, JSON.stringify([query, ...others].slice(0, RECENT_MOST)));
    } catch {
      // Storage is full or forbidden: the search works without.
    }
  },

  clear() {
    try {
      localStorage.removeItem(RECENT_KEY);
    } catch {
      // There was none.
    }
  },
};
