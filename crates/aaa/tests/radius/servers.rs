//! Servers that misbehave.

use aaa::radius::views::RoundTrips;
use aaa::radius::{Discard, Event, Failure, Ignored, Purpose, Refused, Rejection};
use base::{Duration, Machine};

use crate::lab::{How, Lab, address, config};

fn failure(event: &Event) -> Option<Failure> {
    match event {
        Event::Failed { why, .. } | Event::RecordFailed { why, .. } => Some(*why),
        _ => None,
    }
}

fn text(event: &Event) -> String {
    failure(event).map_or_else(|| format!("{event:?}"), |why| why.to_string())
}

/// The outcome of one request to one server.
fn outcome(how: How) -> (Lab, Event) {
    let mut lab = Lab::new(config(1), &[how], 1);
    lab.ask(5);
    lab.run_for(60);
    lab.assert_idle();
    let end = lab.ends().remove(&5).unwrap();
    (lab, end)
}

fn discards(lab: &Lab, why: Discard) -> u64 {
    let services = lab.client.services();
    let index = why.index().unwrap();
    services
        .map(|service| service.counters.discards[index])
        .sum()
}

#[test]
fn a_silent_server_is_asked_three_times_the_same_and_then_the_request_fails() {
    let (lab, end) = outcome(How::Silent);
    assert_eq!(failure(&end), Some(Failure::NoAnswer(Ignored::default())));
    let got = &lab.servers[0].got;
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|request| *request == got[0]));
    // 2 s, 4 s and 8 s, each within a tenth (RFC 5080, section 2.2.1).
    let (at, _) = lab
        .events
        .iter()
        .find(|(_, event)| failure(event).is_some())
        .unwrap();
    let took = at.since(base::Instant::from_nanos(1_000_000_000));
    let bound = |ms| Duration::from_millis(ms);
    assert!(took >= bound(12_600) && took <= bound(15_440), "{took:?}");
}

#[test]
fn a_secret_that_differs_is_named_as_the_likely_reason() {
    let (lab, end) = outcome(How::WrongSecret);
    assert_eq!(
        text(&end),
        "no server answered: 3 replies had a wrong Response Authenticator (is the secret right?)"
    );
    assert_eq!(discards(&lab, Discard::BadAuthenticator), 3);
}

#[test]
fn a_reply_without_message_authenticator_is_discarded_unless_it_may_be_without() {
    let (lab, end) = outcome(How::Unsigned);
    assert_eq!(
        text(&end),
        "no server answered: 3 replies had no Message-Authenticator (configure the server to send it)"
    );
    assert_eq!(discards(&lab, Discard::Unsigned), 3);

    let mut config = config(1);
    config.servers[0].require_message_authenticator = false;
    let mut lab = Lab::new(config, &[How::Unsigned], 1);
    lab.ask(5);
    lab.run_for(1);
    assert!(matches!(lab.ends()[&5], Event::Accepted { .. }));
}

#[test]
fn replies_with_a_wrong_identifier_source_or_length_change_nothing() {
    for (how, why) in [
        (How::WrongId, Some(Discard::UnknownId)),
        (How::WrongPort, None),
        (
            How::ImpossibleLength,
            Some(Discard::Malformed(wire::radius::ParseError::Truncated)),
        ),
    ] {
        let (lab, end) = outcome(how);
        // A reply that names no request of ours is not told from silence.
        let expected = match how {
            How::ImpossibleLength => "no server answered: 3 replies were malformed",
            _ => "no server answered",
        };
        assert_eq!(text(&end), expected, "{how:?}");
        match why {
            Some(why) => assert_eq!(discards(&lab, why), 3, "{how:?}"),
            None => assert_eq!(lab.client.totals().unknown_server, 3),
        }
    }
}

#[test]
fn each_kind_of_ignored_reply_is_counted_on_its_own() {
    let mut config = config(2);
    config.servers[0].transmissions = 1;
    let mut lab = Lab::new(config, &[How::WrongSecret, How::Unsigned], 1);
    lab.ask(5);
    lab.run_for(60);
    assert_eq!(
        text(&lab.ends()[&5]),
        "no server answered: 1 reply had a wrong Response Authenticator (is the secret right?), \
         3 replies had no Message-Authenticator (configure the server to send it)"
    );
}

