//! Changes of addresses, ports and identifiers in a packet, with its checksums (RFC 1624, RFC 3022 section 4.1).

/// The state of a packet's transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sum {
    /// Complete, as on a wire.
    Complete,
    /// Of the pseudo header only: the packet is one that a network card will complete, or a super-packet that will be
    /// split.
    Partial,
}

/// Which end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Source,
    Destination,
}

impl Side {
    const fn address_at(self) -> usize {
        match self {
            Self::Source => 12,
            Self::Destination => 16,
        }
    }

    const fn port_at(self) -> usize {
        match self {
            Self::Source => 0,
            Self::Destination => 2,
        }
    }
}

/// The difference that changed words make to a checksum: RFC 1624 equation 3, for any number of words.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delta(u32);

impl Delta {
    #[inline]
    pub(crate) fn word(&mut self, old: u16, new: u16) {
        self.0 += u32::from(!old) + u32::from(new);
    }

    #[inline]
    fn long(&mut self, old: u32, new: u32) {
        self.word((old >> 16) as u16, (new >> 16) as u16);
        self.word(old as u16, new as u16);
    }

    #[inline]
    fn folded(self, checksum: u16) -> u16 {
        let total = u32::from(checksum) + self.0;
        let total = (total >> 16) + (total & 0xffff);
        ((total >> 16) + total) as u16
    }

    /// The checksum after the change.
    #[inline]
    pub(crate) fn apply(self, checksum: u16) -> u16 {
        !self.folded(!checksum)
    }
}

/// The sum of two words in one's complement arithmetic.
#[inline]
const fn add(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + carry as u16
}

/// What the change from one endpoint to another adds to checksums, computed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Of the address.
    address: u16,
    /// Of address and port.
    endpoint: u16,
}

impl Sums {
    pub(crate) fn new(old: (u32, u16), new: (u32, u16)) -> Self {
        let mut delta = Delta::default();
        delta.long(old.0, new.0);
        let address = delta.folded(0);
        delta.word(old.1, new.1);
        Self {
            address,
            endpoint: delta.folded(0),
        }
    }

    /// Of the opposite change. In one's complement arithmetic, the complement is the negative.
    #[inline]
    pub(crate) fn reversed(self) -> Self {
        Self {
            address: !self.address,
            endpoint: !self.endpoint,
        }
    }
}

/// Octets of an IPv4 header without options, and of a UDP header.
const SHORTEST: usize = 28;

/// Sets address and port of one side of a TCP or UDP packet whose IP header has no options, and its identification. It
/// does what [`endpoint`] and [`identification`] do, with differences that are known.
#[inline]
pub(crate) fn quick(
    packet: &mut [u8],
    is_udp: bool,
    side: Side,
    (address, port): (u32, u16),
    sums: Sums,
    identification: Option<u16>,
    sum: Sum,
) {
    let Some(head) = packet.first_chunk_mut::<SHORTEST>() else {
        return;
    };
    let mut added = sums.address;
    if let Some(new) = identification {
        let mut delta = Delta(u32::from(added));
        delta.word(u16::from_be_bytes([head[4], head[5]]), new);
        added = delta.folded(0);
        head[4..6].copy_from_slice(&new.to_be_bytes());
    }
    let new = !add(!u16::from_be_bytes([head[10], head[11]]), added);
    head[10..12].copy_from_slice(&new.to_be_bytes());
    let (address_at, port_at) = (side.address_at(), 20 + side.port_at());
    head[address_at..address_at + 4].copy_from_slice(&address.to_be_bytes());
    head[port_at..port_at + 2].copy_from_slice(&port.to_be_bytes());
    let at = if is_udp { 26 } else { 36 };
    let Some(two) = packet.get_mut(at..at + 2) else {
        return;
    };
    let old = u16::from_be_bytes([two[0], two[1]]);
    let new = match sum {
        Sum::Partial => add(old, sums.address),
        Sum::Complete if is_udp && old == 0 => 0,
        Sum::Complete => match !add(!old, sums.endpoint) {
            0 if is_udp => 0xffff,
            new => new,
        },
    };
    two.copy_from_slice(&new.to_be_bytes());
}

