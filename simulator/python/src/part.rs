// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads Python objects; what is wrong with one is said in one sentence that begins with its place in the scenario.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use qjump_sim::units::{Duration, Instant, Octets, Packets, Size, Unit};

/// A Python object and its place, such as `scheme.queue.limit`.
#[derive(Clone)]
pub struct Part<'py> {
    object: Bound<'py, PyAny>,
    place: String,
    /// That of a number, by the name that settings give it; none: it is plain.
    unit: &'static str,
    /// Bytes of a full packet.
    full: u16,
    /// It stands for a struct whose fields the object has among its own.
    inline: bool,
}

/// Longer ones are shown by their type.
const SHOWN: usize = 60;

impl<'py> Part<'py> {
    pub fn new(object: &Bound<'py, PyAny>, place: &str) -> Self {
        Part { object: object.clone(), place: place.to_owned(), unit: "", full: 0, inline: false }
    }

    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }

    pub fn is_inline(&self) -> bool {
        self.inline
    }

    fn of(&self, object: Bound<'py, PyAny>, place: String) -> Self {
        Part { object, place, unit: self.unit, full: self.full, inline: false }
    }

    /// Its attribute.
    pub fn get(&self, field: &str) -> PyResult<Self> {
        let place = if self.place.is_empty() { field.to_owned() } else { format!("{}.{field}", self.place) };
        Ok(self.of(self.object.getattr(field)?, place))
    }

    /// Its attribute, or itself for a struct whose fields it has among its own.
    pub fn field(&self, field: &str) -> PyResult<Self> {
        if self.object.hasattr(field)? {
            self.get(field)
        } else {
            Ok(self.clone().inline())
        }
    }

    /// The same for a struct whose fields it has among its own.
    pub fn inline(self) -> Self {
        Part { inline: true, ..self }
    }

    /// Its elements.
    pub fn items(&self) -> PyResult<Vec<Self>> {
        let Ok(items) = self.object.try_iter() else {
            return Err(self.is_not("a sequence"));
        };
        let item = |(i, object): (usize, PyResult<Bound<'py, PyAny>>)| Ok(self.of(object?, format!("{}[{i}]", self.place)));
        items.enumerate().map(item).collect()
    }

    /// Nothing if it is Python's None.
    pub fn given(self) -> Option<Self> {
        (!self.object.is_none()).then_some(self)
    }

    /// The same as a number of a unit.
    pub fn of_unit(self, unit: &'static str) -> Self {
        Part { unit, ..self }
    }

    /// The same, in which packets are full ones of its transport, if it has one.
    pub fn with_full_packets(self) -> Self {
        let full = self.get("transport").and_then(|transport| transport.get("data_bytes")?.bytes()).unwrap_or(self.full);
        Part { full, ..self }
    }

    /// A whole number of its unit that `T`, an unsigned one, can hold.
    pub fn count<T: TryFrom<u64>>(&self) -> PyResult<T> {
        match self.unit {
            Instant::NAME => self.picoseconds(Instant::MOST),
            Duration::NAME => self.picoseconds(Duration::MOST),
            Octets::NAME => self.bytes(),
            Size::NAME => self.size(),
            Packets::NAME if self.class()? == "Packets" => self.get("count")?.whole(),
            _ => self.whole(),
        }
    }

    /// A whole number that `T`, an unsigned one, can hold, of what has no unit here.
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

    /// The same, or `Packets`, so many full ones.
    fn size<T: TryFrom<u64>>(&self) -> PyResult<T> {
        if self.class()? != "Packets" {
            return self.bytes();
        }
        let packets: u32 = self.get("count")?.whole()?;
        let bytes = packets.checked_mul(self.full.into()).and_then(|bytes| T::try_from(bytes.into()).ok());
        bytes.ok_or_else(|| self.wrong("so many packets have more than 4294967295 bytes"))
    }

    /// What a limit is, where a queue has one in packets beside that in bytes.
    pub fn limit(self) -> PyResult<Self> {
        if self.class()? != "DropTail" {
            return Ok(self);
        }
        let (bytes, packets) = (self.get("bytes")?, self.get("packets")?);
        match (bytes.object.is_none(), packets.object.is_none()) {
            (_, true) => Ok(bytes),
            (true, false) => Ok(packets.of_unit(Packets::NAME)),
            (false, false) => Err(self.wrong("a limit is in bytes or in packets, not in both")),
        }
    }

    /// The name of a limit's kind.
    pub fn limit_unit(&self) -> PyResult<&'static str> {
        Ok(match self.class()?.as_str() {
            _ if self.unit == Packets::NAME => "Packets",
            "Packets" => "Packets",
            "Time" => "Time",
            _ => "Bytes",
        })
    }

    /// Says that something has another unit than what is wanted.
    fn refuse_units(&self, others: &[&str], wanted: &str) -> PyResult<()> {
        let class = self.class()?;
        let told = match class.as_str() {
            "Time" => "a time",
            "Bytes" => "of bytes",
            _ => "of packets",
        };
        if others.contains(&class.as_str()) {
            let shown = self.object.repr()?;
            return Err(self.wrong(&format!("{shown} is {told}, where {wanted} is meant")));
        }
        Ok(())
    }

    /// A point in time, in ps.
    pub fn time(&self) -> PyResult<u64> {
        self.picoseconds(Instant::MOST)
    }

    /// A delay, timeout or the like, in ps.
    pub fn duration(&self) -> PyResult<u64> {
        self.picoseconds(Duration::MOST)
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

    /// The name of its class, by which kinds of queues and the like are told apart; all texts are of one, numpy's too.
    pub fn class(&self) -> PyResult<String> {
        if self.object.is_instance_of::<PyString>() {
            return Ok("str".to_owned());
        }
        self.object.get_type().name()?.extract()
    }

    /// The sentence that it is something else than `wanted`.
    pub fn is_not(&self, wanted: &str) -> PyErr {
        let shown = self.object.repr().map(|text| text.to_string()).unwrap_or_default();
        let what = match self.class() {
            Ok(class) if shown.is_empty() || shown.len() > SHOWN || shown.contains('\n') => format!("this {class}"),
            _ => shown,
        };
        self.wrong(&format!("{what} is not {wanted}"))
    }

    pub fn wrong(&self, sentence: &str) -> PyErr {
        PyValueError::new_err(format!("{}: {sentence}", self.place))
    }

    /// The same of an element.
    pub fn wrong_at(&self, element: usize, sentence: &str) -> PyErr {
        PyValueError::new_err(format!("{}[{element}]: {sentence}", self.place))
    }

    /// The sentence of the simulator, after the place.
    pub fn refused(&self, error: &qjump_sim::Error) -> PyErr {
        self.wrong(&error.to_string())
    }
}

/// The simulator's own sentence, which names the place.
pub fn told(error: &qjump_sim::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
