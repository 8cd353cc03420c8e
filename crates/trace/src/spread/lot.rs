//! The segments of a lot as bytes. Both ends are the same version of the program, so nothing here is a file format.
//!
//! A segment has a core of [`CORE`] bytes at fixed offsets, which is all that most segments of IPv4 need beside their time
//! stamps. [`shape`] says which fields follow it. Numbers and times are differences to the segment before in the lot. The
//! hash of the flow is left out: the reader computes it again.

use super::codec::{Damaged, Value};
use crate::key::FlowKey;
use crate::records::decoded::Decoded;
use crate::segment::{Segment, SegmentOptions};

/// Bytes of a segment's core.
const CORE: usize = 45;

/// The upper half of the second number of an IPv4 address: ::ffff:a.b.c.d.
const MAPPED: u64 = 0xffff;

/// What follows the core, in this order.
mod shape {
    /// The lower end of the key sent it. Nothing follows.
    pub(super) const FROM_LOW: u16 = 1;
    /// It is IPv6. Nothing follows.
    pub(super) const IPV6: u16 = 1 << 1;
    /// A time stamp.
    pub(super) const STAMP: u16 = 1 << 2;
    /// Differences of number and time that do not fit the core.
    pub(super) const FAR: u16 = 1 << 3;
    /// The clock, if it differs from the time.
    pub(super) const CLOCK: u16 = 1 << 4;
    /// Addresses that are not of IPv4.
    pub(super) const ADDRESSES: u16 = 1 << 5;
    /// The realm.
    pub(super) const REALM: u16 = 1 << 6;
    /// Options other than a time stamp.
    pub(super) const OPTIONS: u16 = 1 << 7;
    /// The lengths of a payload above 65,535 bytes, as sent and as captured.
    pub(super) const LONG: u16 = 1 << 8;
    /// The urgent pointer.
    pub(super) const URGENT: u16 = 1 << 9;
    /// Encapsulations.
    pub(super) const LAYERS: u16 = 1 << 10;
}

/// A lot in the making.
#[derive(Debug, Default)]
pub(super) struct Lot {
    pub(super) octets: Vec<u8>,
    /// Number and time of the last segment.
    last: (u64, i64),
}

/// Adds each segment to the lot of its part.
pub(super) fn add(decoded: &mut Decoded, lots: &mut [Lot]) {
    let parts = lots.len() as u64;
    let (segments, stacks) = decoded.parts();
    for (at, (hash, segment)) in segments.iter().enumerate() {
        // As `is_mine` has it.
        let lot = &mut lots[(hash % parts) as usize];
        let layers = stacks.of(at);
        let far = lot.add(segment, !layers.is_empty());
        if !layers.is_empty() {
            (layers.len() as u8).put(far);
            layers.iter().for_each(|layer| layer.put(far));
        }
    }
}

impl Lot {
    /// Adds a segment. Its encapsulations are to follow, if there are any.
    #[inline(always)]
    fn add(&mut self, segment: &Segment, layers: bool) -> &mut Vec<u8> {
        let [low, low_v4, high, high_v4, ports, realm] = segment.key.parts();
        let addresses = (low | high) != 0
            || (low_v4 & high_v4) >> 32 != MAPPED
            || (low_v4 | high_v4) >> 32 != MAPPED;
        let number = segment.number.wrapping_sub(self.last.0);
        let elapsed = segment.time.wrapping_sub(self.last.1);
        self.last = (segment.number, segment.time);
        let (short, near) = match (u32::try_from(number), i32::try_from(elapsed)) {
            (Ok(short), Ok(near)) => (short, near),
            _ => (0, 0),
        };
        let is_far = (u64::from(short), i64::from(near)) != (number, elapsed);
        let options = &segment.options;
        let bits = [
            (shape::FROM_LOW, segment.from_low),
            (shape::IPV6, segment.version == 6),
            (shape::STAMP, options.timestamps),
            (shape::FAR, is_far),
            (shape::CLOCK, segment.clock != segment.time),
            (shape::ADDRESSES, addresses),
            (shape::REALM, realm != 0),
            (shape::OPTIONS, has_more(options)),
            (shape::LONG, (segment.payload | segment.captured) >> 16 != 0),
            (shape::URGENT, segment.urgent != 0),
            (shape::LAYERS, layers),
        ];
        let bits = bits
            .iter()
            .fold(0, |bits, &(bit, set)| if set { bits | bit } else { bits });
        let mut core = [0u8; CORE + 8];
        put(&mut core, 0, bits.to_le_bytes());
        put(&mut core, 2, segment.flags.to_le_bytes());
        put(&mut core, 4, short.to_le_bytes());
        put(&mut core, 8, near.to_le_bytes());
        put(&mut core, 12, (low_v4 as u32).to_le_bytes());
        put(&mut core, 16, (high_v4 as u32).to_le_bytes());
        put(&mut core, 20, (ports as u32).to_le_bytes());
        put(&mut core, 24, segment.sequence.to_le_bytes());
        put(&mut core, 28, segment.acknowledgment.to_le_bytes());
        put(&mut core, 32, segment.window.to_le_bytes());
        put(&mut core, 34, segment.checksum.to_le_bytes());
        put(&mut core, 36, segment.id.to_le_bytes());
        put(&mut core, 38, (segment.payload as u16).to_le_bytes());
        put(&mut core, 43, (segment.captured as u16).to_le_bytes());
        core[40] = segment.traffic_class;
        core[41] = segment.hop_limit;
        core[42] = segment.lead;
        let stamp = options.sack[3];
        put(&mut core, CORE, stamp.0.to_le_bytes());
        put(&mut core, CORE + 4, stamp.1.to_le_bytes());
        let octets = &mut self.octets;
        match options.timestamps {
            true => octets.extend_from_slice(&core),
            false => octets.extend_from_slice(&core[..CORE]),
        }
        if bits & !(shape::FROM_LOW | shape::IPV6 | shape::STAMP | shape::LAYERS) != 0 {
            more(octets, segment, bits, (number, elapsed));
        }
        octets
    }
}

