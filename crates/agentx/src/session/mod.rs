//! A session with the master agent: RFC 2741, sections 7.1 and 7.2.
//!
//! `fsm` has the table of states, `work` the answer to one request, variable by variable.

mod fsm;
#[cfg(test)]
mod tests;
mod work;

use std::collections::VecDeque;

use base::{Duration, Instant};

use crate::Oid;
use crate::pdu::{Body, HEADER_LEN, Header, PAYLOAD_MAX, ParseError, Pdu, Registration};
use crate::pdu::{close, error};
pub use fsm::State;
use fsm::{Action, Input};
use work::Work;
pub use work::{Answer, Question, RESPONSE_MAX};

/// Octets of input that are kept: the owner reads no more while they wait. Room for any PDU.
pub const INPUT_MAX: usize = HEADER_LEN + PAYLOAD_MAX;

/// Octets of unsent output at which no further request is answered.
const OUTPUT_MAX: usize = 65_536;

/// The first delay before another attempt; doubles from there.
const RETRY: Duration = Duration::from_secs(1);
/// The longest delay.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a session must have been open for the next delay to be the first one again.
const STABLE: Duration = Duration::from_secs(30);
/// How long the master may take to connect, and to answer us.
const ANSWER: Duration = Duration::from_secs(10);
/// The silence of the master after which we send a Ping.
const SILENCE: Duration = Duration::from_secs(60);
/// Seconds that the master shall wait for our responses.
const TIMEOUT_S: u8 = 5;
/// The default priority of a registration (section 6.2.3).
const PRIORITY: u8 = 127;

/// How a session introduces itself to the master agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What identifies the subagent; null for nothing.
    pub id: Oid,
    /// What the subagent is, at most 255 octets.
    pub description: String,
    /// The context of its objects; `None` for the default one.
    pub context: Option<String>,
    /// The subtrees to register, each at most once.
    pub subtrees: Vec<Oid>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The connection could not be made, or ended.
    #[error("no connection")]
    Lost,
    /// The master did not answer in time.
    #[error("the master agent does not answer")]
    Silent,
    /// The master refused the session, with this error.
    #[error("the master agent refused the session with error {0}")]
    Refused(u16),
    /// The master closed the session, with this reason.
    #[error("the master agent closed the session with reason {0}")]
    Closed(u8),
    /// The master's bytes are no AgentX.
    #[error("the master agent sent no AgentX: {0}")]
    Malformed(ParseError),
}

/// An event for the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Connect to the master; then call [`Session::connected`] or [`Session::lost`].
    Connect,
    /// Close the connection, if there is one.
    Disconnect(Reason),
    /// The session is open.
    Up,
    /// The master refused a subtree, with this error.
    SubtreeRefused(Oid, u16),
}

/// What a session counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions that were open.
    pub opened: u64,
    /// Requests of the master: Get, GetNext and GetBulk.
    pub requests: u64,
    /// Variables answered.
    pub variables: u64,
    /// Sets refused.
    pub sets_refused: u64,
    /// PDUs that could not be decoded, or that fit no request of ours.
    pub ignored: u64,
}

/// A session of a subagent.
///
/// The owner calls the methods that pass it an input, then drains it: events, output, questions, the timeout.
#[derive(Debug)]
pub struct Session {
    config: Config,
    state: State,
    /// The session's number at the master.
    id: u32,
    packet: u32,
    /// The subtree whose Register is unanswered.
    subtree: usize,
    deadline: Instant,
    delay: Duration,
    heard: Instant,
    opened_at: Instant,
    input: Vec<u8>,
    output: Vec<u8>,
    work: Option<Work>,
    events: VecDeque<Event>,
    counts: Counts,
}

