//! OPEN messages: what ours offers, whether the peer's is acceptable (RFC 4271, section 6.2), and what both negotiate.
//!
//! Left out: the retry without capabilities after "Unsupported Optional Parameter" (RFC 5492). Every current
//! implementation knows that parameter.
//!
//! Implements parts of RFC 8654.

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use wire::bgp::notification::{Notification, code, open};
use wire::bgp::{
    AddPathMode, AfiSafi, Capability, EXTENDED_MAX, FAMILIES, Families, FamilyId, GracefulRestart,
    MESSAGE_MAX, Open, PeerKind, Role, UpdateContext,
};

use crate::config::{PeerSettings, RemoteAsn};
use crate::policy::Policy;
use crate::rib::PeerTraits;

/// What the two OPEN messages negotiated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The peer's autonomous system.
    pub remote_asn: u32,
    /// Our autonomous system towards the peer.
    pub local_asn: u32,
    /// The peer's BGP Identifier.
    pub router_id: Ipv4Addr,
    /// The hold time in seconds; 0 means none.
    pub hold_time_s: u16,
    /// The time between KEEPALIVEs in seconds; 0 means that none are sent.
    pub keepalive_s: u16,
    /// Families that both sides offered.
    pub families: Families,
    /// Whether AS numbers have four octets (RFC 6793).
    pub four_octet: bool,
    /// Whether the peer understands ROUTE-REFRESH.
    pub refresh: bool,
    /// Whether the peer understands the marks around a refresh (RFC 7313).
    pub enhanced_refresh: bool,
    /// Whether the peer understands messages of up to 65,535 octets.
    pub extended: bool,
    /// Families of which the peer may send several paths.
    pub add_path_in: Families,
    /// Families of which we may send several paths.
    pub add_path_out: Families,
    /// The peer's role, if it stated one.
    pub role: Option<Role>,
    /// The peer's graceful restart capability.
    pub graceful: Option<Graceful>,
}

/// A peer's graceful restart capability (RFC 4724).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graceful {
    /// Whether the peer has restarted.
    pub restarted: bool,
    /// How long its routes are kept without it, in seconds.
    pub time_s: u16,
    /// Families whose routes are kept.
    pub families: Families,
    /// Families whose forwarding state it has preserved.
    pub forwarding: Families,
}

impl Agreed {
    /// Whether the session is an internal one.
    #[must_use]
    pub const fn is_internal(&self) -> bool {
        self.remote_asn == self.local_asn
    }

    /// What is needed to read the peer's UPDATE messages.
    pub(crate) fn update_context(&self, settings: &PeerSettings) -> UpdateContext {
        let is_internal = self.is_internal();
        let is_server = settings.role == Some(Role::RouteServerClient);
        let is_own = settings.enforce_first_as && !is_internal && !is_server;
        UpdateContext {
            four_octet: self.four_octet,
            peer: if is_internal {
                PeerKind::Internal
            } else {
                PeerKind::External
            },
            add_path: FamilyId::ALL.map(|family| self.add_path_in.contains(family)),
            families: self.families,
            first_as: is_own.then_some(self.remote_asn),
        }
    }

    /// The longest message that we may send, in octets.
    #[must_use]
    pub const fn message_max(&self) -> u16 {
        if self.extended {
            EXTENDED_MAX as u16
        } else {
            MESSAGE_MAX as u16
        }
    }

