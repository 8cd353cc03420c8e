//! PPP-Max-Payload: RFC 4638, sections 4 and 5.

use pppoe::{Config, PortConfig, Route, Vlans};
use wire::pppoe::tag;

use crate::common::{Bench, config, host};

/// What the host asks for, our limit, the MTU; then the echo and the agreed payload.
type Case = (Option<u16>, u16, u16, Option<u16>, u16);

const CASES: [Case; 9] = [
    // No tag: 1492 at most, and less on a smaller interface.
    (None, 9_000, 9_000, None, 1492),
    (None, 9_000, 1_400, None, 1392),
    // "Present but below 1492" does not count (section 5.1).
    (Some(1_000), 9_000, 9_000, None, 1492),
    (Some(1_492), 9_000, 9_000, None, 1492),
    // "min (PPP-Max-Payload-Tag, Interface MTU-8)", and an echo of the tag (section 4).
    (Some(1_500), 9_000, 1_508, Some(1_500), 1500),
    (Some(9_000), 9_000, 1_508, Some(9_000), 1500),
    (Some(9_000), 1_600, 9_000, Some(9_000), 1600),
    // We cannot support more than 1492: no echo.
    (Some(1_500), 9_000, 1_500, None, 1492),
    (Some(1_500), 1_492, 9_000, None, 1492),
];

#[test]
fn the_server_echoes_what_it_can_support_and_limits_the_payload() {
    for case @ (asked, own, mtu, echo, payload) in CASES {
        let config = Config {
            max_payload: own,
            ..config()
        };
        let port = PortConfig {
            mtu,
            ..PortConfig::default()
        };
        let mut bench = Bench::with_port(config, port);
        let asked = asked.map(u16::to_be_bytes);
        let tags: Vec<(u16, &[u8])> = asked
            .iter()
            .map(|asked| (tag::PPP_MAX_PAYLOAD, &asked[..]))
            .collect();
        let pads = bench.request(host(1), &tags);
        let echo: Vec<[u8; 2]> = echo.map(u16::to_be_bytes).into_iter().collect();
        assert_eq!(pads.all(tag::PPP_MAX_PAYLOAD), echo, "{case:?}");
        let key = bench.up();
        let view = bench.endpoint.session(key).unwrap();
        assert_eq!(view.max_payload, payload, "{case:?}");
    }
}

/// A frame with two VLAN tags has less room at the same MTU of the interface.
#[test]
fn two_vlan_tags_take_their_bytes_of_the_mtu() {
    for (mtu, vlans, payload) in [
        (1500, Vlans::NONE, 1492),
        (1500, Vlans::one(7), 1492),
        (1500, Vlans::two(7, 8), 1484),
        (1508, Vlans::two(7, 8), 1492),
    ] {
        let port = PortConfig {
            mtu,
            two_tags_take: 8,
            ..PortConfig::default()
        };
        let mut bench = Bench::with_port(config(), port);
        let route = Route { vlans, ..host(1) };
        bench.request(route, &[]);
        let key = bench.up();
        let view = bench.endpoint.session(key).unwrap();
        assert_eq!(view.max_payload, payload, "{mtu} {vlans}");
    }
}