#[inline]
pub(crate) fn word(octets: &[u8], at: usize) -> Option<u16> {
    let two = octets.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

#[inline]
pub(crate) fn put(octets: &mut [u8], at: usize, new: u16) {
    if let Some(two) = octets.get_mut(at..at + 2) {
        two.copy_from_slice(&new.to_be_bytes());
    }
}

/// Sets the address of one side, and updates the header's checksum. Returns the change.
#[inline]
fn set_address(packet: &mut [u8], side: Side, new: u32) -> Delta {
    let at = side.address_at();
    let mut delta = Delta::default();
    if let Some(four) = packet.get_mut(at..at + 4) {
        let old = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
        four.copy_from_slice(&new.to_be_bytes());
        delta.long(old, new);
    }
    if let Some(sum) = word(packet, 10) {
        put(packet, 10, delta.apply(sum));
    }
    delta
}

/// Sets the address of one side of a packet, and nothing behind its IP header: for fragments after the first, and the
/// outer header of ICMP errors.
#[inline]
pub(crate) fn address(packet: &mut [u8], side: Side, new: u32) {
    let _ = set_address(packet, side, new);
}

/// Sets the identification of an IPv4 packet.
#[inline]
pub(crate) fn identification(packet: &mut [u8], new: u16) {
    let (Some(old), Some(sum)) = (word(packet, 4), word(packet, 10)) else {
        return;
    };
    let mut delta = Delta::default();
    delta.word(old, new);
    put(packet, 4, new);
    put(packet, 10, delta.apply(sum));
}

/// Sets address and port of one side of a TCP or UDP packet whose transport header is at `transport`.
///
/// A checksum behind the packet's end stays as it is. A UDP checksum of 0 means none, and stays 0 (RFC 768).
#[inline]
pub(crate) fn endpoint(
    packet: &mut [u8],
    transport: usize,
    is_udp: bool,
    side: Side,
    (new, port): (u32, u16),
    sum: Sum,
) {
    let mut delta = set_address(packet, side, new);
    let Some(segment) = packet.get_mut(transport..) else {
        return;
    };
    if let Some(old) = word(segment, side.port_at()) {
        put(segment, side.port_at(), port);
        if sum == Sum::Complete {
            delta.word(old, port);
        }
    }
    let at = if is_udp { 6 } else { 16 };
    let Some(old) = word(segment, at) else { return };
    let new = match sum {
        Sum::Partial => delta.folded(old),
        Sum::Complete if is_udp && old == 0 => 0,
        Sum::Complete => match delta.apply(old) {
            0 if is_udp => 0xffff,
            new => new,
        },
    };
    put(segment, at, new);
}

/// Sets address and identifier of one side of an ICMP query whose header is at `transport`.
#[inline]
pub(crate) fn query(packet: &mut [u8], transport: usize, side: Side, (new, id): (u32, u16)) {
    let _ = set_address(packet, side, new);
    let Some(message) = packet.get_mut(transport..) else {
        return;
    };
    let (Some(old), Some(sum)) = (word(message, 4), word(message, 2)) else {
        return;
    };
    let mut delta = Delta::default();
    delta.word(old, id);
    put(message, 4, id);
    put(message, 2, delta.apply(sum));
}

/// Sets address and port or identifier of one side of the packet that an ICMP error quotes, and the error's checksum. The
/// error's ICMP header is at `icmp`; the quoted packet's header has `inner` octets.
pub(crate) fn quoted(
    packet: &mut [u8],
    icmp: usize,
    inner: usize,
    protocol: crate::Protocol,
    side: Side,
    endpoint_new: (u32, u16),
) {
    let Some(message) = packet.get_mut(icmp..) else {
        return;
    };
    // Words that may change: the quoted IP header, and of its transport header the first 18 octets.
    let end = message.len().min(8 + inner + 18) & !1;
    let mut before = [0; 8 + 60 + 18];
    before[8..end].copy_from_slice(&message[8..end]);
    let quote = &mut message[8..];
    match protocol {
        crate::Protocol::Icmp => query(quote, inner, side, endpoint_new),
        crate::Protocol::Tcp => {
            endpoint(quote, inner, false, side, endpoint_new, Sum::Complete);
        }
        crate::Protocol::Udp => {
            endpoint(quote, inner, true, side, endpoint_new, Sum::Complete);
        }
    }
    let mut delta = Delta::default();
    for at in (8..end).step_by(2) {
        let (Some(old), Some(new)) = (word(&before, at), word(message, at)) else {
            break;
        };
        if old != new {
            delta.word(old, new);
        }
    }
    if let Some(sum) = word(message, 2) {
        put(message, 2, delta.apply(sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc_1624_section_4_the_example_gives_zero() {
        let mut delta = Delta::default();
        delta.word(0x5555, 0x3285);
        assert_eq!(delta.apply(0xdd2f), 0);
    }

    fn packet(words: &[u16]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 6, 0, 0];
        packet.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        packet.resize(packet.len().max(52), 7);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        put(&mut packet, 10, 0);
        let sum = !wire::checksum::sum(&packet[..20]);
        put(&mut packet, 10, sum);
        packet
    }

    fn transport(packet: &[u8], protocol: u8) -> u16 {
        let length = packet.len() - 20;
        let pseudo = wire::checksum::pseudo_sum(&packet[12..20], protocol, length);
        let own = wire::checksum::sum(&packet[20..]);
        wire::checksum::fold(u64::from(pseudo) + u64::from(own))
    }

    proptest! {
        #[test]
        fn right_checksums_stay_right(
            words in prop::collection::vec(any::<u16>(), 20..40),
            new: u32,
            port: u16,
            is_udp: bool,
            is_source: bool,
        ) {
            let mut packet = packet(&words);
            let (at, protocol) = if is_udp { (26, 17) } else { (36, 6) };
            put(&mut packet, at, 0);
            let mut sum = !transport(&packet, protocol);
            if is_udp && sum == 0 {
                sum = 0xffff;
            }
            put(&mut packet, at, sum);
            let side = if is_source { Side::Source } else { Side::Destination };
            endpoint(&mut packet, 20, is_udp, side, (new, port), Sum::Complete);
            prop_assert_eq!(wire::checksum::sum(&packet[..20]), 0xffff);
            prop_assert_eq!(transport(&packet, protocol), 0xffff);
            prop_assert!(!is_udp || word(&packet, at) != Some(0));
        }

        #[test]
        fn known_differences_give_the_same_packet(
            words in prop::collection::vec(any::<u16>(), 20..40),
            (new, port, id) in any::<(u32, u16, Option<u16>)>(),
            (is_udp, is_source, is_partial) in any::<(bool, bool, bool)>(),
        ) {
            let mut slow = packet(&words);
            let mut fast = slow.clone();
            let (side, at, transport) = match is_source {
                true => (Side::Source, 12, 20),
                false => (Side::Destination, 16, 22),
            };
            let address = u32::from_be_bytes([slow[at], slow[at + 1], slow[at + 2], slow[at + 3]]);
            let old = (address, word(&slow, transport).expect("a port"));
            let sum = if is_partial { Sum::Partial } else { Sum::Complete };
            // Where the checksum is congruent to 0, both forms of zero are right: leave these to the tests above.
            let sum_at = if is_udp { 26 } else { 36 };
            prop_assume!(!matches!(word(&slow, sum_at), Some(0 | 0xffff)));
            if let Some(id) = id {
                identification(&mut slow, id);
            }
            endpoint(&mut slow, 20, is_udp, side, (new, port), sum);
            quick(&mut fast, is_udp, side, (new, port), Sums::new(old, (new, port)), id, sum);
            prop_assert_eq!(&slow, &fast);
            let back = Sums::new((new, port), old);
            quick(&mut slow, is_udp, side, old, back, None, sum);
            let reversed = Sums::new(old, (new, port)).reversed();
            quick(&mut fast, is_udp, side, old, reversed, None, sum);
            prop_assert_eq!(&slow, &fast);
        }

        #[test]
        fn a_partial_checksum_is_that_of_the_new_pseudo_header(
            words in prop::collection::vec(any::<u16>(), 20..40),
            new: u32,
            port: u16,
        ) {
            let mut packet = packet(&words);
            let length = packet.len() - 20;
            let pseudo = wire::checksum::pseudo_sum(&packet[12..20], 6, length);
            put(&mut packet, 36, pseudo);
            endpoint(&mut packet, 20, false, Side::Source, (new, port), Sum::Partial);
            let pseudo = wire::checksum::pseudo_sum(&packet[12..20], 6, length);
            prop_assert_eq!(word(&packet, 36), Some(pseudo));
        }
    }
}
