//! An endpoint under test, and a peer that a test plays by hand: messages
//! written octet by octet, sequence numbers kept right unless a test asks for
//! wrong ones.

use core::net::SocketAddr;

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use l2tp::{
    Call, Config, Counts, Discard, Endpoint, Event, OpenTunnel, SessionEnd, SessionKey, TunnelEnd,
    TunnelKey,
};
use sim::{Link, NodeHandle, Probe, World};
use wire::l2tp::{Attribute, Message, MessageType, Packet, Version, emit_control, parse};

use crate::mac::PeerAuth;

/// The peer's address.
pub(crate) const PEER: SocketAddr = sim::ADDRESS_A;
/// The address of the endpoint under test.
pub(crate) const US: SocketAddr = sim::ADDRESS_B;

/// A link without any delay, so that answers come at the instant of the
/// question and times are those of timers alone.
pub(crate) const INSTANT_LINK: Link = Link {
    delay: Duration::ZERO,
    ..Link::CLEAN
};

/// An endpoint that takes requests.
pub(crate) fn lns_config() -> Config {
    Config {
        host_name: "lns".into(),
        accept: true,
        ..Config::default()
    }
}

/// An endpoint that makes requests.
pub(crate) fn lac_config() -> Config {
    Config {
        host_name: "lac".into(),
        ..Config::default()
    }
}

/// The shared secret of those tests that have one.
pub(crate) const SECRET: &[u8] = b"a shared secret";

/// `config` with [`SECRET`].
pub(crate) fn with_secret(config: Config) -> Config {
    Config {
        secret: Some(Redacted::new(SECRET.to_vec())),
        ..config
    }
}

/// Where our tunnels go to by default.
pub(crate) fn to_peer(version: Version) -> OpenTunnel {
    open_to(PEER, version)
}

/// A tunnel to `peer` from socket 0.
pub(crate) fn open_to(peer: SocketAddr, version: Version) -> OpenTunnel {
    let route = Route {
        peer,
        local: None,
        socket: 0,
    };
    OpenTunnel { route, version }
}

/// A control message as the endpoint under test sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    pub(crate) version: Version,
    pub(crate) connection: u32,
    pub(crate) session: u16,
    pub(crate) ns: u16,
    pub(crate) nr: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) whole: Vec<u8>,
}

impl Got {
    fn read(at: Instant, from: SocketAddr, bytes: &[u8]) -> Self {
        let Ok(Packet::Control(control)) = parse(bytes) else {
            panic!("the endpoint sent no control message: {bytes:02x?}");
        };
        Self {
            at,
            from,
            version: control.version,
            connection: control.connection,
            session: control.session,
            ns: control.ns,
            nr: control.nr,
            body: control.body.to_vec(),
            whole: bytes.to_vec(),
        }
    }

    pub(crate) fn message(&self) -> Message<'_> {
        let message = Message::parse(self.version, &self.body);
        if !self.body.is_empty() && !message.has_hidden() {
            assert_eq!(message.fault(), None, "{self:?}");
        }
        message
    }

    /// ZLB or ACK: takes no place in the sequence.
    pub(crate) fn is_ack(&self) -> bool {
        self.body.is_empty() || self.kind() == MessageType::Ack
    }

    pub(crate) fn kind(&self) -> MessageType {
        Message::parse(self.version, &self.body).kind()
    }

    /// Result Code and Error Code.
    pub(crate) fn codes(&self) -> (u16, Option<u16>) {
        let code = self.message().result_code().map(|c| (c.result, c.error));
        code.unwrap_or_else(|| panic!("no Result Code: {self:?}"))
    }

    /// The Error Message.
    pub(crate) fn error_text(&self) -> String {
        let message = self.message();
        let code = message.result_code().expect("a Result Code");
        String::from_utf8(code.message.to_vec()).expect("UTF-8 (RFC 2661 4.4.2)")
    }

    pub(crate) fn u16(&self, attribute: Attribute) -> u16 {
        let value = self.message().u16(attribute);
        value.unwrap_or_else(|| panic!("no {attribute:?} in {self:?}"))
    }

    pub(crate) fn u32(&self, attribute: Attribute) -> u32 {
        let value = self.message().u32(attribute);
        value.unwrap_or_else(|| panic!("no {attribute:?} in {self:?}"))
    }

    pub(crate) fn get(&self, attribute: Attribute) -> Option<Vec<u8>> {
        self.message().get(attribute).map(<[u8]>::to_vec)
    }

    /// The id that the endpoint assigned to a control connection.
    pub(crate) fn assigned_connection(&self) -> u32 {
        match self.version {
            Version::V2 => self.u16(Attribute::AssignedTunnelId).into(),
            Version::V3 => self.u32(Attribute::AssignedControlConnectionId),
        }
    }

    /// The id that the endpoint assigned to a session.
    pub(crate) fn assigned_session(&self) -> u32 {
        match self.version {
            Version::V2 => self.u16(Attribute::AssignedSessionId).into(),
            Version::V3 => self.u32(Attribute::LocalSessionId),
        }
    }
}

