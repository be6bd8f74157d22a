// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests to stop the work of a thread, for work that takes long before a run begins.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::core::error::{Error, Result};

thread_local! {
    static REQUESTED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Lets another thread stop this one: once `requested` is set, long work ends with an error.
pub fn stop_if(requested: Arc<AtomicBool>) {
    REQUESTED.set(Some(requested));
}

/// Refuses to go on if this thread is to stop.
pub(crate) fn check() -> Result<()> {
    let stops = REQUESTED
        .with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)));
    if stops {
        return Err(Error::new("the work was stopped"));
    }
    Ok(())
}
