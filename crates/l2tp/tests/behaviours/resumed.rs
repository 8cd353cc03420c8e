//! An endpoint that crashed and continues from stored state, which may be older than what its peer knows: RFC 2661 5.8,
//! RFC 3931 4.2. A peer that knows nothing of crashes must not notice.

use base::Duration;
use l2tp::{Call, Discard, Endpoint, Event, SessionEnd, TunnelEnd, TunnelState, TunnelView};
use sim::{Link, NodeHandle, World};
use wire::l2tp::{DigestType, MessageType as M, Version};

use crate::common::values::Values;
use crate::common::{
    Body, INSTANT_LINK, Peer, SECRET, Stage, kinds, lac_config, lns_config, only, only_ack,
    open_to, with_secret,
};
use crate::mac::PeerAuth;

const VERSIONS: [fn() -> Peer; 3] = [Peer::v2, Peer::v3, authenticated];

fn authenticated() -> Peer {
    Peer {
        auth: Some(PeerAuth::new(SECRET, DigestType::HmacMd5)),
        ..Peer::v3()
    }
}

/// An LNS with a tunnel and a session, and their ids. Its peer is `peer`.
fn connected(peer: &mut Peer) -> (Stage, u32) {
    let mut stage = Stage::new(match peer.auth {
        Some(_) => with_secret(lns_config()),
        None => lns_config(),
    });
    peer.connect(&mut stage);
    let session = peer.call(&mut stage, 5);
    (stage, session)
}

fn stored(stage: &mut Stage) -> Values {
    stage.with(|us, _| Values::of(us))
}

/// The endpoint crashes, and a new one continues with what was stored.
fn crash(stage: &mut Stage, stored: &Values, wait: Duration) {
    let config = stage.endpoint().config().clone();
    stage.hear();
    stage.world.replace(stage.us, stored.restore(config));
    let tunnel = stage.tunnel();
    stage.with(|us, now| assert!(us.resume(tunnel, wait, now)));
    stage.run_for(Duration::from_millis(10));
}

fn view(stage: &Stage) -> TunnelView<'_> {
    let tunnel = stage.endpoint().tunnel(stage.tunnel());
    tunnel.expect("it is there")
}

#[test]
fn a_peer_in_step_sees_a_hello_and_nothing_else() {
    for peer in VERSIONS {
        let mut peer = peer();
        let (mut stage, _) = connected(&mut peer);
        let stored = stored(&mut stage);
        crash(&mut stage, &stored, Duration::ZERO);
        let hello = only(&peer.hear(&mut stage), M::Hello);
        assert_eq!((hello.ns, hello.nr), (peer.nr.wrapping_sub(1), peer.ns));
        peer.ack(&mut stage);
        stage.run_secs(10);
        assert!(stage.hear().is_empty());
        // The numbers are known again: an impossible Nr is refused as before.
        let mut wild = peer.clone();
        wild.nr = wild.nr.wrapping_add(5);
        let wild = wild.ack_packet();
        stage.send(&wild);
        assert_eq!(stage.discarded(Discard::ImpossibleNr), 1);
        assert_eq!(stage.counter("resumed_with_losses"), 0);
        assert_eq!(stage.counts().sessions_established, 1);
        peer.call(&mut stage, 6);
    }
}

/// "receipt of duplicate messages MUST be acknowledged": the answer to our HELLO has the number that the peer expects.
#[test]
fn a_peer_that_received_more_than_was_stored_acknowledges_our_next_number() {
    for peer in VERSIONS {
        let mut peer = peer();
        let (mut stage, _) = connected(&mut peer);
        let stored = stored(&mut stage);
        // Three messages that the stored state does not know.
        for _ in 0..3 {
            let tunnel = stage.tunnel();
            stage.with(|us, _| us.send_hello(tunnel));
            only(&peer.hear(&mut stage), M::Hello);
            peer.ack(&mut stage);
        }
        crash(&mut stage, &stored, Duration::ZERO);
        let expected = peer.nr;
        let hello = only(&peer.hear(&mut stage), M::Hello);
        assert_eq!(
            hello.ns,
            expected.wrapping_sub(3),
            "the oldest that may be open"
        );
        assert_eq!(peer.nr, expected, "a duplicate");
        peer.ack(&mut stage);
        let again = only(&peer.hear(&mut stage), M::Hello);
        assert_eq!(again.ns, expected);
        peer.ack(&mut stage);
        assert_eq!(view(&stage).next_ns, peer.nr);
        peer.call(&mut stage, 6);
        stage.run_secs(20);
        assert_eq!(stage.counts().sessions_established, 2);
    }
}