/// The kinds of messages, in order; `None` is an acknowledgement.
pub(crate) fn kinds(got: &[Got]) -> Vec<Option<MessageType>> {
    let kind = |g: &Got| (!g.is_ack()).then(|| g.kind());
    got.iter().map(kind).collect()
}

/// The one message in `got`, which must be of that kind.
#[track_caller]
pub(crate) fn only(got: &[Got], kind: MessageType) -> Got {
    assert_eq!(kinds(got), [Some(kind)], "{got:?}");
    got[0].clone()
}

/// The one acknowledgement in `got`.
#[track_caller]
pub(crate) fn only_ack(got: &[Got]) -> Got {
    assert_eq!(kinds(got), [None], "{got:?}");
    got[0].clone()
}

/// The endpoint under test and, at [`PEER`], a node that a test plays.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) us: NodeHandle<Endpoint>,
    pub(crate) probe: NodeHandle<Probe>,
}

impl Stage {
    pub(crate) fn new(config: Config) -> Self {
        let mut world = World::new(1);
        world.set_decoder(describe);
        world.set_default_link(INSTANT_LINK);
        let us = world.add("us", Endpoint::new(config, [2; 32]), [US]);
        let probe = world.add("peer", Probe::default(), [PEER]);
        Self { world, us, probe }
    }

    pub(crate) fn lns() -> Self {
        Self::new(lns_config())
    }

    pub(crate) fn lac() -> Self {
        Self::new(lac_config())
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.world[self.us]
    }

    pub(crate) fn counts(&self) -> Counts {
        self.endpoint().counts()
    }

    pub(crate) fn discarded(&self, why: Discard) -> u64 {
        self.endpoint().discarded(why)
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        counter(self.endpoint(), name)
    }

    pub(crate) fn with<R>(&mut self, call: impl FnOnce(&mut Endpoint, Instant) -> R) -> R {
        let result = self.world.with(self.us, call);
        self.settle();
        result
    }

    /// Lets happen what is due by now.
    fn settle(&mut self) {
        self.world.run_until(self.world.now());
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.world.run_for(span);
    }

    pub(crate) fn run_secs(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// Sends a datagram from [`PEER`].
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.world
            .with(self.probe, |probe, _| probe.send(US, bytes));
        self.settle();
    }

