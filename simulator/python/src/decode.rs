// SPDX-License-Identifier: GPL-2.0-or-later
//! Decode settings from Python objects: a serde deserializer for any type.
//!
//! A struct is an object of the class with its name, a field the attribute with its name. A variant
//! is chosen by the object's class, or by a string; None is no value. A field that the class does
//! not have is a struct whose fields the object has itself.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::law;
use crate::located::Located;

/// Decodes an object.
pub fn decode<'de, T: Deserialize<'de>>(value: &Located<'_>) -> PyResult<T> {
    T::deserialize(value.clone()).map_err(|wrong| wrong.at(value))
}

/// An error, until its place is known.
#[derive(Debug)]
pub enum DecodeError {
    /// A complete error.
    Told(PyErr),
    /// A sentence.
    Sentence(String),
    /// The object is not what was expected.
    Wanted(String),
}

impl DecodeError {
    fn at(self, value: &Located<'_>) -> PyErr {
        match self {
            DecodeError::Told(error) => error,
            DecodeError::Sentence(sentence) => value.error(&sentence),
            DecodeError::Wanted(wanted) => value.is_not(&wanted),
        }
    }
}

impl From<PyErr> for DecodeError {
    fn from(error: PyErr) -> Self {
        DecodeError::Told(error)
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Told(error) => error.fmt(f),
            DecodeError::Sentence(sentence) => f.write_str(sentence),
            DecodeError::Wanted(wanted) => write!(f, "it is not {wanted}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Error for DecodeError {
    fn custom<T: std::fmt::Display>(sentence: T) -> Self {
        DecodeError::Sentence(sentence.to_string())
    }

    fn invalid_type(_: Unexpected, wanted: &dyn Expected) -> Self {
        DecodeError::Wanted(wanted.to_string())
    }

    fn invalid_value(_: Unexpected, wanted: &dyn Expected) -> Self {
        DecodeError::Wanted(wanted.to_string())
    }

    fn invalid_length(_: usize, wanted: &dyn Expected) -> Self {
        DecodeError::Wanted(wanted.to_string())
    }
}

/// Deserializes, and adds the value's place to errors.
fn at<'de, T: DeserializeSeed<'de>>(seed: T, value: Located<'_>) -> Result<T::Value, DecodeError> {
    let place = value.clone();
    seed.deserialize(value).map_err(|wrong| DecodeError::Told(wrong.at(&place)))
}

/// `a Cable`, or `an Exchange`.
fn with_article(name: &str) -> String {
    let article = if name.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" };
    format!("{article} {name}")
}

/// Whether a variant is a string, not a class.
fn is_text(variant: &str) -> bool {
    variant.starts_with(|first: char| first.is_ascii_lowercase())
}

/// `'delay' or 'drop'`, or `a PerFlow, PerHost, Aequitas or None`.
fn one_of(variants: &[&str]) -> String {
    let (texts, classes): (Vec<&str>, Vec<&str>) =
        variants.iter().filter(|&&name| name != "None").partition(|name| is_text(name));
    let mut names: Vec<String> = texts.iter().map(|name| format!("'{name}'")).collect();
    names.extend(classes.first().map(|name| with_article(name)));
    names.extend(classes.iter().skip(1).map(|&name| name.to_owned()));
    names.extend(variants.contains(&"None").then(|| "None".to_owned()));
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        only => only.unwrap_or_default(),
    }
}

impl<'de> Deserializer<'de> for Located<'_> {
    type Error = DecodeError;

    /// Settings always say what they expect.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        Err(Error::invalid_type(Unexpected::Other("an object"), &visitor))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_bool(self.flag()?)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_u8(self.count()?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_u16(self.count()?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_u32(self.count()?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_u64(self.count()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_f64(self.real()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_string(self.text()?)
    }

    /// A law of the user's own.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if let Ok(bytes) = self.object().cast::<PyBytes>() {
            return visitor.visit_bytes(bytes.as_bytes());
        }
        if !self.object().is_callable() {
            return Err(DecodeError::Wanted(
                "a class of laws or the bytes of WebAssembly (Custom.read reads a file)".to_owned(),
            ));
        }
        visitor.visit_u64(law::code(self.object()).number())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.given() {
            Some(value) => visitor.visit_some(value),
            None => visitor.visit_none(),
        }
    }

    /// The name is a unit's.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self.of_unit(name))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(Items(self.items()?.into_iter()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let items = self.items()?;
        if items.len() != len {
            return Err(DecodeError::Sentence(format!("it has {} values, not {len}", items.len())));
        }
        visitor.visit_seq(Items(items.into_iter()))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let items = self.items()?;
        if items.len() != len {
            return Err(Error::invalid_length(items.len(), &visitor));
        }
        visitor.visit_seq(Items(items.into_iter()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if !self.is_inline() && self.class()? != name {
            return Err(DecodeError::Wanted(with_article(name)));
        }
        visitor.visit_map(Attributes::of(self, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let value = if name == "Limit" { self.limit()? } else { self };
        let class = value.class()?;
        let chosen = match class.as_str() {
            "str" if is_text(variants[0]) => value.text()?,
            // Python has no class for it.
            _ if name == "Span" && class != "Exponential" => "Fixed".to_owned(),
            "NoneType" => "None".to_owned(),
            _ if name == "Limit" => value.limit_unit()?.to_owned(),
            _ => class,
        };
        match variants.iter().find(|&&variant| variant == chosen) {
            Some(variant) => visitor.visit_enum(Variant { name: variant, value }),
            None => Err(DecodeError::Wanted(one_of(variants))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char byte_buf unit unit_struct map identifier ignored_any
    }
}

struct Items<'py>(std::vec::IntoIter<Located<'py>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(value) = self.0.next() else { return Ok(None) };
        value.object().py().check_signals()?;
        at(seed, value).map(Some)
    }
}

struct Attributes<'py> {
    value: Located<'py>,
    fields: std::slice::Iter<'static, &'static str>,
    /// The field whose value is next.
    field: &'static str,
}

impl<'py> Attributes<'py> {
    fn of(value: Located<'py>, fields: &'static [&'static str]) -> Self {
        Attributes { value: value.with_full_packets(), fields: fields.iter(), field: "" }
    }
}

impl<'de> MapAccess<'de> for Attributes<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.field = field;
        let key: StrDeserializer<'_, DecodeError> = field.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        at(seed, self.value.field(self.field)?)
    }
}

struct Variant<'py> {
    name: &'static str,
    value: Located<'py>,
}

impl<'de, 'py> EnumAccess<'de> for Variant<'py> {
    type Error = DecodeError;
    type Variant = Located<'py>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Located<'py>), DecodeError> {
        let name: StrDeserializer<'_, DecodeError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.value))
    }
}

impl<'de> VariantAccess<'de> for Located<'_> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        at(seed, self.inline())
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_map(Attributes::of(self, fields))
    }
}
