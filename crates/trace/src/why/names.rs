//! IPv4 identifications: many senders count the packets of each connection (Linux: `ip_select_ident_segs`), so that a gap
//! shows packets that were lost before the point of capture.

/// Packets in a row whose identification followed the one before, until gaps count.
const STREAK_MIN: u8 = 8;

/// The largest gap that counts. A larger one is more likely of a sender that counts otherwise.
const GAP_MAX: u16 = 64;

/// The counter of one sender.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Names {
    pub(super) next: u16,
    pub(super) streak: u8,
}

impl Names {
    const fn counts(&self) -> bool {
        self.streak >= STREAK_MIN
    }

    /// Whether a packet was sent after all others.
    pub(super) const fn is_newer(&self, id: u16) -> bool {
        self.counts() && id.wrapping_sub(self.next) <= GAP_MAX
    }

    /// A packet with this identification, of so many segments. Returns the number of packets before it that did not reach
    /// the point of capture; `None` if the sender does not count.
    #[inline(always)]
    pub(super) fn follow(&mut self, id: u16, segments: u16) -> Option<u16> {
        let gap = id.wrapping_sub(self.next);
        let counts = self.counts();
        if gap >= 1 << 15 && self.streak > 0 {
            // An earlier packet, overtaken.
            self.streak = self.streak.saturating_sub(1);
            return None;
        }
        self.streak = match gap {
            0 => self.streak.saturating_add(1),
            1..=GAP_MAX => self.streak.saturating_sub(2),
            _ => 0,
        };
        self.next = id.wrapping_add(segments);
        (counts && gap <= GAP_MAX).then_some(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_once_the_sender_counts() {
        let mut names = Names::default();
        // The first one follows nothing.
        for id in 65_530..=65_535 {
            assert_eq!(names.follow(id, 1), None);
        }
        for id in 0..3 {
            assert_eq!(names.follow(id, 1), None);
        }
        assert!(names.is_newer(3));
        assert_eq!(names.follow(3, 4), Some(0));
        assert_eq!(names.follow(7, 1), Some(0));
        assert!(names.is_newer(9) && !names.is_newer(6));
        assert_eq!(names.follow(10, 1), Some(2));
    }

    #[test]
    fn identifications_at_random_never_count() {
        let mut names = Names::default();
        let mut id = 1_u16;
        for _ in 0..1_000 {
            id = id.wrapping_mul(25_173).wrapping_add(13_849);
            assert_eq!(names.follow(id, 1), None);
        }
    }
}
