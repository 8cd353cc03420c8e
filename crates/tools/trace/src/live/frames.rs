//! Frames of a ring as a capture file would have them: with the VLAN tag that the kernel removed, and cooked ones with
//! the header of LINKTYPE_LINUX_SLL2 (tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html).

use capfile::Block;
use reactor::capture::{Form, Frame};
use wire::link::LinkType;

/// Bytes of both addresses of an Ethernet header: the VLAN tag is behind them (IEEE 802.1Q 9.3).
const ADDRESSES: usize = 12;

/// Bytes of a VLAN tag.
const TAG: u32 = 4;

/// Bytes of the header of a cooked frame.
const COOKED: usize = 20;

/// The link type of frames of this form.
pub(super) fn link(form: Form) -> LinkType {
    match form {
        Form::Ethernet => LinkType::ETHERNET,
        Form::Ip => LinkType::RAW,
        Form::Cooked => LinkType::LINUX_SLL2,
    }
}

/// Adds a frame to the block. False if the block is full.
pub(super) fn push(block: &mut Block, form: Form, frame: &Frame<'_>) -> bool {
    let (bytes, length, time, link) = (frame.bytes, frame.length, frame.time_ns, link(form));
    match (form, frame.tag) {
        (Form::Ethernet, Some(tag)) if bytes.len() >= ADDRESSES => {
            let (addresses, rest) = bytes.split_at(ADDRESSES);
            let length = length.saturating_add(TAG);
            block.push(time, length, link, &[addresses, &tag, rest])
        }
        (Form::Ethernet | Form::Ip, _) => block.push(time, length, link, &[bytes]),
        (Form::Cooked, tag) => {
            let (header, rest) = cooked(frame, tag);
            let added = (COOKED + rest.len()) as u32;
            let length = length.saturating_add(added);
            block.push(time, length, link, &[&header, &rest, bytes])
        }
    }
}

/// The header of a cooked frame, and the rest of its VLAN tag: the tag's TPID takes the place of the EtherType, which
/// follows the TCI.
fn cooked(frame: &Frame<'_>, tag: Option<[u8; 4]>) -> ([u8; COOKED], Vec<u8>) {
    let protocol = frame.protocol.to_be_bytes();
    let (kind, rest) = match tag {
        Some([a, b, c, d]) => ([a, b], vec![c, d, protocol[0], protocol[1]]),
        None => (protocol, Vec::new()),
    };
    let mut header = [0; COOKED];
    header[..2].copy_from_slice(&kind);
    header[4..8].copy_from_slice(&frame.interface.to_be_bytes());
    header[8..10].copy_from_slice(&frame.hardware.to_be_bytes());
    (header[10], header[11]) = (frame.kind, frame.address_length);
    header[12..].copy_from_slice(&frame.address);
    (header, rest)
}

#[cfg(test)]
mod tests {
    use wire::packet::{self, Layer, Packet};

    use super::*;

    fn frame(bytes: &[u8]) -> Frame<'_> {
        Frame {
            bytes,
            length: bytes.len() as u32,
            time_ns: 7,
            tag: None,
            interface: 3,
            hardware: 1,
            protocol: 0x0800,
            kind: 4,
            address: [2, 0, 0, 0, 0, 1, 0, 0],
            address_length: 6,
        }
    }

    /// An IPv4 packet of 20 bytes.
    fn ip() -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
        ip.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        ip
    }

    /// The VLANs of the only packet, decoded as from a file.
    fn vlans(block: &Block) -> Vec<u16> {
        let [record] = block.records() else {
            panic!("one packet");
        };
        let mut packet = Packet::new();
        packet::decode(record.link, block.bytes(record), record.length, &mut packet).unwrap();
        assert_eq!(packet.source[12..], [192, 0, 2, 1]);
        let layers = packet.layers.as_slice().iter();
        layers
            .filter_map(|layer| match layer {
                Layer::Vlan { id, .. } => Some(*id),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_removed_tag_is_put_back_where_it_was() {
        let mut bytes = vec![2; ADDRESSES];
        bytes.extend([0x08, 0]);
        bytes.extend(ip());
        for (tag, expected) in [(None, vec![]), (Some([0x81, 0, 0x60, 5]), vec![5])] {
            let mut block = Block::new();
            let frame = Frame {
                tag,
                ..frame(&bytes)
            };
            assert!(push(&mut block, Form::Ethernet, &frame));
            let added = if tag.is_some() { 4 } else { 0 };
            assert_eq!(block.records()[0].length, bytes.len() as u32 + added);
            assert_eq!(vlans(&block), expected);
        }
    }

    #[test]
    fn a_cooked_frame_has_its_interface_and_its_tag() {
        let ip = ip();
        for (tag, expected) in [(None, vec![]), (Some([0x81, 0, 0x60, 9]), vec![9])] {
            let mut block = Block::new();
            let frame = Frame { tag, ..frame(&ip) };
            assert!(push(&mut block, Form::Cooked, &frame));
            let record = &block.records()[0];
            let bytes = block.bytes(record);
            assert_eq!(bytes[4..8], [0, 0, 0, 3]);
            assert_eq!(bytes[8..12], [0, 1, 4, 6]);
            assert_eq!(record.length, record.captured);
            assert_eq!(vlans(&block), expected);
        }
    }

    #[test]
    fn a_frame_cut_before_its_tag_stays_as_it_is() {
        let frame = Frame {
            tag: Some([0x81, 0, 0, 1]),
            ..frame(&[1, 2, 3])
        };
        let mut block = Block::new();
        assert!(push(&mut block, Form::Ethernet, &frame));
        assert_eq!(block.bytes(&block.records()[0]), [1, 2, 3]);
        assert!(push(&mut block, Form::Ip, &frame));
        assert_eq!(block.records()[1].link, LinkType::RAW);
    }
}
