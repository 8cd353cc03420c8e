//! The details of a call, from its set-up messages.

use core::fmt;

use base::Redacted;
use wire::l2tp::{Attribute, Message, MessageType};
use wire::pppoe::LineInfo;

use crate::config::Pseudowire;
use crate::emitter::Emitter;

/// Which side requests the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// We are the LAC and announce a call: ICRQ.
    #[default]
    Incoming,
    /// We are the LNS and request a call: OCRQ.
    Outgoing,
}

/// A call to be made.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which side requests it.
    pub direction: Direction,
    /// Its payload; always PPP in L2TPv2.
    pub pseudowire: Pseudowire,
    /// Request sequence numbers on data (Sequencing Required, Data Sequencing).
    pub sequencing: bool,
    /// Numbers, speeds, circuit and proxy AVPs.
    pub details: CallDetails,
}

impl Default for Call {
    fn default() -> Self {
        Self {
            direction: Direction::Incoming,
            pseudowire: Pseudowire::Ppp,
            sequencing: false,
            details: CallDetails::default(),
        }
    }
}

/// Numbers, speeds, circuit and proxy AVPs of a call, as the peer sent them or
/// as we send them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallDetails {
    /// Call Serial Number; 0 lets the endpoint choose one.
    pub serial: u32,
    /// Called Number.
    pub called_number: Box<[u8]>,
    /// Calling Number.
    pub calling_number: Box<[u8]>,
    /// Sub-Address.
    pub sub_address: Box<[u8]>,
    /// Remote End ID, which names the circuit (L2TPv3).
    pub remote_end_id: Box<[u8]>,
    /// (Tx) Connect Speed in bit/s.
    pub tx_speed_bps: u64,
    /// Rx Connect Speed in bit/s; 0 if unknown.
    pub rx_speed_bps: u64,
    /// Physical Channel ID.
    pub physical_channel: Option<u32>,
    /// Private Group ID.
    pub private_group: Box<[u8]>,
    /// Bearer Type (L2TPv2).
    pub bearer_type: u32,
    /// Framing Type (L2TPv2); 0 is sent as 1, synchronous.
    pub framing_type: u32,
    /// Circuit Status (L2TPv3): bit 0 active, bit 1 new.
    pub circuit_status: u16,
    /// The access line of the caller (RFC 5515).
    pub line: Option<LineInfo>,
    /// Whether the LAC may send connect speed updates (RFC 5515, section 6.2).
    pub speed_updates: bool,
    /// The LAC's negotiation before the tunnel (RFC 2661 4.4.5).
    pub proxy: Option<Box<Proxy>>,
}

/// Proxy LCP and authentication AVPs of an ICCN (RFC 2661 4.4.5), passed on unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    /// Initial Received LCP CONFREQ.
    pub initial_received_confreq: Box<[u8]>,
    /// Last Sent LCP CONFREQ.
    pub last_sent_confreq: Box<[u8]>,
    /// Last Received LCP CONFREQ.
    pub last_received_confreq: Box<[u8]>,
    /// Proxy Authen Type.
    pub authen_type: Option<u16>,
    /// Proxy Authen Name.
    pub authen_name: Redacted<Box<[u8]>>,
    /// Proxy Authen Challenge.
    pub authen_challenge: Box<[u8]>,
    /// Proxy Authen ID.
    pub authen_id: Option<u16>,
    /// Proxy Authen Response.
    pub authen_response: Redacted<Box<[u8]>>,
}

impl CallDetails {
    /// Whether each value fits into an AVP, even hidden.
    pub(crate) fn fits(&self) -> bool {
        let proxy = self.proxy.as_deref().into_iter().flat_map(Proxy::values);
        let own: [&[u8]; 5] = [
            &self.called_number,
            &self.calling_number,
            &self.sub_address,
            &self.remote_end_id,
            &self.private_group,
        ];
        own.into_iter()
            .chain(proxy)
            .all(|value| value.len() <= crate::emitter::HIDDEN_MAX)
    }

