//! Sequence numbers that a UDP payload shows: RTP (RFC 3550), ESP in UDP (RFC 3948) and WireGuard. Loss, reordering and
//! duplicates follow from them, and for RTP the jitter.
//!
//! A stream counts once [`AGREEING`] packets have shown the same protocol and the same identifier, with numbers that
//! follow one another. Until then its packets may as well be data that only looks like a header.

use serde::{Deserialize, Serialize};

/// Packets that must agree before a stream counts.
pub const AGREEING: u64 = 8;

/// Streams of one direction. A packet of a further one takes the place of a stream that does not count yet.
pub const STREAMS_MAX: usize = 4;

/// Packets without a stream after which a direction is no longer looked at.
const TRIES_MAX: u32 = 64;

/// A larger step of RTP's number is a new start, not a loss (RFC 3550 A.1).
const DROPOUT_RTP: u64 = 3000;

/// The same for the other protocols, whose numbers do not wrap in practice.
const DROPOUT: u64 = 1 << 16;

/// A step of a stream that does not count yet.
const STEP_MAX: u64 = 16;

/// Numbers before the highest one that are distinguished as reordered or duplicate.
const WINDOW: u64 = 64;

/// Whose header has the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// RFC 3550, with the payload type.
    Rtp(u8),
    /// RFC 3948.
    Esp,
    /// WireGuard's transport data.
    WireGuard,
}

impl Protocol {
    /// Its name in JSON and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Rtp(_) => "rtp",
            Protocol::Esp => "esp",
            Protocol::WireGuard => "wireguard",
        }
    }

    /// Bits of its number.
    const fn bits(self) -> u32 {
        match self {
            Protocol::Rtp(_) => 16,
            Protocol::Esp => 32,
            Protocol::WireGuard => 64,
        }
    }
}

/// What a payload shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    protocol: Protocol,
    /// SSRC, SPI or receiver index.
    stream: u32,
    number: u64,
    /// RTP's time stamp.
    stamp: u32,
}

/// The header that a payload may have. `ports` are those of both ends.
fn shown(payload: &[u8], length: usize, ports: [u16; 2]) -> Option<Shown> {
    let word = |at: usize| Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?));
    let first = *payload.first()?;
    if first == 4 && payload.get(1..4)? == [0; 3] && length >= 32 && length.is_multiple_of(16) {
        let number = u64::from_le_bytes(*payload.get(8..)?.first_chunk()?);
        return Some(Shown {
            protocol: Protocol::WireGuard,
            stream: word(4)?,
            number,
            stamp: 0,
        });
    }
    if ports.contains(&4500) && word(0)? > 255 && length >= 20 {
        // RFC 3948 2.2, RFC 4303 2.1: an SPI of 0 marks IKE, and 1 to 255 are reserved.
        return Some(Shown {
            protocol: Protocol::Esp,
            stream: word(0)?,
            number: word(4)?.into(),
            stamp: 0,
        });
    }
    let second = *payload.get(1)?;
    // RFC 5761 4: these payload types with the marker bit are packets of RTCP.
    if first >> 6 != 2 || (192..=223).contains(&second) || length < 12 {
        return None;
    }
    Some(Shown {
        protocol: Protocol::Rtp(second & 0x7f),
        stream: word(8)?,
        number: (word(0)? & 0xffff).into(),
        stamp: word(4)?,
    })
}

/// Ticks of RTP's clock in a second, by the static payload types of RFC 3551 6; `None` for others.
const fn clock_rate(payload_type: u8) -> Option<i64> {
    match payload_type {
        0 | 3..=5 | 7..=9 | 12 | 13 | 15 | 18 => Some(8000),
        6 => Some(16_000),
        10 | 11 => Some(44_100),
        16 => Some(11_025),
        17 => Some(22_050),
        14 | 25 | 26 | 28 | 31..=34 => Some(90_000),
        _ => None,
    }
}

/// RTP's interarrival jitter (RFC 3550 6.4.1), in integers as in appendix A.8: sixteenths of nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    last: Option<(i64, u32)>,
    now: i64,
    sum: i64,
    max: i64,
    count: i64,
}

impl Jitter {
    fn packet(&mut self, time: i64, stamp: u32, rate: i64) {
        if let Some((before, old)) = self.last.replace((time, stamp)) {
            let ticks = i64::from(stamp.wrapping_sub(old).cast_signed());
            let sent = ticks.saturating_mul(1_000_000_000) / rate;
            let late = time.saturating_sub(before).saturating_sub(sent);
            let late = late.saturating_abs().min(i64::MAX >> 8);
            self.now += late - ((self.now + 8) >> 4);
            self.max = self.max.max(self.now);
            self.sum = self.sum.saturating_add(self.now >> 4);
            self.count += 1;
        }
    }

    /// Mean and largest jitter in nanoseconds; `None` before the second packet.
    #[must_use]
    pub fn mean_and_max(&self) -> Option<(i64, i64)> {
        (self.count > 0).then(|| (self.sum / self.count, self.max >> 4))
    }
}

