// Splits text into words like the index: `words.rs` in JavaScript. A word that is split differently
// here can't be found, so a test compares the two.

const MAX_WORD_BYTES = 96;
// Positions to skip at the end of each line, so that no phrase crosses it.
const BLOCK_GAP = 4;

// Letters with the characters that join letters, and digits with those that join digits (UAX 29,
// WB5 to WB13b). Superscript and circled numbers are separate, but lowered digits after a letter
// belong to a formula such as `CO\u2082`, and quotation marks to Hebrew abbreviations.
const HEBREW = '[\\u05D0-\\u05EA\\u05EF-\\u05F2\\uFB1D\\uFB1F-\\uFB28\\uFB2A-\\uFB4F]';
const WORD = new RegExp(
  '[\\p{L}\\p{Nd}\\p{Nl}\\p{Pc}\\u05F3\\u066B](?:[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\u05F3\\u066B\\u200C-\\u200F\\u061C\\u00AD\\u2060\\uFEFF]' +
    '|(?<=[\\p{Alphabetic}\\u2080-\\u2089])[\\u2080-\\u2089]' +
    `|(?<=${HEBREW}\\p{M}*)(?:'|["\\u201C\\u201D](?=${HEBREW}))` +
    "|(?<=[\\p{L}\\p{M}])[.:'\\u05F4\\u2018\\u2019\\u00B7\\u2024\\u2027\\uFE13\\uFE52\\uFE55\\uFF07\\uFF0E\\uFF1A](?=\\p{L})" +
    "|(?<=\\p{Nd})[.,;'\\u066C\\u2018\\u2019\\u2024\\uFE52\\uFF07\\uFF0E](?=\\p{Nd}))*|\\p{No}",
  'gu');
const PAIRED = /[\u2E80-\u2FDF\u3005-\u3007\u3041-\u30FF\u31F0-\u31FF\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\uFF66-\uFF9F\u{20000}-\u{3FFFF}]+/gu;
// A character with its sound marks, which are separate in half-width katakana and decomposed text.
const MARKED_CHARACTER = /.[\u3099\u309A\uFF9E\uFF9F]*/gsu;
const WITHOUT_SPACES = /[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\uA9E0-\uA9FF\uAA60-\uAA7F]/;
const JOINT = /[._'\u2019:,\u00B7\u05F3\u066B\u066C\uFF0E]/;
// Optional marks: accents, the points of Hebrew, Arabic and Syriac, the tatweel, and invisible
// characters.
const OPTIONAL =
  /[\u0300-\u036F\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7\u0610-\u061A\u0640\u064B-\u065F\u0670\u06D6-\u06DC\u06DF-\u06E4\u06E7\u06E8\u06EA-\u06ED\u0711\u0730-\u074A\u0897-\u089F\u08CA-\u08E1\u08E3-\u08FF\u00AD\u061C\u200B-\u200F\u2060\uFEFF]/g;
const segmenter =
  typeof Intl === 'object' && Intl.Segmenter ? new Intl.Segmenter('th', { granularity: 'word' }) : null;

const SPELT = {
  'ß': 'ss', 'æ': 'ae', 'œ': 'oe', 'ø': 'o', 'đ': 'd', 'ð': 'd', 'ł': 'l', 'ı': 'i', 'þ': 'th', '\u2019': "'",
  '\u05F3': "'", '\u05F4': '"', '\u201C': '"', '\u201D': '"', '\u066B': '.', '\u066C': ',',
  '\u06A9': '\u0643', '\u06CC': '\u064A', '\u0649': '\u064A',
};

// Returns the ASCII form of a decimal digit: Unicode has the digits of a script in order, in runs
// of ten.
function asciiDigit(c) {
  let before = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(c.codePointAt(0) - before - 1))) before += 1;
  return String(before % 10);
}

