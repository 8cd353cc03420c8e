//! Tests reloads that replace RADIUS servers while requests are outstanding.

use aaa::radius::{AccessRequest, Client, Config, Event, Failure, ServerConfig};
use base::{Duration, Instant, Machine};
use wire::radius::Packet;
use wire::radius::attribute::USER_PASSWORD;
use wire::radius::secret::{Signature, reveal_password, signature};

use crate::lab::{How, Lab, address, config, nas};

/// Only the server with that number.
fn only(server: usize) -> Config {
    let mut config = config(server + 1);
    config.servers.drain(..server);
    config
}

#[test]
fn a_request_at_a_server_that_goes_is_sent_to_one_that_comes() {
    let mut lab = Lab::new(config(1), &[How::Silent], 1);
    lab.ask(5);
    lab.run_for(1);
    lab.client.reload(only(1), lab.now).unwrap();
    // The lab checks that the password can be read with the new server's secret.
    lab.servers[0].how = How::Accept;
    lab.run_for(1);
    assert!(matches!(lab.ends()[&5], Event::Accepted { .. }));
    let services: Vec<_> = lab
        .client
        .services()
        .map(|service| service.address)
        .collect();
    assert_eq!(services, [address(1, 1812), address(1, 1813)]);
    lab.assert_idle();
}

#[test]
fn a_request_stays_at_a_server_that_stays_at_another_place() {
    let mut lab = Lab::new(config(1), &[How::Slow, How::Silent], 1);
    lab.ask(5);
    lab.run_for(1);
    // The server is the second one now, with another time-out.
    let mut reordered = config(2);
    reordered.servers.swap(0, 1);
    reordered.servers[1].timeout = Duration::from_secs(7);
    lab.client.reload(reordered, lab.now).unwrap();
    lab.run_for(4);
    assert!(matches!(lab.ends()[&5], Event::Accepted { .. }));
    let totals = lab
        .client
        .services()
        .map(|service| service.counters.accepts);
    assert_eq!(totals.collect::<Vec<_>>(), [0, 0, 1, 0]);
    lab.assert_idle();
}

#[test]
fn a_request_whose_server_gets_another_secret_is_sent_again_with_it() {
    let with_secret = |secret: &[u8]| {
        let mut config = Config::new(nas());
        config.servers.push(ServerConfig {
            authentication: Some(address(0, 1812)),
            ..ServerConfig::new("one", secret)
        });
        config
    };
    let now = Instant::from_nanos(1);
    let mut client = Client::new(with_secret(b"old"), [7; 32]).unwrap();
    let request = AccessRequest::pap(b"alice", b"sesame");
    client.authenticate(now, &request, 5).unwrap();
    let mut out = Vec::new();
    client.poll_transmit(now, &mut out).unwrap();
    client.reload(with_secret(b"new"), now).unwrap();
    out.clear();
    client.poll_transmit(now, &mut out).unwrap();
    let packet = Packet::parse(&out).unwrap();
    let authenticator = packet.authenticator();
    assert_eq!(signature(&packet, &authenticator, b"new"), Signature::Right);
    let hidden = packet.find(USER_PASSWORD).unwrap();
    let password = reveal_password(hidden.value, b"new", &authenticator);
    assert_eq!(password.as_deref(), Some(&b"sesame"[..]));
    assert_eq!(client.totals().outstanding, 1);
}

#[test]
fn requests_without_a_server_for_them_fail_at_once_by_name() {
    let mut lab = Lab::new(config(1), &[How::Silent], 1);
    lab.ask(5);
    lab.run_for(1);
    let mut accounting = config(1);
    accounting.servers[0].authentication = None;
    lab.client.reload(accounting, lab.now).unwrap();
    lab.run_for(0);
    let end = &lab.ends()[&5];
    let Event::Failed { why, .. } = end else {
        panic!("{end:?}");
    };
    assert_eq!(*why, Failure::NoServer);
    lab.assert_idle();
}

#[test]
fn a_wrong_configuration_changes_nothing() {
    let mut lab = Lab::new(config(1), &[How::Accept], 1);
    let mut wrong = config(1);
    wrong.servers[0].transmissions = 0;
    assert!(lab.client.reload(wrong, lab.now).is_err());
    lab.ask(5);
    lab.run_for(1);
    assert!(matches!(lab.ends()[&5], Event::Accepted { .. }));
}

#[test]
fn every_request_ends_once_however_often_the_servers_are_replaced() {
    for seed in 0..50 {
        let mut lab = Lab::new(config(3), &[How::Lossy, How::Silent, How::Slow], seed);
        let mut token = 0;
        for round in 0..30 {
            for _ in 0..20 {
                lab.ask(token);
                token += 1;
            }
            lab.run_for(1);
            let mut next = config(3);
            next.servers.rotate_left(round % 3);
            next.servers[0].sockets_max = 1;
            if lab.rng.chance(0.5) {
                next.servers[1].authentication = Some(address(1, 1900 + round as u16));
            }
            lab.client.reload(next, lab.now).unwrap();
        }
        lab.run_for(300);
        assert_eq!(lab.ends().len() as u64, token, "seed {seed}");
        lab.assert_idle();
    }
}