/// A message of ours that is sent before the peer's answer would be taken for an old one.
#[test]
fn no_other_message_is_sent_before_the_hello_is_acknowledged() {
    let mut peer = Peer::v2();
    let (mut stage, _) = connected(&mut peer);
    let tunnel = stage.tunnel();
    let stored = stored(&mut stage);
    for _ in 0..2 {
        stage.with(|us, _| us.send_hello(tunnel));
        only(&peer.hear(&mut stage), M::Hello);
        peer.ack(&mut stage);
    }
    crash(&mut stage, &stored, Duration::from_secs(5));
    let session = stage.session();
    stage.with(|us, now| us.close_session(session, now));
    stage.run_secs(4);
    assert!(peer.hear(&mut stage).is_empty());
    stage.run_secs(1);
    only(&peer.hear(&mut stage), M::Hello);
    peer.ack(&mut stage);
    only(&peer.hear(&mut stage), M::Hello);
    peer.ack(&mut stage);
    only(&peer.hear(&mut stage), M::Cdn);
}

/// We had acknowledged two messages of which the stored state knows nothing: the peer never sends them again.
#[test]
fn a_number_that_the_peer_does_not_use_again_is_skipped_after_8_s() {
    for peer in VERSIONS {
        let mut peer = peer();
        let (mut stage, _) = connected(&mut peer);
        let stored = stored(&mut stage);
        for _ in 0..2 {
            only_ack(&peer.say(&mut stage, &Body::new(M::Hello)));
        }
        crash(&mut stage, &stored, Duration::ZERO);
        only(&peer.hear(&mut stage), M::Hello);
        peer.ack(&mut stage);
        assert_eq!(view(&stage).nr, peer.ns - 2);
        stage.run_secs(7);
        assert_eq!(view(&stage).nr, peer.ns - 2);
        stage.run_for(Duration::from_millis(1_010));
        assert_eq!(view(&stage).nr, peer.ns);
        assert_eq!(stage.counter("resumed_with_losses"), 1);
        peer.call(&mut stage, 6);
    }
}

/// The same with a request that arrives meanwhile: it waits, and is answered after 8 s.
#[test]
fn a_message_that_is_ahead_waits_until_the_missing_one_is_given_up() {
    let mut peer = Peer::v2();
    let (mut stage, _) = connected(&mut peer);
    let stored = stored(&mut stage);
    only_ack(&peer.say(&mut stage, &Body::new(M::Hello)));
    crash(&mut stage, &stored, Duration::ZERO);
    only(&peer.hear(&mut stage), M::Hello);
    let icrq = peer.icrq(6);
    assert_eq!(only_ack(&peer.say(&mut stage, &icrq)).nr, peer.ns - 2);
    // The peer sends another one behind it, and an acknowledgement alone.
    let icrq = peer.icrq(7);
    only_ack(&peer.say(&mut stage, &icrq));
    peer.ack(&mut stage);
    stage.run_for(Duration::from_millis(8_010));
    let got = peer.hear(&mut stage);
    assert_eq!(kinds(&got)[..1], [Some(M::Icrp)], "{got:?}");
    assert_eq!(view(&stage).nr, peer.ns);
    assert_eq!(stage.counts().sessions, 3);
}

#[test]
fn a_message_with_the_stored_number_shows_that_nothing_is_missing() {
    let mut peer = Peer::v2();
    let (mut stage, _) = connected(&mut peer);
    let stored = stored(&mut stage);
    // The crash comes before this arrives.
    let lost = peer.packet(0, &Body::new(M::Hello));
    crash(&mut stage, &stored, Duration::ZERO);
    only(&peer.hear(&mut stage), M::Hello);
    peer.ack(&mut stage);
    stage.run_secs(2);
    stage.send(&lost);
    assert_eq!(only_ack(&peer.hear(&mut stage)).nr, peer.ns);
    stage.run_secs(20);
    assert_eq!(stage.counter("resumed_with_losses"), 0);
    peer.call(&mut stage, 6);
}

