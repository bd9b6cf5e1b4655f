//! Serialization of values in settings files: as strings, or plain numbers and booleans with the
//! same meaning.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};

use super::ValueParseError;

/// Serializes a value by `Display` and deserializes it by `FromStr`.
macro_rules! as_text {
    ($value:ident) => {
        impl serde::Serialize for $value {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        $crate::values::text_serde::read_from_text!($value);
    };
}
/// Like `as_text`, but deserializes only strings, so that a number isn't mistaken for a name.
macro_rules! as_string {
    ($value:ident) => {
        impl serde::Serialize for $value {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $value {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$value, D::Error> {
                $crate::values::text_serde::read_string(deserializer)
            }
        }
    };
}
/// Deserializes a value by `FromStr`.
macro_rules! read_from_text {
    ($value:ident) => {
        impl<'de> serde::Deserialize<'de> for $value {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$value, D::Error> {
                $crate::values::text_serde::read(deserializer)
            }
        }
    };
}
/// Deserializes a value from any TOML scalar, by its text.
pub(super) fn read<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = ValueParseError>,
    D: Deserializer<'de>,
{
    struct ScalarVisitor<T>(std::marker::PhantomData<T>);

    impl<T: FromStr<Err = ValueParseError>> Visitor<'_> for ScalarVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string, a number or a boolean")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_bool<E: de::Error>(self, yes: bool) -> Result<T, E> {
            self.visit_str(if yes { "true" } else { "false" })
        }
    }

    deserializer.deserialize_any(ScalarVisitor(std::marker::PhantomData))
}

/// Deserializes a value from a string only.
pub(super) fn read_string<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = ValueParseError>,
    D: Deserializer<'de>,
{
    struct StringVisitor<T>(std::marker::PhantomData<T>);

    impl<T: FromStr<Err = ValueParseError>> Visitor<'_> for StringVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        // Parse inside the visitor, so that an error has the position of this value within a list.
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(StringVisitor(std::marker::PhantomData))
}

pub(super) use {as_string, as_text, read_from_text};