    /// Lets a datagram arrive that claims to come from `from`.
    pub(crate) fn send_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.world.inject(from, US, bytes);
        self.settle();
    }

    /// Hands datagrams from [`PEER`] over together, before the endpoint is
    /// drained.
    pub(crate) fn send_batch(&mut self, datagrams: &[Vec<u8>]) {
        self.with(|us, now| {
            for bytes in datagrams {
                let route = Route {
                    peer: PEER,
                    local: Some(US.ip()),
                    socket: 0,
                };
                us.handle(Datagram { route, bytes }, now)
                    .expect("the batch is good");
            }
        });
    }

    /// What [`PEER`] heard since last asked.
    pub(crate) fn hear(&mut self) -> Vec<Got> {
        let events = self.world.take_timed_events(self.probe);
        events
            .into_iter()
            .map(|(at, heard)| Got::read(at, heard.from(), &heard.bytes))
            .collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.world.take_events(self.us)
    }

    /// Why the last tunnel ended.
    #[track_caller]
    pub(crate) fn tunnel_end(&self) -> TunnelEnd {
        let ended = self.endpoint().ended_tunnel(0);
        ended.expect("a tunnel ended").reason.clone()
    }

    /// Why the last session ended.
    #[track_caller]
    pub(crate) fn session_end(&self) -> SessionEnd {
        let ended = self.endpoint().ended_session(0);
        ended.expect("a session ended").reason.clone()
    }

    pub(crate) fn open_tunnel(&mut self, version: Version) -> TunnelKey {
        self.with(|us, now| us.open_tunnel(to_peer(version), now))
            .expect("nothing is full")
    }

    pub(crate) fn open_session(&mut self, tunnel: TunnelKey, call: Call) -> SessionKey {
        self.with(|us, now| us.open_session(tunnel, call, now))
            .expect("nothing is full")
    }

    /// The only live tunnel.
    #[track_caller]
    pub(crate) fn tunnel(&self) -> TunnelKey {
        assert_eq!(self.counts().tunnels, 1);
        self.endpoint().next_tunnel(0).expect("a tunnel").1.key
    }

    /// The only session.
    #[track_caller]
    pub(crate) fn session(&self) -> SessionKey {
        assert_eq!(self.counts().sessions, 1);
        self.endpoint().next_session(0).expect("a session").1.key
    }
}

/// The value of the counter called `name`.
pub(crate) fn counter(endpoint: &Endpoint, name: &str) -> u64 {
    let found = endpoint.counters().find(|(n, _)| n.to_string() == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}

/// The other end of one control connection: its ids and sequence numbers.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) version: Version,
    /// The id that this end assigned.
    pub(crate) id: u32,
    /// The id that the endpoint under test assigned; 0 before it did.
    pub(crate) remote: u32,
    /// Ns of the next message.
    pub(crate) ns: u16,
    /// The Ns expected next.
    pub(crate) nr: u16,
    /// Message authentication of version 3.
    pub(crate) auth: Option<PeerAuth>,
}

impl Peer {
    pub(crate) fn new(version: Version, id: u32) -> Self {
        Self {
            version,
            id,
            remote: 0,
            ns: 0,
            nr: 0,
            auth: None,
        }
    }

    pub(crate) fn v2() -> Self {
        Self::new(Version::V2, 77)
    }

    pub(crate) fn v3() -> Self {
        Self::new(Version::V3, 0x7777_0001)
    }

    /// A message outside the rules: nothing is counted.
    pub(crate) fn packet_at(&self, ns: u16, nr: u16, session: u16, body: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let body = match &self.auth {
            Some(auth) => auth.with_placeholder(body),
            None => body.to_vec(),
        };
        emit_control(
            &mut packet,
            self.version,
            self.remote,
            session,
            ns,
            nr,
            &body,
        );
        if let Some(auth) = &self.auth {
            auth.sign(&mut packet);
        }
        packet
    }

    /// The next message in sequence.
    pub(crate) fn packet(&mut self, session: u16, body: &Body) -> Vec<u8> {
        let packet = self.packet_at(self.ns, self.nr, session, &body.bytes);
        self.ns = self.ns.wrapping_add(1);
        packet
    }

    /// A ZLB, or an ACK where messages are authenticated.
    pub(crate) fn ack_packet(&self) -> Vec<u8> {
        let body = match &self.auth {
            Some(_) => Body::new(MessageType::Ack).bytes,
            None => Vec::new(),
        };
        self.packet_at(self.ns, self.nr, 0, &body)
    }

    /// Acknowledges all that was heard.
    pub(crate) fn ack(&self, stage: &mut Stage) {
        stage.send(&self.ack_packet());
    }

    /// The same to an id that is no business of this peer yet.
    pub(crate) fn ack_to(&self, connection: u32, stage: &mut Stage) {
        let mut peer = self.clone();
        peer.remote = connection;
        peer.ack(stage);
    }

