//! The host by the sections of RFC 4861 and RFC 4862.

use base::{Duration, Instant};
use wire::ip::Header;
use wire::ndp;

use super::RouterClient;

const START: Instant = Instant::from_nanos(5_000_000_000_000);

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Passes an advertisement through its bytes.
fn advertise(router: &mut RouterClient, one: &ndp::Advertisement<'_>, now: Instant) {
    let mut packet = Vec::new();
    let from = crate::v6::link_local(1);
    ndp::write_advertisement([from, ndp::ALL_NODES], one, &mut packet);
    let header = Header::read(&packet).unwrap();
    match ndp::Message::read(&header, &packet) {
        Ok(ndp::Message::RouterAdvertisement(fixed, options)) => {
            router.advertised(fixed, options, 1_492, now);
        }
        other => panic!("{other:?}"),
    }
}

fn advertised(valid_s: u32, preferred_s: u32) -> ndp::Prefix {
    ndp::Prefix {
        address: "2001:db8:1:2::".parse().unwrap(),
        length: 64,
        on_link: true,
        autonomous: true,
        valid_s,
        preferred_s,
    }
}

fn lifetime(lifetime_s: u16) -> ndp::Router {
    ndp::Router {
        lifetime_s,
        ..ndp::Router::default()
    }
}

#[test]
fn three_solicitations_are_sent_four_seconds_apart_and_an_advertisement_ends_them() {
    let mut router = RouterClient::new(5, [1; 32], START);
    let mut times = Vec::new();
    while let Some(at) = router.poll_timeout() {
        router.handle_timeout(at);
        if router.poll_solicitation() {
            times.push(at.since(START));
        }
    }
    assert_eq!(times.len(), 3, "MAX_RTR_SOLICITATIONS");
    assert!(times[0] <= seconds(1), "MAX_RTR_SOLICITATION_DELAY");
    assert_eq!(times[2], times[1] + seconds(4));
    // "a host SHOULD send at least one solicitation in the case where an advertisement is received prior".
    let mut router = RouterClient::new(5, [1; 32], START);
    let one = ndp::Advertisement {
        router: lifetime(1_800),
        ..ndp::Advertisement::default()
    };
    advertise(&mut router, &one, START);
    let mut sent = 0;
    while let Some(at) = router
        .poll_timeout()
        .filter(|at| at.since(START) < seconds(1_000))
    {
        router.handle_timeout(at);
        sent += u32::from(router.poll_solicitation());
    }
    assert_eq!(sent, 1);
}

#[test]
fn a_router_is_default_for_its_lifetime_and_zero_ends_that_at_once() {
    let mut router = RouterClient::new(5, [1; 32], START);
    let mut one = ndp::Advertisement {
        router: lifetime(100),
        mtu: Some(1_400),
        ..ndp::Advertisement::default()
    };
    advertise(&mut router, &one, START);
    assert!(router.is_default());
    assert_eq!(router.mtu(), Some(1_400));
    router.handle_timeout(START + seconds(99));
    assert!(router.is_default());
    assert!(router.handle_timeout(START + seconds(100)));
    assert!(!router.is_default());
    advertise(&mut router, &one, START + seconds(200));
    one.router = lifetime(0);
    advertise(&mut router, &one, START + seconds(201));
    assert!(!router.is_default());
    for mtu in [1_279, 1_493] {
        one.mtu = Some(mtu);
        advertise(&mut router, &one, START + seconds(300));
        assert_eq!(router.mtu(), Some(1_400), "{mtu} is not usable");
    }
}

#[test]
fn an_address_is_formed_of_the_prefix_and_our_identifier_and_lives_by_rfc_4862() {
    let mut router = RouterClient::new(0x1234, [1; 32], START);
    let with = |router: &mut RouterClient, prefix: ndp::Prefix, now| {
        let one = ndp::Advertisement {
            router: lifetime(1_800),
            prefixes: &[prefix],
            ..ndp::Advertisement::default()
        };
        advertise(router, &one, now);
    };
    for wrong in [
        ndp::Prefix {
            autonomous: false,
            ..advertised(9_000, 8_000)
        },
        ndp::Prefix {
            length: 63,
            ..advertised(9_000, 8_000)
        },
        ndp::Prefix {
            address: "fe80::".parse().unwrap(),
            ..advertised(9_000, 8_000)
        },
        advertised(8_000, 9_000),
        advertised(0, 0),
    ] {
        with(&mut router, wrong, START);
        assert_eq!(router.addresses(), [], "{wrong:?}");
    }
    with(&mut router, advertised(20_000, 10_000), START);
    let address: core::net::Ipv6Addr = "2001:db8:1:2::1234".parse().unwrap();
    let formed = |router: &RouterClient| router.addresses()[0];
    assert_eq!(formed(&router).address, address);
    assert_eq!(formed(&router).valid_until, START + seconds(20_000));
    // Less than two hours leave two hours.
    with(&mut router, advertised(10, 10), START);
    assert_eq!(formed(&router).valid_until, START + seconds(7_200));
    assert_eq!(formed(&router).preferred_until, START + seconds(10));
    // With less than two hours left, it stays as it is.
    with(&mut router, advertised(5, 5), START + seconds(3_000));
    assert_eq!(formed(&router).valid_until, START + seconds(7_200));
    assert!(router.handle_timeout(START + seconds(7_200)));
    assert_eq!(router.addresses(), []);
    for n in 0..9_u16 {
        let mut prefix = advertised(9_000, 9_000);
        prefix.address = core::net::Ipv6Addr::new(0x2001, 0xdb8, 0, n, 0, 0, 0, 0);
        with(&mut router, prefix, START + seconds(8_000));
    }
    assert_eq!((router.addresses().len(), router.refused()), (4, 5));
}
