//! The encapsulations of a frame around its innermost IP packet.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::Skip;

/// One encapsulation. Identifiers are those of the frame's own direction: in the other direction, a GRE, L2TP,
/// PPTP or GTP-U tunnel may use different ones, and the addresses of [`Layer::Ipv4`] and [`Layer::Ipv6`] are
/// swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A VLAN tag (IEEE 802.1Q, 802.1ad).
    Vlan {
        /// VLAN identifier, 12 bits.
        id: u16,
        /// The EtherType that announced the tag.
        tpid: u16,
    },
    /// One entry of an MPLS label stack (RFC 3032).
    Mpls {
        /// Label, 20 bits.
        label: u32,
    },
    /// A PPPoE session (RFC 2516); it always carries PPP, so no [`Layer::Ppp`] follows.
    Pppoe {
        /// SESSION_ID, chosen by the access concentrator.
        session: u16,
    },
    /// PPP in tunnels that do not always carry it: PPTP and L2TPv3.
    Ppp,
    /// An outer IPv4 header (RFC 2003, and tunnels over UDP or GRE).
    Ipv4 {
        /// Source address.
        source: [u8; 4],
        /// Destination address.
        destination: [u8; 4],
    },
    /// An outer IPv6 header (RFC 2473).
    Ipv6 {
        /// Source address.
        source: [u8; 16],
        /// Destination address.
        destination: [u8; 16],
    },
    /// GRE (RFC 2784).
    Gre {
        /// Key (RFC 2890), if present.
        key: Option<u32>,
    },
    /// GRE version 1 (RFC 2637 4.1).
    Pptp {
        /// Call ID, chosen by the receiver.
        call: u16,
    },
    /// VXLAN (RFC 7348).
    Vxlan {
        /// VXLAN network identifier, 24 bits.
        vni: u32,
    },
    /// Geneve (RFC 8926).
    Geneve {
        /// Virtual network identifier, 24 bits.
        vni: u32,
    },
    /// L2TP data (RFC 2661, RFC 3931).
    L2tp {
        /// 2 or 3.
        version: u8,
        /// Tunnel ID; 0 in version 3, whose data messages have none.
        tunnel: u32,
        /// Session ID, chosen by the receiver.
        session: u32,
    },
    /// GTP-U (3GPP TS 29.281).
    Gtp {
        /// Tunnel endpoint identifier, chosen by the receiver.
        teid: u32,
    },
    /// Ethernet within IP (RFC 3378).
    EtherIp,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Layer::Vlan { id, .. } => write!(f, "vlan {id}"),
            Layer::Mpls { label } => write!(f, "mpls {label}"),
            Layer::Pppoe { session } => write!(f, "pppoe {session}"),
            Layer::Ppp => f.write_str("ppp"),
            Layer::Ipv4 {
                source,
                destination,
            } => write!(
                f,
                "ip {}>{}",
                Ipv4Addr::from(source),
                Ipv4Addr::from(destination)
            ),
            Layer::Ipv6 {
                source,
                destination,
            } => write!(
                f,
                "ip {}>{}",
                Ipv6Addr::from(source),
                Ipv6Addr::from(destination)
            ),
            Layer::Gre { key: None } => f.write_str("gre"),
            Layer::Gre { key: Some(key) } => write!(f, "gre {key}"),
            Layer::Pptp { call } => write!(f, "pptp {call}"),
            Layer::Vxlan { vni } => write!(f, "vxlan {vni}"),
            Layer::Geneve { vni } => write!(f, "geneve {vni}"),
            Layer::L2tp {
                version: 2,
                tunnel,
                session,
            } => write!(f, "l2tp {tunnel}/{session}"),
            Layer::L2tp { session, .. } => write!(f, "l2tpv3 {session}"),
            Layer::Gtp { teid } => write!(f, "gtp {teid}"),
            Layer::EtherIp => f.write_str("etherip"),
        }
    }
}

/// The deepest nesting of encapsulations that is followed.
pub const LAYERS_MAX: usize = 8;

/// The encapsulations of a frame, outermost first; at most [`LAYERS_MAX`].
#[derive(Clone, Copy)]
pub struct Layers {
    items: [Layer; LAYERS_MAX],
    len: u8,
}

impl Layers {
    /// No encapsulations.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            items: [Layer::Ppp; LAYERS_MAX],
            len: 0,
        }
    }

    /// The number of encapsulations.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether the frame has no encapsulation besides its link header.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, outermost first.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Layer] {
        self.items.get(..self.len()).unwrap_or(&self.items)
    }

    /// Drops all but the outermost `len`.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len as u8);
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds an innermost layer.
    ///
    /// # Errors
    /// [`Skip::TooDeep`] if there are [`LAYERS_MAX`] already.
    #[inline]
    pub(super) fn push(&mut self, layer: Layer) -> Result<(), Skip> {
        let at = self.len();
        let slot = self.items.get_mut(at).ok_or(Skip::TooDeep)?;
        *slot = layer;
        self.len += 1;
        Ok(())
    }
}

impl Default for Layers {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Layers {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Layers {}

impl std::hash::Hash for Layers {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The layers separated by commas, outermost first: `vlan 100, pppoe 17`.
impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, layer) in self.as_slice().iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            layer.fmt(f)?;
        }
        Ok(())
    }
}
