use super::*;

fn ours(settings: &PeerSettings) -> Ours<'_> {
    Ours {
        asn: 65_001,
        router_id: Ipv4Addr::new(10, 0, 0, 1),
        restarted: false,
        settings,
    }
}

/// The OPEN of a peer with these settings, in another or the same autonomous system.
fn theirs(asn: u32, settings: &PeerSettings) -> Open {
    let ours = Ours {
        asn,
        router_id: Ipv4Addr::new(10, 0, 0, 2),
        restarted: false,
        settings,
    };
    let mut message = Vec::new();
    ours.emit(&mut message);
    Open::read(&message[wire::bgp::HEADER_LEN..]).expect("we understand ourselves")
}

fn changed(change: impl FnOnce(&mut PeerSettings)) -> Arc<PeerSettings> {
    let mut settings = PeerSettings::default();
    change(&mut settings);
    Arc::new(settings)
}

fn refusal(ours: Ours<'_>, theirs: &Open, expected: RemoteAsn) -> (u8, u8) {
    let told = ours.agree(theirs, expected).expect_err("not acceptable");
    (told.code, told.subcode)
}

#[test]
fn the_lower_hold_time_is_taken_and_a_third_of_it() {
    let (slow, fast) = (
        changed(|s| s.hold_time_s = 90),
        changed(|s| s.hold_time_s = 3),
    );
    let agreed = ours(&slow).agree(&theirs(65_002, &fast), RemoteAsn::Any);
    let agreed = agreed.unwrap();
    assert_eq!((agreed.hold_time_s, agreed.keepalive_s), (3, 1));
    let none = changed(|s| s.hold_time_s = 0);
    let agreed = ours(&slow).agree(&theirs(65_002, &none), RemoteAsn::Any);
    let agreed = agreed.unwrap();
    assert_eq!((agreed.hold_time_s, agreed.keepalive_s), (0, 0));
    let often = changed(|s| s.keepalive_s = Some(5));
    let agreed = ours(&often).agree(&theirs(65_002, &slow), RemoteAsn::Any);
    assert_eq!(agreed.unwrap().keepalive_s, 5);
}

#[test]
fn a_hold_time_below_ours_to_accept_is_refused() {
    let strict = changed(|s| s.hold_time_min_s = 30);
    let fast = changed(|s| s.hold_time_s = 3);
    let open = theirs(65_002, &fast);
    assert_eq!(refusal(ours(&strict), &open, RemoteAsn::Any), (2, 6));
}

#[test]
fn an_autonomous_system_that_is_not_expected_is_refused() {
    let plain = changed(|_| ());
    let open = theirs(4_200_000_000, &plain);
    for (expected, is_good) in [
        (RemoteAsn::Any, true),
        (RemoteAsn::External, true),
        (RemoteAsn::Internal, false),
        (RemoteAsn::Exactly(4_200_000_000), true),
        (RemoteAsn::Exactly(23_456), false),
    ] {
        let agreed = ours(&plain).agree(&open, expected);
        match agreed {
            Ok(agreed) => assert!(is_good && agreed.remote_asn == 4_200_000_000),
            Err(told) => assert!(!is_good && (told.code, told.subcode) == (2, 2)),
        }
    }
}

#[test]
fn equal_identifiers_are_refused_within_one_system_only() {
    let plain = changed(|_| ());
    let mut open = theirs(65_001, &plain);
    open.router_id = Ipv4Addr::new(10, 0, 0, 1).to_bits();
    assert_eq!(refusal(ours(&plain), &open, RemoteAsn::Any), (2, 3));
    let mut open = theirs(65_002, &plain);
    open.router_id = Ipv4Addr::new(10, 0, 0, 1).to_bits();
    assert!(ours(&plain).agree(&open, RemoteAsn::Any).is_ok());
}

#[test]
fn without_a_common_family_the_missing_ones_are_told() {
    let (v4, v6) = (
        changed(|s| s.families = Families::IPV4),
        changed(|s| s.families = Families::NONE.with(FamilyId::Ipv6Unicast)),
    );
    let told = ours(&v4)
        .agree(&theirs(65_002, &v6), RemoteAsn::Any)
        .unwrap_err();
    assert_eq!((told.code, told.subcode), (2, 7));
    assert_eq!(told.data, [1, 4, 0, 1, 0, 1]);
    let mut silent = theirs(65_002, &v4);
    silent.capabilities.clear();
    let agreed = ours(&v4).agree(&silent, RemoteAsn::Any).unwrap();
    assert_eq!(agreed.families, Families::IPV4);
    assert!(!agreed.four_octet && !agreed.refresh && !agreed.extended);
}

#[test]
fn roles_have_to_fit() {
    use Role::{Customer, Peer, Provider, RouteServer, RouteServerClient};
    for ours_is in [Provider, RouteServer, RouteServerClient, Customer, Peer] {
        for theirs_is in [Provider, RouteServer, RouteServerClient, Customer, Peer] {
            let (a, b) = (
                changed(|s| s.role = Some(ours_is)),
                changed(|s| s.role = Some(theirs_is)),
            );
            let fits = matches!(
                (ours_is, theirs_is),
                (Provider, Customer)
                    | (Customer, Provider)
                    | (RouteServer, RouteServerClient)
                    | (RouteServerClient, RouteServer)
                    | (Peer, Peer)
            );
            let agreed = ours(&a).agree(&theirs(65_002, &b), RemoteAsn::Any);
            match agreed {
                Ok(agreed) => assert!(fits && agreed.role == Some(theirs_is)),
                Err(told) => assert!(!fits && (told.code, told.subcode) == (2, 11)),
            }
            // Internal peers have no roles (RFC 9234, section 4).
            let agreed = ours(&a).agree(&theirs(65_001, &b), RemoteAsn::Any);
            assert_eq!(agreed.unwrap().role, None);
        }
    }
}

#[test]
fn a_strict_role_insists_on_the_peer_s() {
    let plain = changed(|_| ());
    for (strict, is_good) in [(false, true), (true, false)] {
        let settings = changed(|s| {
            s.role = Some(Role::Provider);
            s.role_strict = strict;
        });
        let agreed = ours(&settings).agree(&theirs(65_002, &plain), RemoteAsn::Any);
        assert_eq!(agreed.is_ok(), is_good);
    }
    let settings = changed(|s| s.role = Some(Role::Provider));
    let mut twice = theirs(65_002, &changed(|s| s.role = Some(Role::Customer)));
    twice.capabilities.push(Capability::Role(Role::Peer as u8));
    assert_eq!(refusal(ours(&settings), &twice, RemoteAsn::Any), (2, 11));
}

#[test]
fn several_paths_flow_where_one_sends_and_the_other_receives() {
    let sender = changed(|s| s.add_path_send = Families::IPV4);
    let receiver = changed(|s| s.add_path_receive = Families::IPV4);
    let agreed = ours(&receiver)
        .agree(&theirs(65_002, &sender), RemoteAsn::Any)
        .unwrap();
    assert_eq!(
        (agreed.add_path_in, agreed.add_path_out),
        (Families::IPV4, Families::NONE)
    );
    let agreed = ours(&sender)
        .agree(&theirs(65_002, &receiver), RemoteAsn::Any)
        .unwrap();
    assert_eq!(
        (agreed.add_path_in, agreed.add_path_out),
        (Families::NONE, Families::IPV4)
    );
    let agreed = ours(&sender)
        .agree(&theirs(65_002, &sender), RemoteAsn::Any)
        .unwrap();
    assert_eq!(
        (agreed.add_path_in, agreed.add_path_out),
        (Families::NONE, Families::NONE)
    );
}
