// SPDX-License-Identifier: GPL-2.0-or-later
//! Python's objects from settings, for any type that serde writes: the other way round than `reading`. A struct or a variant is made by
//! the class of its name in `qjump_sim`, a variant of a struct that has no class by the variant's, one without fields whose name is in lower
//! case is a text; fields that a class does not have are those of a struct that it has itself.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde::ser::{
    Error, Impossible, Serialize, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    Serializer,
};

/// What tells of the settings.
pub fn made<'py>(py: Python<'py>, of: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    of.serialize(Maker(py))?.object(py)
}

/// What a setting becomes.
pub enum Made<'py> {
    Object(Bound<'py, PyAny>),
    /// Of a class; made when it is known whether what holds it has a field for it.
    Fields(&'static str, Vec<(&'static str, Made<'py>)>),
}

impl<'py> Made<'py> {
    fn object(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (name, fields) = match self {
            Made::Object(object) => return Ok(object),
            Made::Fields(name, fields) => (name, fields),
        };
        let class = py.import("qjump_sim")?.getattr(name)?;
        let known = class.getattr("__dataclass_fields__")?;
        let values = PyDict::new(py);
        for (field, made) in fields {
            match made {
                Made::Fields(_, inner) if !known.contains(field)? => {
                    for (field, made) in inner {
                        values.set_item(field, made.object(py)?)?;
                    }
                }
                made => values.set_item(field, made.object(py)?)?,
            }
        }
        class.call((), Some(&values))
    }
}

/// The interpreter's error.
#[derive(Debug)]
pub struct Wrong(PyErr);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Wrong {}

impl Error for Wrong {
    fn custom<T: std::fmt::Display>(sentence: T) -> Self {
        Wrong(PyTypeError::new_err(sentence.to_string()))
    }
}

impl From<PyErr> for Wrong {
    fn from(error: PyErr) -> Self {
        Wrong(error)
    }
}

impl From<Wrong> for PyErr {
    fn from(wrong: Wrong) -> Self {
        wrong.0
    }
}

type Done<'py> = Result<Made<'py>, Wrong>;

/// Writes into the interpreter.
#[derive(Clone, Copy)]
struct Maker<'py>(Python<'py>);

impl<'py> Maker<'py> {
    fn plain<T>(self, value: T) -> Done<'py>
    where
        T: IntoPyObject<'py>,
        PyErr: From<T::Error>,
    {
        use pyo3::BoundObject;
        Ok(Made::Object(value.into_pyobject(self.0).map_err(PyErr::from)?.into_any().into_bound()))
    }
}

/// What settings do not hold.
macro_rules! unwritten {
    ($($name:ident($type:ty))*) => {$(
        fn $name(self, _: $type) -> Done<'py> {
            Err(Wrong::custom(concat!("settings have no ", stringify!($type))))
        }
    )*};
}

impl<'py> Serializer for Maker<'py> {
    type Ok = Made<'py>;
    type Error = Wrong;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Items<'py>;
    type SerializeTupleVariant = Impossible<Made<'py>, Wrong>;
    type SerializeMap = Impossible<Made<'py>, Wrong>;
    type SerializeStruct = Attributes<'py>;
    type SerializeStructVariant = Attributes<'py>;

    unwritten! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_f32(f32) serialize_char(char)
        serialize_bytes(&[u8])
    }

    fn serialize_bool(self, value: bool) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_u8(self, value: u8) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_u16(self, value: u16) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_u32(self, value: u32) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_u64(self, value: u64) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_f64(self, value: f64) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_str(self, value: &str) -> Done<'py> {
        self.plain(value)
    }

    fn serialize_none(self) -> Done<'py> {
        self.plain(self.0.None())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done<'py> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done<'py> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done<'py> {
        match variant {
            "None" => self.serialize_none(),
            text if text.starts_with(|first: char| first.is_ascii_lowercase()) => self.plain(text),
            class => Ok(Made::Fields(class, Vec::new())),
        }
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done<'py> {
        let module = self.0.import("qjump_sim")?;
        match value.serialize(self)? {
            // What has no class of its own is what several variants have in common.
            Made::Fields(name, fields) if name == variant || !module.hasattr(name)? => Ok(Made::Fields(variant, fields)),
            // Plain numbers are of bytes.
            made if variant == "Bytes" => Ok(made),
            made => Ok(Made::Object(module.getattr(variant)?.call1((made.object(self.0)?,))?)),
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'py>, Wrong> {
        Ok(Items(self, Vec::new()))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'py>, Wrong> {
        Ok(Items(self, Vec::new()))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'py>, Wrong> {
        Ok(Items(self, Vec::new()))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Wrong> {
        Err(Wrong::custom("settings have no variant of several values"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Wrong> {
        Err(Wrong::custom("settings have no map"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Attributes<'py>, Wrong> {
        Ok(Attributes { maker: self, name, fields: Vec::new() })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Attributes<'py>, Wrong> {
        self.serialize_struct(variant, len)
    }
}

struct Items<'py>(Maker<'py>, Vec<Bound<'py, PyAny>>);

impl<'py> SerializeSeq for Items<'py> {
    type Ok = Made<'py>;
    type Error = Wrong;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Wrong> {
        self.1.push(value.serialize(self.0)?.object(self.0 .0)?);
        Ok(())
    }

    fn end(self) -> Done<'py> {
        Ok(Made::Object(PyTuple::new(self.0 .0, self.1)?.into_any()))
    }
}

impl<'py> SerializeTuple for Items<'py> {
    type Ok = Made<'py>;
    type Error = Wrong;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Wrong> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Done<'py> {
        SerializeSeq::end(self)
    }
}

impl<'py> SerializeTupleStruct for Items<'py> {
    type Ok = Made<'py>;
    type Error = Wrong;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Wrong> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Done<'py> {
        SerializeSeq::end(self)
    }
}

struct Attributes<'py> {
    maker: Maker<'py>,
    name: &'static str,
    fields: Vec<(&'static str, Made<'py>)>,
}

impl<'py> SerializeStruct for Attributes<'py> {
    type Ok = Made<'py>;
    type Error = Wrong;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), Wrong> {
        self.fields.push((field, value.serialize(self.maker)?));
        Ok(())
    }

    fn end(self) -> Done<'py> {
        Ok(Made::Fields(self.name, self.fields))
    }
}

impl<'py> SerializeStructVariant for Attributes<'py> {
    type Ok = Made<'py>;
    type Error = Wrong;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), Wrong> {
        SerializeStruct::serialize_field(self, field, value)
    }

    fn end(self) -> Done<'py> {
        SerializeStruct::end(self)
    }
}
