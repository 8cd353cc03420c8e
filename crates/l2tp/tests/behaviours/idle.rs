//! Tunnels without sessions: those that `idle_tunnel` closes, and those whose only session failed.

use base::Duration;
use l2tp::{Call, Config, TunnelEnd};
use wire::l2tp::MessageType as M;

use crate::common::{Peer, Stage, lac_config, lns_config, only, only_ack};

const VERSIONS: [fn() -> Peer; 2] = [Peer::v2, Peer::v3];

fn idle(config: Config) -> Config {
    Config {
        idle_tunnel: Duration::from_secs(30),
        hello_interval: Duration::ZERO,
        ..config
    }
}

#[test]
fn a_tunnel_without_sessions_is_closed_after_its_time() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::new(idle(lns_config())), peer());
        lac.connect(&mut stage);
        stage.run_for(Duration::from_millis(29_900));
        assert!(lac.hear(&mut stage).is_empty());
        stage.run_for(Duration::from_millis(200));
        let stop = only(&lac.hear(&mut stage), M::StopCcn);
        assert_eq!(stop.codes(), (1, None));
        assert_eq!(stage.tunnel_end(), TunnelEnd::NoSessions);
        lac.ack(&mut stage);
        stage.run_secs(32);
        assert_eq!(stage.counts(), Default::default());
    }
}

/// The time starts again when the last session has ended, whichever end opened the tunnel and whichever end closes the
/// session.
#[test]
fn a_session_keeps_a_tunnel_open_and_its_end_starts_the_time_again() {
    for peer in VERSIONS {
        let (mut stage, mut lac) = (Stage::new(idle(lns_config())), peer());
        lac.connect(&mut stage);
        stage.run_secs(20);
        let remote = lac.call(&mut stage, 5);
        stage.run_secs(100);
        let cdn = lac.cdn(5, remote, 3);
        only_ack(&lac.say_in(&mut stage, remote as u16, &cdn));
        stage.run_for(Duration::from_millis(29_900));
        assert_eq!(stage.counts().tunnels, 1);
        stage.run_for(Duration::from_millis(200));
        only(&lac.hear(&mut stage), M::StopCcn);

        let (mut stage, mut lns) = (Stage::new(idle(lac_config())), peer());
        let tunnel = lns.answer(&mut stage);
        let (session, _) = lns.take_call(&mut stage, tunnel, Call::default(), 5);
        stage.run_secs(100);
        stage.with(|lac, now| lac.close_session(session, now));
        only(&lns.hear(&mut stage), M::Cdn);
        lns.ack(&mut stage);
        stage.run_for(Duration::from_millis(29_900));
        assert_eq!(stage.counts().tunnels, 1);
        stage.run_for(Duration::from_millis(200));
        only(&lns.hear(&mut stage), M::StopCcn);
    }
}

/// A tunnel has no timer for it unless the time is set.
#[test]
fn without_the_time_a_tunnel_stays_and_has_no_timer() {
    for peer in VERSIONS {
        let config = Config {
            hello_interval: Duration::ZERO,
            ..lns_config()
        };
        let (mut stage, mut lac) = (Stage::new(config), peer());
        lac.connect(&mut stage);
        assert_eq!((stage.counts().tunnels, stage.counts().timers), (1, 0));
        stage.run_secs(100_000);
        assert_eq!(stage.counts().tunnels, 1);
    }
}

/// A tunnel that was opened for one session is of no use if that session fails, unless it has another one.
#[test]
fn a_tunnel_whose_session_failed_is_closed_unless_it_has_another_session() {
    for peer in VERSIONS {
        let (mut stage, mut lns) = (Stage::lac(), peer());
        let tunnel = lns.answer(&mut stage);
        let (session, _) = lns.take_call(&mut stage, tunnel, Call::default(), 5);
        assert!(!stage.with(|lac, now| lac.close_tunnel_of_failed(tunnel, now)));
        assert_eq!(stage.counts().tunnels, 1);
        stage.with(|lac, now| lac.close_session(session, now));
        only(&lns.hear(&mut stage), M::Cdn);
        lns.ack(&mut stage);
        assert!(stage.with(|lac, now| lac.close_tunnel_of_failed(tunnel, now)));
        let stop = only(&lns.hear(&mut stage), M::StopCcn);
        assert_eq!(stop.codes(), (1, None));
        assert_eq!(stage.tunnel_end(), TunnelEnd::SessionFailed);
        assert!(!stage.with(|lac, now| lac.close_tunnel_of_failed(tunnel, now)));
    }
}

/// A time that is set while tunnels are open applies to those that have no session, from then on.
#[test]
fn a_new_time_applies_to_open_tunnels() {
    let none = Config {
        idle_tunnel: Duration::ZERO,
        ..idle(lns_config())
    };
    let (mut stage, mut lac) = (Stage::new(none.clone()), Peer::v2());
    lac.connect(&mut stage);
    stage.run_secs(100);
    stage.with(|lns, now| lns.set_config(idle(lns_config()), now));
    stage.run_for(Duration::from_millis(29_900));
    assert!(lac.hear(&mut stage).is_empty());
    stage.run_for(Duration::from_millis(200));
    only(&lac.hear(&mut stage), M::StopCcn);

    let (mut stage, mut lac) = (Stage::new(idle(lns_config())), Peer::v2());
    lac.connect(&mut stage);
    stage.run_secs(20);
    stage.with(|lns, now| lns.set_config(none, now));
    stage.run_secs(1_000);
    assert!(lac.hear(&mut stage).is_empty());
    assert_eq!(stage.counts().tunnels, 1);
}

/// What the peer and the tables rely on is not replaced.
#[test]
fn a_new_configuration_keeps_what_was_advertised() {
    let (mut stage, mut lac) = (Stage::new(idle(lns_config())), Peer::v2());
    lac.connect(&mut stage);
    let other = Config {
        accept: false,
        receive_window: 1,
        cookie_len: 0,
        host_name: "new".into(),
        ..idle(lns_config())
    };
    stage.with(|lns, now| lns.set_config(other, now));
    let now = stage.endpoint().config().clone();
    assert!(now.accept);
    assert_eq!((now.receive_window, now.cookie_len), (32, 8));
    assert_eq!(now.host_name, "new");
    lac.call(&mut stage, 5);
    assert_eq!(stage.counts().sessions_established, 1);
}
