// Ranks the pages that match a query and makes their excerpts. The numbers are those of the index:
// see `word_weights.rs`, which also has the values of WEIGHTS.

const MIN_OPEN_LETTERS = 3;
// With at least this many pages, a word on more than this share of them is common. On a small
// site, the share is larger.
const COMMON = { minSite: 20, part: 0.12, minPages: 25, maxPart: 0.5 };
// The minimum weight of a form of a name when nearness is computed.
const LEAST_NAME_WEIGHT = 0.75;
// If fewer pages than this have all words of a query, the answer says so. Of a query with two
// words, pages with one of them then follow.
const MIN_WITH_ALL_WORDS = 5;
const MAX_CHECKED_FOR_PHRASES = 60;
const MAX_CHECKED_FOR_MINUS = 5;
const EXCERPT = 240;

class Search {
  // Opens a bundle. `load(name)` returns the bytes of one of its files.
  static async open(load) {
    const manifest = JSON.parse(new TextDecoder().decode(await load('search.json')));
    if (manifest.format !== 8) throw new Error(`search.json is of format ${manifest.format}`);
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
    let hits = await this.find(plan, now);
    const isPhrase = (term) => term.isPhrase && !term.isNot && !term.inTitle;
    if (!hits.length && query.terms.some(isPhrase)) {
      // If no page has a phrase, look up its words.
      const phrases = query.terms.filter(isPhrase).map((term) => `"${term.text}"`);
      const terms = query.terms.map((term) => (isPhrase(term) ? { ...term, isPhrase: false } : term));
      plan = await this.plan({ ...query, terms });
      plan.unknown.unshift(...phrases);
      hits = await this.find(plan, now);
    }
    // The pinned page takes the first place, so the others move back by one.
    const pinned = this.pinned(text, now);
    const unpinned = hits.filter((hit) => hit.page !== pinned);
    const total = unpinned.length + (pinned === undefined ? 0 : 1);
    const start = pinned === undefined ? offset : Math.max(0, offset - 1);
    const isAbove = pinned !== undefined && offset === 0 && limit > 0;
    const shown = unpinned.slice(start, start + limit - (isAbove ? 1 : 0));
    const texts = await Promise.all(shown.map((hit) => this.files.text(hit.page, bestPiece(hit))));
    const results = shown.map((hit, n) => result(hit, texts[n], plan));
    // The pieces of the first screen are loaded anyway, so adjacent query words can be ranked up.
    if (offset === 0) results.sort((a, b) => b.score - a.score);
    if (isAbove) {
      const hit = hits.find((hit) => hit.page === pinned) || new Hit(pinned, 0);
      const first = result(hit, await this.files.text(pinned, bestPiece(hit)), plan);
      first.score = results.length ? results[0].score : 0;
      results.unshift({ ...first, pinned: true });
    }
    const answer = { query: text, total, results, did_you_mean: plan.meant && asWritten(plan.meant, results) };
    if (plan.unknown.length) answer.unknown = plan.unknown;
    if (plan.lacksWords && total) answer.lacks_words = true;
    return answer;
  }

  // Returns the page pinned to a query, unless it has expired.
  pinned(query, now) {
    const pins = this.manifest.pins;
    const key = words(query).filter((word) => word.kind !== 'part').map((word) => word.text).join(' ');
    const page = Object.hasOwn(pins, key) ? pins[key] : undefined;
    return this.until.has(page) && this.until.get(page) <= now ? undefined : page;
  }

