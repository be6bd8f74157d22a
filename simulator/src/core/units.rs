// SPDX-License-Identifier: GPL-2.0-or-later
//! Units of settings. `#[serde(with = "In::<Size>")]` gives a number, an optional number or eight
//! numbers a unit.
//!
//! Formats that know units, such as Python's objects, see a newtype with the unit's name; others,
//! such as JSON, see a plain number.

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::core::time::S;

/// A unit of whole numbers.
pub trait Unit {
    /// The name that formats see.
    const NAME: &'static str;
    /// The largest number.
    const MAX: u64 = u64::MAX;
}

/// A point in time, in ps.
pub struct Instant;
/// A delay, timeout or the like, in ps.
pub struct Duration;
/// Bytes.
pub struct Octets;
/// Bytes, or a number of full packets.
pub struct Size;
/// Packets.
pub struct Packets;
/// Bytes or a number of full packets; none means unlimited and is stored as the largest number.
pub struct Budget;
/// A share between 0 and 1, stored in millionths.
pub struct Fraction;
/// A gain in 1/s, stored in thousandths.
pub struct Gain;

impl Unit for Instant {
    const NAME: &'static str = "Instant";
    /// 53 days: far enough from the end of the clock, 213 days, that later events fit, and within
    /// int64.
    const MAX: u64 = 1 << 62;
}

impl Unit for Duration {
    const NAME: &'static str = "Duration";
    const MAX: u64 = 1_000 * S;
}

impl Unit for Octets {
    const NAME: &'static str = "Octets";
}

impl Unit for Size {
    const NAME: &'static str = "Size";
}

impl Unit for Packets {
    const NAME: &'static str = "Packets";
}

/// The adapter for `serde(with)`.
pub struct In<U>(PhantomData<U>);

impl<U> In<U> {
    /// Deserializes a number of this unit.
    ///
    /// # Errors
    /// The format's errors, and a number that is too large.
    pub fn deserialize<'de, T: InUnit<U>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::Repr::deserialize(from).map(T::from_repr)
    }

    /// Serializes a number of this unit.
    ///
    /// # Errors
    /// The format's errors.
    pub fn serialize<T: InUnit<U>, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.to_repr().serialize(to)
    }
}

/// How a setting stores a number of unit `U`, and its serialized form.
pub trait InUnit<U>: Copy {
    /// The serialized form.
    type Repr: Serialize + DeserializeOwned;
    /// To the serialized form.
    fn to_repr(self) -> Self::Repr;
    /// From the serialized form.
    fn from_repr(repr: Self::Repr) -> Self;
}

impl<U, T: InUnit<U>> InUnit<U> for Option<T> {
    type Repr = Option<T::Repr>;

    fn to_repr(self) -> Self::Repr {
        self.map(T::to_repr)
    }

    fn from_repr(repr: Self::Repr) -> Self {
        repr.map(T::from_repr)
    }
}

impl<U, T: InUnit<U>> InUnit<U> for [T; 8] {
    type Repr = [T::Repr; 8];

    fn to_repr(self) -> Self::Repr {
        self.map(T::to_repr)
    }

    fn from_repr(repr: Self::Repr) -> Self {
        repr.map(T::from_repr)
    }
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl<U: Unit> InUnit<U> for $number {
            type Repr = Whole<U, $number>;

            fn to_repr(self) -> Self::Repr {
                Whole(self, PhantomData)
            }

            fn from_repr(repr: Self::Repr) -> Self {
                repr.0
            }
        }
    )*};
}

whole!(u16, u32, u64);

impl InUnit<Budget> for u64 {
    type Repr = Option<Whole<Size, u64>>;

    fn to_repr(self) -> Self::Repr {
        (self != u64::MAX).then_some(Whole(self, PhantomData))
    }

    fn from_repr(repr: Self::Repr) -> Self {
        repr.map_or(u64::MAX, |bytes| bytes.0)
    }
}

impl InUnit<Fraction> for u32 {
    type Repr = Real<1>;

    fn to_repr(self) -> Self::Repr {
        Real(f64::from(self) / 1e6)
    }

    fn from_repr(repr: Self::Repr) -> Self {
        (repr.0 * 1e6).round() as u32
    }
}

impl InUnit<Gain> for u64 {
    type Repr = Real<4_000_000>;

    fn to_repr(self) -> Self::Repr {
        Real(self as f64 / 1e3)
    }

    fn from_repr(repr: Self::Repr) -> Self {
        (repr.0 * 1e3).round() as u64
    }
}

/// A whole number of a unit.
pub struct Whole<U, T>(T, PhantomData<U>);

impl<U: Unit, T: Serialize> Serialize for Whole<U, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_newtype_struct(U::NAME, &self.0)
    }
}

impl<'de, U: Unit, T: Copy + Into<u64> + Deserialize<'de>> Deserialize<'de> for Whole<U, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
                T::deserialize(from)
            }
        }
        let number: T = from.deserialize_newtype_struct(U::NAME, Visitor(PhantomData))?;
        let plain: u64 = number.into();
        if plain > U::MAX {
            let wanted = format!("a whole number from 0 to {}", U::MAX);
            return Err(D::Error::invalid_value(Unexpected::Unsigned(plain), &wanted.as_str()));
        }
        Ok(Whole(number, PhantomData))
    }
}

/// A number from 0 to `MAX`.
#[derive(Serialize)]
pub struct Real<const MAX: u32>(f64);

impl<'de, const MAX: u32> Deserialize<'de> for Real<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match f64::deserialize(from)? {
            real if (0.0..=MAX.into()).contains(&real) => Ok(Real(real)),
            real => Err(D::Error::invalid_value(
                Unexpected::Float(real),
                &format!("between 0 and {MAX}").as_str(),
            )),
        }
    }
}
