//! Authentication by PAP (RFC 1334, section 2) and CHAP with MD5 (RFC 1994): the network's side ([`Authenticator`]) and
//! the client's side ([`Applicant`]).

use base::{Instant, Redacted};
use wire::ppp::control::Control;
use wire::ppp::{Compression, chap, pap, protocol};

use crate::config::Authentication;
use crate::event::{Claim, Discard, Proof};
use crate::layer::{Context, retimed};
use crate::text;

/// Bytes of our challenges.
const CHALLENGE: usize = 16;

/// The name and secret that a client authenticates with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The name; at most 255 octets of it are sent.
    pub name: Box<[u8]>,
    /// The password or secret; by PAP at most 255 octets of it are sent.
    pub secret: Redacted<Box<[u8]>>,
}

/// The state of an authenticator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The peer need not authenticate.
    Idle,
    /// PAP: waiting for a request.
    Awaiting,
    /// CHAP: waiting for the response to a challenge.
    Challenged,
    /// Waiting for the owner's answer.
    Claimed,
    /// The owner has answered.
    Answered { accepted: bool },
}

/// The network's side.
#[derive(Clone, Debug)]
pub(crate) struct Authenticator {
    stage: Stage,
    by: Authentication,
    /// The identifier of the challenge, or of the PAP request that is or was answered.
    id: u8,
    tries: u8,
    challenge: [u8; CHALLENGE],
    /// When to challenge again.
    deadline: Instant,
}

