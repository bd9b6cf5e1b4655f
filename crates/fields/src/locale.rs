//! The conventions of locales for numbers and dates.

/// The conventions of a locale for numbers and dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locale {
    /// The characters that may separate groups of digits.
    pub(crate) groups: &'static str,
    /// The character before the fraction of a number.
    pub(crate) decimal: char,
    /// Whether groups may have two digits, as in India.
    pub(crate) has_short_groups: bool,
    /// Whether the month comes before the day in a date such as `3/8/2026`.
    pub(crate) is_month_first: bool,
    /// The names of the twelve months in lower case, or prefixes of them. `|` separates alternative
    /// names. Empty names if the locale accepts only English ones.
    pub(crate) months: [&'static str; 12],
}

/// The spaces that group digits by ISO 80000-1 and by CLDR.
const SPACES: &str = " \u{a0}\u{202f}\u{2009}";
/// The apostrophes that group digits in Switzerland, and [`SPACES`].
const APOSTROPHES_OR_SPACES: &str = "'\u{2019} \u{a0}\u{202f}\u{2009}";
/// The dot and [`SPACES`]. National norms such as DIN 5008 group digits by spaces.
const DOT_OR_SPACES: &str = ". \u{a0}\u{202f}\u{2009}";
const NO_MONTHS: [&str; 12] = [""; 12];

/// The conventions for fields without a locale, e.g. numbers such as `1,207.5`.
pub(crate) const NEUTRAL: Locale = Locale {
    groups: ",",
    decimal: '.',
    has_short_groups: false,
    is_month_first: false,
    months: NO_MONTHS,
};

/// A number format: the names of the locales that use it, the characters that separate groups of
/// digits, and the decimal separator.
type NumberFormat = (&'static [&'static str], &'static str, char);

/// The number formats of all supported locales. A locale that is not listed, such as `de-BE`, has
/// the format of its language.
const NUMBER_FORMATS: &[NumberFormat] = &[
    (&["de-ch", "de-li", "it-ch"], APOSTROPHES_OR_SPACES, '.'),
    (&["es-mx", "es-us", "es-pr"], ",", '.'),
    (&["en", "zh", "ja", "ko", "th", "he"], ",", '.'),
    (
        &[
            "de", "de-at", "nl", "es", "it", "id", "tr", "da", "el", "sl", "hr", "sr", "ro", "vi",
            "ca", "pt",
        ],
        DOT_OR_SPACES,
        ',',
    ),
    (
        &[
            "fr", "ru", "uk", "pl", "cs", "sk", "sv", "nb", "nn", "no", "fi", "hu", "bg", "lt",
            "lv", "et",
        ],
        SPACES,
        ',',
    ),
];

const MONTHS: &[(&str, [&str; 12])] = &[
    (
        "de",
        [
            "januar|jänner",
            "februar",
            "märz",
            "april",
            "mai",
            "juni",
            "juli",
            "august",
            "september",
            "oktober",
            "november",
            "dezember",
        ],
    ),
    (
        "fr",
        [
            "janvier",
            "février",
            "mars",
            "avril",
            "mai",
            "juin",
            "juillet",
            "août",
            "septembre",
            "octobre",
            "novembre",
            "décembre",
        ],
    ),
    (
        "es",
        [
            "enero",
            "febrero",
            "marzo",
            "abril",
            "mayo",
            "junio",
            "julio",
            "agosto",
            "septiembre|setiembre",
            "octubre",
            "noviembre",
            "diciembre",
        ],
    ),
    (
        "it",
        [
            "gennaio",
            "febbraio",
            "marzo",
            "aprile",
            "maggio",
            "giugno",
            "luglio",
            "agosto",
            "settembre",
            "ottobre",
            "novembre",
            "dicembre",
        ],
    ),
    (
        "nl",
        [
            "januari",
            "februari",
            "maart",
            "april",
            "mei",
            "juni",
            "juli",
            "augustus",
            "september",
            "oktober",
            "november",
            "december",
        ],
    ),
    (
        "pt",
        [
            "janeiro",
            "fevereiro",
            "março",
            "abril",
            "maio",
            "junho",
            "julho",
            "agosto",
            "setembro",
            "outubro",
            "novembro",
            "dezembro",
        ],
    ),
];

impl Locale {
    /// Returns the conventions of a locale, such as `de` or `de-CH`. `None` if the language is
    /// unknown.
    pub(crate) fn find(name: &str) -> Option<Locale> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        let language = name.split('-').next().unwrap_or_default();
        let by_name = |wanted: &str| {
            let mut rows = NUMBER_FORMATS.iter();
            rows.find(|(names, ..)| names.contains(&wanted))
        };
        let (_, groups, decimal) = by_name(&name).or_else(|| by_name(language))?;
        let months = MONTHS.iter().find(|(of, _)| *of == language);
        Some(Locale {
            groups,
            decimal: *decimal,
            has_short_groups: name == "en-in",
            is_month_first: matches!(name.as_str(), "en" | "en-us" | "en-ph"),
            months: months.map_or(NO_MONTHS, |(_, months)| *months),
        })
    }

    /// Returns the names of the supported locales as a list for messages.
    pub(crate) fn languages() -> String {
        let languages = NUMBER_FORMATS.iter().flat_map(|(names, ..)| *names);
        let mut languages: Vec<_> = languages.copied().collect();
        languages.sort_unstable();
        languages.join(", ")
    }
}
