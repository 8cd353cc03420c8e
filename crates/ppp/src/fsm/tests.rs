//! Compares the functions with the state table as RFC 1661, section 4.1, prints it.

use super::*;

/// Rows of the table: the event, then the ten states' cells in the RFC's order.
const TABLE: [&str; 16] = [
    "Up    2     irc,scr/6  -      -                - - - - - -",
    "Down  -     -          0      tls/1            0 1 1 1 1 tld/1",
    "Open  tls/1 1          irc,scr/6 3r            5r 5r 6 7 8 9r",
    "Close 0     tlf/0      2      2                4 4 irc,str/4 irc,str/4 irc,str/4 tld,irc,str/4",
    "TO+   -     -          -      -                str/4 str/5 scr/6 scr/6 scr/8 -",
    "TO-   -     -          -      -                tlf/2 tlf/3 tlf/3p tlf/3p tlf/3p -",
    "RCR+  -     -          sta/2  irc,scr,sca/8    4 5 sca/8 sca,tlu/9 sca/8 tld,scr,sca/8",
    "RCR-  -     -          sta/2  irc,scr,scn/6    4 5 scn/6 scn/7 scn/6 tld,scr,scn/6",
    "RCA   -     -          sta/2  sta/3            4 5 irc/7 scr/6x irc,tlu/9 tld,scr/6x",
    "RCN   -     -          sta/2  sta/3            4 5 irc,scr/6 scr/6x irc,scr/8 tld,scr/6x",
    "RTR   -     -          sta/2  sta/3            sta/4 sta/5 sta/6 sta/6 sta/6 tld,zrc,sta/5",
    "RTA   -     -          2      3                tlf/2 tlf/3 6 6 8 tld,scr/6",
    "RUC   -     -          scj/2  scj/3            scj/4 scj/5 scj/6 scj/7 scj/8 scj/9",
    "RXJ+  -     -          2      3                4 5 6 6 8 9",
    "RXJ-  -     -          tlf/2  tlf/3            tlf/2 tlf/3 tlf/3 tlf/3 tlf/3 tld,irc,str/5",
    "RXR   -     -          2      3                4 5 6 7 8 ser/9",
];

const STATES: [State; 10] = [
    State::Initial,
    State::Starting,
    State::Closed,
    State::Stopped,
    State::Closing,
    State::Stopping,
    State::ReqSent,
    State::AckRcvd,
    State::AckSent,
    State::Opened,
];

fn event(name: &str) -> Event {
    match name {
        "Up" => Event::Up,
        "Down" => Event::Down,
        "Open" => Event::Open,
        "Close" => Event::Close,
        "TO+" => Event::TimeoutPlus,
        "TO-" => Event::TimeoutMinus,
        "RCR+" => Event::RequestGood,
        "RCR-" => Event::RequestBad,
        "RCA" => Event::Ack,
        "RCN" => Event::Nak,
        "RTR" => Event::TerminateRequest,
        "RTA" => Event::TerminateAck,
        "RUC" => Event::UnknownCode,
        "RXJ+" => Event::RejectGood,
        "RXJ-" => Event::RejectBad,
        "RXR" => Event::Echo,
        other => panic!("{other} is no event"),
    }
}

fn action(name: &str) -> Actions {
    match name {
        "tlu" => Actions::TLU,
        "tld" => Actions::TLD,
        "tls" => Actions::TLS,
        "tlf" => Actions::TLF,
        "irc" => Actions::IRC,
        "zrc" => Actions::ZRC,
        "scr" => Actions::SCR,
        "sca" => Actions::SCA,
        "scn" => Actions::SCN,
        "str" => Actions::STR,
        "sta" => Actions::STA,
        "scj" => Actions::SCJ,
        "ser" => Actions::SER,
        other => panic!("{other} is no action"),
    }
}

#[test]
fn every_cell_of_the_rfc_s_table_is_so() {
    for row in TABLE {
        let mut cells = row.split_whitespace();
        let name = cells.next().unwrap();
        for state in STATES {
            let cell = cells.next().expect("ten cells");
            let (actions, next) = step(state, event(name));
            let (wanted, number) = match cell {
                "-" => (Actions::NONE, STATES.iter().position(|&one| one == state)),
                cell => {
                    let (names, number) = cell.rsplit_once('/').unwrap_or(("", cell));
                    let wanted = names.split(',').filter(|name| !name.is_empty());
                    let wanted = wanted.fold(Actions::NONE, |all, name| all.and(action(name)));
                    (
                        wanted,
                        number.trim_end_matches(['p', 'r', 'x']).parse().ok(),
                    )
                }
            };
            // "r": without the restart option the automaton keeps its state, except that Closing becomes Stopping.
            assert!(actions == wanted, "{name} in {}", state.name());
            assert_eq!(next, STATES[number.unwrap()], "{name} in {}", state.name());
        }
        assert_eq!(cells.next(), None);
    }
}

#[test]
fn the_timer_runs_in_the_states_that_have_its_events() {
    for state in STATES {
        let legal = step(state, Event::TimeoutMinus) != (Actions::NONE, state);
        assert_eq!(state.is_timed(), legal, "{}", state.name());
    }
}
