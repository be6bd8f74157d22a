// SPDX-License-Identifier: GPL-2.0-or-later
//! Pause frames of whole links (802.3x) or of levels (802.1Qbb): settings, what switches hold of
//! each port, and frames under way.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::Packet;

/// IEEE 802.3x flow control (802.3, annex 31B): a switch that holds `xoff` bytes received by a port
/// asks the other end of the cable, switch or host, to stop after the frame being sent, and to
/// resume once it holds at most `xon`. A packet is held until its last bit has left. A pause lasts
/// until it is revoked; real ones are refreshed.
///
/// With `per_level` it is priority flow control (IEEE 802.1Qbb, now 802.1Q, section 36): the same
/// for each of the eight levels, with one frame for all levels that change. ACKs are in level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Pause {
    /// Bytes held of one port, or of one of its levels, from which on it pauses.
    pub xoff: u64,
    /// Bytes held at which it resumes.
    pub xon: u64,
    /// Most bytes held of one port, or of one of its levels; beyond it packets are dropped as from
    /// a full queue. With `xoff` + [`Pause::headroom`], and queues without a limit of their own,
    /// nothing is dropped.
    pub buffer: u64,
    /// Pause levels, not whole links.
    pub per_level: bool,
}

/// The serialized form: the name says which kind it is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum Written {
    Pause(Thresholds),
    Pfc(Thresholds),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    #[serde(with = "In::<Size>")]
    xoff: u64,
    #[serde(with = "In::<Size>")]
    xon: u64,
    #[serde(with = "In::<Size>")]
    buffer: u64,
}

impl From<Written> for Pause {
    fn from(written: Written) -> Self {
        let (Thresholds { xoff, xon, buffer }, per_level) = match written {
            Written::Pause(thresholds) => (thresholds, false),
            Written::Pfc(thresholds) => (thresholds, true),
        };
        Pause { xoff, xon, buffer, per_level }
    }
}

impl From<Pause> for Written {
    fn from(Pause { xoff, xon, buffer, per_level }: Pause) -> Self {
        let thresholds = Thresholds { xoff, xon, buffer };
        if per_level {
            Written::Pfc(thresholds)
        } else {
            Written::Pause(thresholds)
        }
    }
}

/// Bytes of a pause frame.
pub(crate) const PAUSE_FRAME_BYTES: u16 = 64;
/// All levels, one bit each.
pub(crate) const ALL: u8 = u8::MAX;

impl Pause {
    /// Headroom: the most bytes above `xoff` that a switch comes to hold of a port or level, for a
    /// cable with this delay and time per byte, and packets of at most `packet` bytes: 3 · packet +
    /// 64 + 2 · delay · rate − 2.
    ///
    /// It is the sum of: the packet that reaches `xoff`, less a byte; what arrives while a packet
    /// of the opposite direction delays the pause frame, while the frame is sent, and while both
    /// cross the cable; and a packet that has started by then. A pause frame for another level that
    /// is in the way is shorter than a packet, and one that has not started carries both.
    pub fn headroom(delay: Ps, ps_per_byte: u32, packet: u16) -> u64 {
        let packet = u64::from(packet.max(PAUSE_FRAME_BYTES));
        (2 * delay).div_ceil(u64::from(ps_per_byte)) + 3 * packet + u64::from(PAUSE_FRAME_BYTES) - 2
    }

    pub(crate) fn check(&self, packet: u16) -> Result<()> {
        if self.xon >= self.xoff || self.xoff > self.buffer {
            return Err(Error::new(format!(
                "pause: xoff {}, xon {} and buffer {} bytes: xoff must be above xon and at most \
                 the buffer",
                self.xoff, self.xon, self.buffer
            )));
        }
        if self.buffer < u64::from(packet) {
            return Err(Error::new(format!(
                "pause: its buffer of {} bytes is less than a packet of {packet}",
                self.buffer
            )));
        }
        Ok(())
    }
}

/// What a switch holds of a packet: the link it came by, its level and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub link: u32,
    pub level: u8,
    pub bytes: u16,
}

/// The levels that a pause frame concerns, and which of them it stops; the others resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PauseFrame {
    pub levels: u8,
    pub stop: u8,
}

/// Marks packets that came by no link: those of a host itself.
const NO_LINK: u32 = u32::MAX;

