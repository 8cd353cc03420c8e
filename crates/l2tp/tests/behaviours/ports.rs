//! Addresses and ports: RFC 2661 8.1, RFC 3931 4.1.2.2.

use l2tp::Discard;
use wire::l2tp::MessageType as M;

use crate::common::{Body, PEER, Peer, Stage, US, kinds, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

/// "Sends its reply to the initiator's UDP port and address."
#[test]
fn b23_replies_go_to_the_port_that_the_request_came_from() {
    for peer in VERSIONS {
        for port in [1, 1024, 40_000, 65_535] {
            let (mut stage, mut lac) = (Stage::lns(), peer());
            let from = core::net::SocketAddr::new(PEER.ip(), port);
            stage.world.rebind(stage.probe, 0, from);
            lac.connect(&mut stage);
            lac.call(&mut stage, 5);
            let tunnel = stage.tunnel();
            let view = stage.endpoint().tunnel(tunnel).unwrap();
            assert_eq!(view.route.peer, from);
        }
    }
}

/// The answer is sent from the address that the request went to, whichever of ours that is.
#[test]
fn b23_replies_leave_from_the_address_that_was_asked() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    stage.world.bind(stage.us, "203.0.113.0/24:1701");
    let asked = sim::addr("203.0.113.77:1701");
    let packet = lac.packet(0, &lac.clone().sccrq());
    let probe = stage.probe;
    stage
        .world
        .with(probe, |probe, _| probe.send(asked, &packet));
    stage.run_secs(0);
    let reply = only(&lac.hear(&mut stage), M::Sccrp);
    assert_eq!(reply.from, asked);
    // So are messages sent by a timer.
    stage.run_secs(1);
    assert_eq!(only(&lac.hear(&mut stage), M::Sccrp).from, asked);
}

/// IPv6 behaves the same.
#[test]
fn b23_tunnels_come_up_over_ipv6() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let (us, peer) = (
        sim::addr("[2001:db8::2]:1701"),
        sim::addr("[2001:db8::1]:1701"),
    );
    stage.world.bind(stage.us, us);
    let probe = stage.probe;
    let socket = stage.world.bind(probe, peer);
    let route = base::Route {
        peer: us,
        local: None,
        socket,
    };
    let packet = lac.packet(0, &lac.clone().sccrq());
    stage
        .world
        .with(probe, |probe, _| probe.send_along(route, &packet));
    stage.run_secs(0);
    let reply = only(&lac.hear(&mut stage), M::Sccrp);
    assert_eq!(reply.from, us);
    lac.take_sccrp(&reply);
    let packet = lac.packet(0, &Body::new(M::Scccn));
    stage
        .world
        .with(probe, |probe, _| probe.send_along(route, &packet));
    stage.run_secs(0);
    only_ack(&lac.hear(&mut stage));
    assert_eq!(stage.counts().established, 1);
}

/// "The recipient picks a free port on its own system (which may or may not be 1701)";
/// "once the source and destination ports and addresses are established, they MUST remain
/// static for the life of the tunnel".
#[test]
fn b23_an_sccrp_may_come_from_another_port_which_is_then_the_tunnels() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        let request = lns.take_sccrq(&mut stage);
        assert_eq!(request.from, US);
        let moved = sim::addr("192.0.2.1:50000");
        let probe = stage.probe;
        stage.world.bind(probe, moved);
        let reply = lns.packet(0, &lns.clone().sccrp());
        stage.send_from(moved, &reply);
        let tunnel = stage.tunnel();
        let view = stage.endpoint().tunnel(tunnel).unwrap();
        assert_eq!(view.route.peer, moved);
        // Everything is sent there, the SCCCN first.
        let heard = stage.world.take_events(probe);
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].route.socket, 1, "the port it moved to");
        lns.nr += 1;
        let ack = lns.ack_packet();
        stage.send_from(moved, &ack);
        let before = stage.discarded(Discard::WrongSource);
        // The old port is no longer accepted.
        let hello = lns.packet_at(lns.ns, lns.nr, 0, &Body::new(M::Hello).bytes);
        stage.send(&hello);
        assert!(stage.hear().is_empty());
        assert_eq!(stage.discarded(Discard::WrongSource), before + 1);
        stage.send_from(moved, &hello);
        let heard = stage.world.take_events(probe);
        assert_eq!(heard[0].route.socket, 1);
    }
}