    /// What the rib has to know of the session; `local` is our end of the connection.
    pub(crate) fn traits(
        &self,
        settings: &PeerSettings,
        remote: IpAddr,
        local: Option<IpAddr>,
    ) -> PeerTraits {
        let is_internal = self.is_internal();
        let policy = |configured: &Option<Arc<Policy>>| match configured {
            Some(policy) => policy.clone(),
            None if is_internal => Policy::accept(),
            None => Policy::deny(),
        };
        let (local_v4, local_v6) = match local {
            Some(IpAddr::V4(address)) => (Some(address), None),
            Some(IpAddr::V6(address)) => (None, Some(address)),
            None => (None, None),
        };
        let limit = settings.prefix_limit.map(|limit| limit.prefixes_max);
        PeerTraits {
            local_v4: settings.next_hop_v4.or(local_v4),
            local_v6: settings.next_hop_v6.or(local_v6),
            families: self.families,
            four_octet: self.four_octet,
            message_max: self.message_max(),
            add_path_rx: self.add_path_in,
            add_path_tx: self.add_path_out,
            add_path_count: settings.add_path_count,
            is_client: is_internal && settings.is_client,
            next_hop: settings.next_hop,
            role: settings.role.filter(|_| !is_internal),
            enhanced_refresh: self.enhanced_refresh,
            end_of_rib: self.graceful.is_some(),
            allow_own: settings.allow_own,
            import: policy(&settings.import),
            export: policy(&settings.export),
            advertisement_interval: settings.advertisement_interval,
            prefix_limit: [limit; FAMILIES],
            ..PeerTraits::new(
                self.local_asn,
                self.remote_asn,
                self.router_id.to_bits(),
                remote,
            )
        }
    }
}

/// Our side of an OPEN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ours<'a> {
    pub(crate) asn: u32,
    pub(crate) router_id: Ipv4Addr,
    /// Whether we have restarted, so that peers need not wait for us.
    pub(crate) restarted: bool,
    pub(crate) settings: &'a PeerSettings,
}

impl Ours<'_> {
    pub(crate) fn local_asn(&self) -> u32 {
        self.settings.local_asn.unwrap_or(self.asn)
    }

    /// Appends our OPEN.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let settings = self.settings;
        let mut message = Open::new(
            self.local_asn(),
            settings.hold_time_s,
            self.router_id.to_bits(),
        );
        let families = settings.families;
        message.capabilities.extend(
            families
                .iter()
                .map(|family| Capability::Multiprotocol(family.into())),
        );
        if settings.refresh {
            message.capabilities.push(Capability::RouteRefresh);
            message.capabilities.push(Capability::EnhancedRouteRefresh);
        }
        if settings.extended_messages {
            message.capabilities.push(Capability::ExtendedMessage);
        }
        if let Some(graceful) = settings.graceful_restart {
            let kept = |family: FamilyId| (AfiSafi::from(family), self.restarted);
            let families = families.iter().filter(|_| graceful.forwarding);
            message
                .capabilities
                .push(Capability::GracefulRestart(GracefulRestart {
                    restarted: self.restarted,
                    notification: false,
                    time_s: graceful.restart_time_s,
                    families: families.map(kept).collect(),
                }));
        }
        let modes: Vec<_> = families
            .iter()
            .filter_map(|family| {
                let receive = settings.add_path_receive.contains(family);
                let send = settings.add_path_send.contains(family);
                let mode = AddPathMode::from_number(u8::from(receive) | u8::from(send) << 1)?;
                Some((family.into(), mode))
            })
            .collect();
        if !modes.is_empty() {
            message.capabilities.push(Capability::AddPath(modes));
        }
        if let Some(role) = settings.role {
            message.capabilities.push(Capability::Role(role as u8));
        }
        message
            .emit(out)
            .expect("capabilities of two families have some hundred octets");
    }

    /// What both OPEN messages negotiate.
    ///
    /// # Errors
    /// The NOTIFICATION for a peer whose OPEN is not acceptable.
    pub(crate) fn agree(&self, theirs: &Open, expected: RemoteAsn) -> Result<Agreed, Notification> {
        let error = |subcode| Err(Notification::new(code::OPEN, subcode));
        let (local_asn, remote_asn) = (self.local_asn(), theirs.asn());
        if !expected.admits(remote_asn, local_asn) {
            return error(open::BAD_PEER_AS);
        }
        // RFC 6286, section 2.2: identifiers are unique within an autonomous system.
        if remote_asn == local_asn && theirs.router_id == self.router_id.to_bits() {
            return error(open::BAD_IDENTIFIER);
        }
        let settings = self.settings;
        let hold_time_s = settings.hold_time_s.min(theirs.hold_time_s);
        if theirs.hold_time_s != 0 && theirs.hold_time_s < settings.hold_time_min_s {
            return error(open::UNACCEPTABLE_HOLD_TIME);
        }
        let families = settings.families.and(theirs.families());
        if families.is_empty() {
            return Err(unsupported_families(settings.families));
        }
        let has = |wanted: &Capability| theirs.capabilities.contains(wanted);
        let (their_receive, their_send) = add_path_of(theirs);
        Ok(Agreed {
            remote_asn,
            local_asn,
            router_id: theirs.router_id.into(),
            hold_time_s,
            keepalive_s: keepalive_s(settings.keepalive_s, hold_time_s),
            families,
            four_octet: theirs.four_octet_as().is_some(),
            refresh: settings.refresh && has(&Capability::RouteRefresh),
            enhanced_refresh: settings.refresh && has(&Capability::EnhancedRouteRefresh),
            extended: settings.extended_messages && has(&Capability::ExtendedMessage),
            add_path_in: settings.add_path_receive.and(their_send).and(families),
            add_path_out: settings.add_path_send.and(their_receive).and(families),
            role: role_of(theirs, settings, remote_asn == local_asn)?,
            graceful: settings.graceful_restart.and(graceful_of(theirs)),
        })
    }
}