  async find(plan, now) {
    const hits = this.rank(plan, now);
    return plan.phrases.length || plan.notPhrases.length ? this.withPhrases(hits, plan) : hits;
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
    const written = new RegExp(`(?:^|[\\s"'\`([{<=|])-${word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![\\p{L}\\p{N}_])`, 'u');
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
    const plan = { isAboutChanges: isAboutChanges(query), units: [], names: [], must: [], not: [], phrases: [], notPhrases: [], sites: [], notSites: [], meant: undefined, unknown: [] };
    const written = [];
    let isChanged = false;
    for (const [n, term] of query.terms.entries()) {
      const isLast = n === query.terms.length - 1;
      const termWords = words(term.text);
      // An excluded name excludes only pages with the whole name, not those with a part of it.
      if (term.isPhrase || (term.isNot && isName(termWords))) {
        const phrase = await this.phrase(termWords, term);
        (term.isNot ? plan.notPhrases : plan.phrases).push(phrase);
        const quote = term.isPhrase ? '"' : '';
        written.push(`${term.isNot ? '-' : ''}${term.inTitle ? 'title:' : ''}${quote}${term.text}${quote}`);
        continue;
      }
      const ending = term.isBeginning ? 'open' : isLast && !term.isNot ? 'maybe' : 'typed';
      const units = await this.units(termWords, ending, !term.isNot);
      const whole = termWords.filter((word) => word.kind === 'plain');
      if (!term.isNot && !term.inTitle && whole.length > 1) {
        plan.names.push({ units, words: whole.map((word) => [word.text, word.position - whole[0].position]) });
      }
      const now = units.map((unit, n) => unit.rest || (n ? ' ' : '') + unit.written).join('');
      const changed = units.some((unit) => unit.isGuess);
      isChanged = isChanged || (changed && !term.isNot);
      written.push(`${term.isNot ? '-' : ''}${term.inTitle ? 'title:' : ''}${changed ? now : term.text}${term.isBeginning ? '*' : ''}`);
      if (term.isNot) plan.not.push(...units.map((unit) => Object.assign(unit, { inTitle: term.inTitle })));
      else if (term.inTitle) plan.must.push(...units.map((unit) => Object.assign(unit, { inTitle: true })));
      else plan.units.push(...units);
    }
    await this.joinNeighbours(plan.units);
    const isUnknown = (unit) => !unit.forms.size;
    plan.unknown = plan.units.filter(isUnknown).map((unit) => unit.written);
    const isEmpty = !plan.units.length && !plan.phrases.length && !plan.must.length;
    // Symbols that aren't words.
    if (isEmpty && !query.sites.length) plan.unknown = query.terms.map((term) => term.text);
    if (!plan.units.every(isUnknown) || plan.phrases.length || plan.must.length) {
      plan.units = plan.units.filter((unit) => !isUnknown(unit));
    }
    const sites = (names) => Promise.all(names.map(async (site) => (await this.files.find('\u0002' + site))));
    plan.hasSites = query.sites.length > 0;
    plan.sites = (await sites(query.sites)).filter(Boolean);
    plan.notSites = (await sites(query.notSites)).filter(Boolean);
    if (isChanged) plan.meant = written.join(' ');
    return plan;
  }

  // Returns the units of one term: independent words, corrections of unknown words if `guess` is
  // set, and pairs of characters in scripts without spaces.
  async units(termWords, ending, guess) {
    const units = [];
    const whole = termWords.filter((word) => word.kind !== 'part');
    const pairs = new Set(termWords.filter((word) => word.kind === 'pair').flatMap((word) => [word.position, word.position + 1]));
    for (const [n, word] of whole.entries()) {
      // A character in a pair adds nothing.
      if (word.kind === 'character' && pairs.has(word.position)) continue;
      const isLast = n === whole.length - 1;
      const parts = termWords.filter((part) => part.kind === 'part' && part.start >= word.start && part.end <= word.end);
      const added = await this.unit(word.text, parts, isLast ? ending : 'typed', guess);
      // The second character of a pair, if the pair before it has the first one.
      if (word.kind === 'pair' && n > 1 && whole[n - 2].kind === 'pair') added[0].rest = whole[n + 1].text;
      units.push(...added);
    }
    return units;
  }

