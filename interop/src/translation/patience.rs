//! Conversations with pauses that test time-outs: one timeline of virtual hours.

use super::conversation::{ACK, FIN, RST, SYN, Talk};
use super::run::{Content, Step};
use super::{Side, compare, inside, outside};

/// Steps with the second at which each is due.
struct Timeline {
    next_port: u16,
    steps: Vec<(u64, Step)>,
}

impl Timeline {
    fn new() -> Self {
        Self {
            next_port: 3_000,
            steps: Vec::new(),
        }
    }

    fn talk(&mut self) -> Talk {
        self.next_port += 1;
        Talk::new(inside(1, self.next_port), outside(2, self.next_port))
    }

    /// Adds a talk's steps: those before `paused` one after the other from `begin_s` on, and each of `paused`, the last
    /// ones, at its second.
    fn add(&mut self, begin_s: u64, talk: Talk, paused: &[(u64, &'static str)]) {
        let first = talk.steps.len() - paused.len();
        for (number, mut step) in talk.steps.into_iter().enumerate() {
            let at = match number.checked_sub(first) {
                None => begin_s,
                Some(later) => {
                    step.difference = paused[later].1;
                    begin_s + paused[later].0
                }
            };
            self.steps.push((at, step));
        }
    }

    fn steps(mut self) -> Vec<Step> {
        self.steps.sort_by_key(|(at, _)| *at);
        let mut now = 0;
        self.steps
            .into_iter()
            .map(|(at, step)| {
                let pause_us = (at - now) * 1_000_000;
                now = at;
                Step { pause_us, ..step }
            })
            .collect()
    }

    /// A datagram out, then one in at each of these seconds.
    fn datagrams(&mut self, paused: &[(u64, &'static str)]) {
        let mut talk = self.talk();
        talk.udp("datagram out", Side::Inside);
        for _ in paused {
            talk.udp("datagram in, after a pause", Side::Outside);
        }
        self.add(0, talk, paused);
    }

    fn echo(&mut self, reply: (u64, &'static str)) {
        let mut talk = self.talk();
        talk.outside.port = 0;
        talk.say("query", Side::Inside, Content::Query(8));
        talk.say("reply, after a pause", Side::Outside, Content::Query(0));
        self.add(0, talk, &[reply]);
    }

    fn opening(&mut self, answer: (u64, &'static str)) {
        let mut talk = self.talk();
        talk.tcp("SYN", Side::Inside, SYN, 0);
        talk.tcp("SYN+ACK, after a pause", Side::Outside, SYN | ACK, 0);
        self.add(0, talk, &[answer]);
    }

    fn established(&mut self, data: (u64, &'static str)) {
        let mut talk = self.talk();
        talk.handshake();
        talk.tcp("data in, after a pause", Side::Outside, ACK, 30);
        self.add(0, talk, &[data]);
    }

    /// Both send a FIN; the outside host does not get the last acknowledgement and repeats its own.
    fn closed(&mut self, repeated: (u64, &'static str)) {
        let mut talk = self.talk();
        talk.handshake();
        talk.close(Side::Inside, Side::Outside);
        let fin = talk.steps[4].content.clone();
        talk.say("FIN again, after a pause", Side::Outside, fin);
        self.add(0, talk, &[repeated]);
    }

    fn reset(&mut self, data: (u64, &'static str)) {
        let mut talk = self.talk();
        talk.handshake();
        talk.tcp("RST", Side::Inside, RST, 0);
        talk.tcp("data in, after a RST and a pause", Side::Outside, ACK, 30);
        self.add(0, talk, &[data]);
    }

    /// One side alone has sent a FIN: the connection is still established (RFC 7857, figure 1).
    fn half_closed(&mut self, data: (u64, &'static str)) {
        let mut talk = self.talk();
        talk.handshake();
        talk.tcp("FIN", Side::Inside, FIN | ACK, 0);
        talk.tcp("ACK of the FIN", Side::Outside, ACK, 0);
        talk.tcp("data in, after a FIN and a pause", Side::Outside, ACK, 30);
        self.add(0, talk, &[data]);
    }
}

/// Both have the same time-outs; a packet shortly before the end of each passes, one after it does not. Ours may end up to
/// 2.2 s later.
pub(super) fn patient() -> Vec<Step> {
    let mut line = Timeline::new();
    line.datagrams(&[(295, "")]);
    line.datagrams(&[(305, "")]);
    line.datagrams(&[(200, ""), (400, compare::INBOUND_REFRESH)]);
    line.echo((57, ""));
    line.echo((64, ""));
    line.opening((236, ""));
    line.opening((244, ""));
    line.established((7_430, ""));
    line.established((7_450, ""));
    line.closed((230, ""));
    line.closed((250, ""));
    line.reset((230, ""));
    line.reset((250, ""));
    line.half_closed((3_600, ""));
    line.steps()
}

/// The kernel has its own time-outs, and ours are those of the RFCs.
pub(super) fn defaults() -> Vec<Step> {
    let mut line = Timeline::new();
    line.datagrams(&[(60, compare::UDP_TIMEOUT)]);
    line.echo((45, compare::ICMP_TIMEOUT));
    line.opening((150, compare::OPENING_TIMEOUT));
    line.closed((180, compare::CLOSING_TIMEOUT));
    line.reset((60, compare::RESET_TIMEOUT));
    line.half_closed((3_600, compare::HALF_CLOSED_TIMEOUT));
    line.established((9_000, compare::ESTABLISHED_TIMEOUT));
    line.steps()
}
