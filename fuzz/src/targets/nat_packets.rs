//! A NAT with packets in both directions: right checksums stay right, a dropped packet is unchanged, and a translated one
//! has an address of the right side.

use base::{Duration, Instant};
use nat::{Config, Direction, Filtering, Nat, Sum, Verdict};
use wire::checksum::{fold, ip_ok, pseudo_sum, sum};
use wire::ip::Header;

/// Takes steps of an octet that says what to do, an octet of length, and as many octets of packet.
///
/// # Panics
/// If an invariant does not hold.
pub fn target(data: &[u8]) {
    let Some((&settings, mut rest)) = data.split_first() else {
        return;
    };
    let mut config = Config::new(vec!["192.0.2.1".parse().expect("an address")], [1, 2, 3]);
    config.block_ports = 64;
    config.limits.mappings_max = 100;
    config.limits.sessions_max = 20;
    config.limits.sessions_per_mapping = 5;
    config.limits.waiting_fragments_max = 4;
    if settings & 1 != 0 {
        config.filtering = Filtering::AddressDependent;
    }
    config.ftp = settings & 2 != 0;
    config.limits.ftp_controls_max = 3;
    let mut nat = Nat::new(config).expect("good settings");
    let inside = "100.64.0.1".parse().expect("an address");
    let id = nat.join(1, inside).expect("room");
    let mut now = Instant::ZERO + Duration::from_secs(1000);
    let mut last: Vec<u8> = Vec::new();
    while let [what, length, after @ ..] = rest {
        let (packet, after) = after
            .split_at_checked((*length).into())
            .unwrap_or((after, &[]));
        rest = after;
        let mut packet = packet.to_vec();
        if what & 2 != 0 {
            // The answer to the last packet that went out.
            packet = answer(&last);
        }
        if what & 4 != 0 {
            repair(&mut packet);
        }
        if what & 0x80 != 0 {
            now += Duration::from_secs(u64::from(what & 0x78) * 4);
            nat.handle_timeout(now);
        }
        let direction = if what & 1 == 0 {
            Direction::Out
        } else {
            Direction::In
        };
        let Ok(header) = Header::read(&packet) else {
            continue;
        };
        packet.truncate(header.total_length as usize);
        let mut header = header;
        if direction == Direction::Out && nat.is_ftp(&header) {
            header = command(&mut nat, id, header, &mut packet, now);
        }
        let before = packet.clone();
        nat.touch(direction, [(Some(id), &packet[..])]);
        let result = match direction {
            Direction::Out => nat.outbound(id, &header, &mut packet, Sum::Complete, now),
            Direction::In => nat.inbound(&header, &mut packet, Sum::Complete, now),
        };
        check(&nat, direction, result, &before, &packet);
        if result.is_ok() && direction == Direction::Out {
            last = packet;
        }
        let mut released = Vec::new();
        while nat.poll_released(&mut released).is_some() {
            released.clear();
        }
        while nat.poll_event().is_some() {}
    }
    nat.leave(id, now);
    assert_eq!((nat.counters().mappings, nat.counters().sessions), (0, 0));
}

fn check(
    nat: &Nat,
    direction: Direction,
    result: Result<Verdict, nat::Discard>,
    before: &[u8],
    after: &[u8],
) {
    assert_eq!(before.len(), after.len());
    match result {
        Err(_) | Ok(Verdict::Held | Verdict::Untouched) => assert_eq!(before, after),
        Ok(Verdict::Translated | Verdict::Hairpin) => {
            let address = |at: usize| {
                std::net::Ipv4Addr::new(after[at], after[at + 1], after[at + 2], after[at + 3])
            };
            if direction == Direction::Out {
                assert!(nat.owns(address(12)), "the source is external");
            }
            if direction == Direction::In || result == Ok(Verdict::Hairpin) {
                assert!(!nat.owns(address(16)), "the destination is inside");
            }
            if ip_ok(before) == Some(true) {
                assert_eq!(ip_ok(after), Some(true));
            }
            if is_right(before) {
                assert!(is_right(after), "the transport's checksum");
            }
        }
    }
}

/// Where the transport header is, and where its checksum is; `None` for fragments and other protocols.
fn places(packet: &[u8]) -> Option<(usize, usize)> {
    let start = usize::from(packet.first()? & 15) * 4;
    if packet.get(6)? & 0x3f != 0 || *packet.get(7)? != 0 {
        return None;
    }
    let at = match packet.get(9)? {
        1 => 2,
        6 => 16,
        17 => 6,
        _ => return None,
    };
    (packet.len() >= start + at + 2).then_some((start, start + at))
}

fn transport_sum(packet: &[u8], start: usize) -> u16 {
    let own = sum(&packet[start..]);
    if packet[9] == 1 {
        return own;
    }
    let pseudo = pseudo_sum(&packet[12..20], packet[9], packet.len() - start);
    fold(u64::from(own) + u64::from(pseudo))
}

fn is_right(packet: &[u8]) -> bool {
    places(packet).is_some_and(|(start, at)| {
        let has_none = packet[9] == 17 && packet[at..at + 2] == [0, 0];
        has_none || transport_sum(packet, start) == 0xffff
    })
}

/// Sets lengths and checksums of a packet to the right ones.
fn repair(packet: &mut [u8]) {
    if packet.len() < 20 {
        return;
    }
    packet[0] = 0x40 | packet[0] & 15;
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let header = usize::from(packet[0] & 15) * 4;
    if let Some(octets) = packet.get_mut(..header)
        && header >= 20
    {
        octets[10..12].fill(0);
        let value = !sum(octets);
        octets[10..12].copy_from_slice(&value.to_be_bytes());
    }
    if let Some((start, at)) = places(packet) {
        packet[at..at + 2].fill(0);
        let value = !transport_sum(packet, start);
        packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// A packet with its ends swapped; an ICMP request becomes a reply.
fn answer(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet.len() < 28 {
        return packet;
    }
    let (from, to) = packet[12..20].split_at_mut(4);
    from.swap_with_slice(to);
    let start = usize::from(packet[0] & 15) * 4;
    match (packet[9], packet.get_mut(start..start + 4)) {
        (1, Some(head)) => head[0] = 0,
        (_, Some(ports)) => {
            let (from, to) = ports.split_at_mut(2);
            from.swap_with_slice(to);
        }
        (_, None) => {}
    }
    packet
}

/// Has commands of FTP translated: the packet stays one, and right checksums stay right.
fn command(
    nat: &mut Nat,
    id: nat::SubscriberId,
    header: Header,
    packet: &mut Vec<u8>,
    now: Instant,
) -> Header {
    let was_right = ip_ok(packet) == Some(true);
    let was_whole = is_right(packet);
    let before = packet.clone();
    let is_changed = nat.outbound_ftp(id, &header, packet, now);
    assert!(
        is_changed || *packet == before,
        "nothing is to have changed"
    );
    let header = Header::read(packet).expect("it was a packet before");
    assert_eq!(header.total_length as usize, packet.len());
    assert!(
        !was_right || ip_ok(packet) == Some(true),
        "the IP header's checksum"
    );
    assert!(!was_whole || is_right(packet), "the transport's checksum");
    header
}