/// One stream of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Whose numbers they are.
    pub protocol: Protocol,
    /// SSRC, SPI or receiver index.
    pub stream: u32,
    /// Packets that arrived, with duplicates.
    pub packets: u64,
    /// Numbers that had arrived before.
    pub duplicates: u64,
    /// Packets whose number is below one that arrived before.
    pub reordered: u64,
    /// The most numbers missing in a row, and the packet that showed it.
    pub gap_max: (u64, u64),
    /// The longest outage of RTP, in nanoseconds, and the packet that ended it: the time between the packets around the
    /// numbers that are missing, without one step between packets.
    pub outage: (i64, u64),
    /// The number started again: another sender with the same identifier, or a gap too long to be a loss.
    pub restarts: u64,
    /// RTP's jitter, if the clock of its time stamps is known.
    pub jitter: Jitter,
    lowest: u64,
    highest: u64,
    /// Time of the packet with the highest number.
    highest_time: i64,
    /// Numbers below the highest that arrived: bit 0 is the highest itself.
    window: u64,
    /// Numbers expected before the last restart.
    before: u64,
    counts: bool,
}

impl Stream {
    fn new(shown: &Shown, time: i64) -> Stream {
        Stream {
            protocol: shown.protocol,
            stream: shown.stream,
            packets: 1,
            duplicates: 0,
            reordered: 0,
            gap_max: (0, 0),
            outage: (0, 0),
            restarts: 0,
            jitter: Jitter::default(),
            lowest: shown.number,
            highest: shown.number,
            highest_time: time,
            window: 1,
            before: 0,
            counts: false,
        }
    }

    /// Whether enough packets agreed.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.counts
    }

    /// Numbers that the sender must have used.
    #[must_use]
    pub const fn expected(&self) -> u64 {
        let present = self.highest.saturating_sub(self.lowest).saturating_add(1);
        self.before.saturating_add(present)
    }

    /// Packets that did not arrive here.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.expected()
            .saturating_sub(self.packets.saturating_sub(self.duplicates))
    }

    /// How far a number is ahead of the highest, and the number in full: RTP and ESP show the low bits only.
    fn ahead(&self, number: u64) -> (i64, u64) {
        let unused = 64 - self.protocol.bits();
        let step = number.wrapping_sub(self.highest) << unused;
        let step = step.cast_signed() >> unused;
        (step, self.highest.wrapping_add_signed(step))
    }

    /// A packet of the stream; false if it does not follow the others.
    fn packet(&mut self, shown: &Shown, time: i64, packet: u64) -> bool {
        let (step, number) = self.ahead(shown.number);
        let most = match (self.counts, self.protocol) {
            (false, _) => STEP_MAX,
            (true, Protocol::Rtp(_)) => DROPOUT_RTP,
            (true, _) => DROPOUT,
        };
        if step.unsigned_abs() > most {
            return false;
        }
        self.packets += 1;
        if step > 0 {
            let step = step.unsigned_abs();
            self.window = match step < WINDOW {
                true => self.window << step | 1,
                false => 1,
            };
            self.highest = number;
            if step - 1 > self.gap_max.0 {
                self.gap_max = (step - 1, packet);
            }
            let passed = time.saturating_sub(self.highest_time).max(0);
            self.highest_time = time;
            // The packets of a step are at most some thousands.
            let outage = passed - passed / (step.cast_signed());
            if outage > self.outage.0 && matches!(self.protocol, Protocol::Rtp(_)) {
                self.outage = (outage, packet);
            }
        } else {
            self.behind(step.unsigned_abs(), number);
        }
        if let Protocol::Rtp(kind) = shown.protocol
            && let Some(rate) = clock_rate(kind)
        {
            self.jitter.packet(time, shown.stamp, rate);
        }
        self.counts |= self.packets >= AGREEING;
        true
    }

    /// A packet whose number is not above all others.
    fn behind(&mut self, back: u64, number: u64) {
        let bit = 1u64.checked_shl(back as u32).unwrap_or(0);
        if back < WINDOW && self.window & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.window |= bit;
        self.reordered += 1;
        // Others overtook it at the start of the capture.
        if number < self.lowest {
            self.lowest = number;
        }
    }

    /// The numbers start again with this packet.
    fn restart(&mut self, shown: &Shown, time: i64) {
        self.before = self.expected();
        self.highest_time = time;
        (self.lowest, self.highest, self.window) = (shown.number, shown.number, 1);
        self.jitter.last = None;
        self.packets += 1;
        self.restarts += 1;
    }
}

/// The streams of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    list: Vec<Stream>,
    tries: u32,
}

impl Streams {
    /// The streams that count.
    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.list.iter().filter(|stream| stream.counts)
    }

    /// A packet that belongs to no stream, or may be the first of one.
    fn miss(&mut self) {
        let has_none = self.iter().next().is_none();
        self.tries += u32::from(has_none);
    }

    /// A packet of the direction.
    pub(super) fn packet(
        &mut self,
        (payload, length): (&[u8], usize),
        ports: [u16; 2],
        time: i64,
        packet: u64,
    ) {
        if self.tries >= TRIES_MAX {
            return;
        }
        let Some(shown) = shown(payload, length, ports) else {
            self.miss();
            return;
        };
        // An RTP sender may change its payload type: silence, tones.
        let same = |one: Protocol| {
            core::mem::discriminant(&one) == core::mem::discriminant(&shown.protocol)
        };
        let mut list = self.list.iter_mut();
        if let Some(stream) =
            list.find(|stream| same(stream.protocol) && stream.stream == shown.stream)
        {
            if !stream.packet(&shown, time, packet) {
                match stream.counts {
                    true => stream.restart(&shown, time),
                    false => *stream = Stream::new(&shown, time),
                }
            }
            return;
        }
        self.miss();
        if self.list.len() < STREAMS_MAX {
            self.list.push(Stream::new(&shown, time));
        } else if let Some(place) = self.list.iter_mut().find(|stream| !stream.counts) {
            *place = Stream::new(&shown, time);
        }
    }
}

#[cfg(test)]
mod tests;
