//! The NAS's identity and a request's description of a subscriber, in Access-Requests (RFC 2865, section 4.1)
//! and accounting alike.
//!
//! Implements parts of RFC 2869, section 5.17; RFC 3162, section 2.1; RFC 3579, sections 2 and 3; RFC 2548, section 2.

use core::net::IpAddr;

use wire::ppp::{eap, mschap};
use wire::radius::attribute::{
    ACCT_SESSION_ID, ACCT_TUNNEL_CONNECTION, CALLED_STATION_ID, CALLING_STATION_ID, CHAP_CHALLENGE,
    CHAP_PASSWORD, EAP_MESSAGE, FRAMED_MTU, FRAMED_PROTOCOL, NAS_IDENTIFIER, NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS, NAS_PORT, NAS_PORT_ID, NAS_PORT_TYPE, SERVICE_TYPE, STATE,
    TUNNEL_ASSIGNMENT_ID, TUNNEL_CLIENT_AUTH_ID, TUNNEL_CLIENT_ENDPOINT, TUNNEL_MEDIUM_TYPE,
    TUNNEL_SERVER_AUTH_ID, TUNNEL_SERVER_ENDPOINT, TUNNEL_TYPE, USER_NAME, USER_PASSWORD,
    framed_protocol, medium, port_type, service, tunnel_type,
};
use wire::radius::secret::hide_password;
use wire::radius::vendor::{MICROSOFT, microsoft};
use wire::radius::{Authenticator, List, TooLong, Writer, code};

use crate::accounting::SessionId;

/// The longest password (RFC 2865, section 5.2).
pub const PASSWORD_OCTETS_MAX: usize = 128;
/// The longest text of ours or a peer's that is sent, in octets. Longer ones are truncated, so that a long
/// telephone number does not fail the request.
const TEXT_OCTETS_MAX: usize = 252;

/// The NAS's identity (RFC 2865, section 4.1): at least one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Nas {
    /// NAS-Identifier.
    pub identifier: Option<Box<str>>,
    /// NAS-IP-Address or NAS-IPv6-Address.
    pub address: Option<IpAddr>,
}

impl Nas {
    /// A NAS with a name and no address.
    #[must_use]
    pub fn named(identifier: &str) -> Self {
        Self {
            identifier: Some(identifier.into()),
            address: None,
        }
    }
}

/// What kind of line a subscriber is connected by (NAS-Port-Type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PortType {
    /// A tunnel.
    #[default]
    Virtual,
    /// PPPoE over Ethernet without, with one or with two VLAN tags (RFC 4603).
    PppoeOverEthernet,
    /// One tag.
    PppoeOverVlan,
    /// Two tags.
    PppoeOverQinQ,
}

impl PortType {
    const fn number(self) -> u32 {
        match self {
            Self::Virtual => port_type::VIRTUAL,
            Self::PppoeOverEthernet => 32,
            Self::PppoeOverVlan => 33,
            Self::PppoeOverQinQ => 34,
        }
    }
}

/// The vendor of line attributes (RFC 4679).
const ADSL_FORUM: u32 = 3561;

/// Where a subscriber is connected. Empty values are not sent; values too long for an attribute are truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Line<'a> {
    /// NAS-Port-Type.
    pub kind: PortType,
    /// NAS-Port: a number that we choose.
    pub port: u32,
    /// NAS-Port-Id: the same as text.
    pub port_id: &'a str,
    /// Calling-Station-Id: the calling number.
    pub calling: &'a [u8],
    /// Called-Station-Id: the called number.
    pub called: &'a [u8],
    /// Values of the access line: sub-options of vendor 3561 (RFC 4679), each a number, a length and a value.
    pub access: &'a [u8],
    /// The tunnel of its session.
    pub tunnel: Option<Tunnel<'a>>,
}

/// A tunnel (RFC 2868, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel<'a> {
    /// Tunnel-Client-Endpoint: the LAC; `None` if its address is not known.
    pub client: Option<IpAddr>,
    /// Tunnel-Server-Endpoint: the LNS.
    pub server: IpAddr,
    /// Tunnel-Client-Auth-ID: the LAC's name for itself.
    pub client_name: &'a [u8],
    /// Tunnel-Server-Auth-ID: the LNS's.
    pub server_name: &'a [u8],
    /// Tunnel-Assignment-ID. Sent only in accounting.
    pub assignment: &'a [u8],
    /// Acct-Tunnel-Connection (RFC 2867, section 4.1): the call's serial number. Sent only in accounting.
    pub call: u32,
}