impl Authenticator {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Idle,
            by: Authentication::Pap,
            id: 0,
            tries: 0,
            challenge: [0; CHALLENGE],
            deadline: Instant::FAR_FUTURE,
        }
    }

    /// The next deadline.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the owner accepted the peer.
    pub(crate) fn has_accepted(&self) -> bool {
        self.stage == Stage::Answered { accepted: true }
    }

    /// LCP is down: forgets the authentication.
    pub(crate) fn reset(&mut self) {
        self.stage = Stage::Idle;
        self.deadline = Instant::FAR_FUTURE;
    }

    /// LCP is up, and the peer agreed to this authentication protocol.
    pub(crate) fn start(
        &mut self,
        by: Authentication,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) {
        self.by = by;
        match by {
            Authentication::Pap => self.stage = Stage::Awaiting,
            Authentication::ChapMd5 => {
                self.tries = ctx.config.configure_max;
                self.renew(ctx);
                self.challenge(compression, ctx);
            }
        }
    }

    /// Reports a claim without an exchange: a proxy supplied it, or no authentication is required.
    pub(crate) fn claimed(&mut self) {
        self.stage = Stage::Claimed;
        self.deadline = Instant::FAR_FUTURE;
    }

    fn renew(&mut self, ctx: &mut Context<'_>) {
        self.id = self.id.wrapping_add(1);
        ctx.random.fill(&mut self.challenge);
        self.stage = Stage::Challenged;
    }

    fn challenge(&mut self, compression: Compression, ctx: &mut Context<'_>) {
        self.tries = self.tries.saturating_sub(1);
        self.deadline = ctx.now + ctx.config.restart;
        let challenge = chap::Value {
            value: &self.challenge,
            name: &ctx.config.name,
        };
        let head = (protocol::CHAP, chap::code::CHALLENGE, self.id);
        ctx.out
            .control(compression, head, |out| challenge.emit(out));
    }

    /// Sends the next challenge if it is due. `false` if the peer answered none of them.
    pub(crate) fn handle_timeout(
        &mut self,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> bool {
        if self.deadline > ctx.now {
            return true;
        }
        match self.stage {
            Stage::Challenged if self.tries == 0 => {
                self.deadline = Instant::FAR_FUTURE;
                return false;
            }
            Stage::Challenged => self.challenge(compression, ctx),
            // A challenge to a peer that is up (RFC 1994, section 2).
            Stage::Answered { accepted: true } => {
                self.tries = ctx.config.configure_max;
                self.renew(ctx);
                self.challenge(compression, ctx);
            }
            Stage::Idle | Stage::Awaiting | Stage::Claimed | Stage::Answered { .. } => {
                self.deadline = Instant::FAR_FUTURE;
            }
        }
        true
    }

    /// Takes a PAP request. A claim goes to the owner.
    pub(crate) fn handle_pap(
        &mut self,
        packet: &Control<'_>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Result<Option<Claim>, Discard> {
        if self.by != Authentication::Pap || packet.code != pap::code::REQUEST {
            return Err(Discard::Stray);
        }
        match self.stage {
            Stage::Awaiting => {}
            // The answer was lost (RFC 1334, section 2.2.1).
            Stage::Answered { accepted } => {
                self.id = packet.identifier;
                self.reply(accepted, b"", compression, ctx);
                return Ok(None);
            }
            Stage::Claimed => {
                self.id = packet.identifier;
                return Ok(None);
            }
            Stage::Idle | Stage::Challenged => return Err(Discard::Phase),
        }
        let request = pap::Request::parse(packet.data).ok_or(Discard::Malformed)?;
        self.id = packet.identifier;
        self.stage = Stage::Claimed;
        Ok(Some(Claim {
            name: request.peer_id.into(),
            proof: Proof::Pap {
                identifier: self.id,
                password: Redacted::new(request.password.into()),
            },
        }))
    }

    /// Takes a CHAP response. A claim goes to the owner.
    pub(crate) fn handle_response(
        &mut self,
        packet: &Control<'_>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Result<Option<Claim>, Discard> {
        // A stale identifier: the answer to an earlier challenge (RFC 1994, section 4.1).
        if self.by != Authentication::ChapMd5 || packet.identifier != self.id {
            return Err(Discard::Stray);
        }
        match self.stage {
            Stage::Challenged => {}
            Stage::Answered { accepted } => {
                self.reply(accepted, b"", compression, ctx);
                return Ok(None);
            }
            Stage::Claimed => return Ok(None),
            Stage::Idle | Stage::Awaiting => return Err(Discard::Phase),
        }
        let response = chap::Value::parse(packet.data).ok_or(Discard::Malformed)?;
        // A response of a wrong length counts as a wrong response.
        let value = response.value.try_into().unwrap_or([0; 16]);
        self.stage = Stage::Claimed;
        self.deadline = Instant::FAR_FUTURE;
        Ok(Some(Claim {
            name: response.name[..response.name.len().min(255)].into(),
            proof: Proof::Chap {
                identifier: self.id,
                challenge: self.challenge.into(),
                response: value,
            },
        }))
    }

    /// Takes the owner's answer. `false` if no claim waits for one.
    pub(crate) fn answer(
        &mut self,
        accepted: bool,
        message: &[u8],
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> bool {
        if self.stage != Stage::Claimed {
            return false;
        }
        self.stage = Stage::Answered { accepted };
        self.reply(accepted, message, compression, ctx);
        let again = ctx.config.rechallenge_interval;
        let challenges = self.by == Authentication::ChapMd5 && accepted;
        if challenges && again != base::Duration::ZERO {
            self.deadline = ctx.now + again;
        }
        true
    }

    /// Applies the interval between challenges of a new configuration.
    pub(crate) fn retime(&mut self, ctx: &mut Context<'_>) {
        if self.has_accepted() {
            let interval = ctx.config.rechallenge_interval;
            self.deadline = retimed(self.deadline, interval, ctx);
        }
    }

    /// Takes the owner's answer about a peer that was not asked to authenticate. The peer gets no reply.
    pub(crate) fn answer_silently(&mut self, accepted: bool) {
        self.stage = Stage::Answered { accepted };
    }

    /// Whether a claim waits for the owner's answer.
    pub(crate) fn is_claimed(&self) -> bool {
        self.stage == Stage::Claimed
    }

    /// Takes the identifier of a proxied exchange, which the reply must have (RFC 2661, section 4.4.5).
    pub(crate) fn take_over(&mut self, by: Authentication, id: u8) {
        self.by = by;
        self.id = id;
        self.claimed();
    }

    fn reply(
        &self,
        accepted: bool,
        message: &[u8],
        compression: Compression,
        ctx: &mut Context<'_>,
    ) {
        let message = &message[..message.len().min(255)];
        match self.by {
            Authentication::Pap => {
                let code = match accepted {
                    true => pap::code::ACK,
                    false => pap::code::NAK,
                };
                let head = (protocol::PAP, code, self.id);
                ctx.out
                    .control(compression, head, |out| pap::emit_message(out, message));
            }
            Authentication::ChapMd5 => {
                let code = match accepted {
                    true => chap::code::SUCCESS,
                    false => chap::code::FAILURE,
                };
                let head = (protocol::CHAP, code, self.id);
                ctx.out
                    .control(compression, head, |out| out.extend_from_slice(message));
            }
        }
    }
}

/// The outcome of a packet for an applicant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not decided yet.
    Open,
    /// The peer accepted us.
    Accepted,
    /// The peer refused us.
    Refused,
    /// The peer does not answer.
    Silent,
}

