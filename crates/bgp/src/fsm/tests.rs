//! Every cell of the table in RFC 4271, section 8.2.2, written a second time as a matrix.

use super::*;

// long: the cells of the RFC's state table
/// The content of a cell: next state, actions, NOTIFICATION.
fn cell(state: State, code: &str, optional: Optional) -> Step {
    let damp = A::NONE.and_if(optional.damp, A::DAMP);
    let idle = A::STOP_RETRY
        .and(A::STOP_DELAY)
        .and(A::RELEASE)
        .and(A::DROP);
    let row = |next, actions, notify| Step {
        next,
        actions,
        notify,
    };
    let fail = |notify| row(Idle, idle.and(A::COUNT).and(damp), notify);
    match code {
        "." => row(state, A::NONE, Notify::No),
        "rej" => row(state, A::REJECT, Notify::No),
        "trk" => row(state, A::TRACK, Notify::No),
        "col" => row(state, A::COLLISION, Notify::No),
        "con" => row(
            Connect,
            A::CLEAR_COUNTER.and(A::START_RETRY).and(A::CONNECT),
            Notify::No,
        ),
        "lis" => row(Active, A::CLEAR_COUNTER.and(A::START_RETRY), Notify::No),
        "dco" => row(Connect, A::START_RETRY.and(A::CONNECT), Notify::No),
        "dli" => row(Active, A::START_RETRY, Notify::No),
        "stp" => row(Idle, idle.and(A::CLEAR_COUNTER), Notify::No),
        "stC" => row(Idle, idle.and(A::CLEAR_COUNTER), Notify::Cease),
        "end" => row(Idle, idle, Notify::No),
        "cnt" => row(Idle, idle.and(A::COUNT), Notify::No),
        "no" => fail(Notify::No),
        "cea" => fail(Notify::Cease),
        "hol" => fail(Notify::HoldTimer),
        "snd" => fail(Notify::SendHold),
        "err" => fail(Notify::Found),
        "fsm" => fail(Notify::Fsm),
        "opn" => row(
            OpenSent,
            A::STOP_RETRY.and(A::SEND_OPEN).and(A::HOLD_LARGE),
            Notify::No,
        ),
        "opD" => row(
            OpenSent,
            A::STOP_RETRY
                .and(A::STOP_DELAY)
                .and(A::SEND_OPEN)
                .and(A::HOLD_LARGE),
            Notify::No,
        ),
        "cfD" => row(
            OpenConfirm,
            A::STOP_RETRY
                .and(A::STOP_DELAY)
                .and(A::COLLISION)
                .and(A::SEND_OPEN)
                .and(A::SEND_KEEPALIVE)
                .and(A::HOLD_NEGOTIATED),
            Notify::No,
        ),
        "cfm" => row(
            OpenConfirm,
            A::STOP_RETRY
                .and(A::STOP_DELAY)
                .and(A::COLLISION)
                .and(A::SEND_KEEPALIVE)
                .and(A::HOLD_NEGOTIATED),
            Notify::No,
        ),
        "try" => row(
            Connect,
            A::DROP
                .and(A::START_RETRY)
                .and(A::STOP_DELAY)
                .and(A::CONNECT),
            Notify::No,
        ),
        "tr2" => row(Connect, A::START_RETRY.and(A::CONNECT), Notify::No),
        "afl" => row(
            Idle,
            A::START_RETRY
                .and(A::STOP_DELAY)
                .and(A::RELEASE)
                .and(A::DROP)
                .and(A::COUNT)
                .and(damp),
            Notify::No,
        ),
        "act" => row(Active, A::DROP.and(A::START_RETRY), Notify::No),
        "kee" => row(state, A::SEND_KEEPALIVE, Notify::No),
        "up" => row(Established, A::RESTART_HOLD.and(A::UP), Notify::No),
        "rst" => row(Established, A::RESTART_HOLD, Notify::No),
        "upd" => row(Established, A::RESTART_HOLD.and(A::UPDATE), Notify::No),
        other => panic!("no such cell: {other}"),
    }
}

