//! Tunnels and sessions as values: what is refused, which fields there are, and how large they get.

use base::snapshot::{Fault, ReadError, Reader, Timeline, Writer};
use base::{Duration, Instant, Machine, Redacted};
use l2tp::{Call, Config, ConfigIds, Endpoint, Limits, Refused, SessionKey, TunnelKey, Versions};
use sim::Rng;
use wire::l2tp::Version;

use crate::common::values::{TIMELINE, TunnelOctets, Values, restore_session, restore_tunnel};
use crate::common::{self, SECRET, Stage, lac_config};
use crate::twins;

/// An endpoint of ours with an established tunnel and session to another one.
fn established(version: Version, call: Call, config: Config) -> (Endpoint, TunnelKey, SessionKey) {
    let mut lac = Endpoint::new(config.clone(), [1; 32]);
    let mut lns = Endpoint::new(
        Config {
            accept: true,
            ..config
        },
        [2; 32],
    );
    let mut now = Instant::ZERO + Duration::from_secs(5_000);
    let tunnel = lac
        .open_tunnel(common::open_to(common::US, version), now)
        .expect("there is room");
    let session = lac.open_session(tunnel, call, now).expect("there is room");
    for _ in 0..10 {
        now += Duration::from_millis(20);
        carry(&mut lac, &mut lns, common::PEER, now);
        carry(&mut lns, &mut lac, common::US, now);
    }
    assert_eq!(lac.counts().sessions_established, 1);
    (lac, tunnel, session)
}

/// Delivers all that one endpoint has to send.
fn carry(from: &mut Endpoint, to: &mut Endpoint, source: core::net::SocketAddr, now: Instant) {
    let mut bytes = Vec::new();
    while from.poll_transmit(now, &mut bytes).is_some() {
        let route = base::Route::to(source);
        let datagram = base::Datagram {
            route,
            bytes: &bytes,
        };
        let _ = to.handle(datagram, now);
        bytes.clear();
    }
    while from.poll_event().is_some() {}
}

/// A few changes: other octets, octets more or fewer.
fn mutated(octets: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut octets = octets.to_vec();
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(octets.len() as u64 + 1) as usize;
        let octet = [rng.next_u64() as u8, rng.below(30) as u8][rng.below(2) as usize];
        match rng.below(4) {
            0 => octets.insert(at, octet),
            1 if at < octets.len() => drop(octets.remove(at)),
            _ if at < octets.len() => octets[at] = octet,
            _ => octets.truncate(rng.below(octets.len() as u64 + 1) as usize),
        }
    }
    octets
}

/// Lets an endpoint run until it has nothing left to do, or long enough.
fn drive(mut endpoint: Endpoint) {
    let mut out = Vec::new();
    let mut now = Instant::ZERO + Duration::from_secs(30);
    for turn in 0..40 {
        endpoint.handle_timeout(now);
        while endpoint.poll_transmit(now, &mut out).is_some() {
            out.clear();
        }
        while endpoint.poll_event().is_some() {}
        if turn == 20 {
            endpoint.shut_down(now);
        }
        now = endpoint.poll_timeout().map_or(now, |(at, _)| now.max(at));
    }
}

/// Whether the octets were taken: then they are those of the tunnel.
fn hostile_tunnel(config: &Config, once: &[u8], one: &TunnelOctets, octets: &[u8]) -> bool {
    let mut endpoint = Endpoint::new(config.clone(), [9; 32]);
    let known = endpoint.restore(&mut Reader::new(once, TIMELINE));
    known.expect("they are its own");
    let restored = restore_tunnel(&mut endpoint, octets, one.secret.as_ref());
    match restored {
        Ok(_) => drive(endpoint),
        Err(_) => assert_eq!(endpoint.counts(), Default::default(), "{restored:?}"),
    }
    restored.is_ok()
}

#[test]
fn octets_that_were_changed_are_refused_or_are_those_of_the_tunnel() {
    let taken = core::cell::Cell::new((0, 0));
    sim::seeds(60, |seed| {
        let mut rng = Rng::stream(seed, &["changes"]);
        for (config, values) in twins::samples(seed) {
            for one in &values.tunnels {
                let octets = mutated(&one.octets, &mut rng);
                let is_taken = hostile_tunnel(&config, &values.once, one, &octets);
                let (yes, all) = taken.get();
                taken.set((yes + u32::from(is_taken), all + 1));
            }
        }
    });
    let (yes, all) = taken.get();
    assert!(yes > all / 20 && yes < all, "{yes} of {all}");
}

