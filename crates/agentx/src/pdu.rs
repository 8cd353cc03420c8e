//! PDUs of AgentX: RFC 2741, sections 5 and 6.
//!
//! Both byte orders are decoded; PDUs are encoded in network byte order. `read` has the decoder, `write` the encoder.

mod read;
#[cfg(test)]
mod tests;
mod write;

use thiserror::Error;

use crate::Oid;

/// Octets of a header.
pub const HEADER_LEN: usize = 20;
/// The longest payload that is accepted, in octets.
pub const PAYLOAD_MAX: usize = 65_536;
/// The most ranges or variables of a PDU that are accepted.
pub const ITEMS_MAX: usize = 1_024;

/// Flags of a header (section 6.1).
pub mod flag {
    /// The session registers an instance, not a subtree.
    pub const INSTANCE_REGISTRATION: u8 = 0x01;
    /// The payload starts with a context.
    pub const NON_DEFAULT_CONTEXT: u8 = 0x08;
    /// Integers are in network byte order.
    pub const NETWORK_BYTE_ORDER: u8 = 0x10;
}

/// Errors of responses (section 6.2.16, and SNMP's own).
pub mod error {
    /// No error.
    pub const NONE: u16 = 0;
    /// The response does not fit.
    pub const TOO_BIG: u16 = 1;
    /// Another error.
    pub const GENERAL: u16 = 5;
    /// A set was committed that was not tested.
    pub const COMMIT_FAILED: u16 = 14;
    /// A set was undone that was not committed.
    pub const UNDO_FAILED: u16 = 15;
    /// The variable cannot be set.
    pub const NOT_WRITABLE: u16 = 17;
    /// The session is not open.
    pub const NOT_OPEN: u16 = 257;
    /// The context is unknown.
    pub const UNSUPPORTED_CONTEXT: u16 = 262;
    /// Another session has registered this.
    pub const DUPLICATE_REGISTRATION: u16 = 263;
    /// The PDU cannot be decoded.
    pub const PARSE: u16 = 266;
}

/// Reasons of a Close (section 6.2.2).
pub mod close {
    /// Another reason.
    pub const OTHER: u8 = 1;
    /// Too many PDUs could not be decoded.
    pub const PARSE_ERROR: u8 = 2;
    /// The subagent ends.
    pub const SHUTDOWN: u8 = 5;
}

/// The header of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The PDU's type, 1 to 18 if it is known.
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// The session.
    pub session: u32,
    /// The transaction.
    pub transaction: u32,
    /// The packet; a response has that of its request.
    pub packet: u32,
    /// Octets of the payload: a multiple of 4, at most [`PAYLOAD_MAX`].
    pub payload: usize,
}

/// A PDU with its context, if that is not the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The session.
    pub session: u32,
    /// The transaction.
    pub transaction: u32,
    /// The packet.
    pub packet: u32,
    /// The context; `None` for the default one.
    pub context: Option<Vec<u8>>,
    /// What it says.
    pub body: Body,
}

/// A range of variables (section 5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its start.
    pub start: Oid,
    /// Whether the start itself is in it.
    pub includes: bool,
    /// Its end, which is not in it; the null identifier for none.
    pub end: Oid,
}

/// A variable (section 5.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: Oid,
    /// Its value.
    pub value: Value,
}

/// A value (section 5.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Integer32.
    Integer(i32),
    /// An OCTET STRING.
    Octets(Vec<u8>),
    /// Null.
    Null,
    /// An OBJECT IDENTIFIER.
    ObjectId(Oid),
    /// An IPv4 address.
    IpAddress([u8; 4]),
    /// Counter32.
    Counter32(u32),
    /// Gauge32 or Unsigned32.
    Gauge32(u32),
    /// Hundredths of a second.
    TimeTicks(u32),
    /// Opaque.
    Opaque(Vec<u8>),
    /// Counter64.
    Counter64(u64),
    /// There is no such object.
    NoSuchObject,
    /// The object has no such instance.
    NoSuchInstance,
    /// Nothing follows.
    EndOfMibView,
}

/// The contents of a PDU (section 6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// agentx-Open-PDU: time-out in seconds, who opens, and a description.
    Open {
        /// Seconds that the master waits for a response; 0 for its own default.
        timeout_s: u8,
        /// What identifies the subagent; may be null.
        id: Oid,
        /// What the subagent is.
        description: Vec<u8>,
    },
    /// agentx-Close-PDU with its reason; see [`close`].
    Close(u8),
    /// agentx-Register-PDU.
    Register(Registration),
    /// agentx-Unregister-PDU.
    Unregister(Registration),
    /// agentx-Get-PDU.
    Get(Vec<Range>),
    /// agentx-GetNext-PDU.
    GetNext(Vec<Range>),
    /// agentx-GetBulk-PDU.
    GetBulk {
        /// How many of the ranges are asked once.
        non_repeaters: u16,
        /// How often the others are asked.
        max_repetitions: u16,
        /// The ranges.
        ranges: Vec<Range>,
    },
    /// agentx-TestSet-PDU.
    TestSet(Vec<Variable>),
    /// agentx-CommitSet-PDU.
    CommitSet,
    /// agentx-UndoSet-PDU.
    UndoSet,
    /// agentx-CleanupSet-PDU.
    CleanupSet,
    /// agentx-Notify-PDU.
    Notify(Vec<Variable>),
    /// agentx-Ping-PDU.
    Ping,
    /// agentx-IndexAllocate-PDU.
    IndexAllocate(Vec<Variable>),
    /// agentx-IndexDeallocate-PDU.
    IndexDeallocate(Vec<Variable>),
    /// agentx-AddAgentCaps-PDU: the capabilities and their description.
    AddAgentCaps(Oid, Vec<u8>),
    /// agentx-RemoveAgentCaps-PDU.
    RemoveAgentCaps(Oid),
    /// agentx-Response-PDU.
    Response {
        /// The master's sysUpTime in hundredths of a second.
        uptime: u32,
        /// See [`error`].
        error: u16,
        /// The variable of the error, from 1; 0 for none.
        index: u16,
        /// The variables.
        variables: Vec<Variable>,
    },
}

/// What a Register or Unregister names (sections 6.2.3 and 6.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Seconds for responses of this subtree; 0 for the session's.
    pub timeout_s: u8,
    /// The priority; lower ones win. 127 is the default.
    pub priority: u8,
    /// The sub-identifier that is a range; 0 for none.
    pub range: u8,
    /// The subtree.
    pub subtree: Oid,
    /// The last value of the range, if there is one.
    pub upper_bound: u32,
}

/// Why bytes are no PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The version is not 1.
    #[error("version {0}")]
    Version(u8),
    /// The length of the payload is no multiple of 4, or too large.
    #[error("payload of {0} octets")]
    Payload(u32),
    /// The payload ends too early.
    #[error("too short")]
    Short,
    /// An identifier has too many sub-identifiers.
    #[error("object identifier of {0} sub-identifiers")]
    Identifier(usize),
    /// There are too many ranges or variables.
    #[error("more than {ITEMS_MAX} variables")]
    Items,
    /// A value has an unknown type.
    #[error("value of type {0}")]
    ValueType(u16),
    /// The type of the PDU is unknown.
    #[error("PDU of type {0}")]
    Kind(u8),
    /// Octets are left over.
    #[error("octets after the end")]
    Trailing,
}
