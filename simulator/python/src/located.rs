// SPDX-License-Identifier: GPL-2.0-or-later
//! Python objects with their place in the scenario, for errors of one sentence that begin with it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use qjump_sim::units::{Duration, Instant, Octets, Packets, Size, Unit};

/// A Python object and its place, such as `scheme.queue.limit`.
#[derive(Clone)]
pub struct Located<'py> {
    object: Bound<'py, PyAny>,
    place: String,
    /// A number's unit, by the name that settings give it; empty: none.
    unit: &'static str,
    /// Bytes of a full packet.
    full: u16,
    /// It stands for a struct whose fields are among the object's own.
    inline: bool,
}

/// Objects with a longer repr are shown by their type.
const SHOWN: usize = 60;

impl<'py> Located<'py> {
    pub fn new(object: &Bound<'py, PyAny>, place: &str) -> Self {
        Located {
            object: object.clone(),
            place: place.to_owned(),
            unit: "",
            full: 0,
            inline: false,
        }
    }

    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }

    pub fn is_inline(&self) -> bool {
        self.inline
    }

    fn of(&self, object: Bound<'py, PyAny>, place: String) -> Self {
        Located { object, place, unit: self.unit, full: self.full, inline: false }
    }

    /// An attribute.
    pub fn get(&self, field: &str) -> PyResult<Self> {
        let place = if self.place.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.place)
        };
        Ok(self.of(self.object.getattr(field)?, place))
    }

    /// An attribute; or the object itself, for a struct whose fields are among its own.
    pub fn field(&self, field: &str) -> PyResult<Self> {
        if self.object.hasattr(field)? {
            self.get(field)
        } else {
            Ok(self.clone().inline())
        }
    }

    /// As a struct whose fields are among the object's own.
    pub fn inline(self) -> Self {
        Located { inline: true, ..self }
    }

    /// The elements of a sequence.
    pub fn items(&self) -> PyResult<Vec<Self>> {
        let Ok(items) = self.object.try_iter() else {
            return Err(self.is_not("a sequence"));
        };
        let item = |(i, object): (usize, PyResult<Bound<'py, PyAny>>)| {
            Ok(self.of(object?, format!("{}[{i}]", self.place)))
        };
        let all = items.enumerate().map(|(i, object)| {
            self.object.py().check_signals()?;
            item((i, object))
        });
        all.collect()
    }

    /// None if the object is Python's None.
    pub fn given(self) -> Option<Self> {
        (!self.object.is_none()).then_some(self)
    }

    /// As a number of this unit.
    pub fn of_unit(self, unit: &'static str) -> Self {
        Located { unit, ..self }
    }

    /// With the full packet size of its transport, if it has one.
    pub fn with_full_packets(self) -> Self {
        let full = self
            .get("transport")
            .and_then(|transport| transport.get("data_bytes")?.bytes())
            .unwrap_or(self.full);
        Located { full, ..self }
    }

    /// A whole number of its unit that fits the unsigned type `T`.
    pub fn count<T: TryFrom<u64>>(&self) -> PyResult<T> {
        match self.unit {
            Instant::NAME => self.picoseconds(Instant::MAX),
            Duration::NAME => self.picoseconds(Duration::MAX),
            Octets::NAME => self.bytes(),
            Size::NAME => self.size(),
            Packets::NAME if self.class()? == "Packets" => self.get("count")?.whole(),
            _ => self.whole(),
        }
    }

    /// A whole number without a unit that fits the unsigned type `T`.
    pub fn whole<T: TryFrom<u64>>(&self) -> PyResult<T> {
        self.refuse_units(&["Time", "Bytes", "Packets"], "a plain number")?;
        self.number()
    }

    fn number<T: TryFrom<u64>>(&self) -> PyResult<T> {
        let most = u64::MAX >> (64 - 8 * size_of::<T>());
        let number = self.object.extract::<u64>().ok().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.is_not(&format!("a whole number from 0 to {most}")))
    }

    /// Bytes: a plain number, or `Bytes`.
    pub fn bytes<T: TryFrom<u64>>(&self) -> PyResult<T> {
        self.refuse_units(&["Time", "Packets"], "a number of bytes")?;
        match self.class()?.as_str() {
            "Bytes" => self.get("count")?.whole(),
            _ => self.number(),
        }
    }

    /// Bytes, or `Packets` of full size.
    fn size<T: TryFrom<u64>>(&self) -> PyResult<T> {
        if self.class()? != "Packets" {
            return self.bytes();
        }
        let packets: u32 = self.get("count")?.whole()?;
        let bytes =
            packets.checked_mul(self.full.into()).and_then(|bytes| T::try_from(bytes.into()).ok());
        bytes.ok_or_else(|| self.error("this many packets exceed 4294967295 bytes"))
    }

    /// The given limit of a `DropTail`, which may be in bytes or in packets.
    pub fn limit(self) -> PyResult<Self> {
        if self.class()? != "DropTail" {
            return Ok(self);
        }
        let (bytes, packets) = (self.get("bytes")?, self.get("packets")?);
        match (bytes.object.is_none(), packets.object.is_none()) {
            (_, true) => Ok(bytes),
            (true, false) => Ok(packets.of_unit(Packets::NAME)),
            (false, false) => Err(self.error("a limit is in bytes or in packets, not in both")),
        }
    }

    /// The variant of `Limit`.
    pub fn limit_unit(&self) -> PyResult<&'static str> {
        Ok(match self.class()?.as_str() {
            _ if self.unit == Packets::NAME => "Packets",
            "Packets" => "Packets",
            "Time" => "Time",
            _ => "Bytes",
        })
    }

    /// Refuses other units than the expected one.
    fn refuse_units(&self, others: &[&str], wanted: &str) -> PyResult<()> {
        let class = self.class()?;
        let told = match class.as_str() {
            "Time" => "a time",
            "Bytes" => "of bytes",
            _ => "of packets",
        };
        if others.contains(&class.as_str()) {
            let shown = self.object.repr()?;
            return Err(self.error(&format!("{shown} is {told}, where {wanted} is expected")));
        }
        Ok(())
    }

    /// A point in time, in ps.
    pub fn time(&self) -> PyResult<u64> {
        self.picoseconds(Instant::MAX)
    }

    /// A delay, timeout or the like, in ps.
    pub fn duration(&self) -> PyResult<u64> {
        self.picoseconds(Duration::MAX)
    }

    fn picoseconds<T: TryFrom<u64>>(&self, most: u64) -> PyResult<T> {
        self.refuse_units(&["Bytes", "Packets"], "a time")?;
        let number = self.object.extract::<u64>().ok().filter(|&number| number <= most);
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.is_not(&format!("a whole number of ps from 0 to {most}")))
    }

    pub fn real(&self) -> PyResult<f64> {
        self.object.extract().map_err(|_| self.is_not("a number"))
    }

    pub fn flag(&self) -> PyResult<bool> {
        self.object.extract().map_err(|_| self.is_not("True or False"))
    }

    pub fn text(&self) -> PyResult<String> {
        self.object.extract().map_err(|_| self.is_not("a text"))
    }

    /// The name of its class, which identifies variants; all strings count as `str`, numpy's too.
    pub fn class(&self) -> PyResult<String> {
        if self.object.is_instance_of::<PyString>() {
            return Ok("str".to_owned());
        }
        self.object.get_type().name()?.extract()
    }

    /// An error: this object is not `wanted`.
    pub fn is_not(&self, wanted: &str) -> PyErr {
        let shown = self.object.repr().map(|text| text.to_string()).unwrap_or_default();
        let what = match self.class() {
            Ok(class) if shown.is_empty() || shown.len() > SHOWN || shown.contains('\n') => {
                format!("this {class}")
            }
            _ => shown,
        };
        self.error(&format!("{what} is not {wanted}"))
    }

    pub fn error(&self, sentence: &str) -> PyErr {
        PyValueError::new_err(format!("{}: {sentence}", self.place))
    }

    /// An error about an element.
    pub fn error_at(&self, element: usize, sentence: &str) -> PyErr {
        PyValueError::new_err(format!("{}[{element}]: {sentence}", self.place))
    }

    /// The simulator's error, with this place.
    pub fn refused(&self, error: &qjump_sim::Error) -> PyErr {
        self.error(&error.to_string())
    }
}

/// The simulator's error, which already names a place.
pub fn value_error(error: &qjump_sim::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