/// Pause state of all ports, indexed by the link that ends at the port. For whole links level 0
/// stands for all.
#[derive(Debug)]
pub(crate) struct Pauses {
    pause: Pause,
    hosts: u32,
    /// By packet handle: the link by which it came into its switch.
    came_by: Vec<u32>,
    /// By link and level: bytes held.
    held: Vec<[u64; 8]>,
    /// By link: levels that the other end was asked to stop, one bit each.
    asked: Vec<u8>,
    /// By link: pause frames to send, with the time at which sending starts.
    frames: Vec<VecDeque<(Ps, PauseFrame)>>,
    /// Number of pauses requested.
    pub count: u64,
}

impl Pauses {
    pub fn new(pause: Pause, hosts: u32, links: usize) -> Self {
        Pauses {
            pause,
            hosts,
            came_by: Vec::new(),
            held: vec![[0; 8]; links],
            asked: vec![0; links],
            frames: vec![VecDeque::new(); links],
            count: 0,
        }
    }

    /// The opposite direction of a link.
    pub fn reverse(&self, link: u32) -> u32 {
        reverse(link, self.hosts)
    }

    /// The counter of a level, and the levels that stop with it.
    fn count_of(&self, level: u8) -> (usize, u8) {
        if self.pause.per_level {
            (level.into(), 1 << level)
        } else {
            (0, ALL)
        }
    }

    /// Whether there is room for a packet.
    pub fn has_room(&self, packet: Held) -> bool {
        self.held[packet.link as usize][self.count_of(packet.level).0] + u64::from(packet.bytes)
            <= self.pause.buffer
    }

    /// Holds a packet; returns the levels that the other end must now stop.
    pub fn hold(&mut self, handle: u32, packet: Option<Held>) -> u8 {
        let place = handle as usize;
        if self.came_by.len() <= place {
            self.came_by.resize(place + 1, NO_LINK);
        }
        self.came_by[place] = packet.map_or(NO_LINK, |packet| packet.link);
        let Some(Held { link, level, bytes }) = packet else {
            return 0;
        };
        let (count, levels) = self.count_of(level);
        let held = &mut self.held[link as usize][count];
        *held += u64::from(bytes);
        let asked = &mut self.asked[link as usize];
        if *held < self.pause.xoff || *asked & levels != 0 {
            return 0;
        }
        *asked |= levels;
        self.count += 1;
        levels
    }

    /// What is held of a packet, if it came by a link.
    pub fn of(&self, handle: u32, packet: &Packet) -> Option<Held> {
        let link = self.came_by[handle as usize];
        (link != NO_LINK).then(|| Held { link, level: packet.level(), bytes: packet.bytes })
    }

    /// Releases a packet; returns the levels that the other end may resume.
    pub fn release_held(&mut self, packet: Held) -> u8 {
        let (count, levels) = self.count_of(packet.level);
        let held = &mut self.held[packet.link as usize][count];
        *held -= u64::from(packet.bytes);
        let asked = &mut self.asked[packet.link as usize];
        if *held > self.pause.xon || *asked & levels == 0 {
            return 0;
        }
        *asked &= !levels;
        levels
    }

    /// Adds a pause frame that starts at `start`. If a frame has not started yet, it is changed
    /// instead, and the result is false.
    pub fn add_frame(&mut self, now: Ps, link: u32, start: Ps, frame: PauseFrame) -> bool {
        let frames = &mut self.frames[link as usize];
        match frames.back_mut() {
            Some((begins, says)) if *begins > now => {
                says.stop = says.stop & !frame.levels | frame.stop;
                says.levels |= frame.levels;
                false
            }
            _ => {
                frames.push_back((start, frame));
                true
            }
        }
    }

    /// Takes the pause frame that has crossed the link.
    pub fn take_frame(&mut self, link: u32) -> Option<PauseFrame> {
        self.frames[link as usize].pop_front().map(|(_, frame)| frame)
    }
}

/// The opposite direction of a link.
pub(crate) fn reverse(link: u32, hosts: u32) -> u32 {
    if link < hosts {
        link + hosts
    } else if link < 2 * hosts {
        link - hosts
    } else {
        // Both directions of a trunk are neighbours, the first even.
        link ^ 1
    }
}
