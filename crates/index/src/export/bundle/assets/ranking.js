// Ranks the pages that match a query and makes their excerpts. The numbers were tuned on the
// queries marked `tune` of `cargo xtask bench search --bundle`, and validated on the others.

// The weight of a match, relative to the word itself.
const STEM = 0.4;
const BEGINNING = 0.5;
// A longer word with the last query word as prefix, if pages also have that word itself.
const LONGER = 0.25;
const MIN_OPEN_LETTERS = 3;
const MEANT = 0.8;
// A synonym from the site owner's rules, and a longer word that ends in the word.
const SYNONYM = 0.9;
const COMPOUND = 0.4;
// BM25's saturation. It is high, because a word in the title counts as many in the text.
const K1 = 8;
// The gain for words in one piece of a long page, and for adjacent words.
const TOGETHER = 0.45;
const BESIDE = { text: 0.2, title: 0.35 };
// With at least this many pages, a word on more than this share of them is common.
const COMMON = { pages: 20, part: 0.4 };
// If fewer pages than this have both words of a query, pages with one of them follow.
const MIN_OF_PAIR = 5;
const MAX_CHECKED_FOR_PHRASES = 60;
const MAX_CHECKED_FOR_MINUS = 5;
const EXCERPT = 240;

class Search {
  // Opens a bundle. `load(name)` returns the bytes of one of its files.
  static async open(load) {
    const manifest = JSON.parse(new TextDecoder().decode(await load('search.json')));
    if (manifest.format !== 2) throw new Error(`search.json is of format ${manifest.format}`);
    return new Search(manifest, load);
  }

  constructor(manifest, load) {
    this.manifest = manifest;
    this.files = new Files(manifest, load);
    this.until = new Map(manifest.until);
  }

  // Runs a query whose last word may be incomplete. `now` is in seconds since 1970.
  async search(text, { limit = 10, offset = 0, now = Date.now() / 1000 } = {}) {
    const query = await this.asMeant(parse(text));
    let plan = await this.plan(query);
    let found = await this.find(plan, now);
    const isPhrase = (term) => term.isPhrase && !term.isNot && !term.inTitle;
    if (!found.length && query.terms.some(isPhrase)) {
      // If no page has a phrase, look up its words.
      const named = query.terms.filter(isPhrase).map((term) => `"${term.text}"`);
      const apart = query.terms.map((term) => (isPhrase(term) ? { ...term, isPhrase: false } : term));
      plan = await this.plan({ ...query, terms: apart });
      plan.unknown.unshift(...named);
      found = await this.find(plan, now);
    }
    const shown = found.slice(offset, offset + limit);
    const texts = await Promise.all(shown.map((hit) => this.files.text(hit.page, bestPiece(hit))));
    const results = shown.map((hit, n) => result(hit, texts[n], plan));
    // The pieces of the first screen are loaded anyway, so adjacent query words can be ranked up.
    if (offset === 0) results.sort((a, b) => b.score - a.score);
    const total = await this.pin(text, found, results, plan, { limit, offset, now });
    const answer = { query: text, total, results, did_you_mean: plan.meant && asWritten(plan.meant, results) };
    if (plan.unknown.length) answer.unknown = plan.unknown;
    if (plan.lacksWords && total) answer.lacks_words = true;
    return answer;
  }

  // Puts the page pinned to the query first. Returns the number of matching pages.
  async pin(query, found, results, plan, { limit, offset, now }) {
    const pins = this.manifest.pins;
    const key = words(query).filter((word) => word.kind !== 'part').map((word) => word.text).join(' ');
    const page = Object.hasOwn(pins, key) ? pins[key] : undefined;
    if (page === undefined || (this.until.has(page) && this.until.get(page) <= now)) return found.length;
    const known = found.find((hit) => hit.page === page);
    const hit = known || { page, score: 0 };
    const pinned = result(hit, await this.files.text(page, bestPiece(hit)), plan);
    const at = results.findIndex((other) => other.url === pinned.url);
    if (at >= 0) results.splice(at, 1);
    if (offset === 0 && limit > 0) {
      pinned.score = results.length ? results[0].score : 0;
      results.unshift({ ...pinned, pinned: true });
      results.length = Math.min(results.length, limit);
    }
    return found.length + (known ? 0 : 1);
  }

