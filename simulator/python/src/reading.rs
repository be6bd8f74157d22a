// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings from Python's objects, for any type that serde reads: a struct is an object of the class of its name, a field its attribute
//! of that name; a variant is chosen by the name of the object's class, or by a text; None is no value. A field that a class does not have
//! is a struct whose fields the object has itself.

use pyo3::prelude::*;
use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::part::Part;

/// Reads what the object tells of.
pub fn read<'de, T: Deserialize<'de>>(part: &Part<'_>) -> PyResult<T> {
    T::deserialize(part.clone()).map_err(|wrong| wrong.at(part))
}

/// What is wrong with an object, until its place is known.
#[derive(Debug)]
pub enum Wrong {
    /// With its place.
    Told(PyErr),
    /// A sentence.
    Sentence(String),
    /// It is something else than this.
    Wanted(String),
}

impl Wrong {
    fn at(self, part: &Part<'_>) -> PyErr {
        match self {
            Wrong::Told(error) => error,
            Wrong::Sentence(sentence) => part.wrong(&sentence),
            Wrong::Wanted(wanted) => part.is_not(&wanted),
        }
    }
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Self {
        Wrong::Told(error)
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Told(error) => error.fmt(f),
            Wrong::Sentence(sentence) => f.write_str(sentence),
            Wrong::Wanted(wanted) => write!(f, "it is not {wanted}"),
        }
    }
}

impl std::error::Error for Wrong {}

impl Error for Wrong {
    fn custom<T: std::fmt::Display>(sentence: T) -> Self {
        Wrong::Sentence(sentence.to_string())
    }

    fn invalid_type(_: Unexpected, wanted: &dyn Expected) -> Self {
        Wrong::Wanted(wanted.to_string())
    }

    fn invalid_value(_: Unexpected, wanted: &dyn Expected) -> Self {
        Wrong::Wanted(wanted.to_string())
    }

    fn invalid_length(_: usize, wanted: &dyn Expected) -> Self {
        Wrong::Wanted(wanted.to_string())
    }
}

/// Deserializes with what is wrong said at the part's place.
fn at<'de, T: DeserializeSeed<'de>>(seed: T, part: Part<'_>) -> Result<T::Value, Wrong> {
    let place = part.clone();
    seed.deserialize(part).map_err(|wrong| Wrong::Told(wrong.at(&place)))
}

/// `a Cable`, or `an Exchange`.
fn with_article(name: &str) -> String {
    let article = if name.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" };
    format!("{article} {name}")
}

/// Whether a variant is a text, and not a class.
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

impl<'de> Deserializer<'de> for Part<'_> {
    type Error = Wrong;

    /// Every setting says what it wants.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        Err(Error::invalid_type(Unexpected::Other("an object"), &visitor))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_bool(self.flag()?)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u8(self.count()?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u16(self.count()?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u32(self.count()?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.count()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_f64(self.real()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_string(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.given() {
            Some(part) => visitor.visit_some(part),
            None => visitor.visit_none(),
        }
    }

    /// The name is that of a unit.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self.of_unit(name))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_seq(Items(self.items()?.into_iter()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Wrong> {
        let items = self.items()?;
        if items.len() != len {
            return Err(Wrong::Sentence(format!("it has {} values, not {len}", items.len())));
        }
        visitor.visit_seq(Items(items.into_iter()))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, len: usize, visitor: V) -> Result<V::Value, Wrong> {
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
    ) -> Result<V::Value, Wrong> {
        if !self.is_inline() && self.class()? != name {
            return Err(Wrong::Wanted(with_article(name)));
        }
        visitor.visit_map(Attributes::of(self, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let part = if name == "Limit" { self.limit()? } else { self };
        let class = part.class()?;
        let chosen = match class.as_str() {
            "str" if is_text(variants[0]) => part.text()?,
            // Python has no class for it.
            _ if name == "Span" && class != "Exponential" => "Fixed".to_owned(),
            "NoneType" => "None".to_owned(),
            _ if name == "Limit" => part.limit_unit()?.to_owned(),
            _ => class,
        };
        match variants.iter().find(|&&variant| variant == chosen) {
            Some(variant) => visitor.visit_enum(Variant { name: variant, part }),
            None => Err(Wrong::Wanted(one_of(variants))),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 char bytes byte_buf unit unit_struct map identifier ignored_any
    }
}

struct Items<'py>(std::vec::IntoIter<Part<'py>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        self.0.next().map(|part| at(seed, part)).transpose()
    }
}

struct Attributes<'py> {
    part: Part<'py>,
    fields: std::slice::Iter<'static, &'static str>,
    /// Whose value is next.
    field: &'static str,
}

impl<'py> Attributes<'py> {
    fn of(part: Part<'py>, fields: &'static [&'static str]) -> Self {
        Attributes { part: part.with_full_packets(), fields: fields.iter(), field: "" }
    }
}

impl<'de> MapAccess<'de> for Attributes<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.field = field;
        let key: StrDeserializer<'_, Wrong> = field.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        at(seed, self.part.field(self.field)?)
    }
}

struct Variant<'py> {
    name: &'static str,
    part: Part<'py>,
}

impl<'de, 'py> EnumAccess<'de> for Variant<'py> {
    type Error = Wrong;
    type Variant = Part<'py>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Part<'py>), Wrong> {
        let name: StrDeserializer<'_, Wrong> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.part))
    }
}

impl<'de> VariantAccess<'de> for Part<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        at(seed, self.inline())
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_map(Attributes::of(self, fields))
    }
}
