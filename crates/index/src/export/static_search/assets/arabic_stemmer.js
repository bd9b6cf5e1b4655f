// `words/arabic_stem.rs`.
function ArabicStemmer() {
  this.stemWord = (word) => {
    let stem = word.replace(/^(?:[\u0648\u0628\u0643\u0641]?\u0627\u0644|\u0644\u0644)(?=..)/u, '');
    for (const suffix of ['\u0647\u0627', '\u0627\u0646', '\u0627\u062A', '\u0648\u0646', '\u064A\u0646',
      '\u064A\u0647', '\u064A\u0629', '\u0647', '\u0629', '\u064A']) {
      if (stem.endsWith(suffix) && stem.length >= suffix.length + 2) stem = stem.slice(0, -suffix.length);
    }
    return stem;
  };
}
