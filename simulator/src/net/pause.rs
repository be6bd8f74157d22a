// SPDX-License-Identifier: GPL-2.0-or-later
//! 802.3x flow control: its settings, what switches hold of each port, and pause frames on their way.

use std::collections::VecDeque;

use crate::core::error::{Error, Result};
use crate::core::time::Ps;

/// IEEE 802.3x flow control (802.3, annex 31B): a switch that holds `xoff` bytes of what came in by a port asks the other end of
/// the cable, switch or host, to send nothing after the frame being sent, and to go on when it holds no more than `xon` again.
/// A packet is held until its last bit has left. A pause lasts until it is ended; real ones are renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Bytes held of one port.
    pub xoff: u64,
    /// Bytes held of one port.
    pub xon: u64,
    /// Bytes that can be held of one port, beyond which packets are dropped as from a full queue. Nothing is where the queues have
    /// no limit of their own and this is `xoff` + [`Pause::headroom`].
    pub buffer: u64,
}

/// Bytes of a pause frame.
pub(crate) const PAUSE_FRAME: u16 = 64;

impl Pause {
    /// Most bytes above `xoff` that a switch comes to hold of a port whose cable has this delay and these picoseconds per byte,
    /// with packets of at most `packet` bytes: 3 · packet + 64 + 2 · delay · rate − 2.
    ///
    /// These are the packet that reaches `xoff`, all but a byte; what is sent while a packet of the other direction is in the pause
    /// frame's way, while the pause frame is sent and while both cross the cable; and a packet that has begun by then.
    pub fn headroom(delay: Ps, ps_per_byte: u32, packet: u16) -> u64 {
        let packet = u64::from(packet.max(PAUSE_FRAME));
        (2 * delay).div_ceil(u64::from(ps_per_byte)) + 3 * packet + u64::from(PAUSE_FRAME) - 2
    }

    pub(crate) fn check(&self, packet: u16) -> Result<()> {
        if self.xon >= self.xoff || self.xoff > self.buffer {
            return Err(Error::new(format!(
                "pause: {}, {} and {} bytes are not xoff above xon and at most the buffer",
                self.xoff, self.xon, self.buffer
            )));
        }
        if self.buffer < u64::from(packet) {
            return Err(Error::new(format!("pause: its buffer of {} bytes holds no packet of {packet}", self.buffer)));
        }
        Ok(())
    }
}

/// Of packets that came into their switch by no link: those of a host itself.
const NO_LINK: u32 = u32::MAX;

/// Links are meant as ports: the one at the end of a link, by which packets come in.
#[derive(Debug)]
pub(crate) struct Pauses {
    pause: Pause,
    hosts: u32,
    /// By packet: the link by which it came into the switch that holds it.
    came_by: Vec<u32>,
    /// By link: bytes held of what came in by it.
    held: Vec<u64>,
    /// By link: the other end was asked to stop.
    asked: Vec<bool>,
    /// By link: pause frames that it sends, with when their sending begins and whether they stop the other end.
    frames: Vec<VecDeque<(Ps, bool)>>,
    /// How often a port asked the other end to stop.
    pub count: u64,
}

impl Pauses {
    pub fn new(pause: Pause, hosts: u32, links: usize) -> Self {
        Pauses {
            pause,
            hosts,
            came_by: Vec::new(),
            held: vec![0; links],
            asked: vec![false; links],
            frames: vec![VecDeque::new(); links],
            count: 0,
        }
    }

    /// The cable's other direction.
    pub fn reverse(&self, link: u32) -> u32 {
        if link < self.hosts {
            link + self.hosts
        } else if link < 2 * self.hosts {
            link - self.hosts
        } else {
            // Both directions of a trunk follow each other, from an even number on.
            link ^ 1
        }
    }

    /// Whether a packet by this link can be held.
    pub fn has_room(&self, link: u32, bytes: u16) -> bool {
        self.held[link as usize] + u64::from(bytes) <= self.pause.buffer
    }

    /// A packet is held from now on; returns whether the other end of the link it came by has to be asked to stop.
    pub fn hold(&mut self, handle: u32, link: Option<u32>, bytes: u16) -> bool {
        let place = handle as usize;
        if self.came_by.len() <= place {
            self.came_by.resize(place + 1, NO_LINK);
        }
        self.came_by[place] = link.unwrap_or(NO_LINK);
        let Some(link) = link else {
            return false;
        };
        let held = &mut self.held[link as usize];
        *held += u64::from(bytes);
        let asks = *held >= self.pause.xoff && !self.asked[link as usize];
        self.asked[link as usize] |= asks;
        self.count += u64::from(asks);
        asks
    }

    /// The link by which a packet came that is held.
    pub fn came_by(&self, handle: u32) -> Option<u32> {
        Some(self.came_by[handle as usize]).filter(|&link| link != NO_LINK)
    }

    /// Bytes that came by the link are not held any more; returns whether its other end may go on.
    pub fn let_go(&mut self, link: u32, bytes: u16) -> bool {
        let held = &mut self.held[link as usize];
        *held -= u64::from(bytes);
        let ends = *held <= self.pause.xon && self.asked[link as usize];
        self.asked[link as usize] &= !ends;
        ends
    }

    /// A pause frame is to be sent by `link` from `start` on. One whose sending has not begun says the newer thing instead: false.
    pub fn add_frame(&mut self, now: Ps, link: u32, start: Ps, stop: bool) -> bool {
        let frames = &mut self.frames[link as usize];
        match frames.back_mut() {
            Some((begins, says)) if *begins > now => {
                *says = stop;
                false
            }
            _ => {
                frames.push_back((start, stop));
                true
            }
        }
    }

    /// A pause frame has crossed the link: whether it stops the other end.
    pub fn take_frame(&mut self, link: u32) -> Option<bool> {
        self.frames[link as usize].pop_front().map(|(_, stop)| stop)
    }
}