#[test]
fn octets_that_were_changed_are_refused_or_are_those_of_the_session() {
    let taken = core::cell::Cell::new((0, 0));
    sim::seeds(60, |seed| {
        let mut rng = Rng::stream(seed, &["changes"]);
        for (config, values) in twins::samples(seed) {
            for octets in &values.sessions {
                let octets = mutated(octets, &mut rng);
                let others = Values {
                    sessions: Vec::new(),
                    ..values.clone()
                };
                let mut endpoint = others.restore(config.clone());
                let restored = restore_session(&mut endpoint, &octets);
                assert_eq!(endpoint.counts().sessions, restored.is_ok().into());
                drive(endpoint);
                let (yes, all) = taken.get();
                taken.set((yes + u32::from(restored.is_ok()), all + 1));
            }
        }
    });
    let (yes, all) = taken.get();
    assert!(yes > all / 20 && yes < all, "{yes} of {all}");
}

#[test]
fn an_established_tunnel_and_its_session_take_few_octets() {
    // A process that began 90 days after the timeline did.
    let timeline = Timeline::new(90 * 86_400 * 1_000_000_000);
    let written = |write: &mut dyn FnMut(&mut Writer)| {
        let mut writer = Writer::new(Vec::new(), timeline);
        write(&mut writer);
        writer.into_octets().len()
    };
    let secret = common::with_secret(lac_config());
    let mut call = twins::detailed_call(l2tp::Direction::Incoming, false);
    // Nobody reads the proxy AVPs of an established session again.
    call.details.proxy = None;
    let cases = [
        (Version::V2, lac_config(), 120, 160),
        (Version::V2, secret.clone(), 120, 160),
        (Version::V3, lac_config(), 120, 180),
        (Version::V3, secret, 165, 180),
    ];
    for (version, config, most, most_of_session) in cases {
        let (mut lac, tunnel, session) = established(version, call.clone(), config);
        let length = written(&mut |writer| assert!(lac.tunnel_snapshot(tunnel, writer)));

        assert!(length <= most, "{version:?}: {length} octets");
        let length = written(&mut |writer| assert!(lac.session_snapshot(session, writer)));

        assert!(length <= most_of_session, "{version:?}: {length} octets");
    }
}

#[test]
fn a_secret_is_not_among_the_octets_and_is_needed_again() {
    let config = common::with_secret(lac_config());
    let (mut lac, tunnel, _) = established(Version::V3, Call::default(), config.clone());
    let values = Values::of(&mut lac);
    let octets = &values.tunnels[0].octets;
    let found = |octets: &[u8]| {
        octets
            .windows(4)
            .any(|four| SECRET.windows(4).any(|s| s == four))
    };
    assert!(!found(octets));
    assert_eq!(
        lac.tunnel_secret(tunnel),
        Some(Redacted::new(SECRET.to_vec()))
    );
    let restored = |config: &Config, secret: Option<&[u8]>| {
        let mut endpoint = Endpoint::new(config.clone(), [9; 32]);
        let once = endpoint.restore(&mut Reader::new(&values.once, TIMELINE));
        assert_eq!(once, Ok(()));
        let secret = secret.map(|secret| Redacted::new(secret.to_vec()));
        restore_tunnel(&mut endpoint, octets, secret.as_ref())
    };
    let without = lac_config();
    let other = Config {
        secret: Some(Redacted::new(b"another".to_vec())),
        ..lac_config()
    };
    assert_eq!(restored(&config, None), Ok(tunnel));
    assert_eq!(restored(&config, Some(b"another")), Ok(tunnel));
    assert_eq!(restored(&without, Some(SECRET)), Ok(tunnel));
    assert_eq!(restored(&other, Some(SECRET)), Ok(tunnel));
    for config in [&without, &other] {
        assert_eq!(restored(config, None), Err(Refused::UnknownSecret));
        let wrong = restored(config, Some(b"a shared secreT"));
        assert_eq!(wrong, Err(Refused::UnknownSecret));
    }
}

