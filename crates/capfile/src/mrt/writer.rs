//! Writes records.

use std::io::{self, Write};
use std::net::IpAddr;

use wire::bgp::attr::{self, code};
use wire::bgp::{AfiSafi, NextHop, Prefix};

use super::record::{Entry, Message, PeerIndexTable, Session, StateChange, Time};
use super::{bgp4mp, kind, table};

/// Writes records, each with one write.
pub struct Writer<W> {
    out: W,
    record: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, which should be buffered, and may compress.
    pub fn new(out: W) -> Self {
        Writer {
            out,
            record: Vec::new(),
        }
    }

    /// The underlying writer, so that the caller can flush or finish it.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// PEER_INDEX_TABLE (RFC 6396, section 4.3.1): AS numbers have four octets.
    ///
    /// # Errors
    /// More than 65,535 peers or octets of a name; or it cannot be written.
    pub fn peer_index_table(&mut self, time_s: u32, table: &PeerIndexTable<'_>) -> io::Result<()> {
        self.begin(time_s, kind::TABLE_DUMP_V2, table::PEER_INDEX_TABLE);
        let out = &mut self.record;
        out.extend_from_slice(&table.collector_id.to_be_bytes());
        put_u16(table.view.len(), out)?;
        out.extend_from_slice(table.view);
        put_u16(table.peers.len(), out)?;
        for peer in &table.peers {
            out.push(if peer.address.is_ipv6() { 3 } else { 2 });
            out.extend_from_slice(&peer.router_id.to_be_bytes());
            put_address(peer.address, out);
            out.extend_from_slice(&peer.asn.to_be_bytes());
        }
        self.end()
    }

