//! Malformed UPDATEs for events of kind `malformed`. Each has one fault, and RFC 7606 defines how a receiver must
//! handle it.

use wire::bgp::Prefix;

use crate::topology::Router;

/// The names of the faults.
pub(super) const KINDS: [&str; 6] = [
    "origin",
    "as_path",
    "missing",
    "flags",
    "nlri",
    "attributes_length",
];

/// Maximum length of a message in octets, RFC 4271 section 4.1.
const MESSAGE_MAX: usize = 4096;
const HEADER_LEN: usize = 19;

/// Builds the UPDATE from `from` that announces the IPv4 prefix with the fault `what`, header included.
///
/// | `what` | fault | RFC 7606 |
/// |---|---|---|
/// | origin | a value that is none of the three | treat-as-withdraw, 7.1 |
/// | as_path | a segment that reaches beyond the attribute | treat-as-withdraw, 7.2 |
/// | missing | no NEXT_HOP | treat-as-withdraw, 3(d) |
/// | flags | ORIGIN marked as optional | treat-as-withdraw, 3(c) |
/// | nlri | a prefix of 33 bits | session reset, 5.3 |
/// | attributes_length | more attributes than the message has | session reset, 3(b) |
pub(super) fn update(what: &str, from: &Router, prefix: Prefix) -> Vec<u8> {
    let origin_flags = if what == "flags" { 0xc0 } else { 0x40 };
    let origin_value = if what == "origin" { 7 } else { 0 };
    let mut attributes = vec![origin_flags, 1, 1, origin_value];
    let hops = if what == "as_path" { 9 } else { 1 };
    attributes.extend([0x40, 2, 6, 2, hops]);
    attributes.extend(from.asn.to_be_bytes());
    if what != "missing" {
        attributes.extend([0x40, 3, 4]);
        attributes.extend(from.address.octets());
    }
    let stated = attributes.len() + if what == "attributes_length" { 200 } else { 0 };
    let mut body = vec![0, 0];
    body.extend((stated as u16).to_be_bytes());
    body.extend(attributes);
    let length = if what == "nlri" { 33 } else { prefix.len() };
    body.push(length);
    if let std::net::IpAddr::V4(address) = prefix.address() {
        let octets = usize::from(prefix.len().div_ceil(8));
        body.extend(&address.octets()[..octets]);
    }
    framed(&body)
}

/// Builds an UPDATE from its body in hexadecimal digits. Spaces between the digits are ignored.
pub(super) fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| letter.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.ok_or("has a letter that is no hexadecimal digit")?;
    if digits.len() % 2 != 0 {
        return Err("has half an octet at its end".to_owned());
    }
    let body: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    if body.len() + HEADER_LEN > MESSAGE_MAX {
        return Err(format!(
            "is longer than {} octets",
            MESSAGE_MAX - HEADER_LEN
        ));
    }
    Ok(framed(&body))
}

fn framed(body: &[u8]) -> Vec<u8> {
    let length = (HEADER_LEN + body.len()) as u16;
    let mut message = vec![0xff; 16];
    message.extend(length.to_be_bytes());
    message.push(2);
    message.extend(body);
    message
}
