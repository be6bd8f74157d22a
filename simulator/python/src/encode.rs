// SPDX-License-Identifier: GPL-2.0-or-later
//! Encode settings as Python objects: a serde serializer for any type, the reverse of `decode`.
//!
//! A struct or variant becomes an object of the class with its name in `qjump_sim`; if its struct
//! has no class, the variant's class. A variant without fields whose name is in lower case becomes
//! a string. A field that the class does not have is a struct whose fields the class has itself.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use serde::ser::{
    Error, Impossible, Serialize, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, Serializer,
};

use crate::law;

/// Encodes settings as a Python object.
pub fn encode<'py>(py: Python<'py>, of: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    of.serialize(Encoder(py))?.object(py)
}

/// An encoded setting.
pub enum Encoded<'py> {
    Object(Bound<'py, PyAny>),
    /// Fields of a class; the object is made once it is known whether its parent has a field for
    /// it.
    Fields(&'static str, Vec<(&'static str, Encoded<'py>)>),
}

impl<'py> Encoded<'py> {
    fn object(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (name, fields) = match self {
            Encoded::Object(object) => return Ok(object),
            Encoded::Fields(name, fields) => (name, fields),
        };
        let class = py.import("qjump_sim")?.getattr(name)?;
        let known = class.getattr("__dataclass_fields__")?;
        let values = PyDict::new(py);
        for (field, made) in fields {
            match made {
                Encoded::Fields(_, inner) if !known.contains(field)? => {
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

/// An error of the interpreter.
#[derive(Debug)]
pub struct EncodeError(PyErr);

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for EncodeError {}

impl Error for EncodeError {
    fn custom<T: std::fmt::Display>(sentence: T) -> Self {
        EncodeError(PyTypeError::new_err(sentence.to_string()))
    }
}

impl From<PyErr> for EncodeError {
    fn from(error: PyErr) -> Self {
        EncodeError(error)
    }
}

impl From<EncodeError> for PyErr {
    fn from(wrong: EncodeError) -> Self {
        wrong.0
    }
}

type Done<'py> = Result<Encoded<'py>, EncodeError>;

/// The serializer.
#[derive(Clone, Copy)]
struct Encoder<'py>(Python<'py>);

impl<'py> Encoder<'py> {
    fn plain<T>(self, value: T) -> Done<'py>
    where
        T: IntoPyObject<'py>,
        PyErr: From<T::Error>,
    {
        use pyo3::BoundObject;
        Ok(Encoded::Object(
            value.into_pyobject(self.0).map_err(PyErr::from)?.into_any().into_bound(),
        ))
    }
}

/// Types that settings do not use.
macro_rules! unwritten {
    ($($name:ident($type:ty))*) => {$(
        fn $name(self, _: $type) -> Done<'py> {
            Err(EncodeError::custom(concat!("settings have no ", stringify!($type))))
        }
    )*};
}

impl<'py> Serializer for Encoder<'py> {
    type Ok = Encoded<'py>;
    type Error = EncodeError;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Items<'py>;
    type SerializeTupleVariant = Impossible<Encoded<'py>, EncodeError>;
    type SerializeMap = Impossible<Encoded<'py>, EncodeError>;
    type SerializeStruct = Attributes<'py>;
    type SerializeStructVariant = Attributes<'py>;

    unwritten! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_f32(f32) serialize_char(char)
    }

    /// A law of the user's own may be bytes or an object.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bytes(self, value: &[u8]) -> Done<'py> {
        self.plain(PyBytes::new(self.0, value))
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
            class => Ok(Encoded::Fields(class, Vec::new())),
        }
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Done<'py> {
        let made = value.serialize(self)?;
        if name != "Law" {
            return Ok(made);
        }
        let number = made.object(self.0)?.extract()?;
        let law = law::callable(self.0, number);
        law.map(Encoded::Object).ok_or_else(|| EncodeError::custom("there is no such law"))
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
            // A struct without a class is shared by several variants.
            Encoded::Fields(name, fields) if name == variant || !module.hasattr(name)? => {
                Ok(Encoded::Fields(variant, fields))
            }
            // A plain number means bytes.
            made if variant == "Bytes" => Ok(made),
            made => Ok(Encoded::Object(module.getattr(variant)?.call1((made.object(self.0)?,))?)),
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'py>, EncodeError> {
        Ok(Items(self, Vec::new()))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'py>, EncodeError> {
        Ok(Items(self, Vec::new()))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'py>, EncodeError> {
        Ok(Items(self, Vec::new()))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, EncodeError> {
        Err(EncodeError::custom("settings have no variant of several values"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, EncodeError> {
        Err(EncodeError::custom("settings have no map"))
    }

    fn serialize_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Attributes<'py>, EncodeError> {
        Ok(Attributes { encoder: self, name, fields: Vec::new() })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Attributes<'py>, EncodeError> {
        self.serialize_struct(variant, len)
    }
}

struct Items<'py>(Encoder<'py>, Vec<Bound<'py, PyAny>>);

impl<'py> SerializeSeq for Items<'py> {
    type Ok = Encoded<'py>;
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.1.push(value.serialize(self.0)?.object(self.0 .0)?);
        Ok(())
    }

    fn end(self) -> Done<'py> {
        Ok(Encoded::Object(PyTuple::new(self.0 .0, self.1)?.into_any()))
    }
}

impl<'py> SerializeTuple for Items<'py> {
    type Ok = Encoded<'py>;
    type Error = EncodeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Done<'py> {
        SerializeSeq::end(self)
    }
}

impl<'py> SerializeTupleStruct for Items<'py> {
    type Ok = Encoded<'py>;
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Done<'py> {
        SerializeSeq::end(self)
    }
}

struct Attributes<'py> {
    encoder: Encoder<'py>,
    name: &'static str,
    fields: Vec<(&'static str, Encoded<'py>)>,
}

impl<'py> SerializeStruct for Attributes<'py> {
    type Ok = Encoded<'py>;
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.fields.push((field, value.serialize(self.encoder)?));
        Ok(())
    }

    fn end(self) -> Done<'py> {
        Ok(Encoded::Fields(self.name, self.fields))
    }
}

impl<'py> SerializeStructVariant for Attributes<'py> {
    type Ok = Encoded<'py>;
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        SerializeStruct::serialize_field(self, field, value)
    }

    fn end(self) -> Done<'py> {
        SerializeStruct::end(self)
    }
}
