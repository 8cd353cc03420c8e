//! Ethernet's header and up to two VLAN tags (IEEE 802.3, 802.1Q, 802.1ad) before a PPPoE packet.

use pppoe::Vlans;
use reactor::ether::EtherFrame;
use wire::pppoe::{Code, ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION, Mac};

/// The tag protocol of a single tag and of the inner one of two (IEEE 802.1Q).
const TAG: u16 = 0x8100;
/// The usual tag protocol of the outer one of two tags (IEEE 802.1ad).
pub(super) const TAG_OUTER: u16 = 0x88a8;

/// Tag protocols that are read: also two that were used before 802.1ad.
const TAGS: [u16; 4] = [TAG, TAG_OUTER, 0x9100, 0x9200];

/// Bits of a VLAN id in a tag. Id 0 is a tag with a priority alone.
const ID: u16 = 0x0fff;

/// A PPPoE packet with the contents of Ethernet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened<'a> {
    pub(super) source: Mac,
    /// Whether the destination is a group.
    pub(super) is_group: bool,
    pub(super) vlans: Vlans,
    /// The tag protocol of the outer tag.
    pub(super) outer: Option<u16>,
    /// The PPPoE packet, and what pads the frame.
    pub(super) packet: &'a [u8],
}

/// Reads the header of a frame. `None`: the frame is cut, has more than two tags, is from a group, or its EtherType and
/// its code do not belong together.
#[inline]
pub(super) fn open<'a>(frame: &EtherFrame<'a>) -> Option<Opened<'a>> {
    let (addresses, mut rest) = frame.bytes.split_first_chunk::<12>()?;
    let mut ids = [None; 2];
    let mut outer = None;
    let mut note = |kind: u16, tag: u16| {
        outer.get_or_insert(kind);
        let id = tag & ID;
        if id == 0 {
            return true;
        }
        let free = ids.iter_mut().find(|place| place.is_none());
        free.map(|place| *place = Some(id)).is_some()
    };
    if let Some([a, b, c, d]) = frame.tag
        && !note(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    {
        return None;
    }
    let kind = loop {
        let (kind, after) = rest.split_first_chunk::<2>()?;
        let kind = u16::from_be_bytes(*kind);
        if !TAGS.contains(&kind) {
            rest = after;
            break kind;
        }
        let (tag, after) = after.split_first_chunk::<2>()?;
        if !note(kind, u16::from_be_bytes(*tag)) {
            return None;
        }
        rest = after;
    };
    let [to, .., a, b, c, d, e, f] = *addresses;
    let source = Mac([a, b, c, d, e, f]);
    let code = Code(*rest.get(1)?);
    let vlans = match ids {
        [None, _] => Vlans::NONE,
        [Some(one), None] => Vlans::one(one),
        [Some(outer), Some(inner)] => Vlans::two(outer, inner),
    };
    let belongs =
        kind == code.ether_type() && [ETHER_TYPE_DISCOVERY, ETHER_TYPE_SESSION].contains(&kind);
    (belongs && source.is_unicast()).then_some(Opened {
        source,
        is_group: to & 1 != 0,
        vlans,
        outer: outer.filter(|_| vlans.inner().is_some()),
        packet: rest,
    })
}

/// Appends the header of a frame; the EtherType is that of session data. [`complete`] sets it by the packet's code.
#[inline]
pub(super) fn append(out: &mut Vec<u8>, from: [u8; 6], to: Mac, vlans: Vlans, outer_tag: u16) {
    out.extend_from_slice(&to.0);
    out.extend_from_slice(&from);
    let mut tag = |kind: u16, id: u16| {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
    };
    match (vlans.outer(), vlans.inner()) {
        (None, _) => {}
        (Some(one), None) => tag(TAG, one),
        (Some(outer), Some(inner)) => {
            tag(outer_tag, outer);
            tag(TAG, inner);
        }
    }
    out.extend_from_slice(&ETHER_TYPE_SESSION.to_be_bytes());
}

/// Appends a whole frame.
pub(crate) fn append_frame(out: &mut Vec<u8>, from: Mac, to: Mac, vlans: Vlans, packet: &[u8]) {
    append(out, from.0, to, vlans, TAG_OUTER);
    let start = out.len();
    out.extend_from_slice(packet);
    complete(out, start);
}

/// Sets the EtherType of a frame by the code of the PPPoE packet at `packet`.
#[inline]
pub(super) fn complete(frame: &mut [u8], packet: usize) {
    let code = Code(frame.get(packet + 1).copied().unwrap_or(0));
    if code != Code::DATA {
        frame[packet - 2..packet].copy_from_slice(&code.ether_type().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const HOST: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn frame(vlans: Vlans, code: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        append(&mut frame, HOST.0, Mac(OWN), vlans, TAG_OUTER);
        let packet = frame.len();
        frame.extend([0x11, code, 0, 0, 0, 0]);
        complete(&mut frame, packet);
        frame
    }

    #[test]
    fn what_is_appended_is_read_again_and_the_kernel_may_remove_the_outer_tag() {
        for vlans in [Vlans::NONE, Vlans::one(7), Vlans::two(100, 4094)] {
            for code in [Code::DATA, Code::PADI, Code::PADT] {
                let whole = frame(vlans, code.0);
                let mut stripped = whole.clone();
                let tag: Option<[u8; 4]> = vlans.outer().map(|_| {
                    stripped
                        .drain(12..16)
                        .collect::<Vec<_>>()
                        .try_into()
                        .unwrap()
                });
                for (bytes, tag) in [(&whole, None), (&stripped, tag)] {
                    let opened = open(&EtherFrame { bytes, tag }).unwrap();
                    assert_eq!(
                        (opened.source, opened.vlans, opened.is_group),
                        (HOST, vlans, false)
                    );
                    assert_eq!(opened.packet, [0x11, code.0, 0, 0, 0, 0]);
                    let outer = vlans.inner().map(|_| TAG_OUTER);
                    assert_eq!(opened.outer, outer);
                }
            }
        }
    }

    #[test]
    fn a_tag_with_a_priority_alone_is_no_vlan() {
        let mut bytes = frame(Vlans::NONE, 9);
        bytes.splice(12..12, [0x81, 0, 0xe0, 0]);
        let opened = open(&EtherFrame {
            bytes: &bytes,
            tag: None,
        });
        assert_eq!(opened.unwrap().vlans, Vlans::NONE);
    }

    #[test]
    fn frames_that_are_cut_or_do_not_fit_together_are_ignored() {
        let whole = frame(Vlans::two(1, 2), 9);
        let ignored = |bytes: &[u8], tag| open(&EtherFrame { bytes, tag }).is_none();
        for end in 0..whole.len() - 4 {
            assert!(ignored(&whole[..end], None), "{end}");
        }
        assert!(ignored(&whole, Some([0x88, 0xa8, 0, 3])), "three tags");
        let mut other = whole.clone();
        other[20..22].copy_from_slice(&ETHER_TYPE_SESSION.to_be_bytes());
        assert!(ignored(&other, None), "PADI with the EtherType of data");
        let mut group = whole;
        group[6] |= 1;
        assert!(ignored(&group, None), "a source that is a group");
    }
}
