//! Encodes UDP flows.

use core::net::IpAddr;
use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::key::FlowKey;
use crate::quic::Quic;
use crate::udp::traffic::Traffic;
use crate::udp::{Flow, Sent};

/// What not every flow has. It follows the rest as JSON.
#[derive(Default, Serialize, Deserialize)]
struct Besides<'a> {
    quic: Option<Cow<'a, Quic>>,
    traffic: Option<Cow<'a, Traffic>>,
}

/// Bytes of a frozen flow without what not every flow has.
const LENGTH: usize = 2 * 18 + 2 * 4 + 2 * 8 + 4 * 8;

/// A flow as bytes, without its own number and that of its first packet.
pub(super) fn freeze(flow: &Flow) -> Vec<u8> {
    let mut octets = [0; LENGTH];
    let mut rest = octets.as_mut_slice();
    let mut put = |part: &[u8]| {
        let (head, tail) = core::mem::take(&mut rest).split_at_mut(part.len());
        head.copy_from_slice(part);
        rest = tail;
    };
    for (address, port) in [flow.a_end(), flow.b_end()] {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        put(&address.octets());
        put(&port.to_le_bytes());
    }
    put(&flow.key.realm.to_le_bytes());
    put(&flow.file.to_le_bytes());
    put(&flow.first_time.to_le_bytes());
    put(&flow.last_time.to_le_bytes());
    for sent in [flow.a, flow.b] {
        put(&sent.packets.to_le_bytes());
        put(&sent.bytes.to_le_bytes());
    }
    let mut octets = octets.to_vec();
    let besides = Besides {
        quic: flow.quic.as_deref().map(Cow::Borrowed),
        traffic: flow.traffic.as_deref().map(Cow::Borrowed),
    };
    if besides.quic.is_some() || besides.traffic.is_some() {
        let json = serde_json::to_vec(&besides);
        octets.extend(json.expect("a struct of numbers and text has no fault"));
    }
    octets
}

/// The flow that was frozen; `None` if the bytes are not a frozen flow.
pub(super) fn thaw(octets: &[u8], first_packet: u64) -> Option<Flow> {
    let (octets, besides) = octets.split_first_chunk::<LENGTH>()?;
    let besides: Besides<'static> = match besides.is_empty() {
        true => Besides::default(),
        false => serde_json::from_slice(besides).ok()?,
    };
    let mut rest = octets.as_slice();
    let a: [u8; 16] = take(&mut rest)?;
    let a_port = u16::from_le_bytes(take(&mut rest)?);
    let b: [u8; 16] = take(&mut rest)?;
    let b_port = u16::from_le_bytes(take(&mut rest)?);
    let realm = u32::from_le_bytes(take(&mut rest)?);
    let (key, a_is_low) = FlowKey::new(&a, a_port, &b, b_port, realm);
    let file = u32::from_le_bytes(take(&mut rest)?);
    let first_time = i64::from_le_bytes(take(&mut rest)?);
    let last_time = i64::from_le_bytes(take(&mut rest)?);
    let mut sent = [Sent::default(); 2];
    for sent in &mut sent {
        sent.packets = u64::from_le_bytes(take(&mut rest)?);
        sent.bytes = u64::from_le_bytes(take(&mut rest)?);
    }
    Some(Flow {
        number: 0,
        first_packet,
        file,
        key,
        a_is_low,
        first_time,
        last_time,
        a: sent[0],
        b: sent[1],
        quic: besides.quic.map(|quic| Box::new(quic.into_owned())),
        traffic: besides
            .traffic
            .map(|traffic| Box::new(traffic.into_owned())),
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}
