//! Packet numbers of one end's Initial packets (RFC 9000 12.3). Every observer has their keys (RFC 9001 5.2).
//!
//! A sender uses each number once, and sends data again under a new number (RFC 9000 13.3). So the same data under a new
//! number is a retransmission, and the same number again is a copy that the network made. A number that is missing
//! below a captured one is a packet that was lost before the point of capture, or that the sender left out on purpose
//! (RFC 9000 21.4). Numbers below the first captured one do not count: some senders start at 1. Nor do as many numbers as
//! the sender used packets of other spaces in between: some senders have one counter for all spaces.

use serde::{Deserialize, Serialize};

/// Numbers before the highest one that are distinguished, and the largest step that counts.
const WINDOW: u64 = 64;

/// Ranges of CRYPTO data that are remembered. The rest of a handshake has no more.
const RANGES_MAX: usize = 32;

/// The numbers of one end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// Initial packets with a number, without copies.
    pub packets: u64,
    /// Packets with a number that had arrived before.
    pub duplicates: u64,
    /// Packets whose number is below one that arrived before.
    pub reordered: u64,
    /// Packets with CRYPTO data that a packet with another number had.
    pub retransmitted: u64,
    /// Times of the first and of the last of them, in nanoseconds since 1970.
    pub retransmitted_at: Option<i64>,
    /// See `retransmitted_at`.
    pub retransmitted_until: Option<i64>,
    /// Lowest and highest number.
    range: Option<(u64, u64)>,
    /// Packets of the sender's other spaces since the highest number, and numbers that they may have used.
    others: u64,
    elsewhere: u64,
    /// Numbers below the highest that arrived: bit 0 is the highest itself.
    window: u64,
    /// CRYPTO data so far: start and end of ranges that neither overlap nor touch, in order.
    data: Vec<(u64, u64)>,
}

