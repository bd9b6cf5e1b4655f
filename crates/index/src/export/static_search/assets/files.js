// The files of a bundle, as written by `word_files.rs` and `page_texts.rs`.

const MAX_BEGINNINGS = 48;
const MAX_COMPOUNDS = 12;
// The length of the ends by which compounds are listed: MIN_COMPOUND_END of `compound_candidates.rs`.
const END_LETTERS = 5;
const TEXTS_KEPT = 120;
// Letters that join the first part of a compound to the second.
const LINKS = ['', 's', 'es', 'n', 'en', 'er'];

async function unpacked(bytes) {
  // A server may have decompressed the file already.
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Decodes a file of words, as written by `word_files.rs`.
function decode(bytes) {
  let at = 0;
  const number = () => {
    let value = 0;
    let shift = 1;
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('a file of words ends in the middle');
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
      shift *= 128;
    }
  };
  const utf8 = new TextDecoder();
  const forms = new Map();
  let before = new Uint8Array(0);
  while (at < bytes.length) {
    const group = { pages: number(), stem: '', compounds: [], forms: [] };
    const sameAsFirst = number();
    const ending = number();
    const endOfStem = bytes.subarray(at, at + ending);
    at += ending;
    for (let remaining = number(); remaining > 0; remaining--) {
      const length = number();
      group.compounds.push(utf8.decode(bytes.subarray(at, at + length)));
      at += length;
    }
    for (let remaining = number(); remaining > 0; remaining--) {
      const same = number();
      const more = number();
      const name = new Uint8Array(same + more);
      name.set(before.subarray(0, same));
      name.set(bytes.subarray(at, at + more), same);
      at += more;
      before = name;
      const count = number();
      const form = {
        text: utf8.decode(name), group,
        pages: new Uint32Array(count), weights: null, texts: null,
        headings: new Uint16Array(count),
        inTitle: new Uint8Array(count), onlyBeside: new Uint8Array(count), pieces: new Int32Array(count).fill(-1),
      };
      let page = 0;
      for (let n = 0; n < count; n++) {
        const value = number();
        page += Math.floor(value / 16);
        form.pages[n] = page;
        form.inTitle[n] = value & 1;
        if (value & 2) form.pieces[n] = 0;
        form.headings[n] = value & 4;
        form.onlyBeside[n] = (value >> 3) & 1;
      }
      form.weights = bytes.subarray(at, at + count);
      form.texts = bytes.subarray(at + count, at + 2 * count);
      at += 2 * count;
      for (let n = 0; n < count; n++) if (form.pieces[n] === 0) form.pieces[n] = number();
      for (let n = 0; n < count; n++) if (form.headings[n]) form.headings[n] = number();
      if (!group.forms.length) {
        const stem = new Uint8Array(sameAsFirst + ending);
        stem.set(name.subarray(0, sameAsFirst));
        stem.set(endOfStem, sameAsFirst);
        group.stem = utf8.decode(stem);
      }
      group.forms.push(form);
      forms.set(form.text, form);
    }
  }
  return forms;
}

const WEIGHT = Float64Array.from({ length: 256 }, (_, n) => 0.02 * (2 ** (n / 16) - 1));
const TEXT = Float64Array.from({ length: 64 }, (_, n) => (WEIGHTS.text_alone.saturation * n) / (64 - n));

class Files {
  constructor(manifest, load) {
    this.manifest = manifest;
    this.load = load;
    this.shards = new Map();
    this.texts = new Map();
  }

