//! The other end of one tunnel: just enough to establish the tunnel, and to put an input's message into its
//! sequence.

use core::net::SocketAddr;

use wire::l2tp::{
    Attribute, CONTROL_HEADER_LEN, Control, DigestType, Message, MessageType, Packet, Version,
    Writer, auth, digest, emit_control, parse,
};

/// The secret of the endpoints that use one.
pub(super) const SECRET: &[u8] = b"lantern";
const NONCE: &[u8] = b"the peer's nonce";

const PEER_V2: ([u8; 4], u16) = ([192, 0, 2, 1], 1701);
const PEER_V3: ([u8; 4], u16) = ([192, 0, 2, 3], 1701);
/// The peer of the tunnels for which no datagram is sent.
pub(super) const BYSTANDER: ([u8; 4], u16) = ([192, 0, 2, 1], 1703);
/// An address without a tunnel.
pub(super) const STRANGER: ([u8; 4], u16) = ([192, 0, 2, 99], 1701);

pub(super) fn addr(address: ([u8; 4], u16)) -> SocketAddr {
    address.into()
}

/// The other end of one tunnel.
pub(super) struct Peer {
    pub(super) version: Version,
    pub(super) address: SocketAddr,
    /// Ns of the next message: the number that the endpoint has acknowledged up to.
    ns: u16,
    nr: u16,
    /// The ids that the endpoint assigned.
    remote: u32,
    session: u32,
    secret: bool,
    /// The endpoint's challenge, and its nonce.
    challenge: Vec<u8>,
    nonce: Vec<u8>,
}

/// The peer's ids for its tunnel and for its session.
const ID: u32 = 0x4d2;
const SESSION: u32 = 0x11;

impl Peer {
    pub(super) fn new(version: Version) -> Self {
        let address = match version {
            Version::V2 => PEER_V2,
            Version::V3 => PEER_V3,
        };
        Self {
            version,
            address: addr(address),
            ns: 0,
            nr: 0,
            remote: 0,
            session: 0,
            secret: false,
            challenge: Vec::new(),
            nonce: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, secret: bool) {
        self.secret = secret;
    }

    /// Reads the endpoint's messages in this tunnel.
    pub(super) fn note(&mut self, bytes: &[u8]) {
        let Ok(Packet::Control(control)) = parse(bytes) else {
            return;
        };
        let first = self.remote == 0 && control.connection == 0;
        if control.version != self.version || !(first || control.connection == ID) {
            return;
        }
        self.ns = control.nr;
        let message = Message::parse(control.version, control.body);
        if control.body.is_empty() || message.kind() == MessageType::Ack {
            return;
        }
        if control.ns == self.nr {
            self.nr = self.nr.wrapping_add(1);
        }
        self.note_ids(&control, &message);
    }

    fn note_ids(&mut self, control: &Control<'_>, message: &Message<'_>) {
        let bytes = |a| message.get(a).map(<[u8]>::to_vec);
        let (connection, session) = match control.version {
            Version::V2 => (
                message.u16(Attribute::AssignedTunnelId).map(u32::from),
                message.u16(Attribute::AssignedSessionId).map(u32::from),
            ),
            Version::V3 => (
                message.u32(Attribute::AssignedControlConnectionId),
                message.u32(Attribute::LocalSessionId),
            ),
        };
        // Only the first of each; later ones belong to other tunnels and calls.
        if self.remote == 0 {
            self.remote = connection.unwrap_or(0);
            self.challenge = bytes(Attribute::Challenge).unwrap_or_default();
            self.nonce = bytes(Attribute::ControlMessageAuthenticationNonce).unwrap_or_default();
        }
        if self.session == 0 {
            self.session = session.unwrap_or(0);
        }
    }

    /// A message with a right header, and a right digest if required.
    pub(super) fn packet(&mut self, session: u16, body: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let body = if body.is_empty() && self.is_signed() {
            self.body(MessageType::Ack, |_| {})
        } else {
            body.to_vec()
        };
        emit_control(
            &mut packet,
            self.version,
            self.remote,
            session,
            self.ns,
            self.nr,
            &body,
        );
        self.sign(&mut packet);
        packet
    }

    /// Corrects an input's header: its length, this tunnel's id, and the next sequence numbers, or nearby ones.
    pub(super) fn put_in_sequence(&self, datagram: &mut Vec<u8>, off: bool) {
        let octet = |at: usize| u16::from(datagram.get(at).copied().unwrap_or(0));
        let (ahead, acked) = match off {
            true => (
                (octet(9) & 15).wrapping_sub(4),
                (octet(11) & 7).wrapping_sub(3),
            ),
            false => (0, 0),
        };
        let session = match datagram.get(6..8) {
            // Half of them are for the existing session.
            Some(&[_, low]) if low & 1 == 0 => self.session as u16,
            _ => 0,
        };
        let body = datagram.get(CONTROL_HEADER_LEN..).unwrap_or(&[]).to_vec();
        datagram.clear();
        emit_control(
            datagram,
            self.version,
            self.remote,
            session,
            self.ns.wrapping_add(ahead),
            self.nr.wrapping_add(acked),
            &body,
        );
        self.sign(datagram);
    }

    fn is_signed(&self) -> bool {
        self.secret && self.version == Version::V3
    }

    fn sign(&self, packet: &mut [u8]) {
        if !self.is_signed() {
            return;
        }
        let key = digest::shared_key(SECRET);
        let is_request = packet.get(18..20) == Some(&[0, 1]);
        let nonces: [&[u8]; 2] = if is_request {
            [&[], &[]]
        } else {
            [NONCE, &self.nonce]
        };
        for kind in [DigestType::HmacMd5, DigestType::HmacSha1] {
            digest::sign(packet, kind, &key, nonces[0], nonces[1]);
        }
    }

    fn body(&self, kind: MessageType, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body, self.version, kind);
        if self.is_signed() {
            digest::placeholder(&mut writer, DigestType::HmacMd5);
        }
        write(&mut writer);
        body
    }

