//! DHCPv6 messages between client and server (RFC 8415, sections 8 and 21). Start reading at [`Message::read`].
//!
//! Options are checked as a list before the first is read, at each level that the reader enters. Unknown codes are
//! kept. Left out: relay messages (section 9), whose types are refused; authentication (section 20).

#[cfg(test)]
mod tests;

use core::net::Ipv6Addr;

/// The server's and relays' UDP port (section 7.2).
pub const SERVER_PORT: u16 = 547;
/// The client's UDP port.
pub const CLIENT_PORT: u16 = 546;
/// All servers and relays on the link (section 7.1).
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// The longest DUID, in octets, with its type (section 11.1).
pub const DUID_MAX: usize = 130;

/// The type of a message (section 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A client looks for servers.
    Solicit,
    /// A server offers leases.
    Advertise,
    /// A client asks for leases.
    Request,
    /// A client asks whether its addresses are still right for the link.
    Confirm,
    /// A client asks its server to extend leases.
    Renew,
    /// A client asks any server to extend leases.
    Rebind,
    /// A server answers.
    Reply,
    /// A client gives leases back.
    Release,
    /// A client found its addresses in use.
    Decline,
    /// A server asks a client to renew.
    Reconfigure,
    /// A client asks for configuration without leases.
    InformationRequest,
}

impl Kind {
    /// Every type, by its number less one.
    pub const ALL: [Self; 11] = [
        Self::Solicit,
        Self::Advertise,
        Self::Request,
        Self::Confirm,
        Self::Renew,
        Self::Rebind,
        Self::Reply,
        Self::Release,
        Self::Decline,
        Self::Reconfigure,
        Self::InformationRequest,
    ];

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Codes of options (section 21; RFC 3646 for the names of servers).
pub mod code {
    /// Client Identifier.
    pub const CLIENT_ID: u16 = 1;
    /// Server Identifier.
    pub const SERVER_ID: u16 = 2;
    /// Identity Association for Non-temporary Addresses.
    pub const IA_NA: u16 = 3;
    /// Identity Association for Temporary Addresses.
    pub const IA_TA: u16 = 4;
    /// IA Address.
    pub const IA_ADDRESS: u16 = 5;
    /// Option Request.
    pub const ORO: u16 = 6;
    /// Preference.
    pub const PREFERENCE: u16 = 7;
    /// Elapsed Time.
    pub const ELAPSED_TIME: u16 = 8;
    /// Status Code.
    pub const STATUS: u16 = 13;
    /// Rapid Commit.
    pub const RAPID_COMMIT: u16 = 14;
    /// DNS Recursive Name Server (RFC 3646, section 3).
    pub const DNS_SERVERS: u16 = 23;
    /// Domain Search List (RFC 3646, section 4).
    pub const DOMAIN_LIST: u16 = 24;
    /// Identity Association for Prefix Delegation.
    pub const IA_PD: u16 = 25;
    /// IA Prefix.
    pub const IA_PREFIX: u16 = 26;
    /// SOL_MAX_RT.
    pub const SOL_MAX_RT: u16 = 82;
}

/// Status codes (section 21.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Status {
    /// It worked.
    Success = 0,
    /// It failed for no reason of this list.
    UnspecFail = 1,
    /// No addresses are available for the IA.
    NoAddrsAvail = 2,
    /// The client's lease is unknown.
    NoBinding = 3,
    /// An address is not right for the link.
    NotOnLink = 4,
    /// The client must send to the multicast address.
    UseMulticast = 5,
    /// No prefixes are available for the IA.
    NoPrefixAvail = 6,
}

/// Why octets are no message that a server or client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DhcpError {
    /// Fewer than 4 octets.
    #[error("truncated message")]
    Truncated,
    /// A relay's message, or an unknown type.
    #[error("message type {0}")]
    Kind(u8),
    /// An option runs past the end of its list.
    #[error("option {0} cut short")]
    Option(u16),
}

/// An option that may occur once occurs more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("option {0} given twice")]
pub struct Repeated(pub u16);

/// A message between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: Kind,
    /// Its transaction, chosen by the client.
    pub transaction: [u8; 3],
    /// Its options.
    pub options: Options<'a>,
}

impl<'a> Message<'a> {
    /// Reads the content of a UDP datagram.
    ///
    /// # Errors
    /// See [`DhcpError`].
    pub fn read(octets: &'a [u8]) -> Result<Self, DhcpError> {
        let (head, options) = octets
            .split_first_chunk::<4>()
            .ok_or(DhcpError::Truncated)?;
        let [number, transaction @ ..] = *head;
        let kind = usize::from(number).checked_sub(1);
        let kind = kind.and_then(|place| Kind::ALL.get(place));
        Ok(Self {
            kind: *kind.ok_or(DhcpError::Kind(number))?,
            transaction,
            options: Options::read(options)?,
        })
    }
}

/// A checked list of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options<'a>(&'a [u8]);

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opt<'a> {
    /// Its code.
    pub code: u16,
    /// Its content.
    pub value: &'a [u8],
}

impl<'a> Options<'a> {
    /// Checks a list: every option ends within it.
    ///
    /// # Errors
    /// [`DhcpError::Option`].
    pub fn read(octets: &'a [u8]) -> Result<Self, DhcpError> {
        let mut rest = Self(octets);
        while !rest.0.is_empty() {
            let before = rest.0;
            if rest.next().is_none() {
                let code = before
                    .first_chunk()
                    .map_or(0, |code| u16::from_be_bytes(*code));
                return Err(DhcpError::Option(code));
            }
        }
        Ok(Self(octets))
    }

