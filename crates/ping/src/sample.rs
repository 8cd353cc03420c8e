//! The stored record of a packet: 16 bytes, and 16 more if both directions are known.

use base::Duration;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Neither answered nor timed out.
    Waiting,
    /// Answered in time.
    Replied,
    /// Answered after the timeout.
    Late,
    /// Timed out without an answer.
    Lost,
    /// The kernel refused to send it.
    Failed,
}

/// Bits of [`Sample::flags`], as in the file.
pub mod flag {
    /// Answered, in time or late.
    pub const REPLIED: u8 = 1;
    /// Answered after the timeout; with [`REPLIED`].
    pub const LATE: u8 = 2;
    /// Timed out without an answer.
    pub const LOST: u8 = 4;
    /// The kernel refused to send it.
    pub const FAILED: u8 = 8;
    /// More than one reply arrived.
    pub const DUPLICATED: u8 = 16;
    /// A packet sent later had been answered before.
    pub const REORDERED: u8 = 32;
    /// The sending time is our own, from before the call, and not the kernel's time stamp.
    pub const UNSTAMPED: u8 = 64;
}

const STATE: u8 = flag::REPLIED | flag::LATE | flag::LOST | flag::FAILED;
/// Used while a sample is read from columns: its round trip has been read.
const HAS_RTT: u8 = 0x80;
const RTT_BITS: u32 = 40;
/// The longest round trip that is stored exactly, in nanoseconds: 18 minutes.
pub const RTT_MAX_NS: u64 = (1 << RTT_BITS) - 1;

/// A packet's sending time and fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    sent_ns: i64,
    /// Round trip in 40 bits, then TTL, traffic class and flags in 8 each.
    rest: u64,
}

impl Sample {
    /// A packet sent `sent_ns` after the start that waits for its reply. The number is negative only in a damaged
    /// file.
    #[must_use]
    pub fn new(sent_ns: i64) -> Self {
        let rest = u64::from(flag::UNSTAMPED) << 56;
        Self { sent_ns, rest }
    }

    /// Adds to the sending time of a sample that is being read; `None` on overflow.
    pub(crate) fn load_sent(&mut self, ns: i64) -> Option<()> {
        self.sent_ns = self.sent_ns.checked_add(ns)?;
        Some(())
    }

    /// Sets the round trip of a sample that is being read, -1 for none; `None` if it is out of range.
    pub(crate) fn load_rtt(&mut self, ns: i64) -> Option<()> {
        if ns == -1 {
            return Some(());
        }
        let ns = u64::try_from(ns).ok().filter(|ns| *ns <= RTT_MAX_NS)?;
        self.rest |= ns | u64::from(HAS_RTT) << 56;
        Some(())
    }

    /// Sets the TTL of a sample that is being read; `None` if it is out of range.
    pub(crate) fn load_ttl(&mut self, ttl: i64) -> Option<()> {
        self.rest |= u64::from(u8::try_from(ttl).ok()?) << RTT_BITS;
        Some(())
    }

    /// Sets the traffic class of a sample that is being read; `None` if it is out of range.
    pub(crate) fn load_tos(&mut self, tos: i64) -> Option<()> {
        self.rest |= u64::from(u8::try_from(tos).ok()?) << 48;
        Some(())
    }

    /// Sets the flags of a sample that is being read; `None` if they contradict each other.
    pub(crate) fn load_flags(&mut self, flags: i64) -> Option<()> {
        let flags = u8::try_from(flags).ok().filter(|flags| *flags < HAS_RTT)?;
        self.rest |= u64::from(flags) << 56;
        matches!(flags & STATE, 0 | 1 | 3 | 4 | 8).then_some(())
    }

    /// Ends the reading of a sample: returns whether flags and round trip agree.
    pub(crate) fn finish_load(&mut self) -> bool {
        let flags = self.flags();
        self.set_flags(flags & !HAS_RTT);
        (flags & flag::REPLIED != 0) == (flags & HAS_RTT != 0)
    }

    /// The sending time in nanoseconds since the start.
    #[must_use]
    pub fn sent_ns(self) -> i64 {
        self.sent_ns
    }

    /// The round trip of its first reply; `None` without a reply.
    #[must_use]
    pub fn rtt(self) -> Option<Duration> {
        (self.flags() & flag::REPLIED != 0).then(|| Duration::from_nanos(self.rest & RTT_MAX_NS))
    }

    /// The reply's TTL or hop limit; 0 if unknown.
    #[must_use]
    pub fn ttl(self) -> u8 {
        (self.rest >> RTT_BITS) as u8
    }

    /// The reply's TOS octet or traffic class.
    #[must_use]
    pub fn tos(self) -> u8 {
        (self.rest >> 48) as u8
    }

    /// Bits as in [`flag`].
    #[must_use]
    pub fn flags(self) -> u8 {
        (self.rest >> 56) as u8
    }

    /// Its fate.
    #[must_use]
    pub fn state(self) -> State {
        match self.flags() & STATE {
            flag::REPLIED => State::Replied,
            flag::LOST => State::Lost,
            flag::FAILED => State::Failed,
            0 => State::Waiting,
            _ => State::Late,
        }
    }

    pub(crate) fn set_state(&mut self, state: State) {
        let bits = match state {
            State::Waiting => 0,
            State::Replied => flag::REPLIED,
            State::Late => flag::REPLIED | flag::LATE,
            State::Lost => flag::LOST,
            State::Failed => flag::FAILED,
        };
        self.set_flags(self.flags() & !STATE | bits);
    }

    pub(crate) fn add_flags(&mut self, bits: u8) {
        self.set_flags(self.flags() | bits);
    }

