//! Parses a record's bytes. `None` if they contradict themselves.

use wire::bgp::{AfiSafi, Family, FamilyId, Prefix};
use wire::with_family;

use super::octets::Octets;
use super::record::{
    Body, Entries, Message, Peer, PeerIndexTable, Rib, Session, StateChange, TableDump,
};
use super::{bgp4mp, kind, table};

/// What the record of that type holds.
pub(super) fn body(kind: u16, subtype: u16, octets: &[u8]) -> Option<Body<'_>> {
    let unknown = Body::Unknown {
        kind,
        subtype,
        octets,
    };
    let octets = Octets(octets);
    match kind {
        kind::TABLE_DUMP => match subtype {
            1 => table_dump(octets, FamilyId::Ipv4Unicast),
            2 => table_dump(octets, FamilyId::Ipv6Unicast),
            _ => Some(unknown),
        },
        kind::TABLE_DUMP_V2 => table_dump_v2(subtype, octets, unknown),
        kind::BGP4MP | kind::BGP4MP_ET => bgp4mp(subtype, octets, unknown),
        _ => Some(unknown),
    }
}

/// RFC 6396, section 4.2.
fn table_dump(mut octets: Octets<'_>, family: FamilyId) -> Option<Body<'_>> {
    let is_v6 = family == FamilyId::Ipv6Unicast;
    let view = octets.u16()?;
    let sequence = octets.u16()?;
    let address = octets.address(is_v6)?;
    let len = octets.u8().filter(|&len| len <= family.bits())?;
    let _status = octets.u8()?;
    let dump = TableDump {
        view,
        sequence,
        prefix: Prefix::of(address, len),
        originated_s: octets.u32()?,
        peer: octets.address(is_v6)?,
        peer_asn: octets.u16()?,
        attributes: {
            let len = octets.u16()?;
            octets.slice(usize::from(len))?
        },
    };
    Some(Body::TableDump(dump))
}

/// RFC 6396, section 4.3; RFC 8050, section 4.
fn table_dump_v2<'a>(subtype: u16, mut octets: Octets<'a>, unknown: Body<'a>) -> Option<Body<'a>> {
    let (family, is_multicast, add_path) = match subtype {
        table::PEER_INDEX_TABLE => return peer_index_table(octets),
        table::IPV4_UNICAST => (FamilyId::Ipv4Unicast, false, false),
        table::IPV4_MULTICAST => (FamilyId::Ipv4Unicast, true, false),
        table::IPV6_UNICAST => (FamilyId::Ipv6Unicast, false, false),
        table::IPV6_MULTICAST => (FamilyId::Ipv6Unicast, true, false),
        table::IPV4_UNICAST_ADD_PATH => (FamilyId::Ipv4Unicast, false, true),
        table::IPV4_MULTICAST_ADD_PATH => (FamilyId::Ipv4Unicast, true, true),
        table::IPV6_UNICAST_ADD_PATH => (FamilyId::Ipv6Unicast, false, true),
        table::IPV6_MULTICAST_ADD_PATH => (FamilyId::Ipv6Unicast, true, true),
        table::GENERIC | table::GENERIC_ADD_PATH => {
            return Some(Body::RibGeneric {
                sequence: octets.u32()?,
                family: AfiSafi {
                    afi: octets.u16()?,
                    safi: octets.u8()?,
                },
                add_path: subtype == table::GENERIC_ADD_PATH,
                octets: octets.0,
            });
        }
        _ => return Some(unknown),
    };
    let sequence = octets.u32()?;
    let len = octets.u8().filter(|&len| len <= family.bits())?;
    let bits = octets.slice(usize::from(len).div_ceil(8))?;
    let prefix = with_family!(family, F => F::read(bits, len));
    let count = octets.u16()?;
    let mut entries = Entries {
        rest: octets,
        add_path,
    };
    let is_whole = entries.by_ref().count() == usize::from(count) && entries.rest.0.is_empty();
    is_whole.then_some(Body::Rib(Rib {
        sequence,
        prefix,
        is_multicast,
        add_path,
        count,
        octets: octets.0,
    }))
}

/// RFC 6396, section 4.3.1.
fn peer_index_table(mut octets: Octets<'_>) -> Option<Body<'_>> {
    const IS_V6: u8 = 1;
    const IS_WIDE: u8 = 2;
    let collector_id = octets.u32()?;
    let view_len = octets.u16()?;
    let view = octets.slice(usize::from(view_len))?;
    let count = octets.u16()?;
    let mut peers = Vec::new();
    for _ in 0..count {
        let kind = octets.u8()?;
        peers.push(Peer {
            router_id: octets.u32()?,
            address: octets.address(kind & IS_V6 != 0)?,
            asn: octets.asn(kind & IS_WIDE != 0)?,
        });
    }
    octets
        .0
        .is_empty()
        .then_some(Body::PeerIndexTable(PeerIndexTable {
            collector_id,
            view,
            peers,
        }))
}

/// RFC 6396, section 4.4; RFC 8050, section 3.
fn bgp4mp<'a>(subtype: u16, mut octets: Octets<'a>, unknown: Body<'a>) -> Option<Body<'a>> {
    let four_octet = match subtype {
        bgp4mp::STATE_CHANGE
        | bgp4mp::MESSAGE
        | bgp4mp::MESSAGE_LOCAL
        | bgp4mp::MESSAGE_ADD_PATH
        | bgp4mp::MESSAGE_LOCAL_ADD_PATH => false,
        bgp4mp::STATE_CHANGE_AS4
        | bgp4mp::MESSAGE_AS4
        | bgp4mp::MESSAGE_AS4_LOCAL
        | bgp4mp::MESSAGE_AS4_ADD_PATH
        | bgp4mp::MESSAGE_AS4_LOCAL_ADD_PATH => true,
        _ => return Some(unknown),
    };
    let peer_asn = octets.asn(four_octet)?;
    let local_asn = octets.asn(four_octet)?;
    let interface = octets.u16()?;
    let is_v6 = match octets.u16()? {
        1 => false,
        2 => true,
        _ => return None,
    };
    let session = Session {
        peer_asn,
        local_asn,
        interface,
        peer: octets.address(is_v6)?,
        local: octets.address(is_v6)?,
    };
    if matches!(subtype, bgp4mp::STATE_CHANGE | bgp4mp::STATE_CHANGE_AS4) {
        let change = StateChange {
            session,
            four_octet,
            old: octets.u16()?,
            new: octets.u16()?,
        };
        return octets.0.is_empty().then_some(Body::StateChange(change));
    }
    Some(Body::Message(Message {
        session,
        four_octet,
        add_path: subtype >= bgp4mp::MESSAGE_ADD_PATH,
        is_local: matches!(
            subtype,
            bgp4mp::MESSAGE_LOCAL
                | bgp4mp::MESSAGE_AS4_LOCAL
                | bgp4mp::MESSAGE_LOCAL_ADD_PATH
                | bgp4mp::MESSAGE_AS4_LOCAL_ADD_PATH
        ),
        octets: octets.0,
    }))
}