  async unit(word, parts, ending, guess) {
    const unit = new Unit(word);
    unit.isName = parts.length > 1;
    const form = await this.files.find(word);
    const kin = form ? [form.group] : await this.files.kin(word);
    if (form) unit.add(form, 1);
    else for (const group of kin) unit.put(group.forms, WEIGHTS.stem);
    for (const synonym of Object.hasOwn(this.manifest.synonyms, word) ? this.manifest.synonyms[word] : []) {
      const alternative = await this.files.find(synonym);
      if (alternative) unit.add(alternative, WEIGHTS.synonym);
    }
    unit.pages = unit.maxPages();
    const compounds = kin.length ? kin.flatMap((group) => group.compounds) : await this.files.compoundsOf(word);
    for (const longer of compounds) {
      const compound = await this.files.find(longer);
      if (compound) unit.put(compound.group.forms, WEIGHTS.compound);
    }
    if (!unit.pages) unit.pages = unit.maxPages();
    const isKnown = unit.pages > 0;
    const isOpen = ending !== 'typed' && word.length >= (isKnown && ending === 'maybe' ? MIN_OPEN_LETTERS : 2);
    if (isOpen) {
      const weight = isKnown && ending === 'maybe' ? WEIGHTS.longer : WEIGHTS.beginning;
      for (const longer of await this.files.beginning(word)) unit.put([longer], weight);
      if (!isKnown || ending === 'open') unit.pages = unit.maxPages();
    }
    unit.isOpen = ending === 'open';
    if (unit.forms.size || !guess) return [unit];
    if (parts.length) {
      const units = [];
      for (const part of parts) units.push(...(await this.unit(part.text, [], 'typed', guess)));
      return units;
    }
    const near = await this.files.near(word);
    if (near.length) {
      unit.written = near[0].text;
      unit.isGuess = true;
      unit.add(near[0], WEIGHTS.correction);
      for (const alternative of near.slice(1)) unit.put([alternative], WEIGHTS.correction / 2);
      unit.pages = near[0].group.pages;
      return [unit];
    }
    const halves = await this.files.halves(word);
    if (!halves) return [unit];
    return halves.map((half) => {
      const unit = new Unit(half.text);
      unit.isGuess = true;
      unit.put([half], 1);
      unit.pages = half.group.pages;
      return unit;
    });
  }

  // Makes two adjacent words match the joined word, if any page has it.
  async joinNeighbours(units) {
    for (let n = 1; n < units.length; n++) {
      const form = await this.files.find(units[n - 1].written + units[n].written);
      if (!form) continue;
      units[n - 1].put([form], WEIGHTS.stem);
      units[n].put([form], WEIGHTS.stem);
    }
  }

  async phrase(termWords, term) {
    const picked = termWords.filter((word) => word.kind === 'plain' || word.kind === 'pair' ||
      (word.kind === 'character' && !termWords.some((other) => other.kind === 'pair')));
    const units = [];
    for (const word of picked) {
      const unit = new Unit(word.text);
      const form = await this.files.find(word.text);
      if (form) unit.put([form], 1);
      unit.isName = termWords.filter((part) => part.kind === 'part' && part.start >= word.start && part.end <= word.end).length > 1;
      unit.pages = unit.maxPages();
      units.push(unit);
    }
    const first = picked.length ? picked[0].position : 0;
    return { units, inTitle: term.inTitle, words: picked.map((word) => [word.text, word.position - first]) };
  }

