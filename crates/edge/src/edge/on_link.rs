//! Packets from subscribers to us on their link: solicitations, echo, DHCPv6. Anything else there is discarded.
//!
//! Parts of RFC 4443, RFC 4861, RFC 4862 and RFC 8415.

use core::net::{IpAddr, Ipv6Addr};

use aaa::Prefix;
use base::Instant;
use wire::dhcpv6::{ALL_SERVERS, CLIENT_PORT, SERVER_PORT};
use wire::icmp::{Echo, Kind, PROTOCOL_V6, Version};
use wire::ip::Header;
use wire::ndp::{self, ALL_NODES, ALL_ROUTERS, Message, NdpError};
use wire::{checksum, udp};

use crate::access::Access;
use crate::counters::Discard;
use crate::edge::Edge;
use crate::path::Inside;
use crate::v6::{Answer, Leases, Part, Server, Stock, V6Count, Wanted, link_local};
use core::hash::BuildHasher;

/// Types of multicast listener discovery, which hosts send on every link (RFC 2710, RFC 3810). A link with one host has
/// no use for it.
const LISTENERS: [u8; 4] = [130, 131, 132, 143];

/// What became of a packet.
enum Done {
    /// It was answered, or needs no answer.
    Handled,
    /// It is nothing that we handle here.
    Unknown,
}

impl<A: Access> Edge<A> {
    /// Handles a packet whose destination is on the link.
    pub(super) fn link_packet(
        &mut self,
        index: u32,
        packet: &[u8],
        now: Instant,
        inside: &mut impl Inside,
    ) {
        let header = match Header::read(packet) {
            Ok(header) => header,
            Err(why) => return self.discard_on_link(Discard::Forward(why.into())),
        };
        match self.handle_on_link(index, &header, packet, now) {
            Ok(Done::Handled) => {}
            Ok(Done::Unknown) => {
                // The data path counts it, and tells its sender.
                let endpoint = Some(&mut self.endpoint);
                self.path.packet(index, 6, packet, now, endpoint, inside);
            }
            Err(why) => self.discard_on_link(why),
        }
        self.settle_timer(index);
    }

    fn discard_on_link(&mut self, why: Discard) {
        self.path.counts().discard(why);
    }

    fn handle_on_link(
        &mut self,
        index: u32,
        header: &Header,
        packet: &[u8],
        now: Instant,
    ) -> Result<Done, Discard> {
        let Some([local, peer]) = self.at(index).identifiers() else {
            return Err(Discard::NotOpen);
        };
        let is_client = self.at(index).is_client;
        if is_client && self.config.uplink.is_none() {
            return Ok(Done::Unknown);
        }
        let [local, peer] = [local, peer].map(link_local);
        let source = Ipv6Addr::from_bits(header.source);
        let is_its = source == peer
            || source.is_unspecified()
            || self.path.routes.lookup_v6(header.source) == Some(index);
        if !is_its {
            return Err(Discard::Forward(forward::Discard::Spoofed));
        }
        match header.protocol {
            PROTOCOL_V6 => self.icmp_on_link(index, header, packet, local, now),
            udp::PROTOCOL if header.destination_port == CLIENT_PORT && is_client => {
                let content = datagram(header, packet).ok_or(Discard::Dhcp)?;
                let received = self.with_uplink(index, now, |uplink| uplink.receive(content, now));
                match received {
                    Some(Ok(())) => Ok(Done::Handled),
                    Some(Err(_)) | None => Err(Discard::Dhcp),
                }
            }
            udp::PROTOCOL
                if header.destination_port == SERVER_PORT && self.config.v6.dhcp && !is_client =>
            {
                let reply = [local, peer];
                self.dhcp_on_link(index, header, packet, reply, now)
            }
            _ => Ok(Done::Unknown),
        }
    }

