//! One control protocol: the automaton, its Restart timer, and the exchange of Configure packets (RFC 1661, sections 4
//! and 5), generic over the options that are negotiated.
//!
//! The layer departs from the RFC in three ways, which docs/ppp.md explains:
//! - A Configure-Request that repeats the acknowledged one in Opened means that our acknowledgement was lost. The layer
//!   acknowledges it again, a limited number of times, and stays open. With the RFC's table, two ends on a lossy line
//!   restart each other for minutes.
//! - A network protocol that gives up after it acknowledged the peer's request sends a Terminate-Request.
//! - The RFC's table never ends if two ends answer each other and never agree. Here it ends after [`rounds_max`].

use base::snapshot::{Codec, Part};
use base::{Duration, Instant};
use wire::ppp::control::{ConfigOption, Control, HEADER, Options, code, emit_option};
use wire::ppp::{Compression, protocol};

use crate::config::{Config, Random};
use crate::event::Discard;
use crate::fsm::{Actions, Event, State, step};
use crate::outbox::Outbox;
use crate::snapshot;

/// The values that a link's owner passes to every call.
pub struct Context<'a> {
    /// The current time.
    pub now: Instant,
    /// Timers and limits.
    pub config: &'a Config,
    /// Random numbers.
    pub random: &'a mut dyn Random,
    /// Collects frames and events.
    pub out: &'a mut Outbox,
}

/// A deadline after its interval changed: none without an interval, and one beyond the interval comes after a random
/// part of it.
pub(crate) fn retimed(at: Instant, interval: Duration, ctx: &mut Context<'_>) -> Instant {
    if interval == Duration::ZERO {
        return Instant::FAR_FUTURE;
    }
    if at <= ctx.now + interval {
        return at;
    }
    let part = u128::from(interval.as_nanos()) * u128::from(ctx.random.number());
    ctx.now + Duration::from_nanos((part >> 32) as u64)
}

/// The verdict on one option of a peer's Configure-Request.
pub(crate) enum Judgement {
    /// Accepted.
    Agree,
    /// Nak with this value: the bytes, and how many count.
    Suggest([u8; 8], u8),
    /// Rejected: unknown, or not possible.
    Reject,
}

impl Judgement {
    pub(crate) fn suggest(value: &[u8]) -> Self {
        let mut octets = [0; 8];
        let length = value.len().min(8);
        octets[..length].copy_from_slice(&value[..length]);
        Self::Suggest(octets, length as u8)
    }
}

/// The options that a control protocol negotiates.
pub(crate) trait Negotiation {
    /// The protocol number.
    const PROTOCOL: u16;
    /// The layer's name in a snapshot.
    const NAME: &'static str;

    /// Appends the options of our Configure-Request. Equal states append equal bytes.
    fn request(&self, out: &mut Vec<u8>);

