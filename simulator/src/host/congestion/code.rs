// SPDX-License-Identifier: GPL-2.0-or-later
//! The programs of laws of the user's own. A process keeps each of them to its end, so that settings
//! with one are as small as others.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::custom::{FlowLaw, OwnLaw};

/// A program: WebAssembly, which is equal for equal bytes, or whatever implements [`OwnLaw`].
#[derive(Clone, Copy)]
pub struct Code(&'static Entry);

struct Entry {
    number: u64,
    /// Of WebAssembly, binary or text.
    bytes: Option<Vec<u8>>,
    law: Box<dyn OwnLaw>,
}

static ENTRIES: Mutex<Vec<&Entry>> = Mutex::new(Vec::new());

/// How WebAssembly in hexadecimal digits begins; text cannot.
const HEX_MAGIC: &str = "0061736d";
const HEX: &[u8; 16] = b"0123456789abcdef";

impl Code {
    /// A program that is not written.
    pub fn of(law: impl OwnLaw + 'static) -> Self {
        Self::add(None, Box::new(law))
    }

    fn add(bytes: Option<Vec<u8>>, law: Box<dyn OwnLaw>) -> Self {
        let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        let entry: &'static Entry =
            Box::leak(Box::new(Entry { number: entries.len() as u64, bytes, law }));
        entries.push(entry);
        Code(entry)
    }

    fn find(is_it: impl Fn(&Entry) -> bool) -> Option<Self> {
        let entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|entry| is_it(entry)).map(|entry| Code(entry))
    }

    /// The first program for which a function has a value, with that value.
    pub fn find_law<T>(of: impl Fn(&dyn OwnLaw) -> Option<T>) -> Option<(Self, T)> {
        let code = Self::find(|entry| of(&*entry.law).is_some())?;
        of(&*code.0.law).map(|value| (code, value))
    }

    /// WebAssembly, binary or text.
    ///
    /// # Errors
    /// It is not a law: a sentence without the place.
    pub fn webassembly(bytes: &[u8]) -> Result<Self, String> {
        if let Some(code) = Self::find(|entry| entry.bytes.as_deref() == Some(bytes)) {
            return Ok(code);
        }
        #[cfg(feature = "wasm")]
        return Ok(Self::add(Some(bytes.to_vec()), Box::new(super::wasm::Wasm::new(bytes)?)));
        #[cfg(not(feature = "wasm"))]
        Err("this program was built without WebAssembly: use the Python package".to_owned())
    }

    /// Its number in this process.
    pub fn number(self) -> u64 {
        self.0.number
    }

    /// The program with this number.
    pub fn numbered(number: u64) -> Option<Self> {
        Self::find(|entry| entry.number == number)
    }

    /// The program.
    pub fn law(self) -> &'static dyn OwnLaw {
        &*self.0.law
    }

    pub(super) fn runs_in_parts(self) -> bool {
        self.0.law.runs_in_parts()
    }

    pub(super) fn start(self) -> Result<Box<dyn FlowLaw>, String> {
        self.0.law.start()
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({})", self.0.number)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(HEX[digit as usize]))
        .collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Text stays text, and binary code becomes hexadecimal digits. A format that no human reads gets
/// bytes, and the number of what has none, as a newtype of the name `Law`.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some(bytes) = &self.0.bytes else {
            return if to.is_human_readable() {
                Err(serde::ser::Error::custom(
                    "a law in Python cannot be written as JSON: write it in WebAssembly",
                ))
            } else {
                to.serialize_newtype_struct("Law", &self.0.number)
            };
        };
        match std::str::from_utf8(bytes) {
            _ if !to.is_human_readable() => to.serialize_bytes(bytes),
            Ok(text) if !bytes.starts_with(b"\0") => to.serialize_str(text),
            _ => to.serialize_str(&hex(bytes)),
        }
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_bytes(Written)
    }
}

struct Written;

impl Visitor<'_> for Written {
    type Value = Code;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebAssembly, as text or hexadecimal digits")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Code, E> {
        let digits = std::str::from_utf8(bytes).ok().filter(|text| text.starts_with(HEX_MAGIC));
        let binary = digits.and_then(from_hex);
        Code::webassembly(binary.as_deref().unwrap_or(bytes)).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Code, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Code, E> {
        Code::numbered(number).ok_or_else(|| E::custom("there is no such law"))
    }
}