/// Without optional attributes: a line for each event, a column for each state in the order of [`State::ALL`].
const TABLE: [(u8, [&str; 6]); 29] = [
    (1, ["con", ".", ".", ".", ".", "."]),
    (2, [".", "stp", "stp", "stC", "stC", "stC"]),
    (3, ["con", ".", ".", ".", ".", "."]),
    (4, ["lis", ".", ".", ".", ".", "."]),
    (5, ["lis", ".", ".", ".", ".", "."]),
    (6, ["dco", ".", ".", ".", ".", "."]),
    (7, ["dli", ".", ".", ".", ".", "."]),
    (8, [".", "no", "no", "cea", "cea", "cea"]),
    (9, [".", "try", "tr2", "fsm", "fsm", "fsm"]),
    (10, [".", "no", "no", "hol", "hol", "hol"]),
    (11, [".", "no", "no", "fsm", "kee", "kee"]),
    (12, [".", "opD", "opD", "fsm", "fsm", "fsm"]),
    (13, [".", "no", "no", "fsm", "fsm", "fsm"]),
    (14, ["rej", ".", ".", "trk", "trk", "trk"]),
    (15, ["rej", "rej", "rej", ".", ".", "."]),
    (16, ["rej", "opn", "opn", "trk", "trk", "trk"]),
    (17, ["rej", "opn", "opn", "trk", "trk", "trk"]),
    (18, [".", "end", "afl", "act", "no", "cnt"]),
    (19, [".", "no", "no", "cfm", "col", "fsm"]),
    (20, [".", "cfD", "cfD", "fsm", "fsm", "fsm"]),
    (21, [".", "no", "no", "err", "err", "err"]),
    (22, [".", "no", "no", "err", "err", "err"]),
    (23, [".", "no", "no", "cea", "cea", "cea"]),
    (24, [".", "no", "no", "end", "end", "cnt"]),
    (25, [".", "no", "no", "no", "no", "cnt"]),
    (26, [".", "no", "no", "fsm", "up", "rst"]),
    (27, [".", "no", "no", "fsm", "fsm", "upd"]),
    (28, [".", "no", "no", "fsm", "fsm", "err"]),
    (29, [".", "no", "no", "snd", "snd", "snd"]),
];

#[test]
fn every_cell_of_the_rfc_s_table_is_so() {
    for damp in [false, true] {
        let optional = Optional {
            damp,
            ..Optional::default()
        };
        for (event, (number, cells)) in Event::ALL.into_iter().zip(TABLE) {
            assert_eq!(event as u8, number);
            for (state, code) in State::ALL.into_iter().zip(cells) {
                assert_eq!(
                    step(state, event, optional),
                    cell(state, code, optional),
                    "{} {}",
                    state.name(),
                    event.name()
                );
            }
        }
    }
}

/// Cells that an optional attribute changes: (state, event, cell).
fn differ(optional: Optional, expected: &[(State, Event, &str)]) {
    for (event, (_, cells)) in Event::ALL.into_iter().zip(TABLE) {
        for (state, plain) in State::ALL.into_iter().zip(cells) {
            let special = expected.iter().find(|(s, e, _)| (*s, *e) == (state, event));
            let code = special.map_or(plain, |(_, _, code)| *code);
            assert_eq!(
                step(state, event, optional),
                cell(state, code, optional),
                "{} {}",
                state.name(),
                event.name()
            );
        }
    }
}

#[test]
fn delay_open_waits_before_an_open_and_forgives_a_failure() {
    for (event, state) in [
        (Event::TcpCrAcked, Connect),
        (Event::TcpConnectionConfirmed, Active),
    ] {
        let optional = Optional {
            delay_open: true,
            ..Optional::default()
        };
        let step = step(state, event, optional);
        assert_eq!(
            (step.next, step.actions),
            (state, A::STOP_RETRY.and(A::START_DELAY))
        );
    }
    let running = Optional {
        delay_open_running: true,
        ..Optional::default()
    };
    let failed = step(Connect, Event::TcpConnectionFails, running);
    assert_eq!(
        (failed.next, failed.actions),
        (Active, A::START_RETRY.and(A::STOP_DELAY).and(A::DROP))
    );
    for state in [Connect, Active] {
        let version = step(state, Event::NotifMsgVerErr, running);
        assert_eq!(version, cell(state, "end", running));
    }
}

#[test]
fn notifications_before_an_open_are_sent_only_where_allowed() {
    let optional = Optional {
        notify_without_open: true,
        ..Optional::default()
    };
    differ(
        optional,
        &[
            (Connect, Event::BgpHeaderErr, "err"),
            (Connect, Event::BgpOpenMsgErr, "err"),
            (Active, Event::BgpHeaderErr, "err"),
            (Active, Event::BgpOpenMsgErr, "err"),
        ],
    );
    let running = Optional {
        delay_open_running: true,
        ..optional
    };
    let stopped = step(Active, Event::ManualStop, running);
    assert_eq!(stopped, cell(Active, "stC", running));
}

#[test]
fn established_looks_for_collisions_only_where_configured() {
    let optional = Optional {
        collision_established: true,
        ..Optional::default()
    };
    differ(optional, &[(Established, Event::BgpOpen, "col")]);
}

#[test]
fn a_peer_that_restarts_gracefully_leaves_its_routes() {
    let optional = Optional {
        graceful: true,
        ..Optional::default()
    };
    let again = step(Established, Event::TcpConnectionConfirmed, optional);
    assert_eq!(again.next, Connect);
    assert!(again.actions.has(A::RETAIN.and(A::DROP)));
    let lost = step(Established, Event::TcpConnectionFails, optional);
    assert_eq!(lost.next, Idle);
    assert!(lost.actions.has(A::RETAIN) && !lost.actions.has(A::RELEASE));
    let told = step(Established, Event::NotifMsg, optional);
    assert!(told.actions.has(A::RELEASE) && !told.actions.has(A::RETAIN));
}
