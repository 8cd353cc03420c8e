//! The other end of one control connection. It keeps its sequence numbers right unless a test asks for wrong
//! ones.

use base::Duration;
use l2tp::{Call, SessionKey, TunnelKey};
use wire::l2tp::{Attribute, MessageType, Version, emit_control};

use super::{Body, Got, Stage, only, only_ack};
use crate::mac::PeerAuth;

/// The other end of one control connection: its ids and sequence numbers.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) version: Version,
    /// The id that this end assigned.
    pub(crate) id: u32,
    /// The id that the endpoint under test assigned; 0 until then.
    pub(crate) remote: u32,
    /// Ns of the next message.
    pub(crate) ns: u16,
    /// The next expected Ns.
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

    /// A message out of sequence: nothing is counted.
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

    /// A ZLB, or an ACK if messages are authenticated.
    pub(crate) fn ack_packet(&self) -> Vec<u8> {
        let body = match &self.auth {
            Some(_) => Body::new(MessageType::Ack).bytes,
            None => Vec::new(),
        };
        self.packet_at(self.ns, self.nr, 0, &body)
    }

    /// Acknowledges everything received.
    pub(crate) fn ack(&self, stage: &mut Stage) {
        stage.send(&self.ack_packet());
    }

    /// The same, to an id that this peer does not use yet.
    pub(crate) fn ack_to(&self, connection: u32, stage: &mut Stage) {
        let mut peer = self.clone();
        peer.remote = connection;
        peer.ack(stage);
    }

    /// The received messages; updates the expected sequence number.
    pub(crate) fn hear(&mut self, stage: &mut Stage) -> Vec<Got> {
        let got = stage.hear();
        got.iter().for_each(|message| self.note(message));
        got
    }

    /// Waits for the next message and stops the clock at its arrival.
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

    /// Sends a message and returns the immediate answers.
    pub(crate) fn say(&mut self, stage: &mut Stage, body: &Body) -> Vec<Got> {
        self.say_in(stage, 0, body)
    }

    /// The same for a version 2 session, whose id is in the header.
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

    /// Requests a control connection and completes its set-up.
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

    /// Stores the values of an SCCRP.
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

    /// Receives the SCCRQ of the endpoint under test and stores its values.
    #[track_caller]
    pub(crate) fn take_sccrq(&mut self, stage: &mut Stage) -> Got {
        let got = self.hear(stage);
        let sccrq = only(&got, MessageType::Sccrq);
        self.take_assigned(&sccrq);
        sccrq
    }

    /// Makes the endpoint under test send a request, and completes the tunnel's set-up.
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

    /// An ICRQ with `session` as this side's id.
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

    /// The start of a session's message: in version 3, the ids are AVPs.
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

    /// Accepts a call of the endpoint under test as `session`; returns its key and the endpoint's id for it.
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
