// SPDX-License-Identifier: GPL-2.0-or-later
//! In-band telemetry (INT): every port adds a record to a data packet that it begins to send, and
//! the packet's ACK takes the records back.
//!
//! Packets have no room for records, so that they are kept here by the packet's handle, which its
//! ACK inherits. Networks without telemetry have none of this.

use crate::core::time::Ps;

/// What a port records in a packet (Li et al., SIGCOMM 2019, figure 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortRecord {
    pub link: u32,
    pub ps_per_byte: u32,
    /// When the packet begins to leave.
    pub at: Ps,
    /// Bytes that the port has sent before this packet.
    pub sent: u64,
    /// Bytes that wait behind it.
    pub waiting: u64,
}

/// The records of all packets.
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// Links below this number are hosts' own: the first of a path.
    hosts: u32,
    /// Bytes sent, by port.
    sent: Vec<u64>,
    /// By the packet's handle.
    records: Vec<Vec<PortRecord>>,
}

impl Telemetry {
    pub fn new(hosts: u32, ports: usize) -> Self {
        Telemetry { hosts, sent: vec![0; ports], records: Vec::new() }
    }

    /// A port begins to send a packet of so many bytes. `record`: its record, without the bytes
    /// sent; none: the packet takes no record.
    pub fn pass(&mut self, port: u32, bytes: u16, record: Option<(u32, PortRecord)>) {
        let sent = &mut self.sent[port as usize];
        if let Some((handle, record)) = record {
            let place = handle as usize;
            if place >= self.records.len() {
                self.records.resize_with(place + 1, Vec::new);
            }
            let records = &mut self.records[place];
            // The handle may have been another packet's.
            if record.link < self.hosts {
                records.clear();
            }
            records.push(PortRecord { sent: *sent, ..record });
        }
        *sent += u64::from(bytes);
    }

    /// The records that this packet, or the packet that it answers, has taken along its path.
    pub fn records(&self, handle: u32) -> &[PortRecord] {
        self.records.get(handle as usize).map_or(&[], Vec::as_slice)
    }
}

/// The greatest of a quantity that the ports of a path have, by what changes between two records of
/// each; smoothed over a base round trip.
#[derive(Debug, Clone)]
pub(crate) struct PathMeter {
    last: Vec<PortRecord>,
    value: u64,
    /// The value is new since it was last taken.
    fresh: bool,
}

impl PathMeter {
    /// `value`: the quantity before anything is measured.
    pub fn new(value: u64) -> Self {
        PathMeter { last: Vec::new(), value, fresh: false }
    }

    /// New records have come; `quantity` is a port's, by its last record and its new one. The
    /// first records of a path only begin it, and older ones than the last are ignored.
    pub fn update(
        &mut self,
        new: &[PortRecord],
        base: Ps,
        quantity: impl Fn(&PortRecord, &PortRecord) -> u64,
    ) {
        let pairs = || self.last.iter().zip(new);
        let same = self.last.len() == new.len() && pairs().all(|(old, new)| old.link == new.link);
        if same && !pairs().all(|(old, new)| new.at > old.at) {
            return;
        }
        if same {
            let values = pairs().map(|(old, new)| (quantity(old, new), new.at - old.at));
            let (most, time) = values.max_by_key(|of| of.0).unwrap_or((self.value, 0));
            let (time, base) = (u128::from(time.min(base)), u128::from(base));
            let sum = u128::from(self.value) * (base - time) + u128::from(most) * time;
            self.value = (sum / base) as u64;
            self.fresh = true;
        }
        self.last.clear();
        self.last.extend_from_slice(new);
    }

    /// The value, if it is new.
    pub fn take(&mut self) -> Option<u64> {
        std::mem::take(&mut self.fresh).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(link: u32, at: Ps) -> PortRecord {
        PortRecord { link, ps_per_byte: 80, at, sent: 0, waiting: 7 }
    }

    #[test]
    fn a_packet_collects_one_record_a_port_and_a_new_one_starts_without() {
        let mut telemetry = Telemetry::new(2, 3);
        for at in [10, 20] {
            telemetry.pass(0, 1_500, Some((5, record(0, at))));
            telemetry.pass(2, 40, None);
            telemetry.pass(2, 1_500, Some((5, record(4, at + 5))));
        }
        let expected = [
            PortRecord { sent: 1_500, ..record(0, 20) },
            PortRecord { sent: 1_580, ..record(4, 25) },
        ];
        assert_eq!(telemetry.records(5), expected);
        assert!(telemetry.records(4).is_empty() && telemetry.records(9).is_empty());
    }

    #[test]
    fn only_later_records_of_the_same_path_count() {
        let mut meter = PathMeter::new(100);
        let mut update = |new: &[PortRecord]| {
            meter.update(new, 10, |_, new| 100 * u64::from(new.link));
            meter.take()
        };
        assert_eq!(update(&[record(0, 1), record(4, 2)]), None, "the first");
        assert_eq!(update(&[record(0, 3), record(4, 4)]), Some(160), "400 for 2 of 10");
        assert_eq!(update(&[record(0, 2), record(4, 3)]), None, "older");
        assert_eq!(update(&[record(0, 5), record(6, 6)]), None, "another path");
        assert_eq!(update(&[record(0, 70), record(6, 80)]), Some(600), "a long time");
    }
}
