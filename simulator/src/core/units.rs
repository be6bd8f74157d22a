// SPDX-License-Identifier: GPL-2.0-or-later
//! What the numbers of settings are when they are read or written: `#[serde(with = "In::<Size>")]` beside a plain number, an optional
//! one or eight of them. Formats that know units, as Python's objects do, see a newtype of the unit's name; others a plain number.

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::core::time::S;

/// A unit of whole numbers.
pub trait Unit {
    /// By which formats know it.
    const NAME: &'static str;
    /// The largest number.
    const MOST: u64 = u64::MAX;
}

/// A point in time, in ps.
pub struct Instant;
/// A delay, timeout or the like, in ps.
pub struct Duration;
/// Bytes.
pub struct Octets;
/// Bytes, for which may stand so many full packets.
pub struct Size;
/// Packets.
pub struct Packets;
/// Bytes, for which may stand so many full packets; none: without limit, which is the largest number.
pub struct Budget;
/// A share of 1, held in millionths.
pub struct Fraction;
/// A gain in 1/s, held in thousandths.
pub struct Gain;

impl Unit for Instant {
    const NAME: &'static str = "Instant";
    /// 53 days: so far from the end of the simulator's clock, 213 days, that what follows fits too, and within int64.
    const MOST: u64 = 1 << 62;
}

impl Unit for Duration {
    const NAME: &'static str = "Duration";
    const MOST: u64 = 1_000 * S;
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

/// What `serde(with)` names.
pub struct In<U>(PhantomData<U>);

impl<U> In<U> {
    /// Reads a number of the unit.
    ///
    /// # Errors
    /// The format's, and that it is too large.
    pub fn deserialize<'de, T: Held<U>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::Told::deserialize(from).map(T::held)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The format's.
    pub fn serialize<T: Held<U>, S: Serializer>(held: &T, to: S) -> Result<S::Ok, S::Error> {
        held.told().serialize(to)
    }
}

/// What settings hold of a unit, and how it is told.
pub trait Held<U>: Copy {
    /// How.
    type Told: Serialize + DeserializeOwned;
    /// As formats have it.
    fn told(self) -> Self::Told;
    /// As settings have it.
    fn held(told: Self::Told) -> Self;
}

impl<U, T: Held<U>> Held<U> for Option<T> {
    type Told = Option<T::Told>;

    fn told(self) -> Self::Told {
        self.map(T::told)
    }

    fn held(told: Self::Told) -> Self {
        told.map(T::held)
    }
}

impl<U, T: Held<U>> Held<U> for [T; 8] {
    type Told = [T::Told; 8];

    fn told(self) -> Self::Told {
        self.map(T::told)
    }

    fn held(told: Self::Told) -> Self {
        told.map(T::held)
    }
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl<U: Unit> Held<U> for $number {
            type Told = Whole<U, $number>;

            fn told(self) -> Self::Told {
                Whole(self, PhantomData)
            }

            fn held(told: Self::Told) -> Self {
                told.0
            }
        }
    )*};
}

whole!(u16, u32, u64);

impl Held<Budget> for u64 {
    type Told = Option<Whole<Size, u64>>;

    fn told(self) -> Self::Told {
        (self != u64::MAX).then_some(Whole(self, PhantomData))
    }

    fn held(told: Self::Told) -> Self {
        told.map_or(u64::MAX, |bytes| bytes.0)
    }
}

impl Held<Fraction> for u32 {
    type Told = Real<1>;

    fn told(self) -> Self::Told {
        Real(f64::from(self) / 1e6)
    }

    fn held(told: Self::Told) -> Self {
        (told.0 * 1e6).round() as u32
    }
}

impl Held<Gain> for u64 {
    type Told = Real<4_000_000>;

    fn told(self) -> Self::Told {
        Real(self as f64 / 1e3)
    }

    fn held(told: Self::Told) -> Self {
        (told.0 * 1e3).round() as u64
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
        if plain > U::MOST {
            let wanted = format!("a whole number from 0 to {}", U::MOST);
            return Err(D::Error::invalid_value(Unexpected::Unsigned(plain), &wanted.as_str()));
        }
        Ok(Whole(number, PhantomData))
    }
}

/// A number from 0 to `MOST`.
#[derive(Serialize)]
pub struct Real<const MOST: u32>(f64);

impl<'de, const MOST: u32> Deserialize<'de> for Real<MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match f64::deserialize(from)? {
            real if (0.0..=MOST.into()).contains(&real) => Ok(Real(real)),
            real => Err(D::Error::invalid_value(Unexpected::Float(real), &format!("between 0 and {MOST}").as_str())),
        }
    }
}
