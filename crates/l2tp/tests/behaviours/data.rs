//! Frames in data messages: two endpoints, and the headers before a frame between them.

use base::{Datagram, Instant, Machine, Route};
use l2tp::{Call, Discard, Endpoint, SessionKey};
use wire::l2tp::Version;

use crate::common::{PEER, US, lac_config, lns_config, open_to};

/// A LAC at `US` and an LNS at `PEER` with one session between them.
struct Pair {
    lac: Endpoint,
    lns: Endpoint,
    lac_session: SessionKey,
    lns_session: SessionKey,
}

fn exchange(from: &mut Endpoint, to: &mut Endpoint, source: core::net::SocketAddr) -> bool {
    let (mut bytes, mut any) = (Vec::new(), false);
    while from.poll_transmit(Instant::ZERO, &mut bytes).is_some() {
        let route = way_from(source);
        let datagram = Datagram {
            route,
            bytes: &bytes,
        };
        to.handle(datagram, Instant::ZERO).unwrap();
        bytes.clear();
        any = true;
    }
    any
}

fn way_from(peer: core::net::SocketAddr) -> Route {
    Route {
        peer,
        local: None,
        socket: 0,
    }
}

impl Pair {
    fn new(version: Version, sequencing: bool) -> Self {
        let (mut lac, mut lns) = (
            Endpoint::new(lac_config(), [1; 32]),
            Endpoint::new(lns_config(), [2; 32]),
        );
        let tunnel = lac
            .open_tunnel(open_to(PEER, version), Instant::ZERO)
            .unwrap();
        while exchange(&mut lac, &mut lns, US) | exchange(&mut lns, &mut lac, PEER) {}
        let call = Call {
            sequencing,
            ..Call::default()
        };
        let lac_session = lac.open_session(tunnel, call, Instant::ZERO).unwrap();
        while exchange(&mut lac, &mut lns, US) | exchange(&mut lns, &mut lac, PEER) {}
        let (_, view) = lns.next_session(0).expect("a session");
        let lns_session = view.key;
        Self {
            lac,
            lns,
            lac_session,
            lns_session,
        }
    }

    /// The next data message of the LAC with this frame.
    fn message(&mut self, frame: &[u8]) -> Vec<u8> {
        let header = self.lac.data_header(self.lac_session).expect("established");
        assert_eq!(header.route.peer, PEER);
        [header.as_bytes(), frame].concat()
    }

    fn deliver(&mut self, message: &[u8]) -> Result<Vec<u8>, Discard> {
        let received = self
            .lns
            .receive_data(&way_from(US), message, Instant::ZERO)?;
        let received = received.expect("it is data");
        assert_eq!(received.session, self.lns_session);
        Ok(message[received.start..received.end].to_vec())
    }
}

#[test]
fn a_frame_arrives_at_its_session_as_it_was_sent() {
    for version in [Version::V2, Version::V3] {
        for sequencing in [false, true] {
            let mut pair = Pair::new(version, sequencing);
            for frame in [&b"\xff\x03\x00\x21abc"[..], b"x", b""] {
                let message = pair.message(frame);
                assert_eq!(pair.deliver(&message).as_deref(), Ok(frame), "{version:?}");
            }
            let back = pair.lns.data_header(pair.lns_session).expect("established");
            let message = [back.as_bytes(), b"back"].concat();
            let got = pair
                .lac
                .receive_data(&way_from(PEER), &message, Instant::ZERO);
            let got = got.unwrap().expect("it is data");
            assert_eq!(&message[got.start..got.end], b"back");
            assert_eq!(got.session, pair.lac_session);
        }
    }
}

/// "a packet received with a sequence number lower than expected is dropped" (RFC 3931 4.6.1, and RFC 2661 5.4 for
/// reordering by the receiver).
#[test]
fn a_frame_that_others_overtook_is_discarded_and_counted() {
    for version in [Version::V2, Version::V3] {
        let mut pair = Pair::new(version, true);
        let messages: Vec<_> = (0..4_u8).map(|i| pair.message(&[i])).collect();
        assert!(pair.deliver(&messages[0]).is_ok());
        assert!(pair.deliver(&messages[2]).is_ok());
        assert_eq!(pair.deliver(&messages[1]), Err(Discard::DataOutOfOrder));
        assert_eq!(pair.deliver(&messages[2]), Err(Discard::DataOutOfOrder));
        assert!(pair.deliver(&messages[3]).is_ok());
        assert_eq!(pair.lns.discarded(Discard::DataOutOfOrder), 2);
    }
}

/// "Ns ... modulo 65,536" (RFC 2661 3.1), "a free-running counter of 2^24" (RFC 3931 4.6).
#[test]
fn sequence_numbers_of_data_wrap() {
    for (version, count) in [(Version::V2, 1 << 16), (Version::V3, 1 << 24)] {
        let mut pair = Pair::new(version, true);
        for n in 0..count + 3 {
            let header = pair.lac.data_header(pair.lac_session).expect("established");
            // Delivering every message would take too long for the sake of a few.
            if n % 1_021 == 0 || n + 8 > count {
                assert!(
                    pair.lns
                        .receive_data(&way_from(US), header.as_bytes(), Instant::ZERO)
                        .is_ok(),
                    "{n}"
                );
            }
        }
    }
}

#[test]
fn control_messages_and_what_cannot_be_read_are_not_data() {
    let mut pair = Pair::new(Version::V2, false);
    for bytes in [
        &b"\xc8\x02\x00\x0c\0\0\0\0\0\0\0\0"[..],
        b"",
        b"\x00",
        b"\x00\x07",
    ] {
        let got = pair.lns.receive_data(&way_from(US), bytes, Instant::ZERO);
        assert_eq!(got, Ok(None), "{bytes:x?}");
    }
}

#[test]
fn another_peer_cannot_reach_a_session() {
    for version in [Version::V2, Version::V3] {
        let mut pair = Pair::new(version, false);
        let message = pair.message(b"x");
        let stranger = way_from("203.0.113.9:1701".parse().unwrap());
        let got = pair.lns.receive_data(&stranger, &message, Instant::ZERO);
        assert_eq!(got, Err(Discard::DataWrongSource), "{version:?}");
    }
}

#[test]
fn a_session_that_ended_has_no_header() {
    let mut pair = Pair::new(Version::V2, false);
    assert!(pair.lac.close_session(pair.lac_session, Instant::ZERO));
    assert_eq!(pair.lac.data_header(pair.lac_session), None);
}
