// SPDX-License-Identifier: GPL-2.0-or-later
//! Who decides when a flow's packets leave: the sender by a window, or the receiver by grants or
//! pulls.
//!
//! Each protocol is known here by one arm of each `match`, which costs nothing. Windows are in
//! `flow_events` and `acks`, grants in `homa`, pulls in `ndp`.

use crate::host::congestion::{Congestion, Protocol};
use crate::host::hosts::Hosts;
use crate::net::network::Network;
use crate::packet::Packet;

impl Congestion {
    /// Whether receivers decide when packets leave.
    pub(crate) fn grants(&self) -> bool {
        self.protocol() != Protocol::Window
    }
}

impl Hosts {
    #[inline]
    fn protocol(&self, slot: u32) -> Protocol {
        self.config.of(&self.flows[slot as usize]).congestion.protocol()
    }

    /// Starts a flow; `connects`: it must open a connection first.
    pub(super) fn begin_flow(&mut self, net: &mut Network, slot: u32, connects: bool) {
        match self.protocol(slot) {
            Protocol::Window if connects => self.connect(net, slot),
            Protocol::Window => self.send_window(net, slot),
            Protocol::Grants => self.begin_message(net, slot),
            Protocol::Pulls => self.begin_pulled(net, slot),
        }
    }

    /// Data has arrived that does not get an ACK of its own.
    // Not inlined, so that the common path, a packet with an ACK of its own, stays short.
    #[inline(never)]
    pub(super) fn on_data(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Window => self.on_data_with_delayed_ack(net, handle, packet),
            Protocol::Grants => self.on_homa_data(net, handle, packet),
            Protocol::Pulls => self.on_pulled_data(net, handle, packet),
        }
    }

    /// A probe has arrived.
    #[inline(never)]
    pub(super) fn on_probe(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Window => self.answer_probe(net, handle, packet),
            Protocol::Grants => self.on_homa_probe(net, handle, packet.flow),
            Protocol::Pulls => self.on_pulled_probe(net, handle, packet.flow),
        }
    }

    /// An ACK of a flow that has not finished has arrived.
    #[inline]
    pub(super) fn on_ack(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Window => self.open_window(net, handle, packet),
            Protocol::Grants | Protocol::Pulls => self.on_control(net, packet),
        }
    }

    // One comparison fewer for each ACK of a window.
    #[inline(never)]
    fn on_control(&mut self, net: &mut Network, packet: &Packet) {
        match self.protocol(packet.flow) {
            Protocol::Pulls => self.on_pulled_control(net, packet),
            _ => self.on_homa_control(net, packet),
        }
    }

    /// The sender's timer has expired.
    pub(super) fn on_timer(&mut self, net: &mut Network, slot: u32) {
        match self.protocol(slot) {
            Protocol::Window => self.time_out(net, slot),
            Protocol::Grants => self.send_homa_probe(net, slot),
            Protocol::Pulls => self.send_pulled_probe(net, slot),
        }
    }

    /// The receiver's timer has expired.
    pub(super) fn on_receiver_timer(&mut self, net: &mut Network, slot: u32) {
        match self.protocol(slot) {
            Protocol::Window => self.send_pending_ack(net, slot),
            Protocol::Grants => self.send_resend(net, slot),
            // Its receivers have no timer of a flow.
            Protocol::Pulls => {}
        }
    }
}
