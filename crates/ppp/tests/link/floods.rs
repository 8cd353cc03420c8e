//! Floods: each packet gets at most one reply, and the replies per second are limited.

use base::{Duration, Instant};
use ppp::{Authentication, Discard, LinkEnd};
use wire::ppp::protocol;

use crate::harness::{End, NOW, claims, exchange, frame, network, open_lcp, opened, send};

/// Sends frames at one instant. Returns the number of replies, their total bytes, and the number of frames dropped as a
/// flood.
fn flood(end: &mut End, now: Instant, frames: impl Iterator<Item = Vec<u8>>) -> [usize; 3] {
    end.sent.clear();
    let mut dropped = 0;
    for octets in frames {
        let done = end.call(now, |link, ctx| link.handle(&octets, ctx));
        dropped += usize::from(done == Err(Discard::Flood));
    }
    let octets = end.sent.iter().map(Vec::len).sum();
    [std::mem::take(&mut end.sent).len(), octets, dropped]
}

#[test]
fn a_flood_of_lcp_requests_is_answered_a_hundred_times_a_second_and_no_longer() {
    let mut end = opened();
    let request = |n: u32| frame(protocol::LCP, 1, n as u8, &[5, 6, 1, 2, 3, n as u8]);
    let [answers, octets, dropped] = flood(&mut end, NOW, (0..10_000).map(request));
    // Each packet may cause a request of ours besides its reply. Restarting LCP also ends the layers above it.
    assert!(answers <= 210, "{answers}");
    assert!(octets <= 210 * 40, "{octets}");
    assert!(dropped >= 9_900, "{dropped}");
    // In the next second the link handles packets again.
    let later = NOW + Duration::from_secs(1);
    let [answers, _, dropped] = flood(&mut end, later, (0..10).map(request));
    assert!(answers >= 10);
    assert_eq!(dropped, 0);
}

#[test]
fn a_flood_of_echoes_is_answered_one_for_one_and_bounded() {
    let mut end = opened();
    let echo = frame(protocol::LCP, 9, 1, &[0; 1_000]);
    let length = echo.len();
    let many = std::iter::repeat_n(echo, 5_000);
    let later = NOW + Duration::from_secs(3);
    let [answers, octets, dropped] = flood(&mut end, later, many);
    assert_eq!((answers, dropped), (100, 4_900));
    assert!(octets <= 100 * (length + 2));
}

#[test]
fn a_flood_of_unknown_protocols_leaves_room_for_lcp() {
    let mut end = opened();
    let later = NOW + Duration::from_secs(3);
    let unknown = |n: u16| frame(0x4001 | n << 9, 1, 1, b"what is this");
    let [answers, _, dropped] = flood(&mut end, later, (0..5_000).map(|n| unknown(n % 16)));
    assert_eq!((answers, dropped), (25, 0));
    let echo = frame(protocol::LCP, 9, 1, &[0; 4]);
    let [answers, _, dropped] = flood(&mut end, later, std::iter::once(echo));
    assert_eq!((answers, dropped), (1, 0));
}

#[test]
fn packets_of_closed_networks_cost_lcp_nothing() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    let packet = [&protocol::IPV4.to_be_bytes()[..], &[0x45; 60]].concat();
    let [answers, _, dropped] = flood(&mut end, NOW, std::iter::repeat_n(packet, 10_000));
    assert_eq!((answers, dropped), (0, 0));
    let alice = frame(protocol::PAP, 1, 1, b"\x05alice\x06sesame");
    send(&mut end, &alice).unwrap();
    assert_eq!(claims(&end), 1);
}

#[test]
fn a_flood_of_pap_makes_one_claim() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    let request = |n: u32| frame(protocol::PAP, 1, n as u8, b"\x05alice\x06sesame");
    let [answers, _, dropped] = flood(&mut end, NOW, (0..10_000).map(request));
    assert_eq!(answers, 0);
    assert!(dropped >= 9_900);
    assert_eq!(claims(&end), 1);
}

#[test]
fn a_peer_that_proves_itself_again_and_again_makes_few_claims() {
    let mut end = network(&[Authentication::Pap], 1);
    open_lcp(&mut end, &[]);
    for n in 0..2_000_u32 {
        let alice = frame(protocol::PAP, 1, 1, b"\x05alice\x06sesame");
        let _ = send(&mut end, &alice);
        let options = [5, 6, 1, 2, n.to_be_bytes()[2], n as u8];
        for (number, code, identifier, ours) in
            exchange(&mut end, &frame(protocol::LCP, 1, n as u8, &options))
        {
            if (number, code) == (protocol::LCP, 1) {
                let _ = send(&mut end, &frame(protocol::LCP, 2, identifier, &ours));
            }
        }
    }
    assert!(claims(&end) <= 40, "{}", claims(&end));
}

#[test]
fn the_limit_may_be_put_elsewhere_or_off() {
    for (limit, answered) in [(7, 7), (0, 500)] {
        let mut end = opened();
        end.config.control_max_per_s = limit;
        let later = NOW + Duration::from_secs(3);
        let echo = frame(protocol::LCP, 9, 1, &[0; 4]);
        let [answers, ..] = flood(&mut end, later, std::iter::repeat_n(echo, 500));
        assert_eq!(answers, answered);
    }
}

#[test]
fn reasons_have_names_of_their_own() {
    let mut names: Vec<&str> = Discard::ALL.map(Discard::name).to_vec();
    let ends = [
        LinkEnd::Closed,
        LinkEnd::PeerTerminated,
        LinkEnd::NoAnswer,
        LinkEnd::Rejected,
        LinkEnd::AuthenticationRejected,
        LinkEnd::AuthenticationTimeout,
        LinkEnd::AuthenticationFailed,
        LinkEnd::RefusedByPeer,
        LinkEnd::NoCredentials,
        LinkEnd::EchoTimeout,
        LinkEnd::Looped,
        LinkEnd::NoNetwork,
    ];
    names.extend(ends.map(LinkEnd::name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
