// SPDX-License-Identifier: GPL-2.0-or-later
//! A law of the user's own: a program that is called for ACKs, marks, losses and timeouts of one
//! flow, and sets its window and pace.
//!
//! It sees every ACK. The window that it sets is rounded down to the steps of all windows, and the
//! law sees the rounded one at the next call.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::code::Code;
use super::traits::{AckInfo, CongestionLaw, Echo, LawState, Window, ONE};
use crate::core::time::{human, Ps};

/// Settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The program.
    pub law: Code,
    /// Its data is ECN-capable, and receivers echo each mark, as with DCTCP.
    pub ecn: bool,
}

/// What a law sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sending {
    /// Packets that may be under way; below one, one may.
    pub window: f64,
    /// In bit/s; 0: the window alone decides.
    pub pace: f64,
}

/// Why a law is called.
#[derive(Debug, Clone, Copy)]
pub enum Signal<'a> {
    /// The flow begins, with the transport's initial window.
    Start(Ps),
    /// An ACK has arrived.
    Ack(&'a AckInfo),
    /// After the ACK: it has the first mark of a window.
    Mark(Ps),
    /// Later packets show that one is lost: once in a recovery.
    Loss(Ps),
    /// The retransmission timer has expired.
    Timeout(Ps),
}

/// A program for flows.
pub trait OwnLaw: Debug + Send + Sync {
    /// The law of a new flow.
    ///
    /// # Errors
    /// What went wrong, without the place.
    fn start(&self) -> Result<Box<dyn FlowLaw>, String>;

    /// Whether flows may run on several threads, with the same results.
    fn runs_in_parts(&self) -> bool;

    /// For whoever made it.
    fn as_any(&self) -> &dyn Any;
}

/// The law of a flow.
pub trait FlowLaw: Debug + Send {
    /// Reacts to a signal.
    ///
    /// # Errors
    /// What went wrong, without the place. It ends the run.
    fn on(&mut self, signal: &Signal, sending: &mut Sending) -> Result<(), String>;

    /// The same law, for the next flow of a connection. The one before has ended.
    fn copy(&self) -> Box<dyn FlowLaw>;
}

impl Signal<'_> {
    /// The name of its callback.
    pub fn callback(&self) -> &'static str {
        match self {
            Signal::Start(_) => "on_start",
            Signal::Ack(_) => "on_ack",
            Signal::Mark(_) => "on_mark",
            Signal::Loss(_) => "on_loss",
            Signal::Timeout(_) => "on_timeout",
        }
    }

    /// The time.
    pub fn now(&self) -> Ps {
        match *self {
            Signal::Ack(ack) => ack.now,
            Signal::Start(now) | Signal::Mark(now) | Signal::Loss(now) | Signal::Timeout(now) => {
                now
            }
        }
    }
}

impl Sending {
    fn of(window: &Window) -> Self {
        let packets = f64::from(window.cwnd) / f64::from(ONE);
        Sending { window: packets, pace: window.pace as f64 }
    }

    /// Reacts as Reno does, for callbacks that a law leaves out.
    pub fn react(&mut self, signal: &Signal) {
        match signal {
            Signal::Start(_) | Signal::Ack(_) | Signal::Mark(_) => {}
            Signal::Loss(_) => self.window = (self.window / 2.0).max(2.0),
            Signal::Timeout(_) => self.window = 1.0,
        }
    }

    /// Rounds down to steps of a window and to bit/s.
    fn set(self, window: &mut Window) -> Result<(), String> {
        for (what, value) in [("window", self.window), ("pace", self.pace)] {
            if value.is_nan() || value < 0.0 {
                return Err(format!("it sets its {what} to {value}: it must be 0 or more"));
            }
        }
        let most = f64::from(window.bounds.most * ONE);
        window.cwnd = (self.window * f64::from(ONE)).min(most) as u32;
        window.pace = if self.pace > 0.0 { (self.pace as u64).max(1) } else { 0 };
        Ok(())
    }
}

/// The failure of a law that ends a run: the earliest.
#[derive(Debug)]
pub(crate) struct Failure {
    place: (Ps, u32),
    pub sentence: String,
}

