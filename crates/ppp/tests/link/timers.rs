//! Timers: every timer fires as configured, none fires early, and none fires without effect.

use base::{Duration, Instant};
use ppp::{Authentication, Config, Event, LinkEnd, Side};
use wire::ppp::protocol;

use crate::harness::{End, NOW, accept, frame, network, open_lcp, opened, send};

/// Fires all timers until the link ends. Returns when each was due, and what was sent then.
fn wait(end: &mut End) -> Vec<(Duration, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let due = end.link.timeout();
        if due == Instant::FAR_FUTURE {
            return all;
        }
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        assert!(end.link.timeout() > due, "what was due is done");
        let codes = end.packets().iter().map(|packet| packet.1).collect();
        all.push((due.since(NOW), codes));
    }
}

fn slow() -> Config {
    Config {
        restart: Duration::from_millis(700),
        configure_max: 3,
        terminate_max: 4,
        authentication_max: Duration::from_secs(11),
        echo_interval: Duration::from_secs(20),
        echo_max: 2,
        ..Config::default()
    }
}

fn ms(all: &[(Duration, Vec<u8>)]) -> Vec<u64> {
    let ms = |(due, _): &(Duration, Vec<u8>)| due.as_nanos() / 1_000_000;
    all.iter().map(ms).collect()
}

#[test]
fn requests_are_repeated_as_configured() {
    let mut end = End::new(Side::Network, slow(), 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    assert_eq!(ms(&wait(&mut end)), [700, 1_400, 2_100]);
    assert_eq!(end.events, [Event::Ended(LinkEnd::NoAnswer)]);
}

#[test]
fn terminate_requests_are_repeated_as_configured() {
    let mut end = End::new(Side::Network, slow(), 1);
    open_lcp(&mut end, &[]);
    end.call(NOW, |link, ctx| link.close(ctx));
    end.sent.clear();
    let all = wait(&mut end);
    assert_eq!(ms(&all), [700, 1_400, 2_100, 2_800]);
    assert_eq!(all.iter().filter(|(_, codes)| codes == &[5]).count(), 3);
    assert_eq!(end.events.last(), Some(&Event::Ended(LinkEnd::Closed)));
}

#[test]
fn authentication_ends_when_configured_whether_the_peer_or_the_owner_is_slow() {
    let config = Config {
        authenticate: vec![Authentication::Pap],
        ..slow()
    };
    for claimed in [false, true] {
        let mut end = End::new(Side::Network, config.clone(), 1);
        open_lcp(&mut end, &[]);
        if claimed {
            send(&mut end, &frame(protocol::PAP, 1, 1, &[1, b'a', 0])).unwrap();
        }
        end.packets();
        assert_eq!(ms(&wait(&mut end))[0], 11_000);
        let ended = Event::Ended(LinkEnd::AuthenticationTimeout);
        assert_eq!(end.events.last(), Some(&ended));
    }
}

#[test]
fn authentication_may_take_as_long_as_it_likes() {
    let config = Config {
        authentication_max: Duration::ZERO,
        echo_interval: Duration::ZERO,
        ..slow()
    };
    let mut end = End::new(Side::Network, config, 1);
    open_lcp(&mut end, &[]);
    assert_eq!(end.link.timeout(), Instant::FAR_FUTURE);
}

#[test]
fn a_silent_peer_is_asked_and_given_up_as_configured() {
    let mut end = End::new(Side::Network, slow(), 1);
    open_lcp(&mut end, &[]);
    accept(&mut end);
    end.packets();
    // Network protocols that the peer does not answer end the link before the first echo.
    for (number, options) in [
        (protocol::IPCP, &[3, 6, 198, 51, 100, 7][..]),
        (protocol::IPV6CP, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 7]),
    ] {
        send(&mut end, &frame(number, 1, 1, options)).unwrap();
    }
    let all = wait(&mut end);
    let echoes = all.iter().filter(|(_, codes)| codes.contains(&9)).count();
    assert_eq!(echoes, 0, "both networks gave up before the first echo");

    let mut end = opened();
    end.config.echo_interval = Duration::from_secs(20);
    end.config.echo_max = 2;
    let all = wait(&mut end);
    let echoes = all.iter().filter(|(_, codes)| codes == &[9]).count();
    assert_eq!(echoes, 2);
    assert_eq!(end.events.last(), Some(&Event::Ended(LinkEnd::EchoTimeout)));
}

#[test]
fn an_idle_link_has_no_timer_but_the_echo_and_without_that_none() {
    let end = opened();
    let left = end.link.timeout().since(NOW);
    assert!(left > Duration::from_secs(59) && left < Duration::from_secs(61));

    let mut end = network(&[], 1);
    end.config.echo_interval = Duration::ZERO;
    open_lcp(&mut end, &[]);
    accept(&mut end);
    for (number, code, identifier, options) in end.packets() {
        if code == 1 {
            send(&mut end, &frame(number, 2, identifier, &options)).unwrap();
        }
    }
    send(
        &mut end,
        &frame(protocol::IPCP, 1, 1, &[3, 6, 198, 51, 100, 7]),
    )
    .unwrap();
    let identifier = [1, 10, 0, 0, 0, 0, 0, 0, 0, 7];
    send(&mut end, &frame(protocol::IPV6CP, 1, 1, &identifier)).unwrap();
    assert!(end.link.is_open(false) && end.link.is_open(true));
    assert_eq!(end.link.timeout(), Instant::FAR_FUTURE);
}

#[test]
fn early_and_repeated_calls_do_nothing() {
    let mut end = network(&[Authentication::ChapMd5], 1);
    end.call(NOW, |link, ctx| link.up(ctx));
    end.packets();
    let due = end.link.timeout();
    let early = Instant::from_nanos(due.as_nanos() - 1);
    for _ in 0..3 {
        end.call(early, |link, ctx| link.handle_timeout(ctx));
    }
    assert!(end.sent.is_empty());
    assert_eq!(end.link.timeout(), due);
    for _ in 0..3 {
        end.call(due, |link, ctx| link.handle_timeout(ctx));
    }
    assert_eq!(end.packets().len(), 1);
}

#[test]
fn an_answered_echo_begins_the_count_anew() {
    let mut end = opened();
    for _ in 0..20 {
        end.sent.clear();
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        assert_eq!(end.link.view().echoes_unanswered, 1);
        let (_, code, identifier, _) = end.packets().remove(0);
        assert_eq!(code, 9);
        let wrong = frame(protocol::LCP, 10, identifier.wrapping_add(1), &[0; 4]);
        assert!(end.call(due, |link, ctx| link.handle(&wrong, ctx)).is_err());
        let reply = frame(protocol::LCP, 10, identifier, &[9, 9, 9, 9]);
        end.call(due, |link, ctx| link.handle(&reply, ctx)).unwrap();
        assert_eq!(end.link.view().echoes_unanswered, 0);
    }
}