    fn icmp_on_link(
        &mut self,
        index: u32,
        header: &Header,
        packet: &[u8],
        local: Ipv6Addr,
        now: Instant,
    ) -> Result<Done, Discard> {
        let source = Ipv6Addr::from_bits(header.source);
        let destination = Ipv6Addr::from_bits(header.destination);
        let icmp = ndp::icmp(header, packet).map_err(|_| Discard::Ndp)?;
        if icmp.first().is_some_and(|kind| LISTENERS.contains(kind)) {
            return Ok(Done::Handled);
        }
        if !self.may_answer(index, now) {
            return Err(Discard::LinkRate);
        }
        if let Ok(echo) = Echo::parse(Version::V6, icmp) {
            let is_ours = [local, ALL_NODES, ALL_ROUTERS].contains(&destination);
            if echo.kind == Kind::Request && is_ours && !source.is_unspecified() {
                self.echo(index, [local, source], &echo);
                return Ok(Done::Handled);
            }
            return Ok(Done::Unknown);
        }
        match Message::read(header, packet) {
            Ok(Message::RouterSolicitation) if !self.at(index).is_client => {
                self.solicited(index, source, now);
            }
            Ok(Message::RouterAdvertisement(router, options)) if self.at(index).is_client => {
                let session = self.at(index).session;
                let mtu = self.endpoint.packet_max(session, self.config.path_mtu);
                self.with_uplink(index, now, |uplink| {
                    uplink.advertised((router, options), mtu, now);
                });
            }
            Ok(Message::NeighborSolicitation { target }) if target == local => {
                let (to, solicited) = match source.is_unspecified() {
                    // Duplicate address detection: the address is taken (RFC 4861, section 7.2.4).
                    true => (ALL_NODES, false),
                    false => (source, true),
                };
                let mut packet = Vec::with_capacity(64);
                ndp::write_neighbor([local, to], local, solicited, &mut packet);
                self.counters.v6.count(V6Count::Neighbors);
                self.send_on_link(index, &packet);
            }
            // The peer's own addresses, and what other routers would say, are not for us.
            Ok(
                Message::RouterSolicitation
                | Message::NeighborSolicitation { .. }
                | Message::NeighborAdvertisement { .. }
                | Message::RouterAdvertisement(..),
            ) => {}
            Err(NdpError::Type(_)) => return Ok(Done::Unknown),
            Err(_) => return Err(Discard::Ndp),
        }
        Ok(Done::Handled)
    }

    /// Answers an Echo Request (RFC 4443, section 4.2).
    fn echo(&mut self, index: u32, addresses: [Ipv6Addr; 2], request: &Echo<'_>) {
        let reply = Echo {
            kind: Kind::Reply,
            ..*request
        };
        let mut packet = Vec::with_capacity(64 + request.data.len());
        ndp::write_icmp(addresses, 64, &mut packet, |out| {
            reply.emit(Version::V6, out);
        });
        self.counters.v6.count(V6Count::Echoes);
        self.send_on_link(index, &packet);
    }

    fn dhcp_on_link(
        &mut self,
        index: u32,
        header: &Header,
        packet: &[u8],
        [local, peer]: [Ipv6Addr; 2],
        now: Instant,
    ) -> Result<Done, Discard> {
        let destination = Ipv6Addr::from_bits(header.destination);
        let is_multicast = destination == ALL_SERVERS;
        if !is_multicast && destination != local {
            return Ok(Done::Unknown);
        }
        let content = datagram(header, packet).ok_or(Discard::Dhcp)?;
        if header.source != peer.to_bits() {
            return Err(Discard::Dhcp);
        }
        if !self.may_answer(index, now) {
            return Err(Discard::LinkRate);
        }
        let settings = std::sync::Arc::clone(&self.config.v6);
        let dns = self.at(index).name_servers(&settings).to_vec();
        let server = Server {
            settings: &settings,
            dns: &dns,
        };
        let family = self.at(index).v6.as_deref();
        let mut leases: Leases = family.map(|family| family.leases).unwrap_or_default();
        let hasher = self.hasher.clone();
        let mut stock = Shelf { edge: self, index };
        let mut content_out = Vec::with_capacity(256);
        let answer = server.answer(
            content,
            is_multicast,
            (&mut leases, &mut stock),
            |duid| hasher.hash_one(duid),
            now,
            &mut content_out,
        );
        if let Some(family) = self.at_mut(index).v6.as_deref_mut() {
            family.leases = leases;
        }
        let Ok(answer) = answer else {
            self.counters.v6.count(V6Count::DhcpDiscards);
            return Err(Discard::Dhcp);
        };
        self.count_answer(answer);
        let mut out = Vec::with_capacity(64 + content_out.len());
        ndp::write_packet([local, peer], (udp::PROTOCOL, 6, 64), &mut out, |out| {
            let length = (8 + content_out.len()) as u16;
            for word in [SERVER_PORT, CLIENT_PORT, length, 0] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            out.extend_from_slice(&content_out);
        });
        self.send_on_link(index, &out);
        if answer.made + answer.freed > 0 {
            self.leases_changed(index, now);
        }
        Ok(Done::Handled)
    }