#[test]
fn a_reply_from_another_socket_answers_nothing() {
    let mut lab = Lab::new(config(1), &[How::Silent], 1);
    lab.ask(5);
    lab.run_for(1);
    lab.servers[0].how = How::Accept;
    lab.deliver(
        1,
        address(0, 1812),
        &[2, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    assert_eq!(discards(&lab, Discard::UnknownId), 1);
    assert!(lab.ends().is_empty());
}

#[test]
fn a_late_reply_to_an_older_request_with_the_identifier_answers_nothing() {
    let mut config = config(1);
    config.servers[0].sockets_max = 1;
    let mut lab = Lab::new(config, &[How::Accept], 1);
    for token in 0..256 {
        lab.ask(token);
        lab.run_for(1);
    }
    lab.servers[0].how = How::Stale;
    lab.ask(256);
    lab.run_for(60);
    let told = text(&lab.ends()[&256]);
    assert!(
        told.contains("3 replies had a wrong Response Authenticator"),
        "{told}"
    );
    lab.assert_idle();
}

#[test]
fn a_reply_that_comes_twice_is_taken_once() {
    let (lab, end) = outcome(How::Twice);
    assert!(matches!(end, Event::Accepted { .. }));
    assert_eq!(discards(&lab, Discard::UnknownId), 1);
}

#[test]
fn a_reply_later_than_the_first_repetition_is_taken() {
    let (lab, end) = outcome(How::Slow);
    assert!(matches!(end, Event::Accepted { .. }));
    assert_eq!(lab.servers[0].got.len(), 2);
    let view = lab.client.services().next().unwrap();
    assert_eq!(
        view.rtt_last, None,
        "which of the two it answers is not known"
    );
    assert_eq!(lab.client.totals().round_trips, RoundTrips::default());
}

#[test]
fn a_rejection_and_a_challenge_are_rejections_with_their_reasons() {
    let why = |how| match outcome(how).1 {
        Event::Rejected { why, .. } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(How::Reject), Rejection::Server);
    assert_eq!(why(How::Challenge), Rejection::Challenge);
}

#[test]
fn the_next_server_is_asked_when_the_first_is_silent_and_at_once_when_it_is_dead() {
    let mut lab = Lab::new(config(2), &[How::Silent, How::Accept], 1);
    let begin = lab.now;
    for token in 0..10 {
        lab.ask(token);
    }
    // All first timeouts occur between 1.8 and 2.2 s; the third one makes the server dead.
    lab.run_for(3);
    let dead = Event::ServerDead {
        server: 0,
        purpose: Purpose::Authentication,
    };
    let (at, _) = lab.events.iter().find(|(_, event)| *event == dead).unwrap();
    assert!(at.since(begin) <= Duration::from_millis(2_210), "{at:?}");
    // The two that timed out before it was dead are retransmitted after 4 s.
    lab.run_for(6);
    let ends = lab.ends();
    assert_eq!(ends.len(), 10);
    assert!(
        ends.values()
            .all(|end| matches!(end, Event::Accepted { .. }))
    );
    let got = lab.servers[0].got.len();
    lab.ask(10);
    lab.run_for(1);
    assert!(matches!(lab.ends()[&10], Event::Accepted { .. }));
    assert_eq!(lab.servers[0].got.len(), got, "a dead server is left alone");
    lab.assert_idle();
}

#[test]
fn a_dead_server_is_tried_by_one_request_each_dead_time_and_used_again_when_it_answers() {
    let mut lab = Lab::new(config(2), &[How::Silent, How::Accept], 1);
    for token in 0..10 {
        lab.ask(token);
    }
    lab.run_for(40);
    let got = lab.servers[0].got.len();
    for token in 10..20 {
        lab.ask(token);
    }
    lab.run_for(10);
    assert_eq!(lab.servers[0].got.len(), got + 1);
    assert_eq!(lab.ends().len(), 20);

    lab.servers[0].how = How::Accept;
    lab.run_for(30);
    lab.ask(20);
    lab.run_for(1);
    let up = Event::ServerUp {
        server: 0,
        purpose: Purpose::Authentication,
    };
    assert!(lab.events.iter().any(|(_, event)| *event == up));
    let got = lab.servers[0].got.len();
    lab.ask(21);
    lab.run_for(1);
    assert_eq!(lab.servers[0].got.len(), got + 1);
    lab.assert_idle();
}

#[test]
fn with_all_servers_dead_each_is_still_tried_before_a_request_fails() {
    let mut lab = Lab::new(config(3), &[How::Silent; 3], 1);
    for token in 0..10 {
        lab.ask(token);
    }
    lab.run_for(120);
    assert_eq!(lab.ends().len(), 10);
    let before: Vec<usize> = lab.servers.iter().map(|server| server.got.len()).collect();
    lab.ask(10);
    lab.run_for(120);
    assert_eq!(
        failure(&lab.ends()[&10]),
        Some(Failure::NoAnswer(Ignored::default()))
    );
    for (server, before) in lab.servers.iter().zip(before) {
        assert!(server.got.len() > before);
    }
    lab.assert_idle();
}

#[test]
fn a_server_that_answers_some_requests_is_not_dead() {
    let mut lab = Lab::new(config(1), &[How::Lossy], 3);
    for token in 0..500 {
        lab.ask(token);
        let at = lab.now + Duration::from_millis(50);
        lab.run_until(at);
    }
    let died = |event: &Event| matches!(event, Event::ServerDead { .. });
    assert!(!lab.events.iter().any(|(_, event)| died(event)));
    lab.run_for(60);
    assert_eq!(lab.ends().len(), 500);
}

#[test]
fn more_requests_than_identifiers_wait_and_more_than_may_wait_are_refused() {
    let mut config = config(1);
    config.servers[0].sockets_max = 2;
    config.waiting_max = 100;
    let mut lab = Lab::new(config, &[How::Accept], 1);
    for token in 0..612 {
        lab.ask(token);
    }
    let totals = lab.client.totals();
    assert_eq!((totals.outstanding, totals.waiting), (512, 100));
    let record = [40, 6, 0, 0, 0, 1];
    let refused = lab.client.account(lab.now, 0, &record, 1_000);
    assert_eq!(refused, Err(Refused::Full));
    assert_eq!(lab.client.totals().refused, 1);
    lab.run_for(1);
    assert_eq!(lab.sockets, 2);
    let ends = lab.ends();
    assert_eq!(ends.len(), 612);
    assert!(
        ends.values()
            .all(|end| matches!(end, Event::Accepted { .. }))
    );
    lab.assert_idle();
}

#[test]
fn who_waits_for_too_long_fails_as_overloaded() {
    let mut config = config(1);
    config.servers[0].sockets_max = 1;
    config.waiting_time = Duration::from_secs(5);
    let mut lab = Lab::new(config, &[How::Silent], 1);
    for token in 0..300 {
        lab.ask(token);
    }
    lab.run_for(60);
    let ends = lab.ends();
    let overloaded = |end: &&Event| failure(end) == Some(Failure::Overloaded);
    assert_eq!(ends.values().filter(overloaded).count(), 44);
    assert_eq!(ends.len(), 300);
    lab.assert_idle();
}

#[test]
fn whatever_servers_do_every_request_ends_once_and_nothing_is_held() {
    sim::seeds(300, |seed| {
        let mut rng = sim::Rng::new(seed);
        let count = 1 + rng.below(4) as usize;
        let mut how = || How::ALL[rng.below(How::ALL.len() as u64) as usize];
        let hows: Vec<How> = (0..count).map(|_| how()).collect();
        let mut config = config(count);
        config.servers[0].sockets_max = 1;
        config.acct_delay_time = seed % 2 == 0;
        config.outstanding_max = 100;
        let mut lab = Lab::new(config, &hows, seed);
        let requests = 150 + rng.below(150);
        let record = [40, 6, 0, 0, 0, 1, 44, 3, b's', 55, 6, 0, 0, 0, 9];
        for token in 0..requests {
            if rng.chance(0.3) {
                lab.client.account(lab.now, 9, &record, token).unwrap();
            } else {
                lab.ask(token);
            }
            if rng.chance(0.1) {
                let pause = rng.up_to(Duration::from_secs(2));
                lab.run_until(lab.now + pause);
            }
            if rng.chance(0.01) {
                let server = rng.below(count as u64) as usize;
                lab.servers[server].how = How::ALL[rng.below(13) as usize];
            }
        }
        lab.run_for(300);
        assert_eq!(lab.ends().len() as u64, requests);
        lab.assert_idle();
        lab.client.handle_timeout(lab.now);
        assert_eq!(lab.client.poll_event(), None);
    });
}

#[test]
fn a_record_goes_to_the_servers_that_are_named_and_to_any_if_none_of_them_accounts() {
    let record = [40, 6, 0, 0, 0, 1, 44, 3, b's', 55, 6, 0, 0, 0, 9];
    let mut config = config(3);
    config.servers[2].accounting = None;
    let mut lab = Lab::new(config, &[How::Accept, How::Accept, How::Accept], 1);
    for (token, servers, to) in [(1, 1 << 1, 1), (2, 1 << 0, 0), (3, 1 << 2, 0), (4, 6, 1)] {
        let before: Vec<usize> = lab.servers.iter().map(|one| one.got.len()).collect();
        lab.client
            .account_at(lab.now, 9, &record, token, servers)
            .unwrap();
        lab.run_for(1);
        let got = lab.servers.iter().map(|one| one.got.len());
        let grew: Vec<bool> = got.zip(before).map(|(now, before)| now > before).collect();
        let expected: Vec<bool> = (0..3).map(|server| server == to).collect();
        assert_eq!(grew, expected, "{servers:b}");
    }
    lab.assert_idle();
}