#[inline(always)]
fn put<const N: usize>(core: &mut [u8; CORE + 8], at: usize, octets: [u8; N]) {
    core[at..at + N].copy_from_slice(&octets);
}

/// Whether there are options other than a time stamp.
fn has_more(options: &SegmentOptions) -> bool {
    let first = options.mss.is_some() | options.window_scale.is_some() | options.sack_permitted;
    first | (options.blocks > 0)
}

/// Adds the fields that most segments do not need.
#[inline(never)]
fn more(out: &mut Vec<u8>, segment: &Segment, bits: u16, (number, elapsed): (u64, i64)) {
    if bits & shape::FAR != 0 {
        (number, elapsed).put(out);
    }
    if bits & shape::CLOCK != 0 {
        segment.clock.put(out);
    }
    let [low, low_v4, high, high_v4, _, realm] = segment.key.parts();
    if bits & shape::ADDRESSES != 0 {
        [low, low_v4, high, high_v4].put(out);
    }
    if bits & shape::REALM != 0 {
        (realm as u32).put(out);
    }
    if bits & shape::OPTIONS != 0 {
        let options = &segment.options;
        (options.mss, (options.window_scale, options.sack_permitted)).put(out);
        options.blocks.put(out);
        options.sack().iter().for_each(|block| block.put(out));
    }
    if bits & shape::LONG != 0 {
        (segment.payload, segment.captured).put(out);
    }
    if bits & shape::URGENT != 0 {
        segment.urgent.put(out);
    }
}

/// Reads the segments of a lot.
pub(super) struct Segments<'a> {
    rest: &'a [u8],
    last: (u64, i64),
    /// No segment has a clock less than this.
    now: i64,
    seed: u64,
}