/// What ends something does not wait: the peer has ended it already.
#[test]
fn a_cdn_or_stopccn_that_is_ahead_is_taken_at_once() {
    for peer in VERSIONS {
        let mut peer = peer();
        let (mut stage, session) = connected(&mut peer);
        let stored = stored(&mut stage);
        only_ack(&peer.say(&mut stage, &Body::new(M::Hello)));
        crash(&mut stage, &stored, Duration::ZERO);
        only(&peer.hear(&mut stage), M::Hello);
        let cdn = peer.cdn(5, session, 3);
        only_ack(&peer.say_in(&mut stage, session as u16, &cdn));
        assert!(matches!(stage.session_end(), SessionEnd::Peer(notice) if notice.result == 3));
        let stop = peer.stop_ccn(1);
        let ack = only_ack(&peer.say(&mut stage, &stop));
        assert_eq!(ack.nr, peer.ns, "the peer can stop repeating it");
        assert!(matches!(stage.tunnel_end(), TunnelEnd::Peer(notice) if notice.result == 1));
        assert_eq!(stage.counts().held, 1);
        stage.run_secs(60);
        assert_eq!(stage.counts(), Default::default());
    }
}

#[test]
fn a_peer_that_does_not_answer_ends_the_tunnel_as_ever() {
    let mut peer = Peer::v2();
    let (mut stage, _) = connected(&mut peer);
    let stored = stored(&mut stage);
    crash(&mut stage, &stored, Duration::ZERO);
    stage.run_secs(32);
    assert_eq!(stage.tunnel_end(), TunnelEnd::Unanswered);
    assert_eq!(stage.session_end(), SessionEnd::TunnelEnded);
    let hellos = stage
        .hear()
        .iter()
        .filter(|got| got.kind() == M::Hello)
        .count();
    // The HELLO, its five repetitions, and once more with the StopCCN.
    assert_eq!(hellos, 7);
}

/// Data flows at once; the first frame sets the expected number (RFC 4951 3.2.3), and ours are ahead of those before.
#[test]
fn numbered_data_continues_with_any_number_of_the_peer() {
    let mut peer = Peer::v2();
    let (mut stage, session) = connected(&mut peer);
    let stored = stored(&mut stage);
    crash(&mut stage, &stored, Duration::ZERO);
    let key = stage.session();
    for (ns, is_taken) in [(40_000_u16, true), (39_999, false), (40_001, true)] {
        let mut header = [0; wire::l2tp::DATA_HEADER_MAX];
        let view = (view(&stage).id as u16, session as u16);
        let length = wire::l2tp::write_data_v2(&mut header, view.0, view.1, Some(ns));
        let route = base::Route::to(crate::common::PEER);
        let taken = stage.with(|us, now| us.receive_data(&route, &header[..length], now));
        assert_eq!(taken.is_ok(), is_taken, "{ns}: {taken:?}");
        assert!(taken.is_err() || matches!(taken, Ok(Some(data)) if data.session == key));
    }
}

/// Two endpoints, one of which crashes over and over, and each time continues from state of up to 100 ms before.
struct Crashes {
    world: World,
    lac: NodeHandle<Endpoint>,
    lns: NodeHandle<Endpoint>,
    /// Of the next successor: it assigns other ids than its predecessor.
    seed: u8,
}

