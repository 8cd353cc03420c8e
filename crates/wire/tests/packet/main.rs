//! From frames to the innermost IP packet: frames built from octets, frames of
//! real captures, and chance.
#![forbid(unsafe_code)]

mod build;
mod captured;
mod encapsulations;
mod lengths;
mod properties;

use wire::link::LinkType;
use wire::packet::{Packet, Skip, decode};

/// Decodes a frame that was captured whole.
fn whole(link: LinkType, frame: &[u8]) -> Result<Packet<'_>, Skip> {
    let mut packet = Packet::new();
    decode(link, frame, frame.len() as u32, &mut packet)?;
    Ok(packet)
}