    /// What came, with its place in the sequence noted.
    pub(crate) fn hear(&mut self, stage: &mut Stage) -> Vec<Got> {
        let got = stage.hear();
        got.iter().for_each(|message| self.note(message));
        got
    }

    /// The next message, and the time is then that of its coming.
    #[track_caller]
    pub(crate) fn wait(&mut self, stage: &mut Stage, limit: Duration) -> Got {
        let heard = stage.world.wait_event(stage.probe, limit, |_| true);
        let heard = heard.unwrap_or_else(|| panic!("nothing within {limit:?}"));
        let got = Got::read(stage.world.now(), heard.from(), &heard.bytes);
        self.note(&got);
        got
    }

    fn note(&mut self, message: &Got) {
        if !message.is_ack() && message.ns == self.nr {
            self.nr = self.nr.wrapping_add(1);
        }
    }

    /// Says a message and hears what comes at once.
    pub(crate) fn say(&mut self, stage: &mut Stage, body: &Body) -> Vec<Got> {
        self.say_in(stage, 0, body)
    }

    /// The same for a session of version 2, whose id is in the header.
    pub(crate) fn say_in(&mut self, stage: &mut Stage, session: u16, body: &Body) -> Vec<Got> {
        let packet = self.packet(session, body);
        stage.send(&packet);
        self.hear(stage)
    }

    /// The SCCRQ that this peer sends unless a test changes it.
    pub(crate) fn sccrq(&self) -> Body {
        self.start(MessageType::Sccrq)
    }

    pub(crate) fn sccrp(&self) -> Body {
        self.start(MessageType::Sccrp)
    }

    fn start(&self, kind: MessageType) -> Body {
        let mut body = Body::new(kind);
        if self.version == Version::V2 {
            body = body
                .u16(Attribute::ProtocolVersion, 0x0100)
                .avp(Attribute::HostName, b"peer")
                .u32(Attribute::FramingCapabilities, 3)
                .u32(Attribute::BearerCapabilities, 3)
                .u16(Attribute::AssignedTunnelId, self.id as u16);
        } else {
            if let Some(auth) = &self.auth {
                body = body.avp(
                    Attribute::ControlMessageAuthenticationNonce,
                    &auth.local_nonce,
                );
            }
            body = body
                .avp(Attribute::HostName, b"peer")
                .u32(Attribute::RouterId, 0x0a00_0001)
                .u32(Attribute::AssignedControlConnectionId, self.id)
                .avp(Attribute::PseudowireCapabilitiesList, &[0, 4, 0, 5, 0, 7]);
        }
        body
    }

    /// Asks for a control connection and has it established.
    #[track_caller]
    pub(crate) fn connect(&mut self, stage: &mut Stage) {
        let request = self.sccrq();
        self.connect_with(stage, &request, &Body::new(MessageType::Scccn));
    }

    /// The same with these messages.
    #[track_caller]
    pub(crate) fn connect_with(&mut self, stage: &mut Stage, sccrq: &Body, scccn: &Body) {
        let got = self.say(stage, sccrq);
        self.take_sccrp(&only(&got, MessageType::Sccrp));
        only_ack(&self.say(stage, scccn));
    }

    /// Notes what an SCCRP says.
    pub(crate) fn take_sccrp(&mut self, sccrp: &Got) {
        self.take_assigned(sccrp);
    }

    fn take_assigned(&mut self, start: &Got) {
        self.remote = start.assigned_connection();
        if let Some(auth) = &mut self.auth {
            auth.remote_nonce = start
                .get(Attribute::ControlMessageAuthenticationNonce)
                .expect("a nonce");
        }
    }

    /// Hears the SCCRQ of the endpoint under test and notes what it says.
    #[track_caller]
    pub(crate) fn take_sccrq(&mut self, stage: &mut Stage) -> Got {
        let got = self.hear(stage);
        let sccrq = only(&got, MessageType::Sccrq);
        self.take_assigned(&sccrq);
        sccrq
    }

    /// Has the endpoint under test ask, and lets it have its tunnel.
    #[track_caller]
    pub(crate) fn answer(&mut self, stage: &mut Stage) -> TunnelKey {
        let reply = self.sccrp();
        self.answer_with(stage, &reply)
    }

