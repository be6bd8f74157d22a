// SPDX-License-Identifier: GPL-2.0-or-later
//! Laws of congestion control in Python: any callable that makes an object with callbacks.
//!
//! The thread that simulates takes the interpreter's lock for each call. An exception waits on that
//! thread until the run has ended for it.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_long;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{ffi, intern, Py};
use qjump_sim::{AckInfo, Code, Congestion, FlowLaw, OwnLaw, Scheme, Sending, Signal};

thread_local! {
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// The interpreter's number of the thread that may be in a run's callbacks; 0: none may.
#[derive(Debug, Clone, Default)]
pub struct Calling(Arc<AtomicU64>);

/// Looks at whether an interrupted run has left its callback.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct PythonLaw {
    make: Py<PyAny>,
}

#[derive(Debug, Clone)]
struct PythonFlow {
    law: Arc<Py<PyAny>>,
    /// What the law's attributes are.
    known: Option<Sending>,
}

/// The program whose laws a callable makes.
pub fn code(make: &Bound<'_, PyAny>) -> Code {
    let same = |law: &dyn OwnLaw| {
        let known = law.as_any().downcast_ref::<PythonLaw>()?;
        known.make.is(make).then_some(())
    };
    Code::find_law(same)
        .map_or_else(|| Code::of(PythonLaw { make: make.clone().unbind() }), |(code, ())| code)
}

/// The callable of a program's number.
pub fn callable(py: Python<'_>, number: u64) -> Option<Bound<'_, PyAny>> {
    let law = Code::numbered(number)?.law();
    Some(law.as_any().downcast_ref::<PythonLaw>()?.make.bind(py).clone())
}

/// Whether a scheme has a law in Python.
pub fn is_python(scheme: &Scheme) -> bool {
    [Some(scheme.transport)].into_iter().chain(scheme.others).flatten().any(|transport| {
        matches!(transport.congestion, Congestion::Custom(custom)
            if custom.law.law().as_any().is::<PythonLaw>())
    })
}

impl Calling {
    /// Runs work whose laws are in Python. The thread is the interpreter's meanwhile, without its
    /// lock.
    pub fn during<T: Send>(&self, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        let result = Python::attach(|py| {
            let number = py.import("threading")?.call_method0("get_ident")?.extract()?;
            self.0.store(number, Ordering::SeqCst);
            Ok(py.detach(work))
        });
        self.0.store(0, Ordering::SeqCst);
        result
    }

    /// After an interrupt: raises `KeyboardInterrupt` in the callback, if there is one, and again
    /// while the callback catches it, for about a second. An interpreter that ends takes no thread
    /// back: it would abort.
    pub fn interrupt(&self, py: Python<'_>) {
        for _ in 0..LOOKS {
            let number = self.0.load(Ordering::SeqCst);
            if number == 0 {
                return;
            }
            raise_in(py, number);
            py.detach(|| std::thread::sleep(LOOK));
        }
    }
}

/// Raises `KeyboardInterrupt` in a thread, at its next step in Python.
#[allow(unsafe_code)]
fn raise_in(py: Python<'_>, thread: u64) {
    let class = py.get_type::<PyKeyboardInterrupt>();
    // SAFETY: the interpreter's lock is held, and the class is alive; without such a thread it does
    // nothing.
    unsafe { ffi::PyThreadState_SetAsyncExc(thread as c_long, class.as_ptr()) };
}

/// The exception that ended a run on this thread, with the simulator's sentence as a note.
pub fn raised(sentence: &str) -> Option<PyErr> {
    let error = RAISED.take()?;
    Some(Python::attach(|py| match error.add_note(py, sentence) {
        Ok(()) => error,
        Err(other) => other,
    }))
}

/// Calls Python; keeps an exception.
fn calling<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, String> {
    Python::attach(|py| {
        call(py).map_err(|error| {
            let sentence = error.to_string();
            RAISED.set(Some(error));
            sentence
        })
    })
}

impl OwnLaw for PythonLaw {
    fn start(&self) -> Result<Box<dyn FlowLaw>, String> {
        let law = calling(|py| self.make.call0(py))?;
        Ok(Box::new(PythonFlow { law: Arc::new(law), known: None }))
    }

    fn runs_in_parts(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FlowLaw for PythonFlow {
    fn on(&mut self, signal: &Signal, sending: &mut Sending) -> Result<(), String> {
        calling(|py| self.call(py, signal, sending))
    }

    fn copy(&self) -> Box<dyn FlowLaw> {
        Box::new(self.clone())
    }
}

impl PythonFlow {
    fn call(&mut self, py: Python<'_>, signal: &Signal, sending: &mut Sending) -> PyResult<()> {
        let law = self.law.bind(py);
        let (window, pace) = (intern!(py, "window"), intern!(py, "pace"));
        for (name, now, known) in [
            (window, sending.window, self.known.map(|known| known.window)),
            (pace, sending.pace, self.known.map(|known| known.pace)),
        ] {
            // The pace of a new law is its own.
            if known.map_or(name.is(window), |known| known.to_bits() != now.to_bits()) {
                law.setattr(name, now)?;
            }
        }
        match *signal {
            Signal::Start(now) => law.call_method1(intern!(py, "on_start"), (now,))?,
            Signal::Ack(ack) => law.call_method1(intern!(py, "on_ack"), (seen(py, ack)?,))?,
            Signal::Mark(now) => law.call_method1(intern!(py, "on_mark"), (now,))?,
            Signal::Loss(now) => law.call_method1(intern!(py, "on_loss"), (now,))?,
            Signal::Timeout(now) => law.call_method1(intern!(py, "on_timeout"), (now,))?,
        };
        *sending = Sending {
            window: law.getattr(window)?.extract()?,
            pace: law.getattr(pace)?.extract()?,
        };
        self.known = Some(*sending);
        Ok(())
    }
}

/// An ACK as Python's `Ack`.
fn seen<'py>(py: Python<'py>, ack: &AckInfo) -> PyResult<Bound<'py, PyAny>> {
    static ACK: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let AckInfo { now, packets, round_trip, marked, under_way, bytes, grows, round, .. } = *ack;
    ACK.import(py, "qjump_sim", "Ack")?
        .call1((now, packets, round_trip, marked, under_way, bytes, grows, round))
}