/// The credentials of a subscriber.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// A password (PAP), at most 128 octets.
    Pap {
        /// The password in clear.
        password: &'a [u8],
    },
    /// A response (CHAP with MD5).
    Chap {
        /// The identifier of challenge and response.
        identifier: u8,
        /// The challenge, at most 253 octets.
        challenge: &'a [u8],
        /// The response.
        response: &'a [u8; 16],
    },
    /// A response by MS-CHAP version 2 (RFC 2759; RFC 2548, section 2.3).
    MsChapV2 {
        /// The identifier of challenge and response.
        identifier: u8,
        /// The challenge.
        challenge: &'a [u8; mschap::CHALLENGE],
        /// The response's value.
        response: &'a [u8; mschap::RESPONSE],
    },
    /// An EAP Response (RFC 3579, section 2.1).
    Eap {
        /// The packet, at most [`eap::LENGTH_MAX`] octets.
        packet: &'a [u8],
        /// What came with the Request that it answers: [`super::Event::Challenged`]. Empty for the first one.
        state: &'a [u8],
        /// Framed-MTU: the longest EAP packet that the subscriber can receive (RFC 3579, section 2.4).
        mtu: u16,
    },
}

/// A request to authenticate a subscriber.
#[derive(Clone, Copy)]
pub struct AccessRequest<'a> {
    /// The name that it claims, at most 253 octets.
    pub user: &'a [u8],
    /// Its credentials.
    pub proof: Proof<'a>,
    /// The session ID for its accounting, which RFC 5176, section 3, requires here.
    pub session: SessionId,
    /// Where the subscriber is connected.
    pub line: Line<'a>,
    /// The servers that may be asked, as a bit set of their indexes; [`ANY_SERVER`]: all.
    pub servers: u16,
}

/// The bit set of all servers.
pub const ANY_SERVER: u16 = u16::MAX;

impl<'a> AccessRequest<'a> {
    /// A request with a user name and a password, without a session or a line.
    #[must_use]
    pub fn pap(user: &'a [u8], password: &'a [u8]) -> Self {
        Self {
            user,
            proof: Proof::Pap { password },
            session: SessionId::default(),
            line: Line::default(),
            servers: ANY_SERVER,
        }
    }

    /// The servers that may not be asked, as a bit set: a conversation stays with the server that started it (RFC 3579,
    /// section 2.1).
    pub(super) fn excluded(&self) -> u16 {
        match self.proof {
            Proof::Eap {
                state: &[server, ..],
                ..
            } => !1_u16.checked_shl(server.into()).unwrap_or(0),
            Proof::Pap { .. } | Proof::Chap { .. } | Proof::MsChapV2 { .. } | Proof::Eap { .. } => {
                !self.servers
            }
        }
    }

    /// Whether every value fits an attribute.
    pub(super) fn fits(&self) -> bool {
        let proof = match self.proof {
            Proof::Pap { password } => password.len() <= PASSWORD_OCTETS_MAX,
            Proof::Chap { challenge, .. } => (1..=253).contains(&challenge.len()),
            Proof::MsChapV2 { .. } => true,
            Proof::Eap { packet, state, .. } => {
                packet.len() <= eap::LENGTH_MAX && state.len() <= 1 + 253
            }
        };
        proof && self.user.len() <= 253
    }

    /// Appends the packet, with Message-Authenticator first so that an attacker cannot insert octets before it.
    pub(super) fn write(
        &self,
        out: &mut Vec<u8>,
        nas: &Nas,
        id: u8,
        authenticator: &Authenticator,
        secret: &[u8],
    ) -> Result<(), TooLong> {
        let mut writer = Writer::new(out, code::ACCESS_REQUEST, id, authenticator);
        writer.message_authenticator();
        let list = writer.list();
        list.attribute(USER_NAME, self.user);
        match self.proof {
            Proof::Pap { password } => write_password(list, password, secret, authenticator),
            Proof::Chap {
                identifier,
                challenge,
                response,
            } => {
                let mut value = [identifier; 17];
                value[1..].copy_from_slice(response);
                list.attribute(CHAP_PASSWORD, &value)
                    .attribute(CHAP_CHALLENGE, challenge);
            }
            Proof::MsChapV2 {
                identifier,
                challenge,
                response,
            } => write_mschap(list, identifier, challenge, response),
            Proof::Eap { packet, state, mtu } => {
                list.integer(FRAMED_MTU, mtu.into());
                for part in packet.chunks(253) {
                    list.attribute(EAP_MESSAGE, part);
                }
                if let Some((_, state)) = state.split_first() {
                    list.attribute(STATE, state);
                }
            }
        }
        nas.write(list);
        self.line.write(list, self.session);
        writer.finish(secret)
    }
}

