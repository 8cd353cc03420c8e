//! The bytes of a packet on the line, including the link layer's overhead.

/// The link layer's overhead of each packet. The component that takes a packet in applies it, once:
/// [`Packet::length`](crate::Packet::length) is in bytes on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overhead {
    /// Bytes added to each IP packet: headers, trailers, the gap between frames.
    pub per_packet: i32,
    /// Bytes of the shortest packet, including the overhead.
    pub mpu: u32,
    /// Whether the link carries ATM cells: 53 bytes for each 48, the last cell padded.
    pub atm: bool,
}

impl Overhead {
    /// Bytes on the line of an IP packet of `length` bytes; at least 1.
    #[must_use]
    #[inline]
    pub fn on_line(&self, length: u32) -> u32 {
        let length = length.saturating_add_signed(self.per_packet);
        let length = length.max(self.mpu).max(1);
        if self.atm {
            length.div_ceil(48).saturating_mul(53)
        } else {
            length
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_filled_up_and_short_packets_cost_the_least_there_is() {
        let atm = Overhead {
            per_packet: 40,
            mpu: 0,
            atm: true,
        };
        // RFC 2684 LLC with PPPoE: an acknowledgement of 40 bytes takes 2 cells, 1,492 bytes take 32.
        assert_eq!(
            [40, 56, 57, 1_492].map(|length| atm.on_line(length)),
            [106, 106, 159, 1_696]
        );
        let ethernet = Overhead {
            per_packet: 38,
            mpu: 84,
            atm: false,
        };
        assert_eq!(
            [20, 46, 47, 1_500].map(|length| ethernet.on_line(length)),
            [84, 84, 85, 1_538]
        );
    }

    #[test]
    fn no_length_and_no_overhead_leave_the_range() {
        let less = Overhead {
            per_packet: i32::MIN,
            ..Overhead::default()
        };
        assert_eq!(less.on_line(1_500), 1);
        let more = Overhead {
            per_packet: i32::MAX,
            mpu: u32::MAX,
            atm: true,
        };
        assert_eq!(more.on_line(u32::MAX), u32::MAX);
    }
}
