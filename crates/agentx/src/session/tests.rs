use std::collections::BTreeMap;

use super::*;
use crate::pdu::{Range, Value, Variable};

fn oid(ids: &[u32]) -> Oid {
    Oid::new(ids).unwrap()
}

fn at(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

fn config() -> Config {
    Config {
        id: Oid::default(),
        description: "test".into(),
        context: None,
        subtrees: vec![
            oid(&[1, 3, 6, 1, 2, 1, 15]),
            oid(&[1, 3, 6, 1, 2, 1, 10, 95]),
        ],
    }
}

/// Decodes everything that the session wants to send.
fn sent(session: &mut Session, now: Instant) -> Vec<Pdu> {
    let octets = session.output().to_vec();
    session.sent(octets.len(), now);
    let mut rest = &octets[..];
    let mut pdus = Vec::new();
    while let Some(head) = rest.first_chunk() {
        let header = Header::parse(head).unwrap();
        let end = HEADER_LEN + header.payload;
        pdus.push(Pdu::parse(&header, &rest[HEADER_LEN..end]).unwrap());
        rest = &rest[end..];
    }
    pdus
}

fn pass(session: &mut Session, packet: u32, body: Body, now: Instant) {
    let mut octets = Vec::new();
    let pdu = Pdu {
        session: 77,
        transaction: 5,
        packet,
        context: None,
        body,
    };
    pdu.emit(&mut octets);
    session.receive(&octets, now);
}

fn accepted(error: u16) -> Body {
    Body::Response {
        uptime: 1,
        error,
        index: 0,
        variables: Vec::new(),
    }
}

/// Opens a session.
fn open(now: Instant) -> Session {
    let mut session = Session::new(config(), now);
    session.handle_timeout(now);
    assert_eq!(session.poll_event(), Some(Event::Connect));
    session.connected(now);
    for expected in [1, 2, 3] {
        let pdus = sent(&mut session, now);
        assert_eq!((pdus.len(), pdus[0].packet), (1, expected));
        pass(&mut session, expected, accepted(0), now);
    }
    assert_eq!(session.poll_event(), Some(Event::Up));
    assert_eq!(session.state(), State::Open);
    session
}

fn range(start: &[u32]) -> Range {
    Range {
        start: oid(start),
        includes: false,
        end: Oid::default(),
    }
}

/// Answers all questions from a table.
fn serve(session: &mut Session, table: &BTreeMap<Oid, i32>, now: Instant) {
    while let Some(question) = session.question() {
        let answer = match question {
            Question::Get(name) => match table.get(name) {
                Some(value) => Answer::Value(Value::Integer(*value)),
                None => Answer::NoInstance,
            },
            Question::Next { after, includes } => {
                let mut rest = table.range(after.clone()..);
                match rest.find(|(name, _)| includes || *name != after) {
                    Some((name, value)) => Answer::Variable(Variable {
                        name: name.clone(),
                        value: Value::Integer(*value),
                    }),
                    None => Answer::End,
                }
            }
        };
        session.answer(answer, now);
    }
}

fn table() -> BTreeMap<Oid, i32> {
    (1..=5).map(|n| (oid(&[1, 3, n]), n as i32)).collect()
}

fn variables(pdu: &Pdu) -> Vec<(String, Value)> {
    let Body::Response {
        error: 0,
        variables,
        ..
    } = &pdu.body
    else {
        panic!("{pdu:?}");
    };
    let one = |one: &Variable| (one.name.to_string(), one.value.clone());
    variables.iter().map(one).collect()
}

#[test]
fn a_session_opens_and_registers_each_subtree() {
    let now = at(10);
    let mut session = Session::new(config(), now);
    session.handle_timeout(now);
    session.connected(now);
    let first = sent(&mut session, now);
    assert!(matches!(first[0].body, Body::Open { timeout_s: 5, .. }));
    pass(&mut session, 1, accepted(0), now);
    for (packet, expected) in [
        (2, &[1, 3, 6, 1, 2, 1, 15][..]),
        (3, &[1, 3, 6, 1, 2, 1, 10, 95]),
    ] {
        let pdus = sent(&mut session, now);
        let Body::Register(registration) = &pdus[0].body else {
            panic!("{pdus:?}");
        };
        // The master's number of the session is that of its response to Open (section 7.1.1).
        assert_eq!(pdus[0].session, 77);
        assert_eq!(registration.subtree.ids(), expected);
        assert_eq!(registration.priority, 127);
        pass(
            &mut session,
            packet,
            accepted(if packet == 2 { 263 } else { 0 }),
            now,
        );
    }
    session.poll_event();
    let refused = Event::SubtreeRefused(oid(&[1, 3, 6, 1, 2, 1, 15]), 263);
    assert_eq!(session.poll_event(), Some(refused));
    assert_eq!(session.poll_event(), Some(Event::Up));
}

#[test]
fn gets_and_nexts_are_answered_variable_by_variable() {
    let now = at(1);
    let mut session = open(now);
    pass(
        &mut session,
        9,
        Body::Get(vec![range(&[1, 3, 2]), range(&[1, 4])]),
        now,
    );
    serve(&mut session, &table(), now);
    let pdus = sent(&mut session, now);
    assert_eq!((pdus[0].packet, pdus[0].transaction), (9, 5));
    let expected = [
        (".1.3.2".to_owned(), Value::Integer(2)),
        (".1.4".to_owned(), Value::NoSuchInstance),
    ];
    assert_eq!(variables(&pdus[0]), expected);
    let ends = Range {
        end: oid(&[1, 3, 3]),
        ..range(&[1, 3, 2])
    };
    let included = Range {
        includes: true,
        ..range(&[1, 3, 2])
    };
    let asked = vec![range(&[1, 3, 4]), range(&[1, 3, 5]), ends, included];
    pass(&mut session, 10, Body::GetNext(asked), now);
    serve(&mut session, &table(), now);
    let pdus = sent(&mut session, now);
    // Section 7.2.3.2: what is not before the end of the range is endOfMibView, named by the start.
    let expected = [
        (".1.3.5".to_owned(), Value::Integer(5)),
        (".1.3.5".to_owned(), Value::EndOfMibView),
        (".1.3.2".to_owned(), Value::EndOfMibView),
        (".1.3.2".to_owned(), Value::Integer(2)),
    ];
    assert_eq!(variables(&pdus[0]), expected);
}

#[test]
fn a_bulk_repeats_until_all_end() {
    let now = at(1);
    let mut session = open(now);
    let ask = |once, times| Body::GetBulk {
        non_repeaters: once,
        max_repetitions: times,
        ranges: vec![range(&[1, 3]), range(&[1, 3, 2]), range(&[1, 3, 4])],
    };
    let mut names = |body: Body| {
        pass(&mut session, 4, body, now);
        serve(&mut session, &table(), now);
        let pdus = sent(&mut session, now);
        assert_eq!(pdus.len(), 1);
        let names = variables(&pdus[0]);
        let all: Vec<String> = names.iter().map(|(name, _)| name[5..].to_owned()).collect();
        all.join(" ")
    };
    assert_eq!(names(ask(1, 2)), "1 3 5 4 5");
    // The last round has only ends.
    assert_eq!(names(ask(1, 100)), "1 3 5 4 5 5 5 5 5");
    assert_eq!(names(ask(1, 0)), "1");
    assert_eq!(names(ask(3, 7)), "1 3 5");
    assert_eq!(names(ask(9, 7)), "1 3 5");
    assert_eq!(names(ask(0, 0)), "");
}

#[test]
fn responses_are_bounded() {
    let now = at(1);
    let mut session = open(now);
    let long = |session: &mut Session| {
        while session.question().is_some() {
            let value = Value::Octets(vec![7; 10_000]);
            let name = oid(&[1, 3, 9]);
            session.answer(Answer::Variable(Variable { name, value }), now);
        }
    };
    pass(&mut session, 4, Body::GetNext(vec![range(&[1]); 10]), now);
    long(&mut session);
    let Body::Response {
        error: code,
        variables,
        ..
    } = &sent(&mut session, now)[0].body
    else {
        panic!();
    };
    assert_eq!((*code, variables.len()), (error::TOO_BIG, 0));
    let ranges = vec![range(&[1]); 10];
    let bulk = Body::GetBulk {
        non_repeaters: 0,
        max_repetitions: 9,
        ranges,
    };
    pass(&mut session, 4, bulk, now);
    long(&mut session);
    let pdus = sent(&mut session, now);
    assert_eq!(self::variables(&pdus[0]).len(), 5);
}

#[test]
fn sets_are_refused() {
    let now = at(1);
    let mut session = open(now);
    let set = vec![Variable {
        name: oid(&[1, 3, 1]),
        value: Value::Integer(7),
    }];
    for (body, expected) in [
        (Body::TestSet(set), Some(error::NOT_WRITABLE)),
        (Body::CommitSet, Some(error::COMMIT_FAILED)),
        (Body::UndoSet, Some(error::UNDO_FAILED)),
        (Body::CleanupSet, None),
    ] {
        pass(&mut session, 4, body, now);
        let code = sent(&mut session, now).first().map(|pdu| match pdu.body {
            Body::Response { error, .. } => error,
            _ => panic!("{pdu:?}"),
        });
        assert_eq!(code, expected);
    }
    assert_eq!(session.counts().sets_refused, 1);
}

#[test]
fn a_silent_master_is_pinged_and_then_left() {
    let mut session = open(at(0));
    pass(&mut session, 8, Body::CleanupSet, at(50));
    session.handle_timeout(at(60));
    assert!(sent(&mut session, at(60)).is_empty());
    assert_eq!(session.poll_timeout(), at(110));
    session.handle_timeout(at(110));
    let ping = sent(&mut session, at(110)).remove(0);
    assert_eq!(ping.body, Body::Ping);
    pass(&mut session, ping.packet, accepted(0), at(111));
    assert_eq!(
        (session.state(), session.poll_timeout()),
        (State::Open, at(171))
    );
    session.handle_timeout(at(171));
    session.handle_timeout(at(181));
    assert_eq!(
        session.poll_event(),
        Some(Event::Disconnect(Reason::Silent))
    );
    // It was open for long, so the first delay follows.
    assert_eq!(session.poll_timeout(), at(182));
}

#[test]
fn attempts_wait_longer_and_longer() {
    let mut session = Session::new(config(), at(0));
    let (mut now, mut delays) = (at(0), Vec::new());
    for _ in 0..8 {
        session.handle_timeout(now);
        assert_eq!(session.poll_event(), Some(Event::Connect));
        session.lost(now);
        assert_eq!(session.poll_event(), Some(Event::Disconnect(Reason::Lost)));
        delays.push(session.poll_timeout().since(now).as_secs_f64() as u64);
        now = session.poll_timeout();
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn what_is_no_agentx_ends_the_connection() {
    let mut session = open(at(0));
    session.receive(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", at(1));
    let why = Reason::Malformed(ParseError::Version(b'G'));
    assert_eq!(session.poll_event(), Some(Event::Disconnect(why)));
    assert_eq!(session.state(), State::Waiting);
    // A master that does so each time is asked less and less often.
    assert_eq!(session.poll_timeout(), at(2));
}

#[test]
fn a_pdu_that_cannot_be_decoded_gets_an_error_and_the_next_one_is_read() {
    let now = at(0);
    let mut session = open(now);
    let mut octets = vec![1, 5, 0x10, 0];
    octets.extend([0, 0, 0, 77, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 4, 9, 9, 9, 9]);
    session.receive(&octets, now);
    pass(&mut session, 10, Body::CommitSet, now);
    let errors: Vec<u16> = sent(&mut session, now)
        .iter()
        .map(|pdu| match pdu.body {
            Body::Response { error, .. } => error,
            _ => panic!("{pdu:?}"),
        })
        .collect();
    assert_eq!(errors, [error::PARSE, error::COMMIT_FAILED]);
}

#[test]
fn a_master_that_does_not_read_gets_no_more_answers() {
    let now = at(0);
    let mut session = open(now);
    let mut asked = 0;
    while session.room() > 200 {
        pass(&mut session, 4, Body::Get(vec![range(&[1, 3, 2])]), now);
        serve(&mut session, &table(), now);
        asked += 1;
    }
    assert!(session.output().len() < OUTPUT_MAX + 200);
    assert!(asked > 1_000);
    let mut answered = 0;
    while !session.output().is_empty() {
        answered += sent(&mut session, now).len();
        serve(&mut session, &table(), now);
    }
    assert_eq!(answered, asked);
}

/// A generator of numbers for the simulation.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// A master that answers, asks, is silent, sends rubbish and breaks connections, in pieces of any size.
// long: one simulation, whose steps share their state
#[test]
fn any_master_costs_bounded_memory_and_a_good_one_is_served_again() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut now = at(1);
        let mut session = Session::new(config(), now);
        let (mut connected, mut wire) = (false, Vec::new());
        for step in 0..400 {
            let is_good = step >= 200;
            now += Duration::from_millis(dice.below(9_000) as u64);
            if now >= session.poll_timeout() {
                session.handle_timeout(now);
            }
            while let Some(event) = session.poll_event() {
                match event {
                    Event::Connect if is_good || dice.below(3) > 0 => {
                        session.connected(now);
                        (connected, wire) = (true, Vec::new());
                    }
                    Event::Connect => session.lost(now),
                    Event::Disconnect(_) => connected = false,
                    Event::Up | Event::SubtreeRefused(..) => {}
                }
            }
            serve(&mut session, &table(), now);
            if connected {
                for pdu in sent(&mut session, now) {
                    if matches!(pdu.body, Body::Response { .. }) || !is_good && dice.below(5) == 0 {
                        continue;
                    }
                    let code = if is_good || dice.below(4) > 0 { 0 } else { 263 };
                    Pdu {
                        session: 77,
                        body: accepted(code),
                        ..pdu
                    }
                    .emit(&mut wire);
                }
                if !is_good && dice.below(9) == 0 {
                    wire.extend((0..dice.below(60)).map(|n| (n * 7 + step) as u8));
                }
                if dice.below(2) == 0 {
                    let body = Body::GetNext(vec![range(&[1]); dice.below(9)]);
                    Pdu {
                        session: 77,
                        transaction: 0,
                        packet: 1,
                        context: None,
                        body,
                    }
                    .emit(&mut wire);
                }
                let count = if is_good {
                    wire.len()
                } else {
                    dice.below(wire.len() + 1)
                };
                let piece: Vec<u8> = wire.drain(..count.min(session.room())).collect();
                session.receive(&piece, now);
                if !is_good && dice.below(30) == 0 {
                    session.lost(now);
                }
            }
            assert!(session.input.len() <= INPUT_MAX, "seed {seed} step {step}");
            assert!(session.output.len() <= OUTPUT_MAX + RESPONSE_MAX + 100);
            assert!(session.events.len() <= 8, "seed {seed} step {step}");
        }
        assert!(
            matches!(session.state(), State::Open | State::Pinging),
            "seed {seed}: {:?}",
            session.state()
        );
    }
}
