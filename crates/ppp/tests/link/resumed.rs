//! After a crash: a link goes on from an older snapshot, and its peer is asked whether it is still there.

use base::{Duration, Instant};
use ppp::{Authentication, Event, Link, LinkEnd, State};
use wire::ppp::protocol;

use crate::harness::{
    End, NOW, Pair, SECRET, Seeded, Wire, accept, client, frame, grant, network, open_lcp, opened,
    send,
};
use crate::twins::{CLOCK, restored, written};

/// Fires all timers until the link has none. Returns when each was due, in milliseconds since `start`, and the codes
/// sent then.
fn wait(end: &mut End, start: Instant) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    while end.link.timeout() < Instant::FAR_FUTURE {
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        let codes = end.packets().iter().map(|packet| packet.1).collect();
        all.push((due.since(start).as_millis(), codes));
    }
    all
}

/// Puts the link that was written into the place of the present one, as a new process does.
fn crash(end: &mut End, octets: &[u8], now: Instant) {
    end.link = restored(octets, end.credentials.clone());
    end.call(now, |link, ctx| link.resume(ctx));
}

/// The identifier of the one Echo-Request that was sent.
fn echo(end: &mut End) -> u8 {
    let packets = end.packets();
    let [(protocol::LCP, 9, identifier, _)] = packets[..] else {
        panic!("{packets:?}");
    };
    identifier
}

fn reply(identifier: u8) -> Vec<u8> {
    frame(protocol::LCP, 10, identifier, &[9; 4])
}

/// An end that is up and sends no echoes of its own.
fn without_echoes() -> (End, Instant) {
    let mut end = opened();
    end.config.echo_interval = Duration::ZERO;
    let now = end.link.timeout();
    end.call(now, |link, ctx| link.retime(ctx));
    assert_eq!(end.link.timeout(), Instant::FAR_FUTURE);
    end.sent.clear();
    (end, now)
}

#[test]
fn a_probe_is_sent_at_once_and_its_answer_is_proof_even_where_no_echoes_are_sent() {
    let (mut end, now) = without_echoes();
    end.call(now, Link::probe);
    let identifier = echo(&mut end);
    assert_eq!(end.link.view().echoes_unanswered, 1);
    end.call(now, |link, ctx| link.handle(&reply(identifier), ctx))
        .unwrap();
    assert_eq!(end.link.view().echoes_unanswered, 0);
    assert_eq!(end.link.timeout(), Instant::FAR_FUTURE);
}

#[test]
fn a_probe_without_an_answer_ends_the_link() {
    let (mut end, now) = without_echoes();
    end.call(now, Link::probe);
    echo(&mut end);
    let all = wait(&mut end, now);
    // Two more requests at the Restart timer's interval, then the Terminate-Requests.
    assert_eq!(all[..2], [(3_000, vec![9]), (6_000, vec![9])]);
    assert_eq!(all[2].0, 9_000);
    assert!(all[2].1.contains(&5), "{all:?}");
    assert_eq!(end.events.last(), Some(&Event::Ended(LinkEnd::EchoTimeout)));
}

#[test]
fn a_probe_is_repeated_at_the_interval_of_echoes_and_then_they_go_on() {
    let mut end = opened();
    end.config.echo_interval = Duration::from_secs(20);
    let now = end.link.timeout();
    end.sent.clear();
    end.call(now, Link::probe);
    echo(&mut end);
    let due = now + Duration::from_secs(20);
    assert_eq!(end.link.timeout(), due);
    end.call(due, |link, ctx| link.handle_timeout(ctx));
    let identifier = echo(&mut end);
    end.call(due, |link, ctx| link.handle(&reply(identifier), ctx))
        .unwrap();
    assert_eq!(end.link.timeout(), due + Duration::from_secs(20));
}