/// Only the port may move, not the address, and only with the answer to the request.
#[test]
fn b23_nobody_else_can_take_a_tunnel_over() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        stage.open_tunnel(lns.version);
        lns.take_sccrq(&mut stage);
        let reply = lns.packet(0, &lns.clone().sccrp());
        let stranger = sim::addr("192.0.2.66:1701");
        stage.send_from(stranger, &reply);
        assert_eq!(stage.discarded(Discard::WrongSource), 1);
        assert_eq!(stage.counts().established, 0);
        stage.send(&reply);
        assert_eq!(kinds(&lns.hear(&mut stage)), [Some(M::Scccn)]);
        assert_eq!(stage.counts().established, 1);
        let moved = sim::addr("192.0.2.1:50000");
        for from in [stranger, moved] {
            for body in [Body::new(M::Hello), lns.stop_ccn(1)] {
                let packet = lns.packet_at(lns.ns, lns.nr, 0, &body.bytes);
                stage.send_from(from, &packet);
            }
            stage.send_from(from, &reply);
        }
        assert_eq!(stage.discarded(Discard::WrongSource), 7);
        assert_eq!(stage.counts().established, 1);
        assert!(stage.hear().is_empty());

        // At the LNS, the request's port is kept.
        let (mut stage, mut lac) = (Stage::lns(), peer());
        let request = lac.sccrq();
        let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
        lac.take_sccrp(&reply);
        let connected = lac.packet(0, &Body::new(M::Scccn));
        stage.send_from(moved, &connected);
        assert_eq!(stage.discarded(Discard::WrongSource), 1);
        assert_eq!(stage.counts().half_open, 1);
    }
}

/// A ZLB from another port acknowledges, but does not move the tunnel: the SCCRP may come from a third port.
#[test]
fn b23_an_empty_answer_does_not_move_the_tunnel() {
    let (mut stage, mut lns) = (Stage::lac(), Peer::v2());
    stage.open_tunnel(lns.version);
    lns.take_sccrq(&mut stage);
    stage.send_from(sim::addr("192.0.2.1:50000"), &lns.ack_packet());
    let tunnel = stage.tunnel();
    assert_eq!(stage.endpoint().tunnel(tunnel).unwrap().route.peer, PEER);
    let reply = lns.sccrp();
    only(&lns.say(&mut stage, &reply), M::Scccn);
}

/// One socket per tunnel: the owner moves a tunnel to another of its sockets.
#[test]
fn b23_a_tunnel_goes_on_over_the_socket_that_its_owner_gave_it() {
    let (mut stage, mut lac) = (Stage::lns(), Peer::v2());
    let request = lac.sccrq();
    let reply = only(&lac.say(&mut stage, &request), M::Sccrp);
    lac.take_sccrp(&reply);
    let tunnel = stage.tunnel();
    let us = stage.us;
    let socket = stage.world.connect(us, US, PEER);
    stage.with(|lns, _| lns.set_socket(tunnel, socket));
    only_ack(&lac.say(&mut stage, &Body::new(M::Scccn)));
    lac.call(&mut stage, 5);
    assert_eq!(
        stage.endpoint().tunnel(tunnel).unwrap().route.socket,
        socket
    );
    let stop = lac.stop_ccn(1);
    lac.say(&mut stage, &stop);
    stage.run_secs(31);
    let gone = l2tp::Event::TunnelGone { tunnel, socket };
    assert_eq!(stage.events().last(), Some(&gone));
}