/// The client's side.
#[derive(Clone, Debug)]
pub(crate) struct Applicant {
    credentials: Credentials,
    by: Authentication,
    /// The response to the latest challenge.
    response: [u8; 16],
    /// The identifier of our unanswered PAP request or CHAP response.
    id: u8,
    tries: u8,
    deadline: Instant,
    /// The peer accepted us.
    accepted: bool,
    /// The text of the peer's latest refusal, escaped and bounded.
    refusal: Box<str>,
}

impl Applicant {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self {
            credentials,
            by: Authentication::Pap,
            response: [0; 16],
            id: 0,
            tries: 0,
            deadline: Instant::FAR_FUTURE,
            accepted: false,
            refusal: Box::default(),
        }
    }

    pub(crate) fn refusal(&self) -> &str {
        &self.refusal
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.accepted
    }

    pub(crate) fn reset(&mut self) {
        self.accepted = false;
        self.deadline = Instant::FAR_FUTURE;
    }

    /// LCP is up, and the peer requires this authentication protocol.
    pub(crate) fn start(
        &mut self,
        by: Authentication,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) {
        self.by = by;
        if by == Authentication::Pap {
            self.id = self.id.wrapping_add(1);
            self.tries = ctx.config.configure_max;
            self.send(compression, ctx);
        }
    }

    /// Sends the PAP request or CHAP response again, since Success and Failure may be lost too.
    fn send(&mut self, compression: Compression, ctx: &mut Context<'_>) {
        self.tries = self.tries.saturating_sub(1);
        self.deadline = ctx.now + ctx.config.restart;
        if self.by == Authentication::ChapMd5 {
            let response = chap::Value {
                value: &self.response,
                name: &self.credentials.name,
            };
            let head = (protocol::CHAP, chap::code::RESPONSE, self.id);
            ctx.out.control(compression, head, |out| response.emit(out));
            return;
        }
        let request = pap::Request {
            peer_id: &self.credentials.name,
            password: self.credentials.secret.reveal(),
        };
        let head = (protocol::PAP, pap::code::REQUEST, self.id);
        ctx.out.control(compression, head, |out| request.emit(out));
    }

    pub(crate) fn handle_timeout(
        &mut self,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Outcome {
        if self.deadline > ctx.now {
            return Outcome::Open;
        }
        if self.tries == 0 {
            self.deadline = Instant::FAR_FUTURE;
            return Outcome::Silent;
        }
        self.send(compression, ctx);
        Outcome::Open
    }

    /// Takes a PAP answer.
    pub(crate) fn handle_pap(&mut self, packet: &Control<'_>) -> Result<Outcome, Discard> {
        // A repeated answer is ignored.
        if packet.identifier != self.id || self.deadline == Instant::FAR_FUTURE {
            return Err(Discard::Stray);
        }
        let outcome = match packet.code {
            pap::code::ACK => Outcome::Accepted,
            pap::code::NAK => Outcome::Refused,
            _ => return Err(Discard::Stray),
        };
        self.deadline = Instant::FAR_FUTURE;
        self.accepted = outcome == Outcome::Accepted;
        if outcome == Outcome::Refused {
            self.refusal = text::shown(pap::message(packet.data));
        }
        Ok(outcome)
    }

    /// Takes a CHAP packet: a challenge, Success or Failure.
    pub(crate) fn handle_chap(
        &mut self,
        packet: &Control<'_>,
        compression: Compression,
        ctx: &mut Context<'_>,
    ) -> Result<Outcome, Discard> {
        match packet.code {
            chap::code::CHALLENGE => {
                let challenge = chap::Value::parse(packet.data).ok_or(Discard::Malformed)?;
                self.id = packet.identifier;
                let secret = self.credentials.secret.reveal();
                self.response = chap::md5_response(self.id, secret, challenge.value);
                self.by = Authentication::ChapMd5;
                self.tries = ctx.config.configure_max;
                self.send(compression, ctx);
                Ok(Outcome::Open)
            }
            chap::code::SUCCESS | chap::code::FAILURE if packet.identifier != self.id => {
                Err(Discard::Stray)
            }
            chap::code::SUCCESS => {
                self.deadline = Instant::FAR_FUTURE;
                match core::mem::replace(&mut self.accepted, true) {
                    true => Ok(Outcome::Open),
                    false => Ok(Outcome::Accepted),
                }
            }
            chap::code::FAILURE => {
                self.deadline = Instant::FAR_FUTURE;
                self.accepted = false;
                self.refusal = text::shown(packet.data);
                Ok(Outcome::Refused)
            }
            _ => Err(Discard::Stray),
        }
    }
}
