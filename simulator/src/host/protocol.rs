// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between hosts and who decides when a flow's packets leave: its sender, by a window, or its receiver, by grants. Each is
//! known here by one arm of each `match`, which costs nothing; what it does stands in files of its own (sending and reply; homa).

use crate::host::congestion::Congestion;
use crate::host::hosts::Hosts;
use crate::net::network::Network;
use crate::packet::Packet;

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Window,
    Grants,
}

impl Congestion {
    #[inline]
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Congestion::Homa { .. } => Protocol::Grants,
            _ => Protocol::Window,
        }
    }
}

impl Hosts {
    #[inline]
    fn protocol(&self, slot: u32) -> Protocol {
        self.manner.of(&self.flows[slot as usize]).congestion.protocol()
    }

    /// A flow begins, `connects` with a connection that has to be set up first.
    pub(super) fn begin_flow(&mut self, net: &mut Network, slot: u32, connects: bool) {
        match self.protocol(slot) {
            Protocol::Window if connects => self.connect(net, slot),
            Protocol::Window => self.send_window(net, slot),
            Protocol::Grants => self.begin_message(net, slot),
        }
    }

    /// Data has arrived that is not acknowledged alone.
    // Not inlined, so that the way of a packet with an ACK of its own, most of what is simulated, stays short.
    #[inline(never)]
    pub(super) fn on_data(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Window => self.answer_some(net, handle, packet),
            Protocol::Grants => self.take_message(net, handle, packet),
        }
    }

    /// A probe has arrived.
    #[inline(never)]
    pub(super) fn on_probe(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Window => self.answer_probe(net, handle, packet),
            Protocol::Grants => self.asked_for(net, handle, packet.flow),
        }
    }

    /// An ACK of a flow that has not finished has arrived.
    #[inline]
    pub(super) fn on_ack(&mut self, net: &mut Network, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Window => self.open_window(net, packet),
            Protocol::Grants => self.heed_receiver(net, packet),
        }
    }

    /// The sender's timer has expired.
    pub(super) fn on_timer(&mut self, net: &mut Network, slot: u32) {
        match self.protocol(slot) {
            Protocol::Window => self.time_out(net, slot),
            Protocol::Grants => self.ask_receiver(net, slot),
        }
    }

    /// The receiver's has.
    pub(super) fn on_receiver_timer(&mut self, net: &mut Network, slot: u32) {
        match self.protocol(slot) {
            Protocol::Window => self.send_pending(net, slot),
            Protocol::Grants => self.ask_again(net, slot),
        }
    }
}
