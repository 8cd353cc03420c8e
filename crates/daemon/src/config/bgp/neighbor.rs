//! `[[bgp.neighbor]]` (peers by address) and `[[bgp.dynamic]]` (dynamic peers, accepted from a network).

use std::net::IpAddr;
use std::sync::Arc;

use bgp::{DynamicConfig, PeerConfig, PeerSettings, RemoteAsn};

use super::prefix;
use super::speaker::{self, Context};
use settings::Section;

/// Reads one `[[bgp.neighbor]]`.
pub(super) fn neighbor(
    section: &mut Section,
    defaults: &PeerSettings,
    context: &Context<'_>,
) -> Option<PeerConfig> {
    let at = section.at();
    section.require("address", "give the peer's: address = \"192.0.2.7\"");
    let remote = address(section, "address");
    let local = address(section, "local_address");
    let remote_asn = remote_asn(section);
    let port = section.integer("port", 1..=65_535, "");
    let name = section.string("name");
    let settings = Arc::new(speaker::read(section, defaults, context));
    let mut peer = PeerConfig::new(remote?, remote_asn?, settings);
    if let Some(local) = local
        && local.is_ipv4() != peer.remote.is_ipv4()
    {
        let message = format!("{local} and {} are of different families", peer.remote);
        section.fault(at, "local_address", message);
    }
    peer.local = local;
    peer.name = name.map(|name| name.value.into());
    if let Some(port) = port {
        peer.port = port.value as u16;
    }
    Some(peer)
}

/// Reads one `[[bgp.dynamic]]`: a network from which dynamic peers are accepted.
pub(super) fn dynamic(
    section: &mut Section,
    defaults: &PeerSettings,
    context: &Context<'_>,
) -> Option<DynamicConfig> {
    let remedy = "give the peers' network: prefix = \"192.0.2.0/24\"";
    section.require("prefix", remedy);
    let network = section.parsed("prefix", prefix);
    let remote_asn = remote_asn(section);
    let peers_max = section.integer("peers_max", 1..=1_000_000, "peers");
    let mut settings = speaker::read(section, defaults, context);
    // The addresses of dynamic peers are unknown until they connect.
    settings.passive = true;
    Some(DynamicConfig {
        prefix: network?.value,
        remote_asn: remote_asn?,
        peers_max: peers_max.map_or(100_000, |number| number.value as u32),
        settings: Arc::new(settings),
    })
}

fn address(section: &mut Section, key: &'static str) -> Option<IpAddr> {
    let address = section.parsed(key, |text| {
        let address = text.parse::<IpAddr>().ok();
        let usable = address.filter(|ip| !ip.is_unspecified() && !ip.is_multicast());
        usable.ok_or_else(|| {
            format!("\"{text}\" is not a host's address; write it like \"192.0.2.7\"")
        })
    })?;
    Some(address.value)
}

fn remote_asn(section: &mut Section) -> Option<RemoteAsn> {
    let remedy = "give the peer's: remote_asn = 65001, or \"any\", \"external\", \"internal\"";
    section.require("remote_asn", remedy);
    if section.is_string("remote_asn") {
        let kinds = [
            ("any", RemoteAsn::Any),
            ("external", RemoteAsn::External),
            ("internal", RemoteAsn::Internal),
        ];
        return section.choice("remote_asn", &kinds).map(|kind| kind.value);
    }
    let asn = section.integer("remote_asn", 1..=i64::from(u32::MAX), "")?;
    Some(RemoteAsn::Exactly(asn.value as u32))
}
