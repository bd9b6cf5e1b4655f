// Connects the search of the files to the box, and places the box.
//
// <script src="/search/search.js" defer></script> places it after the tag. The attributes of the
// tag are those of a server's snippet, plus data-autofocus and data-address.

function loader(base) {
  return async (name) => {
    // Data files are named by their hash and never change, but search.json may.
    const isNamed = name !== 'search.json';
    const answer = await fetch(new URL(name, base), { cache: isNamed ? 'default' : 'no-cache', credentials: 'same-origin' });
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  };
}

// Returns the files of a folder as a source of results.
function filesAt(base) {
  let search = null;
  const opened = () => {
    if (!search) {
      search = Search.open(loader(base));
      // Retry after a failure.
      search.catch(() => (search = null));
    }
    return search;
  };
  return {
    async find(request) {
      try {
        return await (await opened()).search(request.query, request);
      } catch (error) {
        throw new Error(`The search could not be loaded: ${error.message}`);
      }
    },
    prepare: () => void opened().catch(() => {}),
    page: base.href,
    all: (query) => `${base.href}?q=${encodeURIComponent(query)}`,
  };
}

// Says in the place of the search why it doesn't work from a file.
function explainFile(tag) {
  const text = 'This search needs a web server: a browser lets no page that is opened from a file load other files. ' +
    'Run "python3 -m http.server" in this folder, and open http://localhost:8000/.';
  console.error(text);
  const show = () => {
    const target = tag.dataset.target ? document.querySelector(tag.dataset.target) : null;
    const notice = element('p', { role: 'alert' }, text);
    if (target) target.replaceChildren(notice);
    else tag.after(notice);
  };
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', show);
  else show();
}

if (typeof document === 'object' && document.currentScript) {
  const tag = document.currentScript;
  const base = new URL('.', tag.src);
  if (base.protocol === 'file:') explainFile(tag);
  else mount(tag, filesAt(base));
}
if (typeof globalThis === 'object') {
  globalThis.CrawlSearch = { open: (base) => Search.open(loader(new URL(base, globalThis.location))), Search, words };
}