  // Returns the pages that have most of the distinctive words, best first, or else those with any.
  rank(plan, now) {
    const pages = this.manifest.pages;
    const phrased = plan.phrases.flatMap((phrase) => phrase.units.map((unit) => Object.assign(unit, { inTitle: phrase.inTitle })));
    const must = plan.must.concat(phrased);
    const units = plan.units.concat(must);
    for (const unit of units) unit.weigh(pages);
    const distinctive = plan.units.filter((unit) => !unit.isCommon);
    const required = distinctive.length ? distinctive : plan.units;
    const hits = this.hits(units);
    const excluded = new Set();
    // A word that only the text outside the main text has excludes nothing: a footer could exclude every page.
    for (const unit of plan.not) unit.each((page, word) => (unit.inTitle ? word.inTitle : !word.onlyBeside) && excluded.add(page));
    for (const site of plan.notSites) for (const page of site.pages) excluded.add(page);
    const inSite = new Set(plan.sites.flatMap((site) => Array.from(site.pages)));
    for (const [page, until] of this.until) if (until <= now) excluded.add(page);
    if (!units.length && plan.hasSites) for (const page of inSite) hits.set(page, new Hit(page, 0));
    const candidates = [];
    const numbers = new Map(units.map((unit, n) => [unit, n]));
    for (const hit of hits.values()) {
      if (excluded.has(hit.page) || (plan.hasSites && !inSite.has(hit.page))) continue;
      if (must.some((unit) => !hit.words[numbers.get(unit)])) continue;
      hit.has = required.reduce((count, unit) => count + (hit.words[numbers.get(unit)] ? 1 : 0), 0);
      score(hit, units);
      hit.prior = this.prior(hit.page, plan.isAboutChanges);
      hit.score *= hit.prior;
      candidates.push(hit);
    }
    const least = required.length <= 2 ? required.length : Math.ceil((required.length * 3) / 5);
    const leastPart = plan.units.length <= 2 ? Infinity : WEIGHTS.least_part;
    let chosen = candidates.filter((hit) => hit.has >= least || hit.part >= leastPart);
    const withAny = required.length ? candidates.filter((hit) => hit.has > 0) : candidates;
    const isPair = required.length === 2;
    const isRelaxed = isPair && chosen.length < MIN_WITH_ALL_WORDS && chosen.length < withAny.length;
    if (isRelaxed || !chosen.length) chosen = withAny;
    const withAll = chosen.filter((hit) => hit.has === required.length).length;
    plan.lacksWords = withAll < Math.min(MIN_WITH_ALL_WORDS, chosen.length);
    // Pages with one word come after those with both, also when the first screen is sorted again.
    if (isRelaxed) {
      for (const hit of chosen) {
        if (hit.has === 2) continue;
        hit.base *= WEIGHTS.one_of_pair;
        hit.score *= WEIGHTS.one_of_pair;
      }
    }
    return chosen.sort((a, b) => b.score - a.score || a.page - b.page);
  }

  // Returns the prior of a page: how likely it answers a query, relative to an ordinary page.
  prior(page, isAboutChanges) {
    const runs = this.manifest.priors || [];
    let [from, to] = [0, runs.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (runs[middle][1] < page) from = middle + 1;
      else to = middle;
    }
    if (from === runs.length || runs[from][0] > page) return 1;
    const [, , prior, ofChanges] = runs[from];
    return (isAboutChanges ? ofChanges : prior) / 1000;
  }

  // Returns the pages that have any of the units.
  hits(units) {
    const hits = new Map();
    units.forEach((unit, n) => unit.each((page, word) => {
      if (unit.inTitle && !word.inTitle) return;
      let hit = hits.get(page);
      if (!hit) hits.set(page, (hit = new Hit(page, units.length)));
      hit.words[n] = word;
    }));
    return hits;
  }