  async find(plan, now) {
    const found = this.rank(plan, now);
    return plan.phrases.length ? this.withPhrases(found, plan) : found;
  }

  // A minus is part of a word if the query has only excluded terms, or pages write the word so.
  async asMeant(query) {
    const asksNothing = query.terms.every((term) => term.isNot) && !query.sites.length;
    for (const term of query.terms) {
      if (!term.isNot || term.isPhrase || term.isBeginning || term.inTitle) continue;
      if (asksNothing || (await this.isWritten(term.text))) term.isNot = false;
    }
    return query;
  }

  // Returns whether one of the first pages with a word writes it after a minus.
  async isWritten(word) {
    const first = words(word)[0];
    const form = first && (await this.files.find(first.text));
    if (!form) return false;
    const written = new RegExp(`(?:^|[\\s"'\`([{<=|])-${word.replace(/[^\p{L}\p{N}]/gu, '\\$&')}(?![\\p{L}\\p{N}_])`, 'u');
    for (let n = 0; n < Math.min(form.pages.length, MAX_CHECKED_FOR_MINUS); n++) {
      const pieces = form.pieces[n];
      const piece = pieces > 0 ? 31 - Math.clz32(pieces & -pieces) : 0;
      const text = await this.files.text(form.pages[n], piece);
      if (written.test(text.x || '') || written.test(text.t)) return true;
    }
    return false;
  }

  // Returns what to look up: units of equivalent words.
  async plan(query) {
    const plan = { units: [], must: [], not: [], phrases: [], notPhrases: [], sites: [], notSites: [], meant: undefined, unknown: [] };
    const written = [];
    let isChanged = false;
    for (const [n, term] of query.terms.entries()) {
      const isLast = n === query.terms.length - 1;
      const found = words(term.text);
      if (term.isPhrase) {
        const phrase = await this.phrase(found, term);
        (term.isNot ? plan.notPhrases : plan.phrases).push(phrase);
        written.push(`${term.isNot ? '-' : ''}"${term.text}"`);
        continue;
      }
      const ending = term.isBeginning ? 'open' : isLast && !term.isNot ? 'maybe' : 'typed';
      const units = await this.units(found, ending);
      const now = units.map((unit) => unit.written).join(' ');
      const changed = units.some((unit) => unit.isGuess);
      isChanged = isChanged || (changed && !term.isNot);
      written.push(`${term.isNot ? '-' : ''}${term.inTitle ? 'title:' : ''}${changed ? now : term.text}${term.isBeginning ? '*' : ''}`);
      if (term.isNot) plan.not.push(...units.map((unit) => Object.assign(unit, { inTitle: term.inTitle })));
      else if (term.inTitle) plan.must.push(...units.map((unit) => Object.assign(unit, { inTitle: true })));
      else plan.units.push(...units);
    }
    const isUnknown = (unit) => !unit.forms.size;
    plan.unknown = plan.units.filter(isUnknown).map((unit) => unit.written);
    const isEmpty = !plan.units.length && !plan.phrases.length && !plan.must.length;
    // Symbols that aren't words.
    if (isEmpty && !query.sites.length) plan.unknown = query.terms.map((term) => term.text);
    if (!plan.units.every(isUnknown) || plan.phrases.length || plan.must.length) {
      plan.units = plan.units.filter((unit) => !isUnknown(unit));
    }
    await this.joinNeighbours(plan.units);
    const sites = (names) => Promise.all(names.map(async (site) => (await this.files.find('\u0002' + site))));
    plan.hasSites = query.sites.length > 0;
    plan.sites = (await sites(query.sites)).filter(Boolean);
    plan.notSites = (await sites(query.notSites)).filter(Boolean);
    if (isChanged) plan.meant = written.join(' ');
    return plan;
  }