#[test]
fn each_refusal_has_its_reason_and_changes_nothing() {
    let config = Config {
        config_ids: ConfigIds::FirstFree,
        ..lac_config()
    };
    for version in [Version::V2, Version::V3] {
        let (mut lac, tunnel, session) = established(version, Call::default(), config.clone());
        let values = Values::of(&mut lac);
        let (octets, of_session) = (&values.tunnels[0].octets, &values.sessions[0]);
        // Each once: the place is in use then.
        let mut again = values.restore(config.clone());
        let before = Values::of(&mut again);
        let refused = restore_tunnel(&mut again, octets, None);
        assert_eq!(refused, Err(Refused::PlaceInUse));
        let refused = restore_session(&mut again, of_session);
        assert_eq!(refused, Err(Refused::PlaceInUse));
        let refused = again.restore(&mut Reader::new(&values.once, TIMELINE));
        assert_eq!(refused, Err(Refused::NotEmpty));
        assert_eq!(Values::of(&mut again), before);
        // A session without its tunnel, or after its tunnel's end.
        let mut empty = Endpoint::new(config.clone(), [9; 32]);
        let refused = restore_session(&mut empty, of_session);
        assert_eq!(refused, Err(Refused::UnknownTunnel));
        assert!(again.close_tunnel(tunnel, Instant::ZERO));
        let refused = restore_session(&mut again, of_session);
        assert_eq!(refused, Err(Refused::UnknownTunnel));
        assert_eq!(again.session(session).map(|one| one.id), None);
        let off = Config {
            versions: Versions {
                v2: version == Version::V3,
                v3: version == Version::V2,
            },
            ..config.clone()
        };
        let refused = restore_tunnel(&mut Endpoint::new(off, [9; 32]), octets, None);
        assert_eq!(refused, Err(Refused::VersionOff));
        let short = &octets[..octets.len() - 1];
        let refused = restore_tunnel(&mut empty, short, None);
        let why = ReadError {
            part: "tunnel",
            fault: Fault::Short,
        };
        assert_eq!(refused, Err(Refused::Unreadable(why)));
    }
}

#[test]
fn a_full_table_takes_no_more() {
    for version in [Version::V2, Version::V3] {
        let (mut lac, ..) = established(version, Call::default(), lac_config());
        let values = Values::of(&mut lac);
        let full = |limits: Limits| {
            let config = Config {
                limits,
                ..lac_config()
            };
            let mut endpoint = Endpoint::new(config, [9; 32]);
            let open = common::to_peer(version);
            let now = Instant::ZERO;
            if limits.tunnels == 1 {
                endpoint.open_tunnel(open, now).expect("the first one");
            }
            let tunnel = restore_tunnel(&mut endpoint, &values.tunnels[0].octets, None)?;
            let session = endpoint.open_session(tunnel, Call::default(), now);
            session.expect("the first one");
            restore_session(&mut endpoint, &values.sessions[0])
        };
        let limits = Config::default().limits;
        let tunnels = Limits {
            tunnels: 1,
            ..limits
        };
        let sessions = Limits {
            sessions: 1,
            ..limits
        };
        let in_tunnel = Limits {
            sessions_per_tunnel: 1,
            ..limits
        };
        let refused = |limit| Err(Refused::LimitReached(limit));
        assert_eq!(full(tunnels), refused("tunnels"));
        assert_eq!(full(sessions), refused("sessions"));
        assert_eq!(full(in_tunnel), refused("sessions_per_tunnel"));
    }
}

#[test]
fn every_part_of_a_route_is_kept() {
    let peer = core::net::SocketAddrV6::new("fe80::7".parse().expect("an address"), 1_701, 9, 3);
    let route = base::Route {
        peer: peer.into(),
        local: Some("fe80::8".parse().expect("an address")),
        socket: 77,
    };
    let open = l2tp::OpenTunnel {
        route,
        version: Version::V2,
    };
    let mut lac = Endpoint::new(lac_config(), [1; 32]);
    let key = lac.open_tunnel(open, Instant::ZERO).expect("there is room");
    let again = Values::of(&mut lac).restore(lac_config());
    assert_eq!(again.tunnel(key).map(|one| one.route), Some(route));
}