// Returns the form that pages and queries share: lower case, no optional marks, ASCII digits,
// compatible forms.
function fold(written) {
  const lower = written.toLowerCase();
  if (/^[\x00-\x7F]*$/.test(lower)) return lower;
  return lower
    .normalize('NFKD')
    .replace(OPTIONAL, '')
    .replace(/\p{Nd}/gu, asciiDigit)
    .replace(/[ßæœøđðłıþ\u05F3\u05F4\u0649\u066B\u066C\u06A9\u06CC\u2019\u201C\u201D]/g, (c) => SPELT[c])
    .toLowerCase()
    .normalize('NFC');
}

// Returns the stems of a folded word in the languages of the pages: `stem_of` in `words/stem.rs`.
function stemsOf(word) {
  if (!/^\p{Alphabetic}+$/u.test(word)) return [];
  return Array.from(new Set(STEMMERS.map((stemmer) => fold(stemmer.stemWord(word))))).filter(Boolean);
}

// Splits a word into parts: at joints, and at capitals that start a new part.
function parts(word) {
  const ranges = [];
  const chars = Array.from(word);
  let start = 0;
  let at = 0;
  for (let n = 0; n < chars.length; n++) {
    const c = chars[n];
    if (JOINT.test(c)) {
      if (start < at) ranges.push([start, at]);
      start = at + c.length;
    } else if (start < at && /\p{Lu}/u.test(c)) {
      const before = chars[n - 1] || '';
      const after = chars[n + 1] || '';
      if (/\p{Ll}/u.test(before) || (/\p{Lu}/u.test(before) && /\p{Ll}/u.test(after))) {
        ranges.push([start, at]);
        start = at;
      }
    }
    at += c.length;
  }
  if (start < word.length) ranges.push([start, word.length]);
  return ranges;
}

function bytes(text) {
  return /^[\x00-\x7F]*$/.test(text) ? text.length : new TextEncoder().encode(text).length;
}

