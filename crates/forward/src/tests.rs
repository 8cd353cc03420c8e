//! The whole way, step by step, as an owner takes it.

use wire::ip::Header;

use crate::check::Reach;
use crate::fragment::Fit;
use crate::icmp::Error;
use crate::mss::Sum;
use crate::routes::Routes;
use crate::source::Addresses;
use crate::testing::{tcp_ok, v4, v6};
use crate::{Discard, check, fragment, hop, mss, source};

const MTU: u16 = 1400;

const ADDRESSES: Addresses = Addresses {
    v4: 0xc000_0201,
    v6: [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0],
    interface: [0, 0, 0, 0, 0, 0, 0, 0x2a],
};

fn routes() -> Routes {
    let mut routes = Routes::new(4);
    for (address, length) in [("192.0.2.1", 32), ("2001:db8::", 64)] {
        let address = address.parse().expect("an address");
        routes.insert(address, length, 7).expect("a new prefix");
    }
    routes
}

fn up(packet: &mut [u8]) -> Result<Reach, Discard> {
    let header = Header::read(packet)?;
    check::checksum(&header, packet)?;
    let reach = check::addresses(&header)?;
    source::check(&ADDRESSES, 7, &routes(), &header, reach)?;
    if reach == Reach::Any {
        hop::decrement(&header, packet)?;
        mss::clamp(&header, packet, MTU, Sum::Complete);
    }
    Ok(reach)
}

fn down(packet: &mut [u8]) -> Result<Fit, Discard> {
    let header = Header::read(packet)?;
    let slot = routes().lookup(header.destination_address());
    assert_eq!(slot.ok_or(Discard::NoRoute)?, 7);
    let fit = fragment::fit(&header, header.total_length, MTU);
    if !matches!(fit, Fit::TooBig(_)) {
        hop::decrement(&header, packet)?;
        mss::clamp(&header, packet, MTU, Sum::Complete);
    }
    Ok(fit)
}

#[test]
fn a_subscribers_packet_goes_into_the_network_a_hop_poorer_and_its_syn_with_a_smaller_mss() {
    for (packet, hops, most) in [(v4(), 8, 1360_u16), (v6().from("2001:db8::9"), 7, 1340)] {
        let mut packet = packet.hops(9).tcp(0x02, &[2, 4, 0x05, 0xb4], b"");
        assert_eq!(up(&mut packet), Ok(Reach::Any));
        assert_eq!(packet[hops], 8);
        let end = packet.len();
        assert_eq!(packet[end - 2..], most.to_be_bytes());
        assert_eq!(tcp_ok(&packet), Some(true));
        assert_ne!(wire::checksum::ip_ok(&packet), Some(false));
    }
}

#[test]
fn what_is_for_the_link_is_not_changed() {
    let solicitation = v6().from("fe80::2a").to("ff02::2").hops(255);
    for packet in [
        v6().from("2001:db8::9").to("fe80::1").hops(1).udp(b"x"),
        solicitation
            .protocol(58)
            .content(&[133, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let mut after = packet.clone();
        assert_eq!(up(&mut after), Ok(Reach::Link));
        assert_eq!(after, packet);
    }
}

#[test]
fn what_goes_no_further_is_as_it_came_and_its_sender_is_told_where_that_is_due() {
    let mut wrong_sum = v4().udp(b"x");
    wrong_sum[10] ^= 1;
    for (packet, discard, error) in [
        (
            v4().hops(1).udp(b"x"),
            Discard::HopLimit,
            Some(Error::TimeExceeded),
        ),
        (
            v6().from("2001:db8::9").hops(1).udp(b"x"),
            Discard::HopLimit,
            Some(Error::TimeExceeded),
        ),
        (v4().from("192.0.2.9").udp(b"x"), Discard::Spoofed, None),
        (
            v6().from("fe80::2a").udp(b"x"),
            Discard::BeyondScope,
            Some(Error::BeyondScope),
        ),
        (v4().to("224.0.0.1").udp(b"x"), Discard::Multicast, None),
        (wrong_sum, Discard::Checksum, None),
        (vec![0x45], Discard::Truncated, None),
        (vec![0x75; 40], Discard::Version, None),
    ] {
        let mut after = packet.clone();
        assert_eq!(up(&mut after), Err(discard));
        assert_eq!(after, packet, "{discard}");
        assert_eq!(Error::of(discard), error);
    }
}

#[test]
fn a_packet_for_a_subscriber_is_found_its_session_and_fitted() {
    let to_v4 = || v4().from("198.51.100.7").to("192.0.2.1");
    let to_v6 = || v6().from("2001:db8:1::7").to("2001:db8::9");
    assert_eq!(down(&mut to_v4().udp(&[0; 1372])), Ok(Fit::Whole));
    assert_eq!(down(&mut to_v4().udp(&[0; 1373])), Ok(Fit::Split(1400)));
    assert_eq!(down(&mut to_v6().udp(&[0; 1352])), Ok(Fit::Whole));
    let packet = to_v6().udp(&[0; 1353]);
    let mut after = packet.clone();
    assert_eq!(down(&mut after), Ok(Fit::TooBig(1400)));
    assert_eq!(after, packet, "as the error quotes it");
    assert_eq!(down(&mut to_v4().hops(1).udp(b"")), Err(Discard::HopLimit));
}

#[test]
fn a_packet_for_nobody_goes_nowhere() {
    for mut packet in [
        v4().to("192.0.2.2").udp(b""),
        v6().udp(b""),
        v6().to("fe80::2a").udp(b""),
    ] {
        assert_eq!(down(&mut packet), Err(Discard::NoRoute));
    }
    let error = Error::of(Discard::NoRoute);
    assert_eq!(error, Some(Error::HostUnreachable));
}