#[test]
fn a_probe_starts_the_count_anew_and_a_second_one_changes_nothing() {
    let mut end = opened();
    for unanswered in 1..=3 {
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
        assert_eq!(end.link.view().echoes_unanswered, unanswered);
    }
    let now = end.link.timeout();
    end.sent.clear();
    end.call(now, Link::probe);
    echo(&mut end);
    assert_eq!(end.link.view().echoes_unanswered, 1);
    end.call(now, Link::probe);
    assert!(end.sent.is_empty());
    assert_eq!(end.link.view().end, None);
}

#[test]
fn a_new_configuration_without_echoes_leaves_a_probe_alone() {
    let (mut end, now) = without_echoes();
    end.call(now, Link::probe);
    let due = end.link.timeout();
    end.call(now, |link, ctx| link.retime(ctx));
    assert_eq!(end.link.timeout(), due);
}

#[test]
fn only_a_link_that_is_up_is_probed() {
    let mut end = network(&[], 1);
    end.call(NOW, Link::probe);
    end.call(NOW, |link, ctx| link.up(ctx));
    end.packets();
    end.call(NOW, Link::probe);
    assert!(end.sent.is_empty());

    let mut end = opened();
    end.call(NOW, |link, ctx| link.close(ctx));
    end.sent.clear();
    end.call(NOW, Link::probe);
    assert!(end.sent.is_empty());
}

#[test]
fn lcp_that_starts_again_ends_a_probe() {
    let (mut end, now) = without_echoes();
    end.call(now, Link::probe);
    end.sent.clear();
    let options = [5, 6, 9, 9, 9, 9];
    let request = frame(protocol::LCP, 1, 200, &options);
    end.call(now, |link, ctx| link.handle(&request, ctx))
        .unwrap();
    let packets = end.packets();
    let ours = packets
        .iter()
        .find(|one| (one.0, one.1) == (protocol::LCP, 1));
    let (_, _, identifier, data) = ours.expect("a request");
    let ack = frame(protocol::LCP, 2, *identifier, data);
    end.call(now, |link, ctx| link.handle(&ack, ctx)).unwrap();
    assert_eq!(end.link.states()[0], State::Opened);
    end.packets();
    end.call(now, Link::probe);
    assert!(!end.sent.is_empty(), "the earlier one is over");
}

#[test]
fn a_link_goes_on_without_what_the_crash_lost() {
    let mut end = opened();
    for _ in 0..2 {
        let due = end.link.timeout();
        end.call(due, |link, ctx| link.handle_timeout(ctx));
    }
    let old = echo_of_last(&mut end);
    let before = end.link.view();
    let octets = written(&mut end.link, CLOCK);
    // Long after the last echo was due.
    let now = end.link.timeout() + Duration::from_secs(500);
    crash(&mut end, &octets, now);
    assert_eq!(end.link.echo_rtt_us(), None);
    let view = end.link.view();
    assert_eq!(view.echoes_unanswered, 0);
    assert_eq!(
        (view.lcp, view.local, view.peer),
        (before.lcp, before.local, before.peer)
    );
    assert_eq!((view.ipv4, view.ipv6), (before.ipv4, before.ipv6));
    assert!(end.sent.is_empty());
    // Many links do not send at the same moment.
    let due = end.link.timeout();
    assert!(
        due > now && due <= now + end.config.echo_interval,
        "{due:?}"
    );
    // A reply to a request from before the crash is none to the probe.
    end.call(now, Link::probe);
    let new = echo(&mut end);
    assert_ne!(new, old);
    assert!(
        end.call(now, |link, ctx| link.handle(&reply(old), ctx))
            .is_err()
    );
    end.call(now, |link, ctx| link.handle(&reply(new), ctx))
        .unwrap();
}

fn echo_of_last(end: &mut End) -> u8 {
    let (_, code, identifier, _) = end.packets().pop().expect("a packet");
    assert_eq!(code, 9);
    identifier
}

#[test]
fn without_an_interval_a_resumed_link_has_no_timer() {
    let (mut end, now) = without_echoes();
    let octets = written(&mut end.link, CLOCK);
    crash(&mut end, &octets, now);
    assert_eq!(end.link.timeout(), Instant::FAR_FUTURE);
}

