// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads Python objects; what is wrong with one is said in one sentence that begins with its place in the scenario.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use qjump_sim::S;

/// A Python object and its place, such as `scheme.queue.limit`.
pub struct Part<'py> {
    object: Bound<'py, PyAny>,
    place: String,
}

/// 53 days: so far from the end of the simulator's clock, 213 days, that what follows fits too, and within int64.
pub const LATEST: u64 = 1 << 62;

/// Longer ones are shown by their type.
const SHOWN: usize = 60;

impl<'py> Part<'py> {
    pub fn new(object: &Bound<'py, PyAny>, place: &str) -> Self {
        Part { object: object.clone(), place: place.to_owned() }
    }

    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }

    /// Its attribute.
    pub fn get(&self, field: &str) -> PyResult<Self> {
        let place = if self.place.is_empty() { field.to_owned() } else { format!("{}.{field}", self.place) };
        Ok(Part { object: self.object.getattr(field)?, place })
    }

    /// Its elements.
    pub fn items(&self) -> PyResult<Vec<Self>> {
        let Ok(items) = self.object.try_iter() else {
            return Err(self.is_not("a sequence"));
        };
        let item = |(i, object): (usize, PyResult<Bound<'py, PyAny>>)| {
            Ok(Part { object: object?, place: format!("{}[{i}]", self.place) })
        };
        items.enumerate().map(item).collect()
    }

    /// Nothing if it is Python's None.
    pub fn given(self) -> Option<Self> {
        (!self.object.is_none()).then_some(self)
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
            "Bytes" => self.get("count")?.number(),
            _ => self.number(),
        }
    }

    /// The same, or `Packets`, so many full ones of these bytes.
    pub fn size<T: TryFrom<u64>>(&self, full: u16) -> PyResult<T> {
        if self.class()? != "Packets" {
            return self.bytes();
        }
        let bytes = self.get("count")?.number::<u32>()?.checked_mul(full.into()).and_then(|bytes| T::try_from(bytes.into()).ok());
        bytes.ok_or_else(|| self.wrong("so many packets have more than 4294967295 bytes"))
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
        self.picoseconds(LATEST)
    }

    /// A delay, timeout or the like, in ps.
    pub fn duration(&self) -> PyResult<u64> {
        self.picoseconds(1_000 * S)
    }

    fn picoseconds(&self, most: u64) -> PyResult<u64> {
        self.refuse_units(&["Bytes", "Packets"], "a time")?;
        let number = self.object.extract::<u64>().ok().filter(|&number| number <= most);
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

    /// The name of its class, by which kinds of queues and the like are told apart.
    pub fn class(&self) -> PyResult<String> {
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

    /// The sentence of the simulator, after the place.
    pub fn refused(&self, error: &qjump_sim::Error) -> PyErr {
        self.wrong(&error.to_string())
    }
}

/// The simulator's own sentence, which names the place.
pub fn told(error: &qjump_sim::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Its elements, which are so many.
pub fn array<'py, T, const N: usize>(part: &Part<'py>, read: impl Fn(&Part<'py>) -> PyResult<T>) -> PyResult<[T; N]> {
    let items = part.items()?.iter().map(read).collect::<PyResult<Vec<T>>>()?;
    let count = items.len();
    items.try_into().map_err(|_| part.wrong(&format!("it has {count} values, not {N}")))
}