    /// Sets the kernel's time stamp.
    pub(crate) fn stamp(&mut self, sent_ns: i64) {
        self.sent_ns = sent_ns;
        self.set_flags(self.flags() & !flag::UNSTAMPED);
    }

    pub(crate) fn set_reply(&mut self, rtt_ns: u64, ttl: u8, tos: u8) {
        let flags = u64::from(self.flags()) << 56;
        let rtt_ns = rtt_ns.min(RTT_MAX_NS);
        self.rest = flags | u64::from(tos) << 48 | u64::from(ttl) << RTT_BITS | rtt_ns;
    }

    fn set_flags(&mut self, flags: u8) {
        self.rest = self.rest << 8 >> 8 | u64::from(flags) << 56;
    }
}

/// Both directions of a packet, from a responder's time stamps. All zeros if there was no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OneWay {
    /// Arrival at the responder, by its clock, less departure here, by ours, in nanoseconds.
    pub up_ns: i64,
    /// The responder's departure time less its arrival time.
    pub turn_ns: u32,
    /// Packets of this stream that the responder had received, this one included; 0 if it does not know.
    pub count: u32,
}

impl OneWay {
    /// Arrival here less departure from the responder, by two clocks, in nanoseconds.
    #[must_use]
    pub fn down_ns(self, rtt: Duration) -> i64 {
        let rtt = i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX);
        rtt.saturating_sub(i64::from(self.turn_ns))
            .saturating_sub(self.up_ns)
    }
}

/// Replies are matched this far back: as many packets as ICMP's 16-bit sequence numbers can tell apart.
pub(crate) const WINDOW: u64 = 65_536;

/// A stream's packets by index, from 0: the first `keep_max` permanently, of later ones the last [`WINDOW`].
#[derive(Debug, Clone)]
pub(crate) struct Store<T> {
    kept: Vec<T>,
    keep_max: u64,
    ring: Vec<T>,
    length: u64,
}

impl<T: Copy> Store<T> {
    pub(crate) fn new(keep_max: u64) -> Self {
        Self {
            kept: Vec::new(),
            keep_max,
            ring: Vec::new(),
            length: 0,
        }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.length < self.keep_max {
            self.kept.push(item);
        } else if (self.ring.len() as u64) < WINDOW {
            self.ring.push(item);
        } else {
            let place = ((self.length - self.keep_max) % WINDOW) as usize;
            self.ring[place] = item;
        }
        self.length += 1;
    }

    /// Item `index`; `None` if it does not exist yet or has left the window.
    pub(crate) fn get(&self, index: u64) -> Option<&T> {
        if index >= self.length || self.length - index > WINDOW {
            None
        } else if index < self.keep_max {
            self.kept.get(index as usize)
        } else {
            self.ring.get(((index - self.keep_max) % WINDOW) as usize)
        }
    }

    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut T> {
        if index >= self.length || self.length - index > WINDOW {
            None
        } else if index < self.keep_max {
            self.kept.get_mut(index as usize)
        } else {
            let place = (index - self.keep_max) % WINDOW;
            self.ring.get_mut(place as usize)
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn into_kept(self) -> Vec<T> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_sixteen_octets_and_its_fields_do_not_touch() {
        assert_eq!((size_of::<Sample>(), size_of::<OneWay>()), (16, 16));
        let mut sample = Sample::new(5);
        assert_eq!((sample.state(), sample.rtt()), (State::Waiting, None));
        sample.set_state(State::Lost);
        sample.set_reply(u64::MAX, 64, 0xb8);
        assert_eq!(sample.state(), State::Lost);
        sample.set_state(State::Late);
        sample.add_flags(flag::REORDERED);
        sample.stamp(-7);
        assert_eq!(sample.rtt(), Some(Duration::from_nanos(RTT_MAX_NS)));
        assert_eq!((sample.ttl(), sample.tos()), (64, 0xb8));
        assert_eq!((sample.state(), sample.sent_ns()), (State::Late, -7));
        let flags = flag::REPLIED | flag::LATE | flag::REORDERED;
        assert_eq!(sample.flags(), flags);
        let again = read(-7, RTT_MAX_NS as i64, 64, 0xb8, flags.into());
        assert_eq!(again, Some(sample));
    }

    fn read(sent: i64, rtt: i64, ttl: i64, tos: i64, flags: i64) -> Option<Sample> {
        let mut sample = Sample::default();
        sample.load_sent(sent)?;
        sample.load_rtt(rtt)?;
        sample.load_ttl(ttl)?;
        sample.load_tos(tos)?;
        sample.load_flags(flags)?;
        sample.finish_load().then_some(sample)
    }

    #[test]
    fn contradictions_are_no_samples() {
        for flags in [2, 5, 9, 12, 0x81, 256, -1] {
            assert_eq!(read(0, 1, 0, 0, flags), None);
        }
        assert_eq!(read(0, -1, 0, 0, flag::REPLIED.into()), None);
        assert_eq!(read(0, 1, 0, 0, flag::LOST.into()), None);
        assert_eq!(read(0, 1 << 40, 0, 0, 1), None);
        assert_eq!(read(0, -2, 0, 0, 1), None);
    }

    #[test]
    fn a_store_keeps_the_first_and_reaches_the_last() {
        let mut store = Store::new(10);
        let last = 3 * WINDOW;
        for number in 0..=last {
            store.push(number);
        }
        assert_eq!(store.get(last), Some(&last));
        assert_eq!(store.get(last + 1), None);
        let oldest = last + 1 - WINDOW;
        assert_eq!(store.get(oldest), Some(&oldest));
        assert_eq!(store.get(oldest - 1), None);
        *store.get_mut(oldest).unwrap() = 0;
        assert_eq!(store.get(oldest), Some(&0));
        assert_eq!(store.into_kept(), (0..10).collect::<Vec<_>>());
    }
}