  // Returns the units of one term: independent words, corrections of unknown words, and pairs of
  // characters in scripts without spaces.
  async units(found, ending) {
    const units = [];
    const whole = found.filter((word) => word.kind !== 'part');
    const pairs = new Set(found.filter((word) => word.kind === 'pair').flatMap((word) => [word.position, word.position + 1]));
    for (const [n, word] of whole.entries()) {
      // A character in a pair adds nothing.
      if (word.kind === 'character' && pairs.has(word.position)) continue;
      const isLast = n === whole.length - 1;
      const parts = found.filter((part) => part.kind === 'part' && part.start >= word.start && part.end <= word.end);
      units.push(...(await this.unit(word.text, parts, isLast ? ending : 'typed')));
    }
    return units;
  }

  async unit(word, parts, ending) {
    const unit = new Unit(word);
    const form = await this.files.find(word);
    if (form) unit.add(form, 1);
    for (const synonym of Object.hasOwn(this.manifest.synonyms, word) ? this.manifest.synonyms[word] : []) {
      const other = await this.files.find(synonym);
      if (other) unit.add(other, SYNONYM);
    }
    for (const longer of form ? form.group.compounds : []) {
      const compound = await this.files.find(longer);
      for (const other of compound ? compound.group.forms : []) unit.put(other, COMPOUND);
    }
    const isOpen = ending !== 'typed' && word.length >= (form && ending === 'maybe' ? MIN_OPEN_LETTERS : 2);
    if (isOpen) {
      const weight = form && ending === 'maybe' ? LONGER : BEGINNING;
      for (const longer of await this.files.beginning(word)) unit.put(longer, weight);
    }
    if (unit.forms.size) return [unit];
    if (parts.length) {
      const units = [];
      for (const part of parts) units.push(...(await this.unit(part.text, [], 'typed')));
      return units;
    }
    const near = await this.files.near(word);
    if (near.length) {
      unit.written = near[0].text;
      unit.isGuess = true;
      near.forEach((form, n) => unit.add(form, n ? MEANT / 2 : MEANT));
      return [unit];
    }
    const halves = await this.files.halves(word);
    if (!halves) return [unit];
    return halves.map((half) => {
      const unit = new Unit(half.text);
      unit.isGuess = true;
      unit.add(half, 1);
      return unit;
    });
  }

  // Makes two adjacent words match the joined word, if any page has it.
  async joinNeighbours(units) {
    for (let n = 1; n < units.length; n++) {
      const form = await this.files.find(units[n - 1].written + units[n].written);
      if (!form) continue;
      units[n - 1].put(form, STEM);
      units[n].put(form, STEM);
    }
  }

  async phrase(found, term) {
    const picked = found.filter((word) => word.kind === 'plain' || word.kind === 'pair' ||
      (word.kind === 'character' && !found.some((other) => other.kind === 'pair')));
    const units = [];
    for (const word of picked) {
      const unit = new Unit(word.text);
      const form = await this.files.find(word.text);
      if (form) unit.put(form, 1);
      units.push(unit);
    }
    const first = picked.length ? picked[0].position : 0;
    return { units, inTitle: term.inTitle, words: picked.map((word) => [word.text, word.position - first]) };
  }

