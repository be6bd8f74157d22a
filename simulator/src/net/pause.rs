// SPDX-License-Identifier: GPL-2.0-or-later
//! Flow control of whole links (802.3x) or of each level (802.1Qbb): its settings, what switches hold of each port, and pause frames
//! on their way.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::Packet;

/// IEEE 802.3x flow control (802.3, annex 31B): a switch that holds `xoff` bytes of what came in by a port asks the other end of
/// the cable, switch or host, to send nothing after the frame being sent, and to go on when it holds no more than `xon` again.
/// A packet is held until its last bit has left. A pause lasts until it is ended; real ones are renewed.
///
/// With `per_level` it is priority flow control (IEEE 802.1Qbb, now 802.1Q, section 36): the same for each of the eight levels by
/// itself, of which ACKs are the first, with one frame for all that have something to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Pause {
    /// Bytes held of one port, or of one level of it.
    pub xoff: u64,
    /// The same.
    pub xon: u64,
    /// Bytes that can be held of one port, or of one level of it, beyond which packets are dropped as from a full queue. Nothing is
    /// where the queues have no limit of their own and this is `xoff` + [`Pause::headroom`].
    pub buffer: u64,
    /// Pauses are of levels, not of links.
    pub per_level: bool,
}

/// As it is written: which of the two it is says the name.
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
pub(crate) const PAUSE_FRAME: u16 = 64;
/// All levels, a bit each.
pub(crate) const ALL: u8 = u8::MAX;

impl Pause {
    /// Most bytes above `xoff` that a switch comes to hold of a port, or of one of its levels, whose cable has this delay and these
    /// picoseconds per byte, with packets of at most `packet` bytes: 3 · packet + 64 + 2 · delay · rate − 2.
    ///
    /// These are the packet that reaches `xoff`, all but a byte; what is sent while a packet of the other direction is in the pause
    /// frame's way, while the pause frame is sent and while both cross the cable; and a packet that has begun by then. A pause frame
    /// for another level in the way of one is shorter than the packet, and one that has not begun says both.
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

/// What a switch holds of a packet: by what link it came in, its level and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub link: u32,
    pub level: u8,
    pub bytes: u16,
}

/// Which levels a pause frame speaks of, and which of these it stops; the others go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub levels: u8,
    pub stop: u8,
}

/// Of packets that came into their switch by no link: those of a host itself.
const NO_LINK: u32 = u32::MAX;

/// Links are meant as ports: the one at the end of a link, by which packets come in. Of whole links the first level stands for all.
#[derive(Debug)]
pub(crate) struct Pauses {
    pause: Pause,
    hosts: u32,
    /// By packet: the link by which it came into the switch that holds it.
    came_by: Vec<u32>,
    /// By link and level: bytes held of what came in by it.
    held: Vec<[u64; 8]>,
    /// By link: levels that the other end was asked to stop, a bit each.
    asked: Vec<u8>,
    /// By link: pause frames that it sends, with when their sending begins.
    frames: Vec<VecDeque<(Ps, Told)>>,
    /// How often a port asked the other end to stop.
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

    /// The cable's other direction.
    pub fn reverse(&self, link: u32) -> u32 {
        reverse(link, self.hosts)
    }

    /// Where a level is counted, and the levels that stop with it.
    fn count_of(&self, level: u8) -> (usize, u8) {
        if self.pause.per_level {
            (level.into(), 1 << level)
        } else {
            (0, ALL)
        }
    }

    /// Whether a packet can be held.
    pub fn has_room(&self, packet: Held) -> bool {
        self.held[packet.link as usize][self.count_of(packet.level).0] + u64::from(packet.bytes) <= self.pause.buffer
    }

    /// A packet is held from now on; returns the levels that the other end of the link it came by has to be asked to stop.
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

    /// A packet is not held any more; returns the levels for which the other end of its link may go on.
    pub fn let_go(&mut self, packet: Held) -> u8 {
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

    /// A pause frame is to be sent by `link` from `start` on. One whose sending has not begun says the newer thing too: false.
    pub fn add_frame(&mut self, now: Ps, link: u32, start: Ps, told: Told) -> bool {
        let frames = &mut self.frames[link as usize];
        match frames.back_mut() {
            Some((begins, says)) if *begins > now => {
                says.stop = says.stop & !told.levels | told.stop;
                says.levels |= told.levels;
                false
            }
            _ => {
                frames.push_back((start, told));
                true
            }
        }
    }

    /// A pause frame has crossed the link: what it says.
    pub fn take_frame(&mut self, link: u32) -> Option<Told> {
        self.frames[link as usize].pop_front().map(|(_, told)| told)
    }
}

/// The other direction of a link's cable.
pub(crate) fn reverse(link: u32, hosts: u32) -> u32 {
    if link < hosts {
        link + hosts
    } else if link < 2 * hosts {
        link - hosts
    } else {
        // Both directions of a trunk follow each other, from an even number on.
        link ^ 1
    }
}
