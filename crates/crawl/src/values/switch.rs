//! Switches with the values `on` and `off`.

use std::fmt;
use std::str::FromStr;

use super::ValueParseError;
use super::text_serde::as_text;

/// A setting that is `on` or `off`. TOML also allows `true` and `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    #[default]
    Off,
}

as_text!(Switch);

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self == Switch::On
    }
}

impl FromStr for Switch {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<Switch, ValueParseError> {
        match text {
            "on" | "true" => Ok(Switch::On),
            "off" | "false" => Ok(Switch::Off),
            _ => Err(ValueParseError::new(format!(
                "`{text}` is neither `on` nor `off`"
            ))),
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}