  // Returns the pages with half of the distinctive words, best first, or else those with any.
  rank(plan, now) {
    const pages = this.manifest.pages;
    const phrased = plan.phrases.flatMap((phrase) => phrase.units.map((unit) => Object.assign(unit, { inTitle: phrase.inTitle })));
    const must = plan.must.concat(phrased);
    const units = plan.units.concat(must);
    for (const unit of units) unit.weigh(pages);
    const telling = plan.units.filter((unit) => !unit.isCommon);
    const asked = telling.length ? telling : plan.units;
    const least = Math.ceil(asked.length / 2);
    const hits = new Map();
    units.forEach((unit, n) => unit.each((page, weight, inTitle, pieces) => {
      if (unit.inTitle && !inTitle) return;
      let hit = hits.get(page);
      if (!hit) hits.set(page, (hit = { page, score: 0, weights: new Float64Array(units.length), pieces: new Map(), has: 0 }));
      hit.weights[n] += weight;
      if (pieces > 0) hit.pieces.set(n, (hit.pieces.get(n) || 0) | pieces);
    }));
    const barred = new Set();
    for (const unit of plan.not) unit.each((page, _, inTitle) => (!unit.inTitle || inTitle) && barred.add(page));
    for (const site of plan.notSites) for (const page of site.pages) barred.add(page);
    const inSite = new Set(plan.sites.flatMap((site) => Array.from(site.pages)));
    for (const [page, until] of this.until) if (until <= now) barred.add(page);
    if (!units.length && plan.hasSites) {
      for (const page of inSite) hits.set(page, { page, score: 0, weights: new Float64Array(0), pieces: new Map(), has: 0 });
    }
    const found = [];
    const numbers = new Map(units.map((unit, n) => [unit, n]));
    for (const hit of hits.values()) {
      if (barred.has(hit.page) || (plan.hasSites && !inSite.has(hit.page))) continue;
      if (must.some((unit) => !hit.weights[numbers.get(unit)])) continue;
      hit.has = asked.reduce((count, unit) => count + (hit.weights[numbers.get(unit)] > 0 ? 1 : 0), 0);
      score(hit, units);
      found.push(hit);
    }
    const fitting = found.filter((hit) => hit.has >= least);
    const chosen = fitting.length || !asked.length ? fitting : found.filter((hit) => hit.has > 0);
    const withBoth = chosen.filter((hit) => hit.has === 2).length;
    plan.lacksWords = asked.length === 2 && withBoth < MIN_OF_PAIR && withBoth < chosen.length;
    const both = (hit) => (plan.lacksWords && hit.has === 2 ? 1 : 0);
    return chosen.sort((a, b) => both(b) - both(a) || b.score - a.score || a.page - b.page);
  }

  // Keeps those of the best pages that have the phrases and no excluded phrase.
  async withPhrases(found, plan) {
    const hasPhrase = async (hit, phrase) => {
      for (const piece of phrase.inTitle ? [] : piecesOf(hit, phrase.units)) {
        const text = await this.files.text(hit.page, piece);
        if (!stands(phrase.words, wordsOf(text))) continue;
        hit.piece = piece;
        return true;
      }
      if (!isInTitle(hit, phrase.units)) return false;
      const text = await this.files.text(hit.page, bestPiece(hit));
      return stands(phrase.words, words(text.t));
    };
    const checked = await Promise.all(found.slice(0, MAX_CHECKED_FOR_PHRASES).map(async (hit) => {
      for (const phrase of plan.phrases) if (!(await hasPhrase(hit, phrase))) return null;
      return hit;
    }));
    return checked.filter(Boolean);
  }
}

// Equivalent words, each with its weight.
class Unit {
  constructor(written) {
    this.written = written;
    this.forms = new Map();
    this.isGuess = false;
  }

  // Adds a word and the others with its stem.
  add(form, weight) {
    this.put(form, weight);
    for (const other of form.group.forms) this.put(other, weight * STEM);
  }

  put(form, weight) {
    const known = this.forms.get(form.text);
    if (!known || known.weight < weight) this.forms.set(form.text, { form, weight });
  }

  // Sets how distinctive the unit is among this many pages.
  weigh(pages) {
    let most = 0;
    for (const { form } of this.forms.values()) most = Math.max(most, form.group.pages);
    this.isCommon = pages >= COMMON.pages && most / pages > COMMON.part;
    this.idf = most ? Math.log(1 + (pages - most + 0.5) / (most + 0.5)) : 0;
  }

  each(visit) {
    for (const { form, weight } of this.forms.values()) {
      for (let n = 0; n < form.pages.length; n++) {
        visit(form.pages[n], weight * WEIGHT[form.weights[n]], form.inTitle[n] === 1, form.pieces[n]);
      }
    }
  }
}

// Returns a suggestion with its words spelled as in the results, because the index lacks accents.
function asWritten(meant, results) {
  const written = new Map();
  for (const text of results.flatMap((hit) => [hit.title, hit.excerpt])) {
    for (const word of words(text)) {
      if (!written.has(word.text)) written.set(word.text, text.slice(word.start, word.end).toLowerCase());
    }
  }
  let suggestion = '';
  let end = 0;
  for (const word of words(meant)) {
    if (word.start < end || meant.slice(word.start, word.end) !== word.text) continue;
    suggestion += meant.slice(end, word.start) + (written.get(word.text) || word.text);
    end = word.end;
  }
  return suggestion + meant.slice(end);
}

