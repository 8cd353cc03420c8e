//! The PADO delay, and its limit.

use base::{Duration, Machine};
use pppoe::{Config, DelayStep, Discard};
use wire::pppoe::Code;

use crate::common::{Bench, config, host, padi};

fn steps() -> Config {
    let step = |from_sessions, delay| DelayStep {
        from_sessions,
        delay,
    };
    let mut config = config();
    config.pado_delay = vec![
        step(1, Some(Duration::from_millis(100))),
        step(2, Some(Duration::from_millis(500))),
        step(3, None),
    ];
    config.limits.pados_delayed_max = 2;
    config
}

#[test]
fn an_offer_waits_longer_the_more_sessions_there_are() {
    let mut bench = Bench::new(steps());
    for (n, wait) in [(1, 0), (2, 100), (3, 500)] {
        assert_eq!(bench.send(host(n), &padi()), Ok(()));
        if wait > 0 {
            assert_eq!(bench.sent(), []);
            bench.wait(Duration::from_millis(wait - 1));
            assert_eq!(bench.sent(), []);
            let (due, _) = bench.endpoint.poll_timeout().unwrap();
            assert_eq!(due, bench.now + Duration::from_millis(1));
            bench.wait(Duration::from_millis(1));
        }
        let pado = bench.one();
        assert_eq!((pado.code, pado.route), (Code::PADO, host(n)));
        let cookie = pado.one(wire::pppoe::tag::AC_COOKIE).to_vec();
        let request = crate::common::padr(&cookie, &[]);
        bench.answer(host(n), &request);
    }
    bench.ignored(host(4), &padi(), Discard::Busy);
}

#[test]
fn only_so_many_offers_wait() {
    let mut bench = Bench::new(steps());
    bench.open(host(1), &[]);
    for n in 2..4 {
        assert_eq!(bench.send(host(n), &padi()), Ok(()));
    }
    bench.ignored(host(4), &padi(), Discard::DelayedFull);
    bench.wait(Duration::from_millis(100));
    assert_eq!(bench.sent().len(), 2);
    assert_eq!(bench.send(host(4), &padi()), Ok(()));
}

#[test]
fn offers_of_a_port_that_is_gone_are_dropped() {
    let mut bench = Bench::new(steps());
    bench.open(host(1), &[]);
    assert_eq!(bench.send(host(2), &padi()), Ok(()));
    bench.endpoint.remove_port(0, bench.now);
    bench.wait(Duration::ZERO);
    assert_eq!(bench.endpoint.poll_timeout(), None);
    bench.wait(Duration::from_secs(60));
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.endpoint.poll_timeout(), None);
}
