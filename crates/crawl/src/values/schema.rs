//! JSON Schemas of the values in settings files.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    AddressOverride, ByteSize, CountSetting, DayHours, DurationSetting, FilePath,
    FrontierConnectionString, HostListEntry, IndexedDocumentTypes, LanguagePattern, ListenAddress,
    MediaTypePattern, NameServerAddress, NonNegativeNumber, OptionalLimit, RepeatInterval,
    SurtPrefixSetting, Switch,
};

/// A type of values in settings files, with its JSON Schema.
pub(crate) trait JsonSchema {
    /// Returns a schema that accepts every value that can be parsed, and as few others as possible.
    /// Rules that a schema can't express are checked when the settings file is read.
    fn schema() -> Value;
}

/// Returns a schema that accepts the words of an enum.
pub(crate) fn words<T: ValueEnum>() -> Value {
    let values = T::value_variants().iter().filter_map(T::to_possible_value);
    let names: Vec<_> = values.map(|value| value.get_name().to_owned()).collect();
    json!({ "enum": names })
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

impl JsonSchema for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl JsonSchema for u8 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u8::MAX })
    }
}

impl JsonSchema for u32 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

impl<T: JsonSchema> JsonSchema for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: JsonSchema> JsonSchema for OptionalLimit<T> {
    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "const": "unlimited" }] })
    }
}

impl JsonSchema for RepeatInterval {
    fn schema() -> Value {
        json!({ "anyOf": [DurationSetting::schema(), { "const": "never" }] })
    }
}

impl JsonSchema for DurationSetting {
    fn schema() -> Value {
        let written = text(r"^(0|([0-9]+([.][0-9]+)?(us|ms|s|m|h|d))+)$");
        json!({ "anyOf": [written, { "const": 0 }] })
    }
}

impl JsonSchema for ByteSize {
    fn schema() -> Value {
        let written = text(r"^[0-9]+([.][0-9]+)?\s*([kKmMgGtT][iI]?[bB]|[bB])?\s*$");
        json!({ "anyOf": [written, { "type": "number", "minimum": 0 }] })
    }
}

impl JsonSchema for CountSetting {
    fn schema() -> Value {
        let number = json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX });
        json!({ "anyOf": [number, text("^[+]?[0-9]+$")] })
    }
}

impl JsonSchema for NonNegativeNumber {
    fn schema() -> Value {
        let number = json!({ "type": "number", "minimum": 0 });
        json!({ "anyOf": [number, text("^[+]?[0-9.]+([eE][+-]?[0-9]+)?$")] })
    }
}

impl JsonSchema for Switch {
    fn schema() -> Value {
        json!({ "enum": ["on", "off", true, false, "true", "false"] })
    }
}

impl JsonSchema for FrontierConnectionString {
    fn schema() -> Value {
        text("^postgres(ql)?://")
    }
}

impl JsonSchema for FilePath {
    fn schema() -> Value {
        String::schema()
    }
}

impl JsonSchema for ListenAddress {
    fn schema() -> Value {
        String::schema()
    }
}

impl JsonSchema for HostListEntry {
    fn schema() -> Value {
        text(r"^(@.+|\[[^\]]+\](:[0-9]+)?|[^@/?#\\*\s:\[\]]+(:[0-9]+)?)$")
    }
}

impl JsonSchema for NameServerAddress {
    fn schema() -> Value {
        text(r"^([0-9.]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$")
    }
}

impl JsonSchema for MediaTypePattern {
    fn schema() -> Value {
        text(r"^([*]/[*]|[^ /*;]+/([*]|[^ /*;]+))$")
    }
}

impl JsonSchema for LanguagePattern {
    fn schema() -> Value {
        text(r"^([*]|[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*)$")
    }
}

impl JsonSchema for SurtPrefixSetting {
    fn schema() -> Value {
        text("[,)]")
    }
}

impl JsonSchema for AddressOverride {
    fn schema() -> Value {
        text("^[^:]+:[0-9]+:.+$")
    }
}

impl JsonSchema for IndexedDocumentTypes {
    fn schema() -> Value {
        text(
            r"^\s*(html|text|markdown|docx|pdf|all)(\s*,\s*(html|text|markdown|docx|pdf|all))*\s*$",
        )
    }
}

impl JsonSchema for DayHours {
    fn schema() -> Value {
        text(r"^\s*[0-2][0-9]:[0-5][0-9]\s*-\s*[0-2][0-9]:[0-5][0-9]\s*$")
    }
}