// Computes BM25 over the words, with a gain for words in one piece of the page.
function score(hit, units) {
  let [sum, all, some] = [0, 0, 0];
  units.forEach((unit, n) => {
    const weight = hit.weights[n];
    all += unit.idf;
    if (!weight) return;
    some += unit.idf;
    sum += (unit.idf * weight * (K1 + 1)) / (weight + K1);
  });
  let together = some;
  if (hit.pieces.size) {
    together = 0;
    hit.best = 0;
    for (let piece = 0; piece < 30; piece++) {
      let here = 0;
      for (const [n, pieces] of hit.pieces) if (pieces & (1 << piece)) here += units[n].idf;
      if (here > together + 1e-9) [together, hit.best] = [here, piece];
    }
  }
  hit.score = sum * (1 - TOGETHER + (TOGETHER * together) / (all || 1));
}

function bestPiece(hit) {
  return hit.piece !== undefined ? hit.piece : hit.best || 0;
}

// Returns the pieces with all words of a phrase; for a page with one piece, that piece.
function piecesOf(hit, units) {
  let pieces = -1;
  for (const unit of units) {
    unit.each((page, _weight, _inTitle, has) => {
      if (page === hit.page && has >= 0) pieces &= has;
    });
  }
  if (pieces === -1) return [0];
  const found = [];
  for (let piece = 0; piece < 30; piece++) if (pieces & (1 << piece)) found.push(piece);
  return found;
}

// Returns whether the title of a page has all words of a phrase, in any order.
function isInTitle(hit, units) {
  return units.every((unit) => {
    let has = false;
    unit.each((page, _weight, inTitle) => (has = has || (inTitle && page === hit.page)));
    return has;
  });
}

function wordsOf(text) {
  if (!text.words) text.words = words(text.x);
  return text.words;
}

// Returns whether the words occur at these distances from each other.
function stands(phrase, found) {
  if (!phrase.length) return false;
  const at = new Map();
  for (const word of found) {
    if (!at.has(word.text)) at.set(word.text, new Set());
    at.get(word.text).add(word.position);
  }
  const places = phrase.map(([text, offset]) => [at.get(text), offset]);
  if (places.some(([found]) => !found)) return false;
  for (const start of places[0][0]) {
    if (places.every(([found, offset]) => found.has(start + offset))) return true;
  }
  return false;
}


function result(hit, text, plan) {
  const units = plan.units.concat(plan.must, plan.phrases.flatMap((phrase) => phrase.units));
  const wanted = new Map();
  units.forEach((unit, n) => {
    for (const form of unit.forms.keys()) if (!wanted.has(form)) wanted.set(form, n);
  });
  const inTitle = words(text.t);
  const inText = wordsOf(text);
  const beside = (found) => neighbours(found, wanted, plan.units.length);
  const bonus = BESIDE.title * beside(inTitle) + BESIDE.text * beside(inText);
  const hits = marks(inText, wanted);
  const around = best(hits);
  const excerpt = text.x ? stretch(text.x, around, hits) : { parts: plainParts(text.d || ''), start: 0, end: 0 };
  const titleHits = marks(inTitle, wanted);
  const found = sections(text, hits, wanted, new Set(titleHits.map((hit) => hit[2])));
  const leadsTo = found.enters ? found.best[0].url : text.u;
  const section = around ? sectionAt(text, excerpt.start) : undefined;
  const isInIt = !found.enters || (section !== undefined && section.url === leadsTo);
  return {
    url: text.u,
    leads_to: leadsTo,
    passage_url: (isInIt && passageUrl(leadsTo, text.x, hits, excerpt)) || undefined,
    title: text.t,
    score: hit.score * (1 + bonus),
    excerpt: excerpt.parts.map((part) => part.text).join(''),
    title_parts: tidy(cut(text.t, 0, text.t.length, titleHits)),
    excerpt_parts: excerpt.parts,
    section,
    sections: found.best.length ? found.best : undefined,
    language: text.l || null,
    modified: text.m === undefined ? null : text.m,
  };
}

