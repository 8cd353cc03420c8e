//! What hosts say to each other in a mixed schedule: random in ports, lengths and order, the same for one seed.

use super::packet::Segment;
use super::run::{Content, Quote, Step};
use super::{EXTERNAL, End, Side, compare, inside, outside};

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// Random numbers, the same in each run.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        // Knuth's MMIX generator; the upper half of its state.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Steps between an inside and an outside end.
pub(super) struct Talk {
    pub(super) inside: End,
    pub(super) outside: End,
    /// TCP's next sequence numbers, inside and outside.
    next: [u32; 2],
    pub(super) steps: Vec<Step>,
}

impl Talk {
    pub(super) fn new(inside: End, outside: End) -> Self {
        let first = u32::from(inside.port) << 12;
        Self {
            inside,
            outside,
            next: [first, !first],
            steps: Vec::new(),
        }
    }

    pub(super) fn say(&mut self, what: &'static str, from: Side, content: Content) -> &mut Step {
        self.steps.push(Step {
            what,
            from,
            inside: self.inside,
            outside: self.outside,
            content,
            by: None,
            difference: "",
            pause_us: 0,
        });
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    pub(super) fn udp(&mut self, what: &'static str, from: Side) -> &mut Step {
        let length = 8 + self.steps.len() * 13;
        self.say(
            what,
            from,
            Content::Udp {
                length,
                has_checksum: true,
            },
        )
    }

    /// A segment with these flags and as many bytes; acknowledges all that the other side has sent.
    pub(super) fn tcp(
        &mut self,
        what: &'static str,
        from: Side,
        flags: u8,
        length: usize,
    ) -> &mut Step {
        let (own, other) = match from {
            Side::Inside => (0, 1),
            Side::Outside => (1, 0),
        };
        let acknowledged = if flags & ACK == 0 {
            0
        } else {
            self.next[other]
        };
        let segment = Segment {
            flags,
            sequence: self.next[own],
            acknowledged,
            length,
        };
        let taken = length as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.next[own] = self.next[own].wrapping_add(taken);
        self.say(what, from, Content::Tcp(segment))
    }

    pub(super) fn handshake(&mut self) {
        self.tcp("SYN", Side::Inside, SYN, 0);
        self.tcp("SYN+ACK", Side::Outside, SYN | ACK, 0);
        self.tcp("ACK", Side::Inside, ACK, 0);
    }

    pub(super) fn close(&mut self, first: Side, second: Side) {
        self.tcp("FIN", first, FIN | ACK, 0);
        self.tcp("FIN of the other side", second, FIN | ACK, 0);
        self.tcp("ACK of the last FIN", first, ACK, 0);
    }

    fn exchange(&mut self, chance: &mut Chance) {
        for _ in 0..1 + chance.below(3) {
            let length = chance.below(1_000);
            self.tcp("data out", Side::Inside, ACK, length);
            let length = chance.below(1_000);
            self.tcp("data in", Side::Outside, ACK, length);
        }
    }

    fn error(&mut self, what: &'static str, from: Side, kind: (u8, u8), quote: Quote) -> &mut Step {
        self.say(what, from, Content::Error { kind, quote })
    }
}

type Kind = fn(&mut Talk, &mut Chance);

/// Every kind of conversation.
const KINDS: [Kind; 23] = [
    connection,
    connection_closed_from_outside,
    reset,
    simultaneous_open,
    out_of_window,
    no_connection,
    datagrams,
    datagrams_without_checksum,
    damaged_datagrams,
    echoes,
    other_queries,
    several_remotes,
    errors_about_udp,
    errors_about_tcp,
    errors_about_echoes,
    wrong_errors,
    errors_outwards,
    errors_that_end,
    fragments_out,
    fragments_in,
    lone_fragments,
    strangers,
    no_ports,
];

/// Conversations of all kinds, interleaved, and two hosts with the same port, and hairpinning.
pub(super) fn mixed(seed: u64) -> Vec<Step> {
    let chance = &mut Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut talks: Vec<Vec<Step>> = Vec::new();
    for (number, kind) in (0..).zip(KINDS.iter().chain(&KINDS)) {
        let host = 1 + chance.below(4) as u8;
        let port = 2_000 + 100 * number + chance.below(100) as u16;
        let remote = outside(
            1 + chance.below(8) as u8,
            [53, 80, 443, 5_000][chance.below(4)],
        );
        let mut talk = Talk::new(inside(host, port), remote);
        kind(&mut talk, chance);
        talks.push(talk.steps);
    }
    talks.push(collision(chance));
    talks.push(hairpin(chance));
    let mut steps = Vec::new();
    while !talks.is_empty() {
        let which = chance.below(talks.len());
        let mut step = talks[which].remove(0);
        step.pause_us = 1_000 * chance.below(100) as u64;
        steps.push(step);
        talks.retain(|talk| !talk.is_empty());
    }
    steps
}

fn connection(talk: &mut Talk, chance: &mut Chance) {
    talk.handshake();
    talk.exchange(chance);
    talk.close(Side::Inside, Side::Outside);
}

fn connection_closed_from_outside(talk: &mut Talk, chance: &mut Chance) {
    talk.handshake();
    talk.exchange(chance);
    talk.close(Side::Outside, Side::Inside);
}

fn reset(talk: &mut Talk, chance: &mut Chance) {
    talk.handshake();
    talk.exchange(chance);
    let from = [Side::Inside, Side::Outside][chance.below(2)];
    talk.tcp("RST", from, RST | ACK, 0);
}

/// Both send a SYN before either has received the other's (RFC 5382, REQ-2).
fn simultaneous_open(talk: &mut Talk, chance: &mut Chance) {
    let first = talk.next;
    talk.tcp("SYN of both", Side::Inside, SYN, 0);
    talk.tcp("SYN of both, in", Side::Outside, SYN, 0);
    let after = core::mem::replace(&mut talk.next, first);
    // Each acknowledges the other's SYN and repeats its own number.
    for (from, own, other) in [(Side::Inside, 0, 1), (Side::Outside, 1, 0)] {
        let segment = Segment {
            flags: SYN | ACK,
            sequence: first[own],
            acknowledged: after[other],
            length: 0,
        };
        talk.say("SYN+ACK of both", from, Content::Tcp(segment));
    }
    talk.next = after;
    talk.exchange(chance);
}

fn out_of_window(talk: &mut Talk, chance: &mut Chance) {
    talk.handshake();
    talk.exchange(chance);
    let at = talk.next[1];
    talk.next[1] = at.wrapping_add(900_000);
    talk.tcp("data outside the window", Side::Outside, ACK, 20)
        .difference = compare::WINDOW;
    talk.next[1] = at;
    talk.exchange(chance);
}

fn no_connection(talk: &mut Talk, _: &mut Chance) {
    talk.tcp("data of no connection", Side::Inside, ACK, 30);
    talk.tcp("RST of no connection", Side::Inside, RST, 0);
    talk.tcp("data of no connection, in", Side::Outside, ACK, 30);
}

fn datagrams(talk: &mut Talk, chance: &mut Chance) {
    for _ in 0..1 + chance.below(3) {
        talk.udp("datagram out", Side::Inside);
        talk.udp("datagram in", Side::Outside);
    }
}

fn datagrams_without_checksum(talk: &mut Talk, _: &mut Chance) {
    for from in [Side::Inside, Side::Outside, Side::Inside] {
        let content = Content::Udp {
            length: 33,
            has_checksum: false,
        };
        talk.say("datagram without checksum", from, content);
    }
}

fn damaged_datagrams(talk: &mut Talk, _: &mut Chance) {
    talk.udp("datagram out", Side::Inside);
    for from in [Side::Inside, Side::Outside] {
        talk.say("datagram with a wrong checksum", from, Content::Damaged)
            .difference = compare::CHECKSUM;
    }
}

fn query(talk: &mut Talk, kind: u8) {
    talk.outside.port = 0;
    talk.say("query", Side::Inside, Content::Query(kind));
    talk.say("reply", Side::Outside, Content::Query(reply_of(kind)));
}

const fn reply_of(kind: u8) -> u8 {
    match kind {
        8 => 0,
        kind => kind + 1,
    }
}

fn echoes(talk: &mut Talk, chance: &mut Chance) {
    for _ in 0..1 + chance.below(3) {
        query(talk, 8);
    }
    // Another host with the same identifier.
    let other = talk.outside;
    talk.outside = outside(9, 0);
    query(talk, 8);
    talk.outside = other;
    query(talk, 8);
}

fn other_queries(talk: &mut Talk, chance: &mut Chance) {
    query(talk, [13, 17][chance.below(2)]);
}

fn several_remotes(talk: &mut Talk, _: &mut Chance) {
    let own = talk.outside;
    for remote in [own, outside(9, 7_000), outside(9, 7_001), own] {
        talk.outside = remote;
        talk.udp("datagram to one of several", Side::Inside);
        talk.udp("datagram of one of several", Side::Outside);
    }
}

/// Errors that a host or router sends about a packet, and how much of it.
const KINDS_OF_ERRORS: [(u8, u8); 8] = [
    (3, 0),
    (3, 1),
    (3, 3),
    (3, 4),
    (3, 13),
    (11, 0),
    (11, 1),
    (12, 0),
];

fn some_errors(talk: &mut Talk, chance: &mut Chance) {
    for _ in 0..3 {
        let kind = KINDS_OF_ERRORS[chance.below(KINDS_OF_ERRORS.len())];
        let quote = [Quote::Whole, Quote::Cut(8), Quote::Cut(12)][chance.below(3)];
        talk.error("error in", Side::Outside, kind, quote);
    }
    let about = (talk.inside, talk.outside);
    talk.outside = outside(9, 0);
    talk.error("error of a router", Side::Outside, (11, 0), Quote::Whole)
        .by = Some(about);
    talk.outside = about.1;
}

fn errors_about_udp(talk: &mut Talk, chance: &mut Chance) {
    talk.udp("datagram out", Side::Inside);
    some_errors(talk, chance);
    talk.udp("datagram in, after errors", Side::Outside);
}

fn errors_about_tcp(talk: &mut Talk, chance: &mut Chance) {
    talk.handshake();
    some_errors(talk, chance);
    talk.exchange(chance);
    some_errors(talk, chance);
}

fn errors_about_echoes(talk: &mut Talk, chance: &mut Chance) {
    query(talk, 8);
    some_errors(talk, chance);
    query(talk, 8);
}

fn wrong_errors(talk: &mut Talk, chance: &mut Chance) {
    talk.udp("datagram out", Side::Inside);
    let kind = KINDS_OF_ERRORS[chance.below(KINDS_OF_ERRORS.len())];
    for (what, quote, difference) in [
        ("error that quotes too little", Quote::Cut(3), ""),
        ("error that quotes 4 bytes", Quote::Cut(4), ""),
        ("error about a port without mapping", Quote::Stranger, ""),
        (
            "error about a damaged header",
            Quote::DamagedHeader,
            compare::DAMAGED_QUOTE,
        ),
        ("error about another address", Quote::OtherSource, ""),
        ("error with a wrong checksum", Quote::DamagedError, ""),
    ] {
        talk.error(what, Side::Outside, kind, quote).difference = difference;
    }
    talk.error("source quench", Side::Outside, (4, 0), Quote::Whole)
        .difference = compare::SOURCE_QUENCH;
    talk.error("redirect", Side::Outside, (5, 1), Quote::Whole);
    talk.udp("datagram in, after errors", Side::Outside);
}

fn errors_outwards(talk: &mut Talk, chance: &mut Chance) {
    talk.udp("datagram out", Side::Inside);
    talk.udp("datagram in", Side::Outside);
    for _ in 0..2 {
        let kind = KINDS_OF_ERRORS[chance.below(KINDS_OF_ERRORS.len())];
        let quote = [Quote::Whole, Quote::Cut(8)][chance.below(2)];
        talk.error("error out", Side::Inside, kind, quote);
    }
    talk.error(
        "error out with a wrong checksum",
        Side::Inside,
        (3, 3),
        Quote::DamagedError,
    );
    talk.udp("datagram out, after errors", Side::Inside);
    talk.udp("datagram in, after errors", Side::Outside);
}

/// RFC 5508, REQ-6: an error does not end a connection.
fn errors_that_end(talk: &mut Talk, chance: &mut Chance) {
    talk.tcp("SYN", Side::Inside, SYN, 0);
    talk.error("error about a SYN", Side::Outside, (3, 1), Quote::Whole);
    talk.tcp("SYN+ACK, after an error", Side::Outside, SYN | ACK, 0);
    talk.tcp("ACK", Side::Inside, ACK, 0);
    talk.exchange(chance);
}

fn fragments(talk: &mut Talk, chance: &mut Chance, from: Side) {
    for is_reversed in [false, true] {
        let at = 8 * (2 + chance.below(60));
        let content = Content::Fragments {
            length: at + 1 + chance.below(800),
            at,
            is_reversed,
        };
        talk.say("fragments", from, content);
    }
}

fn fragments_out(talk: &mut Talk, chance: &mut Chance) {
    fragments(talk, chance, Side::Inside);
    talk.udp("datagram in", Side::Outside);
}

fn fragments_in(talk: &mut Talk, chance: &mut Chance) {
    talk.udp("datagram out", Side::Inside);
    fragments(talk, chance, Side::Outside);
    fragments(talk, chance, Side::Inside);
}

fn lone_fragments(talk: &mut Talk, _: &mut Chance) {
    talk.udp("datagram out", Side::Inside);
    let content = Content::Fragment { is_first: false };
    talk.say("second fragment alone", Side::Outside, content);
    let content = Content::Fragment { is_first: true };
    talk.say("first fragment alone", Side::Inside, content)
        .difference = compare::REASSEMBLY;
}

/// Packets of hosts to which nobody has sent.
fn strangers(talk: &mut Talk, _: &mut Chance) {
    let (own, by) = (talk.outside, (talk.inside, talk.outside));
    talk.udp("datagram to a port without mapping", Side::Outside);
    talk.tcp("SYN to a port without mapping", Side::Outside, SYN, 0);
    talk.say(
        "echo request from outside",
        Side::Outside,
        Content::Query(8),
    );
    talk.udp("datagram out", Side::Inside);
    for (what, remote) in [
        (
            "datagram of another port of the remote host",
            outside(own.address[3], 6_000),
        ),
        ("datagram of another host", outside(9, 6_001)),
    ] {
        talk.outside = remote;
        let step = talk.udp(what, Side::Outside);
        step.by = Some(by);
        step.difference = compare::FILTERING;
    }
    talk.outside = own;
    talk.handshake();
    talk.outside = outside(9, 6_002);
    let step = talk.tcp("SYN of another host", Side::Outside, SYN, 0);
    step.by = Some(by);
    step.difference = compare::FILTERING;
}

fn no_ports(talk: &mut Talk, _: &mut Chance) {
    // conntrack lets one inside host speak such a protocol to each remote host.
    talk.outside.address[3] = (20 + talk.inside.port / 100) as u8;
    talk.say("protocol without ports", Side::Inside, Content::Other(200))
        .difference = compare::NO_PORTS;
}

/// Two hosts use the same port to the same remote endpoint.
fn collision(chance: &mut Chance) -> Vec<Step> {
    let remote = outside(7, 5_353);
    let port = 1_500 + chance.below(400) as u16;
    let mut steps = Vec::new();
    for _ in 0..2 {
        for host in 1..=4 {
            let mut talk = Talk::new(inside(host, port), remote);
            talk.udp("datagram out, same port as others", Side::Inside);
            talk.udp("datagram in, to one of the same port", Side::Outside);
            steps.extend(talk.steps);
        }
    }
    for host in 1..=4 {
        let mut talk = Talk::new(inside(host, port), remote);
        talk.handshake();
        talk.close(Side::Inside, Side::Outside);
        steps.extend(talk.steps);
    }
    steps
}

/// One inside host to the external port of another (RFC 4787, REQ-9).
fn hairpin(chance: &mut Chance) -> Vec<Step> {
    let mut one = Talk::new(inside(1, 1_900 + chance.below(50) as u16), outside(3, 53));
    one.udp("datagram out", Side::Inside);
    let mapped = (one.inside, one.outside);
    let outwards = End {
        address: EXTERNAL,
        port: 0,
    };
    let mut other = Talk::new(inside(2, 1_960 + chance.below(30) as u16), outwards);
    let step = other.udp(
        "datagram to the external port of another host",
        Side::Inside,
    );
    step.by = Some(mapped);
    step.difference = compare::HAIRPINNING;
    [one.steps, other.steps].concat()
}