/// The failure of a run's laws, if any; all its parts share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<Option<Failure>>>);

/// What a thread keeps of the run whose laws it calls.
#[derive(Debug, Default)]
struct Called {
    failures: Failures,
    /// One of them is this thread's: it calls no law any more.
    failed: bool,
}

thread_local! {
    static CALLED: RefCell<Called> = RefCell::default();
}

impl Failures {
    /// Those of a run that begins on this thread.
    pub fn begin() -> Self {
        let failures = Failures::default();
        failures.collect();
        failures
    }

    /// Those of the run that has begun on this thread.
    pub fn of_run() -> Self {
        CALLED.with_borrow(|called| called.failures.clone())
    }

    /// Collects those of laws that this thread calls from now on.
    pub fn collect(&self) {
        CALLED.with_borrow_mut(|called| {
            if !Arc::ptr_eq(&called.failures.0, &self.0) {
                *called = Called { failures: self.clone(), failed: false };
            }
        });
    }

    /// Whether a law that this thread called has failed.
    fn has_failed() -> bool {
        CALLED.with_borrow(|called| called.failed)
    }

    /// The earliest.
    pub fn take(&self) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn add(failure: Failure) {
        CALLED.with_borrow_mut(|called| {
            called.failed = true;
            let mut first = called.failures.0.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|first| failure.place < first.place) {
                *first = Some(failure);
            }
        });
    }
}

#[derive(Debug)]
pub(crate) struct CustomState {
    code: Code,
    /// None: no flow has begun, or it has failed.
    law: Option<Box<dyn FlowLaw>>,
    flow: u32,
    transport: u8,
}

impl Clone for CustomState {
    fn clone(&self) -> Self {
        CustomState { law: self.law.as_ref().map(|law| law.copy()), ..*self }
    }
}

impl CongestionLaw for Custom {
    type State = Box<CustomState>;
    const NAME: &str = "custom";
    const ECHO: Echo = Echo::Exactly;
    const IS_SCALABLE: bool = true;
    const SEES_EVERY_ACK: bool = true;

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.ecn
    }

    fn start(self, _window: &mut Window, _line: u64) -> Box<CustomState> {
        Box::new(CustomState { code: self.law, law: None, flow: 0, transport: 0 })
    }
}

impl CustomState {
    /// A flow of this number and transport begins.
    pub fn serve(&mut self, window: &mut Window, now: Ps, (flow, transport): (u32, u8)) {
        (self.flow, self.transport) = (flow, transport);
        let signal = Signal::Start(now);
        if self.law.is_some() || Failures::has_failed() {
            return;
        }
        match self.code.start() {
            Ok(law) => {
                self.law = Some(law);
                self.call(window, &signal);
            }
            Err(what) => self.fail(&signal, &what),
        }
    }

    fn call(&mut self, window: &mut Window, signal: &Signal) {
        let Some(law) = self.law.as_mut().filter(|_| !Failures::has_failed()) else { return };
        let mut sending = Sending::of(window);
        if let Err(what) = law.on(signal, &mut sending).and_then(|()| sending.set(window)) {
            self.fail(signal, &what);
        }
    }

    /// Ends the run at its next stop.
    #[cold]
    fn fail(&mut self, signal: &Signal, what: &str) {
        self.law = None;
        let (now, Self { flow, transport, .. }) = (signal.now(), &*self);
        let (callback, at) = (signal.callback(), human(now));
        let sentence = format!(
            "congestion: the law of transport {transport} failed at {at} in {callback} of flow \
             {flow}: {what}"
        );
        Failures::add(Failure { place: (now, *flow), sentence });
    }
}

impl LawState for CustomState {
    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        self.call(window, &Signal::Ack(ack));
    }

    fn on_mark(&mut self, window: &mut Window, now: Ps) {
        self.call(window, &Signal::Mark(now));
    }

    fn on_loss(&mut self, window: &mut Window, now: Ps) {
        self.call(window, &Signal::Loss(now));
    }

    fn on_timeout(&mut self, window: &mut Window, now: Ps) {
        self.call(window, &Signal::Timeout(now));
    }
}
