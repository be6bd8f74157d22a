// SPDX-License-Identifier: GPL-2.0-or-later
//! Packet trimming (Cheng et al., NSDI 2014), as NDP's switches do it (Handley et al., SIGCOMM
//! 2017, section 3.1): a full queue cuts the payload of a packet and forwards the header.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Octets, Size};
use crate::packet::chain::Chain;
use crate::packet::{Kind, Pool};
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::traits::{admits_all, AdmitAll, QueueDiscipline, QueueKind};

/// Two FIFOs: data, and before it headers and control packets, such as ACKs. Data that does not fit
/// is trimmed; every other time the last data packet that waits is, in its stead. Up to ten headers
/// are served for each data packet, and a full queue of headers drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trim {
    /// Bytes of data, without the packet being sent.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
    /// Bytes of headers and control packets.
    #[serde(with = "In::<Size>")]
    pub headers: u64,
    /// Bytes of a trimmed packet.
    #[serde(with = "In::<Octets>")]
    pub header: u16,
}

/// Headers served before a data packet has its turn.
const TURNS: u8 = 10;

impl QueueKind for Trim {
    admits_all!();
    type Discipline = TrimQueue;
    const NAME: &str = "trim";
    const PAUSE_CONFLICT: Option<&'static str> =
        Some("a queue that trims drops no data, so that it needs no pauses");

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn check(&self) -> Result<()> {
        if self.header == 0 || self.headers < u64::from(self.header) {
            return Err(Error::new(format!(
                "its headers' {} bytes must hold a header, of {} bytes, which must be above 0",
                self.headers, self.header
            )));
        }
        Ok(())
    }

    fn discipline(&self, _ps_per_byte: u32) -> TrimQueue {
        TrimQueue { settings: *self, ..TrimQueue::default() }
    }
}

impl Default for Trim {
    /// Eight packets of 1,500 bytes, and the paper's room for 1,125 headers of 64 bytes each.
    fn default() -> Self {
        Trim { limit: 12_000, headers: 72_000, header: 64 }
    }
}

#[derive(Debug, Default)]
struct Line {
    chain: Chain,
    bytes: u64,
    packets: u32,
}

impl Line {
    fn push(&mut self, handle: u32, pool: &mut Pool) {
        self.bytes += u64::from(pool.get(handle).bytes);
        self.packets += 1;
        self.chain.push(handle, pool);
    }

    fn without(&mut self, handle: u32, pool: &Pool) -> u32 {
        self.bytes -= u64::from(pool.get(handle).bytes);
        self.packets -= 1;
        handle
    }

    fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let handle = self.chain.pop(pool)?;
        Some(self.without(handle, pool))
    }

    fn pop_last(&mut self, pool: &mut Pool) -> Option<u32> {
        let handle = self.chain.pop_last(pool)?;
        Some(self.without(handle, pool))
    }
}

#[derive(Debug, Default)]
pub(crate) struct TrimQueue {
    settings: Trim,
    data: Line,
    headers: Line,
    /// Headers served since the last data packet.
    served: u8,
    /// The next packet that does not fit takes the place of the last one.
    replaces: bool,
}

impl TrimQueue {
    fn push_header(&mut self, handle: u32, pool: &mut Pool) -> bool {
        let fits = self.headers.bytes + u64::from(pool.get(handle).bytes) <= self.settings.headers;
        if fits {
            self.headers.push(handle, pool);
        }
        fits
    }

    fn trim(&mut self, handle: u32, pool: &mut Pool) -> bool {
        let packet = pool.get_mut(handle);
        packet.bytes = packet.bytes.min(self.settings.header);
        self.push_header(handle, pool)
    }
}

impl QueueDiscipline for TrimQueue {
    fn enqueue(&mut self, _now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool {
        let packet = pool.get(handle);
        let (kind, bytes) = (packet.kind, u64::from(packet.bytes));
        if !matches!(kind, Kind::Data | Kind::Datagram) || packet.bytes <= self.settings.header {
            return self.push_header(handle, pool);
        }
        if self.data.bytes + bytes > self.settings.limit {
            self.replaces ^= true;
            if kind == Kind::Datagram {
                return false;
            }
            let last = if self.replaces { None } else { self.data.pop_last(pool) };
            let Some(last) = last else { return self.trim(handle, pool) };
            let kept = pool.get(last).kind == Kind::Data && self.trim(last, pool);
            if !kept {
                evicted.push(last);
            }
            if self.data.bytes + bytes > self.settings.limit {
                return self.trim(handle, pool);
            }
        }
        self.data.push(handle, pool);
        true
    }

    fn dequeue(
        &mut self,
        _now: Ps,
        _stopped: u8,
        pool: &mut Pool,
        _dropped: &mut Vec<u32>,
    ) -> Next {
        let turn = self.served >= TURNS && self.data.packets > 0;
        if let Some(handle) = (!turn).then(|| self.headers.pop(pool)).flatten() {
            self.served = (self.served + 1).min(TURNS);
            return Some(handle).into();
        }
        self.served = 0;
        self.data.pop(pool).into()
    }

    fn bytes(&self) -> u64 {
        self.data.bytes + self.headers.bytes
    }

    fn len(&self) -> usize {
        (self.data.packets + self.headers.packets) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    /// Of five packets for room for two, the third and the fifth are trimmed, and in the stead of
    /// the fourth the one that then waits last. Headers leave first.
    #[test]
    fn what_does_not_fit_is_trimmed() {
        let settings = Trim { limit: 3_000, ..Trim::default() };
        let (mut pool, mut queue) = (Pool::default(), settings.discipline(800));
        for number in 0..5 {
            let datagram = Packet::datagram(0, 0, 0, 1_500);
            let handle = pool.add(Packet { seq: number, kind: Kind::Data, ..datagram });
            assert!(queue.enqueue(0, handle, &mut pool, &mut Vec::new()));
        }
        let mut left = Vec::new();
        while let Next::Send { handle, .. } = queue.dequeue(0, 0, &mut pool, &mut Vec::new()) {
            left.push((pool.get(handle).seq, pool.get(handle).bytes));
        }
        assert_eq!(left, [(2, 64), (1, 64), (4, 64), (0, 1_500), (3, 1_500)]);
        assert_eq!((queue.bytes(), queue.len()), (0, 0));
    }

    /// Ten headers for each data packet; a full queue of headers drops.
    #[test]
    fn headers_do_not_starve_data() {
        let settings = Trim { limit: 3_000, headers: 20 * 64, header: 64 };
        let (mut pool, mut queue) = (Pool::default(), settings.discipline(800));
        let data = Packet { kind: Kind::Data, ..Packet::datagram(0, 0, 0, 1_500) };
        let mut refused = 0;
        for number in 0..30 {
            let handle = pool.add(Packet { seq: number, ..data });
            refused += usize::from(!queue.enqueue(0, handle, &mut pool, &mut Vec::new()));
        }
        let mut sizes = Vec::new();
        while let Next::Send { handle, .. } = queue.dequeue(0, 0, &mut pool, &mut Vec::new()) {
            sizes.push(pool.get(handle).bytes);
        }
        let expected = [vec![64; 10], vec![1_500], vec![64; 10], vec![1_500]].concat();
        assert_eq!(sizes, expected);
        assert!(refused > 0);
    }
}