fn keepalive_s(wanted: Option<u16>, hold_time_s: u16) -> u16 {
    let third = hold_time_s / 3;
    wanted.unwrap_or(third).min(third)
}

/// The NOTIFICATION for a peer that has no family in common with us. It lists the capabilities that the peer lacks (RFC
/// 5492, section 5).
fn unsupported_families(families: Families) -> Notification {
    let data: Vec<u8> = families
        .iter()
        .map(AfiSafi::from)
        .flat_map(|family| {
            let [a, b] = family.afi.to_be_bytes();
            [1, 4, a, b, 0, family.safi]
        })
        .collect();
    Notification::with_data(code::OPEN, open::UNSUPPORTED_CAPABILITY, &data)
}

/// The families for which a peer receives several paths, and those for which it sends them.
fn add_path_of(theirs: &Open) -> (Families, Families) {
    let mut both = (Families::NONE, Families::NONE);
    for capability in &theirs.capabilities {
        let Capability::AddPath(modes) = capability else {
            continue;
        };
        for (family, mode) in modes {
            let Some(family) = family.family() else {
                continue;
            };
            if mode.receives() {
                both.0 = both.0.with(family);
            }
            if mode.sends() {
                both.1 = both.1.with(family);
            }
        }
    }
    both
}

/// The peer's role, if it fits ours (RFC 9234, section 4.2). Internal peers have none.
fn role_of(
    theirs: &Open,
    settings: &PeerSettings,
    is_internal: bool,
) -> Result<Option<Role>, Notification> {
    let Some(ours) = settings.role.filter(|_| !is_internal) else {
        return Ok(None);
    };
    let mismatch = || Notification::new(code::OPEN, open::ROLE_MISMATCH);
    let mut told = theirs
        .capabilities
        .iter()
        .filter_map(|capability| match capability {
            Capability::Role(number) => Some(*number),
            _ => None,
        });
    let Some(first) = told.next() else {
        return if settings.role_strict {
            Err(mismatch())
        } else {
            Ok(None)
        };
    };
    if told.any(|other| other != first) || first != ours.opposite() as u8 {
        return Err(mismatch());
    }
    Ok(Some(ours.opposite()))
}

/// The peer's graceful restart capability. If there are several, the last one applies (RFC 4724, section 3).
fn graceful_of(theirs: &Open) -> Option<Graceful> {
    let told = theirs
        .capabilities
        .iter()
        .rev()
        .find_map(|capability| match capability {
            Capability::GracefulRestart(restart) => Some(restart),
            _ => None,
        })?;
    let named = |wanted: &dyn Fn(bool) -> bool| {
        told.families
            .iter()
            .filter(|(_, forwarding)| wanted(*forwarding))
            .filter_map(|(family, _)| family.family())
            .collect::<Families>()
    };
    Some(Graceful {
        restarted: told.restarted,
        time_s: told.time_s,
        families: named(&|_| true),
        forwarding: named(&|forwarding| forwarding),
    })
}

#[cfg(test)]
mod tests;
