//! Capabilities in an OPEN message: RFC 5492 and the RFCs that define each one.

use std::fmt;

use super::family::AfiSafi;
use super::writer::TooLong;

mod number {
    pub(super) const MULTIPROTOCOL: u8 = 1;
    pub(super) const ROUTE_REFRESH: u8 = 2;
    pub(super) const EXTENDED_MESSAGE: u8 = 6;
    pub(super) const ROLE: u8 = 9;
    pub(super) const GRACEFUL_RESTART: u8 = 64;
    pub(super) const FOUR_OCTET_AS: u8 = 65;
    pub(super) const ADD_PATH: u8 = 69;
    pub(super) const ENHANCED_REFRESH: u8 = 70;
    pub(super) const FQDN: u8 = 73;
}

/// A capability. A value that violates its specification is treated as not understood
/// ([`Unknown`](Capability::Unknown)) and must be ignored (RFC 5492, section 3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Capability {
    /// Multiprotocol extensions (RFC 4760, section 8).
    Multiprotocol(AfiSafi),
    /// Route refresh (RFC 2918).
    RouteRefresh,
    /// Messages of up to 65,535 octets (RFC 8654).
    ExtendedMessage,
    /// The sender's role, by number (RFC 9234, section 4.1); [`Role::from_number`] knows it.
    Role(u8),
    /// Graceful restart (RFC 4724).
    GracefulRestart(GracefulRestart),
    /// Four-octet AS numbers, and the sender's own number (RFC 6793).
    FourOctetAs(u32),
    /// Multiple paths per prefix (RFC 7911): what the sender supports. Entries with a mode other than 1 to 3
    /// are dropped.
    AddPath(Vec<(AfiSafi, AddPathMode)>),
    /// Enhanced route refresh (RFC 7313).
    EnhancedRouteRefresh,
    /// The sender's host and domain name (draft-walton-bgp-hostname-capability), as arbitrary bytes.
    Fqdn {
        /// Host name.
        host: Vec<u8>,
        /// Domain name; often empty.
        domain: Vec<u8>,
    },
    /// Any other capability.
    Unknown {
        /// Capability Code.
        code: u8,
        /// Capability Value.
        value: Vec<u8>,
    },
}

/// The graceful restart capability (RFC 4724, section 3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct GracefulRestart {
    /// Restart State (R): the sender has restarted, so the receiver must not wait for its End-of-RIB.
    pub restarted: bool,
    /// Graceful Notification (N, RFC 8538): a NOTIFICATION also starts a graceful restart.
    pub notification: bool,
    /// Seconds until the session is expected to be re-established, at most 4,095.
    pub time_s: u16,
    /// Families, each with whether its forwarding state was preserved (F).
    pub families: Vec<(AfiSafi, bool)>,
}

/// Which directions of multiple paths the sender supports (RFC 7911, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AddPathMode {
    /// The sender can receive multiple paths.
    Receive = 1,
    /// The sender can send multiple paths.
    Send = 2,
    /// Both.
    Both = 3,
}

impl AddPathMode {
    /// The mode with that number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(AddPathMode::Receive),
            2 => Some(AddPathMode::Send),
            3 => Some(AddPathMode::Both),
            _ => None,
        }
    }

    /// Whether the sender can receive multiple paths.
    #[must_use]
    pub const fn receives(self) -> bool {
        self as u8 & 1 != 0
    }

    /// Whether the sender can send multiple paths.
    #[must_use]
    pub const fn sends(self) -> bool {
        self as u8 & 2 != 0
    }
}

/// The relationship of an AS to its neighbour (RFC 9234, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// A transit provider.
    Provider = 0,
    /// A route server.
    RouteServer = 1,
    /// A client of a route server.
    RouteServerClient = 2,
    /// A transit customer.
    Customer = 3,
    /// A lateral peer.
    Peer = 4,
}

impl Role {
    /// The role with that number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Role::Provider),
            1 => Some(Role::RouteServer),
            2 => Some(Role::RouteServerClient),
            3 => Some(Role::Customer),
            4 => Some(Role::Peer),
            _ => None,
        }
    }

    /// The role that the other side must have (RFC 9234, section 4.2).
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Role::Provider => Role::Customer,
            Role::RouteServer => Role::RouteServerClient,
            Role::RouteServerClient => Role::RouteServer,
            Role::Customer => Role::Provider,
            Role::Peer => Role::Peer,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Provider => "provider",
            Role::RouteServer => "rs-server",
            Role::RouteServerClient => "rs-client",
            Role::Customer => "customer",
            Role::Peer => "peer",
        })
    }
}

const RESTARTED: u8 = 0x80;
const NOTIFICATION: u8 = 0x40;
const FORWARDING: u8 = 0x80;
const TIME_S_MAX: u16 = 0x0fff;