// Returns the share of adjacent query words that are adjacent here.
function neighbours(found, wanted, units) {
  if (units < 2) return 0;
  const seen = new Set();
  let before = [];
  for (const word of found) {
    if (word.kind === 'part' || word.kind === 'character') continue;
    const unit = wanted.get(word.text);
    if (unit === undefined) continue;
    before = before.filter((other) => word.position - other.position <= 3);
    for (const other of before) if (unit - other.unit === 1 && unit < units) seen.add(unit);
    before.push({ position: word.position, unit });
  }
  return seen.size / (units - 1);
}

// Returns the places of wanted words: start, end, unit. A part counts only if the whole word is not
// wanted.
function marks(found, wanted) {
  const hits = [];
  for (const word of found) {
    const unit = wanted.get(word.text);
    if (unit === undefined) continue;
    const last = hits[hits.length - 1];
    if (last && word.start < last[1]) {
      if (word.kind === 'pair') last[1] = Math.max(last[1], word.end);
      continue;
    }
    hits.push([word.start, word.end, unit]);
  }
  return hits;
}

// Returns the stretch with the most distinct units, then the most words, then the earliest start.
function best(hits) {
  let found = null;
  let last = 0;
  for (let first = 0; first < hits.length; first++) {
    last = Math.max(last, first);
    while (last + 1 < hits.length && hits[last + 1][1] - hits[first][0] <= EXCERPT * 0.75) last++;
    const within = hits.slice(first, last + 1);
    const units = new Set(within.map((hit) => hit[2])).size;
    const worth = units * 100 + Math.min(within.length, 6);
    if (!found || worth > found.worth) found = { worth, range: [hits[first][0], hits[last][1]] };
  }
  return found && found.range;
}

// Returns the text around a place, starting at a sentence or line if one starts nearby.
function stretch(text, around, hits) {
  const [first, last] = around || [0, 0];
  const room = Math.max(0, EXCERPT - (last - first));
  const back = Math.max(0, first - (room >> 1));
  const before = text.slice(back, first);
  const line = before.lastIndexOf('\n');
  const sentence = before.lastIndexOf('. ');
  const space = before.indexOf(' ');
  const start = back + (line >= 0 ? line + 1 : sentence >= 0 ? sentence + 2 : back > 0 ? space + 1 : 0);
  let end = Math.min(text.length, start + EXCERPT);
  if (end < text.length) {
    const gap = text.slice(start, end).search(/\s\S*$/);
    if (gap > 0 && start + gap >= last) end = start + gap;
  }
  const parts = tidy(cut(text, start, end, hits));
  if (start > 0 && parts.length) parts.unshift({ text: '… ', match: false });
  if (end < text.length && parts.length) parts.push({ text: ' …', match: false });
  return { parts, start, end };
}

function cut(text, start, end, hits) {
  const parts = [];
  let at = start;
  const push = (from, to, match) => to > from && parts.push({ text: text.slice(from, to), match });
  for (const [from, to] of hits) {
    if (from < at || to > end) continue;
    push(at, from, false);
    push(from, to, true);
    at = to;
  }
  push(at, end, false);
  return parts;
}

function plainParts(text) {
  const shown = text.length > EXCERPT ? text.slice(0, EXCERPT) + ' …' : text;
  return tidy([{ text: shown, match: false }]);
}

// Collapses white space, and removes characters that move the cursor or change the text direction.
function tidy(parts) {
  let afterSpace = true;
  const found = [];
  for (const part of parts) {
    let line = '';
    for (const c of part.text.replace(/[\u200E\u200F\u202A-\u202E\u2066-\u2069]/g, '')) {
      const isSpace = /[\s\p{Cc}]/u.test(c);
      if (!(isSpace && afterSpace)) line += isSpace ? ' ' : c;
      afterSpace = isSpace;
    }
    if (line) found.push({ text: line, match: part.match });
  }
  return found;
}
