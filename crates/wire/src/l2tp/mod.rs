//! L2TPv2 (RFC 2661) and L2TPv3 over UDP (RFC 3931) on the wire: packet
//! headers, control messages and their AVPs, AVP hiding, the challenge
//! response of v2 and the message digest of v3.
//!
//! On receipt, call in this order: [`parse`] for the header; for a v3 control message, [`digest::verify`]; then
//! [`Message::parse`]. If [`Message::has_hidden`] returns true and a secret is configured, call
//! [`hidden::unhide`] and [`Message::parse`] again.
//!
//! Left out: L2TPv3 directly over IP (RFC 3931 4.1.1), the AVPs of the companion documents (RFC 3301, 3308,
//! 3573, 4951) except for RFC 3145 and RFC 5515, and every rule that depends on earlier messages. Which AVPs a message must carry is up to
//! the protocol machine.

pub mod attribute;
pub mod auth;
pub mod avp;
pub mod data;
pub mod digest;
pub mod disconnect;
pub mod header;
pub mod hidden;
pub mod message;
pub mod message_type;
pub mod speed;
pub mod writer;

pub use attribute::Attribute;
pub use avp::{AVP_HEADER_LEN, Avp, Avps, VALUE_LEN_MAX};
pub use data::{DATA_HEADER_MAX, DataV2, DataV3, Sublayer, write_data_v2, write_data_v3};
pub use digest::DigestType;
pub use disconnect::DisconnectCause;
pub use header::{
    CONTROL_HEADER_LEN, Control, Packet, ParseError, Version, emit_control, is_zlb, parse,
};
pub use hidden::{HiddenError, unhide};
pub use message::{Fault, Message, ResultCode};
pub use message_type::MessageType;
pub use speed::ConnectSpeed;
pub use writer::Writer;