  // Keeps the pages that have the phrases and no excluded phrase. Of the pages whose text must be
  // read to decide that, only the best are kept.
  async withPhrases(hits, plan) {
    const hasPhrase = async (hit, phrase) => {
      for (const piece of phrase.inTitle ? [] : piecesOf(hit, phrase.units)) {
        const text = await this.files.text(hit.page, piece);
        if (!containsPhrase(phrase.words, wordsOf(text))) continue;
        hit.piece = piece;
        return true;
      }
      if (!isInTitle(hit, phrase.units)) return false;
      const text = await this.files.text(hit.page, bestPiece(hit));
      return containsPhrase(phrase.words, words(text.t));
    };
    let reads = 0;
    const checked = await Promise.all(hits.map(async (hit) => {
      const hasWords = (phrase) => phrase.units.every((unit) => unit.wordsByPage().has(hit.page));
      const barring = plan.notPhrases.filter(hasWords);
      if (!plan.phrases.length && !barring.length) return hit;
      if (reads++ >= MAX_CHECKED_FOR_PHRASES) return null;
      for (const phrase of barring) if (await hasPhrase(hit, phrase)) return null;
      for (const phrase of plan.phrases) if (!(await hasPhrase(hit, phrase))) return null;
      return hit;
    }));
    return checked.filter(Boolean);
  }
}

// Returns whether a term consists of several words or parts, such as `user_agent`.
function isName(termWords) {
  return termWords.filter((word) => word.kind !== 'part').length > 1 || termWords.some((word) => word.kind === 'part');
}

// Returns whether a query is about changes: `page_prior.rs` in JavaScript.
function isAboutChanges(query) {
  const text = query.terms.map((term) => term.text).join(' ').toLowerCase().replaceAll('\u2019', "'");
  const [lists, names] = CHANGES;
  return lists.some((list) => text.includes(list.trimEnd())) || text.split(/\s+/).some((word) => names.includes(word));
}

// Returns the inverse document frequency of BM25.
function idf(count, pages) {
  return Math.log(1 + (pages - count + 0.5) / (count + 0.5));
}

// A page that matches. `words` has for each unit what the page has of it.
class Hit {
  constructor(page, units) {
    Object.assign(this, { page, score: 0, base: 0, prior: 1, passage: 1, heading: 1, part: 1, has: 0, words: new Array(units).fill(null) });
  }
}

// Equivalent words. They are in groups that are counted together, each with its weight.
class Unit {
  constructor(written) {
    this.written = written;
    this.forms = new Map();
    this.groups = [];
    this.pages = 0;
    this.isGuess = false;
  }

  // Adds a word and those with its stem.
  add(form, weight) {
    this.put([form], weight);
    if (form.group.forms.length > 1) this.put(form.group.forms, weight * WEIGHTS.stem);
  }

  put(forms, weight) {
    this.groups.push({ forms, weight });
    for (const form of forms) if (!this.forms.has(form.text)) this.forms.set(form.text, weight);
  }

  // Returns the number of pages with the most frequent word.
  maxPages() {
    let max = 0;
    for (const { forms } of this.groups) for (const form of forms) max = Math.max(max, form.group.pages);
    return max;
  }

  // Sets how distinctive the unit is among this many pages.
  weigh(pages) {
    const part = Math.max(COMMON.part, Math.min(COMMON.minPages / pages, COMMON.maxPart));
    this.isCommon = !this.isOpen && pages >= COMMON.minSite && this.pages > part * pages;
    this.idf = idf(Math.min(this.pages * WEIGHTS.frequency, pages), pages);
    this.rarity = this.idf ** WEIGHTS.rarity_power;
    // On how many pages the word as written is in the text, the title, and a heading.
    let [inTitle, inHeadings] = [0, 0];
    const form = this.groups.length ? this.groups[0].forms.find((own) => own.text === this.written) : undefined;
    const count = form ? form.pages.length : 0;
    for (let n = 0; n < count; n++) {
      inTitle += form.inTitle[n];
      if (form.headings[n]) inHeadings += 1;
    }
    this.isShared = pages >= COMMON.minSite && inTitle > pages / 2;
    this.idfs = { text: idf(count, pages), title: idf(inTitle, pages), heading: idf(inHeadings, pages) };
  }

  // Visits the pages with any of the words.
  each(visit) {
    for (const [page, word] of this.wordsByPage()) visit(page, word);
  }

