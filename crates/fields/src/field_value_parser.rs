//! Converts the text of a field to a value of the field's type.

use serde_json::{Number, Value};
use url::Url;

use crate::config::FieldType;
use crate::dates::read_day;
use crate::locale::{Locale, NEUTRAL};
use crate::number::read_number;

/// Maximum characters of a text to quote in an error.
const MAX_QUOTED: usize = 80;

/// The text of a field on a page, and how numbers are written in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    /// True for a number of JSON, which is written the same in all locales (RFC 8259 section 6).
    pub(crate) is_json_number: bool,
}

impl From<String> for SourceText {
    fn from(text: String) -> SourceText {
        SourceText {
            text,
            is_json_number: false,
        }
    }
}

/// The type of a field and the locale for parsing its values.
#[derive(Clone, Debug)]
pub(crate) struct FieldValueParser {
    pub(crate) kind: FieldType,
    pub(crate) locale: Option<Locale>,
    /// The name of the locale as written in the rule.
    pub(crate) locale_name: Option<String>,
}

impl FieldValueParser {
    /// Converts a text to a JSON value of this type. If the type is a URL, a relative URL is
    /// resolved against `base`.
    ///
    /// # Errors
    /// If the text can't be converted, returns a message that quotes the text.
    pub(crate) fn value(&self, source: &SourceText, base: Option<&Url>) -> Result<Value, String> {
        let text = source.text.as_str();
        match self.kind {
            FieldType::Text => Ok(Value::String(text.to_owned())),
            FieldType::Number => {
                let number = match source.is_json_number {
                    true => text.parse().ok().filter(|number: &f64| number.is_finite()),
                    false => read_number(text, &self.locale.unwrap_or(NEUTRAL)),
                };
                number
                    .map(number_value)
                    .ok_or_else(|| self.refusal("a number", text))
            }
            FieldType::Date => {
                let day = read_day(text, self.locale.as_ref());
                day.map(Value::String)
                    .ok_or_else(|| self.refusal("a date", text))
            }
            FieldType::Url => {
                let parsed = Url::options().base_url(base).parse(text);
                let url = parsed.ok().filter(|url| url.scheme() != "javascript");
                let url = url.map(|url| Value::String(url.into()));
                url.ok_or_else(|| self.refusal("a URL", text))
            }
            FieldType::Bool => {
                let is_no = ["false", "no", "off", "0"];
                Ok(Value::Bool(
                    !is_no.iter().any(|no| text.eq_ignore_ascii_case(no)),
                ))
            }
        }
    }

    fn refusal(&self, what: &str, text: &str) -> String {
        let quoted: String = text.chars().take(MAX_QUOTED).collect();
        let locale = match &self.locale_name {
            Some(name) if self.kind != FieldType::Url => format!(" in locale {name}"),
            _ => String::new(),
        };
        format!("not {what}{locale}: {quoted:?}")
    }
}

/// Converts a number to JSON. A whole number is written without a fraction.
fn number_value(number: f64) -> Value {
    const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < MAX_WHOLE {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