    /// The same with this SCCRP.
    #[track_caller]
    pub(crate) fn answer_with(&mut self, stage: &mut Stage, sccrp: &Body) -> TunnelKey {
        let tunnel = stage.open_tunnel(self.version);
        self.take_sccrq(stage);
        let got = self.say(stage, sccrp);
        only(&got, MessageType::Scccn);
        self.ack(stage);
        assert!(stage.hear().is_empty());
        tunnel
    }

    /// An ICRQ that names `session` as this side's.
    pub(crate) fn icrq(&self, session: u32) -> Body {
        let body = Body::new(MessageType::Icrq);
        match self.version {
            Version::V2 => body
                .u16(Attribute::AssignedSessionId, session as u16)
                .u32(Attribute::CallSerialNumber, session),
            Version::V3 => body
                .u32(Attribute::LocalSessionId, session)
                .u32(Attribute::RemoteSessionId, 0)
                .u32(Attribute::CallSerialNumber, session)
                .u16(Attribute::PseudowireType, 7)
                .avp(Attribute::RemoteEndId, &session.to_be_bytes())
                .u16(Attribute::CircuitStatus, 3),
        }
    }

    /// An ICCN or OCCN from `session` to `remote`.
    pub(crate) fn connected(&self, kind: MessageType, session: u32, remote: u32) -> Body {
        let body = self.of_session(kind, session, remote);
        match self.version {
            Version::V2 => body
                .u32(Attribute::TxConnectSpeed, 1_000_000)
                .u32(Attribute::FramingType, 1),
            Version::V3 => body,
        }
    }

    /// The beginning of a message that belongs to a session: in version 3, the
    /// ids are AVPs.
    pub(crate) fn of_session(&self, kind: MessageType, session: u32, remote: u32) -> Body {
        let body = Body::new(kind);
        match self.version {
            Version::V2 => body,
            Version::V3 => body
                .u32(Attribute::LocalSessionId, session)
                .u32(Attribute::RemoteSessionId, remote),
        }
    }

    /// An ICRP or OCRP from `session` to `remote`.
    pub(crate) fn reply(&self, kind: MessageType, session: u32, remote: u32) -> Body {
        match self.version {
            Version::V2 => Body::new(kind).u16(Attribute::AssignedSessionId, session as u16),
            Version::V3 => self
                .of_session(kind, session, remote)
                .u16(Attribute::CircuitStatus, 3),
        }
    }

    /// A CDN from `session` to `remote`.
    pub(crate) fn cdn(&self, session: u32, remote: u32, result: u16) -> Body {
        let body = Body::new(MessageType::Cdn).u16(Attribute::ResultCode, result);
        match self.version {
            Version::V2 => body.u16(Attribute::AssignedSessionId, session as u16),
            Version::V3 => body
                .u32(Attribute::LocalSessionId, session)
                .u32(Attribute::RemoteSessionId, remote),
        }
    }

    /// A StopCCN.
    pub(crate) fn stop_ccn(&self, result: u16) -> Body {
        let body = Body::new(MessageType::StopCcn);
        match self.version {
            Version::V2 => body.u16(Attribute::AssignedTunnelId, self.id as u16),
            Version::V3 => body.u32(Attribute::AssignedControlConnectionId, self.id),
        }
        .u16(Attribute::ResultCode, result)
    }

    /// Calls the endpoint under test; returns the id that it gave the session.
    #[track_caller]
    pub(crate) fn call(&mut self, stage: &mut Stage, session: u32) -> u32 {
        let request = self.icrq(session);
        self.call_with(stage, session, &request)
    }

    /// The same with this ICRQ.
    #[track_caller]
    pub(crate) fn call_with(&mut self, stage: &mut Stage, session: u32, icrq: &Body) -> u32 {
        let got = self.say(stage, icrq);
        let remote = only(&got, MessageType::Icrp).assigned_session();
        let connected = self.connected(MessageType::Iccn, session, remote);
        only_ack(&self.say_in(stage, remote as u16, &connected));
        remote
    }

