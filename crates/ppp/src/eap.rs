//! EAP as a pass-through authenticator (RFC 3748, section 2.3): the link asks for the identity, and every Response goes to
//! the owner, whose server decides about the next Request (RFC 3579). No method is known here.

use base::snapshot::{Codec, Part};
use base::{Duration, Redacted};
use wire::ppp::control::HEADER;
use wire::ppp::{Compression, eap, protocol};

use crate::config::Config;
use crate::event::{Claim, Proof};
use crate::layer::Context;
use crate::snapshot;

/// The most Requests of one authentication. EAP-TLS with a long chain of certificates takes about 30.
const ROUNDS_MAX: u8 = 100;
/// The longest state of the owner's: no packet of RADIUS is longer (RFC 2865, section 3).
const STATE_OCTETS_MAX: usize = 4_096;
/// The longest identity, as RADIUS carries it (RFC 2865, section 5).
const IDENTITY_OCTETS_MAX: usize = 253;

/// The owner's next Request to a peer that authenticates by EAP.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// The EAP packet.
    pub request: &'a [u8],
    /// What the owner gets back with the peer's Response: [`Proof::Eap`]. At most 4,096 bytes.
    pub state: &'a [u8],
    /// How long the peer has before the Request is sent again; `None`: [`Config::restart`].
    pub interval: Option<Duration>,
}

/// One authentication.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    /// The Request that the peer has to answer.
    request: Box<[u8]>,
    /// What the peer answered to the Request for its identity.
    identity: Option<Box<[u8]>>,
    state: Box<[u8]>,
    interval: Option<Duration>,
    rounds: u8,
}

impl Exchange {
    /// Starts with a Request for the peer's identity.
    pub(crate) fn new(identifier: u8) -> Self {
        Self {
            request: eap::identity_request(identifier)[..].into(),
            identity: None,
            state: Box::default(),
            interval: None,
            rounds: 0,
        }
    }

    /// Sends the present Request.
    pub(crate) fn send(&self, compression: Compression, ctx: &mut Context<'_>) {
        let (&[code, identifier, _, _], data) = self
            .request
            .split_first_chunk::<HEADER>()
            .expect("every Request was checked");
        let head = (protocol::EAP, code, identifier);
        ctx.out
            .control(compression, head, |out| out.extend_from_slice(data));
    }

    /// The time until the Request is sent again.
    pub(crate) fn interval(&self, config: &Config) -> Duration {
        self.interval.unwrap_or(config.restart)
    }

    /// The claim in a Response. `None` if the identity was asked for, and this is none.
    pub(crate) fn claim(&mut self, packet: &eap::Packet<'_>, mtu: u16) -> Option<Claim> {
        if self.identity.is_none() {
            let fits = (1..=IDENTITY_OCTETS_MAX).contains(&packet.data.len());
            if packet.kind != eap::kind::IDENTITY || !fits {
                return None;
            }
            self.identity = Some(packet.data.into());
        }
        Some(Claim {
            name: self.identity.clone()?,
            proof: Proof::Eap {
                identifier: packet.identifier,
                packet: Redacted::new(packet.octets.into()),
                state: core::mem::take(&mut self.state),
                mtu,
            },
        })
    }

    /// Takes the next Request, and returns its identifier. `None` if it is no Request, the peer's MRU is too small for
    /// it, the state is too long, or there were too many.
    pub(crate) fn go_on(&mut self, challenge: Challenge<'_>, mru: u16) -> Option<u8> {
        let packet = eap::Packet::parse(challenge.request)?;
        let fits =
            packet.octets.len() <= usize::from(mru) && challenge.state.len() <= STATE_OCTETS_MAX;
        if packet.code != eap::code::REQUEST || !fits || self.rounds >= ROUNDS_MAX {
            return None;
        }
        self.rounds += 1;
        self.request = packet.octets.into();
        self.state = challenge.state.into();
        self.interval = challenge.interval;
        Some(packet.identifier)
    }
}

/// Whether octets are a Request and nothing else.
fn is_request(octets: &[u8]) -> bool {
    eap::Packet::parse(octets)
        .is_some_and(|one| one.code == eap::code::REQUEST && one.octets.len() == octets.len())
}

impl Part for Exchange {
    const NAME: &'static str = "eap";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self {
            request,
            identity,
            state,
            interval,
            rounds,
        } = self;
        codec.boxed(1, "request", request, eap::LENGTH_MAX);
        if C::READS && !is_request(request) {
            codec.refuse();
        }
        snapshot::maybe_octets(codec, 2, "identity", identity, IDENTITY_OCTETS_MAX);
        codec.boxed(3, "state", state, STATE_OCTETS_MAX);
        let mut interval_ns = interval.map(Duration::as_nanos);
        codec.maybe(4, "interval_ns", &mut interval_ns);
        *interval = interval_ns.map(Duration::from_nanos);
        codec.number(5, "rounds", rounds);
    }
}