impl Capability {
    /// Its code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Capability::Multiprotocol(_) => number::MULTIPROTOCOL,
            Capability::RouteRefresh => number::ROUTE_REFRESH,
            Capability::ExtendedMessage => number::EXTENDED_MESSAGE,
            Capability::Role(_) => number::ROLE,
            Capability::GracefulRestart(_) => number::GRACEFUL_RESTART,
            Capability::FourOctetAs(_) => number::FOUR_OCTET_AS,
            Capability::AddPath(_) => number::ADD_PATH,
            Capability::EnhancedRouteRefresh => number::ENHANCED_REFRESH,
            Capability::Fqdn { .. } => number::FQDN,
            Capability::Unknown { code, .. } => *code,
        }
    }

    /// Reads the capability with that code.
    pub(super) fn read(code: u8, value: &[u8]) -> Self {
        Capability::known(code, value).unwrap_or_else(|| Capability::Unknown {
            code,
            value: value.to_vec(),
        })
    }

    fn known(code: u8, value: &[u8]) -> Option<Self> {
        match (code, value) {
            (number::MULTIPROTOCOL, &[a, b, _, c]) => {
                Some(Capability::Multiprotocol(AfiSafi::from_octets([a, b, c])))
            }
            (number::ROUTE_REFRESH, []) => Some(Capability::RouteRefresh),
            (number::EXTENDED_MESSAGE, []) => Some(Capability::ExtendedMessage),
            (number::ROLE, &[role]) => Some(Capability::Role(role)),
            (number::GRACEFUL_RESTART, &[flags, time, ref families @ ..]) => {
                let (families, []) = families.as_chunks::<4>() else {
                    return None;
                };
                Some(Capability::GracefulRestart(GracefulRestart {
                    restarted: flags & RESTARTED != 0,
                    notification: flags & NOTIFICATION != 0,
                    time_s: u16::from_be_bytes([flags, time]) & TIME_S_MAX,
                    families: families
                        .iter()
                        .map(|&[a, b, c, flags]| {
                            (AfiSafi::from_octets([a, b, c]), flags & FORWARDING != 0)
                        })
                        .collect(),
                }))
            }
            (number::FOUR_OCTET_AS, value) => {
                let asn = u32::from_be_bytes(value.try_into().ok()?);
                Some(Capability::FourOctetAs(asn))
            }
            (number::ADD_PATH, value) => {
                let (families, []) = value.as_chunks::<4>() else {
                    return None;
                };
                let entry = |&[a, b, c, mode]: &[u8; 4]| {
                    let mode = AddPathMode::from_number(mode)?;
                    Some((AfiSafi::from_octets([a, b, c]), mode))
                };
                Some(Capability::AddPath(
                    families.iter().filter_map(entry).collect(),
                ))
            }
            (number::ENHANCED_REFRESH, []) => Some(Capability::EnhancedRouteRefresh),
            (number::FQDN, value) => {
                let (&len, rest) = value.split_first()?;
                let (host, rest) = rest.split_at_checked(usize::from(len))?;
                let (&len, domain) = rest.split_first()?;
                (domain.len() == usize::from(len)).then(|| Capability::Fqdn {
                    host: host.to_vec(),
                    domain: domain.to_vec(),
                })
            }
            _ => None,
        }
    }

    /// Appends code, length and value.
    pub(super) fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        out.push(self.code());
        out.push(0);
        let start = out.len();
        self.emit_value(out)?;
        out[start - 1] = u8::try_from(out.len() - start).map_err(|_| TooLong)?;
        Ok(())
    }

    fn emit_value(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let family = |family: &AfiSafi, out: &mut Vec<u8>| {
            out.extend_from_slice(&family.afi.to_be_bytes());
            out.push(family.safi);
        };
        match self {
            Capability::RouteRefresh
            | Capability::ExtendedMessage
            | Capability::EnhancedRouteRefresh => {}
            Capability::Multiprotocol(AfiSafi { afi, safi }) => {
                let [a, b] = afi.to_be_bytes();
                out.extend_from_slice(&[a, b, 0, *safi]);
            }
            Capability::Role(role) => out.push(*role),
            Capability::GracefulRestart(restart) => {
                let [mut flags, time] = restart.time_s.min(TIME_S_MAX).to_be_bytes();
                flags |= if restart.restarted { RESTARTED } else { 0 };
                flags |= if restart.notification {
                    NOTIFICATION
                } else {
                    0
                };
                out.extend_from_slice(&[flags, time]);
                for (name, is_forwarding) in &restart.families {
                    family(name, out);
                    out.push(if *is_forwarding { FORWARDING } else { 0 });
                }
            }
            Capability::FourOctetAs(asn) => out.extend_from_slice(&asn.to_be_bytes()),
            Capability::AddPath(families) => {
                for (name, mode) in families {
                    family(name, out);
                    out.push(*mode as u8);
                }
            }
            Capability::Fqdn { host, domain } => {
                for name in [host, domain] {
                    out.push(u8::try_from(name.len()).map_err(|_| TooLong)?);
                    out.extend_from_slice(name);
                }
            }
            Capability::Unknown { value, .. } => out.extend_from_slice(value),
        }
        Ok(())
    }
}
