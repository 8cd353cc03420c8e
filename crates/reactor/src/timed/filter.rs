//! A packet filter for raw ICMP sockets. Without it they receive the replies to every other process too.

use crate::sys::socket::Instruction;
use crate::timed::Family;

/// Load a byte or 16 bits at an offset, or at one relative to X; load X with the length of an IPv4 header; compare;
/// return (bpf(4), Linux's `filter.rst`).
const LOAD_OCTET: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_OCTET_X: u16 = 0x50;
const LOAD_HALF_X: u16 = 0x48;
const LENGTH_TO_X: u16 = 0xb1;
const EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

const ECHO_REPLY: u32 = 0;
const ECHO_REPLY_V6: u32 = 129;

/// Accepts echo replies with `identifier`. Raw IPv4 sockets see the IP header, raw IPv6 sockets do not.
pub(super) fn echo_replies(family: Family, identifier: u16) -> Vec<Instruction> {
    let identifier = u32::from(identifier);
    let (mut program, octet, half, reply) = match family {
        Family::V4 => (
            vec![(LENGTH_TO_X, 0, 0, 0)],
            LOAD_OCTET_X,
            LOAD_HALF_X,
            ECHO_REPLY,
        ),
        Family::V6 => (vec![], LOAD_OCTET, LOAD_HALF, ECHO_REPLY_V6),
    };
    program.extend([
        (octet, 0, 0, 0),
        (EQUAL, 0, 3, reply),
        (half, 0, 0, 4),
        (EQUAL, 0, 1, identifier),
        (RETURN, 0, 0, u32::MAX),
        (RETURN, 0, 0, 0),
    ]);
    program
}