#[test]
fn a_claim_whose_answer_was_lost_is_asked_for_again() {
    let mut end = network(&[Authentication::ChapMd5], 1);
    end.config.rechallenge_interval = Duration::from_secs(10);
    open_lcp(&mut end, &[]);
    let respond = |end: &mut End, now| {
        let packets = end.packets();
        let challenge = packets
            .iter()
            .rfind(|one| one.0 == protocol::CHAP && one.1 == 1);
        let identifier = challenge.expect("a challenge").2;
        let data = [&[16][..], &[7; 16], b"alice"].concat();
        let response = frame(protocol::CHAP, 2, identifier, &data);
        end.call(now, |link, ctx| link.handle(&response, ctx))
            .unwrap();
    };
    respond(&mut end, NOW);
    accept(&mut end);
    for (number, options) in [
        (protocol::IPCP, &[3, 6, 198, 51, 100, 7][..]),
        (protocol::IPV6CP, &[1, 10, 0, 0, 0, 0, 0, 0, 0, 7]),
    ] {
        send(&mut end, &frame(number, 1, 1, options)).unwrap();
    }
    for (number, code, identifier, options) in end.packets() {
        if code == 1 {
            send(&mut end, &frame(number, 2, identifier, &options)).unwrap();
        }
    }
    let now = NOW + Duration::from_secs(10);
    end.call(now, |link, ctx| link.handle_timeout(ctx));
    respond(&mut end, now);
    assert!(end.link.awaits_answer());

    let octets = written(&mut end.link, CLOCK);
    let now = now + Duration::from_secs(5);
    crash(&mut end, &octets, now);
    assert!(!end.link.awaits_answer() && end.link.is_open(false));
    end.events.clear();
    end.call(now, |link, ctx| link.handle_timeout(ctx));
    respond(&mut end, now);
    assert!(end.call(now, |link, ctx| link.accept(&grant(), b"", ctx)));
    // The network protocols were open all the time.
    let claims = [Event::Ipv4Down, Event::Ipv6Down];
    assert!(end.events.iter().all(|event| !claims.contains(event)));
    assert!(end.link.is_open(false) && end.link.is_open(true));
}

/// Links that crash at random moments, and go on from a snapshot that may be old.
#[test]
fn a_crash_of_one_end_costs_the_other_nothing() {
    for seed in 0..300 {
        let random = &mut Seeded(seed);
        let ways = [
            Authentication::Pap,
            Authentication::ChapMd5,
            Authentication::MsChapV2,
        ];
        let way = ways[random.next() as usize % ways.len()];
        let ends = [network(&[way], seed), client(SECRET, seed + 1)];
        let [network, client] = ends;
        let mut pair = Pair::new(network, client, Wire::default(), seed);
        pair.ends.iter_mut().for_each(|end| end.renewed = None);
        pair.ends[0].config.rechallenge_interval = Duration::from_secs(random.next() % 3 * 35);
        pair.up();
        pair.run_for(Duration::from_secs(20));
        let crashes = random.next() as usize % 2;
        let events = pair.ends[1 - crashes].events.len();
        let octets = written(&mut pair.ends[crashes].link, CLOCK);
        pair.run_for(Duration::from_millis(random.next() % 100_000));
        let now = pair.now;
        crash(&mut pair.ends[crashes], &octets, now);
        pair.run_for(Duration::from_millis(random.next() % 1_000));
        let now = pair.now;
        pair.ends[crashes].call(now, Link::probe);
        pair.run_for(Duration::from_secs(400));
        for end in &pair.ends {
            assert_eq!(end.link.states(), [State::Opened; 3], "seed {seed}");
            assert!(end.link.echo_rtt_us().is_some(), "seed {seed}");
        }
        let more = pair.ends[1 - crashes].events.split_off(events);
        // The harness leaves this in place of a claim that it has answered.
        let is_claim = |event: &Event| *event == Event::LcpUp;
        assert!(more.iter().all(is_claim), "seed {seed}: {more:?}");
    }
}
