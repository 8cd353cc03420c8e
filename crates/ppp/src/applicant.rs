//! Authentication as a client ([`Applicant`]): PAP (RFC 1334, section 2), CHAP with MD5 (RFC 1994) and MS-CHAP version 2
//! (RFC 2759). By the last one the network proves itself too, that it knows our password.

use base::Instant;
use base::snapshot::{Codec, Part};
use wire::ppp::control::Control;
use wire::ppp::{Compression, chap, mschap, pap, protocol};

use crate::auth::Credentials;
use crate::config::Authentication;
use crate::event::Discard;
use crate::layer::Context;
use crate::{snapshot, text};

/// The outcome of a packet for an applicant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not decided yet.
    Open,
    /// The peer accepted us.
    Accepted,
    /// The peer refused us.
    Refused,
    /// The peer accepted us, but did not prove that it knows our password (RFC 2759, section 5).
    Unproven,
    /// The peer does not answer.
    Silent,
}

/// The client's side.
#[derive(Clone, Debug)]
pub(crate) struct Applicant {
    credentials: Credentials,
    by: Authentication,
    /// The value of the response to the latest challenge.
    response: Box<[u8]>,
    /// MS-CHAP: what the peer's Success must start with.
    expected: Option<Box<[u8; mschap::SUCCESS]>>,
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
            response: Box::default(),
            expected: None,
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
        if self.by != Authentication::Pap {
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
                self.respond(challenge.value, ctx)?;
                self.tries = ctx.config.configure_max;
                self.send(compression, ctx);
                Ok(Outcome::Open)
            }
            chap::code::SUCCESS | chap::code::FAILURE if packet.identifier != self.id => {
                Err(Discard::Stray)
            }
            chap::code::SUCCESS if !self.is_expected(packet.data) => {
                self.deadline = Instant::FAR_FUTURE;
                self.accepted = false;
                Ok(Outcome::Unproven)
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

    /// Computes the response to a challenge.
    fn respond(&mut self, challenge: &[u8], ctx: &mut Context<'_>) -> Result<(), Discard> {
        let secret = self.credentials.secret.reveal();
        if self.by != Authentication::MsChapV2 {
            self.response = chap::md5_response(self.id, secret, challenge)[..].into();
            self.by = Authentication::ChapMd5;
            self.expected = None;
            return Ok(());
        }
        let authenticator = challenge.try_into().map_err(|_| Discard::Malformed)?;
        let mut peer_challenge = [0; mschap::CHALLENGE];
        ctx.random.fill(&mut peer_challenge);
        let challenges = mschap::Challenges {
            authenticator,
            peer: &peer_challenge,
            name: &self.credentials.name,
        };
        let hash = mschap::password_hash(secret);
        let nt_response = challenges.nt_response(&hash);
        let expected = challenges.authenticator_response(&hash, &nt_response);
        let response = mschap::Response {
            peer_challenge: &peer_challenge,
            nt_response: &nt_response,
        };
        self.response = response.to_octets()[..].into();
        self.expected = Some(Box::new(expected));
        Ok(())
    }

    /// Whether a Success proves what it has to. Its hexadecimal digits may be of either case.
    fn is_expected(&self, message: &[u8]) -> bool {
        self.expected.as_ref().is_none_or(|expected| {
            mschap::parse_success(message)
                .is_some_and(|(response, _)| response.eq_ignore_ascii_case(&expected[..]))
        })
    }
}

impl Part for Applicant {
    const NAME: &'static str = "applicant";

    /// All but the credentials, which the configuration has.
    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            credentials: _,
            by,
            response,
            expected,
            id,
            tries,
            deadline,
            accepted,
            refusal,
        } = self;
        codec.choice(1, "by", by, snapshot::WAYS);
        codec.number(2, "id", id);
        codec.number(3, "tries", tries);
        codec.deadline(4, "deadline", deadline);
        codec.number(5, "accepted", accepted);
        codec.boxed(6, "response", response, mschap::RESPONSE);
        if codec.field(7, "expected", expected.is_some()) {
            let message = expected.get_or_insert_with(|| Box::new([0; mschap::SUCCESS]));
            codec.octets(&mut message[..]);
        }
        let mut text = core::mem::take(refusal).into_string();
        codec.text(8, "refusal", &mut text, text::SHOWN_MAX);
        if C::READS && text.contains(char::is_control) {
            codec.refuse();
        }
        *refusal = text.into_boxed_str();
    }
}