  // Returns what each page has of the words. In each page, only the group with the greatest weight
  // counts. Computed once: all groups must be there.
  wordsByPage() {
    if (this.ofPages) return this.ofPages;
    const byPage = new Map();
    for (const { forms, weight } of this.groups) {
      const ofGroup = new Map();
      for (const form of forms) {
        for (let n = 0; n < form.pages.length; n++) {
          const page = form.pages[n];
          let word = ofGroup.get(page);
          if (!word) ofGroup.set(page, (word = { weight: 0, text: 0, inTitle: false, onlyBeside: true, headings: 0, pieces: 0 }));
          word.weight += weight * WEIGHT[form.weights[n]];
          word.text += weight * TEXT[form.texts[n]];
          word.inTitle = word.inTitle || form.inTitle[n] === 1;
          word.onlyBeside = word.onlyBeside && form.onlyBeside[n] === 1;
          if (!this.isName || weight >= LEAST_NAME_WEIGHT) word.headings |= form.headings[n];
          word.pieces |= form.pieces[n];
        }
      }
      for (const [page, word] of ofGroup) {
        const merged = byPage.get(page);
        if (!merged) {
          byPage.set(page, word);
          continue;
        }
        merged.weight = Math.max(merged.weight, word.weight);
        merged.text = Math.max(merged.text, word.text);
        merged.inTitle = merged.inTitle || word.inTitle;
        merged.onlyBeside = merged.onlyBeside && word.onlyBeside;
        merged.headings |= word.headings;
        merged.pieces |= word.pieces;
      }
    }
    this.ofPages = byPage;
    return byPage;
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

// Computes BM25F over the words as `bm25f.rs` does, except that places are known only by piece and
// by heading.
function score(hit, units) {
  let [sum, has, all, allIdf] = [0, 0, 0, 0];
  for (const unit of units) [all, allIdf] = [all + unit.rarity, allIdf + unit.idf];
  const alone = WEIGHTS.text_alone;
  units.forEach((unit, n) => {
    const word = hit.words[n];
    if (!word) return;
    has += unit.rarity;
    sum += (unit.rarity * word.weight) / (WEIGHTS.saturation + word.weight);
    sum += (alone.weight * all * unit.idf * word.text) / ((allIdf || 1) * (alone.saturation + word.text));
  });
  hit.part = all ? has / all : 1;
  // Returns the greatest rarity of words at the same place. `bits` has a bit for each place.
  const together = (bits) => {
    let best = 0;
    for (let place = 0; place < 31; place++) {
      let here = 0;
      units.forEach((unit, n) => {
        if (hit.words[n] && bits(hit.words[n], unit) & (1 << place)) here += unit.rarity;
      });
      if (here > best + 1e-9) {
        best = here;
        if (bits === pieces) hit.best = place;
      }
    }
    return best / (all || 1);
  };
  const pieces = (word) => word.pieces;
  const headings = (word, unit) => word.headings | (word.inTitle && !unit.isShared ? 1 << 30 : 0);
  const isNamed = units.length > 1 || units.some((unit) => unit.isName);
  hit.passage = 1;
  hit.heading = 1;
  const inPieces = together(pieces);
  if (units.length > 1) hit.passage = 1 + WEIGHTS.passage.gain * inPieces ** WEIGHTS.passage.power;
  if (isNamed) hit.heading = 1 + WEIGHTS.heading.gain * together(headings) ** WEIGHTS.heading.power;
  hit.base = sum * hit.part ** WEIGHTS.whole;
  hit.score = hit.base * hit.passage * hit.heading;
}

function bestPiece(hit) {
  return hit.piece !== undefined ? hit.piece : hit.best || 0;
}

// Returns the pieces with all words of a phrase; for a page with one piece, that piece.
function piecesOf(hit, units) {
  let pieces = -1;
  for (const unit of units) {
    const word = unit.wordsByPage().get(hit.page);
    if (word) pieces &= word.pieces;
  }
  if (pieces === -1) return [0];
  const matching = [];
  for (let piece = 0; piece < 30; piece++) if (pieces & (1 << piece)) matching.push(piece);
  return matching;
}

// Returns whether the title of a page has all words of a phrase, in any order.
function isInTitle(hit, units) {
  return units.every((unit) => {
    const word = unit.wordsByPage().get(hit.page);
    return word !== undefined && word.inTitle;
  });
}

function wordsOf(text) {
  if (!text.words) text.words = words(text.x);
  return text.words;
}

// Returns whether the words occur at these distances from each other.
function containsPhrase(phrase, textWords) {
  if (!phrase.length) return false;
  const at = new Map();
  for (const word of textWords) {
    if (!at.has(word.text)) at.set(word.text, new Set());
    at.get(word.text).add(word.position);
  }
  const places = phrase.map(([text, offset]) => [at.get(text), offset]);
  if (places.some(([textWords]) => !textWords)) return false;
  for (const start of places[0][0]) {
    if (places.every(([textWords, offset]) => textWords.has(start + offset))) return true;
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
  const hits = marks(inText, wanted);
  const around = best(hits);
  const excerpt = text.x ? stretch(text.x, around, hits) : { parts: plainParts(text.d || ''), start: 0, end: 0 };
  const titleHits = marks(inTitle, wanted);
  const chosen = sections(text, hits, wanted, new Set(titleHits.map((hit) => hit[2])));
  const leadsTo = chosen.enters ? chosen.best[0].url : text.u;
  const section = around ? sectionAt(text, excerpt.start) : undefined;
  const isInIt = !chosen.enters || (section !== undefined && section.url === leadsTo);
  return {
    url: text.u,
    leads_to: leadsTo,
    passage_url: (isInIt && passageUrl(leadsTo, text.x, hits, excerpt)) || undefined,
    title: text.t,
    score: hit.prior * (hit.base * nearness(hit, text, inTitle, inText, units) + neighbours(text, inTitle, inText, plan) + names(text, inTitle, inText, plan)),
    excerpt: excerpt.parts.map((part) => part.text).join(''),
    title_parts: tidy(cut(text.t, 0, text.t.length, titleHits)),
    excerpt_parts: excerpt.parts,
    section,
    sections: chosen.best.length ? chosen.best : undefined,
    language: text.l || null,
    modified: text.m === undefined ? null : text.m,
  };
}

// Returns how much the words of the query raise the score because they are near each other in the
// loaded piece.
function nearness(hit, text, inTitle, inText, units) {
  const all = units.reduce((sum, unit) => sum + unit.rarity, 0) || 1;
  if (units.length < 2 && !units.some((unit) => unit.isName)) return hit.passage * hit.heading;
  const places = (textWords, isHeading) => {
    const places = [];
    for (const word of textWords) {
      units.forEach((unit, n) => {
        const weight = unit.forms.get(word.text);
        if (weight === undefined || (unit.isName && weight < LEAST_NAME_WEIGHT)) return;
        if (!isHeading || !unit.isShared) places.push([word.position, n]);
      });
    }
    return places;
  };
  const gain = (best, { gain, power }) => 1 + gain * (best / all) ** power;
  let passage = 1;
  if (units.length > 1) passage = gain(bestPassage(places(inText), units, WEIGHTS.passage.words), WEIGHTS.passage);
  let best = bestPassage(places(inTitle, true), units, WEIGHTS.heading.words);
  const headings = (text.h || []).map(([, , heading]) => heading).concat(text.d || []);
  for (const heading of headings) best = Math.max(best, bestPassage(places(words(heading)), units, WEIGHTS.heading.words));
  const isLong = hit.words.some((word) => word && word.pieces !== -1);
  return passage * (isLong ? Math.max(hit.heading, gain(best, WEIGHTS.heading)) : gain(best, WEIGHTS.heading));
}

// Returns how much pairs of adjacent words of the query add to the score because they are adjacent
// in the loaded piece: BM25 of each pair, in fields of usual length.
function neighbours(text, inTitle, inText, plan) {
  const [ofText, ofTitle] = WEIGHTS.neighbours;
  const { saturation } = WEIGHTS.text_alone;
  const headings = (text.h || []).filter(([, level]) => level <= 2).map(([, level, heading]) => [words(heading), level]);
  let score = 0;
  for (let n = 1; n < plan.units.length; n++) {
    const [first, second] = [plan.units[n - 1], plan.units[n]];
    const add = (often, field, weight) => {
      const both = first.idfs[field] + second.idfs[field];
      score += (weight * both * (saturation + 1) * often) / (saturation + often);
    };
    const often = (fieldWords) => adjacent(fieldWords, first.written, second.written);
    add(often(inText), 'text', ofText);
    add(often(inTitle), 'title', ofTitle);
    for (const ofLevel of [1, 2]) {
      const ofThisLevel = headings.filter(([, level]) => level === ofLevel);
      add(ofThisLevel.reduce((sum, [heading]) => sum + often(heading), 0), 'heading', ofTitle / ofLevel);
    }
  }
  return score;
}

// Returns how much names typed without spaces (`catch-all`) add to the score because their words are
// in sequence in the loaded piece.
function names(text, inTitle, inText, plan) {
  let score = 0;
  for (const { units, words: name } of plan.names) {
    const headings = (text.h || []).map(([, , heading]) => words(heading));
    const fields = [['text', inText], ['title', inTitle], ...headings.map((heading) => ['heading', heading])];
    const rarity = (field) => units.reduce((sum, unit) => sum + (unit.idfs ? unit.idfs[field] : 0), 0);
    const matching = fields.filter(([, fieldWords]) => containsPhrase(name, fieldWords));
    score += WEIGHTS.name * Math.max(0, ...matching.map(([field]) => rarity(field)));
  }
  return score;
}

// Counts how often the second word follows the first, with at most one word in between.
function adjacent(textWords, first, second) {
  let [often, before] = [0, -9];
  for (const word of textWords) {
    if (word.text === second && word.position > before && word.position - before <= 2) often++;
    if (word.text === first) before = word.position;
  }
  return often;
}

// Returns the greatest sum of rarities of different words that are near each other.
function bestPassage(places, units, near) {
  const counts = new Array(units.length).fill(0);
  let [has, best, first] = [0, 0, 0];
  for (const [at, n] of places) {
    if (counts[n]++ === 0) has += units[n].rarity;
    while (places[first][0] + near < at) {
      const dropped = places[first++][1];
      if (--counts[dropped] === 0) has -= units[dropped].rarity;
    }
    best = Math.max(best, has);
  }
  return best;
}

// Returns the places of wanted words: start, end, unit. A part counts only if the whole word is not
// wanted.
function marks(textWords, wanted) {
  const hits = [];
  for (const word of textWords) {
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
  let bestRange = null;
  let last = 0;
  for (let first = 0; first < hits.length; first++) {
    last = Math.max(last, first);
    while (last + 1 < hits.length && hits[last + 1][1] - hits[first][0] <= EXCERPT * 0.75) last++;
    const within = hits.slice(first, last + 1);
    const units = new Set(within.map((hit) => hit[2])).size;
    const worth = units * 100 + Math.min(within.length, 6);
    if (!bestRange || worth > bestRange.worth) bestRange = { worth, range: [hits[first][0], hits[last][1]] };
  }
  return bestRange && bestRange.range;
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
  const tidied = [];
  for (const part of parts) {
    let line = '';
    for (const c of part.text.replace(/[\u200E\u200F\u202A-\u202E\u2066-\u2069]/g, '')) {
      const isSpace = /[\s\p{Cc}]/u.test(c);
      if (!(isSpace && afterSpace)) line += isSpace ? ' ' : c;
      afterSpace = isSpace;
    }
    if (line) tidied.push({ text: line, match: part.match });
  }
  return tidied;
}
