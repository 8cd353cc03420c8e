//! Authentication of peers ([`Authenticator`]) by PAP (RFC 1334, section 2), CHAP with MD5 (RFC 1994), MS-CHAP version 2
//! (RFC 2759), and EAP (RFC 3748), which `eap` passes through to the owner's server. `applicant` has the client's side.

use base::snapshot::Codec;
use base::{Instant, Redacted};
use wire::ppp::control::Control;
use wire::ppp::{Compression, chap, eap, mschap, pap, protocol};

use crate::config::Authentication;
use crate::eap::{Challenge, Exchange};
use crate::event::{Claim, Discard, Proof};
use crate::layer::{Context, retimed};
use crate::snapshot;

/// The longest message of a reply.
const MESSAGE_MAX: usize = 255;
/// Bytes of our challenges.
const CHALLENGE: usize = mschap::CHALLENGE;

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
    /// CHAP and EAP: waiting for the response to a challenge or request.
    Challenged,
    /// Waiting for the owner's answer.
    Claimed,
    /// The owner has answered.
    Answered { accepted: bool },
}

/// The stages, and their codes in a snapshot. The first one takes no octet.
const STAGES: &[(u8, Stage)] = &[
    (0, Stage::Answered { accepted: true }),
    (1, Stage::Answered { accepted: false }),
    (2, Stage::Idle),
    (3, Stage::Awaiting),
    (4, Stage::Challenged),
    (5, Stage::Claimed),
];

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
    /// State that only some protocols have. One pointer, because an owner may have 100,000 links.
    extra: Option<Box<Extra>>,
}

