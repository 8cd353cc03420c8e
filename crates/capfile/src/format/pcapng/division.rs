//! Reading a part of a file: the blocks that must precede a packet so that it can be read.

use super::interface::{Interface, Resolution};
use super::{BYTE_ORDER, INTERFACE, PcapNg, SECTION, VERSION_MAJOR};
use crate::octets::Order;

const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

impl PcapNg {
    /// The section's header, and its interfaces so far, as blocks with what the reading needs of them.
    pub(crate) fn preamble(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_u32(self.order, &mut body, BYTE_ORDER);
        put_u16(self.order, &mut body, VERSION_MAJOR);
        put_u16(self.order, &mut body, 0);
        body.extend([0xff; 8]);
        let mut out = Vec::new();
        put_block(self.order, &mut out, u32::from_be_bytes(SECTION), &body);
        for interface in &self.interfaces {
            body.clear();
            put_interface(self.order, &mut body, interface);
            put_block(self.order, &mut out, INTERFACE, &body);
        }
        out
    }
}

/// A type that reads the same in both orders is written as such.
fn put_block(order: Order, out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = 12 + body.len() as u32;
    match kind.to_be_bytes() {
        SECTION => out.extend(SECTION),
        _ => put_u32(order, out, kind),
    }
    put_u32(order, out, length);
    out.extend(body);
    put_u32(order, out, length);
}

fn put_interface(order: Order, body: &mut Vec<u8>, interface: &Interface) {
    put_u16(order, body, interface.link.0);
    put_u16(order, body, 0);
    put_u32(order, body, interface.snaplen);
    put_u16(order, body, IF_TSRESOL);
    put_u16(order, body, 1);
    body.extend([interface.resolution.octet(), 0, 0, 0]);
    put_u16(order, body, IF_TSOFFSET);
    put_u16(order, body, 8);
    match order {
        Order::Big => body.extend(interface.offset_s.to_be_bytes()),
        Order::Little => body.extend(interface.offset_s.to_le_bytes()),
    }
    // The end of the options.
    body.extend([0; 4]);
}

fn put_u16(order: Order, out: &mut Vec<u8>, value: u16) {
    match order {
        Order::Big => out.extend(value.to_be_bytes()),
        Order::Little => out.extend(value.to_le_bytes()),
    }
}

fn put_u32(order: Order, out: &mut Vec<u8>, value: u32) {
    match order {
        Order::Big => out.extend(value.to_be_bytes()),
        Order::Little => out.extend(value.to_le_bytes()),
    }
}

impl Resolution {
    /// The value of if_tsresol.
    fn octet(self) -> u8 {
        match self {
            Resolution::Nanos(unit_ns) => 9 - unit_ns.ilog10() as u8,
            // Finer ones than 10^-47 all give the same times.
            Resolution::Finer(to_the_ns) => 9 + to_the_ns.ilog10() as u8,
            Resolution::Binary(power) => 0x80 | power as u8,
        }
    }
}