impl Session {
    /// A session that connects at `now`.
    #[must_use]
    pub fn new(config: Config, now: Instant) -> Self {
        Self {
            config,
            state: State::Waiting,
            id: 0,
            packet: 0,
            subtree: 0,
            deadline: now,
            delay: RETRY,
            heard: now,
            opened_at: now,
            input: Vec::new(),
            output: Vec::new(),
            work: None,
            events: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Its counters.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::handle_timeout`] is due.
    #[must_use]
    pub const fn poll_timeout(&self) -> Instant {
        self.deadline
    }

    /// Octets that wait to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// The owner has sent the first `count` octets of the output.
    pub fn sent(&mut self, count: usize, now: Instant) {
        self.output.drain(..count.min(self.output.len()));
        self.advance(now);
    }

    /// How many octets may be passed to [`Session::receive`]; none while requests wait.
    #[must_use]
    pub const fn room(&self) -> usize {
        INPUT_MAX.saturating_sub(self.input.len())
    }

    /// Fires the timer if it is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now < self.deadline {
            return;
        }
        let silent_until = self.heard + SILENCE;
        if self.state == State::Open && now < silent_until {
            self.deadline = silent_until;
            return;
        }
        self.step(Input::Timer, Reason::Silent, now);
    }

    /// The owner has connected.
    pub fn connected(&mut self, now: Instant) {
        self.step(Input::Connected, Reason::Lost, now);
    }

    /// The owner could not connect, or the connection ended.
    pub fn lost(&mut self, now: Instant) {
        self.step(Input::Lost, Reason::Lost, now);
    }

    /// Takes octets of the master, at most as many as there is room for; more are dropped with the connection.
    pub fn receive(&mut self, octets: &[u8], now: Instant) {
        if matches!(self.state, State::Waiting | State::Connecting) {
            return;
        }
        if octets.len() > self.room() {
            let why = Reason::Malformed(ParseError::Payload(octets.len() as u32));
            return self.step(Input::Lost, why, now);
        }
        self.heard = now;
        self.input.extend(octets);
        self.advance(now);
    }

    /// Ends the session for good: the output has the Close.
    pub fn shut_down(&mut self) {
        if matches!(
            self.state,
            State::Registering | State::Open | State::Pinging
        ) {
            self.send(Body::Close(close::SHUTDOWN));
        }
        (self.state, self.deadline) = (State::Waiting, Instant::FAR_FUTURE);
        self.work = None;
    }

    /// The next variable that the master asks for.
    #[must_use]
    pub fn question(&self) -> Option<Question<'_>> {
        self.work.as_ref().and_then(Work::question)
    }

    /// The answer to [`Session::question`].
    pub fn answer(&mut self, answer: Answer, now: Instant) {
        let Some(work) = &mut self.work else {
            return;
        };
        self.counts.variables += 1;
        work.answer(answer);
        self.finish_work();
        self.advance(now);
    }

    /// Sends the response if the request is answered.
    fn finish_work(&mut self) {
        if let Some(work) = self.work.take_if(|work| work.question().is_none()) {
            work.finish(&mut self.output);
        }
    }

    /// Takes the PDUs that have arrived, up to the first one whose variables the owner has to look up.
    fn advance(&mut self, now: Instant) {
        while self.work.is_none() && self.output.len() < OUTPUT_MAX {
            let Some(octets) = self.input.first_chunk::<HEADER_LEN>() else {
                break;
            };
            let header = match Header::parse(octets) {
                Ok(header) => header,
                Err(why) => return self.step(Input::Lost, Reason::Malformed(why), now),
            };
            let end = HEADER_LEN + header.payload;
            let Some(payload) = self.input.get(HEADER_LEN..end) else {
                break;
            };
            let pdu = Pdu::parse(&header, payload);
            self.input.drain(..end);
            match pdu {
                Ok(pdu) => self.take(pdu, now),
                // A response gets no response.
                Err(_) if header.kind == 18 => self.counts.ignored += 1,
                Err(_) => {
                    self.counts.ignored += 1;
                    self.respond(&header, error::PARSE, 0);
                }
            }
        }
    }

    fn take(&mut self, pdu: Pdu, now: Instant) {
        let header = Header {
            kind: 0,
            flags: 0,
            session: pdu.session,
            transaction: pdu.transaction,
            packet: pdu.packet,
            payload: 0,
        };
        if let Body::Response { error, .. } = pdu.body {
            return self.take_response(&header, error, now);
        }
        let is_open = matches!(
            self.state,
            State::Registering | State::Open | State::Pinging
        );
        if !is_open || pdu.session != self.id {
            self.counts.ignored += 1;
            return self.respond(&header, error::NOT_OPEN, 0);
        }
        if pdu.context.is_some()
            && pdu.context.as_deref() != self.config.context.as_deref().map(str::as_bytes)
        {
            self.counts.ignored += 1;
            return self.respond(&header, error::UNSUPPORTED_CONTEXT, 0);
        }
        match pdu.body {
            Body::Get(ranges) => self.start(Work::get(header, ranges)),
            Body::GetNext(ranges) => self.start(Work::next(header, ranges)),
            Body::GetBulk {
                non_repeaters,
                max_repetitions,
                ranges,
            } => self.start(Work::bulk(header, ranges, non_repeaters, max_repetitions)),
            Body::TestSet(_) => {
                self.counts.sets_refused += 1;
                self.respond(&header, error::NOT_WRITABLE, 1);
            }
            // No set passes its test, so these come only out of order.
            Body::CommitSet => self.respond(&header, error::COMMIT_FAILED, 1),
            Body::UndoSet => self.respond(&header, error::UNDO_FAILED, 1),
            Body::CleanupSet => {}
            Body::Close(reason) => self.step(Input::Closed, Reason::Closed(reason), now),
            Body::Open { .. }
            | Body::Register(_)
            | Body::Unregister(_)
            | Body::Notify(_)
            | Body::Ping
            | Body::IndexAllocate(_)
            | Body::IndexDeallocate(_)
            | Body::AddAgentCaps(..)
            | Body::RemoveAgentCaps(_)
            | Body::Response { .. } => {
                self.counts.ignored += 1;
                self.respond(&header, error::GENERAL, 0);
            }
        }
    }

    fn start(&mut self, work: Work) {
        self.counts.requests += 1;
        self.work = Some(work);
        self.finish_work();
    }

    fn take_response(&mut self, header: &Header, code: u16, now: Instant) {
        if header.packet != self.packet {
            self.counts.ignored += 1;
            return;
        }
        if self.state == State::Opening && code == error::NONE {
            self.id = header.session;
        }
        let mut input = match code {
            error::NONE => Input::Accepted,
            _ => Input::Refused,
        };
        match self.state {
            State::Opening if code == error::NONE && self.config.subtrees.is_empty() => {
                input = Input::Finished;
            }
            State::Registering => {
                if code != error::NONE
                    && let Some(subtree) = self.config.subtrees.get(self.subtree)
                {
                    let refused = Event::SubtreeRefused(subtree.clone(), code);
                    self.events.push_back(refused);
                }
                self.subtree += 1;
                if self.subtree == self.config.subtrees.len() {
                    input = Input::Finished;
                }
            }
            State::Opening | State::Pinging => {}
            // It was answered already.
            State::Waiting | State::Connecting | State::Open => {
                self.counts.ignored += 1;
                return;
            }
        }
        self.step(input, Reason::Refused(code), now);
    }

    /// Consults the table. `why` is the reason if the session ends.
    fn step(&mut self, input: Input, why: Reason, now: Instant) {
        let (action, state) = fsm::step(self.state, input);
        self.state = state;
        match action {
            Action::Nothing => {}
            Action::Connect => {
                self.deadline = now + ANSWER;
                self.events.push_back(Event::Connect);
            }
            Action::SendOpen => {
                self.deadline = now + ANSWER;
                (self.id, self.subtree, self.heard) = (0, 0, now);
                let (id, description) = (self.config.id.clone(), self.config.description.clone());
                self.send(Body::Open {
                    timeout_s: TIMEOUT_S,
                    id,
                    description: description.into_bytes(),
                });
            }
            Action::SendRegister => {
                self.deadline = now + ANSWER;
                let Some(subtree) = self.config.subtrees.get(self.subtree).cloned() else {
                    return;
                };
                self.send(Body::Register(Registration {
                    timeout_s: 0,
                    priority: PRIORITY,
                    range: 0,
                    subtree,
                    upper_bound: 0,
                }));
            }
            Action::Up => {
                self.counts.opened += 1;
                (self.opened_at, self.deadline) = (now, now + SILENCE);
                self.events.push_back(Event::Up);
            }
            Action::SendPing => {
                self.deadline = now + ANSWER;
                self.send(Body::Ping);
            }
            Action::Rearm => self.deadline = now + SILENCE,
            Action::Drop => self.end(why, now),
        }
    }

    fn end(&mut self, why: Reason, now: Instant) {
        if self.counts.opened > 0 && now.since(self.opened_at) >= STABLE && self.id != 0 {
            self.delay = RETRY;
        }
        self.deadline = now + self.delay;
        self.delay = self.delay.saturating_mul(2).min(RETRY_MAX);
        self.id = 0;
        self.input.clear();
        self.output.clear();
        self.work = None;
        self.events.push_back(Event::Disconnect(why));
    }

    /// Sends a PDU of ours. Its response has the same packet.
    fn send(&mut self, body: Body) {
        self.packet = self.packet.wrapping_add(1);
        let names_context = matches!(body, Body::Register(_));
        let context = self.config.context.as_ref().filter(|_| names_context);
        let pdu = Pdu {
            session: self.id,
            transaction: 0,
            packet: self.packet,
            context: context.map(|context| context.clone().into_bytes()),
            body,
        };
        pdu.emit(&mut self.output);
    }

    fn respond(&mut self, header: &Header, error: u16, index: u16) {
        let pdu = Pdu {
            session: header.session,
            transaction: header.transaction,
            packet: header.packet,
            context: None,
            body: Body::Response {
                uptime: 0,
                error,
                index,
                variables: Vec::new(),
            },
        };
        pdu.emit(&mut self.output);
    }
}