    /// Judges one option of the peer.
    fn judge(&mut self, option: &ConfigOption<'_>, random: &mut dyn Random) -> Judgement;

    /// An option that the peer should have sent, with its type and verdict. `naks` counts the Naks sent so far.
    fn missing(
        &self,
        _request: Options<'_>,
        _naks: u8,
        _random: &mut dyn Random,
    ) -> Option<(u8, Judgement)> {
        None
    }

    /// Takes a request whose options were all accepted.
    fn agree(&mut self, request: Options<'_>);

    /// Whether our request is sufficient once the peer acknowledges it.
    fn is_complete(&self) -> bool {
        true
    }

    /// The peer sent a Nak with this value.
    fn adjust(&mut self, option: &ConfigOption<'_>, config: &Config, random: &mut dyn Random);

    /// The peer rejects this option of ours. `false` if the protocol cannot work without it.
    fn withdraw(&mut self, kind: u8) -> bool;

    /// Fields of the layer's snapshot. Their numbers are above 20.
    fn fields<C: Codec>(&mut self, codec: &mut C);
}

/// Signals of a layer to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Signals {
    /// This-Layer-Up.
    pub(crate) up: bool,
    /// This-Layer-Down.
    pub(crate) down: bool,
    /// This-Layer-Finished.
    pub(crate) finished: bool,
    /// The peer terminated the layer.
    pub(crate) by_peer: bool,
}

/// A control protocol of a link.
#[derive(Clone, Debug)]
pub(crate) struct Layer<N> {
    /// The options to negotiate.
    pub(crate) negotiation: N,
    state: State,
    /// The Restart counter.
    tries: u8,
    /// Naks sent since the last Ack.
    failures: u8,
    /// Naks and Rejects sent since the last Ack.
    disputes: u8,
    /// The identifier of the peer's request that was acknowledged.
    acknowledged_id: u8,
    /// A digest of its options.
    acknowledged: u32,
    /// How many more times the acknowledged request may be repeated.
    repeats: u8,
    /// Answers to our requests since the layer was last open.
    rounds: u8,
    /// The identifier of the latest packet that was not a reply.
    last_id: u8,
    /// The identifier of the latest Configure-Request.
    request_id: u8,
    /// The latest Configure-Request was answered.
    answered: bool,
    /// The peer rejects a needed option, or never agrees.
    refused: bool,
    /// When the Restart timer expires.
    deadline: Instant,
}

/// The reply to a Configure-Request.
struct Reply {
    code: u8,
}

impl<N: Negotiation> Layer<N> {
    pub(crate) fn new(negotiation: N) -> Self {
        Self {
            negotiation,
            state: State::Initial,
            tries: 0,
            failures: 0,
            disputes: 0,
            acknowledged_id: 0,
            acknowledged: 0,
            repeats: 0,
            rounds: 0,
            last_id: 0,
            request_id: 0,
            answered: false,
            refused: false,
            deadline: Instant::FAR_FUTURE,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn is_opened(&self) -> bool {
        self.state == State::Opened
    }

    /// Whether no request of the peer was answered since the layer started.
    pub(crate) fn is_unasked(&self) -> bool {
        matches!(self.state, State::ReqSent | State::AckRcvd) && self.disputes == 0
    }

    /// Whether the peer rejects a needed option, or never agrees.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused
    }

    /// Whether Echo-Requests and Echo-Replies are handled in this state.
    pub(crate) fn heeds_echo(&self) -> bool {
        step(self.state, Event::Echo).0.has(Actions::SER)
    }

    /// When the Restart timer expires.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Opens the layer with the options that a LAC negotiated (RFC 2661, section 4.4.5).
    pub(crate) fn assume_opened(&mut self) {
        self.state = State::Opened;
        self.answered = true;
        self.deadline = Instant::FAR_FUTURE;
    }

    /// Handles an event without a packet: Up, Down, Open, Close, or a reject of the whole protocol.
    pub(crate) fn fire(
        &mut self,
        event: Event,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Signals {
        self.act(event, &NO_PACKET, None, compression, ctx)
    }

    /// Fires the Restart timer if it is due.
    pub(crate) fn handle_timeout(
        &mut self,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Signals {
        if self.deadline > ctx.now {
            return Signals::default();
        }
        match self.tries {
            0 if self.peer_may_be_open() => {
                // Close and then Open take the table to Stopping.
                self.fire(Event::Close, compression, ctx);
                self.fire(Event::Open, compression, ctx)
            }
            0 => self.fire(Event::TimeoutMinus, compression, ctx),
            _ => self.fire(Event::TimeoutPlus, compression, ctx),
        }
    }

    /// Whether giving up silently could leave a network protocol open on the peer's side alone: the peer has our
    /// acknowledgement, and its own may be lost. LCP needs no such care, because echoes would time out.
    fn peer_may_be_open(&self) -> bool {
        self.state == State::AckSent && N::PROTOCOL != protocol::LCP
    }

    /// Takes a packet with one of the codes that all control protocols share, or an unknown one.
    pub(crate) fn handle(
        &mut self,
        packet: &Control<'_>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Result<Signals, Discard> {
        if matches!(self.state, State::Initial | State::Starting) {
            return Err(Discard::Phase);
        }
        let (event, reply) = match packet.code {
            code::CONFIGURE_REQUEST if self.is_repeated(packet) => {
                self.repeats -= 1;
                let head = (N::PROTOCOL, code::CONFIGURE_ACK, packet.identifier);
                ctx.out
                    .control(compression, head, |out| out.extend_from_slice(packet.data));
                return Ok(Signals::default());
            }
            code::CONFIGURE_REQUEST => self.judge(packet, ctx)?,
            code::CONFIGURE_ACK | code::CONFIGURE_NAK | code::CONFIGURE_REJECT
                if matches!(self.state, State::Closed | State::Stopped) =>
            {
                // In this state the table answers every request with a Terminate-Ack.
                (Event::Ack, None)
            }
            code::CONFIGURE_ACK => {
                self.check_answer(packet)?;
                let sent = &mut ctx.out.scratch;
                sent.clear();
                self.negotiation.request(sent);
                if packet.data != sent.as_slice() {
                    return Err(Discard::Stray);
                }
                self.answered = true;
                match self.negotiation.is_complete() {
                    true => (self.end_round(Event::Ack, ctx), None),
                    false => {
                        self.refused = true;
                        (Event::RejectBad, None)
                    }
                }
            }
            code::CONFIGURE_NAK | code::CONFIGURE_REJECT => (self.give_way(packet, ctx)?, None),
            code::TERMINATE_REQUEST => (Event::TerminateRequest, None),
            code::TERMINATE_ACK => (Event::TerminateAck, None),
            code::CODE_REJECT => match packet.data.first() {
                Some(code::CONFIGURE_REQUEST..=code::CODE_REJECT) => (Event::RejectBad, None),
                Some(_) => (Event::RejectGood, None),
                None => return Err(Discard::Malformed),
            },
            _ => (Event::UnknownCode, None),
        };
        let mut signals = self.act(event, packet, reply, compression, ctx);
        signals.by_peer = event == Event::TerminateRequest;
        Ok(signals)
    }

    /// The peer repeats the acknowledged request.
    fn is_repeated(&self, packet: &Control<'_>) -> bool {
        self.is_opened()
            && self.repeats > 0
            && self.acknowledged_id == packet.identifier
            && self.acknowledged == digest(packet.data)
    }

    /// Whether a reply is the first one to our latest request.
    fn check_answer(&self, packet: &Control<'_>) -> Result<(), Discard> {
        let asked = match self.state {
            State::ReqSent | State::AckRcvd | State::AckSent | State::Opened => !self.answered,
            State::Initial
            | State::Starting
            | State::Closed
            | State::Stopped
            | State::Closing
            | State::Stopping => false,
        };
        match asked && packet.identifier == self.request_id {
            true => Ok(()),
            false => Err(Discard::Stray),
        }
    }

    /// Judges a Configure-Request; leaves the options of a Nak or Reject in the scratch.
    fn judge(
        &mut self,
        packet: &Control<'_>,
        ctx: &mut Context<'_>,
    ) -> Result<(Event, Option<Reply>), Discard> {
        let options = Options::new(packet.data);
        if !options.are_whole() {
            return Err(Discard::Malformed);
        }
        let scratch = &mut ctx.out.scratch;
        scratch.clear();
        let may_nak = self.failures < ctx.config.failure_max;
        let mut code = code::CONFIGURE_ACK;
        for option in options {
            match self.negotiation.judge(&option, ctx.random) {
                Judgement::Agree => {}
                Judgement::Suggest(value, length) if may_nak => {
                    // Options that do not fit are reported in the next reply.
                    if code != code::CONFIGURE_REJECT && scratch.len() < SUGGESTED_MAX {
                        code = code::CONFIGURE_NAK;
                        emit_option(scratch, option.kind, &value[..usize::from(length)]);
                    }
                }
                Judgement::Suggest(..) | Judgement::Reject => {
                    if code != code::CONFIGURE_REJECT {
                        code = code::CONFIGURE_REJECT;
                        scratch.clear();
                    }
                    scratch.extend_from_slice(option.octets);
                }
            }
        }
        let missing = self
            .negotiation
            .missing(options, self.failures, ctx.random)
            .filter(|_| code != code::CONFIGURE_REJECT && may_nak);
        if let Some((kind, Judgement::Suggest(value, length))) = missing {
            code = code::CONFIGURE_NAK;
            emit_option(scratch, kind, &value[..usize::from(length)]);
        }
        // Limits the replies to a peer that insists on its options.
        if code != code::CONFIGURE_ACK && self.disputes >= rounds_max(ctx.config) {
            self.refused = true;
            return Ok((Event::RejectBad, None));
        }
        let event = match code {
            code::CONFIGURE_ACK => Event::RequestGood,
            _ => Event::RequestBad,
        };
        Ok((event, Some(Reply { code })))
    }

    /// Takes a Configure-Nak or -Reject.
    fn give_way(&mut self, packet: &Control<'_>, ctx: &mut Context<'_>) -> Result<Event, Discard> {
        self.check_answer(packet)?;
        let options = Options::new(packet.data);
        if !options.are_whole() {
            return Err(Discard::Malformed);
        }
        self.answered = true;
        for option in options {
            if packet.code == code::CONFIGURE_NAK {
                self.negotiation.adjust(&option, ctx.config, ctx.random);
            } else if !self.negotiation.withdraw(option.kind) {
                self.refused = true;
                return Ok(Event::RejectBad);
            }
        }
        Ok(self.end_round(Event::Nak, ctx))
    }

    /// Limits a peer that answers but never agrees. Each answer restores the Restart counter, so that counter never
    /// expires.
    fn end_round(&mut self, event: Event, ctx: &Context<'_>) -> Event {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= rounds_max(ctx.config) {
            return event;
        }
        self.refused = true;
        Event::RejectBad
    }

    /// Takes one transition of the table.
    fn act(
        &mut self,
        event: Event,
        packet: &Control<'_>,
        reply: Option<Reply>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Signals {
        let (actions, next) = step(self.state, event);
        let has = |action| actions.has(action);
        // Through Ack-Rcvd the table keeps the remaining count, which the next negotiation would start with.
        if has(Actions::IRC) || has(Actions::TLU) {
            self.tries = match has(Actions::STR) {
                true => ctx.config.terminate_max,
                false => ctx.config.configure_max,
            };
        }
        if has(Actions::ZRC) {
            self.tries = 0;
            self.deadline = ctx.now + ctx.config.restart;
        }
        if has(Actions::TLU) {
            self.rounds = 0;
        }
        // Send the request before the reply. A peer in Ack-Sent that received the reply first would open, and the
        // request would close it again; the same would happen to us, without end.
        if has(Actions::SCR) {
            // A retransmission may reuse its identifier. A request that follows a reply may not (RFC 1661, section
            // 5.1).
            if event != Event::TimeoutPlus || self.answered {
                self.request_id = self.next_id();
            }
            self.answered = false;
            let head = (N::PROTOCOL, code::CONFIGURE_REQUEST, self.request_id);
            let negotiation = &self.negotiation;
            ctx.out
                .control(compression, head, |out| negotiation.request(out));
            self.spend_try(ctx);
        }
        if has(Actions::SCA) || has(Actions::SCN) {
            self.reply(packet, reply, compression, ctx);
        }
        if has(Actions::STR) {
            let head = (N::PROTOCOL, code::TERMINATE_REQUEST, self.next_id());
            ctx.out.control(compression, head, |_| {});
            self.spend_try(ctx);
        }
        if has(Actions::STA) {
            let head = (N::PROTOCOL, code::TERMINATE_ACK, packet.identifier);
            ctx.out.control(compression, head, |_| {});
        }
        if has(Actions::SCJ) {
            self.reject_code(packet, compression, ctx);
        }
        self.state = next;
        if !next.is_timed() {
            self.deadline = Instant::FAR_FUTURE;
        }
        Signals {
            up: has(Actions::TLU),
            down: has(Actions::TLD),
            finished: has(Actions::TLF),
            by_peer: false,
        }
    }

    /// A new identifier, for a packet that is not a reply.
    pub(crate) fn next_id(&mut self) -> u8 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    fn spend_try(&mut self, ctx: &Context<'_>) {
        self.tries = self.tries.saturating_sub(1);
        self.deadline = ctx.now + ctx.config.restart;
    }

    fn reply(
        &mut self,
        packet: &Control<'_>,
        reply: Option<Reply>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) {
        let Some(Reply { code }) = reply else {
            return;
        };
        let head = (N::PROTOCOL, code, packet.identifier);
        if code == code::CONFIGURE_ACK {
            self.failures = 0;
            self.disputes = 0;
            self.acknowledged_id = packet.identifier;
            self.acknowledged = digest(packet.data);
            self.repeats = ctx.config.configure_max;
            self.negotiation.agree(Options::new(packet.data));
            ctx.out
                .control(compression, head, |out| out.extend_from_slice(packet.data));
        } else {
            self.disputes = self.disputes.saturating_add(1);
            if code == code::CONFIGURE_NAK {
                self.failures = self.failures.saturating_add(1);
            }
            let options = core::mem::take(&mut ctx.out.scratch);
            ctx.out
                .control(compression, head, |out| out.extend_from_slice(&options));
            ctx.out.scratch = options;
        }
    }

    fn reject_code(
        &mut self,
        packet: &Control<'_>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) {
        let head = (N::PROTOCOL, code::CODE_REJECT, self.next_id());
        // A copy, truncated to a size that every peer accepts (RFC 1661, section 5.6). Its length field is the
        // original's.
        let kept = &packet.data[..packet.data.len().min(REJECTED_MAX)];
        let length = (packet.data.len() + HEADER) as u16;
        ctx.out.control(compression, head, |out| {
            out.extend_from_slice(&[packet.code, packet.identifier]);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(kept);
        });
    }
}

impl<N: Negotiation> Part for Layer<N> {
    const NAME: &'static str = N::NAME;

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            negotiation,
            state,
            tries,
            failures,
            disputes,
            acknowledged_id,
            acknowledged,
            repeats,
            rounds,
            last_id,
            request_id,
            answered,
            refused,
            deadline,
        } = self;
        codec.choice(1, "state", state, snapshot::STATES);
        codec.number(2, "tries", tries);
        codec.number(3, "failures", failures);
        codec.number(4, "disputes", disputes);
        // The identifier, then the digest.
        let [a, b, c, d] = acknowledged.to_be_bytes();
        let mut octets = [*acknowledged_id, a, b, c, d];
        codec.array(5, "acknowledged", &mut octets);
        let [id, digest @ ..] = octets;
        (*acknowledged_id, *acknowledged) = (id, u32::from_be_bytes(digest));
        // Both start at the configured number of tries.
        snapshot::number_or(codec, 6, "repeats", repeats, *tries);
        codec.number(7, "rounds", rounds);
        codec.number(8, "last_id", last_id);
        snapshot::number_or(codec, 9, "request_id", request_id, *last_id);
        snapshot::number_or(codec, 10, "answered", answered, true);
        codec.number(11, "refused", refused);
        codec.deadline(12, "deadline", deadline);
        negotiation.fields(codec);
    }
}

/// A digest that tells a peer's requests apart (FNV-1a).
fn digest(options: &[u8]) -> u32 {
    let step = |digest: u32, &octet: &u8| (digest ^ u32::from(octet)).wrapping_mul(0x0100_0193);
    options.iter().fold(0x811c_9dc5, step)
}

/// Replies to our requests, and Naks of the peer's, before the layer gives up. A client that gets three values and
/// drops three options needs about four.
fn rounds_max(config: &Config) -> u8 {
    let naks = config.failure_max.saturating_mul(2);
    config.configure_max.saturating_add(naks)
}

/// Size of a Nak's options, in bytes, after which no more options are added.
const SUGGESTED_MAX: usize = 128;

/// Bytes of a rejected packet that are returned to the peer.
pub(crate) const REJECTED_MAX: usize = 64;

const NO_PACKET: Control<'static> = Control {
    code: 0,
    identifier: 0,
    data: &[],
};
