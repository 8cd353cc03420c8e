//! One request of the master, answered variable by variable: RFC 2741, section 7.2.3.

use crate::Oid;
use crate::pdu::{Body, Header, Pdu, Range, Value, Variable, error};

/// The longest list of variables in a response, in octets.
pub const RESPONSE_MAX: usize = 60_000;

/// What the master asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// The value of this variable (section 7.2.3.1).
    Get(&'a Oid),
    /// The first variable after this one, or this one if it is included (sections 7.2.3.2 and 7.2.3.3).
    Next {
        /// Where to start.
        after: &'a Oid,
        /// Whether `after` itself may be the answer.
        includes: bool,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To Get: the value.
    Value(Value),
    /// To Next: the variable.
    Variable(Variable),
    /// To Get: no such object.
    NoObject,
    /// To Get: the object has no such instance.
    NoInstance,
    /// To Next: nothing follows.
    End,
}

#[derive(Debug)]
enum Kind {
    Get,
    Next,
    Bulk { once: usize, times: u32 },
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Work {
    header: Header,
    kind: Kind,
    ranges: Vec<Range>,
    /// The range to look up. The start of a range of a bulk moves with each round.
    at: usize,
    round: u32,
    /// Whether a range of this round has a variable.
    found: bool,
    variables: Vec<Variable>,
    octets: usize,
    error: (u16, u16),
    is_done: bool,
}

impl Work {
    fn new(header: Header, kind: Kind, ranges: Vec<Range>) -> Self {
        Self {
            header,
            kind,
            is_done: ranges.is_empty(),
            ranges,
            at: 0,
            round: 0,
            found: false,
            variables: Vec::new(),
            octets: 0,
            error: (error::NONE, 0),
        }
    }

    pub(super) fn get(header: Header, ranges: Vec<Range>) -> Self {
        Self::new(header, Kind::Get, ranges)
    }

    pub(super) fn next(header: Header, ranges: Vec<Range>) -> Self {
        Self::new(header, Kind::Next, ranges)
    }

    pub(super) fn bulk(header: Header, ranges: Vec<Range>, once: u16, times: u16) -> Self {
        let once = usize::from(once).min(ranges.len());
        let times = u32::from(times);
        let mut work = Self::new(header, Kind::Bulk { once, times }, ranges);
        work.is_done |= once == 0 && times == 0;
        work
    }

    /// The variable to look up; `None` if the request is answered.
    pub(super) fn question(&self) -> Option<Question<'_>> {
        if self.is_done {
            return None;
        }
        let range = self.ranges.get(self.at)?;
        Some(match self.kind {
            Kind::Get => Question::Get(&range.start),
            Kind::Next | Kind::Bulk { .. } => Question::Next {
                after: &range.start,
                includes: range.includes,
            },
        })
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        let Some(range) = self.ranges.get_mut(self.at) else {
            return;
        };
        let start = || range.start.clone();
        let named = |value| Variable {
            name: start(),
            value,
        };
        let is_before_end = |name: &Oid| range.end.ids().is_empty() || *name < range.end;
        let variable = match answer {
            Answer::Value(value) => named(value),
            Answer::NoObject => named(Value::NoSuchObject),
            Answer::NoInstance => named(Value::NoSuchInstance),
            Answer::Variable(variable) if is_before_end(&variable.name) => variable,
            Answer::Variable(_) | Answer::End => named(Value::EndOfMibView),
        };
        let mut octets = Vec::new();
        variable.emit(&mut octets);
        if self.octets + octets.len() > RESPONSE_MAX {
            return self.overflow();
        }
        self.octets += octets.len();
        if matches!(self.kind, Kind::Bulk { .. }) && variable.value != Value::EndOfMibView {
            // The next round goes on behind it (RFC 3416, section 4.2.3).
            range.start = variable.name.clone();
            range.includes = false;
            self.found = true;
        }
        self.variables.push(variable);
        self.advance();
    }

    /// A bulk has fewer repetitions then; any other response is an error.
    fn overflow(&mut self) {
        self.is_done = true;
        if !matches!(self.kind, Kind::Bulk { .. }) || self.variables.is_empty() {
            self.error = (error::TOO_BIG, self.at as u16 + 1);
            self.variables.clear();
        }
    }

    fn advance(&mut self) {
        self.at += 1;
        let (first, rounds) = match self.kind {
            Kind::Get | Kind::Next => (0, 1),
            Kind::Bulk { once, times } => {
                // The first round has the ranges that are asked once, then the first repetition.
                if self.round == 0 && self.at == once && times == 0 {
                    self.is_done = true;
                }
                (once, times)
            }
        };
        if self.at < self.ranges.len() {
            return;
        }
        self.round += 1;
        self.is_done |= self.round >= rounds || first == self.ranges.len() || !self.found;
        (self.at, self.found) = (first, false);
    }

    /// Appends the response.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        let pdu = Pdu {
            session: self.header.session,
            transaction: self.header.transaction,
            packet: self.header.packet,
            context: None,
            body: Body::Response {
                uptime: 0,
                error: self.error.0,
                index: self.error.1,
                variables: self.variables,
            },
        };
        pdu.emit(out);
    }
}