impl<'a> Segments<'a> {
    /// `seed` is that of the hashes of flows.
    pub(super) fn new(lot: &'a [u8], now: i64, seed: u64) -> Segments<'a> {
        let last = (0, 0);
        Segments {
            rest: lot,
            last,
            now,
            seed,
        }
    }

    /// Replaces the segments by the next ones, at most `most`. False if there are none.
    pub(super) fn next(&mut self, decoded: &mut Decoded, most: usize) -> Result<bool, Damaged> {
        decoded.clear();
        while decoded.len() < most && !self.rest.is_empty() {
            let place = decoded.place();
            let segment = &mut place.1;
            let bits = self.core(segment)?;
            if bits & shape::OPTIONS == 0 {
                let stamp = segment.options.sack[3];
                segment.options = SegmentOptions::default();
                segment.options.timestamps = bits & shape::STAMP != 0;
                segment.options.sack[3] = stamp;
            }
            if bits & !(shape::FROM_LOW | shape::IPV6 | shape::STAMP | shape::LAYERS) != 0 {
                self.more(segment, bits)?;
            }
            segment.clock = segment.clock.max(self.now);
            place.0 = segment.key.hash(self.seed);
            match bits & shape::LAYERS != 0 {
                true => self.layers(decoded)?,
                false => decoded.add_in(&[]),
            }
        }
        Ok(decoded.len() > 0)
    }

    /// Reads the core and the time stamp.
    #[inline(always)]
    fn core(&mut self, segment: &mut Segment) -> Result<u16, Damaged> {
        let (core, rest) = self.rest.split_first_chunk::<CORE>().ok_or(Damaged)?;
        self.rest = rest;
        let bits = u16::from_le_bytes(get(core, 0));
        let number = u32::from_le_bytes(get(core, 4));
        let elapsed = i32::from_le_bytes(get(core, 8));
        segment.number = self.last.0.wrapping_add(number.into());
        segment.time = self.last.1.wrapping_add(elapsed.into());
        segment.clock = segment.time;
        self.last = (segment.number, segment.time);
        let address = |at| MAPPED << 32 | u64::from(u32::from_le_bytes(get(core, at)));
        let ports = u32::from_le_bytes(get(core, 20));
        segment.key = FlowKey::from_parts([0, address(12), 0, address(16), ports.into(), 0]);
        segment.from_low = bits & shape::FROM_LOW != 0;
        segment.version = if bits & shape::IPV6 != 0 { 6 } else { 4 };
        segment.flags = u16::from_le_bytes(get(core, 2));
        segment.sequence = u32::from_le_bytes(get(core, 24));
        segment.acknowledgment = u32::from_le_bytes(get(core, 28));
        segment.window = u16::from_le_bytes(get(core, 32));
        segment.checksum = u16::from_le_bytes(get(core, 34));
        segment.id = u16::from_le_bytes(get(core, 36));
        segment.payload = u16::from_le_bytes(get(core, 38)).into();
        segment.captured = u16::from_le_bytes(get(core, 43)).into();
        segment.traffic_class = core[40];
        segment.hop_limit = core[41];
        segment.lead = core[42];
        segment.urgent = 0;
        segment.options.sack[3] = (0, 0);
        if bits & shape::STAMP != 0 {
            let (stamp, rest) = self.rest.split_first_chunk::<8>().ok_or(Damaged)?;
            self.rest = rest;
            segment.options.sack[3] = (
                u32::from_le_bytes(get(stamp, 0)),
                u32::from_le_bytes(get(stamp, 4)),
            );
        }
        Ok(bits)
    }

    /// Reads what [`more`] wrote.
    #[inline(never)]
    fn more(&mut self, segment: &mut Segment, bits: u16) -> Result<(), Damaged> {
        let from = &mut self.rest;
        if bits & shape::FAR != 0 {
            let (number, elapsed): (u64, i64) = Value::take(from)?;
            segment.number = segment.number.wrapping_add(number);
            segment.time = segment.time.wrapping_add(elapsed);
            segment.clock = segment.time;
            self.last = (segment.number, segment.time);
        }
        if bits & shape::CLOCK != 0 {
            segment.clock = Value::take(from)?;
        }
        let [.., ports, _] = segment.key.parts();
        if bits & shape::ADDRESSES != 0 {
            let [low, low_v4, high, high_v4]: [u64; 4] = Value::take(from)?;
            segment.key = FlowKey::from_parts([low, low_v4, high, high_v4, ports, 0]);
        }
        if bits & shape::REALM != 0 {
            segment.key.realm = Value::take(from)?;
        }
        if bits & shape::OPTIONS != 0 {
            let (mss, (window_scale, sack_permitted)) = Value::take(from)?;
            let (blocks, stamp) = (u8::take(from)?, segment.options.sack[3]);
            let options = &mut segment.options;
            *options = SegmentOptions {
                mss,
                window_scale,
                sack_permitted,
                blocks,
                ..SegmentOptions::default()
            };
            let is_stamped = bits & shape::STAMP != 0;
            let room = options.sack.len() - usize::from(is_stamped);
            for place in options.sack[..room]
                .get_mut(..blocks.into())
                .ok_or(Damaged)?
            {
                *place = Value::take(from)?;
            }
            if is_stamped {
                options.set_stamp(Some(stamp));
            }
        }
        if bits & shape::LONG != 0 {
            (segment.payload, segment.captured) = Value::take(from)?;
        }
        if bits & shape::URGENT != 0 {
            segment.urgent = Value::take(from)?;
        }
        Ok(())
    }

    /// Adds the segment with its encapsulations.
    #[inline(never)]
    fn layers(&mut self, decoded: &mut Decoded) -> Result<(), Damaged> {
        let count = u8::take(&mut self.rest)?;
        let layers = (0..count).map(|_| Value::take(&mut self.rest));
        let layers: Vec<_> = layers.collect::<Result<_, _>>()?;
        decoded.add_in(&layers);
        Ok(())
    }
}

#[inline(always)]
fn get<const N: usize>(octets: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&octets[at..at + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::packet::Layer;

    fn key() -> impl Strategy<Value = FlowKey> {
        let v4 = any::<u32>().prop_map(|address| MAPPED << 32 | u64::from(address));
        let halves = prop_oneof![
            3 => (Just(0), v4),
            1 => any::<(u64, u64)>(),
        ];
        let realm = prop_oneof![3 => Just(0u32), 1 => any::<u32>()];
        (halves.clone(), halves, any::<u32>(), realm).prop_map(|(low, high, ports, realm)| {
            FlowKey::from_parts([low.0, low.1, high.0, high.1, ports.into(), realm.into()])
        })
    }

    fn options() -> impl Strategy<Value = SegmentOptions> {
        let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..4);
        let given = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>());
        let stamp = any::<Option<(u32, u32)>>();
        (given, blocks, stamp).prop_map(|((mss, window_scale, sack_permitted), blocks, stamp)| {
            let mut options = SegmentOptions {
                mss,
                window_scale,
                sack_permitted,
                blocks: blocks.len() as u8,
                ..SegmentOptions::default()
            };
            options.sack[..blocks.len()].copy_from_slice(&blocks);
            options.set_stamp(stamp);
            options
        })
    }