impl Crashes {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let has_secret = seed.is_multiple_of(2);
        let config = |config| {
            if has_secret {
                with_secret(config)
            } else {
                config
            }
        };
        let link = Link {
            loss: 0.05,
            duplicate: 0.05,
            ..INSTANT_LINK
        };
        world.set_default_link(Link {
            delay: Duration::from_millis(10),
            ..link
        });
        let lac = Endpoint::new(config(lac_config()), [1; 32]);
        let lac = world.add("lac", lac, [sim::ADDRESS_A]);
        let lns = Endpoint::new(config(lns_config()), [2; 32]);
        let lns = world.add("lns", lns, [sim::ADDRESS_B]);
        Self {
            world,
            lac,
            lns,
            seed: 3,
        }
    }

    /// Calls begin and end at both ends.
    fn command(&mut self, rng: &mut sim::Rng) {
        let node = [self.lac, self.lns][rng.below(2) as usize];
        let open = rng.below(3) < 2;
        self.world.with(node, |one, now| match one.next_tunnel(0) {
            Some((_, tunnel)) if open => {
                let tunnel = tunnel.key;
                let _ = one.open_session(tunnel, Call::default(), now);
            }
            Some(_) => {
                let session = one.next_session(0).map(|(_, session)| session.key);
                session.map(|session| one.close_session(session, now));
            }
            None => {}
        });
    }

    /// One end crashes. Its successor has what was stored some milliseconds before.
    fn crash(&mut self, rng: &mut sim::Rng) {
        let node = [self.lac, self.lns][rng.below(2) as usize];
        let stored = self.world.with(node, |one, _| Values::of(one));
        for _ in 0..rng.below(4) {
            self.command(rng);
            self.world.run_for(rng.up_to(Duration::from_millis(30)));
        }
        let config = self.world[node].config().clone();
        self.seed += 1;
        let successor = Endpoint::new(config, [self.seed; 32]);
        self.world.replace(node, stored.restore_into(successor));
        let wait = rng.up_to(Duration::from_secs(2));
        self.world.with(node, |one, now| {
            let tunnel = one.next_tunnel(0).expect("it was stored").1.key;
            assert!(one.resume(tunnel, wait, now));
        });
    }

    /// Both ends expect the number that the other one sends next, and a call can be made.
    fn check(&mut self) {
        let (lac, lns) = (self.lac, self.lns);
        let agree = move |world: &World| {
            let numbers = |node: NodeHandle<Endpoint>| {
                let (_, tunnel) = world[node].next_tunnel(0).expect("it lives");
                assert_eq!(tunnel.state, TunnelState::Established);
                (tunnel.oldest_ns, tunnel.nr, tunnel.outstanding)
            };
            let (lac, lns) = (numbers(lac), numbers(lns));
            (lac.2, lns.2) == (0, 0) && (lac.0, lac.1) == (lns.1, lns.0)
        };
        let limit = Duration::from_secs(30);
        self.world.expect("the numbers are right", limit, agree);
        // A new session may have the id of one that the other end lost, and is then refused.
        assert!((0..3).any(|_| self.can_call()), "no call can be made");
    }

    fn can_call(&mut self) -> bool {
        let made = self.world.with(self.lac, |one, now| {
            let tunnel = one.next_tunnel(0).expect("it lives").1.key;
            one.open_session(tunnel, Call::default(), now)
        });
        let made = made.expect("there is room");
        self.world.take_events(self.lac);
        self.world.run_for(Duration::from_secs(20));
        let is_up =
            |event: &Event| matches!(event, Event::SessionUp { session, .. } if *session == made);
        self.world.take_events(self.lac).iter().any(is_up)
    }
}

#[test]
fn the_ends_of_a_tunnel_agree_again_after_each_crash() {
    sim::seeds(300, |seed| {
        let mut run = Crashes::new(seed);
        let mut rng = run.world.rng("crashes");
        let version = [Version::V2, Version::V3][rng.below(2) as usize];
        run.world.with(run.lac, |lac, now| {
            lac.open_tunnel(open_to(sim::ADDRESS_B, version), now)
                .expect("there is room");
        });
        run.world.run_for(Duration::from_secs(10));
        for _ in 0..4 {
            for _ in 0..rng.below(20) {
                run.command(&mut rng);
                run.world.run_for(rng.up_to(Duration::from_millis(200)));
            }
            run.crash(&mut rng);
            for _ in 0..rng.below(5) {
                run.command(&mut rng);
                run.world.run_for(rng.up_to(Duration::from_secs(1)));
            }
            run.world.run_for(Duration::from_secs(60));
            run.check();
        }
    });
}