    /// The content of the only option with a code.
    ///
    /// # Errors
    /// The code occurs more than once.
    pub fn only(self, code: u16) -> Result<Option<&'a [u8]>, Repeated> {
        let mut all = self.filter(|one| one.code == code).map(|one| one.value);
        let first = all.next();
        match all.next() {
            None => Ok(first),
            Some(_) => Err(Repeated(code)),
        }
    }

    /// Whether a code occurs.
    #[must_use]
    pub fn has(mut self, code: u16) -> bool {
        self.any(|one| one.code == code)
    }

    /// Whether an Option Request asks for a code (section 21.7).
    #[must_use]
    pub fn requests(mut self, code: u16) -> bool {
        self.any(|one| {
            let (codes, _) = one.value.as_chunks::<2>();
            one.code == code::ORO && codes.contains(&code.to_be_bytes())
        })
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Opt<'a>;

    fn next(&mut self) -> Option<Opt<'a>> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        let [a, b, c, d] = *head;
        let length = usize::from(u16::from_be_bytes([c, d]));
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Opt {
            code: u16::from_be_bytes([a, b]),
            value,
        })
    }
}

/// An identity association of addresses or of prefixes (sections 21.4 and 21.21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Association<'a> {
    /// Its id, unique for the client.
    pub iaid: u32,
    /// When to renew, in seconds.
    pub t1_s: u32,
    /// When to rebind, in seconds.
    pub t2_s: u32,
    /// Its leases, and its status.
    pub options: Options<'a>,
}

impl<'a> Association<'a> {
    /// Reads the content of an IA_NA or IA_PD; `None` if it is malformed.
    #[must_use]
    pub fn read(value: &'a [u8]) -> Option<Self> {
        let (head, options) = value.split_first_chunk::<12>()?;
        let (words, _) = head.as_chunks::<4>();
        let [iaid, t1_s, t2_s] = [0, 1, 2].map(|place| u32::from_be_bytes(words[place]));
        Some(Self {
            iaid,
            t1_s,
            t2_s,
            options: Options::read(options).ok()?,
        })
    }

    /// Its leases: those of the well-formed options.
    pub fn leases(self) -> impl Iterator<Item = Lease> + 'a {
        self.options.filter_map(|one| Lease::read(one))
    }
}

/// An address or a prefix in an identity association (sections 21.6 and 21.22).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its prefix length; `None` for an address.
    pub length: Option<u8>,
    /// How long it is preferred, in seconds.
    pub preferred_s: u32,
    /// How long it is valid, in seconds.
    pub valid_s: u32,
}

impl Lease {
    fn read(one: Opt<'_>) -> Option<Self> {
        let seconds = |at: usize| {
            let octets = one.value.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_be_bytes(*octets))
        };
        let address = |at: usize| {
            let octets = one.value.get(at..)?.first_chunk::<16>()?;
            Some(Ipv6Addr::from(*octets))
        };
        match one.code {
            code::IA_ADDRESS => Some(Self {
                address: address(0)?,
                length: None,
                preferred_s: seconds(16)?,
                valid_s: seconds(20)?,
            }),
            code::IA_PREFIX => Some(Self {
                preferred_s: seconds(0)?,
                valid_s: seconds(4)?,
                length: one.value.get(8).copied().filter(|length| *length <= 128),
                address: address(9)?,
            })
            .filter(|lease| lease.length.is_some()),
            _ => None,
        }
    }

    /// Appends it as an option.
    pub fn write(&self, out: &mut Writer<'_>) {
        let times = [self.preferred_s, self.valid_s].map(u32::to_be_bytes);
        let times = times.as_flattened();
        let octets = self.address.octets();
        match self.length {
            None => out.option(code::IA_ADDRESS, &[&octets, times]),
            Some(length) => out.option(code::IA_PREFIX, &[times, &[length], &octets]),
        }
    }
}

/// Writes a message.
pub struct Writer<'o>(&'o mut Vec<u8>);

impl<'o> Writer<'o> {
    /// Starts a message behind what `out` has.
    pub fn new(kind: Kind, transaction: [u8; 3], out: &'o mut Vec<u8>) -> Self {
        out.push(kind.number());
        out.extend_from_slice(&transaction);
        Self(out)
    }

    /// Appends an option whose content is these parts, at most 65,535 octets.
    pub fn option(&mut self, code: u16, parts: &[&[u8]]) {
        self.nest(code, |out| {
            for part in parts {
                out.0.extend_from_slice(part);
            }
        });
    }

    /// Appends a status option.
    pub fn status(&mut self, status: Status, message: &str) {
        let number = (status as u16).to_be_bytes();
        self.option(code::STATUS, &[&number, message.as_bytes()]);
    }

    /// Appends an identity association.
    pub fn association(
        &mut self,
        code: u16,
        [iaid, t1_s, t2_s]: [u32; 3],
        content: impl FnOnce(&mut Writer<'_>),
    ) {
        self.nest(code, |out| {
            for word in [iaid, t1_s, t2_s] {
                out.0.extend_from_slice(&word.to_be_bytes());
            }
            content(out);
        });
    }

    fn nest(&mut self, code: u16, content: impl FnOnce(&mut Writer<'_>)) {
        self.0.extend_from_slice(&code.to_be_bytes());
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 2]);
        content(&mut Writer(self.0));
        let length = u16::try_from(self.0.len() - start - 2).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_be_bytes());
    }
}
