//! Encapsulations and counts as bytes, little-endian. Both ends are the same version of the program, so nothing here is a
//! file format.

use wire::link::LinkType;
use wire::packet::Layer;

use crate::records::tally::Tally;

/// Bytes that [`super::map`] did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no lot and no side data of this version of the program")]
pub struct Damaged;

/// A value of fixed layout.
pub(super) trait Value: Sized {
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it from the front.
    fn take(from: &mut &[u8]) -> Result<Self, Damaged>;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Result<Self, Damaged> {
                let (octets, rest) = from.split_first_chunk().ok_or(Damaged)?;
                *from = rest;
                Ok(Self::from_le_bytes(*octets))
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 i64);

impl Value for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
    fn take(from: &mut &[u8]) -> Result<Self, Damaged> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl<T: Value> Value for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(from: &mut &[u8]) -> Result<Self, Damaged> {
        match bool::take(from)? {
            true => T::take(from).map(Some),
            false => Ok(None),
        }
    }
}

impl<T: Value + Copy + Default, const N: usize> Value for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(out));
    }
    fn take(from: &mut &[u8]) -> Result<Self, Damaged> {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::take(from)?;
        }
        Ok(values)
    }
}

impl<A: Value, B: Value> Value for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(from: &mut &[u8]) -> Result<Self, Damaged> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl Value for Layer {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Layer::Vlan { id, tpid } => (0u8, (id, tpid)).put(out),
            Layer::Mpls { label } => (1u8, label).put(out),
            Layer::Pppoe { session } => (2u8, session).put(out),
            Layer::Ppp => 3u8.put(out),
            Layer::Ipv4 {
                source,
                destination,
            } => (4u8, (source, destination)).put(out),
            Layer::Ipv6 {
                source,
                destination,
            } => (5u8, (source, destination)).put(out),
            Layer::Gre { key } => (6u8, key).put(out),
            Layer::Pptp { call } => (7u8, call).put(out),
            Layer::Vxlan { vni } => (8u8, vni).put(out),
            Layer::Geneve { vni } => (9u8, vni).put(out),
            Layer::L2tp {
                version,
                tunnel,
                session,
            } => (10u8, (version, (tunnel, session))).put(out),
            Layer::Gtp { teid } => (11u8, teid).put(out),
            Layer::EtherIp => 12u8.put(out),
        }
    }
    fn take(from: &mut &[u8]) -> Result<Self, Damaged> {
        Ok(match u8::take(from)? {
            0 => {
                let (id, tpid) = Value::take(from)?;
                Layer::Vlan { id, tpid }
            }
            1 => Layer::Mpls {
                label: Value::take(from)?,
            },
            2 => Layer::Pppoe {
                session: Value::take(from)?,
            },
            3 => Layer::Ppp,
            4 => {
                let (source, destination) = Value::take(from)?;
                Layer::Ipv4 {
                    source,
                    destination,
                }
            }
            5 => {
                let (source, destination) = Value::take(from)?;
                Layer::Ipv6 {
                    source,
                    destination,
                }
            }
            6 => Layer::Gre {
                key: Value::take(from)?,
            },
            7 => Layer::Pptp {
                call: Value::take(from)?,
            },
            8 => Layer::Vxlan {
                vni: Value::take(from)?,
            },
            9 => Layer::Geneve {
                vni: Value::take(from)?,
            },
            10 => {
                let (version, (tunnel, session)) = Value::take(from)?;
                Layer::L2tp {
                    version,
                    tunnel,
                    session,
                }
            }
            11 => Layer::Gtp {
                teid: Value::take(from)?,
            },
            12 => Layer::EtherIp,
            _ => return Err(Damaged),
        })
    }
}

/// The counts of a range.
pub(super) fn tally(tally: &Tally) -> Vec<u8> {
    let mut out = Vec::new();
    let Tally {
        records,
        packets,
        tcp_seen,
        tcp,
        udp,
        other,
        fragments,
        joined,
        incomplete,
        overlapping,
        invalid,
        too_short,
        bad_tcp,
        bad_checksums,
        partial_checksums,
        backwards,
        skipped,
        links,
        layers,
        first_time,
        last_time,
    } = tally;
    for count in [
        records,
        packets,
        tcp_seen,
        tcp,
        udp,
        other,
        joined,
        incomplete,
        overlapping,
        invalid,
        too_short,
        bad_tcp,
        partial_checksums,
        backwards,
    ] {
        count.put(&mut out);
    }
    fragments.put(&mut out);
    bad_checksums.put(&mut out);
    skipped.put(&mut out);
    first_time.put(&mut out);
    last_time.put(&mut out);
    (links.len() as u32).put(&mut out);
    for (link, count) in links {
        (link.0, *count).put(&mut out);
    }
    for pair in layers.to_parts() {
        pair.put(&mut out);
    }
    out
}

/// The counts that [`tally`] wrote.
pub(super) fn read_tally(mut from: &[u8]) -> Result<Tally, Damaged> {
    let from = &mut from;
    let mut tally = Tally::default();
    for count in [
        &mut tally.records,
        &mut tally.packets,
        &mut tally.tcp_seen,
        &mut tally.tcp,
        &mut tally.udp,
        &mut tally.other,
        &mut tally.joined,
        &mut tally.incomplete,
        &mut tally.overlapping,
        &mut tally.invalid,
        &mut tally.too_short,
        &mut tally.bad_tcp,
        &mut tally.partial_checksums,
        &mut tally.backwards,
    ] {
        *count = Value::take(from)?;
    }
    tally.fragments = Value::take(from)?;
    tally.bad_checksums = Value::take(from)?;
    tally.skipped = Value::take(from)?;
    tally.first_time = Value::take(from)?;
    tally.last_time = Value::take(from)?;
    for _ in 0..u32::take(from)? {
        let (link, count) = Value::take(from)?;
        tally.links.insert(LinkType(link), count);
    }
    while !from.is_empty() {
        tally.layers.add_part(Value::take(from)?);
    }
    Ok(tally)
}