/// State of one protocol.
#[derive(Clone, Debug)]
enum Extra {
    /// The message of the last MS-CHAP Success, which a repeated Response gets again.
    Success(Box<[u8]>),
    /// The exchange of EAP.
    Eap(Exchange),
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
            extra: None,
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
        self.extra = None;
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
            Authentication::ChapMd5 | Authentication::MsChapV2 => {
                self.tries = ctx.config.configure_max;
                self.renew(ctx);
                self.challenge(compression, ctx);
            }
            Authentication::Eap => {
                self.tries = ctx.config.configure_max;
                self.id = self.id.wrapping_add(1);
                self.stage = Stage::Challenged;
                self.extra = Some(Box::new(Extra::Eap(Exchange::new(self.id))));
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
        if let Some(exchange) = self.eap() {
            exchange.send(compression, ctx);
            self.deadline = ctx.now + exchange.interval(ctx.config);
            return;
        }
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
        let by_chap = matches!(self.by, Authentication::ChapMd5 | Authentication::MsChapV2);
        if !by_chap || packet.identifier != self.id {
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
        self.stage = Stage::Claimed;
        self.deadline = Instant::FAR_FUTURE;
        // A response of a wrong length counts as a wrong response.
        let proof = match self.by {
            Authentication::MsChapV2 => Proof::MsChapV2 {
                identifier: self.id,
                challenge: self.challenge,
                response: Box::new(response.value.try_into().unwrap_or([0; mschap::RESPONSE])),
            },
            Authentication::ChapMd5 | Authentication::Pap | Authentication::Eap => Proof::Chap {
                identifier: self.id,
                challenge: self.challenge.into(),
                response: response.value.try_into().unwrap_or([0; 16]),
            },
        };
        Ok(Some(Claim {
            name: response.name[..response.name.len().min(255)].into(),
            proof,
        }))
    }

    fn eap(&self) -> Option<&Exchange> {
        match self.extra.as_deref()? {
            Extra::Eap(exchange) => Some(exchange),
            Extra::Success(_) => None,
        }
    }

    fn eap_mut(&mut self) -> Option<&mut Exchange> {
        match self.extra.as_deref_mut()? {
            Extra::Eap(exchange) => Some(exchange),
            Extra::Success(_) => None,
        }
    }

    /// Takes an EAP Response. A claim goes to the owner, for its server.
    pub(crate) fn handle_eap(
        &mut self,
        octets: &[u8],
        (compression, mru): (Compression, u16),
        ctx: &mut Context<'_>,
    ) -> Result<Option<Claim>, Discard> {
        let packet = eap::Packet::parse(octets).ok_or(Discard::Malformed)?;
        // A Response to another Request, or a repeated one, is discarded (RFC 3748, section 4.1).
        if packet.code != eap::code::RESPONSE || packet.identifier != self.id {
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
        let exchange = self.eap_mut().ok_or(Discard::Phase)?;
        let claim = exchange.claim(&packet, mru).ok_or(Discard::Malformed)?;
        self.stage = Stage::Claimed;
        self.deadline = Instant::FAR_FUTURE;
        Ok(Some(claim))
    }

    /// Sends the next EAP Request of the owner's server. `false` if no EAP claim waits for an answer, or the Request
    /// cannot be sent: see [`crate::Link::challenge`].
    pub(crate) fn ask_on(
        &mut self,
        challenge: Challenge<'_>,
        (compression, mru): (Compression, u16),
        ctx: &mut Context<'_>,
    ) -> bool {
        if self.stage != Stage::Claimed {
            return false;
        }
        let Some(exchange) = self.eap_mut() else {
            return false;
        };
        let Some(id) = exchange.go_on(challenge, mru) else {
            return false;
        };
        self.id = id;
        self.stage = Stage::Challenged;
        self.tries = ctx.config.configure_max;
        self.challenge(compression, ctx);
        true
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
        if self.by == Authentication::MsChapV2 && accepted {
            let message = &message[..message.len().min(MESSAGE_MAX)];
            self.extra = Some(Box::new(Extra::Success(message.into())));
        }
        self.reply(accepted, message, compression, ctx);
        let again = ctx.config.rechallenge_interval;
        let by_chap = matches!(self.by, Authentication::ChapMd5 | Authentication::MsChapV2);
        let challenges = by_chap && accepted;
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

    /// Challenges a peer that is up again, because the answer to its latest claim was lost.
    pub(crate) fn challenge_again(&mut self, now: Instant) {
        let by_chap = matches!(self.by, Authentication::ChapMd5 | Authentication::MsChapV2);
        if by_chap && self.is_claimed() {
            self.stage = Stage::Answered { accepted: true };
            self.deadline = now;
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
        let message = &message[..message.len().min(MESSAGE_MAX)];
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
            Authentication::MsChapV2 if accepted => {
                let message: &[u8] = match self.extra.as_deref() {
                    Some(Extra::Success(message)) => message,
                    Some(Extra::Eap(_)) | None => b"",
                };
                let head = (protocol::CHAP, chap::code::SUCCESS, self.id);
                ctx.out
                    .control(compression, head, |out| out.extend_from_slice(message));
            }
            Authentication::MsChapV2 => {
                let otherwise = (mschap::error::AUTHENTICATION_FAILURE, message);
                let (error, text) = mschap::parse_failure(message).unwrap_or(otherwise);
                let mut challenge = [0; CHALLENGE];
                ctx.random.fill(&mut challenge);
                let head = (protocol::CHAP, chap::code::FAILURE, self.id);
                ctx.out.control(compression, head, |out| {
                    mschap::emit_failure(out, error, &challenge, text);
                });
            }
            Authentication::Eap => {
                let code = match accepted {
                    true => eap::code::SUCCESS,
                    false => eap::code::FAILURE,
                };
                // The identifier is that of the Response (RFC 3748, section 4.2).
                ctx.out
                    .control(compression, (protocol::EAP, code, self.id), |_| {});
            }
        }
    }
}

impl Authenticator {
    /// Fields of a link's snapshot.
    pub(crate) fn fields<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            stage,
            by,
            id,
            tries,
            challenge,
            deadline,
            extra,
        } = self;
        codec.choice(21, "stage", stage, STAGES);
        codec.choice(22, "by", by, snapshot::WAYS);
        codec.number(23, "id", id);
        // The next challenge replaces both, so they count only while the peer has not answered the present one.
        let is_asked = *stage == Stage::Challenged;
        let (mut left, mut value) = match is_asked {
            true => (*tries, *challenge),
            false => Default::default(),
        };
        codec.number(24, "tries", &mut left);
        codec.array(25, "challenge", &mut value);
        if C::READS {
            if !is_asked && (left, value) != Default::default() {
                codec.refuse();
            }
            (*tries, *challenge) = (left, value);
        }
        codec.deadline(26, "deadline", deadline);
        exchange_extra(extra, codec);
    }
}

/// State that only some protocols have: of one protocol at most.
fn exchange_extra<C: Codec>(extra: &mut Option<Box<Extra>>, codec: &mut C) {
    let mut success = match extra.as_deref_mut() {
        Some(Extra::Success(message)) => Some(core::mem::take(message)),
        Some(Extra::Eap(_)) | None => None,
    };
    snapshot::maybe_octets(codec, 27, "success", &mut success, MESSAGE_MAX);
    let mut exchange = match extra.as_deref_mut() {
        Some(Extra::Eap(exchange)) => Some(core::mem::take(exchange)),
        Some(Extra::Success(_)) | None => None,
    };
    codec.maybe_part(28, "eap", &mut exchange, Exchange::default);
    if C::READS && success.is_some() && exchange.is_some() {
        codec.refuse();
    }
    let new = (success.map(Extra::Success)).or(exchange.map(Extra::Eap));
    match (extra.as_deref_mut(), new) {
        (Some(place), Some(new)) => *place = new,
        (_, new) => *extra = new.map(Box::new),
    }
}
