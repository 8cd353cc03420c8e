//! A packet filter for raw ICMP sockets, which else receive what every other process is answered.

use crate::sys::socket::Instruction;
use crate::timed::Family;

/// Loads an octet or 16 bits at an offset, or at one relative to X; loads X with the length of an IPv4 header;
/// compares; returns (bpf(4), Linux's `filter.rst`).
const LOAD_OCTET: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_OCTET_X: u16 = 0x50;
const LOAD_HALF_X: u16 = 0x48;
const LENGTH_TO_X: u16 = 0xb1;
const EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

const ECHO_REPLY: u32 = 0;
const ECHO_REPLY_V6: u32 = 129;

/// Accepts echo replies with `identifier`. IPv4's raw sockets see the IP header, IPv6's do not.
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