    fn segment() -> impl Strategy<Value = (Segment, Vec<Layer>)> {
        let times = (any::<i64>(), any::<Option<i64>>(), any::<u64>());
        let length = prop_oneof![0..1500u32, any::<u32>()];
        let options = prop_oneof![Just(SegmentOptions::default()), options()];
        let octets = any::<(u8, u8, u8, bool, bool)>();
        let fields = any::<(u16, u16, u16, u16, u16, u32, u32)>();
        let layers = prop_oneof![
            Just(Vec::new()),
            any::<(u16, u32)>().prop_map(|(id, label)| vec![
                Layer::Vlan { id, tpid: 0x8100 },
                Layer::Mpls { label }
            ]),
        ];
        let all = (
            times,
            key(),
            (length.clone(), length),
            options,
            octets,
            fields,
            layers,
        );
        all.prop_map(|(times, key, lengths, options, octets, fields, layers)| {
            let segment = Segment {
                number: times.2,
                time: times.0,
                clock: times.1.unwrap_or(times.0),
                key,
                from_low: octets.3,
                version: if octets.4 { 6 } else { 4 },
                lead: octets.0,
                traffic_class: octets.1,
                hop_limit: octets.2,
                id: fields.0,
                flags: fields.1,
                sequence: fields.5,
                acknowledgment: fields.6,
                window: fields.2,
                checksum: fields.3,
                urgent: fields.4,
                payload: lengths.0,
                captured: lengths.1,
                options,
            };
            (segment, layers)
        })
    }

    proptest! {
        #[test]
        fn a_lot_has_every_field_of_its_segments(all in prop::collection::vec(segment(), 0..20)) {
            let mut decoded = Decoded::default();
            for (segment, layers) in &all {
                *decoded.place() = (segment.key.hash(7), *segment);
                decoded.add_in(layers);
            }
            let mut lots = [Lot::default()];
            add(&mut decoded, &mut lots);
            let mut segments = Segments::new(&lots[0].octets, i64::MIN, 7);
            let mut found = Vec::new();
            // The room has other segments before.
            while segments.next(&mut decoded, 3).unwrap() {
                let (own, stacks) = decoded.parts();
                for (at, (hash, segment)) in own.iter().enumerate() {
                    prop_assert_eq!(*hash, segment.key.hash(7));
                    found.push(format!("{segment:?} {:?}", stacks.of(at)));
                }
            }
            let expected: Vec<String> = (all.iter())
                .map(|(segment, layers)| format!("{segment:?} {:?}", &layers[..]))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn most_segments_need_their_core_and_their_time_stamp_alone() {
        let address = |last: u64| MAPPED << 32 | 0xc000_0200 | last;
        let mut segment = Segment {
            number: 1,
            time: 1,
            clock: 1,
            key: FlowKey::from_parts([0, address(1), 0, address(2), 5, 0]),
            version: 4,
            ..Segment::default()
        };
        segment.options.set_stamp(Some((1, 2)));
        let mut decoded = Decoded::default();
        *decoded.place() = (0, segment);
        decoded.add_in(&[]);
        let mut lots = [Lot::default()];
        add(&mut decoded, &mut lots);
        assert_eq!(lots[0].octets.len(), CORE + 8);
    }
}
