//! Tags of Discovery packets: RFC 2516, section 5 and appendix A; RFC 4638, section 4.

use super::lines::ADSL_FORUM;
use super::packet::ParseError;

/// Octets of a tag's header.
pub(super) const TAG_HEADER_LEN: usize = 4;

/// TAG_TYPE values.
pub mod tag {
    /// Ends the list of tags.
    pub const END_OF_LIST: u16 = 0x0000;
    /// A service; of zero length: any.
    pub const SERVICE_NAME: u16 = 0x0101;
    /// The access concentrator's name.
    pub const AC_NAME: u16 = 0x0102;
    /// The host's own mark, which the access concentrator returns.
    pub const HOST_UNIQ: u16 = 0x0103;
    /// The access concentrator's own mark, which the host returns.
    pub const AC_COOKIE: u16 = 0x0104;
    /// A vendor's number and data.
    pub const VENDOR_SPECIFIC: u16 = 0x0105;
    /// A relay's mark, which both sides return.
    pub const RELAY_SESSION_ID: u16 = 0x0110;
    /// The largest PPP payload that the host supports (RFC 4638).
    pub const PPP_MAX_PAYLOAD: u16 = 0x0120;
    /// The requested service is refused.
    pub const SERVICE_NAME_ERROR: u16 = 0x0201;
    /// The access concentrator failed.
    pub const AC_SYSTEM_ERROR: u16 = 0x0202;
    /// Any other error.
    pub const GENERIC_ERROR: u16 = 0x0203;
}

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// TAG_TYPE, see [`tag`].
    pub kind: u16,
    /// TAG_VALUE.
    pub value: &'a [u8],
}

/// The tags of a payload, in order, to its end or to an End-Of-List. Yields one error at the most, as its last item.
#[derive(Clone, Copy, Debug)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// The tags of a Discovery packet's payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Tags(payload)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<Tag<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = core::mem::take(&mut self.0);
        if rest.is_empty() {
            return None;
        }
        let Some((&[t0, t1, l0, l1], rest)) = rest.split_first_chunk::<TAG_HEADER_LEN>() else {
            return Some(Err(ParseError::TagLength));
        };
        let kind = u16::from_be_bytes([t0, t1]);
        if kind == tag::END_OF_LIST {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let Some((value, rest)) = rest.split_at_checked(length) else {
            return Some(Err(ParseError::TagLength));
        };
        self.0 = rest;
        Some(Ok(Tag { kind, value }))
    }
}

/// The kind of an error tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Service-Name-Error.
    ServiceName,
    /// AC-System-Error.
    System,
    /// Generic-Error.
    Generic,
}

impl FaultKind {
    /// Its TAG_TYPE.
    #[must_use]
    pub const fn tag(self) -> u16 {
        match self {
            Self::ServiceName => tag::SERVICE_NAME_ERROR,
            Self::System => tag::AC_SYSTEM_ERROR,
            Self::Generic => tag::GENERIC_ERROR,
        }
    }

    /// The RFC's name of the tag.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServiceName => "Service-Name-Error",
            Self::System => "AC-System-Error",
            Self::Generic => "Generic-Error",
        }
    }
}

/// An error tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault<'a> {
    /// Which of the three.
    pub kind: FaultKind,
    /// Its text, in UTF-8 if the sender follows the RFC. Empty if there is none.
    pub text: &'a [u8],
}

/// The known tags of a Discovery packet. If a tag other than Service-Name is repeated, the first one counts. Unknown
/// tags and those of other vendors are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discovery<'a> {
    /// The first Service-Name.
    pub service_name: Option<&'a [u8]>,
    /// How many Service-Name tags there are.
    pub services: u16,
    /// AC-Name.
    pub ac_name: Option<&'a [u8]>,
    /// Host-Uniq.
    pub host_uniq: Option<&'a [u8]>,
    /// AC-Cookie.
    pub ac_cookie: Option<&'a [u8]>,
    /// Relay-Session-Id.
    pub relay_session_id: Option<&'a [u8]>,
    /// PPP-Max-Payload; a tag whose length is not 2 is ignored.
    pub max_payload: Option<u16>,
    /// What follows the vendor's number in the Vendor-Specific tag of the Broadband Forum: see
    /// [`LineInfo::parse`](super::LineInfo::parse).
    pub line: Option<&'a [u8]>,
    /// The first error tag.
    pub fault: Option<Fault<'a>>,
    payload: &'a [u8],
}

impl<'a> Discovery<'a> {
    /// Parses the tags of a Discovery packet.
    ///
    /// # Errors
    /// A tag is beyond the payload's end.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ParseError> {
        let mut found = Self {
            payload,
            ..Self::default()
        };
        for tag in Tags::new(payload) {
            found.add(tag?);
        }
        Ok(found)
    }

    fn add(&mut self, Tag { kind, value }: Tag<'a>) {
        let first = |place: &mut Option<&'a [u8]>| {
            place.get_or_insert(value);
        };
        match kind {
            tag::SERVICE_NAME => {
                first(&mut self.service_name);
                self.services = self.services.saturating_add(1);
            }
            tag::AC_NAME => first(&mut self.ac_name),
            tag::HOST_UNIQ => first(&mut self.host_uniq),
            tag::AC_COOKIE => first(&mut self.ac_cookie),
            tag::RELAY_SESSION_ID => first(&mut self.relay_session_id),
            tag::PPP_MAX_PAYLOAD => {
                if let Ok(value) = <[u8; 2]>::try_from(value) {
                    self.max_payload.get_or_insert(u16::from_be_bytes(value));
                }
            }
            tag::VENDOR_SPECIFIC => {
                if let Some((vendor, data)) = value.split_first_chunk::<4>()
                    && u32::from_be_bytes(*vendor) == ADSL_FORUM
                {
                    self.line.get_or_insert(data);
                }
            }
            tag::SERVICE_NAME_ERROR => self.add_fault(FaultKind::ServiceName, value),
            tag::AC_SYSTEM_ERROR => self.add_fault(FaultKind::System, value),
            tag::GENERIC_ERROR => self.add_fault(FaultKind::Generic, value),
            _ => {}
        }
    }

    /// "If there is data, and the first octet of the data is nonzero", it is a text, perhaps with a NUL at its end
    /// (RFC 2516, appendix A: "MAY NOT be NULL terminated").
    fn add_fault(&mut self, kind: FaultKind, value: &'a [u8]) {
        let end = value.iter().position(|octet| *octet == 0);
        let text = &value[..end.unwrap_or(value.len())];
        self.fault.get_or_insert(Fault { kind, text });
    }

    /// The values of all Service-Name tags, in order.
    pub fn service_names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Tags::new(self.payload)
            .map_while(Result::ok)
            .filter(|tag| tag.kind == tag::SERVICE_NAME)
            .map(|tag| tag.value)
    }
}