impl Numbers {
    /// Numbers between the lowest and the highest that did not arrive.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let span = self.range.map_or(0, |(low, high)| high - low + 1);
        let known = self.packets.saturating_add(self.elsewhere);
        span.saturating_sub(known)
    }

    /// Time from the client's first packet, at `started`, to the first packet with CRYPTO data that had been sent before.
    #[must_use]
    pub fn retransmitted_after(&self, started: i64) -> Option<i64> {
        Some(self.retransmitted_at?.saturating_sub(started).max(0))
    }

    /// One more than the highest number.
    pub(super) fn next(&self) -> u64 {
        self.range.map_or(0, |(_, high)| high + 1)
    }

    /// The following packets repeat the data, as after Retry (RFC 9000 17.2.5.3). The numbers go on.
    pub(super) fn send_anew(&mut self) {
        self.data.clear();
    }

    /// A packet of another space, whose number is not visible.
    pub(super) fn other(&mut self) {
        self.others = self.others.saturating_add(1);
    }

    /// A packet with that number and CRYPTO data: offset and octets of each frame.
    pub(super) fn packet(&mut self, number: u64, crypto: &[(u64, &[u8])], time: i64) {
        if !self.is_new(number) {
            return;
        }
        self.packets += 1;
        let ranges = crypto.iter().map(|(offset, octets)| {
            let end = offset.saturating_add(octets.len() as u64);
            (*offset, end)
        });
        let ranges: Vec<(u64, u64)> = ranges.filter(|(start, end)| start < end).collect();
        if ranges.iter().any(|&range| self.has_part_of(range)) {
            self.retransmitted += 1;
            self.retransmitted_at.get_or_insert(time);
            self.retransmitted_until = Some(time);
        }
        ranges.into_iter().for_each(|range| self.add(range));
    }

    /// Takes a number; false if it is a copy or far from the others.
    fn is_new(&mut self, number: u64) -> bool {
        let Some((low, high)) = &mut self.range else {
            (self.range, self.window, self.others) = (Some((number, number)), 1, 0);
            return true;
        };
        if number.abs_diff(*high) >= WINDOW {
            return false;
        }
        if number > *high {
            let step = number - *high;
            self.window = self.window << step | 1;
            *high = number;
            self.elsewhere += self.others.min(step - 1);
            self.others = 0;
            return true;
        }
        let bit = 1 << (*high - number);
        if self.window & bit != 0 {
            self.duplicates += 1;
            return false;
        }
        self.window |= bit;
        *low = number.min(*low);
        self.reordered += 1;
        true
    }

    fn has_part_of(&self, (start, end): (u64, u64)) -> bool {
        let mut known = self.data.iter();
        known.any(|&(from, until)| from < end && start < until)
    }

    fn add(&mut self, (mut start, mut end): (u64, u64)) {
        self.data.retain(|&(from, until)| {
            let joins = from <= end && start <= until;
            if joins {
                (start, end) = (start.min(from), end.max(until));
            }
            !joins
        });
        if self.data.len() < RANGES_MAX {
            let at = self.data.partition_point(|&(from, _)| from < start);
            self.data.insert(at, (start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packets by their numbers, offsets and lengths, a millisecond apart.
    fn sent(packets: &[(u64, u64, usize)]) -> Numbers {
        let mut numbers = Numbers::default();
        for (time, &(number, offset, length)) in (0..).zip(packets) {
            let octets = vec![0; length];
            numbers.packet(number, &[(offset, &octets)], time);
        }
        numbers
    }

    #[test]
    fn data_under_a_new_number_is_sent_again_and_the_same_number_is_a_copy() {
        let numbers = sent(&[(0, 0, 1000), (1, 1000, 300), (1, 1000, 300), (2, 0, 1000)]);
        let counts = (numbers.packets, numbers.duplicates, numbers.retransmitted);
        assert_eq!(counts, (3, 1, 1));
        assert_eq!((numbers.retransmitted_at, numbers.missing()), (Some(3), 0));
    }

    #[test]
    fn missing_numbers_are_lost_until_they_arrive_late() {
        // The first number that is captured may be any.
        let mut numbers = sent(&[(1, 0, 10), (4, 10, 10)]);
        assert_eq!((numbers.missing(), numbers.next()), (2, 5));
        numbers.packet(2, &[], 9);
        assert_eq!((numbers.missing(), numbers.reordered), (1, 1));
        numbers.packet(0, &[], 9);
        assert_eq!((numbers.missing(), numbers.reordered), (1, 2));
        // Acknowledgments alone are no data.
        assert_eq!(numbers.retransmitted, 0);
    }

    #[test]
    fn numbers_that_packets_of_other_spaces_may_have_used_are_not_missing() {
        let mut numbers = sent(&[(0, 0, 10)]);
        numbers.other();
        numbers.other();
        numbers.packet(3, &[], 1);
        assert_eq!(numbers.missing(), 0);
        numbers.packet(6, &[], 2);
        assert_eq!(numbers.missing(), 2);
    }

    #[test]
    fn pieces_of_a_hello_in_any_order_are_not_sent_again() {
        let numbers = sent(&[(0, 100, 50), (1, 0, 100), (2, 150, 20), (3, 170, 0)]);
        assert_eq!(numbers.retransmitted, 0);
        assert_eq!(numbers.data, [(0, 170)]);
    }

    #[test]
    fn after_retry_the_same_data_is_not_sent_again_and_numbers_go_on() {
        let mut numbers = sent(&[(0, 0, 300)]);
        numbers.send_anew();
        numbers.packet(1, &[(0, &[0; 300])], 5);
        assert_eq!((numbers.retransmitted, numbers.missing()), (0, 0));
    }

    proptest! {
        #[test]
        fn counts_stay_within_the_packets(packets in prop::collection::vec((0u64..200, 0u64..4000, 0usize..300), 0..150)) {
            let numbers = sent(&packets);
            let mut distinct = std::collections::BTreeSet::new();
            distinct.extend(packets.iter().map(|packet| packet.0));
            prop_assert!(numbers.packets <= distinct.len() as u64);
            prop_assert!(numbers.packets + numbers.duplicates <= packets.len() as u64);
            prop_assert!(numbers.retransmitted <= numbers.packets && numbers.missing() < 200);
            prop_assert!(numbers.data.len() <= RANGES_MAX);
            prop_assert!(numbers.data.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