// Returns the words of a text in order, each followed by its parts: where they start and end, and
// their number in the text. `kind` is plain, part, character or pair.
function words(text) {
  const all = [];
  let position = 0;
  let last = 0;
  const push = (start, end, at, kind) => {
    const folded = fold(text.slice(start, end));
    if (folded) all.push({ text: folded, start, end, position: at, kind });
  };
  const plain = (start, end) => {
    const written = text.slice(start, end);
    if (bytes(written) > MAX_WORD_BYTES) {
      position += 1;
      return;
    }
    const pieces = parts(written);
    push(start, end, position, 'plain');
    if (pieces.length > 1) {
      pieces.forEach(([from, to], n) => push(start + from, start + to, position + n, 'part'));
    }
    position += Math.max(1, pieces.length);
  };
  const paired = (start, end) => {
    let before = -1;
    let at = start;
    for (const [c] of text.slice(start, end).matchAll(MARKED_CHARACTER)) {
      if (before >= 0) push(before, at + c.length, position - 1, 'pair');
      push(at, at + c.length, position, 'character');
      before = at;
      at += c.length;
      position += 1;
    }
  };
  // A run of letters may include scripts that are split in other ways.
  const run = (start, end) => {
    const written = text.slice(start, end);
    if (segmenter && WITHOUT_SPACES.test(written)) {
      for (const piece of segmenter.segment(written)) {
        if (piece.isWordLike) plain(start + piece.index, start + piece.index + piece.segment.length);
      }
    } else if (/[^_]/.test(written)) {
      plain(start, end);
    }
  };
  // Operators have the position of the following word, so that they don't separate a phrase.
  const gap = (start, end) => {
    for (const match of text.slice(start, end).matchAll(/\n|[!#$%&*+\-./:<=>?@\\^|~]+/g)) {
      const at = start + match.index;
      if (match[0] === '\n') position += BLOCK_GAP;
      else if (isOperator(text, at, at + match[0].length)) push(at, at + match[0].length, position, 'plain');
    }
  };
  for (const match of text.matchAll(WORD)) {
    const start = match.index;
    if (start < last) continue;
    gap(last, start);
    const end = withSigns(text, start, start + match[0].length);
    last = end;
    let from = start;
    for (const ideographs of match[0].matchAll(PAIRED)) {
      const at = start + ideographs.index;
      if (from < at) run(from, at);
      from = at + ideographs[0].length;
      paired(at, from);
    }
    if (from < end) run(from, end);
  }
  gap(last, text.length);
  return all;
}

// Returns whether a match is an operator: two to four symbols in a row that touch no letter or
// digit, such as `!=` and `|>`, but not dashes or dots.
function isOperator(text, start, end) {
  return end - start >= 2 && end - start <= 4 && !/^(?:-+|\.+)$/.test(text.slice(start, end))
    && !/[\p{Alphabetic}\p{N}_]$/u.test(text.slice(Math.max(0, start - 2), start))
    && !/^[\p{Alphabetic}\p{N}_]/u.test(text.slice(end, end + 2));
}

// Includes the signs of names such as `C++` and `C#`, and the powers of units such as `km\u00B2`.
function withSigns(text, start, end) {
  if (/^\p{Alphabetic}{1,2}$/u.test(text.slice(start, end)) && /^[\u00B2\u00B3\u00B9\u2070\u2074-\u2079]/.test(text.slice(end, end + 1))) return end + 1;
  if (end - start > 2 || !/^[A-Za-z]+$/.test(text.slice(start, end))) return end;
  const signs = /^(?:\+\+|#)(?![\p{L}\p{N}+#])/u.exec(text.slice(end, end + 4));
  return signs ? end + signs[0].length : end;
}


// Queries.

const MAX_QUERY_BYTES = 2048;
const MAX_TERMS = 32;
const QUOTE = '"\u201C\u201D\u201E\u00AB\u00BB';

// Returns a host or a host's folder in the form of the index: `site_name` of `query.rs`.
function siteName(typed) {
  const [, scheme = 'http', site] = /^(?:(.*?):\/\/)?(.*?)\/*$/s.exec(typed);
  // A `?` or `#` is part of the path.
  const text = site.replace(/\?/g, '%3F').replace(/#/g, '%23');
  if (/^https?$/i.test(scheme) && site && site[0] !== '/') {
    try {
      const url = new URL(`${scheme}://${text}`);
      return (url.host + url.pathname.replace(/\^/g, '%5E')).replace(/\/+$/, '');
    } catch {
      // The text is not a host.
    }
  }
  return site.replace(/^[^/]*/, (host) => host.toLowerCase());
}

// `word`, `"some words"`, `-word`, `word*`, `title:word`, `site:example.org/docs`.
function parse(text) {
  const query = { terms: [], sites: [], notSites: [] };
  const inner = `(?<=${HEBREW})[${QUOTE}](?=${HEBREW})`;
  const token = new RegExp(
    `(-(?=[\\p{L}\\p{N}${QUOTE}]))?(?:(site|title):(?=\\S))?` +
      `(?:[${QUOTE}]((?:[^${QUOTE}]|${inner})*)[${QUOTE}]?|((?:[^\\s\\p{Cc}${QUOTE}]|${inner})+))`,
    'giu');
  for (const [, not, label, quoted, word] of text.slice(0, MAX_QUERY_BYTES).matchAll(token)) {
    if (query.terms.length >= MAX_TERMS) break;
    const written = quoted !== undefined ? quoted : word;
    const kind = (label || '').toLowerCase();
    if (kind === 'site') {
      const site = siteName(written);
      if (site) (not ? query.notSites : query.sites).push(site);
      continue;
    }
    const isPhrase = quoted !== undefined;
    const isBeginning = !isPhrase && /[\p{L}\p{N}].*\*$/u.test(written);
    const bare = isBeginning ? written.replace(/\*+$/, '') : written;
    if (bare.trim()) {
      query.terms.push({ text: bare, isPhrase, isBeginning, isNot: !!not, inTitle: kind === 'title' });
    }
  }
  return query;
}