  // Returns the number of the file that contains a word.
  shardOf(word) {
    const begins = this.manifest.words;
    let [low, high] = [0, begins.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begins[middle] <= word) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  async read(name) {
    return unpacked(await this.load(`${this.manifest.data}/${name}`));
  }

  shard(n) {
    return this.kept(this.shards, n, async () => decode(await this.read(`words/${n}`)));
  }

  text(page, piece) {
    if (this.texts.size > TEXTS_KEPT) this.texts.delete(this.texts.keys().next().value);
    const name = `${page}-${piece}`;
    return this.kept(this.texts, name, async () => JSON.parse(new TextDecoder().decode(await this.read(`texts/${name}`))));
  }

  kept(cache, key, make) {
    let value = cache.get(key);
    if (!value) {
      value = make();
      cache.set(key, value);
      // Retry after a failure.
      value.catch(() => cache.delete(key));
    }
    return value;
  }

  async find(word) {
    return (await this.shard(this.shardOf(word))).get(word);
  }

  // Returns the groups of words that have the same stem as a word that is on no page. Words mostly
  // begin with their stem, so only the files around the word and the stem are read.
  async kin(word) {
    const groups = [];
    for (const stem of stemsOf(word)) {
      const shards = new Set([word, stem, stem + '\uFFFF'].map((text) => this.shardOf(text)));
      let match = null;
      for (const n of shards) {
        for (const form of (await this.shard(n)).values()) if (form.group.stem === stem) match = form.group;
        if (match) break;
      }
      if (match) groups.push(match);
    }
    return groups;
  }

  // Returns the words with this prefix, those with the most pages first.
  async beginning(start) {
    const first = this.shardOf(start);
    const last = Math.min(this.shardOf(start + '\uFFFF'), first + 3);
    const forms = [];
    for (let n = first; n <= last; n++) {
      for (const form of (await this.shard(n)).values()) {
        if (form.text !== start && form.text.startsWith(start)) forms.push(form);
      }
    }
    forms.sort((a, b) => b.pages.length - a.pages.length || (a.text < b.text ? -1 : 1));
    return forms.slice(0, MAX_BEGINNINGS);
  }

  // Returns the compounds that end in a word that no page has, those on the most pages first.
  async compoundsOf(word) {
    const end = word.length >= END_LETTERS && (await this.find('\u0003' + word.slice(-END_LETTERS)));
    const words = end ? end.group.compounds : [];
    return words.filter((longer) => longer.length > word.length + 1 && longer.endsWith(word)).slice(0, MAX_COMPOUNDS);
  }

  // Returns similar words with the same first letter, likeliest first.
  async near(word) {
    const letters = Array.from(word);
    const maxChanges = letters.length < 4 ? 0 : letters.length < 6 ? 1 : 2;
    if (!maxChanges) return [];
    const bones = skeleton(word);
    const own = this.shardOf(word);
    const begins = this.manifest.words;
    const candidates = [];
    for (const n of [own, own - 1, own + 1, own - 2, own + 2]) {
      const isBefore = n < 0 || (begins[n + 1] !== undefined && begins[n + 1] <= word[0]);
      if (isBefore || n >= begins.length || begins[n] > word[0] + '\uFFFF') continue;
      for (const form of (await this.shard(n)).values()) {
        if (form.text[0] !== word[0]) continue;
        const changes = distance(letters, form.text, maxChanges);
        if (changes > maxChanges) continue;
        const isAlike = changes < 2 || skeleton(form.text) === bones;
        if (isAlike || letters.length >= 8) candidates.push({ form, changes, isAlike });
      }
      if (candidates.some((near) => near.changes === 1)) break;
    }
    candidates.sort((a, b) => a.changes - b.changes || b.isAlike - a.isAlike || b.form.group.pages - a.form.group.pages || (a.form.text < b.form.text ? -1 : 1));
    const least = candidates.length ? candidates[0].changes : 0;
    const unlike = candidates.filter((near) => near.changes === least).map((near) => near.form);
    return unlike.filter((form, n) => unlike.findIndex((other) => other.text === form.text) === n).slice(0, 3);
  }

  // Splits a word into two: it may lack a space, or be a compound.
  async halves(word) {
    let best = null;
    const links = this.manifest.compounds ? LINKS : [''];
    for (let cut = word.length - 2; cut >= 2; cut--) {
      const first = (await this.shard(this.shardOf(word))).get(word.slice(0, cut)) ||
        (cut > 3 ? await this.find(word.slice(0, cut)) : undefined);
      if (!first) continue;
      for (const link of links) {
        const end = word.slice(cut + link.length);
        if (end.length < 2 || !word.startsWith(link, cut)) continue;
        const second = await this.find(end);
        if (!second) continue;
        const worth = Math.min(first.pages.length, second.pages.length) * Math.min(cut, end.length);
        if (!best || worth > best.worth) best = { worth, forms: [first, second] };
      }
    }
    return best && best.forms;
  }
}

// The first letter and the consonants of a word, with double letters as one: most misspellings
// leave them alone. Same as in `lexicon.rs`.
function skeleton(word) {
  const single = Array.from(word).filter((letter, n, all) => letter !== all[n - 1]);
  return single.filter((letter, n) => n === 0 || !'aeiouy'.includes(letter)).join('');
}

// Counts letters added, removed, replaced or swapped; stops beyond `most`.
function distance(a, text, most) {
  const b = Array.from(text);
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let older = null;
  let row = b.map((_, n) => n + 1);
  row.unshift(0);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      let value = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + change);
      if (older && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) value = Math.min(value, older[j - 2] + 1);
      next.push(value);
    }
    if (Math.min(...next) > most) return most + 1;
    [older, row] = [row, next];
  }
  return row[b.length];
}
