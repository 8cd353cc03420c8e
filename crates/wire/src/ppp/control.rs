//! The format common to PPP's control protocols (RFC 1661, sections 5 and 6): a packet with code, identifier
//! and length, and options with type and length.

/// Codes of RFC 1661, section 5.
pub mod code {
    /// Configure-Request.
    pub const CONFIGURE_REQUEST: u8 = 1;
    /// Configure-Ack.
    pub const CONFIGURE_ACK: u8 = 2;
    /// Configure-Nak.
    pub const CONFIGURE_NAK: u8 = 3;
    /// Configure-Reject.
    pub const CONFIGURE_REJECT: u8 = 4;
    /// Terminate-Request.
    pub const TERMINATE_REQUEST: u8 = 5;
    /// Terminate-Ack.
    pub const TERMINATE_ACK: u8 = 6;
    /// Code-Reject.
    pub const CODE_REJECT: u8 = 7;
    /// Protocol-Reject (LCP only).
    pub const PROTOCOL_REJECT: u8 = 8;
    /// Echo-Request (LCP only).
    pub const ECHO_REQUEST: u8 = 9;
    /// Echo-Reply (LCP only).
    pub const ECHO_REPLY: u8 = 10;
    /// Discard-Request (LCP only).
    pub const DISCARD_REQUEST: u8 = 11;
    /// Identification (LCP only; RFC 1570, section 2.1).
    pub const IDENTIFICATION: u8 = 12;
    /// Time-Remaining (LCP only; RFC 1570, section 2.2).
    pub const TIME_REMAINING: u8 = 13;
}

/// Octets of code, identifier and length.
pub const HEADER: usize = 4;

/// A packet of a control protocol, or of PAP or CHAP, which share the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control<'a> {
    /// Its code.
    pub code: u8,
    /// Matches a reply to its request.
    pub identifier: u8,
    /// Its data, up to the length field's end; padding is excluded.
    pub data: &'a [u8],
}

/// A control packet that is silently discarded (RFC 1661, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLength;

impl core::fmt::Display for BadLength {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a control packet's length is below four, or more than there is")
    }
}

impl core::error::Error for BadLength {}

impl<'a> Control<'a> {
    /// Reads a packet from a frame's information field.
    ///
    /// # Errors
    /// Its length is invalid.
    pub fn parse(information: &'a [u8]) -> Result<Self, BadLength> {
        let (&[code, identifier, high, low], _) =
            information.split_first_chunk().ok_or(BadLength)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let data = information.get(HEADER..length).ok_or(BadLength)?;
        Ok(Self {
            code,
            identifier,
            data,
        })
    }
}

/// Appends a packet; `write` appends its data.
///
/// Data beyond 65,531 octets is truncated; callers keep theirs within the peer's MRU.
pub fn emit(out: &mut Vec<u8>, code: u8, identifier: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[code, identifier, 0, 0]);
    write(out);
    let length = match u16::try_from(out.len() - start) {
        Ok(length) => length,
        Err(_) => {
            out.truncate(start + HEADER);
            HEADER as u16
        }
    };
    out[start + 2..start + HEADER].copy_from_slice(&length.to_be_bytes());
}

/// A configuration option (RFC 1661, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigOption<'a> {
    /// Its type.
    pub kind: u8,
    /// Its data.
    pub data: &'a [u8],
    /// The whole option as received, with type and length.
    pub octets: &'a [u8],
}

/// Iterates over the options of a Configure packet.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Reads the data of a Configure packet.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// Whether every option is complete: no length is below two or exceeds the data.
    #[must_use]
    pub fn are_whole(self) -> bool {
        let mut options = self;
        while options.next().is_some() {}
        options.rest.is_empty()
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = ConfigOption<'a>;

    /// The next option; `None` at the end, or at an incomplete one.
    fn next(&mut self) -> Option<ConfigOption<'a>> {
        let &[kind, length, ..] = self.rest else {
            return None;
        };
        let (octets, rest) = self.rest.split_at_checked(usize::from(length))?;
        let data = octets.get(2..)?;
        self.rest = rest;
        Some(ConfigOption { kind, data, octets })
    }
}

/// Appends an option; its data is truncated to 253 octets.
pub fn emit_option(out: &mut Vec<u8>, kind: u8, data: &[u8]) {
    let data = &data[..data.len().min(253)];
    out.extend_from_slice(&[kind, data.len() as u8 + 2]);
    out.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_no_part_of_a_packet() {
        let packet = Control::parse(&[1, 7, 0, 8, 1, 4, 5, 220, 0, 0]).unwrap();
        assert_eq!((packet.code, packet.identifier), (1, 7));
        assert_eq!(packet.data, [1, 4, 5, 220]);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for octets in [
            &[][..],
            &[1, 2, 0],
            &[1, 2, 0, 3],
            &[1, 2, 0, 5],
            &[1, 2, 255, 255],
        ] {
            assert_eq!(Control::parse(octets), Err(BadLength), "{octets:?}");
        }
    }

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let mut out = vec![9];
        emit(&mut out, code::CONFIGURE_REQUEST, 3, |out| {
            emit_option(out, 1, &1500_u16.to_be_bytes());
            emit_option(out, 7, &[]);
        });
        assert_eq!(out, [9, 1, 3, 0, 10, 1, 4, 5, 220, 7, 2]);
        let packet = Control::parse(&out[1..]).unwrap();
        let kinds: Vec<u8> = Options::new(packet.data)
            .map(|option| option.kind)
            .collect();
        assert_eq!(kinds, [1, 7]);
        assert!(Options::new(packet.data).are_whole());
    }

    #[test]
    fn options_end_at_one_that_is_not_whole() {
        for (data, whole) in [
            (&[1, 4, 0, 1, 5, 1][..], 1),
            (&[1, 0], 0),
            (&[1, 3, 0, 2], 1),
            (&[1, 9, 0], 0),
        ] {
            let options = Options::new(data);
            assert_eq!(options.count(), whole, "{data:?}");
            assert!(!options.are_whole(), "{data:?}");
        }
    }

    #[test]
    fn data_that_no_length_can_say_is_left_out() {
        let mut out = Vec::new();
        emit(&mut out, 10, 1, |out| out.resize(70_000, 0));
        assert_eq!(out, [10, 1, 0, 4]);
    }
}
