//! The stemmers in `search.js`, for the languages of the pages: Snowball's own scripts, except for
//! Arabic.
//!
//! `assets/stemmers/` has the scripts of Snowball 3.0.1, minified, as Sphinx 9.0.4 ships them. The
//! index takes newer rules from the crate `frostem`. If the two differ, the search in the browser
//! misses some forms of a word.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::words::Stemmer;

/// Maximum number of stemmers in a bundle, those of the languages that most pages have.
/// Beyond the limit: words of further languages are found only in forms that a page has.
const MAX_STEMMERS: usize = 5;
/// A stemmer is in the bundle only if at least one in this many pages has its language.
const PAGES_PER_STEMMER: u64 = 50;

const LICENSE: &str = include_str!("assets/stemmers/LICENSE");
const BASE: &str = include_str!("assets/stemmers/base.js");

macro_rules! scripts {
    ($($name:literal)*) => {
        &[
            ("arabic", include_str!("assets/arabic_stemmer.js")),
            $(($name, include_str!(concat!("assets/stemmers/", $name, ".js")))),*
        ]
    };
}

/// Names of algorithms, with their scripts.
const SCRIPTS: &[(&str, &str)] = scripts!(
    "armenian" "basque" "catalan" "danish" "dutch" "english" "esperanto" "estonian"
    "finnish" "french" "german" "greek" "hindi" "hungarian" "indonesian" "irish" "italian"
    "lithuanian" "nepali" "norwegian" "portuguese" "romanian" "russian" "serbian" "spanish"
    "swedish" "tamil" "turkish"
);

/// Counts the pages by the stemmers of their languages.
#[derive(Debug, Default)]
pub(super) struct StemmerCounts {
    pages: BTreeMap<&'static str, u64>,
}

impl StemmerCounts {
    pub(super) fn add(&mut self, stemmer: &Stemmer) {
        if let Some(name) = stemmer.algorithm() {
            *self.pages.entry(name).or_default() += 1;
        }
    }

    /// Returns a script that defines `STEMMERS`: an array of the stemmers of the most common
    /// languages, most common first.
    pub(super) fn script(&self) -> String {
        let total: u64 = self.pages.values().sum();
        let mut named: Vec<(u64, &str, &str)> = SCRIPTS
            .iter()
            .filter_map(|(name, script)| Some((*self.pages.get(name)?, *name, *script)))
            .filter(|(pages, ..)| pages * PAGES_PER_STEMMER >= total)
            .collect();
        named.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        named.truncate(MAX_STEMMERS);
        if named.is_empty() {
            return "const STEMMERS = [];\n".to_owned();
        }
        let mut made = format!("/*!\nSnowball stemmers\n\n{LICENSE}*/\n");
        made.push_str("const STEMMERS = (function () {\nlet BaseStemmer;\n");
        made.push_str(BASE);
        let mut classes = Vec::new();
        for (_, name, script) in named {
            made.push_str(script);
            let (first, rest) = name.split_at(1);
            classes.push(format!("new {}{rest}Stemmer()", first.to_uppercase()));
        }
        let _ = writeln!(made, "return [{}];\n}})();", classes.join(", "));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_STEMMERS, SCRIPTS, StemmerCounts};
    use crate::words::Stemmer;

    #[test]
    fn stemmers_of_common_languages_are_included() {
        let script = |languages: &[(&str, usize)]| {
            let mut counts = StemmerCounts::default();
            for (language, pages) in languages {
                for _ in 0..*pages {
                    counts.add(&Stemmer::of(Some(language)));
                }
            }
            let script = counts.script();
            let line = script.lines().rev().nth(1).unwrap_or_default();
            line.trim_start_matches("return ").to_owned()
        };
        assert_eq!(script(&[("ja", 3)]), "");
        assert_eq!(
            script(&[("en", 97), ("de", 2), ("fr", 1)]),
            "[new EnglishStemmer(), new GermanStemmer()];"
        );
        let many = ["en", "de", "fr", "it", "es", "pt"].map(|language| (language, 1));
        assert_eq!(script(&many).matches("new").count(), MAX_STEMMERS);
    }

    #[test]
    fn each_script_has_the_name_of_an_algorithm() {
        for (name, _) in SCRIPTS {
            let stemmer = Stemmer::of(Some(name));
            assert_eq!(stemmer.algorithm(), Some(*name));
        }
    }
}
