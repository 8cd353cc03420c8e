//! IPv6 on the street: pools, and what a host may send to its edge by hand, with options that are repeated and nested.

use aaa::Prefix;
use aaa::prefixes::PrefixSpec;
use base::Duration;
use edge::v6::{Settings, link_local};
use sim::Rng;
use wire::dhcpv6::{ALL_SERVERS, Kind, Writer, code};
use wire::ndp;

fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').expect("a length");
    let address = address.parse().expect("an address");
    let length = length.parse().expect("a length");
    Prefix::new(address, length).expect("no bits behind its length")
}

/// What the edge serves.
pub(crate) fn settings(rng: &mut Rng) -> Settings {
    let share = if rng.chance(0.3) { 0.0 } else { 0.8 };
    let some = |rng: &mut Rng, name: &str| rng.chance(share).then(|| name.into());
    Settings {
        pool: some(rng, "links"),
        delegated_pool: some(rng, "homes"),
        address_pool: some(rng, "hosts"),
        interval: Duration::from_secs([60, 600][rng.below(2) as usize]),
        valid_s: [60, 600, 86_400][rng.below(3) as usize],
        preferred_s: 30,
        interim_on_change: rng.chance(0.5),
        ..Settings::default()
    }
}

/// Pools with four places or many.
pub(crate) fn specs(rng: &mut Rng) -> Vec<PrefixSpec> {
    let sticky = rng.chance(0.5);
    let mut spec = |name: &str, ranges: [&str; 2], length| PrefixSpec {
        name: name.into(),
        ranges: vec![prefix(ranges[rng.below(2) as usize])],
        length,
        excluded: Vec::new(),
        sticky,
    };
    vec![
        spec("links", ["2001:db8:1::/62", "2001:db8:1::/48"], 64),
        spec("homes", ["2001:db8:8000::/54", "2001:db8:8000::/40"], 56),
        spec("hosts", ["2001:db8:2::/126", "2001:db8:2::/112"], 128),
    ]
}

/// A PPP frame without address and control, with a message of DHCPv6 or a solicitation of a host.
pub(crate) fn frame(rng: &mut Rng, own: u64) -> Vec<u8> {
    let own = link_local(own);
    let mut frame = vec![0, 0x57];
    if rng.chance(0.2) {
        ndp::write_solicitation(own, &mut frame);
        return frame;
    }
    let kinds = [
        Kind::Solicit,
        Kind::Request,
        Kind::Request,
        Kind::Renew,
        Kind::Rebind,
        Kind::Release,
    ];
    let kind = kinds[rng.below(kinds.len() as u64) as usize];
    let mut content = Vec::new();
    let mut out = Writer::new(kind, [1, 2, 3], &mut content);
    let client = [0, 3, 0, 1, 2, 0, 0, 0, 0, rng.below(2) as u8];
    let copies = |rng: &mut Rng| [1, 1, 1, 2, 9][rng.below(5) as usize];
    for _ in 0..copies(rng) {
        out.option(code::CLIENT_ID, &[&client]);
    }
    if matches!(kind, Kind::Request | Kind::Renew | Kind::Release) {
        for _ in 0..copies(rng) {
            out.option(code::SERVER_ID, &[&Settings::default().duid]);
        }
    }
    if rng.chance(0.3) {
        out.option(code::RAPID_COMMIT, &[]);
    }
    for code in [code::IA_PD, code::IA_NA] {
        if rng.chance(0.7) {
            for _ in 0..copies(rng) {
                let iaid = rng.below(3) as u32;
                out.association(code, [iaid, 0, 0], |_| {});
            }
        }
        if rng.chance(0.2) {
            // An association in an association in an association.
            let inner = [&[0, code as u8, 0, 12][..], &[0; 12]].concat();
            let outer = [&[0, code as u8, 0, 28][..], &[0; 12], &inner].concat();
            out.option(code, &[&[0; 12], &outer]);
        }
    }
    ndp::write_packet([own, ALL_SERVERS], (17, 6, 1), &mut frame, |out| {
        for word in [546, 547, content.len() as u16 + 8, 0] {
            out.extend_from_slice(&u16::to_be_bytes(word));
        }
        out.extend_from_slice(&content);
    });
    frame
}
