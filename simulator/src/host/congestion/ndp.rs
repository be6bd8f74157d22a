// SPDX-License-Identifier: GPL-2.0-or-later
//! NDP (Handley et al., SIGCOMM 2017) has no settings but the transport's initial window. Its
//! receivers pull, so that it has no law for a window; the protocol is in `host::ndp`.

use super::reno::Reno;
use super::traits::{CongestionLaw, Protocol, Window};

#[derive(Debug, Clone, Copy)]
pub(super) struct Ndp;

impl CongestionLaw for Ndp {
    type State = Reno;
    const NAME: &str = "ndp";
    const PROTOCOL: Protocol = Protocol::Pulls;
    const ALLOWS_ACK_PER_PACKET: bool = false;

    fn start(self, _window: &mut Window, _line: u64) -> Reno {
        Reno
    }
}