    /// Takes a call of the endpoint under test as `session`; returns its key and
    /// the id that it has there.
    #[track_caller]
    pub(crate) fn take_call(
        &mut self,
        stage: &mut Stage,
        tunnel: TunnelKey,
        call: Call,
        session: u32,
    ) -> (SessionKey, u32) {
        let key = stage.open_session(tunnel, call);
        let got = self.hear(stage);
        let remote = only(&got, MessageType::Icrq).assigned_session();
        let reply = self.reply(MessageType::Icrp, session, remote);
        let got = self.say_in(stage, remote as u16, &reply);
        only(&got, MessageType::Iccn);
        self.ack(stage);
        (key, remote)
    }
}

/// A body, AVP by AVP.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
}

impl Body {
    pub(crate) fn new(kind: MessageType) -> Self {
        Self::empty().u16(Attribute::MessageType, kind.number())
    }

    pub(crate) fn empty() -> Self {
        Self { bytes: Vec::new() }
    }

    /// An AVP by its octets: `bits` are M, H and the reserved ones.
    pub(crate) fn raw(mut self, bits: u8, vendor: u16, number: u16, value: &[u8]) -> Self {
        let len = 6 + value.len();
        assert!(len < 1024);
        self.bytes.push(bits | (len >> 8) as u8);
        self.bytes.push(len as u8);
        self.bytes.extend_from_slice(&vendor.to_be_bytes());
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self.bytes.extend_from_slice(value);
        self
    }

    /// Octets that need not be an AVP.
    pub(crate) fn octets(mut self, octets: &[u8]) -> Self {
        self.bytes.extend_from_slice(octets);
        self
    }

    /// An AVP with M = 1.
    pub(crate) fn avp(self, attribute: Attribute, value: &[u8]) -> Self {
        self.raw(0x80, 0, attribute.number(), value)
    }

    pub(crate) fn u16(self, attribute: Attribute, value: u16) -> Self {
        self.avp(attribute, &value.to_be_bytes())
    }

    pub(crate) fn u32(self, attribute: Attribute, value: u32) -> Self {
        self.avp(attribute, &value.to_be_bytes())
    }

    pub(crate) fn u64(self, attribute: Attribute, value: u64) -> Self {
        self.avp(attribute, &value.to_be_bytes())
    }

    /// The same body without an attribute.
    pub(crate) fn without(self, attribute: Attribute) -> Self {
        let mut kept = Self::empty();
        for avp in wire::l2tp::Avps::new(&self.bytes) {
            if avp.vendor != 0 || avp.attribute != attribute.number() {
                let end = avp.offset + 6 + avp.value.len();
                kept.bytes.extend_from_slice(&self.bytes[avp.offset..end]);
            }
        }
        kept
    }

    /// The same body with every M bit but the Message Type's turned over.
    pub(crate) fn with_wrong_m_bits(mut self) -> Self {
        let offsets: Vec<usize> = wire::l2tp::Avps::new(&self.bytes)
            .skip(1)
            .map(|avp| avp.offset)
            .collect();
        for offset in offsets {
            self.bytes[offset] ^= 0x80;
        }
        self
    }
}

/// How the reports of a failed run show a datagram.
pub(crate) fn describe(bytes: &[u8]) -> String {
    let control = match parse(bytes) {
        Ok(Packet::Control(control)) => control,
        Ok(_) => return "data".into(),
        Err(error) => return format!("unreadable: {error}"),
    };
    let message = Message::parse(control.version, control.body);
    let kind = match (control.body.is_empty(), message.kind()) {
        (true, _) => "ZLB".into(),
        (false, MessageType::Unknown(number)) => format!("type {number}"),
        (false, kind) => kind.name().to_owned(),
    };
    let codes = message
        .result_code()
        .map(|c| format!(" {:?}", (c.result, c.error)));
    format!(
        "v{} {kind}{} to {}/{} Ns {} Nr {}",
        control.version.number(),
        codes.unwrap_or_default(),
        control.connection,
        control.session,
        control.ns,
        control.nr
    )
}
