//! Rules and packets from the same bytes: any text is either refused with reasons, or compiled into tables that
//! agree with a walk over the rules on every packet.

use filter::{Direction, FilterSet, Hits, Names, describe, parse_packet};
use wire::ip::Header;

/// Packets that are tried on each set of rules.
const PACKETS: usize = 16;

/// Takes a text of rules up to the first zero octet, then packets, each preceded by its length.
///
/// # Panics
/// If the compiled form and the rules disagree, or a fault has no text.
pub fn target(data: &[u8]) {
    let end = data.iter().position(|octet| *octet == 0);
    let (text, mut packets) = data.split_at(end.unwrap_or(data.len()));
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    let names = Names::well_known();
    let set = match FilterSet::parse(text, &names) {
        Ok((set, _)) => set,
        Err(remarks) => {
            assert!(!remarks.faults.is_empty());
            let is_told = |fault: &filter::Remark| fault.line > 0 && !fault.message.is_empty();
            assert!(remarks.faults.iter().all(is_told));
            return;
        }
    };
    let mut hits = Hits::new(&set);
    for _ in 0..PACKETS {
        let Some((&length, rest)) = packets.split_first().filter(|(_, rest)| !rest.is_empty())
        else {
            break;
        };
        let (packet, rest) = rest.split_at(usize::from(length).min(rest.len()));
        packets = rest;
        if let Ok(packet) = Header::read(packet) {
            check(&set, &packet, &names, &mut hits);
        }
    }
    let (again, _) = set.reload(text, &names).expect("it was usable");
    let carried = hits.carried(&set, &again);
    for ((_, before), (_, now)) in set.iter().zip(again.iter()) {
        for line in now.lines() {
            assert_eq!(carried.of(now, line.rule), hits.of(before, line.rule));
        }
    }
}

fn check(set: &FilterSet, packet: &Header, names: &Names, hits: &mut Hits) {
    for (_, filter) in set.iter() {
        for direction in Direction::ALL {
            let verdict = filter.matches(packet, direction);
            let explained = filter.explain(packet, direction, names);
            assert_eq!(explained.verdict, verdict);
            let line = filter.lines().find(|line| line.rule == verdict.rule);
            let line = line.expect("a line decides");
            assert_eq!((line.accept, line.log), (verdict.accept, verdict.log));
            // The walk over the rules stops at the line that the tables found.
            let last = explained.steps.last().map(|step| step.text.as_str());
            assert_eq!(last.unwrap_or("not filtered"), line.text);
            let first = filter
                .rules(direction)
                .iter()
                .find(|rule| rule.matches(packet));
            if filter.is_filtered(direction) && line.text != "damaged" {
                assert_eq!(line.line, first.map_or(line.line, |rule| rule.line));
            }
            hits.count(filter, verdict);
        }
    }
    let words = describe(packet, names);
    let (_, read) = parse_packet(&words, names).expect("what is described is read again");
    assert_eq!(describe(&read, names), words);
}
