// SPDX-License-Identifier: GPL-2.0-or-later
//! The units of settings, read off their types: a serde deserializer that notes the unit of each
//! field and answers with a small number.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The name of a unit, by class and field.
pub type Units = BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>;

/// Notes the units of a struct, or of every variant of an enum. Whether the small numbers make a
/// valid setting does not matter.
pub fn note<'de, T: Deserialize<'de>>(units: &RefCell<Units>) {
    let mut variant = 0;
    let variants = RefCell::new(1);
    while variant < *variants.borrow() {
        let _ = T::deserialize(Probe { class: "", field: "", variant, variants: &variants, units });
        variant += 1;
    }
}

#[derive(Clone, Copy)]
struct Probe<'a> {
    /// The outermost struct or variant; empty: none yet.
    class: &'static str,
    field: &'static str,
    /// The variant to choose of an outermost enum, and how many it has.
    variant: usize,
    variants: &'a RefCell<usize>,
    units: &'a RefCell<Units>,
}

impl<'a> Probe<'a> {
    fn of_class(self, name: &'static str) -> Self {
        Probe { class: if self.class.is_empty() { name } else { self.class }, ..self }
    }

    fn fields(self, fields: &'static [&'static str]) -> Fields<'a> {
        Fields { probe: self, fields: fields.iter() }
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(1)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(true)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(1.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    /// The name is a unit's.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.units.borrow_mut().entry(self.class).or_default().insert(self.field, name);
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { probe: self, left: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { probe: self, left: len })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(self.of_class(name).fields(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.class.is_empty() {
            *self.variants.borrow_mut() = variants.len();
            let name = variants[self.variant];
            return visitor.visit_enum(Variant { name, probe: self.of_class(name) });
        }
        visitor.visit_enum(Variant { name: variants[0], probe: self })
    }

    forward_to_deserialize_any! {
        u8 u16 u32 u64 i8 i16 i32 i64 i128 u128 f32 char str string bytes byte_buf unit unit_struct
        map tuple_struct identifier ignored_any
    }
}

struct Items<'a> {
    probe: Probe<'a>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.probe).map(Some)
    }
}

struct Fields<'a> {
    probe: Probe<'a>,
    fields: std::slice::Iter<'static, &'static str>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.probe.field = field;
        let key: StrDeserializer<'_, Error> = field.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.probe)
    }
}

struct Variant<'a> {
    name: &'static str,
    probe: Probe<'a>,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Error;
    type Variant = Probe<'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Probe<'a>), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.probe))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(self.fields(fields))
    }
}
