// SPDX-License-Identifier: GPL-2.0-or-later
//! What was published, and how it is summed up.

pub(crate) mod fig9;
pub(crate) mod hadoop;
pub(crate) mod regions;
pub(crate) mod rivals;