/// Appends the attributes of MS-CHAP (RFC 2548, sections 2.1.2 and 2.3.2).
fn write_mschap(
    list: &mut List<'_>,
    identifier: u8,
    challenge: &[u8; mschap::CHALLENGE],
    response: &[u8; mschap::RESPONSE],
) {
    let mut value = [0; 50];
    value[0] = identifier;
    value[2..].copy_from_slice(&response[..48]);
    list.vendor_specific(MICROSOFT, &[(microsoft::CHAP_CHALLENGE, challenge)])
        .vendor_specific(MICROSOFT, &[(microsoft::CHAP2_RESPONSE, &value)]);
}

/// Appends a hidden password.
pub(super) fn write_password(
    list: &mut List<'_>,
    password: &[u8],
    secret: &[u8],
    authenticator: &Authenticator,
) {
    let mut hidden = Vec::with_capacity(password.len().next_multiple_of(16).max(16));
    hide_password(password, secret, authenticator, &mut hidden);
    list.attribute(USER_PASSWORD, &hidden);
}

impl Nas {
    /// Appends the NAS's identity.
    pub(crate) fn write(&self, list: &mut List<'_>) {
        if let Some(identifier) = &self.identifier {
            list.attribute(NAS_IDENTIFIER, identifier.as_bytes());
        }
        if let Some(address) = self.address {
            list.address_of(NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, address);
        }
    }
}

impl Line<'_> {
    /// Appends where a subscriber is connected.
    pub(crate) fn write(&self, list: &mut List<'_>, session: SessionId) {
        list.integer(SERVICE_TYPE, service::FRAMED)
            .integer(FRAMED_PROTOCOL, framed_protocol::PPP)
            .integer(NAS_PORT, self.port)
            .integer(NAS_PORT_TYPE, self.kind.number());
        for (kind, value) in [
            (NAS_PORT_ID, self.port_id.as_bytes()),
            (CALLING_STATION_ID, self.calling),
            (CALLED_STATION_ID, self.called),
        ] {
            if !value.is_empty() {
                list.attribute(kind, &value[..value.len().min(TEXT_OCTETS_MAX)]);
            }
        }
        let mut rest = self.access;
        while let Some((&[kind, length], after)) = rest.split_first_chunk()
            && let Some((value, after)) = after.split_at_checked(length.into())
        {
            list.vendor_specific(ADSL_FORUM, &[(kind, value)]);
            rest = after;
        }
        list.attribute(ACCT_SESSION_ID, &session.text());
        if let Some(tunnel) = &self.tunnel {
            tunnel.write(list);
        }
    }
}

impl Tunnel<'_> {
    fn write(&self, list: &mut List<'_>) {
        let medium = match self.server {
            IpAddr::V4(_) => medium::IPV4,
            IpAddr::V6(_) => medium::IPV6,
        };
        list.tagged_integer(TUNNEL_TYPE, tunnel_type::L2TP)
            .tagged_integer(TUNNEL_MEDIUM_TYPE, medium);
        if let Some(client) = self.client {
            write_address(list, TUNNEL_CLIENT_ENDPOINT, client);
        }
        write_address(list, TUNNEL_SERVER_ENDPOINT, self.server);
        for (kind, name) in [
            (TUNNEL_CLIENT_AUTH_ID, self.client_name),
            (TUNNEL_SERVER_AUTH_ID, self.server_name),
        ] {
            if !name.is_empty() {
                list.tagged_string(kind, &name[..name.len().min(TEXT_OCTETS_MAX)]);
            }
        }
    }

    /// Appends the tunnel attributes that only accounting has.
    pub(crate) fn write_call(&self, list: &mut List<'_>) {
        let mut digits = itoa::Buffer::new();
        list.attribute(ACCT_TUNNEL_CONNECTION, digits.format(self.call).as_bytes());
        if !self.assignment.is_empty() {
            let id = &self.assignment[..self.assignment.len().min(TEXT_OCTETS_MAX)];
            list.tagged_string(TUNNEL_ASSIGNMENT_ID, id);
        }
    }
}

/// Appends an address as text, without a formatter's cost for IPv4.
fn write_address(list: &mut List<'_>, kind: u8, address: IpAddr) {
    match address {
        IpAddr::V6(address) => {
            list.tagged_string(kind, address.to_string().as_bytes());
        }
        IpAddr::V4(address) => {
            let mut text = [0_u8; 15];
            let mut end = 0;
            for (n, octet) in address.octets().into_iter().enumerate() {
                if n > 0 {
                    text[end] = b'.';
                    end += 1;
                }
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(octet).as_bytes();
                text[end..end + digits.len()].copy_from_slice(digits);
                end += digits.len();
            }
            list.tagged_string(kind, &text[..end]);
        }
    }
}
