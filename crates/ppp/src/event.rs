//! The events that a link reports to its owner, the reasons why a link ends, and the reasons to ignore a frame.

use core::fmt;
use core::net::Ipv4Addr;

use base::Redacted;
use wire::ppp::mschap;

/// An event that a link reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// LCP is open.
    LcpUp,
    /// The peer claims a name. Answer with [`crate::Link::accept`], [`crate::Link::refuse`], or by EAP with
    /// [`crate::Link::challenge`]. The next claim is reported after the answer.
    Authenticate(Claim),
    /// We were authenticated by the peer (client side).
    Authenticated,
    /// The IPv4 data path is open.
    Ipv4Up(Ipv4Settings),
    /// The IPv4 data path is closed.
    Ipv4Down,
    /// The IPv6 data path is open.
    Ipv6Up(Ipv6Settings),
    /// The IPv6 data path is closed.
    Ipv6Down,
    /// The link ended. This is its last event.
    Ended(LinkEnd),
}

/// The name that a peer claims, and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name, at most 255 octets.
    pub name: Box<[u8]>,
    /// Its proof.
    pub proof: Proof,
}

impl Claim {
    /// The claim of a peer that need not authenticate.
    pub(crate) fn none() -> Self {
        Self {
            name: Box::default(),
            proof: Proof::None,
        }
    }

    /// The identifier that the reply to the peer must carry.
    pub(crate) fn identifier(&self) -> u8 {
        match self.proof {
            Proof::None => 0,
            Proof::Pap { identifier, .. }
            | Proof::Chap { identifier, .. }
            | Proof::MsChapV2 { identifier, .. }
            | Proof::Eap { identifier, .. } => identifier,
        }
    }
}

/// The proof of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The peer need not authenticate.
    None,
    /// PAP: the password itself.
    Pap {
        /// The identifier of the request.
        identifier: u8,
        /// At most 255 octets.
        password: Redacted<Box<[u8]>>,
    },
    /// CHAP with MD5: a challenge and the response to it (RFC 1994, section 4.1).
    Chap {
        /// The identifier of both.
        identifier: u8,
        /// The challenge.
        challenge: Box<[u8]>,
        /// The response.
        response: [u8; 16],
    },
    /// MS-CHAP version 2 (RFC 2759). To accept it takes the authenticator response: see [`crate::Link::accept`].
    MsChapV2 {
        /// The identifier of both.
        identifier: u8,
        /// The challenge.
        challenge: [u8; mschap::CHALLENGE],
        /// The value of the response: [`mschap::Response`].
        response: Box<[u8; mschap::RESPONSE]>,
    },
    /// EAP (RFC 3748): a Response, which a server judges.
    Eap {
        /// Its identifier.
        identifier: u8,
        /// The whole packet. The first one of an authentication has the identity.
        packet: Redacted<Box<[u8]>>,
        /// What the owner gave with the Request: [`crate::Challenge::state`]. Empty for the first one.
        state: Box<[u8]>,
        /// The longest Request that the peer can receive, in bytes: its MRU.
        mtu: u16,
    },
}

/// The values that IPCP negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Settings {
    /// Our address.
    pub local: Ipv4Addr,
    /// The peer's address.
    pub peer: Ipv4Addr,
    /// DNS servers that the peer assigned to us (client side; RFC 1877), or that we assigned to it.
    pub dns: [Option<Ipv4Addr>; 2],
}

/// The values that IPv6CP negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Settings {
    /// Our interface identifier.
    pub local: u64,
    /// The peer's interface identifier; 0 if it gave none.
    pub peer: u64,
}

/// Why a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEnd {
    /// The owner closed it.
    Closed,
    /// The peer sent a Terminate-Request.
    PeerTerminated,
    /// The peer did not answer our Configure-Requests.
    NoAnswer,
    /// The peer rejects a code or LCP itself.
    Rejected,
    /// The peer refuses to authenticate.
    AuthenticationRejected,
    /// Authentication took too long: the peer did not claim a name, or the owner did not answer.
    AuthenticationTimeout,
    /// The owner refused the peer.
    AuthenticationFailed,
    /// The peer refused us (client side).
    RefusedByPeer,
    /// The peer accepted us, but did not prove that it knows our password (client side; RFC 2759, section 5).
    UnprovenPeer,
    /// The peer requires an authentication protocol that we do not support or have no credentials for.
    NoCredentials,
    /// The peer did not answer our Echo-Requests.
    EchoTimeout,
    /// The line is looped: we receive our own frames.
    Looped,
    /// No network protocol remains open.
    NoNetwork,
}

impl LinkEnd {
    /// A stable name, for counters and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::PeerTerminated => "peer-terminated",
            Self::NoAnswer => "no-answer",
            Self::Rejected => "rejected",
            Self::AuthenticationRejected => "authentication-rejected",
            Self::AuthenticationTimeout => "authentication-timeout",
            Self::AuthenticationFailed => "authentication-failed",
            Self::RefusedByPeer => "refused-by-peer",
            Self::UnprovenPeer => "unproven-peer",
            Self::NoCredentials => "no-credentials",
            Self::EchoTimeout => "echo-timeout",
            Self::Looped => "looped",
            Self::NoNetwork => "no-network",
        }
    }
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed here",
            Self::PeerTerminated => "the peer ended it",
            Self::NoAnswer => "the peer did not answer",
            Self::Rejected => "the peer rejects what is needed",
            Self::AuthenticationRejected => "the peer refuses to authenticate",
            Self::AuthenticationTimeout => "authentication took too long",
            Self::AuthenticationFailed => "authentication failed",
            Self::RefusedByPeer => "the peer refused us",
            Self::UnprovenPeer => "the peer accepted us without proof that it knows our password",
            Self::NoCredentials => "the peer asks for a proof that we do not have",
            Self::EchoTimeout => "the peer answers no echo",
            Self::Looped => "our own frames come back",
            Self::NoNetwork => "no network protocol is left",
        })
    }
}

/// Why a frame was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discard {
    /// The frame has no protocol number.
    Frame,
    /// A control packet with an impossible length or malformed data.
    Malformed,
    /// A reply that matches no request.
    Stray,
    /// A protocol that is not open in this phase.
    Phase,
    /// An unknown protocol. It was rejected, unless there were too many.
    UnknownProtocol,
    /// More control packets than the limit per second.
    Flood,
    /// The link has ended.
    Ended,
}

impl Discard {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Frame,
        Self::Malformed,
        Self::Stray,
        Self::Phase,
        Self::UnknownProtocol,
        Self::Flood,
        Self::Ended,
    ];

    /// A stable name, for counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frame => "ppp-frame",
            Self::Malformed => "ppp-malformed",
            Self::Stray => "ppp-stray",
            Self::Phase => "ppp-phase",
            Self::UnknownProtocol => "ppp-unknown-protocol",
            Self::Flood => "ppp-flood",
            Self::Ended => "ppp-ended",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "no PPP protocol number",
            Self::Malformed => "a malformed control packet",
            Self::Stray => "a reply to what was not asked",
            Self::Phase => "a protocol whose turn it is not",
            Self::UnknownProtocol => "an unknown protocol",
            Self::Flood => "too many control packets in a second",
            Self::Ended => "the link has ended",
        })
    }
}

impl core::error::Error for Discard {}
