// Searches that led to a result, stored only in the user's browser.

const RECENT_KEY = "crawl-search.recent";
const RECENT_MOST = 5;
const RECENT_MOST_CHARS = 200;

const recent = {
  /** Returns the last searches, newest first; none if the browser has no storage. */
  all() {
    try {
      const stored = JSON.parse(localStorage.getItem(RECENT_KEY) ?? "[]");
      return stored.filter((query) => typeof query === "string" && query !== "").slice(0, RECENT_MOST);
    } catch {
      return [];
    }
  },

  add(query) {
    if (query === "" || query.length > RECENT_MOST_CHARS) return;
    const older = recent.all().filter((each) => each !== query);
    try {
      localStorage.setItem(RECENT_KEY, JSON.stringify([query, ...older].slice(0, RECENT_MOST)));
    } catch {
      // Storage is full or forbidden: the search works without it.
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
