//! The AVPs of our messages: RFC 2661 6, RFC 3931 6.

use base::slab::Key;
use wire::l2tp::{Attribute, ConnectSpeed, Message, MessageType, Version, auth};
use wire::pppoe::{LineAvp, LineInfo};

use super::Endpoint;
use crate::cause::PppCause;
use crate::config::{Config, OutgoingCalls};
use crate::emitter::{Emitter, Hide};
use crate::end::Codes;
use crate::event::CallErrors;
use crate::session::{CallDetails, Session};

/// Asynchronous and synchronous framing (RFC 2661 4.4.3).
const FRAMING_BOTH: u32 = 3;
/// Digital and analog access (RFC 2661 4.4.3).
const BEARER_BOTH: u32 = 3;
/// Synchronous framing (RFC 2661 4.4.4).
const FRAMING_SYNC: u32 = 1;
/// The circuit is active and new (RFC 3931 5.4.5).
const CIRCUIT_ACTIVE_NEW: u16 = 3;
const CIRCUIT_ACTIVE: u16 = 1;
/// The Firmware Revision in our SCCRQ and SCCRP.
pub const FIRMWARE_REVISION: u16 = 1;

impl Endpoint {
    /// Writes a message's body and queues it. `session` is the Session ID of the
    /// L2TPv2 header.
    fn compose(
        &mut self,
        index: u32,
        session: u16,
        kind: MessageType,
        write: impl FnOnce(&mut Emitter<'_>, &Config),
    ) {
        self.compose_for(index, session, None, kind, write);
    }

    fn compose_for(
        &mut self,
        index: u32,
        session: u16,
        connects: Option<Key>,
        kind: MessageType,
        write: impl FnOnce(&mut Emitter<'_>, &Config),
    ) {
        let Self {
            tunnels,
            pool,
            config,
            keys,
            random,
            ..
        } = self;
        let tunnel = tunnels.at_mut(index).expect("the caller has the tunnel");
        let at = pool.take();
        let slot = pool.get_mut(at);
        slot.session = session;
        slot.connects = connects;
        // In L2TPv3 hiding needs an authenticated peer (RFC 3931 5.3).
        let may_hide = config.hide && (tunnel.version == Version::V2 || tunnel.auth.is_some());
        let hide = keys.of(tunnel.keys).filter(|_| may_hide).map(|keys| Hide {
            key: match tunnel.version {
                Version::V2 => &keys.secret,
                Version::V3 => &keys.hiding,
            },
            vector: random.bytes(),
        });
        let digest = tunnel.auth.as_ref().map(|_| config.digest);
        let mut emitter = Emitter::new(&mut slot.body, tunnel.version, kind, digest, hide);
        write(&mut emitter, config);
        tunnel.reliable.enqueue(at, pool);
        self.mark_ready(index);
    }

    pub(super) fn compose_sccrq(&mut self, index: u32) {
        self.compose_start(index, MessageType::Sccrq, None);
    }

    pub(super) fn compose_sccrp(&mut self, index: u32, request: &Message<'_>) {
        let (keys, version) = (self.tunnel_at(index).keys, self.tunnel_at(index).version);
        let setup = self.new_setup(keys, version, false);
        let tunnel = self.tunnel_at_mut(index);
        tunnel.setup = Some(setup);
        if let Some(auth) = &mut tunnel.auth {
            auth.told = true;
        }
        let response = self.response_to(index, request, MessageType::Sccrp);
        self.compose_start(index, MessageType::Sccrp, response);
    }

    pub(super) fn compose_scccn(&mut self, index: u32, reply: &Message<'_>) {
        let response = self.response_to(index, reply, MessageType::Scccn);
        self.compose(index, 0, MessageType::Scccn, |emitter, _| {
            if let Some(response) = response {
                emitter.bytes(Attribute::ChallengeResponse, &response);
            }
        });
    }

    fn response_to(
        &self,
        index: u32,
        message: &Message<'_>,
        carrier: MessageType,
    ) -> Option<[u8; 16]> {
        let challenge = message.get(Attribute::Challenge)?;
        let keys = self.keys.of(self.tunnel_at(index).keys)?;
        (message.version() == Version::V2)
            .then(|| auth::challenge_response(carrier.number() as u8, &keys.secret, challenge))
    }

    /// SCCRQ and SCCRP, which are almost the same.
    fn compose_start(&mut self, index: u32, kind: MessageType, response: Option<[u8; 16]>) {
        let tunnel = self.tunnel_at(index);
        let (version, id) = (tunnel.version, tunnel.local_id);
        let setup = tunnel.setup.as_deref();
        let challenge = setup.and_then(|setup| setup.challenge);
        let tie_breaker = setup.and_then(|setup| setup.tie_breaker);
        let nonce = tunnel.auth.as_ref().map(|auth| auth.local_nonce);
        let host_name = setup.and_then(|setup| setup.host_name.clone());
        self.compose(index, 0, kind, |emitter, config| {
            let host_name = host_name.as_deref().unwrap_or(&config.host_name).as_bytes();
            match version {
                Version::V2 => {
                    emitter
                        .u16(Attribute::ProtocolVersion, 0x0100)
                        .bytes(Attribute::HostName, host_name)
                        .u32(Attribute::FramingCapabilities, FRAMING_BOTH)
                        .u16(Attribute::AssignedTunnelId, id as u16);
                    if config.outgoing_calls != OutgoingCalls::Refuse {
                        emitter.u32(Attribute::BearerCapabilities, BEARER_BOTH);
                    }
                    emitter.u16(Attribute::FirmwareRevision, FIRMWARE_REVISION);
                }
                Version::V3 => {
                    if let Some(nonce) = nonce {
                        emitter.bytes(Attribute::ControlMessageAuthenticationNonce, &nonce);
                    }
                    emitter
                        .bytes(Attribute::HostName, host_name)
                        .u32(Attribute::RouterId, config.router_id)
                        .u32(Attribute::AssignedControlConnectionId, id);
                    let mut list = [0; 6];
                    let kinds = config.pseudowires.iter().take(3);
                    let count = kinds.clone().count();
                    for (place, kind) in list.chunks_exact_mut(2).zip(kinds) {
                        place.copy_from_slice(&kind.number().to_be_bytes());
                    }
                    emitter.bytes(Attribute::PseudowireCapabilitiesList, &list[..2 * count]);
                }
            }
            emitter
                .optional(Attribute::VendorName, config.vendor_name.as_bytes())
                .u16(Attribute::ReceiveWindowSize, config.receive_window);
            if let Some(value) = tie_breaker {
                emitter.u64(Attribute::TieBreaker, value);
            }
            if let Some(challenge) = challenge {
                emitter.bytes(Attribute::Challenge, &challenge);
            }
            if let Some(response) = response {
                emitter.bytes(Attribute::ChallengeResponse, &response);
            }
        });
    }

    pub(super) fn compose_hello(&mut self, index: u32) {
        self.compose(index, 0, MessageType::Hello, |_, _| {});
    }

    pub(super) fn compose_stop_ccn(&mut self, index: u32, codes: &Codes) {
        let tunnel = self.tunnel_at(index);
        let (version, id) = (tunnel.version, tunnel.local_id);
        self.compose(index, 0, MessageType::StopCcn, |emitter, _| {
            stop_ccn(emitter, version, id, codes);
        });
    }

    /// ICRQ or OCRQ.
    pub(super) fn compose_request(&mut self, index: u32, kind: MessageType) {
        let session = self.session_at(index);
        let call = SessionIds::of(session);
        let (tunnel, pseudowire) = (session.tunnel, session.pseudowire);
        let cookie = session.local_cookie;
        let (sequencing, tie) = (session.sequencing, session.tie_breaker);
        let session = self.session_at_mut(index);
        session.local_sublayer = sequencing;
        let boxed = session.details.take();
        let nothing = CallDetails::default();
        let details = boxed.as_deref().unwrap_or(&nothing);
        self.compose(tunnel, 0, kind, |emitter, config| {
            call.write(emitter);
            emitter.u32(Attribute::CallSerialNumber, details.serial);
            match call.version {
                Version::V2 => request_v2(emitter, kind, details),
                Version::V3 => {
                    emitter.u16(Attribute::PseudowireType, pseudowire);
                    if details.remote_end_id.is_empty() {
                        // Required (RFC 3931 6.6), and unique so that it is no tie.
                        let own = format!("{}-{}", config.host_name, details.serial);
                        emitter.bytes(Attribute::RemoteEndId, own.as_bytes());
                    } else {
                        emitter.bytes(Attribute::RemoteEndId, &details.remote_end_id);
                    }
                    if tie != 0 {
                        emitter.u64(Attribute::TieBreaker, tie);
                    }
                    session_v3(emitter, cookie.as_bytes(), sequencing, CIRCUIT_ACTIVE_NEW);
                    speeds_v3(emitter, details);
                    if kind == MessageType::Icrq {
                        line(emitter, details);
                        updates(emitter, details);
                    }
                }
            }
        });
        self.session_at_mut(index).details = boxed;
    }

    /// ICRP or OCRP.
    pub(super) fn compose_reply(&mut self, index: u32, kind: MessageType) {
        let session = self.session_at(index);
        let call = SessionIds::of(session);
        let (tunnel, cookie) = (session.tunnel, session.local_cookie);
        let sequencing = session.sequencing;
        self.session_at_mut(index).local_sublayer = sequencing;
        self.compose(tunnel, call.header(), kind, |emitter, _| {
            call.write(emitter);
            if call.version == Version::V3 {
                session_v3(emitter, cookie.as_bytes(), sequencing, CIRCUIT_ACTIVE_NEW);
            }
        });
    }

    /// ICCN or OCCN. The session is up once it has left, so that no frame overtakes it.
    pub(super) fn compose_connected(&mut self, index: u32, kind: MessageType) {
        let session = self.session_at(index);
        let call = SessionIds::of(session);
        let (tunnel, sequencing) = (session.tunnel, session.sequencing);
        let boxed = self.session_at_mut(index).details.take();
        let nothing = CallDetails::default();
        let details = boxed.as_deref().unwrap_or(&nothing);
        let connects = Some(self.session_at(index).key);
        self.compose_for(
            tunnel,
            call.header(),
            connects,
            kind,
            |emitter, _| match call.version {
                Version::V2 => connected_v2(emitter, kind, details, sequencing),
                Version::V3 => {
                    call.write(emitter);
                    speeds_v3(emitter, details);
                    emitter.u16(Attribute::CircuitStatus, CIRCUIT_ACTIVE);
                }
            },
        );
        self.session_at_mut(index).details = boxed;
    }

    /// A CDN for a session, or for an unknown id.
    pub(super) fn compose_cdn(
        &mut self,
        tunnel: u32,
        local_id: u32,
        remote_id: u32,
        codes: &Codes,
        cause: Option<&PppCause>,
    ) {
        let version = self.tunnel_at(tunnel).version;
        let call = SessionIds {
            version,
            local_id,
            remote_id,
        };
        self.compose(tunnel, call.header(), MessageType::Cdn, |emitter, _| {
            emitter.result_code(codes);
            call.write(emitter);
            if let Some(cause) = cause {
                emitter.disconnect_cause(&cause.to_wire());
            }
        });
    }

    pub(super) fn compose_wen(&mut self, index: u32, errors: CallErrors) {
        let session = self.session_at(index);
        let (call, tunnel) = (SessionIds::of(session), session.tunnel);
        self.compose(tunnel, call.header(), MessageType::Wen, |emitter, _| {
            if call.version == Version::V3 {
                call.write(emitter);
            }
            emitter.bytes(Attribute::CallErrors, &errors.to_wire());
        });
    }

    /// CSUN or CSURQ: RFC 5515 4.1, 4.2.
    pub(super) fn compose_speeds(
        &mut self,
        tunnel: u32,
        kind: MessageType,
        speeds: &[ConnectSpeed],
    ) {
        let version = self.tunnel_at(tunnel).version;
        self.compose(tunnel, 0, kind, |emitter, _| {
            let mut value = Vec::with_capacity(ConnectSpeed::len(version));
            for speed in speeds {
                value.clear();
                speed.emit(version, &mut value);
                emitter.bytes(Attribute::ConnectSpeedUpdate, &value);
            }
        });
    }

    pub(super) fn compose_sli(&mut self, index: u32, accm: (u32, u32), circuit_active: bool) {
        let session = self.session_at(index);
        let (call, tunnel) = (SessionIds::of(session), session.tunnel);
        self.compose(
            tunnel,
            call.header(),
            MessageType::Sli,
            |emitter, _| match call.version {
                Version::V2 => {
                    let mut value = [0; 10];
                    value[2..6].copy_from_slice(&accm.0.to_be_bytes());
                    value[6..].copy_from_slice(&accm.1.to_be_bytes());
                    emitter.bytes(Attribute::Accm, &value);
                }
                Version::V3 => {
                    call.write(emitter);
                    emitter.u16(Attribute::CircuitStatus, u16::from(circuit_active));
                }
            },
        );
    }
}

/// A StopCCN's AVPs.
pub(super) fn stop_ccn(emitter: &mut Emitter<'_>, version: Version, id: u32, codes: &Codes) {
    match version {
        Version::V2 => emitter.u16(Attribute::AssignedTunnelId, id as u16),
        Version::V3 => emitter.u32(Attribute::AssignedControlConnectionId, id),
    };
    emitter.result_code(codes);
}

/// The ids of a session as its messages carry them.
#[derive(Clone, Copy)]
struct SessionIds {
    version: Version,
    local_id: u32,
    remote_id: u32,
}

impl SessionIds {
    fn of(session: &Session) -> Self {
        let Session {
            version,
            local_id,
            remote_id,
            ..
        } = *session;
        Self {
            version,
            local_id,
            remote_id,
        }
    }

    /// The Session ID of the L2TPv2 header.
    fn header(self) -> u16 {
        match self.version {
            Version::V2 => self.remote_id as u16,
            Version::V3 => 0,
        }
    }

    fn write(self, emitter: &mut Emitter<'_>) {
        match self.version {
            Version::V2 => emitter.u16(Attribute::AssignedSessionId, self.local_id as u16),
            Version::V3 => emitter
                .u32(Attribute::LocalSessionId, self.local_id)
                .u32(Attribute::RemoteSessionId, self.remote_id),
        };
    }
}

fn request_v2(emitter: &mut Emitter<'_>, kind: MessageType, details: &CallDetails) {
    if kind == MessageType::Ocrq {
        let bps = narrow(details.tx_speed_bps);
        emitter
            .u32(Attribute::MinimumBps, 0)
            .u32(Attribute::MaximumBps, if bps == 0 { u32::MAX } else { bps })
            .u32(Attribute::BearerType, details.bearer_type)
            .u32(Attribute::FramingType, framing(details))
            .bytes(Attribute::CalledNumber, &details.called_number);
    } else {
        if details.bearer_type != 0 {
            emitter.u32(Attribute::BearerType, details.bearer_type);
        }
        if let Some(channel) = details.physical_channel {
            emitter.u32(Attribute::PhysicalChannelId, channel);
        }
        emitter
            .optional(Attribute::CalledNumber, &details.called_number)
            .optional(Attribute::CallingNumber, &details.calling_number);
    }
    emitter.optional(Attribute::SubAddress, &details.sub_address);
    if kind == MessageType::Icrq {
        line(emitter, details);
        updates(emitter, details);
    }
}

/// Whether the LAC may send connect speed updates (RFC 5515, section 6.2).
fn updates(emitter: &mut Emitter<'_>, details: &CallDetails) {
    if details.speed_updates {
        emitter.bytes(Attribute::ConnectSpeedUpdateEnable, &[]);
    }
}

/// What is known of the caller's access line (RFC 5515, section 5).
fn line(emitter: &mut Emitter<'_>, details: &CallDetails) {
    for (number, value) in details.line.iter().flat_map(LineInfo::avps) {
        match value {
            LineAvp::Bytes(value) => emitter.line(number, value),
            LineAvp::Rate(rate) => emitter.line(number, &rate.to_be_bytes()),
            LineAvp::Word(word) => emitter.line(number, &word.to_be_bytes()),
        };
    }
}

fn connected_v2(
    emitter: &mut Emitter<'_>,
    kind: MessageType,
    details: &CallDetails,
    sequencing: bool,
) {
    emitter
        .u32(Attribute::TxConnectSpeed, narrow(details.tx_speed_bps))
        .u32(Attribute::FramingType, framing(details));
    if details.rx_speed_bps != 0 {
        emitter.u32(Attribute::RxConnectSpeed, narrow(details.rx_speed_bps));
    }
    if kind == MessageType::Iccn {
        if let Some(proxy) = &details.proxy {
            proxy.write(emitter);
        }
        emitter.optional(Attribute::PrivateGroupId, &details.private_group);
    }
    if sequencing {
        emitter.bytes(Attribute::SequencingRequired, &[]);
    }
}

/// Cookie, sublayer, sequencing and circuit status of L2TPv3.
fn session_v3(emitter: &mut Emitter<'_>, cookie: &[u8], sequencing: bool, circuit: u16) {
    emitter.optional(Attribute::AssignedCookie, cookie);
    if sequencing {
        emitter
            .u16(Attribute::L2SpecificSublayer, 1)
            .u16(Attribute::DataSequencing, 2);
    }
    emitter.u16(Attribute::CircuitStatus, circuit);
}

fn speeds_v3(emitter: &mut Emitter<'_>, details: &CallDetails) {
    if details.tx_speed_bps != 0 {
        emitter.u64(Attribute::TxConnectSpeedBps, details.tx_speed_bps);
    }
    if details.rx_speed_bps != 0 {
        emitter.u64(Attribute::RxConnectSpeedBps, details.rx_speed_bps);
    }
}

fn framing(details: &CallDetails) -> u32 {
    if details.framing_type == 0 {
        FRAMING_SYNC
    } else {
        details.framing_type
    }
}

/// A speed in the 32 bits that L2TPv2 has for it.
fn narrow(bps: u64) -> u32 {
    u32::try_from(bps).unwrap_or(u32::MAX)
}