    fn start(&mut self, kind: MessageType) -> Vec<u8> {
        let body = self.body(kind, |w| {
            match self.version {
                Version::V2 => {
                    w.u16(Attribute::ProtocolVersion, 0x0100)
                        .u32(Attribute::FramingCapabilities, 3)
                        .u32(Attribute::BearerCapabilities, 3)
                        .u16(Attribute::AssignedTunnelId, ID as u16);
                }
                Version::V3 => {
                    w.u32(Attribute::RouterId, 1)
                        .u32(Attribute::AssignedControlConnectionId, ID)
                        .bytes(Attribute::PseudowireCapabilitiesList, &[0, 7]);
                }
            }
            w.bytes(Attribute::HostName, b"peer");
            if self.is_signed() {
                w.bytes(Attribute::ControlMessageAuthenticationNonce, NONCE);
            }
            self.respond(w, kind);
        });
        self.packet(0, &body)
    }

    /// The answer to a challenge.
    fn respond(&self, writer: &mut Writer<'_>, kind: MessageType) {
        if !self.challenge.is_empty() {
            let id = kind.number() as u8;
            let response = auth::challenge_response(id, SECRET, &self.challenge);
            writer.bytes(Attribute::ChallengeResponse, &response);
        }
    }

    pub(super) fn sccrq(&mut self) -> Vec<u8> {
        self.start(MessageType::Sccrq)
    }

    pub(super) fn sccrp(&mut self) -> Vec<u8> {
        self.start(MessageType::Sccrp)
    }

    pub(super) fn scccn(&mut self) -> Vec<u8> {
        let body = self.body(MessageType::Scccn, |w| {
            self.respond(w, MessageType::Scccn);
        });
        self.packet(0, &body)
    }

    pub(super) fn icrq(&mut self) -> Vec<u8> {
        let body = self.call(MessageType::Icrq);
        self.packet(0, &body)
    }

    pub(super) fn icrp(&mut self) -> Vec<u8> {
        let body = self.call(MessageType::Icrp);
        self.packet(self.session as u16, &body)
    }

    pub(super) fn iccn(&mut self) -> Vec<u8> {
        let body = self.call(MessageType::Iccn);
        self.packet(self.session as u16, &body)
    }

    fn call(&self, kind: MessageType) -> Vec<u8> {
        self.body(kind, |w| match self.version {
            Version::V2 => {
                w.u16(Attribute::AssignedSessionId, SESSION as u16)
                    .u32(Attribute::CallSerialNumber, 1);
            }
            Version::V3 => {
                w.u32(Attribute::LocalSessionId, SESSION)
                    .u32(Attribute::RemoteSessionId, self.session)
                    .u32(Attribute::CallSerialNumber, 1)
                    .u16(Attribute::PseudowireType, 7)
                    .bytes(Attribute::RemoteEndId, b"1")
                    .u16(Attribute::CircuitStatus, 3);
            }
        })
    }
}