    /// Stores the AVPs of a message. Other fields keep their values.
    pub(crate) fn take(&mut self, message: &Message<'_>) {
        let bytes = |attribute, field: &mut Box<[u8]>| {
            if let Some(value) = message.get(attribute) {
                *field = value.into();
            }
        };
        bytes(Attribute::CalledNumber, &mut self.called_number);
        bytes(Attribute::CallingNumber, &mut self.calling_number);
        bytes(Attribute::SubAddress, &mut self.sub_address);
        bytes(Attribute::RemoteEndId, &mut self.remote_end_id);
        bytes(Attribute::PrivateGroupId, &mut self.private_group);
        let number = |attribute, field: &mut u32| *field = message.u32(attribute).unwrap_or(*field);
        number(Attribute::CallSerialNumber, &mut self.serial);
        number(Attribute::BearerType, &mut self.bearer_type);
        number(Attribute::FramingType, &mut self.framing_type);
        self.physical_channel = message
            .u32(Attribute::PhysicalChannelId)
            .or(self.physical_channel);
        self.circuit_status = message
            .u16(Attribute::CircuitStatus)
            .unwrap_or(self.circuit_status);
        let speed = |narrow, wide| {
            message
                .u32(narrow)
                .map(u64::from)
                .or_else(|| message.u64(wide))
        };
        if let Some(bps) = speed(Attribute::TxConnectSpeed, Attribute::TxConnectSpeedBps) {
            self.tx_speed_bps = bps;
        }
        if let Some(bps) = speed(Attribute::RxConnectSpeed, Attribute::RxConnectSpeedBps) {
            self.rx_speed_bps = bps;
        }
        if message.has_line() {
            self.line = LineInfo::from_avps(message.line()).or(self.line.take());
        }
        self.speed_updates |=
            message.kind() == MessageType::Icrq && message.has(Attribute::ConnectSpeedUpdateEnable);
        self.take_proxy(message);
    }

    fn take_proxy(&mut self, message: &Message<'_>) {
        let get = |attribute| message.get(attribute).map(Box::from).unwrap_or_default();
        let proxy = Proxy {
            initial_received_confreq: get(Attribute::InitialReceivedLcpConfreq),
            last_sent_confreq: get(Attribute::LastSentLcpConfreq),
            last_received_confreq: get(Attribute::LastReceivedLcpConfreq),
            authen_type: message.u16(Attribute::ProxyAuthenType),
            authen_name: Redacted::new(get(Attribute::ProxyAuthenName)),
            authen_challenge: get(Attribute::ProxyAuthenChallenge),
            authen_id: message.u16(Attribute::ProxyAuthenId),
            authen_response: Redacted::new(get(Attribute::ProxyAuthenResponse)),
        };
        if proxy != Proxy::default() {
            self.proxy = Some(Box::new(proxy));
        }
    }
}

impl Proxy {
    fn values(&self) -> [&[u8]; 6] {
        [
            &self.initial_received_confreq,
            &self.last_sent_confreq,
            &self.last_received_confreq,
            self.authen_name.reveal(),
            &self.authen_challenge,
            self.authen_response.reveal(),
        ]
    }

    /// Appends the AVPs that are present.
    pub(crate) fn write(&self, emitter: &mut Emitter<'_>) {
        emitter
            .optional(
                Attribute::InitialReceivedLcpConfreq,
                &self.initial_received_confreq,
            )
            .optional(Attribute::LastSentLcpConfreq, &self.last_sent_confreq)
            .optional(
                Attribute::LastReceivedLcpConfreq,
                &self.last_received_confreq,
            );
        if let Some(kind) = self.authen_type {
            emitter.u16(Attribute::ProxyAuthenType, kind);
        }
        emitter
            .optional(Attribute::ProxyAuthenName, self.authen_name.reveal())
            .optional(Attribute::ProxyAuthenChallenge, &self.authen_challenge);
        if let Some(id) = self.authen_id {
            emitter.u16(Attribute::ProxyAuthenId, id);
        }
        emitter.optional(
            Attribute::ProxyAuthenResponse,
            self.authen_response.reveal(),
        );
    }
}

/// A cookie of 0, 4 or 8 octets (RFC 3931 4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; 8],
    len: u8,
}

impl Cookie {
    /// No cookie.
    pub const NONE: Self = Self {
        bytes: [0; 8],
        len: 0,
    };

    /// The first `len` of eight random octets.
    pub(crate) fn new(mut bytes: [u8; 8], len: u8) -> Self {
        // The unused octets are zero, so that equal cookies compare equal.
        bytes[usize::from(len)..].fill(0);
        Self { bytes, len }
    }

    /// Takes an Assigned Cookie AVP; `None` if its length is not allowed.
    pub(crate) fn from_wire(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 8];
        matches!(value.len(), 0 | 4 | 8).then(|| {
            bytes[..value.len()].copy_from_slice(value);
            Self {
                bytes,
                len: value.len() as u8,
            }
        })
    }

    /// The octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A cookie protects against blind injection, so only its size is printed.
        write!(f, "Cookie({} octets)", self.len)
    }
}
