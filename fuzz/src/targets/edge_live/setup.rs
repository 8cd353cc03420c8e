//! The edge, its clients, and the settings of its users.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use aaa::pools::{Pools, Range, Spec};
use aaa::{Address, Prefix, Profile};
use base::{Duration, Redacted, Route};
use edge::{Admission, Config, Dial, Edge, Question};
use filter::{FilterSet, Names};
use l2tp::{Endpoint, Limits};
use ppp::{Authentication, Credentials, Proof};

pub(super) const LNS: &str = "192.0.2.100:1701";
pub(super) const CLIENTS: [&str; 2] = ["192.0.2.1:1701", "192.0.2.2:1701"];
/// Another port of a client's host, and an unrelated host.
pub(super) const STRANGERS: [&str; 2] = ["192.0.2.1:1702", "203.0.113.9:1701"];
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
/// Pool addresses are 10.0.0.1 and so on.
pub(super) const POOL: u8 = 4;

/// The filter files, one after the other.
const FILTERS: [&str; 3] = [
    "filter home\nin\ndeny tcp to any port 25 log\ndeny udp from any port 7\ndefault accept\n\
     filter closed\nin\ndefault deny\nout\ndefault deny\n",
    "filter home\nin\naccept tcp log\ndefault deny log\nout\naccept ip\n",
    "filter home\nout\ndeny icmp\ndeny icmp6\ndefault accept\nfilter closed\nin\naccept udp\n",
];

const SECRET: &[u8] = b"sesame";

pub(super) fn route(address: &str) -> Route {
    let address: SocketAddr = address.parse().expect("an address");
    Route {
        peer: address,
        local: None,
        socket: 0,
    }
}

fn endpoint(accept: bool, seed: u8) -> Endpoint {
    let config = l2tp::Config {
        host_name: "a host".into(),
        accept,
        limits: Limits {
            history: 2,
            ..l2tp::Config::default().limits
        },
        ..l2tp::Config::default()
    };
    Endpoint::new(config, [seed; 32])
}

fn pools() -> Pools {
    let range = Range::new([10, 0, 0, 1].into(), [10, 0, 0, POOL].into());
    let spec = Spec {
        name: "home".into(),
        ranges: vec![range.expect("a range")],
        ..Spec::default()
    };
    Pools::new(vec![spec], vec![GATEWAY], 7).expect("faultless")
}

/// A filter set, each parsed as a reload of the previous file. They are compiled once, because compiling takes
/// longer than an input.
pub(super) fn filters(number: usize) -> FilterSet {
    static SETS: LazyLock<Vec<FilterSet>> = LazyLock::new(|| {
        let names = Names::well_known();
        let mut sets = vec![FilterSet::default()];
        for text in FILTERS {
            let (set, _) = sets[sets.len() - 1]
                .reload(text, &names)
                .expect("faultless");
            sets.push(set);
        }
        sets
    });
    SETS[1 + number % FILTERS.len()].clone()
}

/// The edge under test.
pub(super) fn lns(choice: u8) -> Edge {
    let pick = |bit: u8, one: u32, other: u32| if choice & bit == 0 { one } else { other };
    let seconds = |bit: u8, one: u32, other: u32| {
        let seconds = pick(bit, one, other);
        Duration::from_secs(u64::from(seconds))
    };
    let ways = [Authentication::ChapMd5, Authentication::Pap];
    let config = Config {
        terminate: true,
        accounting: true,
        address: GATEWAY,
        address_v6: [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
        path_mtu: pick(1, 1_500, 160) as u16,
        filter: (choice & 2 != 0).then(|| "home".into()),
        idle_timeout: seconds(8, 0, 25),
        interim_interval: seconds(64, 0, 20),
        routes_max: pick(32, 1_000, 3),
        subscribers_max: pick(64, 1_000, 2),
        history_max: 3,
        ppp: ppp::Config {
            authenticate: ways[usize::from(choice >> 2 & 1)..].to_vec(),
            rechallenge_interval: seconds(16, 0, 15),
            ..ppp::Config::default()
        },
        ..Config::default()
    };
    let mut edge = Edge::new(config, endpoint(true, 1), pools(), [1; 32]);
    edge.filters_mut().replace(filters(0));
    edge.filters_mut().set_logs(true);
    edge
}

/// A concentrator whose sessions are clients.
pub(super) fn client(seed: u8) -> Edge {
    let none = Pools::new(Vec::new(), Vec::new(), 0).expect("no pools");
    Edge::new(Config::default(), endpoint(false, seed), none, [seed; 32])
}

/// A user's credentials for dialling.
pub(super) fn credentials(number: usize) -> Dial {
    let secret = if number < 14 { SECRET } else { b"guess" };
    Dial {
        credentials: Some(Credentials {
            name: format!("user{}", number % 8).into_bytes().into(),
            secret: Redacted::new(secret.into()),
        }),
        ipv4: number != 13,
        ipv6: number != 12,
        networks: Vec::new(),
    }
}

pub(super) fn is_right(question: &Question) -> bool {
    match &question.claim.proof {
        Proof::None => false,
        Proof::Pap { password, .. } => **password.reveal() == *SECRET,
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => *response == wire::ppp::chap::md5_response(*identifier, SECRET, challenge),
        Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
    }
}

/// The settings that a user is admitted with.
pub(super) fn admission(name: &[u8]) -> Admission {
    let mut profile = Profile::default();
    let number = name.strip_prefix(b"user").map_or(0, |rest| rest[0] & 7);
    match number {
        // A pool address that another user has too.
        1 | 2 => profile.address = Address::Fixed([10, 0, 0, 2].into()),
        3 => {
            profile.routes = vec![
                network([10, 77, 0, 0].into(), 16),
                network([0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 0].into(), 48),
            ];
            profile.filter = Some("home".into());
        }
        // A network that another user has too.
        4 => {
            profile.routes = vec![
                network([10, 77, 0, 0].into(), 16),
                network([10, 78, 4, 0].into(), 24),
            ];
            profile.interim_interval = Some(Duration::from_secs(10));
        }
        5 => {
            profile.filter = Some("closed".into());
            profile.session_timeout = Some(Duration::from_secs(30));
        }
        6 => profile.filter = Some("none of this name".into()),
        7 => {
            profile.idle_timeout = Some(Duration::from_secs(20));
            profile.name = Some("another".into());
        }
        _ => {}
    }
    Admission {
        profile,
        sticky: number.is_multiple_of(2),
        is_remote: number == 3,
        sessions: (number == 7).then_some(1),
        left_out: Vec::new(),
        shape: None,
    }
}

fn network(address: IpAddr, length: u8) -> Prefix {
    Prefix::new(address, length).expect("no bits behind its length")
}