    /// The routes of a prefix (RFC 6396, section 4.3.2), with path identifiers (RFC 8050) if `add_path`. Attributes are
    /// as [`table_attributes`] makes them.
    ///
    /// # Errors
    /// More than 65,535 routes, or octets of attributes; a family that has no record type; or it cannot be written.
    pub fn rib<'e>(
        &mut self,
        time_s: u32,
        sequence: u32,
        prefix: Prefix,
        add_path: bool,
        entries: impl IntoIterator<Item = Entry<'e>>,
    ) -> io::Result<()> {
        let AfiSafi { afi, safi } = prefix.family().into();
        let subtype = match (afi, safi, add_path) {
            (1, 1, false) => table::IPV4_UNICAST,
            (1, 1, true) => table::IPV4_UNICAST_ADD_PATH,
            (2, 1, false) => table::IPV6_UNICAST,
            (2, 1, true) => table::IPV6_UNICAST_ADD_PATH,
            _ => {
                let what = format!("MRT tables of {} are not written", prefix.family());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        };
        self.begin(time_s, kind::TABLE_DUMP_V2, subtype);
        let out = &mut self.record;
        out.extend_from_slice(&sequence.to_be_bytes());
        wire::bgp::emit_nlri(prefix.into(), false, out);
        let count_at = out.len();
        out.extend_from_slice(&[0; 2]);
        let mut count = 0;
        for entry in entries {
            out.extend_from_slice(&entry.peer_index.to_be_bytes());
            out.extend_from_slice(&entry.originated_s.to_be_bytes());
            if add_path {
                out.extend_from_slice(&entry.path_id.to_be_bytes());
            }
            put_u16(entry.attributes.len(), out)?;
            out.extend_from_slice(entry.attributes);
            count += 1;
        }
        let count = u16::try_from(count).map_err(|_| too_much())?;
        out[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
        self.end()
    }

    /// A message (RFC 6396, section 4.4; RFC 8050, section 3); with microseconds it is of BGP4MP_ET.
    ///
    /// # Errors
    /// Addresses of two families, an AS number that the form has no room for; or it cannot be written.
    pub fn message(&mut self, time: Time, message: &Message<'_>) -> io::Result<()> {
        let subtype = match (message.four_octet, message.is_local, message.add_path) {
            (false, false, false) => bgp4mp::MESSAGE,
            (false, false, true) => bgp4mp::MESSAGE_ADD_PATH,
            (false, true, false) => bgp4mp::MESSAGE_LOCAL,
            (false, true, true) => bgp4mp::MESSAGE_LOCAL_ADD_PATH,
            (true, false, false) => bgp4mp::MESSAGE_AS4,
            (true, false, true) => bgp4mp::MESSAGE_AS4_ADD_PATH,
            (true, true, false) => bgp4mp::MESSAGE_AS4_LOCAL,
            (true, true, true) => bgp4mp::MESSAGE_AS4_LOCAL_ADD_PATH,
        };
        self.begin_bgp4mp(time, subtype);
        put_session(&message.session, message.four_octet, &mut self.record)?;
        self.record.extend_from_slice(message.octets);
        self.end()
    }

    /// A change of state (RFC 6396, section 4.4.1).
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn state_change(&mut self, time: Time, change: &StateChange) -> io::Result<()> {
        let subtype = if change.four_octet {
            bgp4mp::STATE_CHANGE_AS4
        } else {
            bgp4mp::STATE_CHANGE
        };
        self.begin_bgp4mp(time, subtype);
        put_session(&change.session, change.four_octet, &mut self.record)?;
        for state in [change.old, change.new] {
            self.record.extend_from_slice(&state.to_be_bytes());
        }
        self.end()
    }

    fn begin_bgp4mp(&mut self, time: Time, subtype: u16) {
        match time.us {
            None => self.begin(time.s, kind::BGP4MP, subtype),
            Some(us) => {
                self.begin(time.s, kind::BGP4MP_ET, subtype);
                self.record.extend_from_slice(&us.to_be_bytes());
            }
        }
    }

    fn begin(&mut self, time_s: u32, kind: u16, subtype: u16) {
        self.record.clear();
        self.record.extend_from_slice(&time_s.to_be_bytes());
        self.record.extend_from_slice(&kind.to_be_bytes());
        self.record.extend_from_slice(&subtype.to_be_bytes());
        self.record.extend_from_slice(&[0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = u32::try_from(self.record.len() - super::HEADER_LEN).map_err(|_| too_much())?;
        self.record[8..12].copy_from_slice(&len.to_be_bytes());
        self.out.write_all(&self.record)
    }
}

fn too_much() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "more than a record has room for",
    )
}

fn put_u16(number: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let number = u16::try_from(number).map_err(|_| too_much())?;
    out.extend_from_slice(&number.to_be_bytes());
    Ok(())
}

fn put_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

fn put_session(session: &Session, is_wide: bool, out: &mut Vec<u8>) -> io::Result<()> {
    if session.peer.is_ipv6() != session.local.is_ipv6() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a session between addresses of two families",
        ));
    }
    for asn in [session.peer_asn, session.local_asn] {
        if is_wide {
            out.extend_from_slice(&asn.to_be_bytes());
        } else {
            put_u16(asn as usize, out)?;
        }
    }
    out.extend_from_slice(&session.interface.to_be_bytes());
    let afi: u16 = if session.peer.is_ipv6() { 2 } else { 1 };
    out.extend_from_slice(&afi.to_be_bytes());
    put_address(session.peer, out);
    put_address(session.local, out);
    Ok(())
}

/// Appends canonical attributes as they stand in a table (RFC 6396, section 4.3.4): an IPv4 next hop as NEXT_HOP, where
/// one is or belongs by its type; an IPv6 one as an MP_REACH_NLRI that is nothing else.
pub fn table_attributes(attributes: &[u8], next_hop: NextHop, out: &mut Vec<u8>) {
    let at = match next_hop {
        NextHop::V4(_) => code::NEXT_HOP,
        NextHop::V6(..) => code::MP_REACH,
    };
    let mut next_hop = Some(next_hop);
    let mut put = |out: &mut Vec<u8>| match next_hop.take() {
        None => {}
        Some(NextHop::V4(address)) => {
            attr::put(code::NEXT_HOP, &address.octets(), out);
        }
        Some(NextHop::V6(global, link_local)) => {
            attr::put_with(code::MP_REACH, out, |out| {
                out.push(if link_local.is_some() { 32 } else { 16 });
                for address in [Some(global), link_local].into_iter().flatten() {
                    out.extend_from_slice(&address.octets());
                }
            });
        }
    };
    for attribute in attr::iter(attributes) {
        if attribute.code >= at {
            put(out);
        }
        if !matches!(attribute.code, code::NEXT_HOP | code::MP_REACH) {
            out.extend_from_slice(attribute.octets);
        }
    }
    put(out);
}