    fn count_answer(&mut self, answer: Answer) {
        let counts = &mut self.counters.v6;
        counts.count(V6Count::DhcpAnswers);
        let declined = if answer.declined { answer.freed } else { 0 };
        for (what, count) in [
            (V6Count::Leases, answer.made),
            (V6Count::Extensions, answer.extended),
            (V6Count::Releases, answer.freed),
            (V6Count::Declines, declined),
        ] {
            (0..count).for_each(|_| counts.count(what));
        }
    }
}

/// The content of a UDP datagram whose lengths and checksum are right.
fn datagram<'a>(header: &Header, packet: &'a [u8]) -> Option<&'a [u8]> {
    let whole = header.fragment == wire::packet::Fragment::Whole;
    let range = usize::from(header.header_length)..header.total_length as usize;
    let udp = packet.get(range).filter(|_| whole)?;
    let length = usize::from(u16::from_be_bytes(*udp.get(4..6)?.first_chunk()?));
    let udp = udp.get(..length).filter(|udp| udp.len() >= 8)?;
    let mut addresses = [0; 32];
    addresses[..16].copy_from_slice(&header.source.to_be_bytes());
    addresses[16..].copy_from_slice(&header.destination.to_be_bytes());
    let pseudo = checksum::pseudo_sum(&addresses, udp::PROTOCOL, udp.len());
    let sum = checksum::fold(u64::from(pseudo) + u64::from(checksum::sum(udp)));
    (sum == 0xffff && udp[6..8] != [0, 0]).then_some(&udp[8..])
}

/// What the edge can lease on one subscriber's link.
struct Shelf<'e, A: Access> {
    edge: &'e mut Edge<A>,
    index: u32,
}

impl<A: Access> Stock for Shelf<'_, A> {
    fn look(&mut self, wanted: Wanted, wish: Option<Prefix>) -> Option<Prefix> {
        let part = Part::of(wanted);
        let offer = self.edge.offer(self.index, part, wish);
        if offer.is_none() {
            // The client sends no Request after that, so this is where a pool that is used up shows.
            self.edge.none_to_offer(self.index, part);
        }
        offer
    }

    fn take(&mut self, wanted: Wanted, wish: Option<Prefix>) -> Option<Prefix> {
        self.edge.hold(self.index, Part::of(wanted), wish)
    }

    fn held(&self, wanted: Wanted) -> Option<Prefix> {
        self.edge.held(self.index, Part::of(wanted))
    }

    fn give_back(&mut self, wanted: Wanted) {
        let part = Part::of(wanted);
        self.edge.give_back(self.index, part);
    }

    fn is_on_link(&self, address: IpAddr) -> bool {
        let parts = [Part::Link, Part::Address];
        let mut held = parts
            .into_iter()
            .filter_map(|part| self.edge.held(self.index, part));
        held.any(|prefix| prefix.contains(address))
    }

    fn is_leasable(&self, address: IpAddr) -> bool {
        let wish = Prefix::new(address, 128);
        wish.is_some_and(|wish| self.edge.could_hold(self.index, Part::Address, wish))
    }
}
