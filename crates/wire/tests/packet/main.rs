//! Finds the innermost IP packet in frames built from bytes, in frames of real captures, and in random input.
#![forbid(unsafe_code)]

mod build;
mod captured;
mod encapsulations;
mod lengths;
mod properties;

use wire::link::LinkType;
use wire::packet::{Packet, Skip, decode};

/// Decodes a completely captured frame.
fn whole(link: LinkType, frame: &[u8]) -> Result<Packet<'_>, Skip> {
    let mut packet = Packet::new();
    decode(link, frame, frame.len() as u32, &mut packet)?;
    Ok(packet)
}