/// Another place, the same ids: a second tunnel would get the first one's messages.
#[test]
fn an_id_that_is_in_use_is_refused() {
    let (mut lac, _, _) = established(Version::V2, Call::default(), lac_config());
    let values = Values::of(&mut lac);
    // Field 1, the place, is absent: it is 0.
    let elsewhere = |octets: &[u8]| [&[1, 1], octets].concat();
    let mut again = values.restore(lac_config());
    let octets = elsewhere(&values.tunnels[0].octets);
    let refused = restore_tunnel(&mut again, &octets, None);
    assert_eq!(refused, Err(Refused::IdInUse("local id")));
    let octets = elsewhere(&values.sessions[0]);
    let refused = restore_session(&mut again, &octets);
    assert_eq!(refused, Err(Refused::IdInUse("local id")));
}

#[test]
fn a_new_tunnel_does_not_get_the_id_of_a_restored_one() {
    let mut stage = Stage::lac();
    let keys: Vec<TunnelKey> = (0..50).map(|_| stage.open_tunnel(Version::V2)).collect();
    let values = stage.with(|us, _| Values::of(us));
    // The same seed: without the claims, the ids would be the same again.
    let mut again = Endpoint::new(lac_config(), [2; 32]);
    for one in &values.tunnels {
        restore_tunnel(&mut again, &one.octets, None).expect("there is room");
    }
    let mut ids: std::collections::HashSet<u32> = keys
        .iter()
        .map(|&key| again.tunnel(key).expect("it is restored").id)
        .collect();
    for _ in 0..50 {
        let key = again
            .open_tunnel(common::to_peer(Version::V2), Instant::ZERO)
            .expect("there is room");
        assert!(ids.insert(again.tunnel(key).expect("it is open").id));
    }
}

#[test]
fn the_numbers_of_fields_are_never_used_for_others() {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for name in Endpoint::snapshot_names() {
        let field = format!(" {}={}", name.number, name.field);
        match parts.iter_mut().find(|(part, _)| *part == name.part) {
            Some((_, fields)) => fields.push_str(&field),
            None => parts.push((name.part, field)),
        }
    }
    let lines = parts
        .iter()
        .map(|(part, fields)| format!("{part}:{fields}\n"));
    assert_eq!(lines.collect::<String>(), NAMES);
}

/// Each part with its fields. A new field gets a new number.
const NAMES: &str = "\
endpoint: 1=hash_seed 2=next_serial
generator: 1=position 2=spaces 3=tunnels 4=sessions
position: 1=seed 2=stream 3=word 4=word_high
id_sequence: 1=order 2=started 3=returned
place: 1=index 2=generation
tunnel: 1=place 2=generation 3=version 4=state 5=ending 6=originated 7=local_id 8=remote_id 9=route 10=created 11=up \
12=idle_deadline 13=empty_deadline 14=last_heard 15=window 16=secret 17=auth 18=offers 19=config_id 20=request_hash \
21=received 22=sent 23=retransmissions 24=duplicates 25=peer_host 26=setup 27=queue 28=early
route: 1=peer 2=port 3=scope 4=flow 5=local 6=socket
window: 1=una 2=sent 3=nr 4=peer_window 5=cwnd 6=ssthresh 7=acks_in_cwnd 8=tries 9=in_flight 10=deadline 11=ack_owed \
12=probe
probe: 1=clear_from 2=is_in_step 3=settle_at 4=lowest 5=highest
auth: 1=local_nonce 2=told 3=remote_nonce
setup: 1=challenge 2=tie_breaker 3=host_name 4=peer_name
message: 1=session 2=connects 3=connects_generation 4=ns 5=body
session: 1=place 2=generation 3=tunnel 4=tunnel_generation 5=local_id 6=remote_id 7=role 8=state 9=announced \
10=pseudowire 11=created 12=up 13=due 14=local_cookie 15=remote_cookie 16=sublayer 17=local_sublayer \
18=expected_sequence 19=sent_sequence 20=sequencing 21=sequencing_by_peer 22=tie_breaker 23=details 24=cause \
25=any_sequence
call: 1=serial 2=called_number 3=calling_number 4=sub_address 5=remote_end_id 6=tx_speed_bps 7=rx_speed_bps \
8=physical_channel 9=private_group 10=bearer_type 11=framing_type 12=circuit_status 13=line 14=speed_updates 15=proxy
proxy: 1=initial_received_confreq 2=last_sent_confreq 3=last_received_confreq 4=authen_type 5=authen_name \
6=authen_challenge 7=authen_id 8=authen_response
ppp_cause: 1=code 2=protocol 3=direction 4=message
";
