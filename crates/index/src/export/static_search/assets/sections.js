// Decides where on a page its result leads: `result_sections.rs` and `passage.rs` in JavaScript,
// for the loaded piece of the page's text.

const MAX_SECTIONS = 3;
const MAX_PARENTS = 3;
const MAX_FRAGMENT_LETTERS = 120;
const MAX_PASSAGE_LETTERS = 160;
const MAX_WORD_LETTERS = 60;

// Returns the best sections for a query, best first, and whether results should link to the first
// one, because its heading matches terms that the title lacks. `hits` are start, end and unit of
// marked words.
function sections(text, hits, wanted, inTitle) {
  const headings = text.h || [];
  const candidates = [];
  const distinct = (units) => new Set(units).size;
  headings.forEach(([place, , heading], n) => {
    // Only the last heading under which the piece starts has text in it.
    if (place < 0 && headings[n + 1] && headings[n + 1][0] < 0) return;
    const end = headings[n + 1] ? headings[n + 1][0] : text.x.length;
    const within = hits.filter(([start]) => start >= place && start < end);
    if (!within.length) return;
    const named = place < 0
      ? marks(words(heading), wanted).map((hit) => hit[2])
      : within.filter((hit) => hit[1] <= place + heading.length).map((hit) => hit[2]);
    candidates.push({
      n,
      units: distinct(within.map((hit) => hit[2]).concat(place < 0 ? named : [])),
      named: distinct(named),
      hits: Math.min(within.length, 6),
      saysMore: named.some((unit) => !inTitle.has(unit)),
    });
  });
  candidates.sort((a, b) => b.units - a.units || b.named - a.named || b.hits - a.hits || a.n - b.n);
  // The text before the second heading belongs to the page itself.
  const first = headings.length ? Math.max(0, headings[0][0]) : text.x.length;
  const before = distinct(hits.filter(([start]) => start < first).map((hit) => hit[2]));
  const best = candidates.filter((section) => section.units * 2 > candidates[0].units).slice(0, MAX_SECTIONS);
  const enters = best.length > 0 && best[0].saysMore && best[0].units >= before;
  return { best: best.map(({ n }) => section(text, n)), enters };
}

// Returns the section at a place in the text; none for the page itself.
function sectionAt(text, at) {
  const headings = text.h || [];
  let under = -1;
  while (under + 1 < headings.length && headings[under + 1][0] <= at) under++;
  return under < 0 ? undefined : section(text, under);
}

function section(text, n) {
  const [, level, heading, id] = text.h[n];
  const parents = [];
  let least = level;
  for (let above = n - 1; above >= 0 && parents.length < MAX_PARENTS; above--) {
    if (text.h[above][1] >= least) continue;
    least = text.h[above][1];
    parents.push(line(text.h[above][2]));
  }
  const fragment = id === null || id === undefined ? textFragment(heading) : encodedId(id);
  return { heading: line(heading), ...(parents.length ? { parents } : {}), url: `${text.u}#${fragment}` };
}

// Replaces control characters, such as line breaks.
function line(text) {
  return text.replace(/\p{Cc}/gu, '\uFFFD');
}

// The fragment percent-encode set, plus all non-ASCII characters.
function encodedId(id) {
  return encodeURI(id).replace(/%(?:25|5B|5C|5D|5E|7B|7C|7D)/g, decodeURIComponent);
}

// Encodes everything except ASCII letters and digits.
function encoded(text) {
  return encodeURIComponent(text).replace(/[-_.!~*'()]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

// Returns a text fragment (WICG URL Fragment Text Directives, section 3.3).
function textFragment(text) {
  const letters = Array.from(text);
  if (letters.length <= MAX_FRAGMENT_LETTERS) return `:~:text=${encoded(text)}`;
  // Browsers don't find partial words.
  const start = letters.slice(0, MAX_FRAGMENT_LETTERS).join('');
  return `:~:text=${encoded(start.slice(0, Math.max(0, start.lastIndexOf(' '))))}`;
}

// Returns the URL with a text fragment for the marked words of an excerpt, if it has any.
function passageUrl(address, text, hits, excerpt) {
  if (address.includes(':~:')) return undefined;
  const shown = hits.filter(([start, end]) => start >= excerpt.start && end <= excerpt.end);
  if (!shown.length) return undefined;
  const [first] = shown;
  // A browser searches for the start of a passage within one block.
  const begin = text.lastIndexOf('\n', first[0] - 1) + 1;
  const newline = text.indexOf('\n', first[1]);
  const end = newline < 0 ? excerpt.end : Math.min(newline, excerpt.end);
  const maxEnd = Math.min(end, first[0] + MAX_PASSAGE_LETTERS);
  const last = shown.filter((hit) => hit[1] <= maxEnd).pop() || first;
  const [from, to] = wholeWords(text, first[0], last[1], begin, end);
  const passage = text.slice(from, to);
  let directive = encoded(passage);
  // A single word may occur many times, so add context words to identify the occurrence.
  if (!/\s/.test(passage)) {
    const before = text.slice(Math.max(begin, excerpt.start), from).trim().split(/\s+/).pop();
    if (before && before.length <= MAX_WORD_LETTERS) directive = `${encoded(before)}-,${directive}`;
    const after = text.slice(to, end).trim().split(/\s+/)[0];
    if (after && after.length <= MAX_WORD_LETTERS) directive = `${directive},-${encoded(after)}`;
  }
  return `${address}${address.includes('#') ? '' : '#'}:~:text=${directive}`;
}

// Extends a stretch to whole words, because browsers only find whole words.
function wholeWords(text, start, end, from, to) {
  const before = /[\p{L}\p{N}_]*$/u.exec(text.slice(from, start))[0].length;
  const after = /^[\p{L}\p{N}_]*/u.exec(text.slice(end, to))[0].length;
  const unlessLong = (letters) => (letters > MAX_WORD_LETTERS ? 0 : letters);
  return [start - unlessLong(before), end + unlessLong(after)];
}
